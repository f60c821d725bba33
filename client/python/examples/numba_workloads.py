"""Numba's CUDA examples: a grid-stride kernel, ufuncs by decorator, an int32 kernel, and the same add on
every device."""

import math

import numpy as np

import stride as st
from stride import cuda


@cuda.jit
def add_kernel(x, y, out):
    start = cuda.grid(1)
    stride = cuda.gridsize(1)
    for i in range(start, x.shape[0], stride):
        out[i] = x[i] + y[i]


def grid_stride_kernel():
    n = 100000
    x = np.arange(n).astype(np.float32)
    y = 2 * x
    x_device, y_device = cuda.to_device(x), cuda.to_device(y)
    out_device = cuda.device_array_like(x)
    add_kernel[30, 128](x_device, y_device, out_device)  # fewer threads than elements
    np.testing.assert_array_equal(np.asarray(out_device), 3 * x)
    out = np.empty_like(x)
    add_kernel[30, 128](x, y, out)  # arrays of the host come back changed, as in Numba
    np.testing.assert_array_equal(out, 3 * x)
    print("grid-stride kernel: right")


@st.vectorize(["float32(float32, float32)"], target="cuda")
def add(x, y):
    return x + y


@st.vectorize
def trigonometric(x):
    return math.cos(x) ** 2 + math.sin(x) ** 2


def ufuncs(n=10_000_000):
    x = st.arange(100000, dtype=st.float32)
    np.testing.assert_array_equal(np.asarray(add(x, x)), 2 * np.arange(100000, dtype=np.float32))
    ones = trigonometric(st.arange(n, dtype=st.float32))
    worst = float(st.max(st.abs(ones - 1)))
    assert ones.dtype == st.float32 and worst < 1e-6, worst
    print(f"ufuncs: cos(x)**2 + sin(x)**2 is 1 to {worst:.1e} for {n:,} elements")


@cuda.jit
def int_add(x, y, out):
    i = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x
    out[i] = x[i] + y[i]


def int_kernel():
    x, y = st.arange(4096, dtype=st.int32), st.ones(4096, dtype=st.int32)
    out = st.empty(4096, dtype=st.int32)
    int_add[32, 128](x, y, out)
    np.testing.assert_array_equal(np.asarray(out), np.arange(1, 4097, dtype=np.int32))
    print("int32 kernel: right")


def every_device():
    names = [device.name for device in st.current_session().devices() if device.serving]
    results = []
    for name in names:  # nothing waits here: the devices work at the same time
        x, y = st.arange(4096, dtype=st.int32), st.ones(4096, dtype=st.int32)
        out = st.empty(4096, dtype=st.int32)
        int_add[32, 128](x, y, out, device=name)
        results.append(out)
    for out in results:
        np.testing.assert_array_equal(np.asarray(out), np.arange(1, 4097, dtype=np.int32))
    print("every device:", ", ".join(names))


if __name__ == "__main__":
    with st.connect():
        grid_stride_kernel()
        ufuncs()
        int_kernel()
        every_device()
