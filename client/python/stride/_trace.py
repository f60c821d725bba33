"""Functions recorded once and replayed: the basis of stride.jit and stride.vmap.

A **Trace** is a session without a daemon: it collects the commands of a function's operations. A **Template**
is these commands, with the handles of inputs, outputs and captured arrays. A replay copies them
under new handles, as one deferred operation of the session, or of the trace, that its arguments belong to; so
jit and vmap nest."""

import collections.abc
import inspect
import itertools
import threading
import weakref
from collections import OrderedDict, deque
from typing import Callable, Dict, List, NamedTuple, Optional, Set, Tuple

import numpy as np

from stride import _casts, _errors, _inference, _origin, _program, _session, tree_util
from stride._array import Array, node_of, wrap
from stride._flush import Flush
from stride._graph import Node, record_several
from stride._stream import Note
from stride.v1 import compute_service_pb2, operation_pb2 as pb

_MAX_TEMPLATES = 128


class _TraceFlush(Flush):
    """Remembers the shape of every handle."""

    def materialise(self, node: Node) -> int:
        handle = super().materialise(node)
        if node.session is self.session:
            self.session.specs[handle] = (node.shape, node.dtype)
        return handle


class Trace(_session.Session):
    """Takes the place of a session while a function is traced. Its values cannot be read."""

    _is_trace = True
    _flush_type = _TraceFlush
    # Whether values can be read while the function runs.
    _reads = False

    def __init__(self, outer: _session.Session):  # not the base's, which connects
        self.outer = outer
        self._depth = outer._depth + 1
        self.address, self.timeout, self.device = outer.address, outer.timeout, outer.device
        self._next_id = itertools.count(1).__next__
        self._released: deque = deque()
        self._recorded: list = []
        self._num_taken = 0
        self.launched: set = set()
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._stream = self  # type: ignore[assignment]
        self.commands: List[Tuple[compute_service_pb2.Command, object]] = []
        self.specs: Dict[int, tuple] = {}
        self.inputs: List[Node] = []
        self.captured: Dict[int, Tuple[Node, int]] = {}  # by id of the node
        # The shape and type of each handle of the bodies of its loops and branches (lax/_bodies.py).
        self.bodies: Dict[bytes, Dict[int, tuple]] = {}
        # Numbers that a loop carries, of this trace and those around it.
        self._weak: "weakref.WeakSet[Node]" = outer._weak if outer._is_trace else weakref.WeakSet()
        # Whether what it records is read backwards (_tape.py): then loops are steps, and no functions are fused.
        self.unrolls = outer._is_trace and outer.unrolls
        if self.unrolls:
            self._flush_type = outer._flush_type

    def send(self, request, notes, pieces=()) -> None:
        for command in request.commands:
            note = notes.get(command.id)
            self.commands.append((command, note.origin if note is not None else None))

    def input(self, shape: tuple, dtype: np.dtype) -> Node:
        node = Node(self, shape, dtype, None, (), _origin.caller())
        node.handle = self._next_id()
        self.specs[node.handle] = (shape, dtype)
        self.inputs.append(node)
        return node

    def _foreign(self, node: Node) -> int:
        """The handle of a captured array, which is the same in every replay."""
        if node.session._is_trace and node.session.closed:
            raise _errors.TracingError(
                "an array of a function that was traced before is used outside that function",
                origin=_origin.describe(node.origin),
            )
        known = self.captured.get(id(node))
        if known is None:
            known = self.captured[id(node)] = node, self._next_id()
            self.specs[known[1]] = (node.shape, node.dtype)
        return known[1]

    def check_written(self, node: Node) -> None:
        if any(one is node or one.buffer is not None and one.buffer is node.buffer for one in self.inputs):
            raise _errors.TracingError(
                "a traced function cannot write into its arguments, nor pass them to a RawKernel, which may; "
                "copy them first",
                origin=_origin.describe(_origin.caller()),
            )

    def _upload(self, values: np.ndarray, device: Optional[str] = None, progress=None, sharding=None) -> Node:
        if values.nbytes <= _session.INLINE_BYTES and not device and not self.device and sharding is None:
            return super()._upload(values)
        return self.outer._upload(values, device, progress, sharding)

    def _unknown(self, *_, **__):
        raise _errors.TracingError(
            "the elements of an array are not known while its function is traced (by jit or vmap): they cannot "
            "be read, nor decide "
            "what is computed or how large it is",
            origin=_origin.describe(_origin.caller()),
        )

    _fetch_future = synchronize = _unknown

    def _read(self, node: Node, progress=None) -> np.ndarray:
        host = node.cached()
        return host if host is not None else self._unknown()

    def devices(self):
        return self.outer.devices()

    @property
    def tenant(self) -> str:
        return self.outer.tenant

    def close(self) -> None:
        self._closed.set()


