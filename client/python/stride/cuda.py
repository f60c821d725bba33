"""What Python kernels are made of, under the names that Numba's `cuda` has; see stride.kernel.

    from stride import cuda

    @cuda.jit
    def add(x, y, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = x[i] + y[i]

    add[32, 128](x, y, out)

Outside a kernel these names do nothing but stand for what they mean inside one; `to_device`, `device_array` and `synchronize` are ordinary functions."""

import numpy as np

__all__ = ["atomic", "blockDim", "blockIdx", "device_array", "device_array_like", "grid", "gridDim", "gridsize", "jit", "laneid", "local", "shared",
           "synchronize", "syncthreads", "syncwarp", "threadIdx", "threadfence", "to_device", "warpsize"]


class Intrinsic:
    """Something that only a kernel has."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"<stride.cuda.{self.name}>"

    def __call__(self, *_, **__):
        raise TypeError(f"cuda.{self.name} has a meaning only inside a kernel made by stride.kernel")


class _Group:
    """Names with a dot: `threadIdx.x`, `atomic.add`."""

    def __init__(self, name: str, members):
        for member in members:
            setattr(self, member, Intrinsic(f"{name}.{member}"))


threadIdx, blockIdx, blockDim, gridDim = (_Group(name, "xyz") for name in ("threadIdx", "blockIdx", "blockDim", "gridDim"))  # noqa: N816
shared, local = _Group("shared", ["array"]), _Group("local", ["array"])
atomic = _Group("atomic", ["add", "sub", "min", "max", "and_", "or_", "xor", "exch", "cas"])
grid, gridsize, syncthreads, syncwarp, threadfence, laneid, warpsize = map(
    Intrinsic, ("grid", "gridsize", "syncthreads", "syncwarp", "threadfence", "laneid", "warpsize"))


def jit(function=None, *, device: bool = False, **_):
    """stride.kernel; with `device=True` a function for kernels to call. Other options of Numba's are taken and not needed."""
    from stride._python_kernel import device_function, kernel

    decorate = device_function if device else kernel
    return decorate if function is None or not callable(function) else decorate(function)


def to_device(values):
    from stride import _creation

    return _creation.asarray(values, copy=True)


def device_array(shape, dtype=np.float64):
    """Zeros: nothing of what was in memory before may be seen."""
    from stride import _creation

    return _creation.zeros(shape, dtype=dtype)


def device_array_like(array):
    from stride import _creation

    return _creation.zeros(array.shape, dtype=array.dtype)


def synchronize(session=None) -> None:
    from stride._session import current_session

    (session or current_session()).synchronize()
