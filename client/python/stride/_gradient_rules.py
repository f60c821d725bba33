"""How each operation of the service is read backwards: a rule takes the cotangents of its results and gives those of
its inputs. Rules are written in Stride's own functions, so that a rule can itself be differentiated.

Cotangents of complex arrays are those of JAX: of a function with derivative f' the rule multiplies by f', without
conjugation."""

import math
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np

from stride import (
    _assembly, _conversion, _creation, _elementwise as el, _inference, _linear_algebra, _manipulation as mp, _triangles,
)
from stride import _deviations, _gradient_decompositions as rules, _reductions, _tape
from stride._array import Array
from stride._gradient_call import _Call, _WithOld, _no_rule
from stride._gradient_places import (  # rules, which `entry` finds by their names
    _added_at, _all_axes, _apply_at, _compress, _gather, _scatter, _sort, _view,  # noqa: F401
)
from stride._gradient_ufuncs import CONSTANT, UFUNCS, _share
from stride.v1 import operation_pb2 as pb

Cotangent = Optional[Array]


def entry(tape, operation: pb.Operation, kind: str, operands, old, results) -> "_tape.Entry":
    """The tape's entry of an operation that was carried out."""
    rule = globals().get(f"_{kind}")
    if rule is None:
        raise _no_rule(f"kernel {operation.kernel_launch.entry}" if kind == "kernel_launch" else kind)
    by_path = {path: i for i, (path, _) in enumerate(operands)}
    inputs = [value for _, value in operands]
    arrays = [value.array for value in inputs]
    written = [one for one in old if one is not None]
    call = _Call(operation, getattr(operation, kind), by_path, arrays, [one.is_tracked for one in inputs],
                 [one.array for one in results], old[0].array if written else None, tape.bodies)
    pull = rule(call)

    def both(cotangents):
        found = pull(cotangents[0] if len(cotangents) == 1 else cotangents)
        given, before = found if type(found) is _WithOld else (found, None)
        listed = [given.get(i) for i in range(len(inputs))]
        return [*listed, *([before] if written else [])]

    return _tape.Entry((*inputs, *written), tuple(results), both)


def _by_ufunc(name: str, g: Array, y: Array, inputs: Sequence[Any]) -> Sequence[Cotangent]:
    if name in CONSTANT:
        return [None] * len(inputs)
    rule = UFUNCS.get(name)
    if rule is None:
        raise _no_rule(name)
    return rule(g, y, *inputs)


def _ufunc(call: _Call):
    message = call.message
    inputs = [call.operand(one, "inputs", i) for i, one in enumerate(message.inputs)]
    mask = call.operand(message.where, "where") if message.HasField("where") else None
    if len(call.results) > 1:
        raise _no_rule(f"{message.function} with {len(call.results)} results")
    name, y = message.function, call.results[0]
    if name not in CONSTANT and name not in UFUNCS:
        raise _no_rule(name)

    def pull(g):
        new = g if mask is None else el.where(mask, g, 0)
        listed = _by_ufunc(name, new, y, inputs)
        found = {call.place("inputs", i): one for i, one in enumerate(listed)}
        return _WithOld((found, _creation.zeros_like(g) if mask is None else el.where(mask, 0, g)))

    return pull


def _copy(call: _Call):
    def pull(g):
        return _WithOld(({call.place("input"): g}, _creation.zeros_like(g)))

    return pull


def _outer(call: _Call):
    left, right = call.operand(call.message.left, "left"), call.operand(call.message.right, "right")
    num_axes, y = getattr(right, "ndim", 0), call.results[0]
    column = mp.reshape(left, (*left.shape, *(1,) * num_axes)) if isinstance(left, Array) else left

    def pull(g):
        first, second = _by_ufunc(call.message.function, g, y, [column, right])
        found = {}
        if isinstance(left, Array) and first is not None:
            found[call.place("left")] = mp.reshape(_tape.fitted(first, column), left.shape)
        if second is not None:
            found[call.place("right")] = second
        return found

    return pull


# --- reductions ---


