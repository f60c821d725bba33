"""The pipelined stream of commands of one session."""

import queue
import threading
from collections import deque
from concurrent.futures import Future
from typing import Dict, List, Optional, Tuple

import grpc

from stride import _errors
from stride.v1 import compute_service_pb2 as pb

# The contract's limits are 1,000 commands and 4 MiB a message.
_MAX_COMMANDS = 900
_MAX_BYTES = 3 << 20
# Answers outstanding before `send` waits: bounds memory on both sides when a program records faster than devices work.
_MAX_IN_FLIGHT = 20_000
# Refusals remembered, to name the line that caused an error when it is read.
_MAX_REFUSED = 1_000


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
        # Outstanding commands, by id: a future (or None) and the line that recorded the operation.
        self._waiting: Dict[int, Tuple[Optional[Future], object]] = {}
        self._refused: deque = deque(maxlen=_MAX_REFUSED)
        self._closed = False

    def send(self, commands: List[pb.Command], notes: Dict[int, Tuple[Optional[Future], object]]) -> None:
        """`notes` has, by command id, who waits for the answer and the origin; commands without one want neither."""
        with self._lock:
            if self._closed:
                raise _errors.Cancelled("The session is closed")
            self._lock.wait_for(lambda: len(self._waiting) < _MAX_IN_FLIGHT or self._closed)
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
        for future, _ in waiting.values():
            if future is not None and not future.done():
                future.set_exception(error)

    def _answer(self, response) -> None:
        resolved = []
        with self._lock:
            waiting = self._waiting
            for result in response.results:
                future, origin = waiting.pop(result.id, (None, None))
                if future is not None:
                    resolved.append((future, result))
                elif origin is not None and result.HasField("status") and result.status.code:
                    self._refused.append((result.status, origin))
            self._lock.notify_all()
        for future, result in resolved:
            if not future.cancelled():
                future.set_result(result)

    def origin_of(self, status) -> object:
        """Who recorded the operation that was refused with this error; None when none was (it failed while running)."""
        with self._lock:
            for refused, origin in self._refused:
                if refused.message == status.message and refused.code == status.code:
                    return origin
        return None

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
