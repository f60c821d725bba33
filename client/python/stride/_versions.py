"""The namespaces of the array API standard's versions before 2025.12, in which some results were lists."""

import functools
import types
from typing import Any, List, Optional

import stride
from stride import _inspection
from stride._array import Array

LATEST = "2025.12"
EARLIER = ("2021.12", "2022.12", "2023.12", "2024.12")


class _EarlierInfo(_inspection._Info):
    @staticmethod
    def devices() -> Any:
        return list(_inspection._Info.devices())


class _Earlier(types.ModuleType):
    """The package, but for the functions whose results version 2025.12 made tuples."""

    def __getattr__(self, name: str) -> Any:
        return getattr(stride, name)

    def __dir__(self) -> List[str]:
        return dir(stride)

    @staticmethod
    def __array_namespace_info__() -> _EarlierInfo:
        return _EarlierInfo()

    @staticmethod
    def broadcast_arrays(*arrays: Any) -> List[Array]:
        return list(stride.broadcast_arrays(*arrays))

    @staticmethod
    def meshgrid(*arrays: Any, indexing: str = "xy") -> List[Array]:
        return list(stride.meshgrid(*arrays, indexing=indexing))


@functools.lru_cache(maxsize=None)
def _earlier() -> _Earlier:
    return _Earlier("stride", stride.__doc__)


def namespace(version: Optional[str] = None) -> Any:
    """The namespace of a version of the standard, the latest for None. ValueError for one that is not there."""
    if version is None or version == LATEST:
        return stride
    if version in EARLIER:
        return _earlier()
    raise ValueError(f"no such version of the array API here: {version}")
