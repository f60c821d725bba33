"""The pipelined stream of commands of one session."""

import collections.abc
import queue
import threading
from concurrent.futures import Future
from typing import Dict, Iterator, List, NamedTuple, Optional

import grpc

from stride import _errors
from stride.v1 import compute_service_pb2 as pb, operation_pb2

# The contract's limits are 1,000 commands and 4 MiB a message.
_MAX_COMMANDS = 900
_MAX_BYTES = 3 << 20
# Answers outstanding before `send` waits: bounds memory on both sides when a program records faster than devices work.
_MAX_IN_FLIGHT = 20_000
# Who had to wait goes on when so few are left: let in one by one, commands would travel one by one.
_FEW_IN_FLIGHT = _MAX_IN_FLIGHT // 2
# Handles of refused operations remembered, to name the line that caused an error when it is read.
_MAX_REFUSED = 10_000


class Note(NamedTuple):
    """What is remembered of a command until its answer."""

    future: Optional[Future] = None  # whoever waits for it
    origin: object = None  # of an operation: the line that recorded it
    operation: Optional[operation_pb2.Operation] = None
    launch: object = None  # what CommandStream.launched has once it was done


class LaunchFailure:
    """A launch that failed, and the line that made it."""

    def __init__(self, status, origin):
        self.status, self.origin = status, origin


def _handles(message) -> Iterator[int]:
    """Every handle that an operation reads or writes in place."""
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


class CommandStream:
    """Owns one Execute call, opened by the first `send` and again after it broke, and the thread that reads its answers.

    Any thread may call. `send` blocks only while very many answers are outstanding. Futures are resolved in the reading thread
    with a CommandResult, or with a StrideError when the stream broke."""

    def __init__(self, stub, session: str):
        self._stub = stub
        self._session = session
        self._lock = threading.Condition()
        self._call = None
        self._requests: Optional[queue.SimpleQueue] = None
        self._reader: Optional[threading.Thread] = None
        self._waiting: Dict[int, Note] = {}  # outstanding commands, by id
        self._refused: Dict[int, object] = {}  # by handle, the origin of the error that it carries
        # Launches that have been done before: code, variables, types of arguments. What is wrong with one more of them the daemon sees at once.
        self.launched: set = set()
        self._failures: Dict[int, LaunchFailure] = {}  # by handle, of launches that nothing has told yet
        self._closed = False

    def send(self, commands: List[pb.Command], notes: Dict[int, Note]) -> None:
        """`notes` are by command id; commands without one want no answer."""
        with self._lock:
            if self._closed:
                raise _errors.Cancelled("The session is closed")
            if len(self._waiting) >= _MAX_IN_FLIGHT:
                self._lock.wait_for(lambda: len(self._waiting) <= _FEW_IN_FLIGHT or self._closed)
            requests = self._connected()
            self._waiting.update(notes)
        for request in self._messages(commands):
            requests.put(request)

    def _messages(self, commands):
        begin, size = 0, 0
        for i, command in enumerate(commands):
            bytes_ = command.ByteSize()
            if i > begin and (i - begin >= _MAX_COMMANDS or size + bytes_ > _MAX_BYTES):
                yield pb.ExecuteRequest(session=self._session, commands=commands[begin:i])
                begin, size = i, 0
            size += bytes_
        yield pb.ExecuteRequest(session=self._session, commands=commands[begin:])

    def _connected(self) -> queue.SimpleQueue:
        # The lock is held.
        if self._requests is None:
            self._requests = queue.SimpleQueue()
            self._call = self._stub.Execute(iter(self._requests.get, None))
            self._reader = threading.Thread(target=self._read, args=(self._call, self._requests), name="stride-answers", daemon=True)
            self._reader.start()
        return self._requests

    def _read(self, call, requests) -> None:
        error: _errors.StrideError = _errors.Unavailable("The daemon ended the command stream")
        try:
            for response in call:
                self._answer(response)
        except grpc.RpcError as broken:
            error = _errors.from_rpc(broken)
        requests.put(None)
        with self._lock:
            if self._requests is requests:
                self._requests = None
            waiting, self._waiting = self._waiting, {}
            self._lock.notify_all()
        for note in waiting.values():
            future = note.future
            if future is not None and not future.done():
                future.set_exception(error)

    def _answer(self, response) -> None:
        resolved = []
        with self._lock:
            waiting = self._waiting
            for result in response.results:
                note = waiting.pop(result.id, None)
                if note is None:
                    continue
                if note.future is not None:
                    resolved.append((note.future, result))
                elif note.operation is not None and result.HasField("status") and result.status.code:
                    self._remember(note)
                    if note.operation.HasField("kernel_launch"):
                        failure = LaunchFailure(result.status, note.origin)
                        self._failures.update((handle, failure) for handle in _handles(note.operation) if handle)
                elif note.launch is not None:
                    self.launched.add(note.launch)
            if len(waiting) <= _FEW_IN_FLIGHT:
                self._lock.notify_all()
        for future, result in resolved:
            if not future.cancelled():
                future.set_result(result)

    def _remember(self, note: Note) -> None:
        # The lock is held. What was refused because of an operand carries that operand's error.
        operands = list(_handles(note.operation))
        origin = next((self._refused[handle] for handle in operands if handle in self._refused), note.origin)
        written = operands if note.operation.HasField("kernel_launch") else []
        for handle in (*(output.handle for output in note.operation.outputs), *written):
            self._refused.setdefault(handle, origin)
        while len(self._refused) > _MAX_REFUSED:
            del self._refused[next(iter(self._refused))]

    def take_failure(self, handle: Optional[int] = None) -> Optional["LaunchFailure"]:
        """Of a launch of a kernel that was given this array, or any, and failed: told once. One that never ran left its arrays as they were, so that they
        carry no error."""
        with self._lock:
            if not self._failures:
                return None
            failure = next(iter(self._failures.values())) if handle is None else self._failures.get(handle)
            if failure is not None:
                self._failures = {one: other for one, other in self._failures.items() if other is not failure}
            return failure

    def origin_of(self, handle: int) -> object:
        """Who recorded the refused operation whose error this handle carries; None when none was (it failed while running)."""
        with self._lock:
            return self._refused.get(handle)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            requests, call, reader = self._requests, self._call, self._reader
            self._lock.notify_all()
        if requests is not None:
            requests.put(None)
            call.cancel()
        if reader is not None and reader is not threading.current_thread():
            reader.join(5)
