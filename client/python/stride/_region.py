"""One region of the daemon's memory (RegionService), mapped here."""

import ctypes
import mmap
import os
import socket
from typing import Optional

import numpy as np


_MREMAP_MAYMOVE_AND_FIXED = 3
_MAP_FAILED = ctypes.c_void_p(-1).value


class Region:
    """A mapped region, unmapped once neither it nor its `values`, the bytes, are referenced. While `pin` is open
    the bytes stay, even if the daemon or the session ends; only deletion of the region zeroes them."""

    def __init__(self, name: str, mapping: mmap.mmap, pin: Optional[socket.socket] = None):
        self.name = name
        self.values = np.frombuffer(mapping, np.uint8)
        self.address = address_of(self.values)
        self._pin = pin

    def __del__(self):
        if self._pin is not None:
            self._pin.close()

    @property
    def size(self) -> int:
        return self.values.size

    def make_own(self) -> None:
        """Moves the bytes into memory of this process, at the same address, so that the region may be
        deleted. Concurrent reads are safe; concurrent writes may be lost."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
        libc.mmap.argtypes = (
            ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64,
        )
        libc.mremap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
        own = libc.mmap(None, self.size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        if own == _MAP_FAILED:
            raise OSError(ctypes.get_errno(), "no memory to keep a shared array in")
        ctypes.memmove(own, self.address, self.size)
        if libc.mremap(own, self.size, self.size, _MREMAP_MAYMOVE_AND_FIXED, self.address) != self.address:
            raise OSError(ctypes.get_errno(), "a shared array cannot be moved")
        if self._pin is not None:
            self._pin.close()


def address_of(values: np.ndarray) -> int:
    return values.__array_interface__["data"][0]


def map_region(fd: int, size: int) -> mmap.mmap:
    """Maps the descriptor and closes it."""
    try:
        if os.fstat(fd).st_size < size:  # otherwise an access could raise SIGBUS
            raise OSError("the daemon's region is smaller than it says")
        return mmap.mmap(fd, size, mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))
    finally:
        os.close(fd)
