"""Memory pools with CuPy's interface. The daemon manages memory: functions without a meaning here do nothing,
and are documented so."""

import contextlib
from typing import Any

from stride import _execution
from stride._execution import refused


class MemoryPool:
    """Numbers of the device's memory. Methods that free or limit memory do nothing: the daemon keeps memory and each
    tenant's quota.

    Parameters
        allocator: accepted and not used.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.MemoryPool().get_limit()
        0
    """

    def __init__(self, allocator: Any = None):
        pass

    def used_bytes(self) -> int:
        """Bytes of arrays on the current device, all sessions' together.

        Returns
            An int.
        Example
            >>> import stride.cupy as cp
            >>> cp.get_default_memory_pool().used_bytes() >= 0
            True
        """
        return _execution.array_bytes(_execution.Place().described)[0]

    def total_bytes(self) -> int:
        """Bytes that the service has allocated for arrays on the current device.

        Returns
            An int.
        Example
            >>> import stride.cupy as cp
            >>> cp.get_default_memory_pool().total_bytes() >= 0
            True
        """
        return _execution.array_bytes(_execution.Place().described)[1]

    def free_bytes(self) -> int:
        """Bytes that the service has taken and no array has.

        Returns
            An int.
        Example
            >>> import stride.cupy as cp
            >>> cp.get_default_memory_pool().free_bytes() >= 0
            True
        """
        used, total = _execution.array_bytes(_execution.Place().described)
        return total - used

    def n_free_blocks(self) -> int:
        """The number of free blocks: 0, since free memory is the daemon's.

        Returns
            An int.
        Example
            >>> import stride.cupy as cp
            >>> cp.get_default_memory_pool().n_free_blocks()
            0
        """
        return 0

    def free_all_blocks(self, stream: Any = None) -> None:
        """Does nothing: an array's memory is free once nothing holds the array.

        Parameters
            stream: accepted: operations run in order whatever the stream.
        Returns
            None.
        Example
            >>> import stride.cupy as cp
            >>> cp.get_default_memory_pool().free_all_blocks()
        """

    def free_all_free(self) -> None:
        """Does nothing: an array's memory is free once nothing holds the array.

        Returns
            None.
        Example
            >>> import stride.cupy as cp
            >>> cp.get_default_memory_pool().free_all_free()
        """

    def set_limit(self, size: Any = None, fraction: Any = None) -> None:
        """Does nothing: a tenant's quota is the daemon's to set.

        Parameters
            size: accepted.
            fraction: accepted.
        Returns
            None.
        Example
            >>> import stride.cupy as cp
            >>> cp.get_default_memory_pool().set_limit(size=1 << 30)
        """

    def get_limit(self) -> int:
        """The limit in bytes: 0, since the client has none.

        Returns
            An int.
        Example
            >>> import stride.cupy as cp
            >>> cp.get_default_memory_pool().get_limit()
            0
        """
        return 0

    def malloc(self, size: int):
        """Refused: make an array, such as cp.empty(size, dtype=cp.uint8).

        Parameters
            size: the bytes.
        Returns
            Nothing: it raises.
        Raises
            Unimplemented.
        Example
            >>> import stride.cupy as cp
            >>> try:
            ...     cp.get_default_memory_pool().malloc(8)
            ... except st.Unimplemented:
            ...     print("refused")
            ...
            refused
        """
        refused(
            "MemoryPool.malloc",
            "memory of the device has no address in a client; make an array, such as cp.empty(size, dtype=cp.uint8)",
        )


class PinnedMemoryPool:
    """A pool of nothing: the client needs no page-locked memory.

    Parameters
        allocator: accepted and not used.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.PinnedMemoryPool().used_bytes()
        0
    """

    def __init__(self, allocator: Any = None):
        pass

    def n_free_blocks(self) -> int:
        """The number of free blocks: 0.

        Returns
            An int.
        Example
            >>> import stride.cupy as cp
            >>> cp.get_default_pinned_memory_pool().n_free_blocks()
            0
        """
        return 0

    def used_bytes(self) -> int:
        """The bytes in use: 0.

        Returns
            An int.
        Example
            >>> import stride.cupy as cp
            >>> cp.get_default_pinned_memory_pool().used_bytes()
            0
        """
        return 0

    def free_all_blocks(self) -> None:
        """Does nothing: there are no blocks.

        Returns
            None.
        Example
            >>> import stride.cupy as cp
            >>> cp.get_default_pinned_memory_pool().free_all_blocks()
        """

    def malloc(self, size: int):
        """Refused: use cupyx.empty_pinned, an ordinary array.

        Parameters
            size: the bytes.
        Returns
            Nothing: it raises.
        Raises
            Unimplemented.
        Example
            >>> import stride.cupy as cp
            >>> try:
            ...     cp.get_default_pinned_memory_pool().malloc(8)
            ... except st.Unimplemented:
            ...     print("refused")
            ...
            refused
        """
        refused(
            "PinnedMemoryPool.malloc", "the client needs no page-locked memory; use cupyx.empty_pinned or a NumPy array"
        )


class ManagedMemory:
    """Refused: the host reaches the device's memory through arrays.

    Example
        >>> import stride.cupy as cp
        >>> try:
        ...     cp.cuda.ManagedMemory(8)
        ... except st.Unimplemented:
        ...     print("refused")
        ...
        refused
    """

    def __init__(self, *_):
        refused("ManagedMemory", "the host reaches the device's memory through arrays")


_pool, _pinned = MemoryPool(), PinnedMemoryPool()


def get_default_memory_pool() -> MemoryPool:
    """The pool of the device's memory.

    Returns
        A MemoryPool.
    Example
        >>> import stride.cupy as cp
        >>> cp.get_default_memory_pool().used_bytes() >= 0
        True
    """
    return _pool


def get_default_pinned_memory_pool() -> PinnedMemoryPool:
    """The pool of the host's memory.

    Returns
        A PinnedMemoryPool.
    Example
        >>> import stride.cupy as cp
        >>> cp.get_default_pinned_memory_pool().n_free_blocks()
        0
    """
    return _pinned


def set_allocator(allocator: Any = None) -> None:
    """Does nothing: the daemon allocates.

    Parameters
        allocator: accepted and not used.
    Returns
        None.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.set_allocator(None)
    """


def get_allocator():
    """The pool's malloc, which is refused: the daemon allocates.

    Returns
        A function, which raises Unimplemented.
    Example
        >>> import stride.cupy as cp
        >>> callable(cp.cuda.get_allocator())
        True
    """
    return _pool.malloc


def set_pinned_memory_allocator(allocator: Any = None) -> None:
    """Does nothing: the client needs no page-locked memory.

    Parameters
        allocator: accepted and not used.
    Returns
        None.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.set_pinned_memory_allocator(None)
    """


@contextlib.contextmanager
def using_allocator(allocator: Any = None):
    """Does nothing: the daemon allocates.

    Parameters
        allocator: accepted and not used.
    Returns
        A context.
    Example
        >>> import stride.cupy as cp
        >>> with cp.cuda.using_allocator(None):
        ...     x = cp.zeros(3)
        ...
    """
    yield


def malloc(size: int):
    """Refused: make an array.

    Parameters
        size: the bytes.
    Returns
        Nothing: it raises.
    Raises
        Unimplemented.
    Example
        >>> import stride.cupy as cp
        >>> try:
        ...     cp.cuda.alloc(8)
        ... except st.Unimplemented:
        ...     print("refused")
        ...
        refused
    """
    return _pool.malloc(size)
