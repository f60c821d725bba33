"""The memory of the service's arrays, mapped into this process: no copy, and no byte by a socket.

The daemon lends the memory of one array (RegionService.MapArray) and gives its descriptor for a ticket. On a
CPU device that is a file of memory; on a GPU it is a handle that the CUDA driver maps. The loan lasts as long
as the connection that delivered the descriptor, which stays open while this process uses the memory."""

import mmap
import os
import socket
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

import numpy as np

from stride import _cuda_memory, _dlpack, _errors
from stride._ticket import fetch_descriptor
from stride.v1 import region_service_pb2 as pb

if TYPE_CHECKING:
    from stride._array import Array
    from stride._graph import Buffer

__all__ = ["MappedArray"]

_END_SECONDS = 60.0  # for the daemon to end a loan


class _Loan:
    """The connection that keeps it."""

    def __init__(self, connection: socket.socket):
        self._connection, self._process = connection, os.getpid()
        self.returned = False

    def give_back(self) -> None:
        self.returned = True
        if os.getpid() != self._process:
            return  # a forked child has copies; the loan is its parent's
        try:
            self._connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the daemon has ended

    def await_end(self) -> None:
        """Until the daemon has closed its side."""
        try:
            self._connection.settimeout(_END_SECONDS)
            self._connection.recv(1)
        except OSError:
            pass
        self._connection.close()

    def __del__(self):
        self._connection.close()


class _HostMemory:
    """A private mapping shows the service's bytes, and keeps writes in this process."""

    def __init__(self, descriptor: int, reply: pb.MapArrayResponse, hand_over: bool):
        size = reply.memory_bytes
        if os.fstat(descriptor).st_size < size:  # else its use could end in SIGBUS
            raise OSError("the memory is smaller than the daemon says")
        flags = mmap.MAP_SHARED if hand_over else mmap.MAP_PRIVATE
        self._bytes = np.frombuffer(mmap.mmap(descriptor, size, flags), np.uint8)
        self.address = self._bytes.__array_interface__["data"][0]
        self.device = (_dlpack.CPU, 0)


class _DeviceMemory:
    def __init__(self, descriptor: int, reply: pb.MapArrayResponse, driver: Optional[_cuda_memory.Driver]):
        driver = driver or _cuda_memory.load_driver()
        if driver is None:
            raise _errors.Unavailable(
                "The memory of a GPU is mapped by its CUDA driver, and none (libcuda) can be loaded here; read "
                "the array "
                "by to_numpy()"
            )
        self._mapped = driver.map_shared(descriptor, reply.memory_bytes, reply.device[len("devices/"):])
        self.address = self._mapped.address
        self.device = (_dlpack.CUDA, self._mapped.ordinal)

    def __del__(self):
        mapped = getattr(self, "_mapped", None)
        if mapped is not None:
            mapped.close()


class _Memory:
    """The state that all views of the memory share."""

    def __init__(self, memory: Any, loan: _Loan):
        self._memory, self._loan = memory, loan
        self.address, self.device = memory.address, memory.device

    def view(self, address: int, size: int) -> np.ndarray:
        """Bytes of host memory, which keep this."""
        held = _Held(self, {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3})
        return np.asarray(held)

    def __del__(self):
        self._memory = None  # unmapped first
        self._loan.give_back()


class _Held:
    """NumPy keeps the object that it takes an interface from."""

    def __init__(self, memory: _Memory, interface: Dict[str, Any]):
        self._memory, self.__array_interface__ = memory, interface


