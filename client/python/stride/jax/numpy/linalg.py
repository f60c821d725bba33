"""NumPy's `linalg` on arrays of JAX's kind."""

import stride as _st
from stride.jax import numpy as _numpy

_found = _numpy._names_of(_st.linalg)
globals().update(_found)
__all__ = sorted(_found)