def _reduction(call: _Call):
    message, y = call.message, call.results[0]
    call.only(("input",))
    x = call.operand(message.input, "input")
    mask = call.operand(message.where, "where") if message.HasField("where") else None
    names = {
        pb.Reduction.FUNCTION_SUM: "add", pb.Reduction.FUNCTION_PROD: "multiply", pb.Reduction.FUNCTION_MIN: "minimum",
        pb.Reduction.FUNCTION_MAX: "maximum", pb.Reduction.FUNCTION_MEAN: "mean", pb.Reduction.FUNCTION_NORM: "norm",
        pb.Reduction.FUNCTION_VAR: "var", pb.Reduction.FUNCTION_STD: "std",
    }
    name = message.function_name or names.get(message.function, "")
    axes = tuple(sorted(axis % max(1, x.ndim) for axis in message.axes)) or tuple(range(x.ndim))
    full = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    if name not in ("add", "sum", "multiply", "prod", "minimum", "min", "maximum", "max", "mean", "norm", "logaddexp",
                    "var", "std"):
        raise _no_rule(f"the reduction {name or pb.Reduction.Function.Name(message.function)}")
    if len(message.more_inputs):
        raise _no_rule(f"the reduction {name} of several arrays")
    if message.HasField("initial") and name not in ("add", "sum"):
        raise _no_rule(f"the reduction {name} with an initial value")
    skipped = message.skip_nan

    def pull(g):
        g, result = mp.reshape(g, full), mp.reshape(y, full)
        if name in ("add", "sum"):
            found = mp.broadcast_to(g, x.shape)
        elif name == "mean":
            if mask is None:
                found = mp.broadcast_to(g / math.prod(x.shape[i] for i in axes), x.shape)
            else:
                counts = _reductions.sum(mp.broadcast_to(mask, x.shape), axis=axes, keepdims=True)
                found = mp.broadcast_to(g / counts.astype(g.dtype), x.shape)
        elif name == "norm":
            found = g * x / el.where(result == 0, 1, result) if x.dtype.kind != "c" else \
                g * el.conj(x) / el.where(result == 0, 1, result)
        elif name in ("var", "std"):
            found = _of_variance(g, result if name == "std" else None, x, axes, mask, skipped, message.correction)
        elif name == "logaddexp":
            found = _share(g, result, x)
        elif name in ("multiply", "prod"):
            found = g * _others(x if mask is None else el.where(mask, x, 1), axes)
        else:
            chosen = x == result
            if mask is not None:
                chosen = chosen & mask
            counts = _reductions.sum(chosen, axis=axes, keepdims=True).astype(x.dtype)
            found = el.where(chosen, g / counts, 0)
        if mask is not None:
            found = el.where(mask, found, 0)
        if skipped:
            found = el.where(el.isnan(x), 0, found)
        return {call.place("input"): found}

    return pull


def _of_variance(g: Array, deviation, x: Array, axes, mask, skipped: bool, correction: float) -> Array:
    """The gradient of the variance, or of the standard deviation where `deviation` is given."""
    taken = mask
    if skipped:
        taken = ~el.isnan(x) if mask is None else mp.broadcast_to(mask, x.shape) & ~el.isnan(x)
    if taken is None:
        mean = _deviations.mean(x, axis=axes, keepdims=True)
        left = max(math.prod(x.shape[i] for i in axes) - correction, 0.0)
        scale = g / left if left else g * math.nan
    else:
        taken = mp.broadcast_to(taken, x.shape)
        mean = _deviations.mean(x, axis=axes, keepdims=True, where=taken)
        left = el.maximum(_reductions.count_nonzero(taken, axis=axes, keepdims=True) - correction, 0)
        scale = g / left.astype(g.dtype)
    distance = x - mean
    if x.dtype.kind == "c":
        distance = el.conj(distance)
    if deviation is None:
        return 2 * scale * distance
    return scale * distance / el.where(deviation == 0, 1, deviation)


