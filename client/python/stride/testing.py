"""NumPy's `numpy.testing`, whose functions take the service's arrays as well: they are read."""

import functools
import types
from typing import Any

import numpy.testing as _numpy_testing

from stride._array import Array

__all__ = list(_numpy_testing.__all__)


def _on_host(one: Any) -> Any:
    if isinstance(one, Array):
        return one.to_numpy() if one.ndim else one.to_numpy()[()]
    if type(one) in (list, tuple):
        return type(one)(map(_on_host, one))
    return {key: _on_host(value) for key, value in one.items()} if type(one) is dict else one


def __getattr__(name: str) -> Any:
    found = getattr(_numpy_testing, name)
    if not name.startswith("assert") or not isinstance(found, types.FunctionType) or "raises" in name or "warn" in name:
        return found

    @functools.wraps(found)
    def read_first(*arguments: Any, **options: Any) -> Any:
        return found(*_on_host(arguments), **_on_host(options))

    globals()[name] = read_first
    return read_first


def __dir__() -> list:
    return sorted({*globals(), *__all__})
