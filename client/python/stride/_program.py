"""Templates registered with the daemon (ProgramService): a replay is one small command, and on a device one launch.

A template becomes a program if a program can contain all its operations: values from the host and captured
arrays become inputs, and it writes only arrays that it made. Any other template, or one that the daemon
refuses, is replayed command by command."""

import collections.abc
import hashlib
from typing import Dict, List, NamedTuple, Optional, Set

from stride import _dtypes, _errors
from stride._array import wrap
from stride._graph import record
from stride._named import _full
from stride.v1 import operation_pb2 as pb, program_service_pb2 as proto, program_service_pb2_grpc

# The service's limits are 500 operations, 256 inputs and 64 outputs.
_MAX_OPERATIONS, _MAX_INPUTS, _MAX_OUTPUTS = 500, 256, 64
# Programs of deleted templates are deleted in batches of this size, after a synchronization, since calls may
# be in flight.
_MAX_DEAD = 100


class Constant(NamedTuple):
    handle: int
    operation: pb.Operation  # that uploads it


class Part(NamedTuple):
    """A program for any session, and the template's handles of its inputs and outputs."""

    program: proto.Program
    inputs: List[int]
    outputs: List[int]
    id: str  # hash of the content


class Plan(NamedTuple):
    """The programs of a template, one after another; more than one where it has more operations than a program may."""

    parts: List[Part]
    constants: List[Constant]
    releases: List[List[int]]  # handles that no part after this one reads, for each part


def plan(template, device: str) -> Optional[Plan]:
    """The programs of a template. None: it must be replayed command by command. `device`: the session's,
    which the call passes."""
    outputs = [one.handle for one in template.outputs]
    commands = [(operation, paths) for operation, paths, _ in template.commands if operation is not None]
    # One command is as small as a call, but only programs have loops and branches.
    if not outputs or len(commands) < 2 and not template.has_bodies:
        return None
    writes = any(one.HasField("kernel_launch") or any(output.existing for output in one.outputs) for one, _ in commands)
    constants: List[Constant] = []
    operations: List[pb.Operation] = []
    made: Set[int] = set()
    last = max((handle for _, paths in commands for _, handle in paths), default=0)
    last = max((last, *template.inputs, *(handle for _, handle in template.captured)))
    for operation, paths in commands:
        if operation.device not in ("", device) or operation.priority or operation.copy.move:
            return None
        if operation.copy.input.HasField("inline_array"):
            constant = Constant(operation.outputs[0].handle, operation)
            if not writes and constant.handle not in outputs:
                constants.append(constant)
                continue
            # It may be written, or is a result: each call has its own.
            source = last + len(constants) + 1
            constants.append(Constant(source, operation))
            operation = pb.Operation(
                copy=pb.Copy(input=pb.Operand(handle=source)), outputs=[pb.Output(handle=constant.handle)]
            )
        elif _has_inline(operation) or any(one.existing and one.handle not in made for one in operation.outputs):
            return None
        made.update(output.handle for output in operation.outputs)
        made.update(
            one.new_array.output.handle for one in operation.kernel_launch.arguments if one.HasField("new_array")
        )
        operations.append(operation)
    if not set(outputs) <= made:
        return None
    given = [*template.inputs, *(handle for _, handle in template.captured), *(one.handle for one in constants)]
    if len(operations) <= _MAX_OPERATIONS and len(given) <= _MAX_INPUTS and len(outputs) <= _MAX_OUTPUTS:
        return Plan([_part(operations, given, outputs)], constants, [[]])
    if len(operations) <= _MAX_OPERATIONS:
        return None
    from stride import _program_parts

    ranges = _program_parts.parted(operations, outputs, _MAX_OPERATIONS, _MAX_INPUTS, _MAX_OUTPUTS)
    if ranges is None:
        return None
    parts = [_part(*one) for one in ranges]
    return Plan(parts, constants, _releases(parts, outputs))