def _others(x: Array, axes) -> Array:
    """For each element the product of all others along the axes: products from both ends, which zeros do not spoil."""
    kept = [i for i in range(x.ndim) if i not in axes]
    moved = mp.permute_dims(x, (*kept, *axes))
    count = math.prod(x.shape[i] for i in axes)
    flat = mp.reshape(moved, (*[x.shape[i] for i in kept], count))
    before = [_creation.ones(flat.shape[:-1], dtype=x.dtype)]
    after = [before[0]]
    for i in range(count - 1):
        before.append(before[-1] * flat[..., i])
        after.append(after[-1] * flat[..., count - 1 - i])
    both = [one * other for one, other in zip(before[:count], reversed(after[:count]))]
    stacked = _assembly.stack(both, axis=-1) if both else flat
    order = np.argsort((*kept, *axes))
    return mp.permute_dims(mp.reshape(stacked, moved.shape), tuple(int(i) for i in order))


def _accumulation(call: _Call):
    message, x, y = call.message, call.operand(call.message.input, "input"), call.results[0]
    pulls = {"add": _from_sums, "multiply": _from_products, "maximum": _from_extremes, "minimum": _from_extremes}
    if message.function not in pulls or message.include_initial or message.exclusive:
        raise _no_rule(f"the accumulation of {message.function}")
    axis = message.axis % max(1, x.ndim)
    turned = (lambda one: mp.flip(one, axis=axis)) if message.reverse else (lambda one: one)

    def pull(g):
        found = pulls[message.function](message.function, turned(g), turned(x), turned(y), axis)
        return {call.place("input"): turned(found)}

    return pull


def _from_sums(_: str, g: Array, x: Array, y: Array, axis: int) -> Array:
    return mp.flip(_routines_cumsum(mp.flip(g, axis=axis), axis), axis=axis)


def _from_products(_: str, g: Array, x: Array, y: Array, axis: int) -> Array:
    """The product before an element times the sum s[k] = g[k] + x[k + 1] s[k + 1], which is made by doubling: zeros in
    x divide nothing."""
    n = x.shape[axis]
    before = _shifted(y, axis, -1, 1)
    total, factor, distance = g, _shifted(x.astype(g.dtype), axis, 1, 0), 1
    while distance < n:
        total = total + factor * _shifted(total, axis, distance, 0)
        factor = factor * _shifted(factor, axis, distance, 0)
        distance *= 2
    return before * total


def _shifted(x: Array, axis: int, distance: int, fill: float) -> Array:
    """x[k + distance] at k, and `fill` outside."""
    n, shape = x.shape[axis], list(x.shape)
    shape[axis] = min(abs(distance), n)
    place = (slice(None),) * axis
    edge = _creation.full(tuple(shape), fill, dtype=x.dtype)
    if abs(distance) >= n:
        return edge
    parts = [x[(*place, slice(distance, None))], edge] if distance > 0 else [edge, x[(*place, slice(None, distance))]]
    return _assembly.concat(parts, axis=axis)


def _from_extremes(name: str, g: Array, x: Array, y: Array, axis: int) -> Array:
    """To the last element that is the extreme so far."""
    from stride import maximum

    places = mp.reshape(_creation.arange(x.shape[axis]), (-1, *(1,) * (x.ndim - 1 - axis)))
    chosen = maximum.accumulate(el.where(x == y, places, 0), axis=axis)
    return _added_at(x.shape, g.dtype, _all_axes(chosen, axis, x.shape), 0, 0, g)


def _routines_cumsum(x: Array, axis: int) -> Array:
    from stride import cumulative_sum

    return cumulative_sum(x, axis=axis, dtype=x.dtype)


# --- products ---


def _swapped(x: Array) -> Array:
    return mp.permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _matmul(call: _Call):
    left, right = call.operand(call.message.left, "left"), call.operand(call.message.right, "right")
    rows = left if left.ndim > 1 else mp.reshape(left, (1, *left.shape))
    columns = right if right.ndim > 1 else mp.reshape(right, (*right.shape, 1))

    def pull(g):
        lead = _inference.broadcast(rows.shape[:-2], columns.shape[:-2])
        g = mp.reshape(g, (*lead, rows.shape[-2], columns.shape[-1]))
        found = {}
        if call.place("left") is not None and call.tracked[call.place("left")]:
            found[call.place("left")] = mp.reshape(
                _tape.fitted(_linear_algebra.matmul(g, _swapped(columns)), rows), left.shape)
        if call.place("right") is not None and call.tracked[call.place("right")]:
            second = mp.reshape(_tape.fitted(_linear_algebra.matmul(_swapped(rows), g), columns), right.shape)
            found[call.place("right")] = second
        return found

    return pull


