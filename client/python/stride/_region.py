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
    """Unmapped when nobody has it or its `values`, the bytes. While `connection` is open the daemon leaves the bytes as they are, whatever becomes of
    it and of the session; only the region's deletion makes zeros of them."""

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
        """The bytes move into memory of this process, at the same place, and the region may be deleted. Who reads them meanwhile sees no difference;
        what is written meanwhile may be lost."""
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
    """The region that the daemon at `target` has made. `hold`: its bytes are to outlive the session."""
    descriptor, connection = fetch_descriptor(target, made.socket_path, made.ticket)
    if not hold:
        connection.close()
    return Region(made.region.name, _map(descriptor, made.region.size_bytes), connection if hold else None)


def _map(fd: int, size: int) -> mmap.mmap:
    try:
        if os.fstat(fd).st_size < size:  # else its use could end in SIGBUS
            raise OSError("the daemon's region is smaller than it says")
        return mmap.mmap(fd, size, mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))
    finally:
        os.close(fd)
