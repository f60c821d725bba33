"""CuPy's `cuda`: devices, streams, events, memory numbers and the runtime's functions that have a meaning to a client
of a daemon.

`Device(i)` as a context runs operations on that device of the daemon. A session's operations run in order: streams are
names for the session, and what synchronizes one waits for everything recorded. An event's `record` waits, so that times
between events are those of the work."""

import contextlib

from stride import _errors, _execution
from stride.cupy._pools import (  # noqa: F401
    ManagedMemory,
    MemoryPool,
    PinnedMemoryPool,
    get_allocator,
    malloc,
    set_allocator,
    set_pinned_memory_allocator,
    using_allocator,
)
from stride.cupy._raw import RawKernel as Function
from stride.cupy._raw import RawModule as Module
from stride.cupy._raw import compile_with_cache
from stride.cupy.cuda import device, memory, nvtx, profiler, runtime, stream, texture

__all__ = [
    "Device",
    "Event",
    "ExternalStream",
    "Function",
    "ManagedMemory",
    "MemoryPool",
    "Module",
    "PinnedMemoryPool",
    "Stream",
    "alloc",
    "alloc_pinned_memory",
    "compile_with_cache",
    "device",
    "get_allocator",
    "get_current_stream",
    "get_elapsed_time",
    "is_available",
    "memory",
    "nvtx",
    "profile",
    "profiler",
    "runtime",
    "set_allocator",
    "set_pinned_memory_allocator",
    "stream",
    "texture",
    "using_allocator",
]

Device, Event, Stream = device.Device, stream.Event, stream.Stream
ExternalStream, get_current_stream, get_elapsed_time = (
    stream.ExternalStream,
    stream.get_current_stream,
    stream.get_elapsed_time,
)


def is_available() -> bool:
    """Whether a daemon with a serving device can be reached. A CPU device runs kernels too.

    Returns
        A bool.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.is_available()
        True
    """
    try:
        return any(one.serving or one.state == "STARTING" for one in _execution.devices())
    except _errors.StrideError:
        return False


def alloc(size: int):
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
        ...     cp.cuda.alloc(8)
        ... except st.Unimplemented:
        ...     print("refused")
        ...
        refused
    """
    return malloc(size)


def alloc_pinned_memory(size: int):
    """Ordinary memory of the host, as a NumPy array of bytes: the client needs no page-locked memory.

    Parameters
        size: the bytes.
    Returns
        A numpy.ndarray of uint8.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.alloc_pinned_memory(8).nbytes
        8
    """
    import numpy

    return numpy.zeros(size, numpy.uint8)


def get_local_runtime_version() -> int:
    """The runtime's version, as runtime.runtimeGetVersion."""
    return runtime.runtimeGetVersion()


@contextlib.contextmanager
def profile():
    """A context that CUDA's profiler records. It does nothing: profile the daemon instead.

    Returns
        A context.
    Example
        >>> import stride.cupy as cp
        >>> with cp.cuda.profile():
        ...     x = cp.zeros(3)
        ...
    """
    yield


_REFUSED = {
    "nccl": "arrays are spread over devices with stride.Sharding",
    "cudnn": "the service has no cuDNN",
    "cub": "reductions and sorts are the service's own",
    "thrust": "sorts and scans are the service's own",
    "cublas": "use cp.matmul and cp.linalg",
    "cusolver": "use cp.linalg",
    "cufft": "use cp.fft",
    "curand": "use cp.random",
    "cusparse": "the service has no sparse matrices",
    "driver": "the driver is the daemon's",
    "nvrtc": "the daemon compiles; use RawModule",
    "cutensor": "use cp.einsum and cp.tensordot",
    "Graph": "use stride.jit",
    "BaseMemory": "memory is the daemon's",
    "Memory": "memory is the daemon's",
    "MemoryPointer": "memory of the device has no address in a client",
    "UnownedMemory": "memory of another library is copied in with cp.asarray",
    "MemoryAsyncPool": "use get_default_memory_pool()",
    "MemoryAsync": "memory is the daemon's",
    "CFunctionAllocator": "the daemon allocates",
    "PythonFunctionAllocator": "the daemon allocates",
    "MemoryHook": "memory is the daemon's",
    "memory_hooks": "memory is the daemon's",
    "function": "use RawKernel",
    "graph": "use stride.jit",
    "PinnedMemory": "use cupyx.empty_pinned",
    "PinnedMemoryPointer": "use cupyx.empty_pinned",
    "malloc_managed": "memory is the daemon's",
    "malloc_async": "memory is the daemon's",
    "PointerAttributes": "memory of the device has no address in a client",
    "get_cuda_path": "CUDA is the daemon's",
    "get_nvcc_path": "the daemon compiles",
    "get_rocm_path": "CUDA is the daemon's",
    "get_hipcc_path": "the daemon compiles",
}


def __getattr__(name: str):
    if name in _REFUSED:
        raise AttributeError(f"cupy.cuda.{name} is not there: {_REFUSED[name]}")
    raise AttributeError(f"stride.cupy.cuda has no {name}")
