"""Products of vectors, matrices and arrays of more axes."""

import functools
import math
import operator
from typing import Optional

import numpy as np

from stride import (
    _assembly, _core_axes, _dtypes, _errors, _graph, _indexing, _inference, _local, _manipulation, _reductions,
)
from stride import _ufunc_methods
from stride._array import Array, array_of, node_of, wrap
from stride._elementwise import conjugate, multiply
from stride._graph import Prepared, record
from stride._numbers import Number
from stride.v1 import operation_pb2 as pb

__all__ = [
    "cross",
    "dot",
    "inner",
    "kron",
    "matmul",
    "matvec",
    "outer",
    "tensordot",
    "vdot",
    "vecdot",
    "vecmat",
]


def matmul_nodes(left, right, dtype: Optional[np.dtype] = None) -> Array:
    """The product of nodes. `dtype`: the type of sums and result where it is not the common one."""
    for one in (left, right):
        if type(one) is Number or not one.shape:
            raise ValueError("matmul takes no scalars; use *")
    inner = right.shape[-2] if len(right.shape) > 1 else right.shape[0]
    if left.shape[-1] != inner:
        raise _errors.ShapeMismatch(
            f"matmul of {left.shape} and {right.shape}: {left.shape[-1]} columns meet {inner} rows",
            reason="SHAPE_MISMATCH",
        )
    shape = (
        _inference.broadcast(left.shape[:-2], right.shape[:-2])
        + left.shape[:-1][-1:]
        + (right.shape[-1:] if len(right.shape) > 1 else ())
    )
    product, host = _PRODUCT, _product
    if dtype is None:
        dtype = _inference.promote(left.dtype, right.dtype)
    else:
        product, host = _product_in(dtype), functools.partial(_product, dtype=dtype)
    if _graph.check_floats is not None:
        from stride import _float_errors

        _float_errors.of_product(left, right)
    return wrap(record(left.session, shape, dtype, product, (left, right), inner, host=host))


def _product(left: np.ndarray, right: np.ndarray, dtype: Optional[np.dtype] = None) -> Optional[np.ndarray]:
    columns = right.shape[-1] if right.ndim > 1 else 1
    return np.matmul(left, right, dtype=dtype) if left.size * columns <= _local.MAX_PRODUCTS else None


_PRODUCT = Prepared(pb.Operation(), "matmul", ("left", "right"))


@functools.lru_cache(maxsize=None)
def _product_in(dtype: np.dtype) -> Prepared:
    return Prepared(pb.Operation(matmul=pb.Matmul(data_type=_dtypes.NUMBERS[dtype])), "matmul", ("left", "right"))


# Sums in these types are formed without copies of the factors.
_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))
_SUMS_OF_BYTES = (np.dtype(np.int16), np.dtype(np.int32), np.dtype(np.uint32))


def _given(result: Array, out: Optional[Array], casting: str = "same_kind") -> Array:
    from stride import _arguments, _ufunc

    out = _arguments.one_out(out)
    if isinstance(out, np.ndarray):
        return _arguments.give(result, out, casting)
    return _ufunc._give(result, out, None, casting)


def _cast(arrays, dtype, casting: str) -> list:
    """The arrays in the requested type, by NumPy's casting rules."""
    if dtype is None:
        return list(arrays)
    dtype = _castable(arrays, dtype, casting)
    return [one.astype(dtype, copy=False) for one in arrays]


def _castable(arrays, dtype, casting: str) -> np.dtype:
    """The type, to which all of the arrays may be cast."""
    dtype = _dtypes.dtype_of(dtype)
    for one in arrays:
        if not np.can_cast(one.dtype, dtype, casting):  # type: ignore[arg-type]  # an unknown word is refused there
            raise _errors.DataTypeMismatch(
                f"{one.dtype} is not cast to {dtype} with casting {casting!r}", reason="DATA_TYPE_MISMATCH"
            )
    return dtype


def _together(x1, x2):
    session = next((x.session for x in (x1, x2) if isinstance(x, Array)), None)
    return array_of(x1, session), array_of(x2, session)


