"""Programs written for Numba's CUDA target, with `from stride import cuda` or `from stride.numba import ...`, each
result compared with NumPy's."""

import cmath
import collections
import contextlib
import io
import linecache
import math
import operator
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import numpy as np

import client_case
import stride as st
from stride import cuda
from stride.numba import (
    boolean,
    complex64,
    float16,
    float32,
    float64,
    guvectorize,
    int32,
    int64,
    jit,
    njit,
    types,
    uint8,
    vectorize,
    void,
)
from stride.numba import cuda as numba_cuda
from stride.numba.cuda.random import (
    create_xoroshiro128p_states,
    xoroshiro128p_normal_float32,
    xoroshiro128p_normal_float64,
    xoroshiro128p_uniform_float32,
    xoroshiro128p_uniform_float64,
)

THREADS = 64
COEFFICIENTS = np.array([0.5, 0.25, 0.125, 0.125], dtype=np.float32)
OFFSETS = ((-1, 0), (1, 0), (0, -1), (0, 1))
WEIGHTS = (1.5, 2.5, 3.5)


class Settings:
    scale = 3


# --- as in tutorials ---


@cuda.jit
def increment_by_one(an_array):
    tx = cuda.threadIdx.x
    ty = cuda.blockIdx.x
    bw = cuda.blockDim.x
    pos = tx + ty * bw
    if pos < an_array.size:
        an_array[pos] += 1


@cuda.jit
def increment_a_2d_array(an_array):
    x, y = cuda.grid(2)
    if x < an_array.shape[0] and y < an_array.shape[1]:
        an_array[x, y] += 1


@cuda.jit("void(float32[:,:], float32[:,:], float32[:,:])")
def fast_matmul(A, B, C):  # noqa: N803
    sA = cuda.shared.array(shape=(8, 8), dtype=float32)  # noqa: N806
    sB = cuda.shared.array(shape=(8, 8), dtype=float32)  # noqa: N806
    x, y = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    bpg = cuda.gridDim.x
    tmp = float32(0.0)
    for i in range(bpg):
        sA[ty, tx] = 0
        sB[ty, tx] = 0
        if y < A.shape[0] and (tx + i * 8) < A.shape[1]:
            sA[ty, tx] = A[y, tx + i * 8]
        if x < B.shape[1] and (ty + i * 8) < B.shape[0]:
            sB[ty, tx] = B[ty + i * 8, x]
        cuda.syncthreads()
        for j in range(8):
            tmp += sA[ty, j] * sB[j, tx]
        cuda.syncthreads()
    if y < C.shape[0] and x < C.shape[1]:
        C[y, x] = tmp


@cuda.jit(int32(float64, float64, int32), device=True)
def mandel(x, y, max_iters):
    c = complex(x, y)
    z = 0.0j
    for i in range(max_iters):
        z = z * z + c
        if (z.real * z.real + z.imag * z.imag) >= 4:
            return i
    return max_iters


@cuda.jit((float64, float64, float64, float64, uint8[:, :], int32))
def mandel_kernel(min_x, max_x, min_y, max_y, image, iters):
    height, width = image.shape
    pixel_size_x = (max_x - min_x) / width
    pixel_size_y = (max_y - min_y) / height
    start_x, start_y = cuda.grid(2)
    grid_x = cuda.gridDim.x * cuda.blockDim.x
    grid_y = cuda.gridDim.y * cuda.blockDim.y
    for x in range(start_x, width, grid_x):
        real = min_x + x * pixel_size_x
        for y in range(start_y, height, grid_y):
            imag = min_y + y * pixel_size_y
            image[y, x] = mandel(real, imag, iters)


@cuda.jit
def compute_pi(rng_states, iterations, out):
    thread_id = cuda.grid(1)
    inside = 0
    for i in range(iterations):
        x = xoroshiro128p_uniform_float32(rng_states, thread_id)
        y = xoroshiro128p_uniform_float32(rng_states, thread_id)
        if x**2 + y**2 <= 1.0:
            inside += 1
    out[thread_id] = 4.0 * inside / iterations


@cuda.jit
def array_sum(data):
    tid = cuda.threadIdx.x
    size = len(data)
    if tid < size:
        i = cuda.grid(1)
        shr = cuda.shared.array(THREADS, int64)
        shr[tid] = data[i]
        cuda.syncthreads()
        s = 1
        while s < cuda.blockDim.x:
            if tid % (2 * s) == 0:
                shr[tid] += shr[tid + s]
            s *= 2
            cuda.syncthreads()
        if tid == 0:
            data[tid] = shr[tid]


@cuda.jit
def heat(buf_0, buf_1, timesteps, k):
    i = cuda.grid(1)
    if i >= len(buf_0):
        return
    grid = cuda.cg.this_grid()
    for step in range(timesteps):
        if (step % 2) == 0:
            data = buf_0
            next_data = buf_1
            current = data[i]
            left = current if i == 0 else data[i - 1]
            right = current if i == len(buf_0) - 1 else data[i + 1]
            next_data[i] = current + k * (left - 2 * current + right)
        else:
            current = buf_1[i]
            left = current if i == 0 else buf_1[i - 1]
            right = current if i == len(buf_0) - 1 else buf_1[i + 1]
            buf_0[i] = current + k * (left - 2 * current + right)
        grid.sync()


