"""The part of Numba's `core` that programs import: `config`, `errors` and `types`."""

from stride.numba import types
from stride.numba.core import config, errors

__all__ = ["config", "errors", "types"]
