"""Features of NumPy's ufuncs other than a plain call: `out`, `where`, `dtype`, `casting`, and two results."""

from typing import List, Optional

import numpy as np

from stride import _arguments, _array, _dtypes, _errors, _graph, _inference
from stride._array import Array, node_of, operands_of, wrap
from stride._graph import Node, elementwise, record, record_several, write_in_place
from stride._numbers import Number, check_numbers
from stride.v1 import operation_pb2 as pb

_CASTINGS = {"no": pb.CASTING_NO, "equiv": pb.CASTING_EQUIV, "safe": pb.CASTING_SAFE, "same_kind": pb.CASTING_SAME_KIND,
             "unsafe": pb.CASTING_UNSAFE}


def _stand_ins(operands) -> list:
    return [one.dtype if type(one) is Node else one.type for one in operands]


def _resolve(name: str, operands, dtype: Optional[np.dtype], casting: str) -> tuple:
    """The types of a loop's inputs and outputs, by NumPy's rules."""
    ufunc, types = getattr(np, name), _stand_ins(operands)
    if _dtypes.bfloat16 is not None and _dtypes.bfloat16 in (*types, dtype):
        raise _errors.Unimplemented(
            f"{name} of bfloat16 with dtype=, where= or casting= is not there yet",
            reason="NOT_IMPLEMENTED",
            metadata={"feature": "bfloat16"},
        )
    options = {}
    if dtype is not None:
        # With two results the second may have another type, so that `dtype` is the inputs' type.
        options["signature"] = (
            (None,) * ufunc.nin + (dtype,) if ufunc.nout == 1 else (dtype,) * ufunc.nin + (None, None)
        )
    _arguments.check_casting(casting)
    try:
        resolved = ufunc.resolve_dtypes((*types, *(None,) * ufunc.nout), casting=casting, **options)
    except (TypeError, ValueError):
        names = ", ".join(getattr(t, "name", None) or t.__name__ for t in types)
        wanted = "" if dtype is None else f" to compute in {dtype}"
        raise _errors.DataTypeMismatch(f"{name} takes no such types{wanted} with casting {casting!r}: {names}",
                                       reason="DATA_TYPE_MISMATCH") from None
    for one in resolved:
        if one not in _dtypes.NUMBERS:
            raise _errors.DataTypeMismatch(f"{name} would use {one}, which the service does not have")
    return resolved


def computing_type(name: str, inputs: tuple, casting, order, dtype, signature):
    """`dtype=` of a call that has `order=`, `signature=` and `dtype=`."""
    if order != "K":
        _arguments.check_order(order)
    if signature is None:
        return dtype
    if dtype is not None:
        raise TypeError("signature= names the types itself: leave dtype= out")
    _arguments.check_casting(casting)
    operands = operands_of(inputs)
    ufunc, entries = getattr(np, name), _signature_types(name, signature)
    try:
        wanted = ufunc.resolve_dtypes(
            (*_stand_ins(operands), *(None,) * ufunc.nout), casting=casting, signature=entries
        )
    except (TypeError, ValueError) as error:
        raise _errors.DataTypeMismatch(
            f"{name}: signature= fits no loop: {error}", reason="DATA_TYPE_MISMATCH"
        ) from None
    for one in (None, wanted[-1], wanted[0]):
        try:
            if _resolve(name, operands, one, casting) == wanted:
                return one
        except _errors.DataTypeMismatch:
            pass  # not by this type
    raise _arguments.unimplemented(
        f"signature= of {name} with {', '.join(map(str, wanted))}", "convert the inputs, or give dtype="
    )


def _signature_types(name: str, signature) -> tuple:
    ufunc = getattr(np, name)
    count = ufunc.nin + ufunc.nout
    if isinstance(signature, str) and (len(signature) > 1 or "->" in signature):
        inputs, arrow, outputs = signature.partition("->")
        if not arrow or (len(inputs), len(outputs)) != (ufunc.nin, ufunc.nout):
            raise ValueError(f"signature= of {name} names {ufunc.nin} inputs and {ufunc.nout} results: {signature!r}")
        signature = tuple(inputs + outputs)
    if isinstance(signature, str):
        signature = (None,) * ufunc.nin + (signature,) * ufunc.nout
    if not isinstance(signature, tuple):
        raise TypeError(f"signature= of {name} is a string or a tuple of types, not {type(signature).__name__}")
    if len(signature) != count:
        raise ValueError(f"signature= of {name} names {count} types, not {len(signature)}")
    return tuple(None if one is None else _dtypes.dtype_of(one) for one in signature)


def _mask_of(where, session) -> Optional[Node]:
    if where is True:
        return None
    mask = node_of(where, session)
    if mask.dtype != _dtypes.bool:
        raise _errors.DataTypeMismatch(f"where= is an array of bool, not of {mask.dtype}", reason="DATA_TYPE_MISMATCH")
    return mask


def _message(name: str, operands, data_type, casting: str, mask) -> pb.Ufunc:
    """`operands` are pb.Operands: the inputs, and the mask when there is one."""
    message = pb.Ufunc(function=name, casting=_CASTINGS[casting])
    message.inputs.extend(operands[:-1] if mask else operands)
    if mask:
        message.where.CopyFrom(operands[-1])
    if data_type is not None:
        message.data_type = _dtypes.NUMBERS[data_type]
    return message