class TutorialTest(client_case.ClientCase):
    def test_grids(self):
        x = np.arange(1000, dtype=np.int64)
        threads = 32
        blocks = (x.size + (threads - 1)) // threads
        ours = x.copy()
        increment_by_one[blocks, threads](ours)
        np.testing.assert_array_equal(ours, x + 1)
        square = np.zeros((30, 17))
        threads2 = (16, 16)
        blocks2 = (math.ceil(square.shape[0] / threads2[0]), math.ceil(square.shape[1] / threads2[1]))
        increment_a_2d_array[blocks2, threads2](square)
        np.testing.assert_array_equal(square, 1)
        increment_by_one.forall(len(ours))(ours)
        np.testing.assert_array_equal(ours, x + 2)

    def test_transfers(self):
        x = np.arange(10.0)
        stream = cuda.stream()
        with stream.auto_synchronize():
            device = cuda.to_device(x, stream=stream)
            result = cuda.device_array(10, dtype=np.float64, stream=stream)
            same = cuda.device_array_like(device)
            increment_by_one[1, 32, stream](device)
            result.copy_to_device(device, stream=stream)
        np.testing.assert_array_equal(result.copy_to_host(stream=stream), x + 1)
        np.testing.assert_array_equal(same.copy_to_host(), 0)
        host = np.empty(10)
        self.assertIs(device.copy_to_host(host), host)
        np.testing.assert_array_equal(host, x + 1)
        device[2:5].copy_to_host(host[:3])
        np.testing.assert_array_equal(host[:3], x[2:5] + 1)
        device[::2] = 0
        device[1] = -1
        self.assertEqual((float(device[1]), float(device[2])), (-1, 0))
        cuda.to_device(x * 5, to=device)
        self.same(device, x * 5)
        self.assertEqual([one.size for one in device.split(4)], [4, 4, 2])
        self.assertEqual((device.alloc_size, device.is_c_contiguous()), (80, True))
        pinned = cuda.pinned_array(10, dtype=np.float64)
        pinned[...] = x
        with cuda.pinned(pinned):
            self.same(cuda.to_device(pinned), x)
        mapped = cuda.mapped_array(10, dtype=np.float64)
        mapped[...] = x
        increment_by_one[1, 32](mapped)
        np.testing.assert_array_equal(mapped, x + 1)
        np.testing.assert_array_equal(mapped.copy_to_host(), x + 1)
        self.assertTrue(cuda.is_cuda_array(device) and not cuda.is_cuda_array(x))

    def test_matrix_product(self):
        rng = np.random.default_rng(1)
        a, b = rng.random((20, 20), np.float32), rng.random((20, 20), np.float32)
        c = cuda.device_array((20, 20), dtype=np.float32)
        fast_matmul[(3, 3), (8, 8)](cuda.to_device(a), b, c)
        self.same(c, a @ b, rtol=1e-5)
        with self.assertRaisesRegex(TypeError, r"takes .*float32\[:, :\].*not \(float64"):
            fast_matmul[1, 1](a.astype(np.float64), b, c)

    def test_mandelbrot(self):
        image = np.zeros((24, 36), np.uint8)
        mandel_kernel[(2, 2), (8, 4)](-2.0, 1, -1.0, 1.0, image, 20)
        expected = np.array(
            [[mandel.py_func(-2.0 + x * (3.0 / 36), -1.0 + y * (2.0 / 24), 20) for x in range(36)] for y in range(24)]
        )
        np.testing.assert_array_equal(image, expected)

    def test_monte_carlo(self):
        states = create_xoroshiro128p_states(64 * 4, seed=1)
        out = np.zeros(64 * 4, dtype=np.float32)
        compute_pi[4, 64](states, 500, out)
        self.assertAlmostEqual(float(out.mean()), math.pi, delta=0.05)

    def test_sum_in_shared_memory(self):
        x = cuda.to_device(np.arange(THREADS))
        array_sum[1, THREADS](x)
        self.assertEqual(int(x[0]), THREADS * (THREADS - 1) // 2)
        total = cuda.reduce(lambda a, b: a + b)
        for size in (1, 2, 100, 257, 5000, 600_001):
            values = np.arange(size, dtype=np.float64)
            self.assertEqual(total(cuda.to_device(values)), values.sum())
        self.assertEqual(total(np.arange(10)), 45)
        self.assertEqual(total(np.arange(10), init=5, size=3), 8)
        self.assertEqual(total(np.zeros(0), init=7), 7)

        @cuda.reduce
        def greatest(a, b):
            if a > b:
                return a
            return b

        result = cuda.device_array(1, dtype=np.int32)
        self.assertIsNone(greatest(np.array([3, 9, 2], np.int32), res=result))
        self.assertEqual(int(result[0]), 9)

    def test_grid_barrier(self):
        start = np.zeros(200)
        start[100] = 1000.0
        ours = start.copy()
        other = np.zeros(200)
        heat[4, 64](ours, other, 10, 0.25)
        theirs = start.copy()
        for _ in range(10):
            left, right = np.concatenate([theirs[:1], theirs[:-1]]), np.concatenate([theirs[1:], theirs[-1:]])
            theirs = theirs + 0.25 * (left - 2 * theirs + right)
        np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-300)


class JitTest(client_case.ClientCase):
    def test_signatures(self):
        def body(x, factor, out):
            i = cuda.grid(1)
            if i < x.size:
                out[i] = x[i] * factor

        x = np.arange(8, dtype=np.float32)
        for signature in (
            "void(float32[:], float32, float32[:])",
            "(float32[:], float32, float32[::1])",
            void(float32[:], float32, float32[:]),
            (float32[:], float32, float32[:]),
            types.void(types.float32[:], types.float32, types.Array(types.float32, 1, "C")),
            ["void(int32[:], int32, int32[:])", "void(float32[:], float32, float32[:])"],
        ):
            with self.subTest(signature=signature):
                kernel = cuda.jit(signature)(body)
                out = np.zeros(8, np.float32)
                kernel[1, 32](x, 2.5, out)
                np.testing.assert_array_equal(out, x * np.float32(2.5))
                with self.assertRaises(TypeError):
                    kernel[1, 32](x, 2.5)
        out = np.zeros(8, np.float32)
        for options in (
            {"fastmath": True},
            {"lineinfo": True},
            {"debug": False, "opt": True},
            {"cache": True},
            {"max_registers": 32},
            {"inline": "never"},
        ):
            cuda.jit(**options)(body)[1, 32](x, np.float32(3), out)
            np.testing.assert_array_equal(out, x * 3)
        for wrong in ("float33(int32)", "void(float32[:]", 5, "x + y"):
            with self.assertRaises((ValueError, TypeError)):
                cuda.jit(wrong)(body)
        kernel = cuda.jit(body)
        configured = kernel.configure(1, 32, stream=cuda.stream(), sharedmem=0)
        configured(x, np.float32(4), out)
        np.testing.assert_array_equal(out, x * 4)
        self.assertIs(kernel.py_func, body)
        self.assertIn("__global__", kernel.inspect_source(x, np.float32(1), out))
        self.assertEqual(list(kernel.overloads), [(float32[:], float32, float32[:])])
        overload = kernel.overloads[float32[:], float32, float32[:]]
        self.assertFalse(overload.cooperative)
        self.assertGreater(overload.max_cooperative_grid_blocks((32, 1)), 0)
        self.assertEqual(list(kernel.get_regs_per_thread()), list(kernel.overloads))
        with self.assertRaisesRegex(st.Unimplemented, "inspect_source"):
            kernel.inspect_asm()

    def test_types(self):
        self.assertEqual(np.dtype(float32), np.float32)
        self.assertEqual(np.zeros(2, types.int16).dtype, np.int16)
        self.assertEqual(
            (repr(float32[:, :]), repr(int32(float64, boolean))), ("float32[:, :]", "int32(float64, boolean)")
        )
        self.assertEqual(float32(3), np.float32(3))
        self.assertIs(st.numba.from_dtype(np.float64), float64)
        self.assertEqual(st.numba.typeof(np.zeros((2, 2))), float64[:, :])
        self.assertEqual(st.numba.typeof(3), int64)

    def test_device_functions(self):
        @cuda.jit(device=True, inline=True)
        def polynomial(x, a=2, b=3.0):
            return a * x + b

        @cuda.jit("float32(float32, float32)", device=True)
        def in_single(x, y):
            return x * y

        @njit
        def compiled(x):
            return x + 1

        @jit(nopython=True)
        def both(x, y):
            return x + y, x - y

        def plain(values, i):
            values[i] *= 2

        square = cuda.jit(device=True)(lambda x: x * x)

        @cuda.jit
        def kernel(x, out):
            def inner(y):
                return y - 0.5

            i = cuda.grid(1)
            if i < x.size:
                plain(x, i)
                total, difference = both(x[i], 1)
                out[i, 0] = polynomial(x[i])
                out[i, 1] = polynomial(x[i], b=1)
                out[i, 2] = in_single(x[i], 0.1)
                out[i, 3] = compiled(x[i]) + square(x[i])
                out[i, 4] = total * difference
                out[i, 5] = inner(x[i])

        x = np.array([1.0, 2.5, -3.0])
        ours, out = x.copy(), np.zeros((3, 6))
        kernel[1, 32](ours, out)
        y = 2 * x
        np.testing.assert_array_equal(ours, y)
        single = (y.astype(np.float32) * np.float32(0.1)).astype(float)
        np.testing.assert_allclose(
            out, np.stack([2 * y + 3, 2 * y + 1, single, y + 1 + y * y, (y + 1) * (y - 1), y - 0.5], 1), rtol=1e-14
        )
        self.assertEqual((compiled(3), polynomial(1)), (4, 5.0))

    def test_cuda_source_that_is_linked(self):
        cube = cuda.declare_device("cube", "float32(float32)")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "functions.cu")
            with open(path, "w", encoding="utf-8") as file:
                file.write(
                    'extern "C" __device__ int cube(float* result, float x) { *result = x * x * x; return 0; }\n'
                )

            @cuda.jit(link=[path])
            def kernel(x, out):
                i = cuda.grid(1)
                if i < len(x):
                    out[i] = cube(x[i]) + 1

            x, out = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
            kernel[1, 32](x, out)
        np.testing.assert_array_equal(out, x**3 + 1)
        with self.assertRaises(st.Unimplemented):
            cuda.jit(link=["functions.ptx"])(lambda x: None)

    def test_closure_values_and_constants_are_bound_at_the_first_launch(self):
        """Kernels of a closure see its values at the first launch, arrays of the module as constants."""
        factor = 7

        @cuda.jit
        def kernel(out):
            i = cuda.grid(1)
            coefficients = cuda.const.array_like(COEFFICIENTS)
            if i < out.size:
                out[i] = factor * Settings.scale + coefficients[i % 4] + COEFFICIENTS[0] + WEIGHTS[i % 3] + len(WEIGHTS)

        out = np.zeros(6)
        kernel[1, 32](out)
        i = np.arange(6)
        np.testing.assert_allclose(out, 21 + COEFFICIENTS[i % 4] + COEFFICIENTS[0] + np.array(WEIGHTS)[i % 3] + 3)

        @cuda.jit
        def writes(out):
            COEFFICIENTS[0] = 1

        with self.assertRaisesRegex(st.ExpressionError, "COEFFICIENTS.*constant"):
            writes[1, 1](out)