class MappedArray:
    """The memory of an array of the service, as `Array.map_memory` maps it. NumPy (`numpy.asarray`), PyTorch, CuPy and
    JAX (their `from_dlpack`) and Numba (`numba.cuda.as_cuda_array`) make arrays of it without a copy.

    The service's array cannot be written until this object and all arrays made of it are deleted.

    Parameters
        memory: what is mapped.
        reply: the daemon's answer.
        dtype: the element type.
        shape: the extents.
        read_only: whether the service keeps the array.
    Example
        >>> m = st.arange(3).map_memory()
        >>> np.asarray(m).tolist()
        [0, 1, 2]
    """

    def __init__(
        self, memory: _Memory, reply: pb.MapArrayResponse, dtype: np.dtype, shape: Tuple[int, ...], read_only: bool
    ):
        self._memory: Optional[_Memory] = memory
        self._place = memory.address + reply.offset
        self.device: str = reply.device
        self.device_kind: str = reply.device_kind
        self.dtype, self.shape, self.strides = dtype, shape, tuple(reply.strides)
        self.read_only = read_only

    def __repr__(self) -> str:
        return f"<stride.MappedArray of shape {self.shape}, {self.dtype}, on {self.device}>"

    def _open(self) -> _Memory:
        if self._memory is None:
            raise ValueError("the mapping is closed")
        return self._memory

    def close(self) -> None:
        """Releases this object's reference. The loan ends once no array made of it is left.

        Returns
            None.
        Example
            >>> st.arange(3).map_memory().close()
        """
        self._memory = None

    def __enter__(self) -> "MappedArray":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def to_numpy(self) -> np.ndarray:
        """An array of NumPy in the mapped memory, of a CPU device: no copy. It is for reading unless the memory was
        handed over.

        Returns
            A numpy.ndarray.
        Raises
            BufferError for the memory of a GPU.
        Example
            >>> st.arange(3).map_memory().to_numpy()
            array([0, 1, 2])
        """
        memory = self._open()
        if memory.device[0] != _dlpack.CPU:
            raise BufferError(f"the memory is that of {self.device}: use from_dlpack of PyTorch, CuPy or JAX")
        first = sum((n - 1) * stride for n, stride in zip(self.shape, self.strides) if stride < 0)
        last = sum((n - 1) * stride for n, stride in zip(self.shape, self.strides) if stride > 0)
        view = memory.view(self._place + first, last - first + self.dtype.itemsize)
        values = np.ndarray(self.shape, self.dtype, view, -first, self.strides)
        values.setflags(write=not self.read_only)
        return values

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        values = self.to_numpy()
        if dtype is not None and np.dtype(dtype) != self.dtype:
            if copy is False:
                raise ValueError(f"another type than {self.dtype} needs a copy")
            return values.astype(dtype)
        return np.array(values) if copy else values

    def __dlpack_device__(self) -> Tuple[int, int]:
        return self._open().device

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        """A capsule of the memory. The service has written it before it was mapped: no stream has to wait."""
        memory = self._open()
        if dl_device is not None and tuple(dl_device) != memory.device:
            raise BufferError(f"the memory is that of DLPack's device {memory.device}, not {tuple(dl_device)}")
        if copy:
            raise BufferError("mapped memory is given as it is: copy with the library that takes it")
        if memory.device[0] == _dlpack.CPU and stream not in (None, -1):
            raise BufferError(f"host memory has no streams: stream must be None, not {stream!r}")
        return _dlpack.capsule(
            memory, self._place, memory.device, self.dtype, self.shape, self.strides, self.read_only, max_version
        )

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        memory = self._open()
        if memory.device[0] != _dlpack.CUDA or _dlpack.is_bfloat16(self.dtype):
            raise AttributeError("only a GPU's memory of NumPy's types has a CUDA array interface")
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self._place, self.read_only),
            "strides": self.strides,
            "version": 3,
        }


def map_memory(array: "Array", hand_over: bool = False, driver: Optional[_cuda_memory.Driver] = None) -> MappedArray:
    """Waits until the array has been computed. `Array.map_memory` has the rest."""
    session, node = array.session, array._node
    if session._is_trace:
        raise _errors.TracingError("the memory of an array cannot be mapped inside a function that is traced")
    if hand_over:
        session._settle()  # recorded operations read the array while the service has it
        session._flush((node,))
        session.synchronize()  # and released arrays no longer use its memory
    session._await_acceptance(node)
    session._tell(session._stream.take_failure(node.buffer))
    request = pb.MapArrayRequest(name=f"{session.name}/arrays/{node.handle}", hand_over=hand_over)
    try:
        reply = session._call(session._shared.stub.MapArray, request)
    except _errors.StrideError as error:
        if not error.origin:
            error.origin = session._origin_of(node)
        raise
    memory, loan = _open(session._channels.target, reply, hand_over, driver)
    mapping = MappedArray(memory, reply, node.dtype, node.shape, read_only=not hand_over)
    if hand_over:
        array.delete()
        return mapping
    with session._lock:
        buffer = node.own_buffer()
        buffer.end_copy()
        buffer.loans = [*(buffer.loans or ()), loan]
    return mapping


def _open(target: str, reply: pb.MapArrayResponse, hand_over: bool, driver: Any) -> Tuple[_Memory, _Loan]:
    try:
        descriptor, connection = fetch_descriptor(target, reply.socket_path, reply.ticket)
    except OSError as error:
        raise _errors.Unavailable(f"The array's memory cannot be fetched from the daemon: {error}") from None
    loan = _Loan(connection)
    try:
        if reply.device_kind == "cpu":
            return _Memory(_HostMemory(descriptor, reply, hand_over), loan), loan
        return _Memory(_DeviceMemory(descriptor, reply, driver), loan), loan
    except OSError as error:
        raise _errors.Unavailable(f"The array's memory cannot be mapped: {error}") from None
    finally:
        os.close(descriptor)


def check_returned(buffer: "Buffer") -> None:
    """Raises for a write while the buffer's memory is mapped; after that waits until the daemon knows of its end."""
    loans: List[_Loan] = buffer.loans or []
    if any(not loan.returned for loan in loans):
        raise _errors.FailedPrecondition(
            "the array cannot be written while its memory is mapped: close the mapping, and drop the arrays that were "
            "made of it, or write to a copy",
            reason="WRONG_STATE",
        )
    for loan in loans:
        loan.await_end()
    buffer.loans = None
