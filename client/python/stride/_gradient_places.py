"""Backward rules of views, and of elements read and written at indices."""

import math
from typing import List

import numpy as np

from stride import _casts, _creation, _dtypes, _manipulation as mp, _ordering, _routines, _tape
from stride._array import Array
from stride._gradient_call import _Call, _WithOld, _no_rule
from stride.v1 import operation_pb2 as pb

# --- views ---


def _view(call: _Call):
    x, steps = call.operand(call.message.input, "input"), list(call.message.steps)
    from stride._trace import shape_of_view

    shapes = [x.shape]
    for one in steps:
        shapes.append(shape_of_view(shapes[-1], [one]))

    def pull(g):
        for step, shape in zip(reversed(steps), reversed(shapes[:-1])):
            kind = step.WhichOneof("kind")
            if kind == "slice":
                g = _tape.put(_creation.zeros(shape, dtype=g.dtype), g, [step])
            elif kind == "transpose":
                axes = list(step.transpose.axes) or list(range(len(shape) - 1, -1, -1))
                g = mp.permute_dims(g, tuple(int(i) for i in np.argsort([axis % len(shape) for axis in axes])))
            elif kind == "reshape":
                g = mp.reshape(g, shape)
            else:
                g = _tape.fitted(g, _Shape(shape, g.dtype))  # type: ignore[arg-type]
        return {call.place("input"): g}

    return pull


class _Shape:
    def __init__(self, shape, dtype):
        self.shape, self.dtype, self.ndim, self.size = shape, dtype, len(shape), math.prod(shape)


# --- places ---


def _indices(call: _Call) -> List[Array]:
    return [call.operand(one, "indices", i) for i, one in enumerate(call.message.indices)]


def _mode(message) -> str:
    return {pb.INDEX_MODE_WRAP: "wrap", pb.INDEX_MODE_CLIP: "clip"}.get(message.mode, "raise")


def _all_axes(index: Array, axis: int, shape) -> List[Array]:
    """An index for each axis, of take_along_axis's along one."""
    found = []
    for i, n in enumerate(index.shape):
        if i == axis:
            found.append(index)
        else:
            found.append(mp.reshape(_creation.arange(n), (*(1,) * i, n, *(1,) * (index.ndim - i - 1))))
    return found


def _added_at(shape, dtype, indices, axis: int, mode: int, values: Array) -> Array:
    """Zeros with values added at places."""
    from stride._graph import defer
    from stride._array import wrap
    nodes = [one._node for one in indices]
    session = values._node.session

    def build(flush, result, operands):
        fill = pb.Creation.Fill()
        fill.spec.data_type = _dtypes.NUMBERS[dtype]
        fill.spec.shape.extend(shape)
        flush.operation(result.handle, result.origin, creation=pb.Creation(fill=fill))
        if flush.session._is_trace:
            flush.session.specs[result.handle] = tuple(shape), dtype
        message = pb.ApplyAt(function="add", values=operands[0], indices=operands[1:], axis=axis, mode=mode)
        new = pb.Operation(apply_at=message)
        new.outputs.add(handle=result.handle, existing=True)
        flush.add(new, result.origin)

    return wrap(defer(session, tuple(shape), dtype, build, (values._node, *nodes)))


def _gathered(x: Array, indices, message) -> Array:
    return _routines.gather(x, indices, message.axis, mode=_mode(message))


def _gather(call: _Call):
    message, x, indices = call.message, call.operand(call.message.input, "input"), _indices(call)
    axis = message.axis % max(1, x.ndim)

    def pull(g):
        if message.along_axis:
            places = _all_axes(indices[0], axis, x.shape)
            return {call.place("input"): _added_at(x.shape, g.dtype, places, 0, message.mode, g)}
        return {call.place("input"): _added_at(x.shape, g.dtype, indices, axis, message.mode, g)}

    return pull


def _scatter(call: _Call):
    message, indices = call.message, _indices(call)
    values, old = call.operand(call.message.values, "values"), call.old
    axis = message.axis % max(1, old.ndim)
    places, first = (_all_axes(indices[0], axis, old.shape), 0) if message.along_axis else (indices, axis)

    def pull(g):
        found = {}
        if isinstance(values, Array) and call.place("values") is not None:
            found[call.place("values")] = _routines.gather(g, places, first, mode=_mode(message))
        kept = _casts.copy(g)
        _routines.scatter(kept, places, _creation.zeros((), dtype=g.dtype), first, mode=_mode(message))
        return _WithOld((found, kept))

    return pull


def _apply_at(call: _Call):
    message, indices = call.message, _indices(call)
    if message.function not in ("add", "subtract"):
        if any(call.tracked):
            raise _no_rule(f"{message.function} at places")
        raise _no_rule(f"{message.function} at places")
    axis = message.axis % max(1, call.old.ndim)

    def pull(g):
        found = {}
        if call.place("values") is not None:
            values = _routines.gather(g, indices, axis, mode=_mode(message))
            found[call.place("values")] = values if message.function == "add" else -values
        return _WithOld((found, g))

    return pull


def _sort(call: _Call):
    message, x = call.message, call.operand(call.message.input, "input")
    call.only(("input",))
    axis = (message.axis if message.HasField("axis") else -1) % max(1, x.ndim)
    order = _ordering._sort(x, axis, message.descending, True, "argsort")

    def pull(g):
        return {call.place("input"): _added_at(x.shape, g.dtype, _all_axes(order, axis, x.shape), 0, 0, g)}

    return pull


def _compress(call: _Call):
    message, x = call.message, call.operand(call.message.input, "input")
    mask = call.operand(message.mask, "mask")
    axis = message.axis % max(1, x.ndim)

    def pull(g):
        whole = _creation.zeros(x.shape, dtype=g.dtype)
        whole[(slice(None),) * axis + (mask,)] = g
        return {call.place("input"): whole}

    return pull
