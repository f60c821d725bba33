"""vmap's rules for loops and branches: their bodies are rewritten for all items at once.

A carried value is batched if it differs between items after any iteration. A loop whose condition differs
runs until it has ended for all items; finished items keep their values. A branch whose index differs computes
all bodies and selects."""

from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from stride import _dtypes
from stride._trace import Spec, Template, at, handles_in
from stride.v1 import compute_service_pb2, operation_pb2 as pb


class Bodies:
    """Loops and branches of one batcher (`_vmap._Batcher`)."""

    def __init__(self, batcher: Any):
        self.batcher = batcher

    # --- loops ---

    def loop(self, message: pb.Loop, outputs: Sequence[int]) -> None:
        """Emits a loop over all items, whose results are `outputs`."""
        is_batched = self.batcher.is_batched
        has_condition = message.HasField("condition")
        constants = [is_batched(one) for one in message.constants]
        scanned = [is_batched(one) for one in message.scanned]
        carried = [is_batched(one) for one in message.carried]
        differs = has_condition and is_batched(message.condition)
        while True:
            if differs:
                carried = [True] * len(carried)
            sub = self.batched_body(message.body, [*constants, *carried, *scanned])
            flags = [one in sub.batched for one in message.body.outputs]
            if has_condition:
                differs = differs or flags.pop(0)
            after = [differs or one or other for one, other in zip(carried, flags)]
            if after == carried:
                break
            carried = after
        if differs:
            self._until_all_are_done(message, sub, outputs)
            return
        stacked = flags[len(carried) :]
        self._emit_loop(message, sub, outputs, carried, stacked)

    def _emit_loop(self, message: pb.Loop, sub, outputs, carried: List[bool], stacked: List[bool]) -> None:
        batcher = self.batcher
        wanted = [*([False] if message.HasField("condition") else []), *carried, *stacked]
        new = pb.Loop()
        new.CopyFrom(message)
        new.body.CopyFrom(self._finished(sub, wanted))
        for operand, flag in zip(new.carried, carried):
            if flag:
                operand.CopyFrom(pb.Operand(handle=self._own(operand)))
        for operand in new.scanned:
            if batcher.is_batched(operand):
                rank = len(batcher.shape(operand.handle))
                operand.handle = batcher.transposed(operand.handle, (1, 0, *range(2, rank)))
        handles = []
        for handle, flag in zip(outputs, [*carried, *([False] * len(stacked))]):
            if flag:
                batcher.made(handle)
            handles.append(handle)
        for place, flag in enumerate(stacked, len(carried)):
            if flag:
                shape, dtype = batcher.template.specs[outputs[place]]
                handles[place] = batcher.handle((shape[0], batcher.size, *shape[1:]), dtype)
        batcher.emit(pb.Operation(loop=new, outputs=[pb.Output(handle=one) for one in handles]))
        for handle, result in zip(outputs, handles):
            if handle != result:
                rank = len(batcher.shape(result))
                batcher.made(handle)
                batcher.copied(batcher.transposed(result, (1, 0, *range(2, rank))), handle)

    def _until_all_are_done(self, message: pb.Loop, sub, outputs: Sequence[int]) -> None:
        batcher, size = self.batcher, self.batcher.size
        num_constants, template = len(message.constants), sub.template
        running = sub.handle((size,), _dtypes.bool)
        before = template.inputs[num_constants:]
        again, *after = [sub.with_axis(pb.Operand(handle=one)) for one in message.body.outputs]
        still = _ufunc(sub, "logical_and", (running, again), (size,), _dtypes.bool)
        kept = [self._where(sub, running, new, old) for new, old in zip(after, before)]
        results = [_any(sub, still), still, *kept]
        inputs = [*template.inputs[:num_constants], running, *before]
        new = pb.Loop()
        new.CopyFrom(message)
        new.body.CopyFrom(self._as_body(sub, inputs, results))
        first = self._own(message.condition)
        del new.carried[:]
        new.carried.extend([pb.Operand(handle=first), *(pb.Operand(handle=self._own(one)) for one in message.carried)])
        new.condition.CopyFrom(pb.Operand(handle=_any(batcher, first)))
        for one in outputs:
            batcher.made(one)
        done = batcher.handle((size,), _dtypes.bool)
        batcher.emit(pb.Operation(loop=new, outputs=[pb.Output(handle=one) for one in (done, *outputs)]))

    def _own(self, operand: pb.Operand) -> int:
        """The handle of a contiguous array with the new axis."""
        batcher = self.batcher
        handle = operand.handle
        if handle in batcher.batched:
            return handle
        return batcher.copied(batcher.broadcast(handle, (batcher.size, *batcher.shape(handle))))

    # --- branches ---

    def branch(self, message: pb.Branch, outputs: Sequence[int]) -> None:
        """Emits a branch over all items, or all its bodies and a selection."""
        batcher = self.batcher
        given = [batcher.is_batched(one) for one in message.inputs]
        subs = [self.batched_body(one, given) for one in message.bodies]
        if not batcher.is_batched(message.index):
            wanted = [
                any(one.outputs[j] in sub.batched for one, sub in zip(message.bodies, subs))
                for j in range(len(outputs))
            ]
            new = pb.Branch(index=message.index, inputs=message.inputs)
            new.bodies.extend([self._finished(sub, wanted) for sub in subs])
            for handle, flag in zip(outputs, wanted):
                if flag:
                    batcher.made(handle)
            batcher.emit(pb.Operation(branch=new, outputs=[pb.Output(handle=one) for one in outputs]))
            return
        results = [self._inlined(sub, [one.handle for one in message.inputs]) for sub in subs]
        index = message.index.handle
        is_bool = np.dtype(batcher.specs[index][1]).kind == "b"
        for j, handle in enumerate(outputs):
            alike = [one[j] for one in results]
            if len(alike) == 1:
                batcher.made(handle)
                batcher.copied(batcher.with_axis(pb.Operand(handle=alike[0])), handle)
                continue
            value = alike[-1]
            for k in range(len(alike) - 2, -1, -1):
                into = handle if k == 0 else None
                if is_bool:
                    value = self._where(batcher, index, alike[1], alike[0], into)
                    break
                limit = pb.Operand()
                limit.scalar.int_value = k
                mask = _ufunc(batcher, "less_equal", (index, limit), (batcher.size,), _dtypes.bool)
                value = self._where(batcher, mask, alike[k], value, into)

    def _inlined(self, sub, inputs: Sequence[int]) -> List[int]:
        """The operations of a body among the batcher's own: the handles of its results."""
        batcher = self.batcher
        names: Dict[int, int] = dict(zip(sub.template.inputs, inputs))
        batched = {sub_handle for sub_handle in sub.batched}
        for command, _ in sub.commands:
            if not command.HasField("operation"):
                continue
            operation = pb.Operation()
            operation.CopyFrom(command.operation)
            for path, handle in handles_in(operation):
                if handle not in names:
                    shape, dtype = sub.specs.get(handle, ((), None))
                    names[handle] = batcher.handle(shape, dtype)
                    if handle in batched:
                        batcher.batched.add(names[handle])
                at(operation, path).handle = names[handle]
            batcher.emit(operation)
        return [names[one.handle] for one in sub.template.outputs]

    # --- bodies ---

    def batched_body(self, body: pb.Body, flags: Sequence[bool]):
        """A batcher that has rewritten the body, of whose inputs some are batched."""
        from stride._batching import _Batcher
        from stride.lax._bodies import key_of

        batcher = self.batcher
        bodies = batcher.template.bodies
        specs = bodies[key_of(body)]
        commands = [(compute_service_pb2.Command(operation=one), batcher.origin) for one in body.operations]
        outputs = [Spec(one, *specs[one]) for one in body.outputs]
        template = Template(commands, list(body.inputs), [], outputs, dict(specs), bodies)
        sub = _Batcher(template, batcher.size, {one for one, flag in zip(body.inputs, flags) if flag})
        while not sub._pass():
            pass
        return sub

    def _finished(self, sub, wanted: Sequence[bool]) -> pb.Body:
        """With the new axis in the results that are wanted so."""
        results = []
        for one, flag in zip(sub.template.outputs, wanted):
            handle = one.handle
            if flag and handle not in sub.batched:
                handle = sub.copied(sub.broadcast(handle, (sub.size, *one.shape)))
            results.append(handle)
        return self._as_body(sub, sub.template.inputs, results)

    def _as_body(self, sub, inputs: Sequence[int], results: Sequence[int]) -> pb.Body:
        from stride.lax._bodies import body_of, key_of

        bodies = self.batcher.template.bodies
        outputs = [Spec(one, *sub.specs[one]) for one in results]
        body = body_of("vmap", Template(sub.commands, list(inputs), [], outputs, sub.specs, bodies))
        bodies[key_of(body.message)] = body.specs
        return body.message

    @staticmethod
    def _where(batcher, mask: int, first: int, second: int, into: Any = None) -> int:
        """`first` where an item's mask is true, else `second`, of arrays of one shape without the new axis."""
        shape, dtype = batcher.specs[first if first in batcher.batched else second]
        if first not in batcher.batched and second not in batcher.batched:
            shape = (batcher.size, *shape)
        mask = batcher.reshaped(mask, (batcher.size, *(1,) * (len(shape) - 1)))
        return _ufunc(batcher, "where", (mask, first, second), shape, dtype, into)


def _ufunc(batcher, name: str, operands: Tuple[Any, ...], shape, dtype, into: Any = None) -> int:
    result = batcher.handle(shape, dtype) if into is None else into
    if into is not None:
        batcher.made(into)
    batcher.batched.add(result)
    inputs = [one if isinstance(one, pb.Operand) else pb.Operand(handle=one) for one in operands]
    batcher.emit(pb.Operation(ufunc=pb.Ufunc(function=name, inputs=inputs), outputs=[pb.Output(handle=result)]))
    return result


def _any(batcher, mask: int) -> int:
    result = batcher.handle((), _dtypes.bool)
    reduction = pb.Reduction(function=pb.Reduction.FUNCTION_ANY, input=pb.Operand(handle=mask))
    batcher.emit(pb.Operation(reduction=reduction, outputs=[pb.Output(handle=result)]))
    return result