# --- linear algebra and transforms ---


def _linalg(call: _Call):
    from stride import linalg

    message = call.message
    operands = [call.operand(one, "operands", i) for i, one in enumerate(message.operands)]
    a, kind = operands[0], message.function
    place = call.place("operands", 0)
    y = call.results[0]
    if kind == pb.Linalg.FUNCTION_INVERSE:
        return lambda g: {place: -_swapped(y) @ g @ _swapped(y)}
    if kind == pb.Linalg.FUNCTION_SOLVE:
        b = operands[1]

        def solved(g):
            is_vector = b.ndim == 1 or b.ndim == a.ndim - 1
            column = (lambda one: mp.reshape(one, (*one.shape, 1))) if is_vector else (lambda one: one)
            back = linalg.solve(_swapped(a), column(g))
            found = {place: -back @ _swapped(column(y))}
            if call.place("operands", 1) is not None:
                found[call.place("operands", 1)] = mp.reshape(back, back.shape[:-1]) if is_vector else back
            return found

        return solved
    pull = _decomposition(message, a, call.results)
    if pull is not None:
        return lambda g: {place: _as_plain(pull(*map(_as_plain, g if isinstance(g, list) else [g])))}
    if kind == pb.Linalg.FUNCTION_LU and a.shape[-1] == a.shape[-2]:

        def triangular(cotangents):
            # A = P L U, so that of M = L U the cotangent is L^-T (tril(L^T g, -1) + triu(g U^T)) U^-T.
            from stride import tril, triu

            eye = _triangles.eye(a.shape[-1], dtype=a.dtype)
            lower, upper, g = tril(y, -1) + eye, triu(y), cotangents[0]
            inner = tril(_swapped(lower) @ tril(g, -1), -1) + triu(triu(g) @ _swapped(upper))
            left = linalg.solve(_swapped(lower), inner)
            whole = _swapped(linalg.solve(upper, _swapped(left)))
            order = el.rint(a @ linalg.inv(lower @ upper))  # P, whose elements are 0 and 1
            return {place: order @ whole}

        return triangular
    name = pb.Linalg.Function.Name(kind).removeprefix("FUNCTION_").lower()
    raise _no_rule(f"linalg {name}{' with full matrices' if message.full else ''}")


def _as_plain(g: Cotangent) -> Cotangent:
    """A cotangent of JAX as one of `_gradient_decompositions`, and back."""
    return el.conj(g) if g is not None and g.dtype.kind == "c" else g


def _decomposition(message: pb.Linalg, a: Array, results: Sequence[Array]) -> Optional[Callable]:
    """The pull-back of a decomposition that has complex conjugates in it; None for other functions."""
    from stride import linalg

    kind = message.function
    if kind == pb.Linalg.FUNCTION_CHOLESKY:
        if message.upper:
            return lambda g: rules.cholesky(rules.adjoint(results[0]), rules.adjoint(g))
        return lambda g: rules.cholesky(results[0], g)
    if kind == pb.Linalg.FUNCTION_EIGH:
        if message.values_only:
            return lambda g: rules.eigh(*linalg.eigh(a, UPLO="U" if message.upper else "L"), g, None)
        return lambda g, h: rules.eigh(*results, g, h)
    if message.full and a.shape[-1] != a.shape[-2]:
        return None
    if kind == pb.Linalg.FUNCTION_QR:
        if message.values_only:
            return lambda g: rules.qr(*linalg.qr(a), None, g)
        return lambda g, h: rules.qr(*results, g, h)
    if kind == pb.Linalg.FUNCTION_SVD:
        if message.values_only:
            return lambda g: rules.svd(*linalg.svd(a, full_matrices=False), None, g, None)
        return lambda *gs: rules.svd(*results, *gs)
    return None


