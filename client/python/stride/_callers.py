"""Callers of PutArray and FetchArray for large transfers, one in each thread of a transfer. Bytes lie in a
region; calls go by local connections or by gRPC."""

import contextlib
import os
import socket
import threading
import time
import weakref
from collections import deque
from typing import Iterator, List, NamedTuple, Optional, Tuple

from google.protobuf.message import DecodeError

from stride import _errors
from stride._local_connection import HEADER, MAX_FRAME_BYTES, LocalConnections, decode
from stride._rpc import status_pb2
from stride.v1 import array_service_pb2 as pb, array_service_pb2_grpc, local_service_pb2 as local_pb

CHUNK_BYTES = 1 << 20
# A gRPC call costs the interpreter, which runs one thread at a time, about as much time as copying this many
# bytes. More threads than this do not copy faster.
_MIN_GRPC_PART_BYTES = 16 << 20
_MAX_GRPC_THREADS = 4
_MIN_LOCAL_PART_BYTES = 4 << 20
MAX_THREADS = 8  # per transfer
_UPLOADS_OF_THREAD, _UPLOAD_UNIT_BYTES = 3, 64 << 10
# Connections per session, in use or idle: the daemon limits the number per tenant.
_MAX_CONNECTIONS = 16
_BUFFER_BYTES = 16 << 10
_WORDS_SECONDS = 1.0  # for data that has already arrived


