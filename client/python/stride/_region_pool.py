"""Regions that hold NumPy arrays: results that the daemon wrote there, and memory that users requested."""

import os
import threading
import weakref
from collections import Counter, deque
from contextlib import contextmanager
from typing import Callable, Dict, Iterator, List, Optional, Tuple

import numpy as np

from stride._region import Region

# Idle memory kept for later results, such as two of 256 MiB in turn: allocation costs the daemon up to a
# second per GiB. It counts against the tenant's quota, and is released when no read has used it for a while
# or the session needs the memory.
MAX_IDLE_BYTES = 512 << 20
# Lent and idle bytes: half of a tenant's quota, which leaves some to its other sessions.
MAX_REGIONS = 32
# Number of size classes of result regions in each doubling: a result's region is at most a quarter too large.
_SIZES_IN_DOUBLING = 4


class Loan:
    """The base of an array whose memory is a region. The region returns to the pool with the last view."""

    __slots__ = ("region", "reusable", "done", "__array_interface__", "_pool", "__weakref__")

    def __init__(self, region: Region, size: int, reusable: bool, pool: "RegionPool"):
        self.region = region
        self.reusable = reusable
        self.done = False  # an array has it
        self._pool = weakref.ref(pool)
        self.__array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (region.address, False), "version": 3}

    def array(self, dtype: np.dtype, shape: Tuple[int, ...]) -> np.ndarray:
        self.done = True
        return np.asarray(self).view(dtype).reshape(shape)

    def __del__(self):
        pool = self._pool()
        if pool is not None:
            pool.give_back(self.region, self.reusable)


class RegionPool:
    """Thread-safe and reentrant: a garbage collection may return regions at any moment. `delete(name, wait)`
    waits for the daemon if `wait` is set."""

    def __init__(self, make: Callable[[int], Region], delete: Callable[..., None]):
        self._make, self._delete = make, delete
        self._lock = threading.Lock()
        self._lent: Dict[str, weakref.ref] = {}
        self._idle: List[Region] = []  # most recently used last
        self._rested: List[str] = []  # idle at the last trim
        self._returned: deque = deque()
        self._asked: Counter = Counter()  # regions of results, by size
        self._closed = False
        _pools.add(self)

    def lend(self, size: int, reuse: bool) -> Optional[Loan]:
        """A zeroed region of at least `size` bytes. `reuse`: with old content, and None if none fits and a
        new one does not pay. Raises the errors of `make`."""
        whole = _whole(size) if reuse else max(1, size)
        region = None
        if reuse:
            with self._locked():
                region = self._take_idle(whole)
                pays = region is not None or self._pays(whole)
                self._asked[whole] += 1
            if not pays:
                return None
        if region is None:
            region = self._make_within_limit(whole) if reuse else self._make(whole)
        loan = Loan(region, size, reuse, self)
        with self._locked():
            if not self._closed:
                self._lent[region.name] = weakref.ref(loan)
        return loan

    def find(self, address: int, size: int) -> Optional[Tuple[str, int]]:
        """The region that contains these bytes, and their offset in it."""
        with self._locked():
            for name, held in self._lent.items():
                loan = held()
                if (
                    loan is not None
                    and loan.region.address <= address
                    and address + size <= loan.region.address + loan.region.size
                ):
                    return name, address - loan.region.address
        return None

    def forget(self, name: str) -> None:
        """For a region that the daemon no longer knows: its bytes are ordinary memory from now on, and other
        idle regions are equally old."""
        with self._locked():
            self._lent.pop(name, None)
            self._idle.clear()

    def drop_idle(self) -> bool:
        """Deletes idle regions and waits until the daemon has their memory. False: there are none."""
        with self._locked():
            idle, self._idle = self._idle, []
        for region in idle:
            self._delete(region.name, wait=True)
        return bool(idle)

    def rest(self) -> None:
        """Called periodically: deletes regions that have been idle since the previous call."""
        with self._locked():
            gone = [region for region in self._idle if region.name in self._rested]
            self._idle = [region for region in self._idle if region.name not in self._rested]
            self._rested = [region.name for region in self._idle]
        for region in gone:
            self._delete(region.name)

    def close(self) -> None:
        """Ends with the session. Lent regions stay valid for their holders."""
        with self._locked():
            self._closed, self._lent, self._idle = True, {}, []

    def give_back(self, region: Region, reusable: bool) -> None:
        self._returned.append((region, reusable))
        self._settle()

    def before_fork(self) -> None:
        """Parent and child must not see each other's writes."""
        gone = []
        try:
            with self._locked():
                gone, self._idle = self._idle, []
                for loan in [held() for held in self._lent.values()]:
                    if loan is not None and loan.reusable and loan.done:
                        loan.region.make_own()
                        del self._lent[loan.region.name]
                        gone.append(loan.region)
        finally:
            for region in gone:
                self._delete(region.name, wait=True)

    # --- inside ---

    def _pays(self, size: int) -> bool:
        """Creating a region takes longer than a copy to ordinary memory, and pays only for programs that
        repeatedly read and release such results. The first read may be the only one, and few programs that
        keep all results pay for a region."""
        num_lent = sum(loan.region.size == size for held in self._lent.values() if (loan := held()) is not None)
        return num_lent < self._asked[size].bit_length() and len(self._lent) < MAX_REGIONS

    def _make_within_limit(self, size: int) -> Region:
        if len(self._lent) + len(self._idle) >= MAX_REGIONS:
            self.drop_idle()
        return self._make(size)

    def _take_idle(self, size: int) -> Optional[Region]:
        for i in reversed(range(len(self._idle))):
            if self._idle[i].size == size:
                return self._idle.pop(i)
        return None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock:
            yield
        self._settle()

    def _settle(self) -> None:
        """A thread that finds the lock taken leaves the work to its holder, which checks again after it
        releases the lock."""
        while self._returned and self._lock.acquire(blocking=False):
            try:
                gone = self._take_in()
            finally:
                self._lock.release()
            for region in gone:
                self._delete(region.name)

    def _take_in(self) -> List[Region]:
        gone = []
        while self._returned:
            region, reusable = self._returned.popleft()
            if self._lent.pop(region.name, None) is None:
                continue  # unknown to the daemon
            (self._idle if reusable else gone).append(region)
        # Concurrent threads may have created more than the limit.
        while self._idle and (
            sum(region.size for region in self._idle) > MAX_IDLE_BYTES
            or len(self._lent) + len(self._idle) > MAX_REGIONS
        ):
            gone.append(self._idle.pop(0))
        return gone


def _whole(size: int) -> int:
    step = max(1 << 20, 1 << (size.bit_length() - 1)) // _SIZES_IN_DOUBLING
    return -(-size // step) * step


_pools: "weakref.WeakSet[RegionPool]" = weakref.WeakSet()


def _before_fork() -> None:
    for pool in list(_pools):
        pool.before_fork()


os.register_at_fork(before=_before_fork)
