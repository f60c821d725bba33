"""Matrix products."""

import math

from stride import _dtypes, _errors, _inference, _manipulation
from stride._array import _SCALARS, Array, array_of, node_of, wrap
from stride._elementwise import conjugate, multiply
from stride._graph import Node, Number, record
from stride.v1 import operation_pb2 as pb

__all__ = ["cross", "dot", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "vdot", "vecdot", "vecmat"]


def matmul_nodes(left, right) -> Array:
    for one in (left, right):
        if type(one) is Number or not one.shape:
            raise ValueError("matmul takes no scalars; use *")
    inner = right.shape[-2] if len(right.shape) > 1 else right.shape[0]
    if left.shape[-1] != inner:
        raise _errors.ShapeMismatch(f"matmul of {left.shape} and {right.shape}: {left.shape[-1]} columns meet {inner} rows",
                                    reason="SHAPE_MISMATCH")
    shape = _inference.broadcast(left.shape[:-2], right.shape[:-2]) + left.shape[:-1][-1:] + (right.shape[-1:] if len(right.shape) > 1 else ())
    dtype = _inference.promote(left.dtype, right.dtype)

    def build(flush, node, operands):
        matmul = flush.begin(node.handle, node.origin).matmul
        matmul.left.CopyFrom(operands[0])
        matmul.right.CopyFrom(operands[1])

    return wrap(record(left.session, shape, dtype, build, (left, right), inner))


def matmul(x1, x2, /, out=None, *, casting: str = "same_kind", dtype=None, axes=None, axis=None, keepdims=None) -> Array:
    """The matrix product, with vectors as rows on the left and columns on the right, and stacks that broadcast.

    Parameters
        x1, x2: arrays of one axis or more.
        out: array of the result's shape that takes it.
        casting, dtype: in which type it is computed, and which casts to it are made.
        axes, axis, keepdims: must be None; move the axes first.
    Returns
        An array of the type that both have together.
    Raises
        ShapeMismatch where columns and rows do not fit; ValueError for an array without axes.
    Example
        >>> st.matmul(st.array([[1, 2], [3, 4]]), st.array([1, 1])).tolist()
        [3, 7]
    """
    session = next((x.session for x in (x1, x2) if isinstance(x, Array)), None)
    if out is None and dtype is None and axes is None and axis is None and keepdims is None:
        return matmul_nodes(node_of(x1, session), node_of(x2, session))
    from stride import _arguments, _functions

    left, right = _cast(x1, x2, dtype, casting)
    placed = {name: one for name, one in (("axes", axes), ("axis", axis), ("keepdims", keepdims)) if one is not None}
    result = _functions.BUILT_IN_GUFUNCS["matmul"](left, right, **placed) if placed else matmul(left, right)
    return _arguments.give(result, out, casting)


def _cast(x1, x2, dtype, casting: str):
    left, right = _together(x1, x2)
    if dtype is None:
        return left, right
    return tuple(_manipulation._cast(one, _dtypes.dtype_of(dtype), casting) for one in (left, right))


def _product(name: str, x1, x2, out, casting: str, dtype, function) -> Array:
    from stride import _arguments

    left, right = _cast(x1, x2, dtype, casting)
    return _arguments.give(function(left, right), out, casting)


def matvec(x1, x2, /, out=None, *, casting: str = "same_kind", dtype=None) -> Array:
    """The products of matrices and vectors, both in stacks that broadcast.

    Parameters
        x1: matrices in the last two axes.
        x2: vectors in the last axis.
        out, casting, dtype: as of `matmul`.
    Returns
        An array of vectors.
    Raises
        ShapeMismatch where they do not fit.
    Example
        >>> st.matvec(st.array([[1, 2], [3, 4]]), st.array([[1, 1], [0, 1]])).tolist()
        [[3, 7], [2, 4]]
    """

    def function(left: Array, right: Array) -> Array:
        if left.ndim < 2 or not right.ndim:
            raise ValueError("matvec takes matrices and vectors")
        return _manipulation.squeeze(matmul(left, _manipulation.expand_dims(right, -1)), -1)

    return _product("matvec", x1, x2, out, casting, dtype, function)


