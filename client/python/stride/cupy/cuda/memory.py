"""Memory pools by the module's name in CuPy."""

from stride.cupy._pools import (
    ManagedMemory,
    MemoryPool,
    PinnedMemoryPool,
    get_allocator,
    malloc,
    set_allocator,
    using_allocator,
)
from stride._errors import ResourceExhausted as OutOfMemoryError

__all__ = [
    "ManagedMemory",
    "MemoryPool",
    "OutOfMemoryError",
    "PinnedMemoryPool",
    "alloc",
    "get_allocator",
    "malloc",
    "set_allocator",
    "using_allocator",
]
alloc = malloc