class PythonTest(client_case.ClientCase):
    """The Python that the translator takes: each kernel is compared with the same function run by Python."""

    def check(self, function, *arguments, threads=1, **tolerance):
        ours = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
        theirs = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
        cuda.jit(function)[1, threads](*ours)
        function(*theirs)
        for mine, other in zip(ours, theirs):
            if isinstance(mine, np.ndarray):
                np.testing.assert_allclose(mine, other, **(tolerance or {"rtol": 1e-14}))

    def test_slices(self):
        def kernel(a, b, out):
            row = a[1]
            out[0] = row[2]
            part = a[1:, ::2]
            out[1] = part.shape[0] * 10 + part.shape[1]
            out[2] = part[1, 1]
            column = a[:, -1]
            out[3] = column[2] + len(column)
            backwards = column[::-1]
            out[4] = backwards[0]
            out[5] = a.T[3, 1]
            tail = b[2:]
            for i in range(len(tail)):
                tail[i] *= 10
            window = b[0:0]
            out[6] = len(window)
            for i in range(3):
                window = b[i : i + 2]
                out[7] += window[0] * window[1]
            a[0, :] = 5
            a[1:, 1] = b[:2]
            out[8:11] = b[-3:]
            out[11:] = out[8:11]
            b[0], b[1] = b[1], b[0]
            inner = a[1:3][1]
            out[9] = inner[0]
            start, stop = 1, -1
            out[10] = b[start:stop].shape[0] + b[10:].shape[0] + b[-100:100].size + b[4:1:-1].size + b[1:4:-1].size

        self.check(kernel, np.arange(12.0).reshape(3, 4), np.arange(1.0, 7.0), np.zeros(14))

    def test_tuples(self):
        def kernel(x, out, extra):
            shape = x.shape
            out[0] = shape[0] + shape[1] * len(shape)
            pair = (x[0, 0], 2)
            pair = (x[1, 1], 3)
            out[1] = pair[0] * pair[1]
            first, (second, third) = 1, (2, 3)
            out[2] = first + second * third
            a, b = 1.5, 2
            a, b = b, a
            out[3] = a - b
            for dx, dy in OFFSETS:
                out[4] += dx * 2 + dy + 1
            for weight in WEIGHTS:
                out[5] += weight
            out[6] = WEIGHTS[-1] + max(WEIGHTS) + min(4, 2, 3) + sum(WEIGHTS)
            place = (1, 0)
            out[7] = x[place]
            q, r = divmod(-7, 2)
            out[8] = q * 10 + r
            out[9] = extra[0] + extra[1]
            out[10] = 2 in (1, 2, 3)
            out[11] = x.shape == (2, 2)

        self.check(kernel, np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros(12), (5, 2.5))

    def test_loops(self):
        def kernel(x, out):
            for value in x:
                out[0] += value
            for i, value in enumerate(x):
                out[1] += i * value
            for i, value in enumerate(x[1:], 5):
                out[2] += i * value
            for a, b in zip(x, x[::-1]):
                out[3] += a * b
            for value in reversed(x):
                out[4] = out[4] * 2 + value
            for i in range(10):
                if i == 20:
                    break
            else:
                out[5] = 1
            for i in range(10):
                if i == 5:
                    break
                for j in range(3):
                    if j == 2:
                        break
                else:
                    out[6] = 100
            else:
                out[6] = 1
            n = 3
            while n > 0:
                n -= 1
                if n == 1:
                    continue
                out[7] += n
            else:
                out[7] += 10
            for i in range(9, -1, -4):
                out[8] += i
            step = -2
            for i in range(4, 0, step):
                out[9] += i
            for i, j in enumerate(range(3, 30, 9)):
                out[10] += i * j

        self.check(kernel, np.array([1.0, 2.0, 4.0]), np.zeros(11))

    def test_numbers(self):
        def kernel(x, n, widened, out):
            import math as m

            out[0] = m.degrees(x) + m.radians(90.0)
            out[1] = round(x, 2) + round(x)
            out[2] = -7 // 2 + -7 % 3 + 7 // -2 + (-7.5) % 2
            out[3] = int(-3.7) + float(n) + bool(n) + int(True)
            out[4] = abs(-n) + abs(-x) + pow(2, 3) + n**2
            out[5] = (n & 3) | (n << 2) ^ (n >> 1)
            out[6] = x if n > 2 and not x > 5 or n == 0 else -x
            out[7] = 1 < n < 10
            fraction, whole = m.modf(x)
            out[8] = fraction + 10 * whole
            mantissa, exponent = m.frexp(x)
            out[9] = mantissa + exponent
            out[10] = m.ldexp(x, 3) + m.copysign(2.0, -x) + m.fmod(-7.0, 3.0)
            out[11] = np.sqrt(x) + np.square(x) + np.sign(-x) + np.power(x, 2) + np.mod(-7, 3)
            widened = widened + 0.5
            out[12] = widened
            out[13] = m.pi + m.e + np.pi
            total = 0
            total += x
            out[14] = total / 3
            if (y := x * 2) > 1:
                out[15] = y
            assert n > 0
            out[16] = m.floor(-x) + m.ceil(x) + m.trunc(-x)
            out[17] = 0xFFFFFFFF + n
            out[18] = operator.add(x, 1) * operator.lt(x, 5) + operator.neg(x)
            out[19] = round(x, 3) + round(x * 1000, -2) + round(0.5425, 3)

        self.check(kernel, 3.14159, 5, 3, np.zeros(20))

    def test_complex_numbers(self):
        def kernel(z, out, real):
            for i in range(z.size):
                a = z[i]
                b = complex(a.imag, 1)
                out[i, 0] = a * b + 2 - 1j
                out[i, 1] = a / b
                out[i, 2] = a.conjugate() * 1j
                out[i, 3] = cmath.exp(a) + cmath.sqrt(a) + cmath.log(a + 2)
                out[i, 4] = a**2 + a**3
                out[i, 5] = cmath.sin(a) + cmath.cos(a)
                real[i] = abs(a) + a.real + cmath.phase(b) + (a == b) + (a != b)
                c = 0
                c = c + a
                out[i, 6] = c

        z = np.array([1 + 2j, -0.5 + 0.25j, 3 - 4j])
        self.check(kernel, z, np.zeros((3, 7), complex), np.zeros(3), rtol=1e-13)
        self.check(kernel, z.astype(np.complex64), np.zeros((3, 7), np.complex64), np.zeros(3, np.float32), rtol=1e-4)

        def shared(x, out):
            room = cuda.shared.array(4, complex64)
            own = cuda.local.array(2, dtype=types.complex64)
            i = cuda.threadIdx.x
            room[i] = x[i]
            own[0] = x[i]
            cuda.syncthreads()
            out[i] = room[3 - i] + own[0]

        x, out = (np.arange(4) * (1 + 2j)).astype(np.complex64), np.zeros(4, np.complex64)
        cuda.jit(shared)[1, 4](x, out)
        np.testing.assert_array_equal(out, x[::-1] + x)

        with self.assertRaisesRegex(st.ExpressionError, "complex number cannot become"):
            cuda.jit(lambda_with_complex)[1, 1](np.zeros(1))

    def test_half_precision(self):
        def kernel(a, b, out):
            a[0] += b
            a[1] = a[0] * 2 - b
            a[2] //= b
            a[3] = a[3] ** 2 % 5
            for x in a[4:]:
                out[0] += min(x, 3) + max(x, a[0])
            a[6:] = a[4:6]
            out[1] = a[1]

        a = np.arange(8, dtype=np.float16)
        self.check(kernel, a, np.float16(2), np.zeros(2, np.float32))

    def test_functions_as_arguments_and_recursion(self):
        def fibonacci(n):
            if n < 2:
                return n
            return fibonacci(n - 1) + fibonacci(n - 2)

        def power(x, n):
            if n == 0:
                return 1
            return x * power(x, n - 1)

        def applied(function, kind, x):
            return kind(function(x))

        def kernel(x, out):
            out[0] = fibonacci(9)
            out[1] = power(x[0], 3)
            out[2] = applied(math.sqrt, float, x[1]) + applied(abs, int, -2.5)
            for i, (a, b) in enumerate(zip(x, x[::-1])):
                out[3] += i * a * b
            for (a, b), c in zip(zip(x, x), x):
                out[4] += a * b * c

        self.check(kernel, np.array([1.5, 2.0, 3.0]), np.zeros(5))

        def whole_arrays(x, out):
            np.sin(x, out)
            np.sqrt(4.0, out[1:])

        self.check(whole_arrays, np.arange(2.0), np.zeros(2))

    def test_arrays_that_take_turns(self):
        def kernel(a, b, steps, z, out):
            for step in range(steps):
                if step % 2 == 0:
                    source = a
                    target = b
                else:
                    source = b
                    target = a
                for i in range(1, len(source) - 1):
                    target[i] = (source[i - 1] + source[i + 1]) / 2
            real = z.real
            real[1] = 7
            out[0] = z.imag[0] + real[2]

        self.check(kernel, np.arange(6.0) ** 2, np.zeros(6), 5, np.array([1 + 2j, 3, 4 - 1j]), np.zeros(1))

        def read_only(a, b, choose, out):
            chosen = a
            if choose:
                chosen = b
            out[0] = chosen[0] + len(chosen)

        for choose in (0, 1):
            self.check(read_only, np.ones(3), np.full(4, 5.0), choose, np.zeros(1))

    def test_named_tuples_and_literals(self):
        point = collections.namedtuple("point", "x y")

        def room(size, x, out):
            own = cuda.local.array(size, float64)
            for i in range(size[1]):
                own[0, i] = x[i]
            out[0] = own[0, size[1] - 1] + own.size

        def kernel(where, x, out):
            room((1, 3), x, out)
            out[1] = where.x * 10 + where.y

        x, out = np.arange(4.0), np.zeros(2)
        cuda.jit(kernel)[1, 1](point(1, 2.5), x, out)
        np.testing.assert_array_equal(out, [5, 12.5])

    def test_arrays_and_tuples_in_tuples(self):
        @cuda.jit
        def add(x):
            i = cuda.grid(1)
            if i < len(x[0]):
                x[0][i] = x[1][i] + x[2][i]

        out, a, b = np.zeros(5, np.int32), np.arange(5, dtype=np.int32), np.ones(5, np.int32)
        add[1, 8]((out, a, b))
        self.assertEqual(out.tolist(), [1, 2, 3, 4, 5])
        arrays = st.zeros((2, 3)), st.arange(6.0).reshape(3, 2).T, st.ones(3)[::2]
        self.assertEqual(add.translated((out, a, b))[1], [True])

        @cuda.jit
        def rows(out, x):
            target, sources = out
            (scale, shift), (matrix, vector) = x
            i = cuda.grid(1)
            if i < matrix.shape[0]:
                for j in range(matrix.shape[1]):
                    target[i, j] = matrix[i, j] * scale + shift + vector[i]
                sources[0][i] = matrix.shape[1]

        counts = st.zeros(2, dtype=np.int64)
        rows[1, 8]((arrays[0], (counts,)), ((np.float64(2), 10), (arrays[1], arrays[2])))
        expected = np.arange(6.0).reshape(3, 2).T * 2 + 11
        np.testing.assert_array_equal(arrays[0].to_numpy(), expected)
        self.assertEqual(counts.tolist(), [3, 3])

        def total(pair, more):
            return pair[0][0] + pair[1] + len(more)

        @cuda.jit
        def through_a_function(out, pair):
            out[0] = total(pair, ()) + total((pair[0], 5), (1, (2, 3)))

        out = st.zeros(1)
        through_a_function[1, 1](out, (st.full(2, 7.0), 30))
        self.assertEqual(out.tolist(), [7 + 30 + 7 + 5 + 2])

        @cuda.jit
        def counts_of(out, x):
            out[0] = len(x)
            out[1] = len(x[0])

        out = st.zeros(2, dtype=np.int64)
        counts_of[1, 1](out, ((), ()))
        self.assertEqual(out.tolist(), [2, 0])
        row = collections.namedtuple("row", "values weight")

        @cuda.jit
        def weighed(x):
            x.values[1] = x.weight

        values = np.zeros(2)
        weighed[1, 1](row(values, 3.5))
        self.assertEqual(values.tolist(), [0, 3.5])

    def test_parts_of_dynamic_shared_memory(self):
        def second_half(memory):
            return memory[memory.size // 2 :][0]

        @cuda.jit
        def parts(x):
            memory = cuda.shared.array(0, dtype=int32)
            low, high = memory[0:2], memory[2:4]
            for i in range(2):
                low[i] = i + 1
                high[i] = i + 11
            memory[-1] = 99
            for i in range(4):
                x[i] = memory[i]
            x[4] = memory.size
            x[5] = second_half(memory)

        x = np.zeros(6, np.int32)
        parts[1, 1, 0, 16](x)
        self.assertEqual(x.tolist(), [1, 2, 11, 99, 4, 11])

        def sum_of_own():
            memory = cuda.shared.array(0, dtype=float64)
            memory[1:][0] = 3.0
            return memory[1] + memory.size

        @cuda.jit
        def in_a_function(x):
            x[0] = sum_of_own()

        y = np.zeros(1)
        in_a_function[1, 1, 0, 32](y)
        self.assertEqual(y[0], 7)
        with self.assertRaisesRegex(st.ExpressionError, "shared array of 0 elements"):
            cuda.vectorize(lambda x: x + sum_of_own())(np.ones(2))

    def test_functions_in_places_and_comparisons_are_called_once(self):
        def place(x):
            x[0] += 1
            return 1

        @cuda.jit
        def count(x, y, out):
            x[place(x)] += 5
            if 0 < place(x) < 2:
                out[0] = 7
            out[1] = place(x) or place(x)
            out[2] = place(x) and place(x) + 2
            out[3] = y[place(x) : place(x) + 2].size
            out[4] = x[0]
            y[place(x)] *= 2.5

        x, y, out = np.zeros(2, np.int32), np.ones(4, np.float16), np.zeros(5, np.int64)
        count[1, 1](x, y, out)
        self.assertEqual(out.tolist(), [7, 1, 3, 2, 7])
        self.assertEqual((x.tolist(), y.tolist()), ([8, 5], [1, 2.5, 1, 1]))

    def test_shapes_by_variables_that_are_set_once(self):
        @cuda.jit
        def copy(x):
            count = 4
            shape = (2, count)
            block = cuda.shared.array(count, float32)
            own = cuda.local.array(shape, float32)
            block[cuda.threadIdx.x] = own[1, 0] = x[cuda.threadIdx.x]
            cuda.syncthreads()
            x[cuda.threadIdx.x] = block[3 - cuda.threadIdx.x] + own[1, 0] / 4 + own.shape[1]

        x = np.arange(4, dtype=np.float32)
        copy[1, 4](x)
        self.assertEqual(x.tolist(), [7, 6.25, 5.5, 4.75])

        @cuda.jit
        def parameter(x, count):
            x[0] = x[0] ** count
            count = -1
            x[1] = count

        x = np.array([2.0, 3.0])
        parameter[1, 1](x, 3)
        self.assertEqual(x.tolist(), [8.0, -1.0])

        @cuda.jit
        def is_not_known(x):
            count = 4
            count += 1
            block = cuda.shared.array(count, float32)
            x[0] = block[0]

        with self.assertRaisesRegex(st.ExpressionError, "known integers"):
            is_not_known[1, 1](np.ones(4, np.float32))

    def test_integers_outside_of_a_signatures_type_wrap(self):
        @cuda.jit(void(int64[:], int32, uint8))
        def keep(out, a, b):
            out[0], out[1] = a, b

        for a, b in ((2**32 - 1, 257), (2**31, -1), (np.int64(2**40 + 5), np.int16(-2))):
            out = np.zeros(2, np.int64)
            keep[1, 1](out, a, b)
            expected = int(np.array(int(a) % 2**32, np.uint32).astype(np.int32)), int(b) % 256
            self.assertEqual(tuple(out.tolist()), expected)

        @cuda.jit
        def keep_one(out, a):
            out[0] = a

        out = np.zeros(1, np.uint64)
        keep_one[1, 1](out, 2**64 - 1)
        self.assertEqual(out[0], 2**64 - 1)

    def test_function_without_source_raises_with_the_reason(self):
        made = {}
        exec("def f(x):\n    x[0] = 1\n", made)
        with self.assertRaisesRegex(st.ExpressionError, "exec.*linecache"):
            cuda.jit(made["f"])[1, 1](np.zeros(1))
        text = "def f(x):\n    x[0] = 7\n"
        linecache.cache["<a kernel>"] = len(text), None, text.splitlines(True), "<a kernel>"
        self.addCleanup(linecache.cache.pop, "<a kernel>")
        exec(compile(text, "<a kernel>", "exec"), made)
        x = np.zeros(1)
        cuda.jit(made["f"])[1, 1](x)
        self.assertEqual(x[0], 7)

    def test_print_and_failures(self):
        def kernel(x):
            if cuda.grid(1) == 0:
                print("x is", x[0], 5, 1.5, x.shape, "100 %")

        with contextlib.redirect_stdout(io.StringIO()) as printed:
            cuda.jit(kernel)[1, 1](np.ones(3))
            cuda.synchronize()
        self.assertEqual(printed.getvalue(), "x is 1.000000 5 1.500000 3 100 %\n")

        def asserts(x):
            if x[0] < 0:
                raise ValueError("negative")
            assert x[0] == 5, "not five"
            x[1] = 1

        x = cuda.to_device(np.array([5.0, 0]))
        cuda.jit(asserts)[1, 1](x)
        self.same(x, [5.0, 1])
        if client_case.DEVICE_KIND == "cpu":  # a trap ends a GPU's context, with the work of others of this suite
            for value in (4.0, -1.0):
                x = cuda.to_device(np.array([value, 0]))
                cuda.jit(asserts)[1, 1](x)
                with self.assertRaisesRegex(st.StrideError, "trap"):
                    x.copy_to_host()

    def test_untranslatable_code_raises_with_the_line(self):
        table = {"a": 1}
        ours = st.zeros(3)
        for source, text in (
            ("x[0] = table['a']", "a dict from outside"),
            ("x[0] = ours[0]", "array of the service from outside"),
            ("x[0] = [i for i in range(3)][0]", "ListComp"),
            ("x[0] = len('a', 'b')", "length"),
            ("x.fill(1)", "fill"),
            ("x[0] = cuda.atomic.add(x, 0)", "takes an array"),
            ("x[0] = sorted((1, 2))[0]", "sorted"),
            ("del x", "Delete"),
            ("x[0] = 'text'", "takes a number"),
            ("y = cuda.shared.array(x.size, float32)", "known integers"),
            ("x[0] = 1 if x else 2", "number"),
            ("x[0], x[1] = 1, 2, 3", "as many values"),
        ):
            with self.subTest(source=source), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "refused.py")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f"def kernel(x):\n    {source}\n")
                names = {"cuda": cuda, "float32": float32, "table": table, "ours": ours}
                with open(path, encoding="utf-8") as file:
                    exec(compile(file.read(), path, "exec"), names)  # noqa: S102
                with self.assertRaisesRegex(st.ExpressionError, rf"refused\.py:2: .*{text}"):
                    cuda.jit(names["kernel"])[1, 1](np.zeros(3))