def _shape_of(operands) -> tuple:
    return _inference.broadcast(*(one.shape for one in operands if type(one) is Node))


def _outs(out, count: int) -> tuple:
    outs = out if isinstance(out, tuple) else (out,) * 1 + (None,) * (count - 1)
    if len(outs) != count:
        raise ValueError(f"out= takes {count} arrays, not {len(outs)}")
    for one in outs:
        if one is not None and not isinstance(one, Array):
            raise TypeError(f"out= is a stride array, not {type(one).__name__}")
    return outs


def call(name: str, inputs: tuple, out=None, where=True, casting: str = "same_kind", dtype=None):
    """One ufunc with everything that NumPy's take; one Array, or a tuple of them."""
    num_outputs = getattr(np, name).nout
    outs = _outs(out, num_outputs)
    session = next((one._node.session for one in (*inputs, *outs, where) if isinstance(one, Array)), None)
    operands = operands_of(inputs, session)
    session = next(one.session for one in operands if type(one) is Node)
    mask = _mask_of(where, session)
    dtype = None if dtype is None else _dtypes.dtype_of(dtype)
    resolved = _resolve(name, operands, dtype, casting)
    operands = check_numbers(name, operands, resolved[0])
    types = resolved[-num_outputs:]
    plain = dtype is None or resolved == _resolve(name, operands, None, "unsafe")
    data_type = None if plain else dtype
    if mask is None and num_outputs == 1 and data_type is None:
        _check_outs(name, outs, types, casting)
        return _several([_give(wrap(elementwise(name, operands)), outs[0], None, casting)])
    if mask is not None and _graph.check_floats is not None:
        from stride import _float_errors

        with _float_errors.masked(name, operands, mask):
            return give_all(name, operands, types, data_type, casting, mask, outs)
    return give_all(name, operands, types, data_type, casting, mask, outs)


def _check_outs(name: str, outs, types, casting: str) -> None:
    for one, result in zip(outs, types):
        if one is not None and not np.can_cast(result, one.dtype, casting):
            raise _errors.DataTypeMismatch(
                f"{name}: the result of {result} is not cast to out= of {one.dtype} with casting {casting!r}",
                reason="DATA_TYPE_MISMATCH",
            )


def give_all(name: str, operands, types, data_type, casting: str, mask: Optional[Node], outs):
    """A ufunc, NumPy's or a client's, whose types are known, into new arrays or those that were given."""
    _check_outs(name, outs, types, casting)
    if len(types) == 1 and outs[0] is not None and mask is not None and _is_shared(outs[0]):
        _write_masked(name, operands, data_type, casting, mask, outs[0])
        return outs[0]
    if mask is not None and all(one is None for one in outs):
        return _several([wrap(node) for node in _nodes(name, operands, types, data_type, casting, mask)])
    results = _nodes(name, operands, types, data_type, casting, None)
    return _several([_give(wrap(result), one, mask, casting) for result, one in zip(results, outs)])


def _several(arrays: list):
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def _nodes(name: str, operands, types, data_type, casting: str, mask: Optional[Node]) -> List[Node]:
    if _graph.check_floats is not None and mask is None:
        _graph.check_floats(name, operands)
    inputs = operands if mask is None else (*operands, mask)
    shape = _shape_of(inputs)
    session = next(one.session for one in operands if type(one) is Node)
    has_mask = mask is not None

    def build(flush, operands, handles, origin):
        operation = pb.Operation(ufunc=_message(name, operands, data_type, casting, has_mask))
        for handle in handles:
            operation.outputs.add(handle=handle)
        flush.add(operation, origin)

    if len(types) > 1:
        return record_several(session, [(shape, one) for one in types], build, inputs)
    return [
        record(
            session,
            shape,
            types[0],
            lambda flush, node, operands: build(flush, operands, [node.handle], node.origin),
            inputs,
        )
    ]


def _is_shared(array: Array) -> bool:
    buffer = array._node.buffer
    return buffer is not None and buffer.num_nodes > 1


def _give(result: Array, out: Optional[Array], mask: Optional[Node], casting: str) -> Array:
    if out is None:
        return (
            result
            if mask is None
            else wrap(elementwise("where", (mask, result._node, Number(np.zeros((), result.dtype)[()]))))
        )
    if mask is not None:
        result = wrap(elementwise("where", (mask, result.astype(out.dtype, copy=False)._node, out._node)))
    if result.shape != out.shape and _inference.broadcast(result.shape, out.shape) == out.shape:
        from stride import _casts, _manipulation

        result = _casts.copy(_manipulation.broadcast_to(result, out.shape))
    return _array._assign_in_place(out, result, casting)


def _write_masked(name: str, operands, data_type, casting: str, mask: Node, out: Array) -> None:
    """Into a view or what has views: elements whose mask is false are left as they are."""
    target = out._node
    if _inference.broadcast(_shape_of((*operands, mask)), target.shape) != target.shape:
        raise _errors.ShapeMismatch(
            f"{name}: out= has the shape {target.shape}, the result {_shape_of((*operands, mask))}"
        )
    from stride import _indexing

    _indexing.check_writable(out)
    write_in_place(target, lambda flush: pb.Operation(
        ufunc=_message(name, [flush.operand(one) for one in (*operands, mask)], data_type, casting, True)))
