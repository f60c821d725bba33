"""The namespaces of the array API standard's versions. Some results were lists before 2025.12; eigenvalues are always
complex in all of them."""

import functools
import types
from typing import Any, List, Optional

import stride
from stride import _decompositions, _inspection
from stride._array import Array

LATEST = "2025.12"
EARLIER = ("2021.12", "2022.12", "2023.12", "2024.12")


class _EarlierInfo(_inspection._Info):
    @staticmethod
    def devices() -> Any:
        return list(_inspection._Info.devices())


class _Linalg(types.ModuleType):
    """`stride.linalg`, except functions whose results differ from the standard's."""

    eig = staticmethod(_decompositions.complex_eig)
    eigvals = staticmethod(_decompositions.complex_eigvals)

    def __getattr__(self, name: str) -> Any:
        return getattr(stride.linalg, name)

    def __dir__(self) -> List[str]:
        return dir(stride.linalg)


class _Standard(types.ModuleType):
    """The package with the standard's linear algebra."""

    def __init__(self) -> None:
        super().__init__("stride", stride.__doc__)
        self.linalg = _Linalg("stride.linalg", stride.linalg.__doc__)

    def __getattr__(self, name: str) -> Any:
        return getattr(stride, name)

    def __dir__(self) -> List[str]:
        return dir(stride)


class _Earlier(_Standard):
    """The same, except functions whose results are tuples since version 2025.12."""

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
def _made(kind: type) -> Any:
    return kind()


def namespace(version: Optional[str] = None) -> Any:
    """The namespace of a version of the standard; for None the package itself, whose functions have NumPy's results.
    ValueError for a version that is not there."""
    if version is None:
        return stride
    if version == LATEST or version in EARLIER:
        return _made(_Standard if version == LATEST else _Earlier)
    raise ValueError(f"no such version of the array API here: {version}")