def lambda_with_complex(x):
    x[0] = 1j


class WarpTest(client_case.ClientCase):
    def test_shuffles_and_votes(self):
        @cuda.jit
        def kernel(x, out, counts):
            i = cuda.threadIdx.x
            lane = cuda.laneid
            value = x[i]
            out[0, i] = cuda.shfl_sync(0xFFFFFFFF, value, 3)
            out[1, i] = cuda.shfl_up_sync(0xFFFFFFFF, value, 1)
            out[2, i] = cuda.shfl_down_sync(0xFFFFFFFF, value, 2)
            out[3, i] = cuda.shfl_xor_sync(0xFFFFFFFF, value, 1)
            counts[0, i] = cuda.ballot_sync(0xFFFFFFFF, lane < 5)
            counts[1, i] = cuda.all_sync(0xFFFFFFFF, lane < 32) * 10 + cuda.any_sync(0xFFFFFFFF, lane == 40)
            counts[2, i] = cuda.match_any_sync(0xFFFFFFFF, i % 2)
            mask, same = cuda.match_all_sync(0xFFFFFFFF, 7)
            equal = cuda.eq_sync(0xFFFFFFFF, lane >= 0)
            counts[3, i] = same and equal
            total = value
            step = 16
            while step > 0:
                total += cuda.shfl_down_sync(0xFFFFFFFF, total, step)
                step //= 2
            out[4, i] = total
            cuda.syncwarp()
            counts[4, i] = cuda.warpsize + cuda.popc(255) + cuda.clz(1) + cuda.ffs(8) + cuda.brev(1) % 7
            counts[5, i] = cuda.selp(i < 3, 1, 2)
            out[5, i] = (
                cuda.fma(value, 2.0, 1.0) + cuda.cbrt(8.0) + cuda.libdevice.sqrt(4.0) + cuda.libdevice.fabsf(-1.0)
            )

        for dtype in (np.int32, np.float32, np.int64, np.float64):
            x = np.arange(32).astype(dtype)
            out, counts = np.zeros((6, 32)), np.zeros((6, 32), np.int64)
            kernel[1, 32](x, out, counts)
            lanes = np.arange(32)
            np.testing.assert_array_equal(out[0], 3)
            np.testing.assert_array_equal(out[1], np.where(lanes > 0, lanes - 1, 0))
            np.testing.assert_array_equal(out[2], np.where(lanes < 30, lanes + 2, lanes))
            np.testing.assert_array_equal(out[3], lanes ^ 1)
            self.assertEqual(out[4, 0], lanes.sum())
            np.testing.assert_array_equal(out[5], lanes * 2 + 1 + 2 + 2 + 1)
            np.testing.assert_array_equal(counts[0], 31)
            np.testing.assert_array_equal(counts[1], 10)
            np.testing.assert_array_equal(counts[2], np.where(lanes % 2 == 0, 0x55555555, 0xAAAAAAAA))
            np.testing.assert_array_equal(counts[3], 1)
            np.testing.assert_array_equal(counts[4], 32 + 8 + 63 + 4 + 2**63 % 7)
            np.testing.assert_array_equal(counts[5], np.where(lanes < 3, 1, 2))

    def test_votes_of_a_part_of_a_warp(self):
        @cuda.jit
        def kernel(x, out):
            i = cuda.threadIdx.x
            mask, same = cuda.match_all_sync(0xFFFFFFFF, x[i])
            out[0, i] = mask if same else 0
            out[1, i] = cuda.eq_sync(0xFFFFFFFF, True)

        for x, wanted in ((np.full(10, 3), 1023), (np.arange(10), 0)):
            out = np.zeros((2, 10), np.int64)
            kernel[1, 10](x, out)
            np.testing.assert_array_equal(out, [[wanted] * 10, [1] * 10])

    def test_block_votes(self):
        @cuda.jit
        def kernel(out):
            i = cuda.threadIdx.x
            out[0, i] = cuda.syncthreads_count(i % 3 == 0)
            out[1, i] = cuda.syncthreads_and(i < 64)
            out[2, i] = cuda.syncthreads_or(i == 100)
            cuda.threadfence()
            cuda.threadfence_block()
            cuda.threadfence_system()

        out = np.zeros((3, 64), np.int64)
        kernel[1, 64](out)
        np.testing.assert_array_equal(out, np.array([[22], [1], [0]]) * np.ones((1, 64)))

    def test_atomics(self):
        for dtype in (np.uint32, np.uint64):

            @cuda.jit
            def counters(x):
                cuda.atomic.inc(x, 0, 5)
                cuda.atomic.dec(x, 1, 9)
                cuda.atomic.compare_and_swap(x[2:], 0, 7)
                cuda.atomic.cas(x, 3, 1, 8)
                cuda.atomic.add(x, (4,), 2)

            x = np.array([0, 4, 0, 1, 0], dtype)
            counters[1, 8](x)
            np.testing.assert_array_equal(x, np.array([8 % 6, 6, 7, 8, 16], dtype))

        @cuda.jit
        def two_axes(x, low, old):
            i = cuda.grid(1)
            old[i] = cuda.atomic.add(x, (i % 2, 1), 1)
            cuda.atomic.nanmin(low, 0, -1.0 * i)
            cuda.atomic.nanmax(low, 1, 1.0 * i)

        x, low, old = np.zeros((2, 2)), np.full(2, np.nan), np.zeros(10)
        two_axes[1, 10](x, low, old)
        np.testing.assert_array_equal(x, [[0, 5], [0, 5]])
        np.testing.assert_array_equal(low, [-9, 9])
        np.testing.assert_array_equal(np.sort(old), np.repeat(np.arange(5), 2))