class Spec(NamedTuple):
    handle: int
    shape: tuple
    dtype: np.dtype


# A step to a message inside a command: an attribute, an index, or a key.
Path = Tuple[object, ...]


def handles_in(message, path: Path = ()):
    """Paths to each message with a handle in it, (path, handle): operands and outputs."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            parts = (
                [((*path, field.name, key), part) for key, part in value.items()]
                if hasattr(value, "GetEntryClass")
                else []
            )
        elif isinstance(value, collections.abc.Sequence) or hasattr(value, "add"):
            parts = [((*path, field.name, i), part) for i, part in enumerate(value)]
        else:
            parts = [((*path, field.name), value)]
        for where, part in parts:
            if isinstance(part, (pb.Operand, pb.Output)):
                if part.handle:
                    yield where, part.handle
            elif isinstance(part, pb.Body):
                pass  # its handles are local
            elif hasattr(part, "ListFields"):
                yield from handles_in(part, where)


def at(message, path: Path):
    for step in path:
        message = (
            getattr(message, step) if type(step) is str and hasattr(type(message), "DESCRIPTOR") else message[step]
        )
    return message


class _Registered(NamedTuple):
    """The programs of a template in a session, and the arrays of their constants. `given`: the
    template's handles of inputs, captured arrays and constants."""

    names: List[str]
    parts: List[_program.Part]
    programs: _program.Programs
    given: Tuple[int, ...]
    releases: List[List[int]]
    arrays: List[Array]


