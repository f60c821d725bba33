"""Memory shared with a daemon on this machine (RegionService): one bounce region for transfers, and regions
that hold arrays."""

import math
import threading
import time
from typing import Callable, Optional

import grpc
import numpy as np

from stride import _errors
from stride._address import is_unix
from stride._callers import Callers, Crew
from stride._local_connection import LocalConnections
from stride._region import Region, address_of, open_region
from stride._region_pool import Loan, RegionPool
from stride.v1 import region_service_pb2 as pb, region_service_pb2_grpc

# Size from which a copy through a region, and creating the region, pays with gRPC, where a call takes about a
# millisecond.
MIN_BYTES = 2 << 20
# The same with local connections: the sizes from which creating a region pays, and using an existing one.
MIN_LOCAL_BYTES = 1 << 20
MIN_LOCAL_USE_BYTES = 64 << 10
# Size from which the daemon writes a result directly to its array's memory, and reads uploads there.
MIN_RESULT_BYTES = 1 << 20
# Largest size of the bounce region.
MAX_BOUNCE_BYTES = 256 << 20
_BOUNCE_BYTES_OF_THREAD = 64 << 20
# Few sizes, so that the region rarely grows, and small for programs with small arrays.
_LEAST_BOUNCE_BYTES, _SMALL_BOUNCE_BYTES = 32 << 20, 4 << 20
# Time before a daemon that refused a region is asked again.
_PAUSE_SECONDS = 10.0
_CALL_SECONDS = 10.0


# Moves bytes: move(crew, region, in_place, bounce).
Move = Callable[[Crew, str, Optional[int], Optional[np.ndarray]], None]


def is_of_region(error: _errors.StrideError) -> bool:
    """Whether the error of a call with a region means that regions are unusable now, not that the array is at fault."""
    if isinstance(error, (_errors.Unimplemented, _errors.ResourceExhausted)):
        return True
    return isinstance(error, _errors.NotFound) and "/regions/" in error.metadata.get("name", "")


