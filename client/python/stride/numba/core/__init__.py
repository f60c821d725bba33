"""Numba's `core`, as far as programs import it: `config`, `errors` and `types`."""

from stride.numba import types
from stride.numba.core import config, errors

__all__ = ["config", "errors", "types"]