def matmul(
    x1,
    x2,
    /,
    out: Optional[Array] = None,
    *,
    casting: str = "same_kind",
    order: Optional[str] = "K",
    dtype=None,
    subok: bool = True,
    signature=None,
    axes=None,
    axis: Optional[int] = None,
    keepdims: bool = False,
) -> Array:
    """Products of matrices, and of stacks of them.

    Parameters
        x1: an array (..., m, k), or a vector (k,).
        x2: an array (..., k, n), or a vector (k,); the axes in front broadcast.
        out: an array of the result's shape that takes it.
        casting: which casts of the inputs are made: no, equiv, safe, same_kind or unsafe.
        order: C, F, A or K; the elements lie in C order.
        dtype: the type of the computation and the result; None for the common one. Integers are summed modulo
            2^bits of it: int8 factors are summed in int8, and in int32 with dtype=int32, for which a GPU has tensor
            cores.
        subok: accepted: arrays have no subclasses.
        signature: the types of the inputs and the result, as NumPy's, where they are one.
        axes: a list of the axes that each input and the result have for themselves, by default the last.
        axis, keepdims: refused with TypeError, as by NumPy.
    Returns
        An array (..., m, n), without the axes that vectors lack, or `out`.
    Raises
        ValueError for numbers, ShapeMismatch for other shapes.
    Example
        >>> st.matmul(st.ones((2, 3)), st.ones((3, 4))).shape
        (2, 4)
    """
    if (type(x1) in _local.classes or type(x2) in _local.classes) and out is dtype is signature is axes is axis is None:
        if (short := _local.product(np.matmul, x1, x2)) is not None:
            return short
    if axes is not None or axis is not None or keepdims or signature is not None or order != "K":
        dtype = _core_axes.check("matmul", order, dtype, signature, axis, keepdims)
        if axes is not None:
            x1, x2, placed = _core_axes.moved("matmul", *_together(x1, x2), axes)
            return _given(placed(matmul(x1, x2, casting=casting, dtype=dtype)), out, casting)
    wide = None
    if dtype is not None:
        x1, x2 = _together(x1, x2)
        dtype = _castable((x1, x2), dtype, casting)
        if x1.dtype in _BYTES and x2.dtype in _BYTES and dtype in _SUMS_OF_BYTES:
            wide = dtype
        else:
            x1, x2 = _cast((x1, x2), dtype, casting)
    session = next((x.session for x in (x1, x2) if isinstance(x, Array)), None)
    return _given(matmul_nodes(node_of(x1, session), node_of(x2, session), wide), out, casting)


def dot(a, b, out: Optional[Array] = None) -> Array:
    """NumPy's dot: over the last axis of `a` and the last but one of `b`; a product of elements where one has no
    axes.

    Parameters: `a` (..., k); `b` (k,) or (..., k, n); or a number; `out`, an array of the result's type and shape to
    be filled. Returns an array of the other axes of both, or `out`. Raises ShapeMismatch for other shapes.

    >>> int(stride.dot(stride.asarray([1, 2]), stride.asarray([3, 4])))
    11
    """
    if (type(a) in _local.classes or type(b) in _local.classes) and out is None:
        if (short := _local.product(np.dot, a, b)) is not None:
            return short
    x1, x2 = a, b
    session = next((x.session for x in (x1, x2) if isinstance(x, Array)), None)
    # A number is an array with a type here, as in NumPy.
    x1, x2 = array_of(x1, session), array_of(x2, session)
    if not x1.ndim or not x2.ndim:
        result = multiply(x1, x2)
    elif x2.ndim <= 2:
        result = matmul(x1, x2)
    else:
        result = tensordot(x1, x2, axes=((-1,), (-2,)))
    if out is not None and (out.shape, out.dtype) != (result.shape, result.dtype):
        raise _errors.ShapeMismatch(
            f"dot: out= is of {out.dtype} and shape {out.shape}, the result of {result.dtype} and {result.shape}",
            reason="SHAPE_MISMATCH",
        )
    return _given(result, out)


def inner(a, b, /) -> Array:
    """The sums of products over the last axes of both; a product of elements where one has no axes.

    Parameters: `a` (..., k) and `b` (..., k), or a number. Returns an array of the other axes of `a`, then of `b`.
    Raises ShapeMismatch for other extents.

    >>> stride.inner(stride.ones((2, 3)), stride.ones((4, 3))).shape
    (2, 4)
    """
    a, b = _together(a, b)
    return multiply(a, b) if not a.ndim or not b.ndim else tensordot(a, b, axes=((-1,), (-1,)))


def vdot(a, b, /) -> Array:
    """The sum of conj(a) * b over all elements.

    Parameters: `a` and `b`, arrays of as many elements. Returns an array without axes. Raises ShapeMismatch for other
    numbers of elements.

    >>> float(stride.vdot(stride.ones((2, 3)), stride.ones(6)))
    6.0
    """
    a, b = (_manipulation.reshape(one, (one.size,)) for one in _together(a, b))
    return matmul(conjugate(a) if a.dtype.kind == "c" else a, b)


