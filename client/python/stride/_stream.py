"""The pipelined stream of commands of one session."""

import collections.abc
import itertools
import queue
import threading
import time
from collections import deque
from concurrent.futures import Future, InvalidStateError
from typing import Callable, Deque, Dict, Iterator, List, Optional, Sequence, Set, Tuple, Union

from stride import _errors
from stride._grpc_connection import GrpcConnection
from stride._local_connection import LocalConnection, LocalConnections
from stride.v1 import compute_service_pb2 as pb, operation_pb2

Piece = Tuple[bytes, int]  # serialised ExecuteRequest.commands, and how many they are

# The contract's limits are 1,000 commands and 4 MiB a message.
_MAX_COMMANDS = 900
_MAX_BYTES = 3 << 20
# `send` waits at this many outstanding answers, which bounds memory on both sides when a program records
# faster than devices work.
_MAX_IN_FLIGHT = 20_000
# A waiting `send` continues at this many outstanding answers. A smaller gap would send commands one by one.
_FEW_IN_FLIGHT = _MAX_IN_FLIGHT // 2
# Number of handles of refused operations that are kept, to name the line that caused an error when it is
# read.
_MAX_REFUSED = 10_000
# Polling interval of a thread that waits to send while another thread reads.
_ROOM_SECONDS = 0.01
_AT_ONCE = 0.0  # a deadline
_CLOSE_SECONDS = 5


class Answer:
    """The answer to a command: once `done`, a CommandResult or the error."""

    __slots__ = ("done", "result", "error", "future", "origin")

    def __init__(self):
        self.done = False
        self.result: Optional[pb.CommandResult] = None
        self.error: Optional[_errors.StrideError] = None
        self.future: Optional[Future] = None  # notified too; see CommandStream.future_of
        self.origin: object = None  # origin of the operation that caused this one to fail


class Note:
    """State of a command until its answer. Immutable once the command is sent."""

    __slots__ = ("answer", "origin", "_operation", "launch", "written", "thread")

    def __init__(
        self,
        answer: Optional[Answer] = None,
        origin: object = None,
        operation: Union[operation_pb2.Operation, bytes, None] = None,
        launch: object = None,
        written: Sequence = (),
    ):
        self.answer = answer  # held by the waiting thread
        self.origin = origin  # the line that recorded the operation
        self._operation = operation  # its serialised command, where that was encoded from a template
        self.launch = launch  # key in CommandStream.launched once it is done
        self.written = written  # buffers of a launch's arrays
        self.thread = threading.get_ident() if written else 0  # the launching thread

    @property
    def operation(self) -> Optional[operation_pb2.Operation]:
        """Parsed only for an error."""
        operation = self._operation
        if isinstance(operation, bytes):
            return pb.ExecuteRequest.FromString(operation).commands[0].operation
        return operation

    @property
    def has_operation(self) -> bool:
        return self._operation is not None


class LaunchFailure:
    """A launch that failed, the line and the thread that made it, and the buffers of its arrays."""

    def __init__(self, status, note: Note):
        self.status, self.origin, self.thread, self.buffers = status, note.origin, note.thread, note.written

    def concerns(self, buffer) -> bool:
        """True if the array with this buffer is one of the launch's arrays, if it has any. The launching thread may
        have computed any other array from these."""
        return not self.buffers or self.thread == threading.get_ident() or any(one is buffer for one in self.buffers)


def _handles(message) -> Iterator[int]:
    """All handles that an operation reads or writes in place."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            parts = value.values()
        else:
            parts = value if isinstance(value, collections.abc.Sequence) or hasattr(value, "add") else (value,)
        for part in parts:
            if isinstance(part, operation_pb2.Operand):
                yield part.handle
            elif hasattr(part, "ListFields"):
                yield from _handles(part)


def has_arrays(operation: operation_pb2.Operation) -> bool:
    """True if an array of the operation can carry an error."""
    return any(_handles(operation))


def cut(request: pb.ExecuteRequest) -> List[Piece]:
    """The request's commands, serialised in pieces within the limits of a message."""
    commands = request.commands
    if not commands:
        return []
    if len(commands) <= _MAX_COMMANDS:
        whole = pb.ExecuteRequest(commands=commands).SerializeToString() if request.session \
            else request.SerializeToString()
        if len(whole) <= _MAX_BYTES:
            return [(whole, len(commands))]
    pieces, begin, size = [], 0, 0
    for i, command in enumerate(commands):
        num_bytes = command.ByteSize()
        if i > begin and (i - begin >= _MAX_COMMANDS or size + num_bytes > _MAX_BYTES):
            pieces.append((pb.ExecuteRequest(commands=commands[begin:i]).SerializeToString(), i - begin))
            begin, size = i, 0
        size += num_bytes
    pieces.append((pb.ExecuteRequest(commands=commands[begin:]).SerializeToString(), len(commands) - begin))
    return pieces


