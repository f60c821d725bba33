"""The basis of gradients. A **Tape** is a session that records the operations of a differentiated function as commands.

Each command runs in the session around the tape when a value is needed, at the latest when the function
returns, and stays on the tape with its inputs. Values on a tape are immutable: a write into an array makes
another value, so that each command can be traversed backwards. Since the commands run in the session around
it, values can be read and branched on, tapes nest, and a tape within `jit` is part of what is traced."""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from stride import _dtypes, _errors, _session
from stride._array import Array, node_of, wrap
from stride._graph import Node, defer, record_several
from stride._trace import Trace, _fill_specs, _TraceFlush, at, handles_in
from stride.v1 import operation_pb2 as pb


class _UnfusedFlush(_TraceFlush):
    """One command for each elementwise function, which has one rule."""

    @staticmethod
    def _fuses(node, root) -> bool:
        return False


class Alias(Array):
    """An array whose node another object holds longer, so that its end has no effect."""

    __slots__ = ()

    def __del__(self):
        pass


def alias(node: Node) -> Array:
    was_held = node.held
    array = wrap(node)
    array.__class__ = Alias
    node.held = was_held
    return array


class Value(NamedTuple):
    """An array on the tape. `number` grows in the order of the tape."""

    number: int
    array: Array
    is_tracked: bool


class Entry(NamedTuple):
    """`pull(cotangents)` gives one cotangent, or None, for each input from one for each output."""

    inputs: Tuple[Value, ...]
    outputs: Tuple[Value, ...]
    pull: Callable[[List[Optional[Array]]], Sequence[Optional[Array]]]


class _View(NamedTuple):
    input: int
    steps: list