def vecdot(
    x1,
    x2,
    /,
    out: Optional[Array] = None,
    *,
    casting: str = "same_kind",
    order: Optional[str] = "K",
    dtype=None,
    subok: bool = True,
    signature=None,
    axes=None,
    axis: int = -1,
    keepdims: bool = False,
) -> Array:
    """The sums of conj(x1) * x2 along an axis of both.

    Parameters
        x1: an array.
        x2: an array; the other axes broadcast.
        out: an array of the result's shape that takes it.
        casting: which casts of the inputs are made: no, equiv, safe, same_kind or unsafe.
        order: C, F, A or K; the elements lie in C order.
        dtype: the type of the computation; None for the common one.
        subok: accepted: arrays have no subclasses.
        signature: the types of the inputs and the result, as NumPy's, where they are one.
        axes: a list of the axes that each input and the result have for themselves, by default the last.
        axis: the axis.
        keepdims: whether the axis stays, with one element.
    Returns
        An array of the other axes, or `out`.
    Raises
        ShapeMismatch where the axis has other extents, ValueError for numbers.
    Example
        >>> float(st.vecdot(st.ones(3), st.ones(3)))
        3.0
    """
    if order != "K":
        _core_axes.check("vecdot", order, None, None, None, False)
    dtype = _core_axes.computing_type("vecdot", dtype, signature)
    if axes is not None:
        if axis != -1:
            raise TypeError("cannot specify both 'axis' and 'axes'")
        x1, x2, placed = _core_axes.moved("vecdot", *_together(x1, x2), axes)
        result = placed(vecdot(x1, x2, casting=casting, dtype=dtype))
        return _given(_core_axes.kept(result, -1) if keepdims else result, out, casting)
    if keepdims:
        return _given(_core_axes.kept(vecdot(x1, x2, axis=axis, casting=casting, dtype=dtype), axis), out, casting)
    x1, x2 = _cast(_together(x1, x2), dtype, casting)
    if not x1.ndim or not x2.ndim:
        raise ValueError("vecdot takes no scalars")
    if axis >= 0 or -axis > min(x1.ndim, x2.ndim):
        # The standard counts from the end, so that the axis is the same of both after broadcasting.
        axis = _inference.normal_axis(axis, max(x1.ndim, x2.ndim)) - max(x1.ndim, x2.ndim)
    if x1.shape[axis] != x2.shape[axis]:
        raise _errors.ShapeMismatch(
            f"vecdot of {x1.shape[axis]} and {x2.shape[axis]} elements", reason="SHAPE_MISMATCH"
        )
    x1, x2 = (_manipulation.moveaxis(x, axis, -1) for x in (x1, x2))
    if x1.dtype.kind in "fc" and max(x1.ndim, x2.ndim) > 1:
        # One kernel that reads both once; a product of many matrices of one row takes longer on a GPU.
        return _given(_reductions.sum(multiply(_conjugate(x1), x2), axis=-1), out, casting)
    row, column = _manipulation.expand_dims(_conjugate(x1), axis=-2), _manipulation.expand_dims(x2, axis=-1)
    return _given(_manipulation.squeeze(matmul(row, column), axis=(-2, -1)), out, casting)


def _conjugate(x: Array) -> Array:
    return conjugate(x) if x.dtype.kind == "c" else x


def _vector_and_matrix(name: str, vector: Array, matrix: Array, axis: int) -> None:
    if not vector.ndim or matrix.ndim < 2:
        raise ValueError(f"{name} takes vectors and matrices, not arrays of {vector.ndim} and {matrix.ndim} axes")
    if vector.shape[-1] != matrix.shape[axis]:
        raise _errors.ShapeMismatch(
            f"{name}: vectors of {vector.shape[-1]} elements do not fit matrices {matrix.shape[-2:]}",
            reason="SHAPE_MISMATCH",
        )


