"""Matrix products."""

import math
from typing import Optional

from stride import _errors, _inference, _manipulation
from stride._array import _SCALARS, Array, array_of, node_of, wrap
from stride._elementwise import conjugate, multiply
from stride._graph import Node, Number, record
from stride.v1 import operation_pb2 as pb

__all__ = ["dot", "matmul", "tensordot", "vecdot"]


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


def matmul(x1, x2, /) -> Array:
    """NumPy's matmul: vectors, matrices and stacks of them."""
    session = next((x.session for x in (x1, x2) if isinstance(x, Array)), None)
    return matmul_nodes(node_of(x1, session), node_of(x2, session))


def dot(x1, x2, /, out: Optional[Array] = None) -> Array:
    """NumPy's dot: over the last axis of `x1` and the last but one of `x2`; elementwise if an operand has no axes."""
    from stride import _ufunc

    session = next((x.session for x in (x1, x2) if isinstance(x, Array)), None)
    if any(isinstance(x, _SCALARS) for x in (x1, x2)):
        result = multiply(x1, x2)
    else:
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
    return _ufunc._give(result, out, None, "same_kind")


def vecdot(x1, x2, /, *, axis: int = -1) -> Array:
    """The sum of conj(x1) * x2 along an axis of both."""
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


def tensordot(x1, x2, /, *, axes=2) -> Array:
    x1, x2 = _together(x1, x2)
    if isinstance(axes, int):
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