class Template:
    """Commands with local handles. `inputs` and `captured` are handles of existing arrays; all others are
    made, and released unless they are outputs."""

    def __init__(
        self, commands, inputs: List[int], captured: List[Tuple[Node, int]], outputs: List[Spec],
        specs: Dict[int, tuple], bodies: Optional[dict] = None,
    ):
        self.bodies: Dict[bytes, Dict[int, tuple]] = {} if bodies is None else bodies
        self.inputs, self.captured, self.outputs, self.specs = inputs, captured, outputs, specs
        kept = {*inputs, *(handle for _, handle in captured), *(one.handle for one in outputs)}
        self.commands: List[tuple] = []  # (command, its handles, origin)
        made: Set[int] = set()
        released: Set[int] = set()
        for command, origin in commands:
            if command.HasField("release"):
                gone = [one for one in command.release.handles if one not in kept]
                if gone:
                    released.update(gone)
                    self.commands.append((None, gone, None))
                continue
            if not command.HasField("operation"):
                continue
            paths = list(handles_in(command.operation))
            made.update(handle for _, handle in paths)
            self.commands.append((command.operation, paths, origin))
        left = sorted(made - kept - released)
        if left:
            self.commands.append((None, left, None))
        kinds = [one[0].WhichOneof("kind") for one in self.commands if one[0] is not None]
        self.has_bodies = "loop" in kinds or "branch" in kinds
        self._program: Optional[_Registered] = None
        self._programmable = True
        self._lock = threading.Lock()

    def __del__(self):
        program = getattr(self, "_program", None)
        if program is not None:
            program.programs.dead.extend(part.id for part in program.parts)

    def _register(self, session) -> "Optional[_Registered]":
        """The template as programs of the daemon; None if that is not possible."""
        with self._lock:
            if self._program is None and self._programmable:
                made = _program.plan(self, session.device)
                self._programmable = made is not None
                if made is None and self.has_bodies:
                    raise _errors.Unimplemented(
                        "a traced function with a loop or a branch of the service must be one of its programs. It "
                        "cannot: it writes into arrays from outside, places arrays on devices, or has more than 64 "
                        "results or 256 arrays from outside; do that outside the function",
                        reason="NOT_IMPLEMENTED", metadata={"feature": "loop next to operations that no program has"})
                if made is not None:
                    programs = _program.programs_of(session)
                    registered = []
                    try:
                        for part in made.parts:
                            registered.append((programs.register(part), part))
                        constants = [_program.upload(session, one) for one in made.constants]
                        names = [name for name, _ in registered]
                        captured = [handle for _, handle in self.captured]
                        given = (*self.inputs, *captured, *(one.handle for one in made.constants))
                        self._program = _Registered(names, made.parts, programs, given, made.releases, constants)
                    except _errors.StrideError:
                        # Replays command by command, so that the error names the line at fault.
                        programs.dead.extend(part.id for _, part in registered)
                        if self.has_bodies:
                            raise
                        self._programmable = False
            return self._program

    def replay(self, session, nodes: List[Node]) -> List[Array]:
        """The outputs for these inputs, deferred."""
        inputs = (*nodes, *(node for node, _ in self.captured))
        program = None if session._is_trace else self._register(session)
        if program is not None:

            def call(flush, operands, handles, origin):
                names = {name: operand.handle for name, operand in zip(program.given, operands)}
                names.update(zip((one.handle for one in self.outputs), handles))
                next_id = flush.session._next_id
                for name, part, gone in zip(program.names, program.parts, program.releases):
                    for one in part.outputs:
                        if one not in names:
                            names[one] = next_id()  # for the parts that follow
                    call = pb.ProgramCall(program=name, inputs=[pb.Operand(handle=names[one]) for one in part.inputs])
                    flush.add(
                        pb.Operation(program_call=call, outputs=[pb.Output(handle=names[one]) for one in part.outputs]),
                        origin,
                    )
                    if gone:
                        flush.commands.add(id=next_id()).release.handles.extend([names[one] for one in gone])

            inputs = (*inputs, *(one._node for one in program.arrays))
            return [
                wrap(node)
                for node in record_several(session, [(one.shape, one.dtype) for one in self.outputs], call, inputs)
            ]

        def build(flush, operands, handles, origin):
            names = {
                name: operand.handle
                for name, operand in zip((*self.inputs, *(handle for _, handle in self.captured)), operands)
            }
            names.update(zip((one.handle for one in self.outputs), handles))
            next_id = flush.session._next_id
            for operation, paths, origin in self.commands:
                if operation is None:
                    flush.commands.add(id=next_id()).release.handles.extend(names[one] for one in paths if one in names)
                    continue
                command = flush.commands.add(id=next_id())
                command.operation.CopyFrom(operation)
                for path, handle in paths:
                    name = names.get(handle)
                    if name is None:
                        name = names[handle] = next_id()
                    at(command.operation, path).handle = name
                flush.notes[command.id] = Note(None, origin, command.operation)
            if flush.session._is_trace:
                flush.session.bodies.update(self.bodies)
                flush.session.specs.update(
                    (name, self.specs[handle]) for handle, name in names.items() if handle in self.specs
                )

        return [
            wrap(node)
            for node in record_several(session, [(one.shape, one.dtype) for one in self.outputs], build, inputs)
        ]


# --- arguments and results ---


class Structure(NamedTuple):
    """A pytree without its arrays: `slots` has for each leaf the class Array, or the value that is not an array."""

    tree: tree_util.PyTreeDef
    slots: tuple

    def snapshot(self) -> "Structure":
        """An equal pytree that the program does not change."""
        return Structure(self.tree._snapshot(), self.slots)