def _fft(call: _Call):
    """A transform is a matrix F, symmetric where it is complex, between the cut or continued input and the result. For
    real numbers, rfft is the first rows of F, and irfft doubles all elements but the first and the middle one, applies
    F, and takes real parts."""
    message, x, y = call.message, call.operand(call.message.input, "input"), call.results[0]
    axes = [axis % x.ndim for axis in message.axes] or list(range(x.ndim))
    last, kinds = axes[-1], pb.Fft
    lengths = list(message.lengths) or [x.shape[axis] for axis in axes]
    if message.kind == kinds.KIND_COMPLEX_TO_REAL and not message.lengths:
        lengths[-1] = y.shape[last]
    wide = {axis: n for axis, n in zip(axes, lengths)}
    read = dict(wide)  # how many elements of the input the transform reads along each axis, at most
    if message.kind == kinds.KIND_COMPLEX_TO_REAL:
        read[last] = wide[last] // 2 + 1
    is_inverse = message.inverse or message.kind == kinds.KIND_COMPLEX_TO_REAL
    norm = {kinds.NORM_ORTHO: "ortho", kinds.NORM_FORWARD: "forward"}.get(message.norm, "backward")

    def pull(g):
        from stride import fft

        g = g.astype(np.result_type(y.dtype, np.complex64)) if g.dtype.kind != "c" else g
        if message.kind == kinds.KIND_REAL_TO_COMPLEX:
            g = _resized(g, {last: wide[last]})
        g = (fft.ifftn if is_inverse else fft.fftn)(g, axes=axes, norm=norm)
        g = _resized(g, read)
        if message.kind == kinds.KIND_COMPLEX_TO_REAL:
            places = np.arange(read[last])
            twice = np.where((places == 0) | (2 * places == wide[last]), 1.0, 2.0).astype(y.dtype)
            g = g * _conversion.asarray(twice.reshape(-1, *(1,) * (x.ndim - 1 - last)))
        return {call.place("input"): _resized(g, {axis: x.shape[axis] for axis in axes})}

    return pull


def _resized(x: Array, extents: Dict[int, int]) -> Array:
    """Cut, or continued with zeros, along some axes."""
    x = x[tuple(slice(extents.get(i, n)) for i, n in enumerate(x.shape))]
    pads = [(0, extents.get(i, n) - n) for i, n in enumerate(x.shape)]
    from stride import pad

    return pad(x, pads) if any(after for _, after in pads) else x


# --- branches ---


def _branch(call: _Call):
    from stride.lax import _bodies

    message, bodies = call.message, dict(call.bodies)
    index = call.operand(message.index, "index")
    inputs = [call.operand(one, "inputs", i) for i, one in enumerate(message.inputs)]
    places = [call.place("inputs", i) for i in range(len(inputs))]
    wanted = [i for i, place in enumerate(places) if place is not None and call.tracked[place]]
    specs = [bodies[_bodies.key_of(one)] for one in message.bodies]

    def pull(cotangents):
        from stride import lax

        listed = cotangents if isinstance(cotangents, list) else [cotangents]
        given = [i for i, one in enumerate(listed) if one is not None]
        found = lax.switch(
            index.astype(np.int64),
            [lambda values, gs, body=body, spec=spec: _through(body, spec, bodies, values, wanted, given, gs)
             for body, spec in zip(message.bodies, specs)],
            inputs, [listed[i] for i in given],
        )
        return {places[i]: one for i, one in zip(wanted, found)}

    return pull


def _through(body: pb.Body, specs, bodies, values, wanted, given, cotangents) -> List[Array]:
    """The cotangents of a body's inputs."""
    from stride.jax import _custom_gradients, _gradients

    def run(*chosen):
        arrays = list(values)
        for i, one in zip(wanted, chosen):
            arrays[i] = one
        outputs = _custom_gradients.carried_out(body, specs, bodies, arrays)
        return [outputs[i] for i in given]

    _, pull = _gradients.vjp(run, *[values[i] for i in wanted])
    return list(pull(cotangents))
