"""Kernels, elementwise functions and generalised ufuncs written in Python, compared with the same functions
run by Python."""

import math
import unittest

import numpy as np

import client_case
import stride as st
from stride import cuda

BLOCK = 64
SCALE = np.float32(2.5)


@st.kernel
def add(x, y, out):
    """Grid-stride, as in Numba's documentation."""
    start = st.grid(1)
    for i in range(start, out.size, st.gridsize(1)):
        out[i] = x[i] + y[i]


@cuda.jit
def block_sums(x, sums):
    partial = cuda.shared.array(BLOCK, dtype=np.float64)
    t = cuda.threadIdx.x
    i = cuda.blockIdx.x * cuda.blockDim.x + t
    partial[t] = x[i] if i < x.shape[0] else 0.0
    cuda.syncthreads()
    step = cuda.blockDim.x // 2
    while step > 0:
        if t < step:
            partial[t] += partial[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        sums[cuda.blockIdx.x] = partial[0]


@cuda.jit
def histogram(values, counts, greatest):
    i = cuda.grid(1)
    if i < len(values):
        cuda.atomic.add(counts, int(values[i]) % counts.size, 1)
        cuda.atomic.max(greatest, 0, values[i])


@cuda.jit
def matmul(a, b, c):
    tile_a = cuda.shared.array(shape=(8, 8), dtype=st.float32)
    tile_b = cuda.shared.array((8, 8), st.float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for k in range((a.shape[1] + 7) // 8):
        tile_a[ty, tx] = a[y, k * 8 + tx] if y < a.shape[0] and k * 8 + tx < a.shape[1] else 0
        tile_b[ty, tx] = b[k * 8 + ty, x] if x < b.shape[1] and k * 8 + ty < b.shape[0] else 0
        cuda.syncthreads()
        for j in range(8):
            total += tile_a[ty, j] * tile_b[j, tx]
        cuda.syncthreads()
    if x < c.shape[1] and y < c.shape[0]:
        c[y, x] = total


def mandelbrot_steps(x, y, limit):
    real = imaginary = 0.0
    for i in range(limit):
        real, imaginary = real * real - imaginary * imaginary + x, 2 * real * imaginary + y
        if real * real + imaginary * imaginary >= 4:
            return i
    return limit


@st.kernel
def mandelbrot(left, step, image, limit):
    row, column = st.grid(2)
    height, width = image.shape
    if row < height and column < width:
        image[row, column] = mandelbrot_steps(left + step * column, step * row - 1.0, limit)


@st.kernel
def all_operators(a, b, out):
    i = st.grid(1)
    if i >= a.size:
        return
    x, y = a[i], b[i]
    row = out[i]
    row[0] = x + y
    row[1] = x - y
    row[2] = x * y
    row[3] = x / y
    row[4] = x // y
    row[5] = x % y
    row[6] = -x if x < y else +x
    row[7] = x**3 + abs(y)**0.5
    row[8] = min(x, y, 2) + max(x, y)
    row[9] = x < y < 5 or not x == y
    row[10] = math.floor(x) + int(y) + bool(x)
    row[11] = float(x) ** 2
    row[-1] = round(x) + a[-1]


@st.kernel
def all_integers(a, b, out):
    i = st.grid(1)
    if i < a.size:
        x, y = a[i], b[i]
        out[i, 0] = x & y
        out[i, 1] = x | y
        out[i, 2] = x ^ y
        out[i, 3] = x << (y & 3)
        out[i, 4] = x >> (y & 3)
        out[i, 5] = ~x
        out[i, 6] = x // y
        out[i, 7] = x % y
        out[i, 8] = x**2
        out[i, 9] = abs(x) if x else 7


@st.kernel
def loops(out):
    total = 0
    for i in range(10, 0, -3):
        for j in range(i):
            if j == 2:
                continue
            if j > 5:
                break
            total += i * j
    else_branch = 0
    n = 27
    while n != 1:
        if n % 2 == 0:
            n //= 2
        elif n == 7:
            else_branch = 1
            n = 3 * n + 1
        else:
            n = 3 * n + 1
        total += 1
    out[0] = total
    out[1] = else_branch
    out[2] = i


@st.vectorize
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@st.vectorize
def piecewise(x, low, high):
    if x < low:
        return low
    if x > high:
        return high
    return x * SCALE


@st.guvectorize("(m,n),(n)->(m)")
def matvec(a, x, out):
    for i in range(a.shape[0]):
        total = 0.0
        for j in range(a.shape[1]):
            total += a[i, j] * x[j]
        out[i] = total


@st.guvectorize([(np.int64, np.int64, np.int64), (np.float64, np.float64, np.float64)], "(n),()->(n)")
def shifted(x, y, out):
    for i in range(x.shape[0]):
        out[i] = x[i] + y


@st.guvectorize("(n)->(),()")
def extremes(x, low, high):
    low[0] = x[0]
    high[0] = x[0]
    for i in range(len(x)):
        low[0] = min(low[0], x[i])
        high[0] = max(high[0], x[i])


@st.guvectorize("(3),(3)->(3)")
def cross(a, b, out):
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]


@st.guvectorize("(m?,n),(n,p?)->(m?,p?)")
def product(a, b, out):
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                out[i, j] += a[i, k] * b[k, j]


class PythonKernelTest(client_case.ClientCase):
    def test_grid_stride(self):
        x = np.arange(100000, dtype=np.float32)
        out = st.zeros(100000, dtype=st.float32)
        add[30, 128](st.asarray(x), 2 * x, out)
        self.same(out, 3 * x)
        for dtype in (np.int8, np.uint16, np.int32, np.int64, np.float16, np.float64):
            x = np.arange(100).astype(dtype)
            out = st.zeros(100, dtype=dtype)
            add.forall(100)(st.asarray(x), st.asarray(x), out)
            self.same(out, x + x)
        self.assertEqual(len(add._translated), 7)

    def test_views_and_host_arrays(self):
        base, host = st.zeros((4, 6)), np.zeros((4, 6))
        add[1, 32](st.ones(3), st.arange(3.0), base[1, ::2])
        host[1, ::2] = [1, 2, 3]
        self.same(base, host)
        out = np.zeros(5)
        add[1, 32](np.ones(5), np.ones(5), out)  # as Numba: the results come back
        np.testing.assert_array_equal(out, 2)
        x = st.arange(10.0)
        older = x + 1
        add[1, 32](x, x, x)
        self.same(x, 2 * np.arange(10.0))
        self.same(older, np.arange(10.0) + 1)

    def test_shared_memory(self):
        x = np.linspace(0, 1, 1000)
        sums = st.zeros(16)
        block_sums[16, BLOCK](st.asarray(x), sums)
        np.testing.assert_allclose(np.asarray(sums), [x[i:i + BLOCK].sum() for i in range(0, 1024, BLOCK)], rtol=1e-13)
        rng = np.random.default_rng(1)
        a, b = rng.random((20, 30), np.float32), rng.random((30, 17), np.float32)
        c = st.zeros((20, 17), dtype=st.float32)
        matmul[(3, 3), (8, 8)](st.asarray(a), st.asarray(b), c)
        self.same(c, a @ b, rtol=1e-5)

        @cuda.jit
        def dynamic(x):
            room = cuda.shared.array(0, dtype=np.int32)
            room[cuda.threadIdx.x] = x[cuda.threadIdx.x]
            cuda.syncthreads()
            x[cuda.threadIdx.x] = room[cuda.blockDim.x - 1 - cuda.threadIdx.x]

        x = st.arange(32, dtype=st.int32)
        dynamic[1, 32, 0, 128](x)
        self.same(x, np.arange(32, dtype=np.int32)[::-1])

    def test_local_arrays(self):
        @cuda.jit
        def reverse(x, out):
            room = cuda.local.array((2, 4), dtype=np.int64)
            i = cuda.grid(1)
            for j in range(8):
                room[j // 4, j % 4] = x[i, j]
            for j in range(8):
                out[i, j] = room[1 - j // 4, 3 - j % 4]

        x = np.arange(32).reshape(4, 8)
        out = st.zeros((4, 8), dtype=st.int64)
        reverse[1, 4](st.asarray(x), out)
        self.same(out, x[:, ::-1])

    def test_atomics(self):
        for dtype in (np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64):
            with self.subTest(dtype=dtype):
                values = (np.arange(1000) % 37).astype(dtype)
                counts, greatest = st.zeros(10, dtype=dtype), st.zeros(1, dtype=dtype)
                histogram[8, 128](st.asarray(values), counts, greatest)
                self.same(counts, np.bincount(values.astype(int) % 10).astype(dtype))
                self.same(greatest, np.array([36], dtype))

        @cuda.jit
        def others(x):
            cuda.atomic.sub(x, 0, 1)
            cuda.atomic.min(x, 1, cuda.threadIdx.x)
            cuda.atomic.or_(x, 2, 1 << cuda.threadIdx.x)
            cuda.atomic.and_(x, 3, ~(1 << cuda.threadIdx.x))
            cuda.atomic.xor(x, 4, 1)
            cuda.atomic.exch(x, 5, 9)
            cuda.atomic.cas(x, 6, 0, 5)

        for dtype in (np.int32, np.int64, np.uint64):
            x = st.asarray([100, 50, 0, 255, 0, 0, 0], dtype=dtype)
            others[1, 4](x)
            self.same(x, np.array([96, 0, 15, 240, 0, 9, 5], dtype))

    def test_a_function_that_is_called(self):
        image = st.zeros((16, 24), dtype=st.int32)
        mandelbrot[(2, 3), (8, 8)](-2.0, 0.125, image, 50)
        expected = [
            [mandelbrot_steps(-2.0 + 0.125 * column, 0.125 * row - 1.0, 50) for column in range(24)]
            for row in range(16)
        ]
        self.same(image, np.array(expected, np.int32))

    def run_by_python(self, a, b, width, function):
        out = np.zeros((len(a), width))
        for i in range(len(a)):
            function(a[i], b[i], out[i])
        return out

    def test_operators(self):
        a = np.array([7.5, -7.5, 2.0, 0.25, -3.0])
        b = np.array([2.0, 2.0, -3.0, 0.5, -0.75])
        out = st.zeros((5, 13))
        all_operators[1, 32](st.asarray(a), st.asarray(b), out)

        def by_python(x, y, row):
            x, y = float(x), float(y)
            row[:] = [
                x + y, x - y, x * y, x / y, x // y, x % y,
                -x if x < y else x,
                x**3 + abs(y) ** 0.5, min(x, y, 2) + max(x, y), x < y < 5 or not x == y,
                math.floor(x) + int(y) + bool(x), x**2, round(x) + a[-1],
            ]

        self.same(out, self.run_by_python(a, b, 13, by_python), rtol=1e-15)
        for dtype in (np.int32, np.int64, np.int16):
            a, b = np.array([7, -7, 100, 0], dtype), np.array([3, 3, -9, 5], dtype)
            out = st.zeros((4, 10), dtype=st.int64)
            all_integers[1, 32](st.asarray(a), st.asarray(b), out)
            expected = [
                [
                    int(v)
                    for v in (
                        x & y, x | y, x ^ y, x << (y & 3), x >> (y & 3), ~x, x // y, x % y, x**2,
                        abs(x) if x else 7,
                    )
                ]
                for x, y in zip(a.tolist(), b.tolist())
            ]
            self.same(out, np.array(expected))

    def test_loops(self):
        out = st.zeros(3, dtype=st.int64)
        loops[1, 1](out)
        expected = np.zeros(3, np.int64)
        loops.python_function(expected)
        self.same(out, expected)

    def test_functions_of_math(self):
        names = [
            "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "atanh", "exp",
            "expm1", "log", "log2", "log10", "log1p", "sqrt", "erf", "erfc", "gamma", "lgamma", "fabs", "floor",
            "ceil", "trunc", "isnan", "isinf",
        ]
        x = np.array([0.125, 0.5, 0.75])
        for name in names:
            function = getattr(math, name)

            @st.kernel
            def apply(x, out):
                i = st.grid(1)
                out[i] = function(x[i])

            out = st.zeros(3)
            apply[1, 3](st.asarray(x), out)
            np.testing.assert_allclose(
                np.asarray(out), [float(function(one)) for one in x.tolist()], rtol=2e-15, err_msg=name
            )

        @st.kernel
        def two(x, y, out):
            i = st.grid(1)
            out[i, 0] = math.atan2(x[i], y[i])
            out[i, 1] = np.hypot(x[i], y[i])
            out[i, 2] = st.maximum(x[i], y[i]) + math.pow(x[i], 2) + math.inf * 0 if x[i] > 9 else math.pi

        out = st.zeros((3, 3))
        two[1, 3](st.asarray(x), st.ones(3), out)
        np.testing.assert_allclose(
            np.asarray(out), np.stack([np.arctan2(x, 1), np.hypot(x, 1), np.full(3, np.pi)], 1), rtol=1e-15
        )

    def refused(self, function, text, *arguments):
        with self.assertRaisesRegex(st.ExpressionError, text) as raised:
            st.kernel(function)[1, 1](*(arguments or (st.zeros(3),)))
        self.assertRegex(str(raised.exception), r"python_kernel_test\.py:\d+: ")
        return int(str(raised.exception).split("python_kernel_test.py:")[1].split(":")[0])

    def test_code_outside_the_subset_is_refused(self):
        def with_try(x):
            try:
                x[0] = 1
            except ValueError:
                pass

        line = self.refused(with_try, "Try cannot be translated")
        self.assertEqual(line, with_try.__code__.co_firstlineno + 1)

        def with_list(x):
            x[0] = len([1, 2])

        self.refused(with_list, "List cannot be translated")

        def with_sorted(x):
            x[0] = sorted(x)

        self.refused(with_sorted, "'sorted' cannot be called")

        def with_iteration(x):
            for value in x[0]:
                x[0] = value

        self.refused(with_iteration, "range")

        def with_result(x):
            return x[0]

        self.refused(with_result, "returns nothing")

        def with_slice(x):
            x[0] = x[1:]

        self.refused(with_slice, "takes a number")

        def with_string(x):
            x[0] = "a"

        self.refused(with_string, "takes a number")

        def with_unknown(x):
            x[0] = nothing_of_this_name  # noqa: F821

        self.refused(with_unknown, "nothing_of_this_name")

        def with_two_things(x):
            y = x
            y = 3
            x[0] = y

        self.refused(with_two_things, "one thing only")

        def with_too_many_indices(x):
            x[0, 0] = 1

        self.refused(with_too_many_indices, "2 indices")

        def recursive(n):
            return recursive(n - 1)

        def with_recursion(x):
            x[0] = recursive(3)

        self.refused(with_recursion, "of which type")
        with self.assertRaises(TypeError):
            add[1, 1](st.zeros(3))
        with self.assertRaisesRegex(ValueError, "how many threads"):
            add(st.zeros(3))
        with self.assertRaises(st.DataTypeMismatch):
            add[1, 1](st.zeros(3), "a", st.zeros(3))
        with self.assertRaises(TypeError):
            cuda.grid(1)

    def test_vectorize_with_statements(self):
        n = np.array([1, 7, 27, 97])
        expected = [0, 16, 111, 118]
        self.same(collatz(st.asarray(n)), expected)
        x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
        theirs = np.where(x < -1, np.float32(-1), np.where(x > 1, np.float32(1), x * SCALE))
        self.same(piecewise(st.asarray(x), -1, 1), theirs)
        self.same(piecewise(st.asarray(x).T, -1.0, st.asarray(np.float32(1))), theirs.T)
        self.same(piecewise(st.asarray(x), st.asarray(x[:1]), 10), np.where(x < x[:1], x[:1], x * SCALE))
        self.same(piecewise(st.asarray(x), -1, 1) + 1, theirs + 1)

        @st.vectorize
        def scaled(x):
            return x * SCALE

        with client_case.Sent(self.session) as sent:
            self.same(scaled(st.ones(3, dtype=st.float32)), np.full(3, 2.5, np.float32))
        self.assertIn(sent.kinds[-1], ("ufunc", "expression"))

        @st.vectorize(target="cuda")
        def bad(x):
            while True:
                yield x

        with self.assertRaisesRegex(st.ExpressionError, r"python_kernel_test\.py:\d+"):
            bad(st.ones(2))

    def test_guvectorize(self):
        rng = np.random.default_rng(2)
        a, x = rng.random((5, 3, 4)), rng.random((4,))
        self.same(matvec(st.asarray(a), st.asarray(x)), a @ x, rtol=1e-14)
        many = rng.random((2, 1, 4))
        self.same(matvec(a, st.asarray(many)), (a @ many[..., None])[..., 0], rtol=1e-14)
        self.same(
            matvec(st.asarray(a)[::2, ::-1], x.astype(np.float32)), a[::2, ::-1] @ x.astype(np.float32), rtol=1e-14
        )
        self.same(shifted(st.arange(3), 2), [2, 3, 4])
        self.same(shifted(st.arange(3), np.array([[1], [2]])), [[[1, 2, 3]], [[2, 3, 4]]])
        self.same(shifted(st.arange(3.0), 2), [2.0, 3.0, 4.0])
        low, high = extremes(st.asarray(a))
        self.same(low, a.min(-1))
        self.same(high, a.max(-1))
        u, v = rng.random((6, 3)), rng.random((3,))
        self.same(cross(st.asarray(u), v), np.cross(u, v), rtol=1e-13)
        for left, right in (((2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((5, 2, 3), (3, 4))):
            left, right = rng.random(left), rng.random(right)
            self.same(product(st.asarray(left), st.asarray(right)), left @ right, rtol=1e-13)
        self.assertEqual(matvec(st.zeros((0, 3, 4)), st.zeros(4)).shape, (0, 3))
        with self.assertRaises(st.ShapeMismatch):
            matvec(st.ones((3, 4)), st.ones(3))
        with self.assertRaises(st.ShapeMismatch):
            cross(st.ones(4), st.ones(4))
        with self.assertRaises(TypeError):
            matvec(st.ones(3))
        for wrong in ("(m),(n)", "m->n", "(m)->(k)"):
            with self.assertRaises(ValueError):
                st.guvectorize(wrong)


if __name__ == "__main__":
    client_case.main()