class SharedMemory:
    """Thread-safe. Belongs to one session."""

    def __init__(self, channels, session: str, local: Optional[LocalConnections] = None):
        self._channels, self._session = channels, session
        self._stub = region_service_pb2_grpc.RegionServiceStub(channels.control)
        self._callers = Callers(channels, local)
        self._bounce: Optional[Region] = None
        self._bounce_lock = threading.Lock()  # a transfer holds it
        self._next_try = self._next_result = 0.0
        self.arrays = RegionPool(lambda size: self._make_in_room(size, hold=True), self._delete)

    # --- transfers ---

    def use(self, values: np.ndarray, move: Move) -> bool:
        """Moves the bytes `values` by `move` through a region: the one that contains them (`in_place` is
        their offset), or the bounce region (`bounce` are its bytes, which may be fewer), which no other
        transfer uses at the time. False: no region is available or usable, and bytes travel in messages."""
        if values.size < (MIN_LOCAL_USE_BYTES if self._callers.local else MIN_RESULT_BYTES):
            return False
        found = self.arrays.find(address_of(values), values.size)
        if found is not None:
            name, offset = found
            try:
                with self._callers.crew(values.size) as crew:
                    move(crew, name, offset, None)
                return True
            except _errors.StrideError as error:
                if not is_of_region(error):
                    raise
                if not isinstance(error, _errors.ResourceExhausted):
                    self.arrays.forget(name)
                return False
        if values.size < self._least_to_bounce() or not self._bounce_lock.acquire(blocking=False):
            return False
        try:
            if not self._may_bounce():
                return False
            with self._callers.crew(values.size) as crew:
                region = self._bounce_region(
                    min(values.size, MAX_BOUNCE_BYTES, len(crew.callers) * _BOUNCE_BYTES_OF_THREAD)
                )
                if region is None:
                    return False
                move(crew, region.name, None, region.values)
            return True
        except BaseException as error:
            # The daemon may still use it.
            region, self._bounce = self._bounce, None
            if region is not None:
                self._delete(region.name)
            if not isinstance(error, _errors.StrideError) or not is_of_region(error):
                raise
            if not isinstance(error, _errors.ResourceExhausted):
                self._pause()
            return False
        finally:
            self._bounce_lock.release()

    def receive(self, size: int, move: Move) -> Optional[Loan]:
        """As `use`, for a download of `size` bytes into a new region, which is lent to the array made of it."""
        loan = self._lend_for_result(size)
        if loan is None:
            return None
        try:
            with self._callers.crew(size) as crew:
                move(crew, loan.region.name, 0, None)
            return loan
        except BaseException as error:
            loan.reusable = False  # the daemon may still write there
            if not isinstance(error, _errors.StrideError) or not is_of_region(error):
                raise
            if not isinstance(error, _errors.ResourceExhausted):
                self.arrays.forget(loan.region.name)
            return None

    def _lend_for_result(self, size: int) -> Optional[Loan]:
        if size < MIN_RESULT_BYTES or not is_unix(self._channels.target) or time.monotonic() < self._next_result:
            return None
        try:
            return self.arrays.lend(size, reuse=True)
        except (OSError, grpc.RpcError):
            self._next_result = time.monotonic() + _PAUSE_SECONDS
            return None

    def _least_to_bounce(self) -> int:
        if not self._callers.local:
            return MIN_BYTES
        return MIN_LOCAL_BYTES if self._bounce is None else MIN_LOCAL_USE_BYTES

    def _may_bounce(self) -> bool:
        return is_unix(self._channels.target) and time.monotonic() >= self._next_try

    def _bounce_region(self, size: int) -> Optional[Region]:
        if self._bounce is None or self._bounce.size < size:
            if self._bounce is not None:
                self._delete(self._bounce.name)
                self._bounce = None
            try:
                least = _SMALL_BOUNCE_BYTES if size <= _SMALL_BOUNCE_BYTES else _LEAST_BOUNCE_BYTES
                self._bounce = self._make_in_room(max(least, 1 << (size - 1).bit_length()), hold=False)
            except (OSError, grpc.RpcError):
                self._pause()
        return self._bounce

    def _pause(self) -> None:
        self._next_try = time.monotonic() + _PAUSE_SECONDS

    def rest(self) -> None:
        """Releases regions that have been idle for a while."""
        self.arrays.rest()
        self._callers.rest()

    def close(self) -> None:
        self.arrays.close()
        self._callers.close()

    def leave_to_parent(self) -> None:
        """In a forked child."""
        self._callers.leave_to_parent()

    # --- regions ---

    def _make_in_room(self, size: int, hold: bool) -> Region:
        """Idle regions give way."""
        try:
            return self._make(size, hold)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED or not self.arrays.drop_idle():
                raise
        return self._make(size, hold)

    def _make(self, size: int, hold: bool) -> Region:
        made = self._stub.CreateRegion(
            pb.CreateRegionRequest(parent=self._session, size_bytes=size), timeout=_CALL_SECONDS
        )
        try:
            return open_region(self._channels.target, made, hold)
        except BaseException:
            self._delete(made.region.name)
            raise

    def _delete(self, name: str, wait: bool = False) -> None:
        """Ignores failure: the region ends with the session."""
        try:
            call = self._stub.DeleteRegion.future(pb.DeleteRegionRequest(name=name), timeout=_CALL_SECONDS)
            if wait:
                call.result()
        except Exception:  # also: the channel is closed
            pass

    @property
    def stub(self) -> region_service_pb2_grpc.RegionServiceStub:
        return self._stub

    def empty(self, shape, dtype: np.dtype) -> np.ndarray:
        """An array of zeros in its own region."""
        if not is_unix(self._channels.target):
            raise _errors.Unimplemented("Memory is shared only with a daemon on this machine, by its Unix socket")
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        try:
            return _errors.call(self.arrays.lend, math.prod(shape) * dtype.itemsize, reuse=False).array(dtype, shape)
        except OSError as error:
            raise _errors.Unavailable(f"No region can be fetched from the daemon: {error}") from None