class UfuncTest(client_case.ClientCase):
    def test_vectorize(self):
        @vectorize([float32(float32, float32), float64(float64, float64)], target="cuda")
        def hypotenuse(a, b):
            return math.sqrt(a * a + b * b)

        @vectorize(["int64(int64)", "float64(float64)"], target="cuda", cache=True)
        def stepped(x):
            if x > 3:
                return x
            return x * 2

        x, y = np.arange(6, dtype=np.float32), np.float32(2)
        result = hypotenuse(x, y)
        self.assertIsInstance(result, np.ndarray)
        self.assertEqual(result.dtype, np.float32)
        np.testing.assert_allclose(result, np.hypot(x, y), rtol=1e-6)
        device = hypotenuse(cuda.to_device(x), y)
        self.same(device, np.hypot(x, y), rtol=1e-6)
        for out in (np.zeros(6, np.float32), cuda.device_array(6, dtype=np.float32)):
            self.assertIs(hypotenuse(x, y, out=out), out)
            np.testing.assert_allclose(np.asarray(out), np.hypot(x, y), rtol=1e-6)
        np.testing.assert_array_equal(stepped(np.arange(6)), [0, 2, 4, 6, 4, 5])
        self.assertEqual(stepped(3.0), 6.0)

        tripled = vectorize([float64(float64)], target="cuda")(lambda x: x * 3)
        np.testing.assert_array_equal(tripled(np.arange(3.0)), [0, 3, 6])

        @vectorize([int64(int64, int64)], target="cuda")
        def added(a, b):
            return a + b

        self.assertEqual(added.reduce(np.arange(1000)), 499500)
        with self.assertRaises(st.DataTypeMismatch):
            added(np.zeros(3), 1)

    def test_guvectorize(self):
        @guvectorize([(float32[:, :], float32[:, :], float32[:, :])], "(m,n),(n,p)->(m,p)", target="cuda")
        def product(a, b, c):
            for i in range(c.shape[0]):
                for j in range(c.shape[1]):
                    total = 0.0
                    for k in range(a.shape[1]):
                        total += a[i, k] * b[k, j]
                    c[i, j] = total

        @guvectorize(
            ["void(int64[:], int64[:], int64[:])", "void(float64[:], float64[:], float64[:])"],
            "(n),()->(n)",
            target="cuda",
        )
        def shifted(x, y, out):
            for i in range(x.shape[0]):
                out[i] = x[i] + y[0]

        @guvectorize([(int64[:], int64, int64[:])], "(n),()->(n)")
        def shifted_by_number(x, y, out):
            for i in range(x.shape[0]):
                out[i] = x[i] + y

        rng = np.random.default_rng(3)
        a, b = rng.random((5, 3, 4), np.float32), rng.random((4, 2), np.float32)
        result = product(a, b)
        self.assertIsInstance(result, np.ndarray)
        np.testing.assert_allclose(result, a @ b, rtol=1e-5)
        out = np.zeros((5, 3, 2), np.float32)
        self.assertIs(product(a, b, out), out)
        np.testing.assert_allclose(out, a @ b, rtol=1e-5)
        self.same(product(cuda.to_device(a), b), a @ b, rtol=1e-5)
        x = np.arange(6).reshape(2, 3)
        np.testing.assert_array_equal(shifted(x, np.array([10, 20])), x + [[10], [20]])
        np.testing.assert_array_equal(shifted(x * 1.5, 1), x * 1.5 + 1)
        np.testing.assert_array_equal(shifted_by_number(x, 3), x + 3)


