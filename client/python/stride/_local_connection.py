"""A connection for commands to a daemon of this host (LocalService): frames over a separate socket, without
HTTP/2."""

import math
import os
import select
import socket
import struct
import time
from collections import deque
from typing import Deque, List, Optional, Tuple, Union

import grpc
from google.protobuf.message import DecodeError

from stride import _errors
from stride._rpc import status_pb2
from stride._ticket import fetch_descriptor
from stride.v1 import compute_service_pb2, local_service_pb2 as pb, local_service_pb2_grpc

HEADER = struct.Struct("<IIQ")  # size, kind, timeout
_HEADER_BYTES = HEADER.size
_BUFFER_BYTES = 64 << 10
_EXECUTE = pb.LOCAL_FRAME_EXECUTE
_DO_NOT_WAIT = (socket.MSG_DONTWAIT,)
# The daemon's frames are no larger than a gRPC answer; a larger size is an invalid frame.
MAX_FRAME_BYTES = 64 << 20
# Up to this size the header and message are joined by a copy, which is cheaper than a second system call.
_MAX_JOINED_BYTES = 64 << 10
# A sleeping thread wakes 20 to 120 us after its bytes arrive. On a machine with many processors a thread
# polls first, for as long as that latency matters. (Libraries in the process, such as CUDA, poll until the
# end.)
_WATCH_SECONDS = 1e-3
_MIN_PROCESSORS_TO_WATCH = 8
# Time before a daemon that refused a connection is asked again.
_PAUSE_SECONDS = 10.0
_CALL_SECONDS = 5.0


class _Buffer:
    """Received bytes: as many as `counts` say, from `begin` on not taken yet."""

    __slots__ = ("view", "counts", "begin")

    def __init__(self, size: int):
        self.view = memoryview(bytearray(size))
        self.counts: List[int] = []
        self.begin = 0


