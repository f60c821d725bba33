"""Memory pools, as CuPy's programs ask for them. Memory is the daemon's: what has no meaning here does nothing and says
so."""

import contextlib
from typing import Any

from stride import _execution
from stride._execution import refused


class MemoryPool:
    """Numbers of the device's memory. Methods that free or limit memory do nothing: the daemon keeps memory and each
    tenant's quota."""

    def __init__(self, allocator: Any = None):
        pass

    def used_bytes(self) -> int:
        """Bytes of arrays on the current device, all sessions' together."""
        return _execution.array_bytes(_execution.Place().described)[0]

    def total_bytes(self) -> int:
        """Bytes that the service has taken for arrays on the current device."""
        return _execution.array_bytes(_execution.Place().described)[1]

    def free_bytes(self) -> int:
        """Bytes that the service has taken and no array has."""
        used, total = _execution.array_bytes(_execution.Place().described)
        return total - used

    def n_free_blocks(self) -> int:
        """0: what is free is the daemon's."""
        return 0

    def free_all_blocks(self, stream: Any = None) -> None:
        """Does nothing: an array's memory is free once nothing holds the array."""

    def free_all_free(self) -> None:
        """Does nothing, as free_all_blocks."""

    def set_limit(self, size: Any = None, fraction: Any = None) -> None:
        """Does nothing: a tenant's quota is the daemon's to set."""

    def get_limit(self) -> int:
        """0: no limit of the client's own."""
        return 0

    def malloc(self, size: int):
        """Refused: make an array, such as cp.empty(size, dtype=cp.uint8)."""
        refused(
            "MemoryPool.malloc",
            "memory of the device has no address in a client; make an array, such as cp.empty(size, dtype=cp.uint8)",
        )


class PinnedMemoryPool:
    """A pool of nothing: the client needs no page-locked memory."""

    def __init__(self, allocator: Any = None):
        pass

    def n_free_blocks(self) -> int:
        """0."""
        return 0

    def used_bytes(self) -> int:
        """0."""
        return 0

    def free_all_blocks(self) -> None:
        """Does nothing."""

    def malloc(self, size: int):
        """Refused: use cupyx.empty_pinned, an ordinary array."""
        refused(
            "PinnedMemoryPool.malloc", "the client needs no page-locked memory; use cupyx.empty_pinned or a NumPy array"
        )


class ManagedMemory:
    """Refused: the host reaches the device's memory through arrays."""

    def __init__(self, *_):
        refused("ManagedMemory", "the host reaches the device's memory through arrays")


_pool, _pinned = MemoryPool(), PinnedMemoryPool()


def get_default_memory_pool() -> MemoryPool:
    """The one pool."""
    return _pool


def get_default_pinned_memory_pool() -> PinnedMemoryPool:
    """The one pool of the host."""
    return _pinned


def set_allocator(allocator: Any = None) -> None:
    """Does nothing: the daemon allocates."""


def get_allocator():
    """The pool's malloc, which is refused: the daemon allocates."""
    return _pool.malloc


def set_pinned_memory_allocator(allocator: Any = None) -> None:
    """Does nothing: the client needs no page-locked memory."""


@contextlib.contextmanager
def using_allocator(allocator: Any = None):
    """Does nothing: the daemon allocates."""
    yield


def malloc(size: int):
    """Refused: make an array."""
    return _pool.malloc(size)
