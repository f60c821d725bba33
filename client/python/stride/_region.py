"""One region of the daemon's memory (RegionService), mapped here."""

import ctypes
import mmap
import os
import socket
from typing import Optional

import numpy as np

from stride._ticket import fetch_descriptor
from stride.v1 import region_service_pb2 as pb

_MREMAP_MAYMOVE_AND_FIXED = 3
_MAP_FAILED = ctypes.c_void_p(-1).value


class Region:
    """A mapped region, unmapped once neither it nor its `values`, the bytes, are referenced. While
    `connection` is open the bytes stay, even if the daemon or the session ends; only deletion of the region
    zeroes them."""

    def __init__(self, name: str, mapping: mmap.mmap, connection: Optional[socket.socket] = None):
        self.name = name
        self.values = np.frombuffer(mapping, np.uint8)
        self.address = address_of(self.values)
        self._connection = connection

    def __del__(self):
        if self._connection is not None:
            self._connection.close()

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
        if self._connection is not None:
            self._connection.close()


def address_of(values: np.ndarray) -> int:
    return values.__array_interface__["data"][0]


def open_region(target: str, made: pb.CreateRegionResponse, hold: bool) -> Region:
    """Maps the region that the daemon at `target` has created. `hold`: its bytes outlive the session."""
    descriptor, connection = fetch_descriptor(target, made.socket_path, made.ticket)
    if not hold:
        connection.close()
    return Region(made.region.name, _map(descriptor, made.region.size_bytes), connection if hold else None)


def _map(fd: int, size: int) -> mmap.mmap:
    try:
        if os.fstat(fd).st_size < size:  # otherwise an access could raise SIGBUS
            raise OSError("the daemon's region is smaller than it says")
        return mmap.mmap(fd, size, mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))
    finally:
        os.close(fd)