class LocalConnection:
    """One Execute call. One thread at a time may send (`put`, `flush`) and one may read (`receive`,
    `advance`); CommandStream assigns both.

    An exception at any moment, such as KeyboardInterrupt, leaves the state consistent: bytes are moved by
    list.extend(map(call, ...)), so that no signal handler runs between a system call and the record of its
    result."""

    transport = "local"
    has_own_reader = False

    def __init__(self, connected: socket.socket, watch: Optional[bool] = None):
        connected.settimeout(None)
        self.reading = False  # CommandStream's
        self._socket = connected
        self._unsent: Deque[Tuple[bytes, List[int]]] = deque()  # with the numbers of bytes sent
        self._buffers = (_Buffer(_BUFFER_BYTES), _Buffer(_BUFFER_BYTES))
        self._buffer = self._buffers[0]
        self._next = 0  # end of the frame that `receive` returned
        # The sender polls a separate object, since the reader may wait at the same time and threads must not share one.
        self._to_read, self._to_read_or_write, self._news = select.poll(), select.poll(), select.poll()
        self._to_read.register(connected, select.POLLIN)
        self._news.register(connected, select.POLLIN)
        self._to_read_or_write.register(connected, select.POLLIN | select.POLLOUT)
        self._watch = len(os.sched_getaffinity(0)) >= _MIN_PROCESSORS_TO_WATCH if watch is None else watch

    # --- sending ---

    def put(self, message: bytes) -> None:
        """An ExecuteRequest."""
        header = HEADER.pack(len(message), _EXECUTE, 0)
        if len(message) <= _MAX_JOINED_BYTES:
            self._unsent.append((header + message, []))
        else:
            self._unsent.extend(((header, []), (message, [])))

    def flush(self) -> bool:
        """Sends as much as there is room for; True if that was all. Raises OSError when the daemon has closed
        the connection; `receive` then raises the reason."""
        unsent = self._unsent
        while unsent:
            message, counts = unsent[0]
            done = sum(counts)
            try:
                # After an interrupt the rest may be empty, which is sent without effect.
                counts.extend(map(self._socket.send, (memoryview(message)[done:] if done else message,), _DO_NOT_WAIT))
            except BlockingIOError:
                return False
            if done + counts[-1] == len(message):
                unsent.popleft()
        return True

    # --- receiving ---

    def has_news(self) -> bool:
        """Whether an answer is available to `receive`. Called by the sending thread."""
        buffer = self._buffer
        return buffer.begin != sum(buffer.counts) or bool(self._news.poll(0))

    def receive(
        self, deadline: Optional[float] = None, or_room: bool = False
    ) -> Optional[compute_service_pb2.ExecuteResponse]:
        """The next answer, the same one until `advance`. None at `deadline` (of time.monotonic(); 0: does not
        wait), or with `or_room` when there is room to send. Raises the StrideError that ended the call."""
        while True:
            buffer = self._buffer
            begin, end = buffer.begin, sum(buffer.counts)
            needed = _HEADER_BYTES
            if end - begin >= needed:
                size, kind, _ = HEADER.unpack_from(buffer.view, begin)
                needed += size
                if end - begin >= needed:
                    self._next = begin + needed
                    message = buffer.view[begin + _HEADER_BYTES:self._next]
                    response = decode(kind, message, _EXECUTE, compute_service_pb2.ExecuteResponse)
                    if response is None:
                        raise _ended()
                    return response
                if size > MAX_FRAME_BYTES:
                    raise _errors.Internal(f"The daemon announced a frame of {size} bytes")
            if begin == end:
                if end:
                    buffer = self._other_buffer()
            elif needed > len(buffer.view) - begin:
                buffer = self._larger_buffer(max(needed, _BUFFER_BYTES))
            if not self._fill(buffer, deadline, or_room):
                return None

    def advance(self) -> None:
        self._buffer.begin = self._next

    def _other_buffer(self) -> _Buffer:
        """An empty buffer in place of one that has been read. A buffer in use is never emptied: that would
        take two steps, between which a signal could interrupt."""
        empty = self._buffers[self._buffer is self._buffers[0]]
        empty.counts.clear()
        empty.begin = 0
        self._buffer = empty
        return empty

    def _larger_buffer(self, size: int) -> _Buffer:
        old, larger = self._buffer, _Buffer(size)
        rest = old.view[old.begin:sum(old.counts)]
        larger.view[:len(rest)] = rest
        larger.counts.append(len(rest))
        self._buffer = larger
        return larger

    def _fill(self, buffer: _Buffer, deadline: Optional[float], or_room: bool) -> bool:
        room = buffer.view[sum(buffer.counts):]
        if self._watch and not or_room and deadline != 0:
            end = time.monotonic() + _WATCH_SECONDS
            if deadline is not None:
                end = min(end, deadline)
            while not self._to_read.poll(0) and time.monotonic() < end:
                pass
        if deadline is None and not or_room:
            return self._receive(buffer, room, 0)
        if deadline != 0:
            self._sleep(deadline, or_room)
        return self._receive(buffer, room, socket.MSG_DONTWAIT)

    def _receive(self, buffer: _Buffer, room: memoryview, flags: int) -> bool:
        try:
            buffer.counts.extend(map(self._socket.recv_into, (room,), (0,), (flags,)))
        except BlockingIOError:
            return False
        except ConnectionError:
            raise _ended() from None
        if not buffer.counts[-1]:
            raise _ended()
        return True

    def _sleep(self, deadline: Optional[float], or_room: bool) -> None:
        left = None if deadline is None else math.ceil(max(0.0, deadline - time.monotonic()) * 1e3)
        (self._to_read_or_write if or_room else self._to_read).poll(left)

    # --- its end ---

    def end(self) -> None:
        """Shuts the connection down, which ends all waits for the daemon. Received answers are still
        available. Any thread may call."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the daemon closed it first

    def close(self) -> None:
        """Call it once no thread sends or reads."""
        self._socket.close()

    def leave_to_parent(self) -> None:
        """In a forked child, which shares the socket: closes the child's descriptor; the parent's connection
        continues."""
        self._socket.close()


def decode(kind: int, message: Union[bytes, memoryview], expected: int, type_):
    """The answer, of `type_`, in a frame of kind `expected`. None if the frame ends the call with OK; raises
    its status otherwise."""
    try:
        if kind == expected:
            return type_.FromString(message)
        if kind == pb.LOCAL_FRAME_STATUS:
            status = status_pb2.Status.FromString(message)
            if status.code:
                raise _errors.from_status(status)
            return None
    except DecodeError:
        pass
    raise _errors.Internal(f"The daemon sent a frame of kind {kind} that is no answer")


def _ended() -> _errors.StrideError:
    return _errors.connection_lost("the daemon ended the command stream")


class LocalConnections:
    """Opens connections to the daemon at a Unix socket."""

    def __init__(self, channels):
        self._target = channels.target
        self._stub = local_service_pb2_grpc.LocalServiceStub(channels.control)
        self._next_try = 0.0

    def open(self) -> Optional[LocalConnection]:
        """A connection for commands; None as for `connect`."""
        connected = self.connect()
        return None if connected is None else LocalConnection(connected)

    def connect(self) -> Optional[socket.socket]:
        """None: none is available now. If the daemon is not reachable, the same call by gRPC reports that."""
        if time.monotonic() < self._next_try:
            return None
        try:
            reply = self._stub.Connect(pb.ConnectRequest(), timeout=_CALL_SECONDS)
            descriptor, messenger = fetch_descriptor(self._target, reply.socket_path, reply.ticket)
        except grpc.RpcError as error:
            if error.code() in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.RESOURCE_EXHAUSTED):
                self._next_try = time.monotonic() + _PAUSE_SECONDS
            return None
        except OSError:
            self._next_try = time.monotonic() + _PAUSE_SECONDS
            return None
        messenger.close()
        return socket.socket(fileno=descriptor)
