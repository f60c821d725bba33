"""Memory shared with a daemon on this machine (RegionService): one region that transfers copy through, and those that users asked for."""

import ctypes
import math
import mmap
import os
import socket
import threading
import time
import weakref
from typing import Callable, Dict, Optional, Tuple

import grpc
import numpy as np

from stride import _errors
from stride._address import is_unix
from stride.v1 import region_service_pb2 as pb, region_service_pb2_grpc

# From here on a region pays: a call takes about a millisecond.
MIN_BYTES = 2 << 20
# The region that transfers copy through is no larger.
MAX_BOUNCE_BYTES = 128 << 20
_LEAST_BOUNCE_BYTES = 32 << 20
# A daemon that has none to give is not asked before each transfer.
_PAUSE_SECONDS = 10.0
_CALL_SECONDS = 10.0
_SOCKET_SECONDS = 2.0
_MAP_FIXED = 0x10  # Linux; the mmap module has no name for it


class Region:
    """One region, mapped here; it is unmapped when nobody holds `values`, its bytes, or a view of them."""

    def __init__(self, name: str, mapping: mmap.mmap):
        self.name = name
        self.values = np.frombuffer(mapping, np.uint8)
        self.address = address_of(self.values)

    @property
    def size(self) -> int:
        return self.values.size


def address_of(values: np.ndarray) -> int:
    return values.__array_interface__["data"][0]


def _receive(path: str, ticket: bytes) -> int:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(_SOCKET_SECONDS)
        connection.connect(path)
        connection.send(ticket)
        _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
    if len(descriptors) != 1:
        raise OSError("the daemon did not hand out the region")
    return descriptors[0]


def _fetch(target: str, made: pb.CreateRegionResponse) -> int:
    try:
        return _receive(made.socket_path, made.ticket)
    except (FileNotFoundError, ConnectionRefusedError):
        # The daemon's own name for its socket may mean nothing here: in another container it lies beside the one that calls go to.
        folder = os.path.dirname(target[len("unix:"):])
        return _receive(os.path.join(folder, os.path.basename(made.socket_path)), made.ticket)


def _map(fd: int, size: int) -> mmap.mmap:
    try:
        if os.fstat(fd).st_size < size:  # else its use could end in SIGBUS
            raise OSError("the daemon's region is smaller than it says")
        return mmap.mmap(fd, size, mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))
    finally:
        os.close(fd)


def is_of_region(error: grpc.RpcError) -> bool:
    """Whether this error of a call that named a region says that regions are of no use now, rather than what is wrong with the array."""
    if error.code() in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.RESOURCE_EXHAUSTED):
        return True
    return error.code() == grpc.StatusCode.NOT_FOUND and "/regions/" in _errors.from_rpc(error).metadata.get("name", "")