def matvec(
    x1,
    x2,
    /,
    out: Optional[Array] = None,
    *,
    casting: str = "same_kind",
    order: Optional[str] = "K",
    dtype=None,
    subok: bool = True,
    signature=None,
    axes=None,
    axis: Optional[int] = None,
    keepdims: bool = False,
) -> Array:
    """Products of matrices and vectors.

    Parameters
        x1: an array (..., m, n).
        x2: an array (..., n); the axes in front broadcast.
        out: an array of the result's shape that takes it.
        casting: which casts of the inputs are made: no, equiv, safe, same_kind or unsafe.
        order: C, F, A or K; the elements lie in C order.
        dtype: the type of the computation; None for the common one.
        subok: accepted: arrays have no subclasses.
        signature: the types of the inputs and the result, as NumPy's, where they are one.
        axes: a list of the axes that each input and the result have for themselves, by default the last.
        axis, keepdims: refused with TypeError, as by NumPy.
    Returns
        An array (..., m), or `out`.
    Raises
        ShapeMismatch for other shapes, ValueError for too few axes.
    Example
        >>> st.matvec(st.ones((2, 3)), st.ones(3)).tolist()
        [3.0, 3.0]
    """
    if axes is not None or axis is not None or keepdims or signature is not None or order != "K":
        dtype = _core_axes.check("matvec", order, dtype, signature, axis, keepdims)
        if axes is not None:
            x1, x2, placed = _core_axes.moved("matvec", *_together(x1, x2), axes)
            return _given(placed(matvec(x1, x2, casting=casting, dtype=dtype)), out, casting)
    x1, x2 = _cast(_together(x1, x2), dtype, casting)
    _vector_and_matrix("matvec", x2, x1, -1)
    return _given(_manipulation.squeeze(matmul(x1, _manipulation.expand_dims(x2, axis=-1)), axis=-1), out, casting)


def vecmat(
    x1,
    x2,
    /,
    out: Optional[Array] = None,
    *,
    casting: str = "same_kind",
    order: Optional[str] = "K",
    dtype=None,
    subok: bool = True,
    signature=None,
    axes=None,
    axis: Optional[int] = None,
    keepdims: bool = False,
) -> Array:
    """Products of conjugated vectors and matrices.

    Parameters
        x1: an array (..., n).
        x2: an array (..., n, m); the axes in front broadcast.
        out: an array of the result's shape that takes it.
        casting: which casts of the inputs are made: no, equiv, safe, same_kind or unsafe.
        order: C, F, A or K; the elements lie in C order.
        dtype: the type of the computation; None for the common one.
        subok: accepted: arrays have no subclasses.
        signature: the types of the inputs and the result, as NumPy's, where they are one.
        axes: a list of the axes that each input and the result have for themselves, by default the last.
        axis, keepdims: refused with TypeError, as by NumPy.
    Returns
        An array (..., m), or `out`.
    Raises
        ShapeMismatch for other shapes, ValueError for too few axes.
    Example
        >>> st.vecmat(st.ones(3), st.ones((3, 2))).tolist()
        [3.0, 3.0]
    """
    if axes is not None or axis is not None or keepdims or signature is not None or order != "K":
        dtype = _core_axes.check("vecmat", order, dtype, signature, axis, keepdims)
        if axes is not None:
            x1, x2, placed = _core_axes.moved("vecmat", *_together(x1, x2), axes)
            return _given(placed(vecmat(x1, x2, casting=casting, dtype=dtype)), out, casting)
    x1, x2 = _cast(_together(x1, x2), dtype, casting)
    _vector_and_matrix("vecmat", x1, x2, -2)
    return _given(
        _manipulation.squeeze(matmul(_manipulation.expand_dims(_conjugate(x1), axis=-2), x2), axis=-2), out, casting
    )


def tensordot(a, b, axes=2) -> Array:
    """The sums of products over axes of both.

    Parameters: `a` and `b`, arrays; `axes`, how many of the last of `a` and the first of `b`, or a pair of axes or
    sequences of axes of equal extents. Returns an array of the other axes of `a`, then of `b`. Raises ShapeMismatch
    for other extents, ValueError where the axes are not as many of both.

    >>> stride.tensordot(stride.ones((2, 3, 4)), stride.ones((3, 4, 5))).shape
    (2, 5)
    """
    x1, x2 = _together(a, b)
    if hasattr(axes, "__index__") and not np.ndim(axes):
        axes = operator.index(axes)
        if axes < 0 or axes > min(x1.ndim, x2.ndim):
            raise ValueError(f"{axes} axes cannot be contracted")
        first, second = tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes))
    else:
        first, second = (
            _inference.normal_axes(tuple(one) if np.ndim(one) else operator.index(one), x.ndim)
            for one, x in zip(axes, (x1, x2))
        )
    if len(first) != len(second):
        raise ValueError(f"as many axes of both are contracted: {axes}")
    if [x1.shape[i] for i in first] != [x2.shape[i] for i in second]:
        raise _errors.ShapeMismatch(f"tensordot of {x1.shape} and {x2.shape} over {axes}", reason="SHAPE_MISMATCH")
    kept1 = [i for i in range(x1.ndim) if i not in first]
    kept2 = [i for i in range(x2.ndim) if i not in second]
    inner = math.prod(x1.shape[i] for i in first)
    shape = tuple(x1.shape[i] for i in kept1) + tuple(x2.shape[i] for i in kept2)
    left = _manipulation.reshape(
        _manipulation.permute_dims(x1, (*kept1, *first)), (math.prod(x1.shape[i] for i in kept1), inner)
    )
    right = _manipulation.reshape(
        _manipulation.permute_dims(x2, (*second, *kept2)), (inner, math.prod(x2.shape[i] for i in kept2))
    )
    return _manipulation.reshape(matmul(left, right), shape)


