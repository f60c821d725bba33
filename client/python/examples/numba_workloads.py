"""Numba's CUDA examples: a grid-stride kernel, ufuncs by decorator, an int32 kernel, and the same add on every device."""

import math

import numpy as np

import stride as st


def grid_stride_kernel():
    add = st.RawKernel(r"""
        extern "C" __global__ void add(const float* x, const float* y, float* out, int n) {
          int start = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
          for (int i = start; i < n; i += stride) out[i] = x[i] + y[i];
        }""", "add")
    n = 100000
    x = np.arange(n, dtype=np.float32)
    out = st.zeros(n, dtype=st.float32)
    add(30, 128, (x, 2 * x, out, n))  # fewer threads than elements
    np.testing.assert_array_equal(np.asarray(out), 3 * x)
    print("grid-stride kernel: right")


@st.vectorize
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


INT_ADD = st.RawKernel(r"""
    extern "C" __global__ void add(const int* x, const int* y, int* out) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      out[i] = x[i] + y[i];
    }""", "add")


def int_kernel():
    x, y = st.arange(4096, dtype=st.int32), st.ones(4096, dtype=st.int32)
    out = st.empty(4096, dtype=st.int32)
    INT_ADD(32, 128, (x, y, out))
    np.testing.assert_array_equal(np.asarray(out), np.arange(1, 4097, dtype=np.int32))
    print("int32 kernel: right")


def every_device():
    names = [device.name for device in st.current_session().devices() if device.serving]
    results = []
    for name in names:  # nothing waits here: the devices work at the same time
        x, y = st.arange(4096, dtype=st.int32), st.ones(4096, dtype=st.int32)
        out = st.empty(4096, dtype=st.int32)
        INT_ADD(32, 128, (x, y, out), device=name)
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