def _releases(parts: List[Part], outputs: List[int]) -> List[List[int]]:
    last = {handle: i for i, part in enumerate(parts) for handle in (*part.outputs, *part.inputs)}
    made = {handle for part in parts for handle in part.outputs}.difference(outputs)
    return [sorted(handle for handle in made if last[handle] == i) for i in range(len(parts))]


def _part(operations: List[pb.Operation], inputs: List[int], outputs: List[int]) -> Part:
    """Renumbers the handles, so that equal parts share one program."""
    from stride._trace import at, handles_in

    numbers: Dict[int, int] = {}
    program = proto.Program()
    for handle in inputs:
        program.inputs.add(handle=numbers.setdefault(handle, len(numbers) + 1))
    for operation in operations:
        new = program.operations.add()
        new.CopyFrom(operation)
        new.ClearField("device")
        for path, handle in handles_in(operation):
            at(new, path).handle = numbers.setdefault(handle, len(numbers) + 1)
    program.outputs.extend(numbers[one] for one in outputs)
    content = hashlib.sha256(program.SerializeToString(deterministic=True)).hexdigest()[:24]
    return Part(program, inputs, outputs, content)


def _has_inline(message) -> bool:
    """Whether an operand is neither a handle nor a number."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            parts = value.values() if hasattr(value, "GetEntryClass") else ()
        else:
            parts = value if isinstance(value, collections.abc.Sequence) or hasattr(value, "add") else (value,)
        for part in parts:
            if isinstance(part, pb.Operand):
                if part.WhichOneof("source") not in ("handle", "scalar"):
                    return True
            elif hasattr(part, "ListFields") and _has_inline(part):
                return True
    return False


def upload(session, constant: Constant):
    """An array with a constant's values, in the session."""
    spec = constant.operation.copy.input.inline_array.spec
    shape, dtype = tuple(spec.shape), _dtypes.dtype_numbered(spec.data_type)

    def build(flush, node, operands):
        flush.operation(node.handle, node.origin, copy=constant.operation.copy)

    return wrap(record(session, shape, dtype, build, ()))


class Programs:
    """The programs that one session has registered. Thread-safe."""

    def __init__(self, session):
        self._session = session
        self._known: Dict[str, int] = {}  # by content: how many templates use it
        self.dead: List[str] = []  # contents of templates that went; appended to by any thread
        self._stub = None

    def register(self, made: Part) -> str:
        """The program's resource name. Raises StrideError when the daemon refuses the program."""
        session = self._session
        name = self._name(made.id)
        if made.id not in self._known:
            self._sweep()
            try:
                session._call(
                    self._service().CreateProgram, proto.CreateProgramRequest(program_id=name, program=made.program)
                )
            except _errors.AlreadyExists:
                pass  # registered by this session: the name contains session and content
        self._known[made.id] = self._known.get(made.id, 0) + 1
        return _full(session, name, "programs")

    def _name(self, content: str) -> str:
        # With the session's id in front, the daemon deletes it with the session.
        return f"{self._session.name.rpartition('/')[2]}.{content}"

    def _service(self):
        if self._stub is None:
            self._stub = program_service_pb2_grpc.ProgramServiceStub(self._session._channels.control)
        return self._stub

    def _sweep(self) -> None:
        if len(self.dead) < _MAX_DEAD:
            return
        dead, self.dead = self.dead, []
        for one in dead:
            self._known[one] -= 1
        gone = [one for one in set(dead) if self._known[one] <= 0]
        if not gone:
            return
        self._session.synchronize()
        for one in gone:
            self._delete(one)

    def _delete(self, content: str) -> None:
        self._known.pop(content, None)
        try:
            self._session._call(
                self._service().DeleteProgram,
                proto.DeleteProgramRequest(name=_full(self._session, self._name(content), "programs")),
            )
        except _errors.StrideError:
            pass


def programs_of(session) -> Programs:
    if session._programs is None:
        session._programs = Programs(session)
    return session._programs
