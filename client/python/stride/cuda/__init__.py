"""The parts of Python kernels, under the names that Numba's `cuda` has; see stride.kernel.

    from stride import cuda

    @cuda.jit
    def add(x, y, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = x[i] + y[i]

    add[32, 128](x, y, out)

Names of threads, memory, barriers, atomics and warps have a meaning only inside a kernel. Outside one there are arrays
(`to_device`, `device_array`, `copy_to_host` of each array), streams, events, devices, `reduce`, `vectorize` and
`guvectorize`. `random` has generators that kernels use, `cg` the grid's barrier, `libdevice` the functions of CUDA's
mathematical library.

Arrays are the service's own, so that NumPy's functions take them too. The session's operations run in order: streams
are names for the session."""

from stride.cuda import cg
from stride.cuda._arrays import (
    as_cuda_array,
    device_array,
    device_array_like,
    is_cuda_array,
    managed_array,
    mapped_array,
    mapped_array_like,
    pinned,
    pinned_array,
    pinned_array_like,
    to_device,
)
from stride.cuda._intrinsics import (  # noqa: F401
    Group,
    Intrinsic,
    activemask,
    all_sync,
    any_sync,
    atomic,
    ballot_sync,
    blockDim,
    blockIdx,
    brev,
    cbrt,
    clz,
    const,
    eq_sync,
    ffs,
    fma,
    grid,
    gridDim,
    grid_group,
    gridsize,
    laneid,
    lanemask_lt,
    local,
    match_all_sync,
    match_any_sync,
    nanosleep,
    popc,
    selp,
    shared,
    shared_memory,
    shfl_down_sync,
    shfl_sync,
    shfl_up_sync,
    shfl_xor_sync,
    syncthreads,
    syncthreads_and,
    syncthreads_count,
    syncthreads_or,
    syncwarp,
    this_grid,
    threadfence,
    threadfence_block,
    threadfence_system,
    threadIdx,
    warpsize,
)
from stride.cuda._runtime import (
    close,
    current_context,
    default_stream,
    defer_cleanup,
    detect,
    event,
    event_elapsed_time,
    external_stream,
    get_current_device,
    get_num_devices,
    gpus,
    is_available,
    is_float16_supported,
    is_supported_version,
    legacy_default_stream,
    list_devices,
    per_thread_default_stream,
    profile_start,
    profile_stop,
    profiling,
    require_context,
    select_device,
    stream,
    synchronize,
)
from stride.cuda._compiled import (
    Reduce,
    compile_for_current_device,
    compile_ptx,
    compile_ptx_for_current_device,
    declare_device,
    guvectorize,
    jit,
    reduce,
    vectorize,
)
from stride.cuda.libdevice import LibdeviceFunction  # noqa: F401

__all__ = [
    "Reduce",
    "activemask",
    "all_sync",
    "any_sync",
    "as_cuda_array",
    "atomic",
    "ballot_sync",
    "blockDim",
    "blockIdx",
    "brev",
    "cbrt",
    "cg",
    "close",
    "clz",
    "compile_for_current_device",
    "compile_ptx",
    "compile_ptx_for_current_device",
    "const",
    "current_context",
    "declare_device",
    "default_stream",
    "defer_cleanup",
    "detect",
    "device_array",
    "device_array_like",
    "devicearray",
    "eq_sync",
    "event",
    "event_elapsed_time",
    "external_stream",
    "ffs",
    "fma",
    "fp16",
    "get_current_device",
    "get_num_devices",
    "gpus",
    "grid",
    "gridDim",
    "gridsize",
    "guvectorize",
    "is_available",
    "is_cuda_array",
    "is_float16_supported",
    "is_supported_version",
    "jit",
    "laneid",
    "lanemask_lt",
    "legacy_default_stream",
    "libdevice",
    "list_devices",
    "local",
    "managed_array",
    "mapped_array",
    "mapped_array_like",
    "match_all_sync",
    "match_any_sync",
    "nanosleep",
    "per_thread_default_stream",
    "pinned",
    "pinned_array",
    "pinned_array_like",
    "popc",
    "profile_start",
    "profile_stop",
    "profiling",
    "random",
    "reduce",
    "require_context",
    "select_device",
    "selp",
    "shared",
    "shfl_down_sync",
    "shfl_sync",
    "shfl_up_sync",
    "shfl_xor_sync",
    "stream",
    "synchronize",
    "syncthreads",
    "syncthreads_and",
    "syncthreads_count",
    "syncthreads_or",
    "syncwarp",
    "threadIdx",
    "threadfence",
    "threadfence_block",
    "threadfence_system",
    "to_device",
    "vectorize",
    "warpsize",
]


def __getattr__(name: str):
    """`cuda.random` is loaded at its first use, since it has kernels of its own; `fp16` and `devicearray` too."""
    if name in ("devicearray", "fp16", "random"):
        import importlib

        return importlib.import_module(f"stride.cuda.{name}")
    raise AttributeError(f"stride.cuda has no {name}")


def __dir__():
    return sorted({*globals(), "devicearray", "fp16", "random"})