class SharedMemory:
    """Thread-safe. Belongs to one session."""

    def __init__(self, channels, session: str):
        self._channels, self._session = channels, session
        self._stub = region_service_pb2_grpc.RegionServiceStub(channels.control)
        self._bounce: Optional[Region] = None
        self._bounce_lock = threading.Lock()  # a transfer holds it
        self._lock = threading.Lock()
        self._next_try = 0.0
        # By name: where each begins, how long it is, and its bytes, which go with their last user.
        self._users: Dict[str, Tuple[int, int, weakref.ref]] = {}

    # --- transfers ---

    def use(self, values: np.ndarray, bounce_bytes: int, move: Callable[[str, Optional[int], Optional[np.ndarray]], None]) -> bool:
        """Moves the bytes `values` by `move(region, in_place, bounce)` where a region is of use: the user's own that they lie in (`in_place` is
        their offset), or one to copy through (`bounce` are its bytes), which nobody else uses meanwhile. False: there is none just now, or it
        turned out to be of no use; then bytes travel in messages."""
        if values.size < MIN_BYTES:
            return False
        found = self._find(values)
        if found is not None:
            name, offset = found
            try:
                move(name, offset, None)
                return True
            except grpc.RpcError as error:
                if not is_of_region(error):
                    raise
                if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED:
                    with self._lock:
                        self._users.pop(name, None)  # ordinary memory from now on
                return False
        if not self._bounce_lock.acquire(blocking=False):
            return False
        try:
            region = self._bounce_region(bounce_bytes)
            if region is None:
                return False
            try:
                move(region.name, None, region.values)
                return True
            except BaseException as error:
                # The daemon may still use it.
                self._bounce = None
                self._delete(region.name)
                if not isinstance(error, grpc.RpcError) or not is_of_region(error):
                    raise
                if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED:
                    self._pause()
                return False
        finally:
            self._bounce_lock.release()

    def _bounce_region(self, size: int) -> Optional[Region]:
        if not is_unix(self._channels.target) or time.monotonic() < self._next_try:
            return None
        if self._bounce is None or self._bounce.size < size:
            if self._bounce is not None:
                self._delete(self._bounce.name)
                self._bounce = None
            try:
                # Few sizes, so that it rarely has to grow.
                self._bounce = self._make(max(_LEAST_BOUNCE_BYTES, 1 << (size - 1).bit_length()))
            except (OSError, grpc.RpcError):
                self._pause()
        return self._bounce

    def _pause(self) -> None:
        self._next_try = time.monotonic() + _PAUSE_SECONDS

    def _find(self, values: np.ndarray) -> Optional[Tuple[str, int]]:
        address = address_of(values)
        with self._lock:
            for name, (begin, size, _) in self._users.items():
                if begin <= address and address + values.size <= begin + size:
                    return name, address - begin
        return None

    # --- regions ---

    def _make(self, size: int) -> Region:
        made = self._stub.CreateRegion(pb.CreateRegionRequest(parent=self._session, size_bytes=size), timeout=_CALL_SECONDS)
        try:
            return Region(made.region.name, _map(_fetch(self._channels.target, made), made.region.size_bytes))
        except BaseException:
            self._delete(made.region.name)
            raise

    def _delete(self, name: str) -> None:
        """Does not wait: failure is no matter, it goes with the session."""
        try:
            self._stub.DeleteRegion.future(pb.DeleteRegionRequest(name=name), timeout=_CALL_SECONDS)
        except Exception:  # the channel is closed
            pass

    def empty(self, shape, dtype: np.dtype) -> np.ndarray:
        """An array of zeros in a region of its own."""
        if not is_unix(self._channels.target):
            raise _errors.Unimplemented("Memory is shared only with a daemon on this machine, by its Unix socket")
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        count = math.prod(shape)
        try:
            region = self._make(max(1, count * dtype.itemsize))
        except grpc.RpcError as error:
            raise _errors.from_rpc(error) from None
        except OSError as error:
            raise _errors.Unavailable(f"No region can be fetched from the daemon: {error}") from None
        with self._lock:
            self._users[region.name] = (region.address, region.size, weakref.ref(region.values))
        weakref.finalize(region.values, _release, weakref.ref(self), region.name)
        return np.frombuffer(region.values, dtype, count).reshape(shape)

    def release(self, name: str) -> None:
        if self._lock.acquire(timeout=1):  # a garbage collection may come at any time
            self._users.pop(name, None)
            self._lock.release()
        self._delete(name)

    def keep_user_arrays(self) -> None:
        """Before the session ends, and the daemon takes its pages back: their bytes move into this process's own memory, at the same place."""
        with self._lock:
            users, self._users = self._users, {}
        for _, _, held in users.values():
            values = held()
            if values is not None:
                kept = values.copy()
                _replace_by_own(address_of(values), values.size)
                values[:] = kept


def _replace_by_own(address: int, size: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
    if libc.mmap(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) != address:
        raise OSError(ctypes.get_errno(), "no memory to keep a shared array in")


def _release(shared: "weakref.ref[SharedMemory]", name: str) -> None:
    alive = shared()
    if alive is not None:
        alive.release(name)