def vecmat(x1, x2, /, out=None, *, casting: str = "same_kind", dtype=None) -> Array:
    """The products of conjugated vectors and matrices, both in stacks that broadcast.

    Parameters
        x1: vectors in the last axis.
        x2: matrices in the last two axes.
        out, casting, dtype: as of `matmul`.
    Returns
        An array of vectors.
    Raises
        ShapeMismatch where they do not fit.
    Example
        >>> st.vecmat(st.array([1, 1]), st.array([[1, 2], [3, 4]])).tolist()
        [4, 6]
    """

    def function(left: Array, right: Array) -> Array:
        if right.ndim < 2 or not left.ndim:
            raise ValueError("vecmat takes vectors and matrices")
        left = conjugate(left) if left.dtype.kind == "c" else left
        return _manipulation.squeeze(matmul(_manipulation.expand_dims(left, -2), right), -2)

    return _product("vecmat", x1, x2, out, casting, dtype, function)


def inner(a, b, /) -> Array:
    """The sums of products over the last axis of both.

    Parameters
        a, b: arrays whose last axes are of one extent, or numbers.
    Returns
        An array with the other axes of both.
    Raises
        ShapeMismatch for extents that differ.
    Example
        >>> int(st.inner(st.array([1, 2]), st.array([3, 4])))
        11
    """
    left, right = _together(a, b)
    if not left.ndim or not right.ndim:
        return multiply(left, right)
    return tensordot(left, right, axes=((-1,), (-1,)))


def vdot(a, b, /) -> Array:
    """The sum of the products of all elements of one array, conjugated, and another's.

    Parameters
        a, b: arrays of one size, taken in C order.
    Returns
        An array without axes.
    Raises
        ShapeMismatch for sizes that differ.
    Example
        >>> complex(st.vdot(st.array([1j]), st.array([1j])))
        (1+0j)
    """
    left, right = (_manipulation.ravel(one) for one in _together(a, b))
    return matmul(conjugate(left) if left.dtype.kind == "c" else left, right)


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
    left, right = _manipulation.moveaxis(left, axisa, -1), _manipulation.moveaxis(right, axisb, -1)
    if left.shape[-1] not in (2, 3) or right.shape[-1] not in (2, 3):
        raise ValueError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    a0, a1, *a2 = (left[..., i] for i in range(left.shape[-1]))
    b0, b1, *b2 = (right[..., i] for i in range(right.shape[-1]))
    last = a0 * b1 - a1 * b0
    if not a2 and not b2:
        return last
    if a2 and b2:
        parts = [a1 * b2[0] - a2[0] * b1, a2[0] * b0 - a0 * b2[0], last]
    elif a2:
        parts = [-(a2[0] * b1), a2[0] * b0, last]
    else:
        parts = [a1 * b2[0], -(a0 * b2[0]), last]
    return _manipulation.moveaxis(_manipulation.stack(parts, axis=-1), -1, axisc)


def dot(a, b, out=None) -> Array:
    """The sums of products over the last axis of one array and the last but one of another.

    Parameters
        a, b: arrays or numbers, for which it is a product of elements.
        out: array of the result's shape and type that takes it.
    Returns
        An array of the type that both have together.
    Raises
        ShapeMismatch where they do not fit; ValueError for an `out` of another shape or type.
    Example
        >>> int(st.dot(st.array([1, 2]), st.array([3, 4])))
        11
    """
    from stride import _arguments

    if any(isinstance(x, _SCALARS) for x in (a, b)):
        result = multiply(a, b)
    else:
        x1, x2 = _together(a, b)
        if not x1.ndim or not x2.ndim:
            result = multiply(x1, x2)
        elif x2.ndim <= 2:
            result = matmul(x1, x2)
        else:
            result = tensordot(x1, x2, axes=((-1,), (-2,)))
    out = _arguments.one_out(out)
    if out is not None and (out.shape, out.dtype) != (result.shape, result.dtype):
        raise _errors.ShapeMismatch(
            f"dot: out= is of {out.dtype} and shape {out.shape}, the result of {result.dtype} and {result.shape}",
            reason="SHAPE_MISMATCH",
        )
    return _arguments.give(result, out)


