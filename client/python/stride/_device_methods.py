"""The methods of CuPy's and Numba's arrays that NumPy's arrays lack."""

from typing import TYPE_CHECKING, Any, Optional

import numpy as np

if TYPE_CHECKING:
    from stride._array import Array


def _scatter(name: str, array: Any, slices: Any, value: Any) -> None:
    """A ufunc's `at`, with values in the array's own type, as CuPy casts them."""
    from stride import _creation, _ufunc

    if not isinstance(value, (bool, int, float, complex)):
        value = _creation.asarray(value).astype(array.dtype, copy=False)
    elif np.result_type(array.dtype, value) != array.dtype:
        value = array.dtype.type(value)
    _ufunc.at(name, array, slices, value)


class DeviceMethods:
    """A part of Array."""

    __slots__ = ()

    # --- CuPy's ---

    def get(
        self, stream: Any = None, order: str = "C", out: Optional[np.ndarray] = None, blocking: bool = True
    ) -> np.ndarray:
        """A copy on the host; in `out` where it is given. `order` is the copy's: C, F or A (as C, since arrays of the
        service are C-contiguous)."""
        if out is not None:
            if not isinstance(out, np.ndarray):
                raise TypeError(f"out= is a NumPy array, not {type(out).__name__}")
            if out.shape != self.shape or out.dtype != self.dtype:  # type: ignore[attr-defined]
                own = f"{self.shape} and {self.dtype}"  # type: ignore[attr-defined]
                raise ValueError(f"out= has the shape {out.shape} and type {out.dtype}, the array {own}")
            out[...] = self.to_numpy()  # type: ignore[attr-defined]
            return out
        if order not in ("C", "F", "A"):
            raise ValueError(f"order is C, F or A, not {order!r}")
        values = self.to_numpy()  # type: ignore[attr-defined]
        return np.asfortranarray(values) if order == "F" else values

    def set(self, arr: Any, stream: Any = None) -> None:
        """Takes the elements of an array of the host, of the same shape and type."""
        arr = np.asarray(arr)
        if arr.shape != self.shape:  # type: ignore[attr-defined]
            own = self.shape  # type: ignore[attr-defined]
            raise ValueError(f"an array of shape {own} cannot be set to one of shape {arr.shape}")
        if arr.dtype != self.dtype:  # type: ignore[attr-defined]
            own = self.dtype  # type: ignore[attr-defined]
            raise TypeError(f"an array of {own} cannot be set to one of {arr.dtype}")
        self[...] = arr  # type: ignore[index]

    def scatter_add(self, slices: Any, value: Any) -> None:
        """`self[slices] += value`, in which an index that is there twice counts twice."""
        _scatter("add", self, slices, value)

    def scatter_max(self, slices: Any, value: Any) -> None:
        """The greater of each element and the values whose index names it."""
        _scatter("maximum", self, slices, value)

    def scatter_min(self, slices: Any, value: Any) -> None:
        """The lesser of each element and the values whose index names it."""
        _scatter("minimum", self, slices, value)

    def reduced_view(self, dtype: Any = None) -> "Array":
        """The array itself: CuPy's merges axes that are contiguous, which changes no element."""
        return self  # type: ignore[return-value]

    # --- Numba's ---

    def copy_to_host(self, ary: Optional[np.ndarray] = None, stream: Any = 0) -> np.ndarray:
        """A copy on the host; in `ary` where it is given."""
        values = self.to_numpy()  # type: ignore[attr-defined]
        if ary is None:
            return values
        if ary.shape != values.shape:
            if ary.size != values.size:
                raise ValueError(f"an array of shape {values.shape} cannot be copied to one of shape {ary.shape}")
            values = values.reshape(ary.shape)
        ary[...] = values
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Takes the elements of an array of the host or of the service."""
        self[...] = ary  # type: ignore[index]

    @property
    def alloc_size(self) -> int:
        """Bytes of the elements."""
        return self.nbytes  # type: ignore[attr-defined,no-any-return]

    def is_c_contiguous(self) -> bool:
        """Whether the elements lie in C order."""
        from stride._python_kernel import _is_contiguous

        return _is_contiguous(self._node)  # type: ignore[attr-defined]

    def is_f_contiguous(self) -> bool:
        """Whether the elements lie in Fortran order: of arrays with at most one extent above 1, as those in C order."""
        return self.is_c_contiguous() and sum(n > 1 for n in self.shape) <= 1  # type: ignore[attr-defined]

    def bind(self, stream: Any = 0) -> "Array":
        """The array itself: operations run in order whatever the stream."""
        return self  # type: ignore[return-value]

    def split(self, section: int, stream: Any = 0):
        """Views of at most `section` elements each, in order."""
        if self.ndim != 1:  # type: ignore[attr-defined]
            raise ValueError("only an array of one axis is split")
        for begin in range(0, self.size, section):  # type: ignore[attr-defined]
            yield self[begin : begin + section]  # type: ignore[index]
