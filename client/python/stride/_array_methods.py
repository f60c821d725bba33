"""The methods that NumPy's arrays have: each is a function of the namespace, with its parameters."""

import builtins
from typing import TYPE_CHECKING, Any, Optional, Tuple

if TYPE_CHECKING:
    from stride._array import Array


class NumpyMethods:
    """A part of Array."""

    __slots__ = ()

    # --- types ---

    def astype(
        self, dtype, order: Optional[str] = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> "Array":
        """The elements in another type; this array itself where it has the type and `copy` is False."""
        from stride import _arguments, _dtypes, _manipulation

        _arguments.check_order(order)
        if casting != "unsafe":
            return _manipulation._cast(self, _dtypes.dtype_of(dtype), casting)  # type: ignore[arg-type]
        return _manipulation.astype(self, dtype, copy=copy)  # type: ignore[arg-type]

    def view(self, dtype=None, type=None) -> "Array":  # noqa: A002, NumPy's name
        """A view of all elements. With another type: their bytes as elements of it, in a copy for reading."""
        from stride import _arguments, _array_attributes

        import numpy

        def is_class(one: Any) -> bool:
            return isinstance(one, builtins.type) and issubclass(one, (numpy.ndarray, _stride().ndarray))

        if (type is not None and type is not _stride().ndarray) or is_class(dtype) and dtype is not _stride().ndarray:
            raise _arguments.unimplemented("view of another class", "the service's arrays have no subclasses")
        if dtype is None or is_class(dtype):
            return self[...]  # type: ignore[index]
        return _array_attributes.reinterpreted(self, dtype)  # type: ignore[arg-type]

    # --- reductions and running results ---

    def sum(self, axis=None, dtype=None, out=None, keepdims: bool = False, initial=None, where=True) -> "Array":
        """`stride.sum` of this array."""
        return _stride().sum(self, axis, dtype, out, keepdims, initial, where)

    def prod(self, axis=None, dtype=None, out=None, keepdims: bool = False, initial=None, where=True) -> "Array":
        """`stride.prod` of this array."""
        return _stride().prod(self, axis, dtype, out, keepdims, initial, where)

    def mean(self, axis=None, dtype=None, out=None, keepdims: bool = False, *, where=True) -> "Array":
        """`stride.mean` of this array."""
        return _stride().mean(self, axis, dtype, out, keepdims, where=where)

    def min(self, axis=None, out=None, keepdims: bool = False, initial=None, where=True) -> "Array":
        """`stride.min` of this array."""
        return _stride().min(self, axis, out, keepdims, initial, where)

    def max(self, axis=None, out=None, keepdims: bool = False, initial=None, where=True) -> "Array":
        """`stride.max` of this array."""
        return _stride().max(self, axis, out, keepdims, initial, where)

    def any(self, axis=None, out=None, keepdims: bool = False, *, where=True) -> "Array":
        """`stride.any` of this array."""
        return _stride().any(self, axis, out, keepdims, where=where)

    def all(self, axis=None, out=None, keepdims: bool = False, *, where=True) -> "Array":
        """`stride.all` of this array."""
        return _stride().all(self, axis, out, keepdims, where=where)

    def std(
        self, axis=None, dtype=None, out=None, ddof: float = 0, keepdims: bool = False, *, where=True, mean=None,
        correction=None,
    ) -> "Array":
        """`stride.std` of this array."""
        return _stride().std(self, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)

    def var(
        self, axis=None, dtype=None, out=None, ddof: float = 0, keepdims: bool = False, *, where=True, mean=None,
        correction=None,
    ) -> "Array":
        """`stride.var` of this array."""
        return _stride().var(self, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)

    def argmin(self, axis: Optional[int] = None, out=None, *, keepdims: bool = False) -> "Array":
        """`stride.argmin` of this array."""
        return _stride().argmin(self, axis, out, keepdims=keepdims)

    def argmax(self, axis: Optional[int] = None, out=None, *, keepdims: bool = False) -> "Array":
        """`stride.argmax` of this array."""
        return _stride().argmax(self, axis, out, keepdims=keepdims)

    def cumsum(self, axis: Optional[int] = None, dtype=None, out=None) -> "Array":
        """`stride.cumsum` of this array."""
        return _stride().cumsum(self, axis, dtype, out)

    def cumprod(self, axis: Optional[int] = None, dtype=None, out=None) -> "Array":
        """`stride.cumprod` of this array."""
        return _stride().cumprod(self, axis, dtype, out)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype=None, out=None) -> "Array":
        """`stride.trace` of this array."""
        return _stride().trace(self, offset, axis1, axis2, dtype, out)

    def ptp(self, axis=None, out=None, keepdims: bool = False) -> "Array":
        """`stride.ptp` of this array."""
        return _stride().ptp(self, axis, out, keepdims)

    # --- shapes ---

    def reshape(self, *shape, order: Optional[str] = "C", copy: Optional[bool] = None) -> "Array":
        """The elements in another shape: integers, or one sequence of them. A view where there is one, else a copy."""
        import numpy

        is_sequence = len(shape) == 1 and not (hasattr(shape[0], "__index__") and numpy.ndim(shape[0]) == 0)
        if not shape:
            raise TypeError("reshape() takes exactly 1 argument (0 given)")
        return _stride().reshape(self, shape[0] if is_sequence else shape, order, copy=copy)

    def ravel(self, order: Optional[str] = "C") -> "Array":
        """All elements along one axis: a view where there is one, else a copy."""
        return _stride().ravel(self, order)

    def flatten(self, order: Optional[str] = "C") -> "Array":
        """All elements along one axis, in a copy."""
        if order == "K":
            return _stride().copy(self.ravel(order))
        return _stride().reshape(self, (self.size,), order or "C", copy=True)  # type: ignore[attr-defined]

    def resize(self, *new_shape, refcheck: bool = True) -> None:
        """Another shape in place: the elements in C order, and zeros where there are too few. An array with views is
        not resized unless `refcheck` is False."""
        from stride import _array_attributes, _indexing

        shape = new_shape[0] if len(new_shape) == 1 else new_shape
        if shape is None or not new_shape:
            return
        buffer = self._node.buffer  # type: ignore[attr-defined]
        if self.base is not None:  # type: ignore[attr-defined]
            raise ValueError("cannot resize this array: it does not own its data")
        if refcheck and buffer is not None and buffer.num_nodes > 1:
            raise ValueError("cannot resize an array that references or is referenced by another array in this way.")
        _indexing.check_writable(self)  # type: ignore[arg-type]
        result = _array_attributes.resized(self, shape)  # type: ignore[arg-type]
        self._node, result._node = result._node, self._node  # type: ignore[attr-defined]

    def transpose(self, *axes) -> "Array":
        """A view with the axes in another order, all reversed where none are named."""
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            axes = axes[0] or ()
        return _stride().transpose(self, axes or None)

    def swapaxes(self, axis1: int, axis2: int) -> "Array":
        """A view in which two axes have changed places."""
        return _stride().swapaxes(self, axis1, axis2)

    def squeeze(self, axis=None) -> "Array":
        """A view without axes of one element."""
        return _stride().squeeze(self, axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> "Array":
        """`stride.diagonal` of this array, for reading."""
        return _stride().diagonal(self, offset, axis1, axis2)

    def repeat(self, repeats, axis: Optional[int] = None) -> "Array":
        """`stride.repeat` of this array."""
        return _stride().repeat(self, repeats, axis)

    # --- elements ---

    def take(self, indices, axis: Optional[int] = None, out=None, mode: str = "raise") -> "Array":
        """`stride.take` of this array."""
        return _stride().take(self, indices, axis, out, mode)

    def put(self, indices, values, mode: str = "raise") -> None:
        """`stride.put` into this array."""
        _stride().put(self, indices, values, mode)

    def choose(self, choices, out=None, mode: str = "raise") -> "Array":
        """`stride.choose` by this array."""
        return _stride().choose(self, choices, out, mode)

    def compress(self, condition, axis: Optional[int] = None, out=None) -> "Array":
        """`stride.compress` of this array."""
        return _stride().compress(condition, self, axis, out)

    def nonzero(self) -> Tuple["Array", ...]:
        """`stride.nonzero` of this array."""
        return _stride().nonzero(self)

    def sort(self, axis: int = -1, kind=None, order=None, *, stable: Optional[bool] = None) -> None:
        """Sorts in place."""
        import operator

        self[...] = _stride().sort(self, operator.index(axis), kind, order, stable=stable)  # type: ignore[index]

    def argsort(self, axis: Optional[int] = -1, kind=None, order=None, *, stable: Optional[bool] = None) -> "Array":
        """`stride.argsort` of this array."""
        return _stride().argsort(self, axis, kind, order, stable=stable)

    def partition(self, kth, axis: int = -1, kind: str = "introselect", order=None) -> None:
        """`stride.partition` in place."""
        import operator

        self[...] = _stride().partition(self, kth, operator.index(axis), kind, order)  # type: ignore[index]

    def argpartition(self, kth, axis: Optional[int] = -1, kind: str = "introselect", order=None) -> "Array":
        """`stride.argpartition` of this array."""
        return _stride().argpartition(self, kth, axis, kind, order)

    def searchsorted(self, v, side: str = "left", sorter=None) -> "Array":
        """`stride.searchsorted` in this array."""
        return _stride().searchsorted(self, v, side, sorter)

    def fill(self, value) -> None:
        """Writes one value into every element."""
        from stride import _indexing

        self[...] = _indexing.element(value, self)  # type: ignore[index,arg-type]

    # --- numbers ---

    def clip(self, min=None, max=None, out=None, **options) -> "Array":  # noqa: A002
        """`stride.clip` of this array."""
        return _stride().clip(self, min, max, out, **options)

    def round(self, decimals: int = 0, out=None) -> "Array":
        """`stride.round` of this array."""
        return _stride().round(self, decimals, out)

    def conj(self) -> "Array":
        """The conjugate numbers; an array that has no complex numbers itself, as NumPy's method gives it."""
        return _stride().conj(self) if self.dtype.kind == "c" else self

    conjugate = conj

    def dot(self, b: Any, out=None) -> "Array":
        """`stride.dot` with another array."""
        return _stride().dot(self, b, out)

    # --- bytes, which are read ---

    def tobytes(self, order: Optional[str] = "C") -> bytes:
        """The elements' bytes in C order, or with F in Fortran's."""
        return self._read().tobytes(order)  # type: ignore[attr-defined]

    def tofile(self, fid, sep: str = "", format: str = "%s") -> None:  # noqa: A002
        """Writes the elements into a file, which `fromfile` reads."""
        self._read().tofile(fid, sep, format)  # type: ignore[attr-defined]

    def dumps(self) -> bytes:
        """NumPy's pickle of the elements."""
        return self.to_numpy().dumps()  # type: ignore[attr-defined]

    def dump(self, file) -> None:
        """NumPy's pickle of the elements, in a file."""
        self.to_numpy().dump(file)  # type: ignore[attr-defined]

    def byteswap(self, inplace: bool = False) -> "Array":
        """Elements with their bytes in the opposite order, read and uploaded."""
        host = self.to_numpy().byteswap()  # type: ignore[attr-defined]
        if not inplace:
            return _stride().asarray(host)
        self[...] = host  # type: ignore[index]
        return self  # type: ignore[return-value]

    def setflags(self, write: Optional[bool] = None, align: Optional[bool] = None, uic: Optional[bool] = None) -> None:
        """Makes the array one for reading, by `write=False`; its views to come are so as well."""
        from stride import _graph

        node = self._node  # type: ignore[attr-defined]
        if uic:
            raise ValueError("cannot set WRITEBACKIFCOPY flag to True")
        if write is None:
            return
        if not write:
            node.freeze()
        elif type(node.strides) is _graph.FrozenStrides:
            raise ValueError("cannot set WRITEABLE flag to True of this array")


def _stride():
    import stride

    return stride

