"""`jax.dtypes`."""

import numpy as np

from stride.jax._config import canonical as canonicalize_dtype

float0 = np.dtype([("float0", np.void, 0)])
issubdtype = np.issubdtype
__all__ = ["canonicalize_dtype", "float0", "issubdtype"]
