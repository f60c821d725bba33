"""NumPy's `lib`: `stride_tricks` and `scimath`. Its other names are for arrays of the host."""

import sys as _sys
from typing import Any

from stride import emath as scimath
from stride.lib import stride_tricks

__all__ = ["scimath", "stride_tricks"]

_sys.modules[__name__ + ".scimath"] = scimath


def __getattr__(name: str) -> Any:
    from stride import _numpy_names

    _numpy_names.missing_in("lib", name)