def cut_ranges(size: int, max_parts: int, min_part_bytes: int) -> List[Tuple[int, int]]:
    parts = max(1, min(max_parts, size // min_part_bytes))
    return cut_into(0, size, share_of(max(size, 1), parts, CHUNK_BYTES)) or [(0, 0)]


def cut_into(begin: int, end: int, step: int) -> List[Tuple[int, int]]:
    return [(at, min(end, at + step)) for at in range(begin, end, step)]


def share_of(size: int, num_parts: int, unit: int) -> int:
    """Size of the largest part of a split into this many parts of whole units."""
    return -(-size // (num_parts * unit)) * unit


class GrpcCaller:
    upload_bytes = (8 << 20, 8 << 20)  # least and greatest size of an upload

    def __init__(self, stub):
        self._stub = stub
        self._ends: deque = deque()  # sizes of the uploads in flight

    @staticmethod
    def upload(header: pb.PutArrayRequest, chunk: pb.PutArrayRequest, timeout: Optional[float]):
        """A call for `put`. The messages may be changed for the next."""
        messages = (pb.PutArrayRequest(), pb.PutArrayRequest())
        messages[0].CopyFrom(header)
        messages[1].CopyFrom(chunk)
        return messages, timeout

    def put(self, upload, deadline: Optional[float]) -> None:
        """Begins an upload."""
        messages, timeout = upload
        self._ends.append(self._stub.PutArray.future(iter(messages), timeout=timeout))

    def finish(self, deadline: Optional[float]) -> None:
        """Waits until the daemon has processed all uploads."""
        while self._ends:
            _errors.call(self._ends.popleft().result)

    def fetch(self, request: pb.FetchArrayRequest, timeout: Optional[float]) -> Iterator[pb.FetchArrayResponse]:
        """Begins a download."""
        replies = self._stub.FetchArray(request, timeout=timeout)

        def read():
            yield from _errors.replies(replies)

        return read()


class LocalCaller:
    """One connection. Several calls may be in flight: they are served in order, and the caller must wait for
    their ends in that order. Unusable after an exception."""

    upload_bytes = (1 << 20, 4 << 20)

    def __init__(self, connected: socket.socket):
        connected.settimeout(None)
        self._socket = connected
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._begin = self._end = 0
        self._num_puts = 0  # calls whose end is awaited

    def is_quiet(self) -> bool:
        """True if no unexpected bytes have arrived and the daemon has not closed the connection."""
        if self._begin != self._end:
            return False
        try:
            self._limit(None)  # with a timeout, Python waits whatever the flags say
            self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def close(self) -> None:
        self._socket.close()

    @staticmethod
    def upload(header: pb.PutArrayRequest, chunk: pb.PutArrayRequest, timeout: Optional[float]) -> bytes:
        """As GrpcCaller.upload: all its frames."""
        first, second = header.SerializeToString(), chunk.SerializeToString()
        return b"".join((HEADER.pack(len(first), local_pb.LOCAL_FRAME_PUT, _nanoseconds(timeout)), first,
                         HEADER.pack(len(second), local_pb.LOCAL_FRAME_PUT, 0), second, _PUT_END))

    def put(self, upload: bytes, deadline: Optional[float]) -> None:
        self._send(upload, deadline)
        self._num_puts += 1

    def finish(self, deadline: Optional[float]) -> None:
        while self._num_puts:
            kind, message = self._frame(deadline)
            if kind != local_pb.LOCAL_FRAME_PUT:
                decode(kind, message, local_pb.LOCAL_FRAME_PUT, pb.PutArrayResponse)
            self._num_puts -= 1

    def fetch(self, request: pb.FetchArrayRequest, timeout: Optional[float]) -> Iterator[pb.FetchArrayResponse]:
        deadline = deadline_of(timeout)
        message = request.SerializeToString()
        self._send(HEADER.pack(len(message), local_pb.LOCAL_FRAME_FETCH, _nanoseconds(timeout)) + message, deadline)

        def read():
            while (reply := self._receive(local_pb.LOCAL_FRAME_FETCH, pb.FetchArrayResponse, deadline)) is not None:
                yield reply

        return read()

    def _send(self, frame: bytes, deadline: Optional[float]) -> None:
        try:
            self._limit(deadline)
            self._socket.sendall(frame)
        except TimeoutError:
            raise _late() from None
        except OSError:
            raise self._why_ended() from None

    def _why_ended(self) -> _errors.StrideError:
        """The error in messages received before the daemon closed, if any."""
        try:
            while True:
                kind, message = self._frame(deadline_of(_WORDS_SECONDS))
                if kind == local_pb.LOCAL_FRAME_STATUS and (status := status_pb2.Status.FromString(message)).code:
                    return _errors.from_status(status)
        except DecodeError:
            return _ended()
        except _errors.StrideError as error:
            return error

    def _receive(self, kind: int, type_, deadline: Optional[float]):
        """The next message of this call; None at its end."""
        come, message = self._frame(deadline)
        return decode(come, message, kind, type_)

    def _frame(self, deadline: Optional[float]) -> Tuple[int, bytes]:
        while True:
            if self._end - self._begin >= HEADER.size:
                size, kind, _ = HEADER.unpack_from(self._buffer, self._begin)
                end = self._begin + HEADER.size + size
                if self._end >= end:
                    message = bytes(self._buffer[self._begin + HEADER.size:end])
                    self._begin = end
                    return kind, message
                if size > MAX_FRAME_BYTES:
                    raise _errors.Internal(f"The daemon announced a frame of {size} bytes")
                if HEADER.size + size > len(self._buffer):  # statuses may be long
                    larger = memoryview(bytearray(HEADER.size + size))
                    larger[:self._end - self._begin] = self._buffer[self._begin:self._end]
                    self._buffer, self._begin, self._end = larger, 0, self._end - self._begin
            if self._begin:
                self._buffer[:self._end - self._begin] = self._buffer[self._begin:self._end]
                self._begin, self._end = 0, self._end - self._begin
            try:
                self._limit(deadline)
                count = self._socket.recv_into(self._buffer[self._end:])
            except TimeoutError:
                raise _late() from None
            except OSError:
                raise _ended() from None
            if not count:
                raise _ended()
            self._end += count

    def _limit(self, deadline: Optional[float]) -> None:
        if deadline is None:
            if self._socket.gettimeout() is not None:
                self._socket.settimeout(None)
            return
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)


def _nanoseconds(timeout: Optional[float]) -> int:
    return int(max(0, timeout) * 1e9) if timeout else 0


_PUT_END = HEADER.pack(0, local_pb.LOCAL_FRAME_PUT_END, 0)


def deadline_of(timeout: Optional[float]) -> Optional[float]:
    return None if timeout is None else time.monotonic() + timeout


def _late() -> _errors.StrideError:
    return _errors.DeadlineExceeded("The transfer did not end in time")


def _ended() -> _errors.StrideError:
    return _errors.connection_lost("the daemon ended the connection of a transfer")


class Crew(NamedTuple):
    """One caller for each range of the bytes."""

    callers: list
    ranges: List[Tuple[int, int]]

    def upload_bytes(self, size: int) -> int:
        """Bytes per call where threads take the remaining parts one by one: small enough that all threads end
        at about the same time."""
        least, most = self.callers[0].upload_bytes
        if len(self.callers) == 1:
            return most
        return min(most, max(least, share_of(size, _UPLOADS_OF_THREAD * len(self.callers), _UPLOAD_UNIT_BYTES)))


class Callers:
    """Thread-safe. Belongs to one session; keeps local connections that are idle."""

    def __init__(self, channels, local: Optional[LocalConnections]):
        self._channels, self._local = channels, local
        self._lock = threading.Lock()
        self._idle: List[LocalCaller] = []  # most recently used last
        self._closed = False
        self._open: "weakref.WeakSet[LocalCaller]" = weakref.WeakSet()  # in use and idle
        # Half of the processors copy as fast as all of them, and leave the daemon some.
        self._num_threads = min(MAX_THREADS, max(1, len(os.sched_getaffinity(0)) // 2))

    @property
    def local(self) -> bool:
        """Whether local connections, which make a call cheap, are available."""
        return self._local is not None

    @contextlib.contextmanager
    def crew(self, size: int) -> Iterator[Crew]:
        """The callers for a transfer of `size` bytes, for the duration of the block."""
        local = (
            self._take(len(cut_ranges(size, self._num_threads, _MIN_LOCAL_PART_BYTES)))
            if self._local is not None
            else []
        )
        if not local:
            ranges = cut_ranges(size, min(self._channels.num_bulk, _MAX_GRPC_THREADS), _MIN_GRPC_PART_BYTES)
            yield Crew(
                [
                    GrpcCaller(array_service_pb2_grpc.ArrayServiceStub(self._channels.bulk(i)))
                    for i in range(len(ranges))
                ],
                ranges,
            )
            return
        try:
            yield Crew(local, cut_ranges(size, len(local), _MIN_LOCAL_PART_BYTES))
        except BaseException:
            self._close(local)
            raise
        with self._lock:
            kept = not self._closed
            if kept:
                self._idle.extend(local)
        if not kept:
            self._close(local)

    def _take(self, count: int) -> List[LocalCaller]:
        """Up to this many, as far as they are available."""
        with self._lock:
            first = max(0, len(self._idle) - count)
            taken, self._idle = self._idle[first:], self._idle[:first]
        quiet = [caller for caller in taken if caller.is_quiet()]
        self._close(caller for caller in taken if caller not in quiet)
        while (
            len(quiet) < count
            and len(self._open) < _MAX_CONNECTIONS
            and (connected := self._local.connect()) is not None
        ):
            quiet.append(LocalCaller(connected))
            with self._lock:
                self._open.add(quiet[-1])
        return quiet

    def _close(self, callers) -> None:
        for caller in callers:
            caller.close()
            with self._lock:
                self._open.discard(caller)

    def rest(self) -> None:
        """Closes idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        self._close(idle)

    def close(self) -> None:
        """Also closes connections in use, once they become idle."""
        with self._lock:
            self._closed = True
        self.rest()

    def leave_to_parent(self) -> None:
        """In a forked child: connections belong to the parent, which keeps using them."""
        self._lock = threading.Lock()  # may have been held by a thread that does not exist in the child
        copies, self._idle = list(self._open), []
        self._close(copies)
