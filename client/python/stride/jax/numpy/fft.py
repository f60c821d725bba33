"""NumPy's `fft` on arrays of JAX's kind."""

import stride as _st
from stride.jax import numpy as _numpy

_found = _numpy._names_of(_st.fft)
globals().update(_found)
__all__ = sorted(_found)
