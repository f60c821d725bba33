"""Matrix products."""

import math

from stride import _errors, _inference, _manipulation
from stride._array import Array, node_of, wrap
from stride._elementwise import conjugate
from stride._graph import Node, Number, record
from stride.v1 import operation_pb2 as pb

__all__ = ["matmul", "tensordot", "vecdot"]


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


def vecdot(x1, x2, /, *, axis: int = -1) -> Array:
    """The sum of conj(x1) * x2 along an axis of both."""
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


def tensordot(x1, x2, /, *, axes=2) -> Array:
    if isinstance(axes, int):
        first, second = tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes))
        if axes < 0 or axes > min(x1.ndim, x2.ndim):
            raise ValueError(f"{axes} axes cannot be contracted")
    else:
        first, second = (_inference.normal_axes(tuple(one) if not isinstance(one, int) else one, x.ndim) for one, x in zip(axes, (x1, x2)))
    if [x1.shape[i] for i in first] != [x2.shape[i] for i in second]:
        raise _errors.ShapeMismatch(f"tensordot of {x1.shape} and {x2.shape} over {axes}", reason="SHAPE_MISMATCH")
    kept1 = [i for i in range(x1.ndim) if i not in first]
    kept2 = [i for i in range(x2.ndim) if i not in second]
    inner = math.prod(x1.shape[i] for i in first)
    shape = tuple(x1.shape[i] for i in kept1) + tuple(x2.shape[i] for i in kept2)
    left = _manipulation.reshape(_manipulation.permute_dims(x1, (*kept1, *first)), (math.prod(x1.shape[i] for i in kept1), inner))
    right = _manipulation.reshape(_manipulation.permute_dims(x2, (*second, *kept2)), (inner, math.prod(x2.shape[i] for i in kept2)))
    return _manipulation.reshape(matmul(left, right), shape)