def reference_states(count, seed):
    """The generator as its authors describe it, in Python's integers."""
    mask = 2**64 - 1
    x = (seed + 0x9E3779B97F4A7C15) & mask
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = ((x ^ x >> shift) * factor) & mask
    states = [(x ^ x >> 31,) * 2]
    for _ in range(count - 1):
        state, jumped = states[-1], (0, 0)
        for word in (0xBEAC0467EBA5FACB, 0xD86B048B86AA9922):
            for bit in range(64):
                if word >> bit & 1:
                    jumped = jumped[0] ^ state[0], jumped[1] ^ state[1]
                state = reference_next(state)[1]
        states.append(jumped)
    return states


def reference_next(state):
    mask = 2**64 - 1
    s0, s1 = state
    result = (s0 + s1) & mask
    s1 ^= s0
    return result, ((s0 << 55 | s0 >> 9) & mask ^ s1 ^ s1 << 14 & mask, (s1 << 36 | s1 >> 28) & mask)


class RandomTest(client_case.ClientCase):
    def test_states_and_numbers(self):
        for seed in (1, 2**63 + 5):
            states = create_xoroshiro128p_states(9, seed=seed)
            reference = reference_states(9, seed)
            self.same(states, np.array(reference, np.uint64))
            later = create_xoroshiro128p_states(4, seed=seed, subsequence_start=5)
            self.same(later, np.array(reference[5:], np.uint64))

        @cuda.jit
        def numbers(states, single, double):
            i = cuda.grid(1)
            single[i] = xoroshiro128p_uniform_float32(states, i)
            double[i] = xoroshiro128p_uniform_float64(states, i)

        single, double = np.zeros(9, np.float32), np.zeros(9)
        numbers[1, 9](states, single, double)
        for i, state in enumerate(reference):
            first, state = reference_next(state)
            second, _ = reference_next(state)
            self.assertEqual(single[i], np.float32((first >> 11) / 2**53))
            self.assertEqual(double[i], (second >> 11) / 2**53)

    def test_normal(self):
        @cuda.jit
        def normals(states, single, double):
            i = cuda.grid(1)
            for j in range(single.shape[1]):
                single[i, j] = xoroshiro128p_normal_float32(states, i)
                double[i, j] = xoroshiro128p_normal_float64(states, i)

        single, double = np.zeros((128, 200), np.float32), np.zeros((128, 200))
        normals[2, 64](numba_cuda.random.create_xoroshiro128p_states(128, seed=7), single, double)
        for values in (single, double):
            self.assertAlmostEqual(float(values.mean()), 0, delta=0.03)
            self.assertAlmostEqual(float(values.std()), 1, delta=0.03)