def flatten(tree, leaves: list) -> Structure:
    """The structure of a pytree; arrays go into `leaves`, every other leaf is part of the structure."""
    flat, structure = tree_util.tree_flatten(tree)
    slots: List[object] = []
    for one in flat:
        if isinstance(one, (Array, np.ndarray)):
            leaves.append(one)
            slots.append(Array)
        else:
            slots.append(one if type(one) is Static else Static(one))
    return Structure(structure, tuple(slots))


class Static:
    """A value of the structure itself, compared by type too: 1 is not 1.0, and 0.0 is not -0.0."""

    def __init__(self, value):
        self.value = value

    @property
    def _key(self):
        is_inexact = isinstance(self.value, (float, complex, np.inexact))
        return repr(self.value) if is_inexact else self.value

    def __eq__(self, other):
        return isinstance(other, Static) and type(self.value) is type(other.value) and bool(self._key == other._key)

    def __hash__(self):
        return hash((type(self.value), self._key))


def unflatten(structure: Structure, leaves):
    """`leaves` is an iterator."""
    tree, slots = structure
    if tree._kind is None and slots[0] is Array:
        return next(leaves)
    return tree_util.built(tree, iter([next(leaves) if one is Array else one.value for one in slots]))


def refuse_unhashable(function: Callable, arguments, kwargs) -> None:
    """Raises the error of an argument that is neither an array nor hashable, with its path."""
    for path, leaf in argument_paths(function, arguments, kwargs):
        try:
            hash(None if isinstance(leaf, (Array, np.ndarray)) or type(leaf) is Static else leaf)
        except TypeError:
            raise _errors.TracingError(
                f"the argument {path} of {function_name(function)} is of type {type(leaf).__name__}: an argument of a "
                f"traced function is a pytree of arrays and hashable values"
            ) from None


def function_name(function: Callable) -> str:
    return getattr(function, "__name__", None) or type(function).__name__


def argument_paths(function: Callable, arguments, kwargs) -> List[tuple]:
    """(text, leaf) for each leaf of a call's arguments, such as `state['a'][0]`."""
    found = []
    names = _positional_names(function)
    for i, one in enumerate(arguments):
        name = names[i] if i < len(names) else f"args[{i}]"
        found += [(name + tree_util.keystr(path), leaf) for path, leaf in tree_util.tree_leaves_with_path(one)]
    for name, one in sorted(kwargs.items()):
        found += [(name + tree_util.keystr(path), leaf) for path, leaf in tree_util.tree_leaves_with_path(one)]
    return found


def _positional_names(function: Callable) -> List[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]


def session_of(arrays) -> _session.Session:
    """The innermost that one of them belongs to."""
    sessions = [one.session for one in arrays if isinstance(one, Array)]
    if not sessions:
        return _session.current_session()
    found = max(sessions, key=lambda one: one._depth)
    for one in reversed(_session._tracing.traces):  # a function may use arrays of the trace around it
        if one._depth > found._depth and root(one) == root(found):
            return one
    return found


def trace(function: Callable, structure: Structure, specs, outer) -> Tuple[Template, Structure]:
    """The template of a call with arrays of these (shape, dtype), and the structure of what it returns."""
    tracer = Trace(outer)
    arrays = [wrap(tracer.input(shape, dtype)) for shape, dtype in specs]
    arguments, kwargs = unflatten(structure, iter(arrays))
    _session._tracing.traces.append(tracer)
    try:
        result = function(*arguments, **kwargs)
        leaves: list = []
        result_structure = flatten(result, leaves)
        nodes = []
        for leaf in leaves:
            node = node_of(leaf, tracer)
            # Results are separate arrays: a write to a view of an argument would change the argument.
            if (
                node.session is not tracer
                or node in tracer.inputs
                or node in nodes
                or node.buffer is not None
                or not node.deferred
                and not node.handle
            ):
                node = _copied(tracer, node)
            nodes.append(node)
        del result, arrays, arguments, kwargs, leaves
        for node in nodes:
            node.held = True
        tracer._flush(nodes)
        _fill_specs(tracer)
        outputs = [Spec(node.handle, node.shape, node.dtype) for node in nodes]
        template = Template(
            tracer.commands,
            [node.handle for node in tracer.inputs],
            list(tracer.captured.values()),
            outputs,
            tracer.specs,
            tracer.bodies,
        )
        for node in (*nodes, *tracer.inputs):
            node.handle = 0
        return template, result_structure
    finally:
        tracer.close()
        _session._tracing.traces.pop()