class CommandStream:
    """Owns one Execute call, opened by the first `send` and again after it broke: over a local connection
    where there is one, else by gRPC.

    Any thread may call. `send` blocks while very many answers are outstanding, and while a local connection
    has no room. A thread that waits for an answer reads those of a local connection for all waiting threads
    (`_until`), which saves a switch of threads; a separate thread reads gRPC's. An answer is a CommandResult,
    or a StrideError when the call broke."""

    _numbers = itertools.count(1)

    def __init__(self, stub, session: str, local: Optional[LocalConnections] = None):
        self.number = next(self._numbers)  # unique among the streams of this process
        self._stub = stub
        self._session = session
        self._prefix = pb.ExecuteRequest(session=session).SerializeToString()
        self._local = local
        self._writing = threading.RLock()  # held to open a connection and to send; acquired before `_lock`
        self._lock = threading.Lock()  # guards the following members
        # signals answers, the end of the call, and that no thread reads
        self._changed = threading.Condition(self._lock)
        self._num_waiting = 0  # threads that wait for it
        self._connection: Union[LocalConnection, GrpcConnection, None] = None
        self._waiting: Dict[int, Note] = {}  # outstanding commands, by id
        self._refused: Dict[int, object] = {}  # by handle, the origin of the error that it carries
        # Launches that have completed: code, variables, types of arguments. The daemon checks a further
        # launch of one of these at once.
        self.launched: set = set()
        self._failures: List[LaunchFailure] = []  # not yet raised by a read
        self._closed = False
        self._watched: Set[Answer] = set()  # outstanding, with futures
        self._told: Deque[Answer] = deque()  # with futures to resolve
        self._watcher: Optional[threading.Thread] = None
        self._to_watch: queue.SimpleQueue = queue.SimpleQueue()  # wakes it

    @property
    def transport(self) -> str:
        """`local` or `grpc`; opens the call where it is not open."""
        with self._writing:
            return (self._connection or self._open()).transport

    # --- sending ---

    def send(self, request: pb.ExecuteRequest, notes: Dict[int, Note], pieces: Sequence[Piece] = ()) -> None:
        """`notes` are by command id; a command without one expects no answer. The stream takes ownership of
        the request. `pieces`: serialised commands to send before it."""
        with self._writing:
            connection = self._put(self._joined(pieces, request) if pieces else self._messages(request), notes)
            try:
                if not connection.flush():
                    self._until(connection.flush, or_room=True)
            except OSError:
                # The daemon has closed its side; messages received before give the reason.
                connection.end()
                self._until(lambda: self._connection is not connection)

    def all_answered(self) -> bool:
        """True if no command awaits an answer. Does not block."""
        with self._writing:
            connection = self._connection
            if self._waiting and connection is not None:
                self._until(_never, _AT_ONCE)
            return not self._waiting

    def _joined(self, pieces: Sequence[Piece], request: pb.ExecuteRequest) -> List[bytes]:
        # Consecutive messages are joined into one.
        messages, parts, num_commands, size = [], [self._prefix], 0, 0
        for piece, num in (*pieces, *cut(request)):
            if num_commands and (num_commands + num > _MAX_COMMANDS or size + len(piece) > _MAX_BYTES):
                messages.append(b"".join(parts))
                parts, num_commands, size = [self._prefix], 0, 0
            parts.append(piece)
            num_commands += num
            size += len(piece)
        messages.append(b"".join(parts))
        return messages

    def _messages(self, request: pb.ExecuteRequest) -> List[bytes]:
        request.session = self._session
        commands = request.commands
        whole = request.SerializeToString()
        if len(commands) <= _MAX_COMMANDS and len(whole) <= _MAX_BYTES:
            return [whole]
        return self._joined(cut(request), pb.ExecuteRequest())

    def _put(self, messages: List[bytes], notes: Dict[int, Note]):
        """Returns the connection that sends the messages and will receive the notes' answers. Caller holds
        `_writing`."""
        while True:
            connection = self._connection
            if connection is not None and not connection.reading and connection.has_news():
                # unread answers must not pile up, nor the call's end go unnoticed
                self._until(_never, _AT_ONCE)
            if len(self._waiting) >= _MAX_IN_FLIGHT:
                self._until(lambda: len(self._waiting) <= _FEW_IN_FLIGHT or self._closed)
            connection = self._connection or self._open()
            with self._lock:
                if self._closed:
                    raise _errors.Cancelled("The session is closed")
                if self._connection is connection:
                    for message in messages:
                        connection.put(message)
                    self._waiting.update(notes)
                    return connection

    def _open(self):
        """Opens the call. Caller holds `_writing`."""
        if self._closed:
            raise _errors.Cancelled("The session is closed")
        connection = self._local.open() if self._local is not None else None
        if connection is None:
            connection = GrpcConnection(self._stub)
        with self._lock:
            closed = self._closed
            if not closed:
                self._connection = connection
        if closed:
            connection.end()
            connection.close()
        elif connection.has_own_reader:
            threading.Thread(target=self._read, args=(connection, _never), name="stride-answers", daemon=True).start()
        return connection

    # --- receiving ---

    def wait(self, answer: Answer, timeout: Optional[float] = None) -> bool:
        """Waits until the answer is available; False after `timeout` seconds."""
        return answer.done or self._until(lambda: answer.done, None if timeout is None else time.monotonic() + timeout)

    def future_of(self, answer: Answer) -> Future:
        """A future for callers that cannot block a thread. The thread that reads the answer resolves it; one
        is started if no thread reads."""
        answer.future = future = Future()
        with self._lock:
            self._watched.add(answer)
            if answer.done:
                self._told.append(answer)
            elif self._watcher is None and self._connection is not None and not self._connection.has_own_reader:
                self._watcher = threading.Thread(target=self._watch, name="stride-answers", daemon=True)
                self._watcher.start()
        self._to_watch.put(None)
        self._tell()
        return future

    def _watch(self) -> None:
        while not self._closed:
            self._to_watch.get()
            self._until(lambda: not self._watched)

    def _until(self, ready: Callable[[], bool], deadline: Optional[float] = None, or_room: bool = False) -> bool:
        """Waits until `ready()`, which is called with the lock held and, after answers, without it. Reads
        answers unless another thread does. False: the deadline came first. `or_room`: also calls it when
        there is room to send."""
        while True:
            connection = None
            try:
                with self._lock:
                    if ready():
                        return True
                    left = None if deadline is None else deadline - time.monotonic()
                    if self._connection is None or self._connection.reading:
                        if left is not None and left <= 0:
                            return False
                        self._wait_for_change(_ROOM_SECONDS if or_room else left)
                        continue
                    # No call stands between these, so that no signal handler runs there.
                    connection = self._connection
                    connection.reading = True
                if self._read(connection, ready, deadline, or_room):
                    return True
            finally:
                if connection is not None:
                    connection.reading = False
                    with self._lock:
                        self._notify()  # another thread is reading
            if deadline is not None and time.monotonic() >= deadline:
                return ready()

    def _wait_for_change(self, seconds: Optional[float]) -> None:
        # Caller holds the lock.
        self._num_waiting += 1
        try:
            self._changed.wait(seconds)
        finally:
            self._num_waiting -= 1

    def _notify(self) -> None:
        # Caller holds the lock.
        if self._num_waiting:
            self._changed.notify_all()

    def _read(self, connection, ready, deadline: Optional[float] = None, or_room: bool = False) -> bool:
        """Processes answers until `ready()`. False: the deadline, room to send or the end of the connection
        came first. Caller is the reading thread."""
        try:
            while True:
                response = connection.receive(deadline, or_room)
                if response is None:
                    return False
                with self._lock:
                    self._take(response)
                    connection.advance()
                    if self._num_waiting:
                        self._changed.notify_all()
                if self._told:
                    self._tell()
                if ready():
                    return True
        except _errors.StrideError as error:
            self._break(connection, error)
            return False

    def _break(self, connection, error: _errors.StrideError) -> None:
        """Ends the connection with this error. Caller is the reading thread."""
        connection.end()
        with self._lock:
            if self._connection is connection:
                if self._closed:
                    error = _errors.Cancelled("The session is closed")
                for note in self._waiting.values():
                    if note.answer is not None:
                        self._done(note.answer, None, error)
                self._waiting = {}
                self._connection = None
            self._notify()
        self._tell()
        with self._writing:
            connection.close()

    def _take(self, response) -> None:
        # Caller holds the lock. Idempotent, so that an interrupted thread may process an answer again.
        waiting = self._waiting
        for result in response.results:
            command_id = result.id
            note = waiting.get(command_id)
            if note is None:
                continue
            failed = result.HasField("status") and result.status.code and note.has_operation
            if not failed and note.answer is None:
                if note.launch is not None:
                    self.launched.add(note.launch)
            elif note.answer is not None:
                if failed:
                    note.answer.origin = self._origin_of_failure(note, _handles(note.operation))
                self._done(note.answer, result, None)
            else:
                self._remember(note)
                if note.operation.HasField("kernel_launch"):
                    if note.written or not has_arrays(note.operation):  # otherwise its new arrays carry the error
                        self._failures.append(LaunchFailure(result.status, note))
            del waiting[command_id]

    def _done(self, answer: Answer, result, error) -> None:
        # Caller holds the lock.
        answer.result, answer.error = result, error
        answer.done = True
        if answer.future is not None:
            self._told.append(answer)

    def _tell(self) -> None:
        """Resolves futures. Caller must not hold the lock, because callbacks of users run here."""
        while self._told:
            try:
                answer = self._told.popleft()
            except IndexError:  # another thread did
                return
            with self._lock:
                self._watched.discard(answer)
            try:
                if answer.error is not None:
                    answer.future.set_exception(answer.error)
                else:
                    answer.future.set_result(answer.result)
            except InvalidStateError:
                pass  # it was cancelled

    # --- errors from answers ---

    def _remember(self, note: Note) -> None:
        # Caller holds the lock. An operation refused because of an operand carries that operand's error.
        operands = list(_handles(note.operation))
        origin = self._origin_of_failure(note, operands)
        written = operands if note.operation.HasField("kernel_launch") else []
        for handle in (*(output.handle for output in note.operation.outputs), *written):
            self._refused.setdefault(handle, origin)
        while len(self._refused) > _MAX_REFUSED:
            del self._refused[next(iter(self._refused))]

    def _origin_of_failure(self, note: Note, operands) -> object:
        # Caller holds the lock.
        return next((self._refused[handle] for handle in operands if handle in self._refused), note.origin)

    def take_failure(self, buffer: object = None, any_: bool = False) -> Optional["LaunchFailure"]:
        """The failure of a kernel's launch, for a read of an array with this buffer, or for `any_`. It is raised once.
        A launch that never ran left its arrays unchanged, so they carry no error."""
        if not self._failures:
            return None
        with self._lock:
            failure = next((one for one in self._failures if any_ or one.concerns(buffer)), None)
            if failure is not None:
                self._failures.remove(failure)
            return failure

    def has_failures(self) -> bool:
        """True if a launch failed and no read has raised that yet."""
        return bool(self._failures)

    def origin_of(self, handle: int) -> object:
        """Origin of the refused operation whose error this handle carries. None: the operation failed while it ran."""
        with self._lock:
            return self._refused.get(handle)

    # --- its end ---

    def close(self) -> None:
        with self._lock:
            self._closed = True
            connection = self._connection
            self._notify()
        self._to_watch.put(None)
        if connection is not None:
            connection.end()  # wakes the reading thread
            self._until(lambda: self._connection is not connection, time.monotonic() + _CLOSE_SECONDS)

    def leave_to_parent(self) -> None:
        """In a forked child: the call belongs to the parent."""
        # may have been held by threads that do not exist in the child
        self._writing, self._lock = threading.RLock(), threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._closed = True
        if self._connection is not None:
            self._connection.leave_to_parent()


def _never() -> bool:
    return False