class RuntimeTest(client_case.ClientCase):
    def test_devices(self):
        self.assertTrue(cuda.is_available())
        self.assertEqual(len(cuda.gpus), len(cuda.list_devices()))
        self.assertEqual([one.id for one in cuda.gpus], list(range(len(cuda.gpus))))
        with cuda.gpus[0]:
            self.same(cuda.to_device(np.ones(3)), np.ones(3))
        device = cuda.get_current_device()
        self.assertEqual((device.id, device.WARP_SIZE), (0, 32))
        self.assertIsInstance(device.name, bytes)
        self.assertEqual(len(device.compute_capability), 2)
        self.assertGreater(device.MULTIPROCESSOR_COUNT, 0)
        cuda.select_device(0)
        memory = cuda.current_context().get_memory_info()
        self.assertTrue(0 < memory.free <= memory.total == memory[1])
        with self.assertRaises(IndexError):
            cuda.gpus[1000]
        self.assertTrue(cuda.detect())
        cuda.close()

    def test_streams_and_events(self):
        stream = cuda.stream()
        start, end = cuda.event(), cuda.event(timing=True)
        start.record(stream)
        x = cuda.to_device(np.zeros(1000), stream)
        increment_by_one[8, 128, stream](x)
        end.record(stream)
        end.synchronize()
        self.assertGreater(cuda.event_elapsed_time(start, end), 0)
        self.assertGreater(start.elapsed_time(end), 0)
        end.wait(stream)
        self.assertTrue(end.query())
        called = threading.Event()
        stream.add_callback(lambda stream, status, arg: arg.set(), called)
        self.assertTrue(called.is_set())
        stream.synchronize()
        cuda.default_stream().synchronize()
        self.same(x, np.ones(1000))
        with self.assertRaisesRegex(st.Unimplemented, "external_stream"):
            cuda.external_stream(0)
        with self.assertRaises(ValueError):
            cuda.event_elapsed_time(cuda.event(), end)
        with cuda.defer_cleanup(), cuda.profiling():
            pass

    def test_imports_of_numba_core(self):
        from stride.numba import config
        from stride.numba.core import config as settings
        from stride.numba.core import errors

        self.assertIs(config, settings)
        config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
        warnings.simplefilter("ignore", errors.NumbaPerformanceWarning)

        @cuda.jit
        def wrong(x):
            x[0] = undefined_name  # noqa: F821

        with self.assertRaises(errors.TypingError):
            wrong[1, 1](cuda.to_device(np.zeros(1)))
        self.assertIsInstance(float32, types.Type)
        self.assertIsInstance(float32[:], types.Type)
        self.assertEqual(complex64.underlying_float, float32)
        with self.assertRaises(AttributeError):
            int32.underlying_float  # noqa: B018
        self.assertIsInstance(cuda.to_device(np.zeros(1)), cuda.devicearray.DeviceNDArray)
        self.assertFalse(cuda.devicearray.is_cuda_ndarray(np.zeros(1)))

    def test_modules_are_not_taken_for_numbas_own(self):
        # A finder as that of the package numba-cuda, which takes every module with these words in its name.
        program = """if True:
            import sys
            class Finder:
                def find_spec(self, name, path, target=None):
                    if "numba.cuda" in name:
                        raise RecursionError(name)
            sys.meta_path.insert(0, Finder())
            from stride.numba import cuda
            import stride.numba.cuda.random
            from stride.numba.cuda.cg import this_grid
            assert stride.numba.cuda is cuda
        """
        subprocess.run([sys.executable, "-c", program], check=True, timeout=120)

    def test_each_public_name_exists_and_is_documented(self):
        for module in (
            cuda, cuda.random, cuda.cg, cuda.libdevice, cuda.fp16, cuda.devicearray, st.numba, st.numba.core,
            st.numba.core.config, types, numba_cuda,
        ):  # fmt: skip
            self.assertTrue(module.__doc__)
            for name in module.__all__:
                with self.subTest(module=module.__name__, name=name):
                    value = getattr(module, name)
                    if (
                        callable(value)
                        and getattr(value, "__module__", "").startswith("stride.")
                        and not isinstance(value, cuda.Intrinsic)
                    ):
                        self.assertTrue(value.__doc__)
        self.assertLess({"jit", "grid", "to_device", "random"}, set(cuda.__all__))
        with self.assertRaisesRegex(TypeError, "inside a kernel"):
            cuda.shfl_sync(1, 2, 3)


