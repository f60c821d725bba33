"""A user's kernels, of Python and of CUDA C++: they are checked by mypy and pyright and never run."""

from typing import Any

import numpy as np

import stride as st
import stride.cupy as cp
import stride.numba as numba
from stride import Array, cuda
from stride.cupyx import jit, profiler
from stride.cupyx.scipy import special


@cuda.jit
def add(x: Any, y: Any, out: Any) -> None:
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i] + cuda.threadIdx.x
        cuda.atomic.add(out, 0, 1)
    cuda.syncthreads()


def numbas(x: Array) -> None:
    out = cuda.device_array_like(x)
    add[32, 128](cuda.to_device(x), x, out)
    host: np.ndarray = out.copy_to_host()
    stream = cuda.stream()
    stream.synchronize()
    start, end = cuda.event(), cuda.event()
    start.record()
    end.record()
    print(host, cuda.event_elapsed_time(start, end), numba.float32(numba.int64), cuda.libdevice.sinf)
    print(cuda.get_current_device().id)


def cupys() -> Array:
    x: cp.ndarray = cp.arange(10, dtype=cp.float32).reshape(2, 5)
    twice = cp.ElementwiseKernel("T x", "T y", "y = 2 * x", "twice")
    norm = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    kernel = cp.RawKernel('extern "C" __global__ void f(float* y) {}', "f")
    kernel((1,), (1,), (x,))
    module = cp.RawModule(code='extern "C" __global__ void f(float* y) {}')
    module.get_function("f")((1,), (1,), (x,))
    with cp.cuda.Stream() as stream:
        stream.synchronize()
    with cp.cuda.Device(0):
        y = cp.asarray([1, 2]) + cp.linalg.norm(x) + cp.random.rand(3, dtype=cp.float32) + cp.fft.fft(x)
    print(cp.asnumpy(x).sum(), x.get(), twice(x), norm(x, axis=1))
    print(cp.get_default_memory_pool().used_bytes(), profiler.benchmark(cp.sum))
    return y + special.erf(x) + cp.absolute(x) + cp.trapz(x)


@jit.rawkernel()
def copy(x: Any, y: Any, size: int) -> None:
    i = jit.blockIdx.x * jit.blockDim.x + jit.threadIdx.x
    if i < size:
        y[i] = x[i]


def doubled(a: Array) -> Array:
    return a * 2


def product(m: Array, v: Array) -> Array:
    return m @ v


def services(x: Array) -> Array:
    smooth = st.vectorize("where(x > 0, x, a * x)")
    step = st.jit(doubled)
    batched = st.vmap(product, in_axes=(None, 0))
    blend = st.define_ufunc("blend", "float64,float64->float64", expression="0.5 * (a + b)")
    kernel = st.RawKernel("source", "f", options=["-DSTEP=5"])
    kernel((1,), (1,), (x, np.int32(3)))
    print(batched(x, x), smooth(x=x, a=0.5), blend(x, x), st.functions(), st.Sharding(axis=1))
    print([one.kind for one in st.devices()])
    done: Array = step(x)
    return done
