"""The methods that NumPy's arrays have: each is a function of the namespace, with its parameters."""

import builtins
import warnings
from typing import TYPE_CHECKING, Any, Optional, Tuple

from stride._reduction_methods import ReductionMethods, _stride
from stride._shape_methods import ShapeMethods

if TYPE_CHECKING:
    from stride._array import Array


class NumpyMethods(ReductionMethods, ShapeMethods):
    """A part of Array."""

    __slots__ = ()

    # --- types ---

    def astype(
        self, dtype, order: Optional[str] = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> "Array":
        """The elements in another type; this array itself where it has the type and `copy` is False.

        Parameters
            dtype: the element type.
            order: C or F, the order of memory; A or K, that of this array where it is C or F.
            casting: which casts are made: no, equiv, safe, same_kind or unsafe.
            subok: accepted: arrays have no subclasses.
            copy: whether an array of the type is copied as well.
        Returns
            An array of the same shape.
        Raises
            DataTypeMismatch for a cast that is not made, TypeError for a type that the service lacks.
        Example
            >>> st.array([1.5, 2.5]).astype(st.int32).tolist()
            [1, 2]
        """
        if order == "K" and casting == "unsafe":
            return _stride().astype(self, dtype, copy=copy)
        from stride import _arguments, _assembly, _casts, _dtypes, _manipulation

        _arguments.check_order(order)
        _warn_of_complex(self.dtype, dtype)  # type: ignore[attr-defined]
        if casting != "unsafe":
            checked = _assembly._cast(self, _dtypes.dtype_of(dtype), casting)  # type: ignore[arg-type]
            return checked if order == "K" else _manipulation.copied(checked, order)
        if not copy and self.dtype == _dtypes.dtype_of(dtype):  # type: ignore[attr-defined]
            either = order is not None and order.upper() == "A"  # C or F
            orders: Any = "CF" if either else (order,)
            if not all(_casts.lies_otherwise(self, one) for one in orders):
                return self  # type: ignore[return-value]
        return _manipulation.copied(self, order, _dtypes.dtype_of(dtype))  # type: ignore[arg-type]

    def view(self, dtype=None, type=None) -> "Array":  # noqa: A002, NumPy's name
        """A view of all elements. With another type: their bytes as elements of it.

        Parameters
            dtype: the type that the bytes have in the view; None for the array's own.
            type: None or `stride.ndarray`.
        Returns
            An array.
        Raises
            ValueError where the last axis has no whole number of elements; Unimplemented for another class.
        Example
            >>> st.array([1.0], st.float32).view(st.int32).tolist()
            [1065353216]
        """
        from stride import _arguments, _array_attributes

        import numpy

        def is_class(one: Any) -> bool:
            return isinstance(one, builtins.type) and issubclass(one, (numpy.ndarray, _stride().ndarray))

        if (type is not None and type is not _stride().ndarray) or is_class(dtype) and dtype is not _stride().ndarray:
            raise _arguments.unimplemented("view of another class", "the service's arrays have no subclasses")
        if dtype is None or is_class(dtype):
            return self[...]  # type: ignore[index]
        return _array_attributes.reinterpreted(self, dtype)  # type: ignore[arg-type]

    # --- elements ---

    def take(self, indices, axis: Optional[int] = None, out=None, mode: str = "raise") -> "Array":
        """The elements at indices: `stride.take` of this array.

        Parameters
            indices: integers of any shape; negative ones count from the end.
            axis: the axis; None takes from all elements in C order.
            out: array of the result's shape that takes it.
            mode: what an index outside means: `raise` (an error when the result is read), `wrap` or `clip`.
        Returns
            An array of this array's type with the axes of `indices` in place of the axis.
        Raises
            IndexError for an index outside; AxisError for an axis that this array lacks.
        Example
            >>> st.array([5, 6, 7]).take([2, 0]).tolist()
            [7, 5]
        """
        return _stride().take(self, indices, axis, out, mode)

    def put(self, indices, values, mode: str = "raise") -> None:
        """Writes values at places in C order: `stride.put` into this array.

        Parameters
            indices: integers of any shape, places in C order.
            values: the values, which are repeated when they are fewer.
            mode: `raise`, `wrap` or `clip`: how an index outside is treated.
        Returns
            None.
        Raises
            IndexError for an index outside.
        Example
            >>> x = st.zeros(3, st.int64)
            >>> x.put([0, 2], [5, 6])
            >>> x.tolist()
            [5, 0, 6]
        """
        _stride().put(self, indices, values, mode)

    def choose(self, *choices, out=None, mode: str = "raise") -> "Array":
        """Elements out of several arrays, which this array's numbers select: `stride.choose` of this array.

        Parameters
            choices: a sequence of arrays that broadcast with it, an array whose first axis they are along, or
                several arrays.
            out: array of the result's shape that takes it.
            mode: what a number outside means: `raise` (an error when the result is read), `wrap` or `clip`.
        Returns
            An array of the type that the choices have together.
        Raises
            ValueError for a number outside, where the host knows it; IndexError when the result is read.
        Example
            >>> st.array([0, 1]).choose([[1, 2], [3, 4]]).tolist()
            [1, 4]
        """
        return _stride().choose(self, choices[0] if len(choices) == 1 else choices, out, mode)

    def compress(self, condition, axis: Optional[int] = None, out=None) -> "Array":
        """The elements at which a condition is true: `stride.compress` of this array.

        Parameters
            condition: an array of one axis, which may be shorter than the axis.
            axis: the axis; None takes all elements in C order.
            out: array of the result's shape that takes it.
        Returns
            An array of this array's type.
        Raises
            ValueError for a condition of more axes; IndexError for a true one beyond the axis.
        Example
            >>> st.array([5, 6, 7]).compress([True, False, True]).tolist()
            [5, 7]
        """
        return _stride().compress(condition, self, axis, out)

    def nonzero(self) -> Tuple["Array", ...]:
        """The places of the elements that are not zero: `stride.nonzero` of this array.

        Returns
            A tuple of arrays of int64, one for each axis.
        Raises
            ValueError for an array without axes.
        Example
            >>> [one.tolist() for one in st.array([0, 5]).nonzero()]
            [[1]]
        """
        return _stride().nonzero(self)

    def sort(
        self, axis: int = -1, kind=None, order=None, *, stable: Optional[bool] = None, descending: bool = False
    ) -> None:
        """Sorts the elements along an axis in place, in rising order.

        Parameters
            axis: the axis.
            kind: accepted: there is one sort, and it is stable.
            order: None: it names fields, which arrays of the service do not have.
            stable: accepted: the sort is stable anyway.
            descending: whether the order falls.
        Returns
            None.
        Raises
            AxisError for an axis that the array does not have.
        Example
            >>> x = st.array([3, 1, 2])
            >>> x.sort()
            >>> x.tolist()
            [1, 2, 3]
        """
        import operator

        self[...] = _stride().sort(  # type: ignore[index]
            self, operator.index(axis), kind, order, stable=stable, descending=descending
        )

    def argsort(
        self, axis: Optional[int] = -1, kind=None, order=None, *, stable: Optional[bool] = None,
        descending: bool = False,
    ) -> "Array":
        """The places of the elements in rising order: `stride.argsort` of this array.

        Parameters
            axis: the axis; None sorts all elements, flattened.
            kind: NumPy's names of algorithms; every sort here is stable.
            order: must be None, since it names fields of structured arrays.
            stable: NumPy's names of algorithms; every sort here is stable.
            descending: whether the order falls.
        Returns
            An array of int64 of this array's shape.
        Raises
            AxisError for an axis that this array lacks; ValueError for another kind.
        Example
            >>> st.array([3, 1, 2]).argsort().tolist()
            [1, 2, 0]
        """
        return _stride().argsort(self, axis, kind, order, stable=stable, descending=descending)

    def partition(self, kth, axis: int = -1, kind: str = "introselect", order=None) -> None:
        """Brings the elements at given places of the order there: `stride.partition` in place.

        Parameters
            kth: a place in the order, or several.
            axis: the axis.
            kind: accepted: there is one method.
            order: None: it names fields, which arrays of the service do not have.
        Returns
            None.
        Raises
            ValueError for a place outside.
        Example
            >>> x = st.array([3, 1, 2])
            >>> x.partition(0)
            >>> x[0].item()
            1
        """
        import operator

        self[...] = _stride().partition(self, kth, operator.index(axis), kind, order)  # type: ignore[index]

    def argpartition(self, kth, axis: Optional[int] = -1, kind: str = "introselect", order=None) -> "Array":
        """The places of the elements in the order of `partition`: `stride.argpartition` of this array.

        Parameters
            kth: a place in the order, or several.
            axis: the axis; None flattens this array first.
            kind: introselect, and None.
            order: introselect, and None.
        Returns
            An array of int64 of this array's shape.
        Raises
            ValueError for a place outside and another kind; AxisError for an axis that this array lacks.
        Example
            >>> st.array([3, 1, 2]).argpartition(0)[0].item()
            1
        """
        return _stride().argpartition(self, kth, axis, kind, order)

    def searchsorted(self, v, side: str = "left", sorter=None) -> "Array":
        """The places in this sorted array at which values keep it sorted: `stride.searchsorted` of this array.

        Parameters
            v: the elements, of any shape.
            side: left for the first such place, right for the last.
            sorter: integers that bring this array in order, as `argsort` gives them.
        Returns
            An array of int64 of `v`'s shape.
        Raises
            ValueError for another side; ShapeMismatch for an this array of more axes.
        Example
            >>> st.array([1, 2, 3]).searchsorted(2).item()
            1
        """
        return _stride().searchsorted(self, v, side, sorter)

    def fill(self, value) -> None:
        """Writes one value into every element.

        Parameters
            value: a number, or an array without axes.
        Returns
            None.
        Raises
            OverflowError for an integer that the array's type does not hold.
        Example
            >>> x = st.zeros(2)
            >>> x.fill(3)
            >>> x.tolist()
            [3.0, 3.0]
        """
        from stride import _indexing

        self[...] = _indexing.element(value, self)  # type: ignore[index,arg-type]

    # --- numbers ---

    def clip(self, min=None, max=None, out=None, **options) -> "Array":  # noqa: A002
        """The numbers held between bounds: `stride.clip` of this array.

        Parameters
            min: the bounds, which broadcast with this array; None is no bound.
            max: the bounds, which broadcast with this array; None is no bound.
            out: array of the result's shape that takes it.
            options: `a_min`, `a_max`, `where`, `casting` and `dtype` as `stride.clip` has them.
        Returns
            An array of the type that numbers and bounds have together.
        Raises
            ValueError where a bound has two names.
        Example
            >>> st.arange(5).clip(1, 3).tolist()
            [1, 1, 2, 3, 3]
        """
        return _stride().clip(self, min, max, out, **options)

    def round(self, decimals: int = 0, out=None) -> "Array":
        """The numbers rounded to a decimal place: `stride.round` of this array.

        Parameters
            decimals: how many digits stay after the point; a negative number rounds before it.
            out: array of the result's shape that takes it.
        Returns
            An array of this array's type, float16 for bools.
        Raises
            TypeError for `decimals` that is no integer.
        Example
            >>> st.array([1.25]).round(1).tolist()
            [1.2]
        """
        return _stride().round(self, decimals, out)

    def conj(self) -> "Array":
        """The complex conjugates of the numbers; an array without complex numbers itself.

        Returns
            An array of the same shape and type.
        Example
            >>> st.array([1 + 2j]).conj().tolist()
            [(1-2j)]
        """
        return _stride().conj(self) if self.dtype.kind == "c" else self

    conjugate = conj

    def dot(self, b: Any, out=None) -> "Array":
        """The product with another array: `stride.dot` of this array.

        Parameters
            b: an array, or what becomes one.
            out: an array of the result's shape that takes it.
        Returns
            An array.
        Example
            >>> st.array([1, 2]).dot(st.array([3, 4])).item()
            11
        """
        return _stride().dot(self, b, out)

    # --- bytes, which are read ---

    def tobytes(self, order: Optional[str] = "C") -> bytes:
        r"""The elements' bytes, in C order unless another is asked for.

        Parameters
            order: C or F: in which order the elements are read; A or K: F where they lie so.
        Returns
            A bytes object of `nbytes` bytes.
        Raises
            The error of the operation that computes the array.
        Example
            >>> st.array([1, 2], st.uint8).tobytes()
            b'\x01\x02'
        """
        from stride import _casts

        if order in ("A", "K") and _casts.lies_in_fortran_order(self._node):  # type: ignore[attr-defined]
            order = "F"
        return self._read().tobytes(order)  # type: ignore[attr-defined]

    def tofile(self, fid, sep: str = "", format: str = "%s") -> None:  # noqa: A002
        """Writes the elements into a file, which `fromfile` reads.

        Parameters
            fid: a path or an open file.
            sep: text between elements; bytes are written where it is empty.
            format: how an element is written as text.
        Returns
            None.
        Raises
            OSError for a file that cannot be written.
        Example
            >>> import io, os, tempfile
            >>> path = os.path.join(tempfile.mkdtemp(), "x")
            >>> st.array([1, 2]).tofile(path, sep=",")
            >>> open(path).read()
            '1,2'
        """
        self._read().tofile(fid, sep, format)  # type: ignore[attr-defined]

    def dumps(self) -> bytes:
        """The elements as a pickle of a NumPy array.

        Returns
            A bytes object, which `pickle.loads` reads.
        Raises
            The error of the operation that computes the array.
        Example
            >>> import pickle
            >>> pickle.loads(st.array([1, 2]).dumps()).tolist()
            [1, 2]
        """
        return self.to_numpy().dumps()  # type: ignore[attr-defined]

    def dump(self, file) -> None:
        """Writes the elements into a file as a pickle of a NumPy array.

        Parameters
            file: a path or an open file.
        Returns
            None.
        Raises
            OSError for a file that cannot be written.
        Example
            >>> import io, pickle
            >>> file = io.BytesIO()
            >>> st.array([1, 2]).dump(file)
            >>> pickle.loads(file.getvalue()).tolist()
            [1, 2]
        """
        self.to_numpy().dump(file)  # type: ignore[attr-defined]

    def byteswap(self, inplace: bool = False) -> "Array":
        """Elements with their bytes in the opposite order, read and uploaded.

        Parameters
            inplace: whether this array takes the result.
        Returns
            An array of the same shape and type; this array with `inplace`.
        Raises
            The error of the operation that computes the array.
        Example
            >>> st.array([1], st.uint16).byteswap().tolist()
            [256]
        """
        host = self.to_numpy().byteswap()  # type: ignore[attr-defined]
        if not inplace:
            return _stride().asarray(host)
        self[...] = host  # type: ignore[index]
        return self  # type: ignore[return-value]

    def setflags(self, write: Optional[bool] = None, align: Optional[bool] = None, uic: Optional[bool] = None) -> None:
        """Makes the array one for reading, by `write=False`; its views to come are so as well.

        Parameters
            write: whether the elements may be written; None changes nothing.
            align: accepted where it is None or True.
            uic: accepted where it is None or False.
        Returns
            None.
        Raises
            ValueError for a flag that cannot be set so.
        Example
            >>> x = st.zeros(2)
            >>> x.setflags(write=False)
            >>> x.flags.writeable
            False
        """
        from stride import _views

        node = self._node  # type: ignore[attr-defined]
        if uic:
            raise ValueError("cannot set WRITEBACKIFCOPY flag to True")
        if write is None:
            return
        if not write:
            node.freeze()
        elif type(node.strides) is _views.FrozenStrides:
            raise ValueError("cannot set WRITEABLE flag to True of this array")


def _warn_of_complex(before: Any, after: Any) -> None:
    """NumPy's warning that a cast drops imaginary parts, which depends on the types alone."""
    import numpy

    if before.kind == "c" and numpy.dtype(after).kind in "iuf":
        warnings.warn(
            "Casting complex values to real discards the imaginary part", numpy.exceptions.ComplexWarning, stacklevel=3
        )
