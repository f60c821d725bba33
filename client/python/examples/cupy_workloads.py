"""CuPy's first steps, with stride in place of cupy: arange, ufuncs, a sum that must not wrap around, a norm,
and a raw kernel."""

import numpy as np

import stride as cp


def arithmetic():
    x = cp.arange(100000)
    y = 2 * x
    z = cp.add(x, y)
    np.testing.assert_array_equal(np.asarray(z), 3 * np.arange(100000))
    assert int(cp.sum(x)) == 4999950000  # int64; 704982704 would be int32's wrap-around
    assert abs(float(cp.norm(x)) - 18257281.65280911) < 1e-6
    print("arithmetic: the sum is", cp.sum(x), "and the norm", cp.norm(x))


def raw_kernel():
    # 250 blocks of 1024 threads over 100,000 elements: 156,000 threads too many for a kernel that checks no bounds.
    unchecked = cp.RawKernel(r"""
        extern "C" __global__ void add(const int* x, const int* y, int* out) {
          int i = blockDim.x * blockIdx.x + threadIdx.x;
          out[i] = x[i] + y[i];
        }""", "add")
    x = cp.arange(100000)
    neighbour = cp.full(100000, 7)
    out = cp.zeros(100000, dtype=cp.int64)
    unchecked((250,), (1024,), (x, x, out))
    try:
        out.to_numpy()
    except cp.DataTypeMismatch as error:
        print("raw kernel: refused, as it should be:", error)
    else:
        raise SystemExit("int64 elements were taken for int")
    assert int(cp.min(neighbour)) == int(cp.max(neighbour)) == 7

    checked = cp.RawKernel(r"""
        extern "C" __global__ void add(const long long* x, const long long* y, long long* out, int n) {
          int i = blockDim.x * blockIdx.x + threadIdx.x;
          if (i < n) out[i] = x[i] + y[i];
        }""", "add")
    out = cp.zeros(100000, dtype=cp.int64)
    checked((250,), (1024,), (x, x, out, np.int32(100000)))
    np.testing.assert_array_equal(np.asarray(out), 2 * np.arange(100000))
    print("raw kernel: with its types right and its bound checked, right")


if __name__ == "__main__":
    with cp.connect():
        arithmetic()
        raw_kernel()