def vecdot(x1, x2, /, out=None, *, axis: int = -1, casting: str = "same_kind", dtype=None) -> Array:
    """The sum of conj(x1) * x2 along an axis of both.

    Parameters
        x1, x2: arrays that broadcast.
        out, casting, dtype: as of `matmul`.
        axis: the axis.
    Returns
        An array without the axis.
    Raises
        ShapeMismatch for extents that differ; ValueError for an array without axes.
    Example
        >>> int(st.vecdot(st.array([1, 2]), st.array([3, 4])))
        11
    """
    if out is not None or dtype is not None:
        return _product("vecdot", x1, x2, out, casting, dtype, lambda left, right: vecdot(left, right, axis=axis))
    x1, x2 = _together(x1, x2)
    if not x1.ndim or not x2.ndim:
        raise ValueError("vecdot takes no scalars")
    if axis >= 0 or -axis > min(x1.ndim, x2.ndim):
        # The standard counts from the end, so that the axis is the same of both after broadcasting.
        axis = _inference.normal_axis(axis, max(x1.ndim, x2.ndim)) - max(x1.ndim, x2.ndim)
    if x1.shape[axis] != x2.shape[axis]:
        raise _errors.ShapeMismatch(f"vecdot of {x1.shape[axis]} and {x2.shape[axis]} elements", reason="SHAPE_MISMATCH")
    x1, x2 = (_manipulation.moveaxis(x, axis, -1) for x in (x1, x2))
    if x1.dtype.kind == "c":
        x1 = conjugate(x1)
    row, column = _manipulation.expand_dims(x1, axis=-2), _manipulation.expand_dims(x2, axis=-1)
    return _manipulation.squeeze(matmul(row, column), axis=(-2, -1))


def _together(x1, x2):
    session = next((x.session for x in (x1, x2) if isinstance(x, Array)), None)
    return array_of(x1, session), array_of(x2, session)


def tensordot(a, b, axes=2) -> Array:
    """The sums of products over axes of both arrays.

    Parameters
        a, b: arrays.
        axes: how many of the last of `a` and the first of `b`, or the axes of `a` and those of `b`.
    Returns
        An array with the other axes of both.
    Raises
        ShapeMismatch for extents that differ; ValueError for axes of different numbers.
    Example
        >>> float(st.tensordot(st.ones((2, 3)), st.ones((2, 3)), 2))
        6.0
    """
    x1, x2 = _together(a, b)
    if hasattr(axes, "__index__") and not isinstance(axes, (list, tuple)):
        axes = int(axes)
        first, second = tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes))
        if axes < 0 or axes > min(x1.ndim, x2.ndim):
            raise ValueError(f"{axes} axes cannot be contracted")
    else:
        first, second = (_inference.normal_axes(tuple(one) if not isinstance(one, int) else one, x.ndim) for one, x in zip(axes, (x1, x2)))
    if len(first) != len(second):
        raise ValueError(f"as many axes of both are contracted: {axes}")
    if [x1.shape[i] for i in first] != [x2.shape[i] for i in second]:
        raise _errors.ShapeMismatch(f"tensordot of {x1.shape} and {x2.shape} over {axes}", reason="SHAPE_MISMATCH")
    kept1 = [i for i in range(x1.ndim) if i not in first]
    kept2 = [i for i in range(x2.ndim) if i not in second]
    inner = math.prod(x1.shape[i] for i in first)
    shape = tuple(x1.shape[i] for i in kept1) + tuple(x2.shape[i] for i in kept2)
    left = _manipulation.reshape(_manipulation.permute_dims(x1, (*kept1, *first)), (math.prod(x1.shape[i] for i in kept1), inner))
    right = _manipulation.reshape(_manipulation.permute_dims(x2, (*second, *kept2)), (inner, math.prod(x2.shape[i] for i in kept2)))
    return _manipulation.reshape(matmul(left, right), shape)