class Tape(Trace):
    """Takes the place of a session while a function is differentiated."""

    _flush_type = _UnfusedFlush

    def __init__(self, outer: _session.Session):
        super().__init__(outer)
        self.unrolls = True
        self.entries: List[Entry] = []
        self._values: Dict[int, Value] = {}  # by handle
        self._views: Dict[int, _View] = {}
        self._readers: Dict[int, List[int]] = {}  # the views of each handle
        self._captured: Dict[int, Array] = {}
        self._num_values = 0
        self._is_running = False

    # --- values ---

    @property
    def _reads(self) -> bool:
        return self.outer._reads if self.outer._is_trace else True

    def value(self, array: Array, is_tracked: bool) -> Value:
        self._num_values += 1
        return Value(self._num_values, array, is_tracked)

    def variable(self, array: Array) -> Array:
        """An input of the function, whose value is `array` of the session around the tape."""
        node = self.input(array.shape, array.dtype)
        self._values[node.handle] = self.value(array, array.dtype.kind in "fc")
        return wrap(node)

    def known(self, node: Node) -> Value:
        """The tape's value of a node, which may belong to a session around the tape."""
        if node.session is not self:
            return self.value(alias(node), False)
        if not node.handle:
            self._flush([node])
        self._advance()
        return self._at(node.handle)

    def lifted(self, value: Value) -> Array:
        """A value as an array of the tape."""
        node = Node(self, value.array.shape, value.array.dtype, None, (), None)
        node.handle = self._next_id()
        self.specs[node.handle] = node.shape, node.dtype
        self._values[node.handle] = value
        return wrap(node)

    def outside(self, array: Any) -> Any:
        """The array around the tape that has an array's value."""
        return self.known(array._node).array if isinstance(array, Array) and array.session is self else array

    def _at(self, handle: int) -> Value:
        found = self._values.get(handle)
        if found is not None:
            return found
        view = self._views.get(handle)
        if view is not None:
            message = pb.View(input=pb.Operand(handle=view.input), steps=view.steps)
            found = self._run(pb.Operation(view=message, outputs=[pb.Output(handle=handle)]))[0]
        else:
            node = next((node for node, one in self.captured.values() if one == handle), None)
            if node is None:
                raise _errors.TracingError("a differentiated function uses an array that no operation has made")
            found = self.value(alias(node), False)
        self._values[handle] = found
        return found

    # --- commands ---

    def _advance(self) -> None:
        """Runs the recorded commands."""
        if self._is_running:
            return
        self._is_running = True
        traces = _session._tracing.traces
        place = traces.index(self) if self in traces else None
        inner = traces[place:] if place is not None else []
        if place is not None:
            del traces[place:]  # the outer session records the rest
        try:
            _fill_specs(self)
            while self.commands:
                command, _ = self.commands.pop(0)
                if command.HasField("release"):
                    self._release(command.release.handles)
                elif command.HasField("operation"):
                    self._carry_out(command.operation)
        finally:
            traces.extend(inner)
            self._is_running = False

    def _release(self, handles) -> None:
        gone = set(handles)
        for one in handles:
            if not any(reader not in gone for reader in self._readers.get(one, ())):
                self._values.pop(one, None)
                self._views.pop(one, None)

    def _carry_out(self, operation: pb.Operation) -> None:
        kind = operation.WhichOneof("kind")
        if kind == "view":
            handle = operation.outputs[0].handle
            self._views[handle] = _View(operation.view.input.handle, list(operation.view.steps))
            self._readers.setdefault(operation.view.input.handle, []).append(handle)
            return
        for output, value in zip(operation.outputs, self._run(operation)):
            self._assign(output.handle, value, output.existing)

    def _assign(self, handle: int, value: Value, is_write: bool) -> None:
        self._values[handle] = value
        if not is_write:
            return
        view = self._views.get(handle)
        if view is not None:
            self._assign(view.input, self._put(self._at(view.input), value, view.steps), True)
        self._forget_views(handle)

    def _forget_views(self, handle: int) -> None:
        for one in self._readers.get(handle, ()):
            self._values.pop(one, None)
            self._forget_views(one)

    def _put(self, whole: Value, part: Value, steps) -> Value:
        """`whole` with `part` in place of a view of it."""
        result = self.value(put(whole.array, part.array, steps), whole.is_tracked or part.is_tracked)
        if result.is_tracked:

            def pull(cotangents):
                return put(cotangents[0], None, steps), viewed(cotangents[0], steps)

            self.entries.append(Entry((whole, part), (result,), pull))
        return result

    def _run(self, operation: pb.Operation) -> List[Value]:
        from stride import _gradient_rules

        kind = operation.WhichOneof("kind")
        paths = list(handles_in(operation))
        outputs = list(operation.outputs)
        made = [one.new_array.output.handle for one in operation.kernel_launch.arguments if one.HasField("new_array")]
        operands = [(path, self._at(handle)) for path, handle in paths if path[0] != "outputs" and handle not in made]
        old = [self._at(one.handle) if one.existing else None for one in outputs]
        inputs = [value for _, value in operands]
        is_tracked = any(one.is_tracked for one in (*inputs, *(one for one in old if one is not None)))
        if made:
            raise _errors.Unimplemented(
                "a differentiated function cannot launch a kernel that makes arrays; define its derivative by "
                "custom_vjp", reason="NOT_IMPLEMENTED", metadata={"feature": "gradient of kernel_launch"})
        specs = [
            (old[i].array.shape, old[i].array.dtype) if old[i] is not None else self.specs[one.handle]
            for i, one in enumerate(outputs)
        ]
        arrays = emitted(self.outer, operation, operands, old, specs, self.bodies)
        results = [self.value(one, is_tracked and one.dtype.kind in "fc") for one in arrays]
        if any(one.is_tracked for one in results):
            self.entries.append(_gradient_rules.entry(self, operation, kind, operands, old, results))
        return results

    def add(self, inputs: Sequence[Array], results: Sequence[Array], pull: Callable) -> List[Array]:
        """Arrays of the tape for `results`, of the session around it, with a custom derivative: `pull` takes a
        cotangent or None for each result, and gives one or None for each input."""
        given = tuple(self.known(one._node) for one in inputs)
        is_tracked = any(one.is_tracked for one in given)
        made = tuple(self.value(one, is_tracked and one.dtype.kind in "fc") for one in results)
        if any(one.is_tracked for one in made):
            self.entries.append(Entry(given, made, pull))
        return [self.lifted(one) for one in made]

    # --- reading ---

    def _read(self, node: Node, progress=None) -> np.ndarray:
        host = node.cached()
        if host is not None:
            return host
        outside = self.known(node).array
        host = outside._node.session._read(outside._node)
        node.keep(host)
        return host

    def _fetch_future(self, node: Node):
        outside = self.known(node).array._node
        return outside.session._fetch_future(outside)

    def _read_own(self, node: Node, progress=None) -> np.ndarray:
        return np.array(self._read(node))

    def synchronize(self) -> None:
        self.outer.synchronize()

    # --- backwards ---

    def pull(self, outputs: Sequence[Tuple[Value, Optional[Array]]], wanted: Sequence[Value]) -> List[Optional[Array]]:
        """The cotangents of `wanted` for those of outputs."""
        sums: Dict[int, Array] = {}

        def give(value: Value, cotangent: Optional[Array]) -> None:
            if cotangent is None or not value.is_tracked:
                return
            cotangent = fitted(cotangent, value.array)
            before = sums.get(value.number)
            sums[value.number] = cotangent if before is None else before + cotangent

        for value, cotangent in outputs:
            give(value, cotangent)
        for entry in reversed(self.entries):
            cotangents = [sums.get(one.number) for one in entry.outputs]
            if all(one is None for one in cotangents):
                continue
            for value, one in zip(entry.inputs, entry.pull(cotangents)):
                give(value, one)
        return [sums.get(one.number) for one in wanted]


