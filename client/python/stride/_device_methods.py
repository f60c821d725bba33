"""The methods of CuPy's and Numba's arrays that NumPy's arrays lack."""

from typing import TYPE_CHECKING, Any, Optional

import numpy as np

if TYPE_CHECKING:
    from stride._array import Array


def _scatter(name: str, array: Any, slices: Any, value: Any) -> None:
    """A ufunc's `at`, with values in the array's own type, as CuPy casts them."""
    from stride import _conversion, _ufunc_methods

    if not isinstance(value, (bool, int, float, complex)):
        value = _conversion.asarray(value).astype(array.dtype, copy=False)
    elif np.result_type(array.dtype, value) != array.dtype:
        value = array.dtype.type(value)
    _ufunc_methods.at(name, array, slices, value)


class DeviceMethods:
    """A part of Array."""

    __slots__ = ()

    # --- CuPy's ---

    def get(
        self, stream: Any = None, order: str = "C", out: Optional[np.ndarray] = None, blocking: bool = True
    ) -> np.ndarray:
        """A copy on the host; in `out` where it is given. `order` is the copy's: C, F or A (as C, since arrays of the
        service are C-contiguous).

        Parameters
            stream: accepted: operations run in order whatever the stream.
            order: C, F or A: in which order the elements of the copy lie.
            out: an array of NumPy of this shape and type that takes the elements.
            blocking: accepted: the call waits.
        Returns
            A numpy.ndarray.
        Raises
            TypeError for an `out` that is no array of NumPy, ValueError for one of another shape or type.
        Example
            >>> st.arange(3).get()
            array([0, 1, 2])
        """
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
        """Takes the elements of an array of the host, of the same shape and type.

        Parameters
            arr: an array of the host.
            stream: accepted: operations run in order whatever the stream.
        Returns
            None.
        Raises
            ValueError for another shape or type.
        Example
            >>> x = st.zeros(2)
            >>> x.set(np.array([1.0, 2.0]))
            >>> x.tolist()
            [1.0, 2.0]
        """
        arr = np.asarray(arr)
        if arr.shape != self.shape:  # type: ignore[attr-defined]
            own = self.shape  # type: ignore[attr-defined]
            raise ValueError(f"an array of shape {own} cannot be set to one of shape {arr.shape}")
        if arr.dtype != self.dtype:  # type: ignore[attr-defined]
            own = self.dtype  # type: ignore[attr-defined]
            raise TypeError(f"an array of {own} cannot be set to one of {arr.dtype}")
        self[...] = arr  # type: ignore[index]

    def scatter_add(self, slices: Any, value: Any) -> None:
        """`self[slices] += value`, in which a repeated index counts each time.

        Parameters
            slices: what stands between brackets: integers, slices, arrays of integers or bools.
            value: what broadcasts to the places.
        Returns
            None.
        Raises
            IndexError for an index outside.
        Example
            >>> x = st.zeros(2)
            >>> x.scatter_add(st.array([0, 0, 1]), 1.0)
            >>> x.tolist()
            [2.0, 1.0]
        """
        _scatter("add", self, slices, value)

    def scatter_max(self, slices: Any, value: Any) -> None:
        """The greater of each element and the values whose index names it.

        Parameters
            slices: what stands between brackets: integers, slices, arrays of integers or bools.
            value: what broadcasts to the places.
        Returns
            None.
        Raises
            IndexError for an index outside.
        Example
            >>> x = st.zeros(2)
            >>> x.scatter_max(st.array([0, 0]), st.array([3.0, 1.0]))
            >>> x.tolist()
            [3.0, 0.0]
        """
        _scatter("maximum", self, slices, value)

    def scatter_min(self, slices: Any, value: Any) -> None:
        """The lesser of each element and the values whose index names it.

        Parameters
            slices: what stands between brackets: integers, slices, arrays of integers or bools.
            value: what broadcasts to the places.
        Returns
            None.
        Raises
            IndexError for an index outside.
        Example
            >>> x = st.zeros(2)
            >>> x.scatter_min(st.array([0, 0]), st.array([3.0, -1.0]))
            >>> x.tolist()
            [-1.0, 0.0]
        """
        _scatter("minimum", self, slices, value)

    def reduced_view(self, dtype: Any = None) -> "Array":
        """The array itself: CuPy's merges axes that are contiguous, which changes no element.

        Parameters
            dtype: accepted.
        Returns
            This array.
        Example
            >>> st.zeros((2, 3)).reduced_view().shape
            (2, 3)
        """
        return self  # type: ignore[return-value]

    # --- Numba's ---

    def copy_to_host(self, ary: Optional[np.ndarray] = None, stream: Any = 0) -> np.ndarray:
        """A copy on the host; in `ary` where it is given.

        Parameters
            ary: an array of NumPy that takes the elements; None makes one.
            stream: accepted: operations run in order whatever the stream.
        Returns
            A numpy.ndarray.
        Raises
            ValueError for an `ary` of another shape or type.
        Example
            >>> st.arange(3).copy_to_host()
            array([0, 1, 2])
        """
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
        """Takes the elements of an array of the host or of the service.

        Parameters
            ary: an array of the host or of the service, of this shape and type.
            stream: accepted: operations run in order whatever the stream.
        Returns
            None.
        Raises
            ValueError for another shape or type.
        Example
            >>> x = st.zeros(2)
            >>> x.copy_to_device(np.array([1.0, 2.0]))
            >>> x.tolist()
            [1.0, 2.0]
        """
        self[...] = ary  # type: ignore[index]

    @property
    def alloc_size(self) -> int:
        """Bytes of the elements.

        Example
            >>> st.zeros(2).alloc_size
            16
        """
        return self.nbytes  # type: ignore[attr-defined,no-any-return]

    def is_c_contiguous(self) -> bool:
        """Whether the elements lie in C order.

        Returns
            A bool.
        Example
            >>> st.zeros((2, 3)).is_c_contiguous()
            True
        """
        from stride._python_kernel import _is_contiguous

        return _is_contiguous(self._node)  # type: ignore[attr-defined]

    def is_f_contiguous(self) -> bool:
        """Whether the elements lie in Fortran order: of arrays with at most one extent above 1, as those in C order.

        Returns
            A bool.
        Example
            >>> st.zeros((2, 3)).is_f_contiguous()
            False
        """
        return self.is_c_contiguous() and sum(n > 1 for n in self.shape) <= 1  # type: ignore[attr-defined]

    def bind(self, stream: Any = 0) -> "Array":
        """The array itself: operations run in order whatever the stream.

        Parameters
            stream: accepted: operations run in order whatever the stream.
        Returns
            This array.
        Example
            >>> st.zeros(2).bind().shape
            (2,)
        """
        return self  # type: ignore[return-value]

    def split(self, section: int, stream: Any = 0):
        """Views of at most `section` elements each, in order.

        Parameters
            section: the most elements of a part, at least 1.
            stream: accepted: operations run in order whatever the stream.
        Returns
            An iterator of views of an array of one axis.
        Raises
            ValueError for an array of more axes.
        Example
            >>> [one.tolist() for one in st.arange(3).split(2)]
            [[0, 1], [2]]
        """
        if self.ndim != 1:  # type: ignore[attr-defined]
            raise ValueError("only an array of one axis is split")
        for begin in range(0, self.size, section):  # type: ignore[attr-defined]
            yield self[begin : begin + section]  # type: ignore[index]