class HalfPrecisionTest(client_case.ClientCase):
    def test_a_conversion_rounds_once(self):
        @cuda.jit
        def kernel(single, double, out, halves):
            out[0] = float16(single[0])
            out[1] = float16(double[0])
            out[2] = float16(1.0001)
            out[3] = float16(single[0]) * single[1]
            out[4] = float16(70000)
            halves[0] = double[0]

        # Rounded to float32 first it would lie halfway between two numbers of float16.
        double = np.array([1 + 2.0**-11 + 2.0**-40])
        single = np.array([1.0001, 3], np.float32)
        out, halves = cuda.to_device(np.zeros(5, np.float32)), cuda.to_device(np.zeros(1, np.float16))
        kernel[1, 1](single, double, out, halves)
        expected = [np.float16(single[0]), np.float16(double[0]), np.float16(1.0001), 3, np.inf]
        self.same(out, np.array(expected, np.float32))
        self.same(halves, double.astype(np.float16))

    def test_functions_of_fp16_give_numpys_numbers(self):
        half = cuda.fp16

        @cuda.jit
        def kernel(x, y, out, asked):
            i = cuda.grid(1)
            if i < x.size:
                out[0, i] = half.hadd(x[i], y[i])
                out[1, i] = half.hsub(x[i], y[i])
                out[2, i] = half.hmul(x[i], y[i])
                out[3, i] = half.hdiv(x[i], y[i])
                out[4, i] = half.hmax(x[i], y[i])
                out[5, i] = half.hmin(x[i], y[i])
                out[6, i] = half.hneg(x[i])
                out[7, i] = half.habs(x[i])
                out[8, i] = half.hsqrt(y[i])
                out[9, i] = half.hfloor(x[i])
                out[10, i] = half.hceil(x[i])
                out[11, i] = half.htrunc(x[i])
                out[12, i] = half.hrint(x[i])
                out[13, i] = half.hrcp(x[i])
                out[14, i] = half.hfma(x[i], y[i], x[i])
                asked[0, i] = half.hlt(x[i], y[i])
                asked[1, i] = half.hle(x[i], y[i])
                asked[2, i] = half.hgt(x[i], y[i])
                asked[3, i] = half.hge(x[i], y[i])
                asked[4, i] = half.heq(x[i], y[i])
                asked[5, i] = half.hne(x[i], y[i])

        x = np.array([1.0, -2.5, 1.001, 2049, np.nan, 3.5, -0.3], np.float16)
        y = np.array([3.0, 1.25, 1.001, 7, 1, np.inf, 0.7], np.float16)
        out, asked = cuda.to_device(np.zeros((15, 7), np.float16)), cuda.to_device(np.zeros((6, 7), bool))
        kernel[1, 32](cuda.to_device(x), cuda.to_device(y), out, asked)
        with np.errstate(all="ignore"):
            wide = x.astype(np.float64)
            whole = [np.floor(x), np.ceil(x), np.trunc(x), np.rint(x)]
            others = [np.float16(1) / x, (wide * y + wide).astype(np.float16)]
            binary = [x + y, x - y, x * y, x / y, np.fmax(x, y), np.fmin(x, y)]
            expected = [*binary, -x, abs(x), np.sqrt(y), *whole, *others]
        self.same(out, np.array(expected))
        self.same(asked, np.array([x < y, x <= y, x > y, x >= y, x == y, x != y]))

    def test_other_functions_of_fp16(self):
        half = cuda.fp16

        @cuda.jit
        def kernel(x, out):
            i = cuda.grid(1)
            if i < x.size:
                out[0, i] = half.hsin(x[i])
                out[1, i] = half.hcos(x[i])
                out[2, i] = half.hlog(x[i])
                out[3, i] = half.hlog2(x[i])
                out[4, i] = half.hlog10(x[i])
                out[5, i] = half.hexp(x[i])
                out[6, i] = half.hexp2(x[i])
                out[7, i] = half.hexp10(x[i])
                out[8, i] = half.hrsqrt(x[i])

        x = np.array([0.5, 1, 2.25], np.float16)
        out = cuda.to_device(np.zeros((9, 3), np.float16))
        kernel[1, 32](cuda.to_device(x), out)
        wide = x.astype(np.float64)
        logarithms = [np.log(wide), np.log2(wide), np.log10(wide)]
        expected = [np.sin(wide), np.cos(wide), *logarithms, np.exp(wide), 2**wide, 10**wide, 1 / np.sqrt(wide)]
        self.same(out, np.array(expected).astype(np.float16), rtol=1e-3)


if __name__ == "__main__":
    client_case.main()