def outer(a, b, out=None) -> Array:
    """The products of all elements of one array with all of another.

    Parameters
        a, b: arrays, taken in C order.
        out: array of the result's shape that takes it.
    Returns
        An array of two axes.
    Example
        >>> st.outer(st.array([1, 2]), st.array([3, 4])).tolist()
        [[3, 4], [6, 8]]
    """
    from stride import _arguments

    left, right = _together(a, b)
    return _arguments.give(multiply(_manipulation.reshape(left, (left.size, 1)), _manipulation.ravel(right)), out)


def kron(a, b) -> Array:
    """The Kronecker product: an array of copies of `b`, each times an element of `a`.

    Parameters
        a, b: arrays.
    Returns
        An array whose extents are the products of both's.
    Example
        >>> st.kron(st.array([1, 10]), st.array([1, 2])).tolist()
        [1, 2, 10, 20]
    """
    left, right = _together(a, b)
    rank = max(left.ndim, right.ndim)
    shapes = [(1,) * (rank - one.ndim) + one.shape for one in (left, right)]
    left = _manipulation.reshape(left, tuple(n for extent in shapes[0] for n in (extent, 1)))
    right = _manipulation.reshape(right, tuple(n for extent in shapes[1] for n in (1, extent)))
    return _manipulation.reshape(multiply(left, right), tuple(n * m for n, m in zip(*shapes)))


def cross(a, b, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis=None) -> Array:
    """The cross products of vectors of three elements, or of two, which have 0 as their third.

    Parameters
        a, b: arrays.
        axisa, axisb, axisc: where the vectors are in `a`, in `b` and in the result.
        axis: in all three.
    Returns
        An array; of two vectors of two elements without the axis.
    Raises
        ValueError for vectors of another length; AxisError for an axis that is not there.
    Example
        >>> st.cross(st.array([1, 0, 0]), st.array([0, 1, 0])).tolist()
        [0, 0, 1]
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    left, right = _together(a, b)
    if not left.ndim or not right.ndim:
        raise ValueError("At least one array has zero dimension")
    left, right = _with_vectors_last(left, axisa), _with_vectors_last(right, axisb)
    if left.shape[-1] not in (2, 3) or right.shape[-1] not in (2, 3):
        raise ValueError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    a0, a1, *a2 = [_indexing.view(left, Ellipsis, i) for i in range(left.shape[-1])]
    b0, b1, *b2 = [_indexing.view(right, Ellipsis, i) for i in range(right.shape[-1])]
    last = a0 * b1 - a1 * b0
    if not a2 and not b2:
        return last
    if a2 and b2:
        parts = [a1 * b2[0] - a2[0] * b1, a2[0] * b0 - a0 * b2[0], last]
    elif a2:
        parts = [-(a2[0] * b1), a2[0] * b0, last]
    else:
        parts = [a1 * b2[0], -(a0 * b2[0]), last]
    result = _assembly.stack(parts, axis=-1)
    return result if axisc == -1 else _manipulation.moveaxis(result, -1, axisc)


def _with_vectors_last(x: Array, axis: int) -> Array:
    return x if type(axis) is int and axis in (-1, x.ndim - 1) else _manipulation.moveaxis(x, axis, -1)


for _name in ("matmul", "matvec", "vecdot", "vecmat"):
    if isinstance(getattr(np, _name, None), np.ufunc):  # an older NumPy lacks some
        _ufunc_methods.add_attributes(globals()[_name], getattr(np, _name))
