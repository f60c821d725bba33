"""Kernels and elementwise functions of the user's own."""

import math
import unittest

import numpy as np

import client_case
import stride as st

AXPY = r"""
extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
"""


@st.vectorize
def clipped(x, low=0.0):
    """Has a docstring, an assignment and a default."""
    y = x * 2
    y += 1
    return low if y < low else math.sqrt(abs(y)) if low < y <= 9 and not x == 1 else -y


class KernelTest(client_case.ClientCase):
    def test_in_place(self):
        axpy = st.RawKernel(AXPY, "axpy")
        x, y = st.arange(1000, dtype=st.float32), st.ones(1000, dtype=st.float32)
        older, view = y * 1, y[:5]
        np.asarray(y)
        axpy((4,), (256,), (2.5, x, y, 1000))
        expected = 2.5 * np.arange(1000, dtype=np.float32) + 1
        self.same(y, expected)
        self.same(view, expected[:5])
        self.same(older, np.ones(1000, np.float32))
        axpy(4, 256, (2.5, np.arange(1000, dtype=np.float32), y, np.int32(1000)))
        self.same(y, 2 * expected - 1)

    def test_a_type_that_does_not_fit(self):
        y = st.ones(1000)
        st.RawKernel(AXPY, "axpy")(4, 256, (2.5, st.ones(1000, dtype=st.float32), y, 1000))
        with self.assertRaises(st.DataTypeMismatch) as raised:
            y.to_numpy()
        self.assertIn("kernel_test.py", raised.exception.origin)
        self.assertEqual(raised.exception.field, "kernel_launch.arguments[2].array")

    def test_source_that_does_not_compile(self):
        y = st.ones(10, dtype=st.float32)
        st.RawKernel('extern "C" __global__ void f(float* y) { y[0] = nothing; }', "f")(1, 1, (y,))
        with self.assertRaises(st.CompileError) as raised:
            y.to_numpy()
        self.assertIn("nothing", str(raised.exception))

    def test_a_fault(self):
        y = st.ones(10, dtype=st.float32)
        other = st.full(10, 3.0)
        np.asarray(other + 0)
        st.RawKernel('extern "C" __global__ void f(float* y) { y[1LL << 40] = 1; }', "f")(1, 1, (y,))
        with self.assertRaises(st.KernelFault):
            y.to_numpy()
        self.same(other + 1, np.full(10, 4.0))

    def test_expression(self):
        selu = st.vectorize("1.05 * where(x > 0, x, a * exp(x) - a)")
        host = np.linspace(-2, 2, 9)
        self.same(selu(a=1.67, x=st.asarray(host)), 1.05 * np.where(host > 0, host, 1.67 * np.exp(host) - 1.67), rtol=1e-14)
        self.same(st.vectorize("-x ** 2 + 2 * pi")(st.asarray(host)), -host ** 2 + 2 * np.pi, rtol=1e-14)
        with self.assertRaises(st.ExpressionError):
            st.vectorize("x +")
        with self.assertRaisesRegex(st.ExpressionError, "nosuch"):
            st.vectorize("nosuch(x)")(st.ones(2))

    def test_function(self):
        host = np.array([-3.0, 0.0, 1.0, 2.0, 10.0])
        y = host * 2 + 1
        expected = np.where(y < 0, 0.0, np.where((0 < y) & (y <= 9) & (host != 1), np.sqrt(np.abs(y)), -y))
        with client_case.Sent(self.session) as sent:
            self.same(clipped(st.asarray(host)), expected, rtol=1e-15)
        self.assertLessEqual(sent.kinds.count("expression"), 3)
        self.same(clipped(st.asarray(host), -10), np.where(y < -10, -10, np.where((y <= 9) & (host != 1), np.sqrt(np.abs(y)), -y)))
        self.assertEqual(clipped.__name__, "clipped")

    def test_signatures(self):
        @st.vectorize(["int64(int64, int64)", "float32(float32, float32)"], target="cuda")
        def add(x, y):
            return x + y

        self.same(add(st.asarray([1, 2], dtype=st.int8), 3), [4, 5])
        self.same(add(st.ones(2, dtype=st.float16), 2.5), np.full(2, 3.5, np.float32))
        self.same(add(np.arange(2), st.asarray([1, 2])), [1, 3])
        with self.assertRaises(st.DataTypeMismatch):
            add(st.ones(2), 1)
        with self.assertRaises(ValueError):
            st.vectorize(["float32[:]"])(lambda x: x)


if __name__ == "__main__":
    client_case.main()