def _copied(tracer: Trace, node: Node) -> Node:
    """A copy that belongs to the trace, for a node of any session."""
    from stride import _dtypes
    from stride._graph import record

    def build(flush, result, operands):
        flush.operation(
            result.handle, result.origin, copy=pb.Copy(input=operands[0], data_type=_dtypes.NUMBERS[node.dtype])
        )

    return record(tracer, node.shape, node.dtype, build, (node,))


def _fill_specs(tracer: Trace) -> None:
    """Shapes of views without a node."""
    for command, _ in tracer.commands:
        view = command.operation.view if command.HasField("operation") and command.operation.HasField("view") else None
        if view is not None:
            handle = command.operation.outputs[0].handle
            if handle not in tracer.specs and view.input.handle in tracer.specs:
                shape, dtype = tracer.specs[view.input.handle]
                tracer.specs[handle] = (shape_of_view(shape, view.steps), dtype)


def shape_of_view(shape: tuple, steps) -> tuple:
    shape = tuple(shape)
    for step in steps:
        kind = step.WhichOneof("kind")
        if kind == "slice":
            one = step.slice
            axis = one.axis % len(shape)
            if one.index:
                shape = shape[:axis] + shape[axis + 1:]
            else:
                part = slice(
                    *(getattr(one, name) if one.HasField(name) else None for name in ("start", "stop", "step"))
                )
                shape = (*shape[:axis], len(range(*part.indices(shape[axis]))), *shape[axis + 1:])
        elif kind == "transpose":
            axes = list(step.transpose.axes) or range(len(shape) - 1, -1, -1)
            shape = tuple(shape[i] for i in axes)
        elif kind == "reshape":
            new = tuple(step.reshape.shape)
            if -1 in new:
                known = int(np.prod([n for n in new if n != -1]))
                new = tuple(int(np.prod(shape)) // known if n == -1 else n for n in new)
            shape = new
        else:
            shape = tuple(step.broadcast.shape)
    return shape


class Cache:
    """Templates by signature; the least recently used are dropped."""

    def __init__(self):
        self._templates: "OrderedDict[tuple, tuple]" = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._templates)

    def clear(self) -> None:
        with self._lock:
            self._templates.clear()

    def get(self, key: tuple, make: Callable):
        with self._lock:
            found = self._templates.get(key)
            if found is not None:
                if len(self._templates) > _MAX_TEMPLATES // 2:  # else none goes soon
                    self._templates.move_to_end(key)
                return found
        key = tuple([one.snapshot() if type(one) is Structure else one for one in key])
        found = make()
        with self._lock:
            self._templates[key] = found
            while len(self._templates) > _MAX_TEMPLATES:
                self._templates.popitem(last=False)
        return found


def prepared(leaf, session) -> Node:
    """The node of an argument, contiguous as traced inputs are."""
    node = node_of(leaf, session)
    if node.strides is not None and node.strides != _inference.contiguous_strides(node.shape):
        node = _casts.copy(wrap(node) if not isinstance(leaf, Array) else leaf)._node
    return node


def root(session) -> tuple:
    """The identity of a session, unique among those that exist."""
    while session._is_trace:
        session = session.outer
    return session.address, session.name
