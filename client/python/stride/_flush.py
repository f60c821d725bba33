"""How a flush turns recorded values into commands."""

from typing import Dict, Iterable, List, Optional, Tuple, Union

import numpy as np

from stride import _dtypes, _encoding
from stride._graph import INLINE_BYTES, Assembly, Node, Prepared, _empty, _is_returned, spec_of
from stride._numbers import Number
from stride._stream import Note, Piece, cut, has_arrays
from stride._views import View, _encoded_steps
from stride.v1 import array_pb2, compute_service_pb2, operation_pb2 as pb

# Input arrays of one kernel: the daemon's limit is 64 with the result. The limit of numbers is separate, and
# a chain of MAX_WEIGHT cannot reach it.
_MAX_ARRAYS = 63
# Number of commands that carry a value of the host before it is uploaded for later ones.
_MAX_INLINE_USES = 2
# Launches of several codes, and other serialised commands, travel as one piece up to this size.
_MAX_LAUNCH_BYTES = 256 << 10
_MAX_PIECE_BYTES = 512 << 10
_MAX_PIECE_COMMANDS = 900
# A recorded value used twice is computed twice, in two expressions, only when that is as cheap as reading it.
_MAX_REPEATED_WEIGHT = 2


class Flush:
    """One pass that makes commands of nodes, inputs first. Caller holds the session's lock."""

    def __init__(self, session):
        self.session = session
        # The message that is sent: copying a command costs more than writing it.
        self.request = compute_service_pb2.ExecuteRequest()
        self.commands = self.request.commands
        self.notes = {}
        # The last command of `begin`: the number of commands up to it, its handle, its output and its note.
        self._begun: tuple = (0, 0, None, None)
        self._scratch: List[int] = []
        self.pieces: List[Piece] = []  # commands before those of the request, serialised
        # Serialised commands after the pieces, their bytes, and for each kernel's code the position of the
        # launch that has it. They travel in one message.
        self._serialised: List[bytes] = []
        self._serialised_bytes = 0
        self._code_places: Dict[bytes, int] = {}
        # Whether operations are added as messages: a trace keeps these, and a read changes the last.
        self._as_messages = session._is_trace
        self.num_launches = 0
        self.is_urgent = False  # has a command that must not be held
        self.has_long = False  # has an operation that keeps the device at work
        # First, so that new arrays may reuse the memory of deleted ones.
        self._release([])

    def __bool__(self) -> bool:
        """True if there are commands to send."""
        return bool(self.pieces or self._serialised or self.commands)

    def seal(self) -> None:
        """Serialises the commands so far; later ones follow as bytes."""
        self._end_serialised()
        if self.commands:
            self.pieces += cut(self.request)
            self.request = compute_service_pb2.ExecuteRequest()
            self.commands = self.request.commands
            self._begun = 0, 0, None, None

    def begin(
        self, handle: int, origin, prepared: Optional[pb.Operation] = None, existing: bool = False
    ) -> pb.Operation:
        """Adds a command, as a message, that makes `handle`, or with `existing` writes into it. The caller
        sets its kind, which is not a view, and must not fail after that, because the command is sent in any
        case. `prepared` is copied."""
        session, commands = self.session, self.commands
        command_id = session._next_id()
        command = commands.add()
        command.id = command_id
        operation = command.operation
        if prepared is not None:
            operation.CopyFrom(prepared)
        output = operation.outputs.add()
        output.handle = handle
        if existing:
            output.existing = True
        if session.device:
            operation.device = session.device
        note = self.notes[command_id] = Note(None, origin, operation)
        self._begun = len(commands), handle, output, note
        return operation

    def operation(self, handle: int, origin, **kind) -> None:
        """Adds a command with this kind; its output is `handle`, 0 for none."""
        (name, message), = kind.items()
        if handle and not self._as_messages:
            content = _encoding.kind_tag(name) + _encoding.framed(message.SerializeToString())
            content = _encoding.operation_with(content, handle, self.session.device if name != "view" else "")
            self._add_operation(content, origin)
            return
        command_id = self.session._next_id()
        operation = self.commands.add(id=command_id).operation
        getattr(operation, name).CopyFrom(message)
        if handle:
            operation.outputs.add(handle=handle)
        if self._is_placed(operation):
            operation.device = self.session.device
        self.notes[command_id] = Note(None, origin, operation)

    def encode(self, template: "_encoding.OperationTemplate", inputs: bytes, handle: int, origin,
               existing: bool = False, is_placed: bool = True) -> None:
        """Adds a command that makes `handle`, or with `existing` writes into it. `inputs`: the fields that the template
        lacks, serialised. `is_placed`: it runs on the session's device."""
        session, varint = self.session, _encoding.varint
        command_id = session._next_id()
        device = session.device if is_placed else ""
        command = template.command(varint(command_id), inputs, varint(handle), device, existing)
        self._add_serialised(command)
        self.notes[command_id] = Note(None, origin, command)

    def _add_operation(self, content: bytes, origin) -> None:
        """Adds a command with this serialised field, an operation."""
        command_id = self.session._next_id()
        command = _encoding.command(command_id, content)
        self._add_serialised(command)
        self.notes[command_id] = Note(None, origin, command)

    def ask(self, content: bytes, answer) -> None:
        """Adds a command other than an operation, serialised without its id, and awaits its answer."""
        command_id = self.session._next_id()
        self._add_serialised(_encoding.command(command_id, content))
        self.notes[command_id] = Note(answer)

    def add(self, operation: pb.Operation, origin, launch=None, written=()) -> None:
        """`launch`: the kernel's identity for CommandStream.launched. The daemon answers a kernel's first launch when
        it is done, and the commands after it later. It answers every launch of a kernel without arrays like this, since
        no array could report the fault. `written`: the buffers of a launch's arrays."""
        wait = launch is not None and (launch not in self.session._stream.launched or not has_arrays(operation))
        command_id = self.session._next_id()
        is_placed = self._is_placed(operation)
        recorded: Union[pb.Operation, bytes]
        if self._as_messages:
            recorded = self.commands.add(id=command_id, operation=operation, wait=wait).operation
            if is_placed:
                recorded.device = self.session.device
        else:
            content = operation.SerializeToString()
            if is_placed:
                content += _encoding.device_field(self.session.device)
            recorded = _encoding.command(command_id, _encoding.operation(content, wait))
            self._add_serialised(recorded)
        self.notes[command_id] = Note(None, origin, recorded, launch if wait else None, written)

    def add_launch(self, template: "_encoding.LaunchTemplate", arguments: bytes, origin, launch, written) -> None:
        """Adds a launch with these serialised arguments. `launch`, `written`: as of `add`; `written` names all arrays
        that it has. No `launch`: the kernel is known to have been launched before."""
        session = self.session
        if session._is_trace:
            request = compute_service_pb2.ExecuteRequest.FromString(template.command(0, arguments, False, 0))
            self.add(request.commands[0].operation, origin, launch, written)
            return
        wait = not written or launch is not None and launch not in session._stream.launched
        if wait:
            self.is_urgent = True
        command_id, code = session._next_id(), template.code
        if self.commands:
            self.seal()
        elif code not in self._code_places and self._serialised_bytes + len(code) > _MAX_LAUNCH_BYTES:
            self._end_serialised()
        place = len(self._serialised)
        command = template.command(command_id, arguments, wait, place - self._code_places.setdefault(code, place))
        self._serialised.append(command)  # as of `_add_serialised`, whose call costs more
        self._serialised_bytes += len(command)
        if place + 1 >= _MAX_PIECE_COMMANDS:
            self._end_serialised()
        self.num_launches += 1
        self.notes[command_id] = Note(None, origin, command, launch if wait else None, written)

    def _add_serialised(self, command: bytes) -> None:
        if self.commands:
            self.seal()
        serialised = self._serialised
        serialised.append(command)
        self._serialised_bytes += len(command)
        if len(serialised) >= _MAX_PIECE_COMMANDS or self._serialised_bytes >= _MAX_PIECE_BYTES:
            self._end_serialised()

    def _end_serialised(self) -> None:
        if self._serialised:
            self.pieces.append((b"".join(self._serialised), len(self._serialised)))
            self._serialised, self._serialised_bytes, self._code_places = [], 0, {}

    def _is_placed(self, operation: pb.Operation) -> bool:
        """Whether the operation, which names no device, runs on the session's."""
        return bool(self.session.device) and not operation.device and operation.WhichOneof("kind") != "view" and \
            not any(output.HasField("sharding") for output in operation.outputs)

    def read(self, node: Node, answer) -> None:
        """Adds the command that answers with the elements. A few elements return with the command that
        computes them, if it is unsent: the worker writes them to memory that the daemon reads, without a
        handle, device memory or a fetch. The value stays deferred until they arrive, so that it can be read
        again after an error."""
        session = self.session
        if node.op is not None and _is_returned(node) and node.session is session and node.device == session.device:
            handle = self.session._next_id()
            self._as_messages = True
            try:
                self._compute(node, handle)
            finally:
                self._as_messages = session._is_trace
            if self._return(handle, answer):
                node.handle = 0
                return
            node.sent(handle)
        self.fetch(self.materialise(node), answer)

    def _return(self, handle: int, answer) -> bool:
        """Makes the last command return this array, if that command alone makes it. True on success."""
        if not self.commands:
            return False
        count, begun, output, note = self._begun
        if begun != handle or count != len(self.commands):
            command = self.commands[-1]
            operation = command.operation
            if len(operation.outputs) != 1 or operation.HasField("view") or operation.HasField("program_call"):
                return False
            output, note = operation.outputs[0], self.notes[command.id]
            if output.handle != handle or output.existing or output.HasField("sharding"):
                return False
        output.inline_result = True
        note.answer = answer
        return True

    def fetch(self, handle: int, answer) -> None:
        self.ask(_encoding.fetch(handle), answer)

    def scratch(self) -> int:
        """A handle that is released when the flush ends."""
        handle = self.session._next_id()
        self._scratch.append(handle)
        return handle

    def view(self, handle: int, view: View, origin) -> int:
        """A view of an array by its handle: a handle that is released when the flush ends."""
        result = self.scratch()
        self._add_view(handle, (view,), result, origin)
        return result

    def note_long(self) -> None:
        """Counts the last operation as a launch, because it keeps the device busy. Later operations may reuse
        the memory of deleted arrays."""
        self.num_launches += 1
        self.has_long = True
        self._release([])

    def finish(self) -> None:
        self._release(self._scratch)
        self._scratch = []
        self._end_serialised()

    def take(self) -> Tuple[compute_service_pb2.ExecuteRequest, Dict[int, Note], List[Piece]]:
        """Removes and returns the commands after `finish`, for CommandStream.send. The flush is then empty
        and reusable."""
        taken = self.request, self.notes, self.pieces
        self.request = compute_service_pb2.ExecuteRequest()
        self.commands = self.request.commands
        self.notes, self.pieces = {}, []
        self._begun = 0, 0, None, None
        self.num_launches, self.is_urgent, self.has_long = 0, False, False
        return taken

    def _release(self, handles: List[int]) -> None:
        """Adds the release of these handles, which it changes, and of those without a Python object."""
        released = self.session._released
        while released:
            handles.append(released.popleft())
        if not handles:
            return
        command_id = self.session._next_id()
        if self._as_messages:
            self.commands.add(id=command_id).release.handles.extend(handles)
        else:
            self._add_serialised(_encoding.command(command_id, _encoding.release(handles)))

    def operand(self, one: Union[Node, Number]) -> pb.Operand:
        if type(one) is Number:
            return pb.Operand(scalar=one.to_proto())
        return pb.Operand(handle=self.materialise(one))

    def materialise(self, node: Node) -> int:
        """The handle of a node. Adds a command that computes it unless there is one."""
        if node.session is not self.session:
            return self.session._foreign(node)
        if node.handle:
            buffer = node.buffer
            if buffer is not None and buffer.copy is not None:
                buffer.copy.write_back(self, buffer)
            return node.handle
        handle = self.session._next_id()
        if node.op is None:
            if node.buffer is not None and node.buffer.copy is not None:
                node.buffer.copy.uploaded()
            self._upload(node, handle)
        else:
            self._compute(node, handle)
        node.sent(handle)
        return handle

    def _compute(self, node: Node, handle: int) -> None:
        op = node.op
        if type(op) is str:
            self._elementwise(node, handle)
            return
        if type(op) is Prepared:
            if op.computes and self._only_reduced(node.inputs[0]):
                self._reduce_expression(node, op, handle)
                return
            handles = list(map(self.materialise, node.inputs))
            if self._as_messages:
                op.fill(self.begin(handle, node.origin, op.operation), handles)
            else:
                self.encode(op.template, op.encoded(handles), handle, node.origin)
            return
        if type(op) is View:
            self._view(node, op, handle)
            return
        if type(op) is Assembly:
            self._assemble(node, op, handle)
            return
        node.handle = handle  # for builders that write into it
        try:
            op(self, node, [self.operand(one) for one in node.inputs])
        except BaseException:
            node.handle = 0
            raise

    def _only_reduced(self, root: Node) -> bool:
        """Whether a reduction of `root` computes its elements: `root` is an expression that has no other
        reader and fits one kernel. The daemon fuses traced operations."""
        if type(root.op) is not str or root.held or root.uses > 1 or root.buffer is not None:
            return False
        session = self.session
        return root.session is session and not session._is_trace and self._num_arrays(root, root) <= _MAX_ARRAYS

    def _num_arrays(self, node: Node, root: Node) -> int:
        """Arrays that the expression of `root` reads below `node`, with repetitions."""
        return sum(
            self._num_arrays(one, root) if self._fuses(one, root) else 1 for one in node.inputs if type(one) is Node
        )

    def _reduce_expression(self, node: Node, op: Prepared, handle: int) -> None:
        text, inputs, origins = self._expression(node.inputs[0])
        if not self._as_messages:
            encoded = _encoding.framed(self._encoded_expression(text, inputs))
            self.encode(op.template, _encoding.REDUCED_EXPRESSION + encoded, handle, [node.origin, *origins])
            return
        reduction = self.begin(handle, [node.origin, *origins], op.operation).reduction
        self._write_expression(reduction.expression, text, inputs)

    def _assemble(self, node: Node, op: Assembly, handle: int) -> None:
        sources: List[Union[Node, Number, int]] = [
            one if type(one) is Number or self._is_made_in_place(one, node) else self.materialise(one)
            for one in node.inputs
        ]
        origin = node.origin
        self.make_empty(node, handle, op.is_zeroed)
        try:
            for source, part in zip(sources, op.parts):
                self._fill_part(source, self.view(handle, part, origin), origin)
        except BaseException:
            self._scratch.append(handle)  # already sent in part, and of no use
            raise

    def make_empty(self, node: Node, handle: int, is_zeroed: bool = False) -> None:
        """Makes an array like `node` for later commands to write."""
        made = _empty(_dtypes.NUMBERS[node.dtype], node.shape, is_zeroed)
        if self._as_messages:
            self.begin(handle, node.origin, made.operation)
        else:
            self.encode(made.template, b"", handle, node.origin)

    def copy_into(self, source: Union[Number, int], target: int, origin) -> None:
        """Copies a number, or an array by its handle, into the array of the handle `target`."""
        if self._as_messages:
            copy = self.begin(target, origin, existing=True).copy
            if type(source) is Number:
                copy.input.scalar.CopyFrom(source.to_proto())
            else:
                copy.input.handle = source
            return
        operand = _encoding.number_operand(source) if type(source) is Number else _encoding.handle_operand(source)
        self.encode(_encoding.COPY, _encoding.COPY_INPUT + operand, target, origin, True)

    def _fill_part(self, source: Union[Node, Number, int], view: int, origin) -> None:
        """Writes a value into a view: an elementwise value, which is computed in place, a number, or an array
        by handle."""
        if type(source) is Node:
            self._elementwise(source, view, True)
        else:
            self.copy_into(source, view, origin)

    def _is_made_in_place(self, part: Node, whole: Node) -> bool:
        """Whether a part of an Assembly is computed in its destination, since it has no other reader."""
        session = self.session
        return (type(part.op) is str and not part.held and part.uses == 1 and part.dtype == whole.dtype
                and part.session is session and not session._is_trace and not session._has_sharded)

    def _view(self, node: Node, op: View, handle: int) -> None:
        origin, chain = node.origin, [op]
        base = node.inputs[0]
        while type(base.op) is View and base.session is self.session:
            chain.append(base.op)
            base = base.inputs[0]
        self._add_view(self.materialise(base), reversed(chain), handle, origin)

    def _add_view(self, base: int, views: Iterable[View], handle: int, origin) -> None:
        if not self._as_messages:
            inputs = _encoding.VIEW_INPUT + _encoding.handle_operand(base) + _encoded_steps(tuple(views))
            self.encode(_encoding.VIEW, inputs, handle, origin, is_placed=False)
            return
        command_id = self.session._next_id()
        command = self.commands.add()
        command.id = command_id
        operation = command.operation
        operation.view.input.handle = base
        for one in views:
            one.write(operation.view.steps)
        operation.outputs.add().handle = handle
        self.notes[command_id] = Note(None, origin, operation)

    def _upload(self, node: Node, handle: int) -> None:
        inline = array_pb2.InlineArray(spec=spec_of(node), data=node.host.tobytes())
        self.operation(handle, node.origin, copy=pb.Copy(input=pb.Operand(inline_array=inline)))

    def _inline(self, node: Node) -> Optional[bytes]:
        """An Operand with the elements of a small value of the host, which travel within the command that reads them.
        None if the value has or needs a handle: it was read often enough, or is too large."""
        if node.handle or node.op is not None or node.host is None or self.session._is_trace:
            return None
        num_inline = getattr(node, "num_inline", 0)
        if num_inline >= _MAX_INLINE_USES or node.session is not self.session or node.buffer is not None:
            return None
        host = node.host
        if not 0 < host.nbytes <= INLINE_BYTES or node.device != self.session.device:
            return None
        node.num_inline = num_inline + 1
        inline = array_pb2.InlineArray(spec=spec_of(node), data=host.tobytes())
        return pb.Operand(inline_array=inline).SerializeToString()

    def _elementwise(self, node: Node, handle: int, existing: bool = False) -> None:
        """`existing`: the array of the handle is overwritten."""
        for one in node.inputs:
            if type(one) is Node and one.op is not None:  # otherwise there is nothing to fuse
                text, inputs, origins = self._expression(node)
                if len(inputs) > _MAX_ARRAYS and sum(type(one) is not Number for one in inputs.values()) > _MAX_ARRAYS:
                    self._split(node, node)
                    text, inputs, origins = self._expression(node)
                if len(origins) == 1:
                    break
                if self._as_messages:
                    self._write_expression(self.begin(handle, origins, existing=existing).expression, text, inputs)
                else:
                    encoded = self._encoded_expression(text, inputs)
                    self.encode(_encoding.EXPRESSION, encoded, handle, origins, existing)
                return
        if self._as_messages:
            self._ufunc(node, handle, existing)
            return
        session, inputs = self.session, b""
        for one in node.inputs:
            if type(one) is Number:
                operand = _encoding.number_operand(one)
            else:
                # As `materialise` does, whose call costs more.
                read = one.handle if one.buffer is None and one.session is session else 0
                inline = None if read else self._inline(one)
                operand = _encoding.handle_operand(read or self.materialise(one)) if inline is None else \
                    _encoding.framed(inline)
            inputs += _encoding.UFUNC_INPUT + operand
        self.encode(_encoding.ufunc_templates[node.op], inputs, handle, node.origin, existing)

    def _ufunc(self, node: Node, handle: int, existing: bool) -> None:
        """A single function, as a message."""
        operands = [
            one.to_proto() if type(one) is Number else self._inline(one) or self.materialise(one)
            for one in node.inputs
        ]
        ufunc = self.begin(handle, node.origin, existing=existing).ufunc
        ufunc.function = node.op
        add = ufunc.inputs.add
        for one in operands:
            if type(one) is int:
                add().handle = one  # copying an Operand costs more
            elif type(one) is bytes:
                add().MergeFromString(one)
            else:
                add().scalar.CopyFrom(one)

    @staticmethod
    def _encoded_expression(text: str, inputs: dict) -> bytes:
        return _encoding.expression(text, {
            name: _encoding.handle_operand(one) if type(one) is int else
            _encoding.framed(one) if type(one) is bytes else _encoding.number_operand(one)
            for name, one in inputs.items()
        })

    @staticmethod
    def _write_expression(expression: pb.Expression, text: str, inputs: dict) -> None:
        expression.text = text
        fields = expression.inputs
        for name, one in inputs.items():
            if type(one) is int:
                fields[name].handle = one
            elif type(one) is bytes:
                fields[name].MergeFromString(one)
            else:
                fields[name].scalar.CopyFrom(one.to_proto())

    def _expression(self, node: Node) -> tuple:
        """Text, inputs and origins of the nodes that are fused with this one. An input is a handle, a serialised
        Operand or a Number."""
        inputs: dict = {}
        origins = [node.origin]
        return self._text(node, node, {}, inputs, origins, True), inputs, origins

    def _split(self, node: Node, root: Node) -> set:
        """Materialises parts of the expression of `root` below `node` until it reads no more arrays than one
        kernel may. Returns their handles."""
        parts = []
        for one in node.inputs:
            if type(one) is Node:
                parts.append((self._split(one, root) if self._fuses(one, root) else {self.materialise(one)}, one))
        handles = set().union(*(read for read, _ in parts))
        while len(handles) > _MAX_ARRAYS:
            largest = max(range(len(parts)), key=lambda i: len(parts[i][0]))
            parts[largest] = {self.materialise(parts[largest][1])}, parts[largest][1]
            handles = set().union(*(read for read, _ in parts))
        return handles

    def _text(self, node: Node, root: Node, names, inputs, origins, is_root=False) -> str:
        if not is_root:
            if not self._fuses(node, root):
                name = names.get(node)
                if name is not None:
                    return name
                inline = self._inline(node)
                if inline is not None:
                    name = names[node] = f"a{len(inputs)}"
                    inputs[name] = inline
                    return name
                handle = self.materialise(node)
                name = names.get(handle)
                if name is None:
                    name = names[handle] = f"a{len(inputs)}"
                    inputs[name] = handle
                return name
            origins.append(node.origin)
        arguments = []
        for one in node.inputs:
            if type(one) is Number:
                arguments.append(self._number(one, names, inputs))
            else:
                arguments.append(self._text(one, root, names, inputs, origins))
        return f"{node.op}({', '.join(arguments)})"

    @staticmethod
    def _number(number: Number, names, inputs) -> str:
        """The name of a scalar input. Equal scalars share a name; zeros with different signs do not, also as
        parts of complex numbers."""
        key = (
            (number.type, number.value)
            if number.value and not isinstance(number.value, (complex, np.complexfloating))
            else None
        )
        name = names.get(key) if key is not None else None
        if name is None:
            name = f"s{len(inputs)}"
            inputs[name] = number
            if key is not None:
                names[key] = name
        return name

    @staticmethod
    def _fuses(node: Node, root: Node) -> bool:
        return (type(node.op) is str and not node.held and node.shape == root.shape and node.session is root.session
                and (node.uses <= 1 or node.weight <= _MAX_REPEATED_WEIGHT))
