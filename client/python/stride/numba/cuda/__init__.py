"""stride.cuda, under the name by which Numba's users import it."""

import sys

from stride import cuda
from stride.cuda import *  # noqa: F401,F403
from stride.cuda import random
from stride.numba import types

__all__ = list(cuda.__all__)
# `from stride.numba.cuda.random import ...` and the like are the same modules.
for _name in ("cg", "libdevice", "random"):
    sys.modules[f"{__name__}.{_name}"] = sys.modules[f"stride.cuda.{_name}"]
jit, grid = cuda.jit, cuda.grid