def fitted(cotangent: Array, like: Array) -> Array:
    """The cotangent summed over broadcast axes, in the type of its value."""
    from stride import _elementwise, _manipulation, _reductions

    if cotangent.shape != like.shape:
        lead = cotangent.ndim - like.ndim
        if lead < 0:
            cotangent = _manipulation.broadcast_to(cotangent, like.shape)
        else:
            axes = tuple(range(lead)) + tuple(
                lead + i for i, n in enumerate(like.shape) if n == 1 and cotangent.shape[lead + i] != 1
            )
            cotangent = _reductions.sum(cotangent, axis=axes, dtype=cotangent.dtype) if axes else cotangent
            if cotangent.shape != like.shape:
                cotangent = _manipulation.reshape(cotangent, like.shape) if cotangent.size == like.size \
                    else _manipulation.broadcast_to(cotangent, like.shape)
    if cotangent.dtype != like.dtype:
        if cotangent.dtype.kind == "c" and like.dtype.kind != "c":
            cotangent = _elementwise.real(cotangent)
        cotangent = cotangent.astype(like.dtype)
    return cotangent


def emitted(session, operation: pb.Operation, operands, old, specs, bodies=None) -> List[Array]:
    """An operation on other arrays, whose outputs are new: those that it writes into are copied first. `operands`:
    (path, value) for each array that it reads; `bodies`: Trace's, for loops and branches."""
    nodes = [node_of(value.array, session) for _, value in operands]
    before = [None if one is None else node_of(one.array, session) for one in old]
    inputs = (*nodes, *(one for one in before if one is not None))

    def build(flush, given, handles, origin):
        new = pb.Operation()
        new.CopyFrom(operation)
        new.ClearField("outputs")
        new.ClearField("device")
        for (path, _), operand in zip(operands, given):
            at(new, path).CopyFrom(operand)
        rest = iter(given[len(nodes):])
        for handle, one in zip(handles, before):
            if one is not None:
                flush.operation(handle, origin, copy=pb.Copy(input=next(rest)))
            new.outputs.add(handle=handle, existing=one is not None)
        if flush.session._is_trace:
            flush.session.specs.update(zip(handles, specs))
            flush.session.bodies.update(bodies or {})
        flush.add(new, origin)

    if len(specs) != 1:
        return [wrap(one) for one in record_several(session, specs, build, inputs)]

    def single(flush, node, given):
        build(flush, given, [node.handle], node.origin)

    return [wrap(defer(session, *specs[0], single, inputs))]


def put(whole: Array, part: Optional[Array], steps) -> Array:
    """A copy with another array, or zeros, in place of a view."""
    node = whole._node
    inputs = (node,) if part is None else (node, part._node)

    def build(flush, result, operands):
        flush.operation(result.handle, result.origin, copy=pb.Copy(input=operands[0]))
        view = flush.scratch()
        flush.operation(view, result.origin, view=pb.View(input=pb.Operand(handle=result.handle), steps=steps))
        if flush.session._is_trace:
            _note_view(flush.session, result.handle, view, steps, whole)
        if part is None:
            new = pb.Operation(creation=pb.Creation(fill=pb.Creation.Fill()))
            new = pb.Operation(copy=pb.Copy(input=pb.Operand(scalar=_zero(whole.dtype))))
        else:
            new = pb.Operation(copy=pb.Copy(input=operands[1]))
        new.outputs.add(handle=view, existing=True)
        flush.add(new, result.origin)

    return wrap(defer(node.session, whole.shape, whole.dtype, build, inputs))


def _zero(dtype):
    from stride._numbers import Number

    return Number(np.zeros((), dtype)[()]).to_proto() if dtype is not _dtypes.bfloat16 else Number(0.0).to_proto()


def _note_view(session, base: int, view: int, steps, whole: Array) -> None:
    from stride._trace import shape_of_view

    session.specs[base] = whole.shape, whole.dtype
    session.specs[view] = shape_of_view(whole.shape, steps), whole.dtype


def viewed(array: Array, steps) -> Array:
    """A copy in place of a view."""
    from stride._trace import shape_of_view

    shape = shape_of_view(array.shape, steps)

    def build(flush, result, operands):
        view = flush.scratch()
        flush.operation(view, result.origin, view=pb.View(input=operands[0], steps=steps))
        if flush.session._is_trace:
            flush.session.specs[view] = shape, array.dtype
        flush.operation(result.handle, result.origin, copy=pb.Copy(input=pb.Operand(handle=view)))

    return wrap(defer(array._node.session, shape, array.dtype, build, (array._node,)))
