"""User-defined kernels and elementwise functions."""

import contextlib
import math
import time
import unittest.mock

import numpy as np

import client_case
import stride as st
from client_case import Sent
from stride import _encoding, _execution, _numbers, _session_sending, abi
from stride._stream import Answer, Note
from stride.v1 import compute_service_pb2, operation_pb2 as pb

AXPY = r"""
extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
"""

TABLE = r"""
namespace ns { __constant__ float table[4] = {1, 2, 3, 4}; }
__constant__ int bias = 10;
struct Pair { int a; float b; };
__constant__ Pair pair = {0, 0};
__device__ int calls;
extern "C" __global__ void show(float* out) { out[threadIdx.x] = ns::table[threadIdx.x] + bias + pair.b; }
extern "C" __global__ void count(int* out) { *out = ++calls; }
"""
VIEW = r"""
struct Inner { const float* data; };
struct View { float* data; int offset; Inner other; };
extern "C" __global__ void add(View view, int n) {
  if (threadIdx.x < n) view.data[threadIdx.x + view.offset] = view.other.data[threadIdx.x];
}
"""
GRID = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void sums(const int* x, int* parts, int* total) {
  cg::grid_group grid = cg::this_grid();
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  int v = x[grid.thread_rank() % 1024];
  for (int i = 16; i > 0; i /= 2) v += tile.shfl_down(v, i);
  if (tile.thread_rank() == 0) atomicAdd(&parts[blockIdx.x % 16], v);
  grid.sync();
  if (grid.thread_rank() != 0) return;
  *total = 0;
  for (int i = 0; i < (int)grid.num_blocks(); ++i) *total += parts[i];
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

    def test_errors_of_launches_that_never_ran(self):
        axpy = st.RawKernel(AXPY, "axpy")
        x, y = st.ones(10, dtype=st.float32), st.ones(10, dtype=st.float32)
        axpy(1, 10, (1, x, y, 10))
        # Errors are reported both with cached code and without, and a launch that did not run changes no
        # array.
        for launch in (
            lambda: axpy(1, 2048, (1, x, y, 10)),
            lambda: axpy(1, 10, (1, st.ones(10), y, 10)),
            lambda: axpy(1, 10, (1, x, y)),
            lambda: st.RawKernel(AXPY + "//", "other")(1, 1, (y,)),
            lambda: axpy(1, 10, (1, x[::2], y, 10)),
        ):
            launch()
            with self.assertRaises(st.StrideError) as raised:
                y.to_numpy()
            self.assertIn("kernel_test.py", raised.exception.origin)
            self.same(y, np.full(10, 2, np.float32))
            launch()
            with self.assertRaises(st.StrideError):
                self.session.synchronize()
            self.session.synchronize()
        self.same(x, np.ones(10, np.float32))

    def test_faults_of_kernels_that_write_no_array(self):
        code = """
        __device__ int total;
        extern "C" __global__ void count(int n) { atomicAdd(&total, n); if (n < 0) *(volatile int*)(long long)64 = n; }
        extern "C" __global__ void look(const float* x, int n) { if (x[0] > n) *(volatile int*)(long long)64 = n; }
        """
        count, look = st.RawKernel(code, "count"), st.RawKernel(code, "look")
        x = st.ones(10, dtype=st.float32)
        other = st.connect(self.daemon.address, timeout=120)
        self.addCleanup(other.close)
        # The first launch of its kind and a later one; synchronize reports the fault once.
        for bad, good in (
            (lambda: count(1, 1, (-1,)), lambda: count(1, 1, (1,))),
            (lambda: look(1, 1, (x, 0)), lambda: look(1, 1, (x, 5))),
        ):
            for before in (0, 3):
                for _ in range(before):
                    good()
                self.session.synchronize()
                bad()
                with self.assertRaises(st.KernelFault) as raised:
                    self.session.synchronize()
                self.assertIn("illegal memory access", str(raised.exception))
                self.session.synchronize()
                other.synchronize()
                good()
                self.session.synchronize()
        # By a read of any array, once.
        count(1, 1, (-1,))
        with self.assertRaises(st.KernelFault):
            (x + 1).to_numpy()
        self.same(x + 1, np.full(10, 2, np.float32))
        self.session.synchronize()

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

    def test_constants(self):
        show = st.RawKernel(TABLE, "show")

        def shown(**options):
            out = st.zeros(4, dtype=st.float32)
            show(1, 4, (out,), **options)
            return out

        table = st.asarray([5, 6, 7, 8], dtype=st.float32) * 2
        self.same(shown(constants={"ns::table": table, "bias": 1}), np.array([11, 13, 15, 17], np.float32))
        self.same(shown(), np.array([11, 12, 13, 14], np.float32))
        self.same(shown(constants={"ns::table": np.float32([100])}), np.array([110, 12, 13, 14], np.float32))
        self.same(shown(constants={"bias": np.int32(-1)}), np.array([0, 1, 2, 3], np.float32))
        self.same(
            shown(constants={"pair": st.Struct(np.int32(5), np.float32(0.5))}),
            np.array([11.5, 12.5, 13.5, 14.5], np.float32),
        )
        self.same(table, np.array([10, 12, 14, 16], np.float32))

    def test_constants_that_do_not_fit(self):
        show = st.RawKernel(TABLE, "show")
        for constants, kind, field in (
            ({"nothing": 1}, st.CompileError, "kernel_launch.globals[0].name"),
            ({"ns::table": st.zeros(4, dtype=st.float64)}, st.DataTypeMismatch, "kernel_launch.globals[0].array"),
            ({"bias": 2.5}, st.DataTypeMismatch, "kernel_launch.globals[0].scalar"),
            (
                {"bias": 1, "ns::table": st.zeros(5, dtype=st.float32)},
                st.InvalidArgument,
                "kernel_launch.globals[1].array",
            ),
            ({"ns::table": st.zeros(8, dtype=st.float32)[::2]}, st.InvalidArgument, "kernel_launch.globals[0].array"),
        ):
            out = st.zeros(4, dtype=st.float32)
            show(1, 4, (out,), constants=constants)
            with self.assertRaises(kind) as raised:
                out.to_numpy()
            self.assertEqual(raised.exception.field, field, raised.exception)
            self.assertIn("kernel_test.py", raised.exception.origin)
        out = st.zeros(4, dtype=st.float32)
        show(1, 4, (out,), constants={"nothing": 1})
        with self.assertRaisesRegex(st.CompileError, "table.*bias"):
            out.to_numpy()

    def test_module(self):
        module = st.RawModule(TABLE, globals=["ns::table", "bias", "calls"])
        infos = module.get_globals()
        self.assertEqual(
            {(one.name, one.nbytes, one.constant, one.dtype) for one in infos},
            {
                ("ns::table", 16, True, np.dtype(np.float32)),
                ("bias", 4, True, np.dtype(np.int32)),
                ("calls", 4, False, np.dtype(np.int32)),
            },
        )
        self.assertEqual([one.nbytes for one in module.get_globals("bias")], [4] * (len(infos) // 3))
        show, count = module.get_function("show"), module.get_function("count")
        out, seen = st.zeros(4, dtype=st.float32), st.zeros(1, dtype=st.int32)
        module.constants["bias"] = 100
        show(1, 4, (out,))
        self.same(out, np.array([101, 102, 103, 104], np.float32))
        show(1, 4, (out,), constants={"bias": 200})
        self.same(out, np.array([201, 202, 203, 204], np.float32))
        count(1, 1, (seen,), constants={"calls": 7}, device=self.device)
        count(1, 1, (seen,), device=self.device)
        self.same(seen, np.array([9], np.int32))
        del module.constants["bias"]
        show(1, 4, (out,))
        self.same(out, np.array([11, 12, 13, 14], np.float32))
        show(1, 4, (out,), constants={"pair": b"12345678"})
        with self.assertRaisesRegex(st.CompileError, "ns::table, bias, calls"):
            out.to_numpy()
        with self.assertRaises(st.CompileError) as raised:
            st.RawModule(TABLE, globals=["bias", "nothing"]).compile()
        self.assertEqual(raised.exception.field, "module.globals[1]")
        module.delete()
        self.assertEqual(len(module.get_globals()), len(infos))

    def test_structs(self):
        add = st.RawKernel(VIEW, "add")
        x, y = st.arange(8, dtype=st.float32), st.zeros(10, dtype=st.float32)
        add(1, 8, (st.Struct(y, np.int32(2), st.Struct(x)), np.int32(8)))
        self.same(y, np.array([0, 0, *range(8)], np.float32))
        self.assertEqual(st.Struct(np.int8(1), np.int64(2), b"abc").size, 24)
        with self.assertRaises(TypeError):
            st.Struct(1)
        add(1, 8, (st.Struct(y, np.int32(2)), np.int32(8)))
        with self.assertRaises(st.InvalidArgument) as raised:
            y.to_numpy()
        self.assertEqual(raised.exception.field, "kernel_launch.arguments[0].aggregate.size_bytes")
        self.same(x, np.arange(8, dtype=np.float32))

    def test_cooperative(self):
        sums = st.RawKernel(GRID, "sums")
        x = st.arange(16 * 64, dtype=st.int32)
        parts, total = st.zeros(16, dtype=st.int32), st.zeros(1, dtype=st.int32)
        sums(16, 64, (x, parts, total), cooperative=True)
        self.same(total, np.array([16 * 64 * (16 * 64 - 1) // 2], np.int32))
        sums(16, 64, (x, parts, total))
        with self.assertRaisesRegex(st.KernelFault, "not cooperative"):
            total.to_numpy()
        total = st.zeros(1, dtype=st.int32)
        sums(1 << 20, 64, (x, st.zeros(16, dtype=st.int32), total), cooperative=True)
        with self.assertRaisesRegex(st.InvalidArgument, "at most [1-9][0-9]* run at once"):
            total.to_numpy()

    def test_device_kind(self):
        kind = client_case.DEVICE_KIND
        twice = st.define_ufunc("twice_here", ["float32->float32"], expression="a + a", device_kind=kind)
        self.same(twice(st.ones(3, dtype=st.float32)), np.full(3, 2, np.float32))
        other = st.define_ufunc("twice_there", ["float32->float32"], expression="a + a", device_kind="tpu")
        with self.assertRaisesRegex(st.FailedPrecondition, "device kind: tpu"):
            other(st.ones(3, dtype=st.float32)).to_numpy()
        st.delete_function("twice_here")

    def test_arguments_of_other_compilers(self):
        x = st.zeros((3, 5), dtype=st.float32)
        self.assertEqual([one for one in abi.numba_array(x)[2:] if one is not x], [15, 4, 3, 5, 20, 4])
        self.assertEqual(abi.julia_array(x).size, 40)
        self.assertEqual(abi.julia_state().size, 16)
        ptx = ".visible .entry f(\n .param .u64 a, // .param\n .param .u64 .ptr .align 1 b\n)\n.visible .entry g() {"
        self.assertEqual(abi.entries(ptx), ["f", "g"])
        self.assertEqual((abi.num_parameters(ptx, "f"), abi.num_parameters(ptx, "g")), (2, 0))
        self.assertEqual(len(abi.triton_arguments(ptx, "f", [x])), 2)
        with self.assertRaises(ValueError):
            abi.triton_arguments(ptx, "g", [x])

    def test_expression(self):
        selu = st.vectorize("1.05 * where(x > 0, x, a * exp(x) - a)")
        host = np.linspace(-2, 2, 9)
        self.same(
            selu(a=1.67, x=st.asarray(host)), 1.05 * np.where(host > 0, host, 1.67 * np.exp(host) - 1.67), rtol=1e-14
        )
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
        self.same(
            clipped(st.asarray(host), -10),
            np.where(y < -10, -10, np.where((y <= 9) & (host != 1), np.sqrt(np.abs(y)), -y)),
        )
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

    def test_vectorize_with_signatures_has_the_methods_of_a_ufunc(self):
        @st.vectorize(["float64(float64, float64)", "float32(float32, float32)"])
        def mixed(a, b):
            return a * b + 1 if a > b else a + b

        for dtype, rtol in ((np.float64, 1e-12), (np.float32, 1e-4)):
            ours = np.frompyfunc(lambda a, b: dtype(a * b + 1 if a > b else a + b), 2, 1)
            host = np.random.default_rng(0).random((57, 301)).astype(dtype)
            array = st.asarray(host)
            for axis in (0, 1):
                wanted = ours.reduce(host, axis=axis).astype(dtype)
                np.testing.assert_allclose(np.asarray(mixed.reduce(array, axis=axis)), wanted, rtol)
                wanted = ours.accumulate(host, axis=axis).astype(dtype)
                np.testing.assert_allclose(np.asarray(mixed.accumulate(array, axis=axis)), wanted, rtol)
            wanted = ours.outer(host[0], host[1]).astype(dtype)
            np.testing.assert_allclose(np.asarray(mixed.outer(array[0], array[1])), wanted, rtol)
            places = [0, 7, 7, 200]
            wanted = ours.reduceat(host.astype(object), places, axis=1).astype(dtype)
            np.testing.assert_allclose(np.asarray(mixed.reduceat(array, places, axis=1)), wanted, rtol)
            changed = host[0].astype(object)
            ours.at(changed, places, dtype(3))
            mixed.at(array[0], places, dtype(3))
            np.testing.assert_allclose(np.asarray(array[0]), changed.astype(dtype), rtol)

    def test_vectorize_reduces_in_order_without_an_identity(self):
        @st.vectorize(["float64(float64, float64)"])
        def minus(a, b):
            return a - b

        host = np.random.default_rng(1).random(10_001)
        self.assertAlmostEqual(float(minus.reduce(st.asarray(host))), np.subtract.reduce(host), 9)
        with self.assertRaises(ValueError):
            float(minus.reduce(st.zeros(0)))

        @st.vectorize(["int64(int64, int64)"], identity=0)
        def plus(a, b):
            return a + b

        self.assertEqual(int(plus.reduce(st.arange(1_000_000))), 999_999 * 500_000)
        self.assertEqual(int(plus.reduce(st.zeros(0, st.int64))), 0)

    def test_reductions_of_vectorized_functions_take_two_inputs(self):
        double = st.vectorize(["float64(float64)"])(lambda x: x * 2)
        for method in (double.reduce, double.accumulate):
            with self.assertRaisesRegex(ValueError, "two inputs"):
                method(st.ones(3))

    def test_extents_of_zero(self):
        x = st.zeros(1, dtype=st.float32)
        add = st.RawKernel('extern "C" __global__ void f(float* x) { x[0] += 1; }', "f")
        for grid, block in ((0, 1), (1, 0), ((0,), (1,)), ((1, 0), 1), (1, (1, 1, 0)), (-1, 1), (1, 2**32), (1.0, 1)):
            with self.subTest(grid=grid, block=block), self.assertRaises((ValueError, TypeError)):
                add(grid, block, (x,))

        @st.kernel
        def increase(x):
            x[0] += 1.0

        for grid, block in ((0, 32), (1, 0), ((1, 0), 1)):
            with self.assertRaises(ValueError):
                increase[grid, block](x)
        self.same(x, np.zeros(1, np.float32))

    def test_encoded_launches_are_the_messages(self):
        kernel = st.RawKernel(AXPY, "axpy", ("-DSTEP=5",))
        x, y = st.ones(100, st.float32), st.zeros(100, st.float32)
        numbers = [0, 1, -1, 2**40, 0.0, -0.0, 1.5, float("nan"), True, False, 1j, np.int8(-3), np.uint64(2**63),
                   np.float32(-0.0), np.float32(0.0), np.float64(2.0), np.complex64(1 - 2j), np.bool_(True)]
        for _ in range(2):  # the second time from what is kept
            for number in numbers:
                with self.subTest(number=number), Sent(self.session) as sent:
                    view = st.Struct(x, np.int32(2))
                    kernel.launch((3, 2), 128, [number, x, y, view, b"raw"], [y], shared_memory_bytes=16,
                                  constants={"bias": 3, "table": y}, cooperative=True, device="cpu:0")
                    launch = sent.commands[-1].operation.kernel_launch if sent.commands[-1].HasField("operation") \
                        else sent.commands[-2].operation.kernel_launch
                handles = [one._node.handle for one in (x, y)]
                wanted = pb.KernelLaunch(source=AXPY, entry="axpy", options=["-DSTEP=5"], grid=pb.Dim3(x=3, y=2),
                                         block=pb.Dim3(x=128), shared_memory_bytes=16, cooperative=True)
                wanted.arguments.add().scalar.CopyFrom(_numbers.Number(number).to_proto())
                for handle in handles:
                    wanted.arguments.add().array.handle = handle
                aggregate = wanted.arguments.add().aggregate
                aggregate.size_bytes = 16
                aggregate.members.add().array.handle = handles[0]
                aggregate.members.add(offset_bytes=8, raw=np.int32(2).tobytes())
                wanted.arguments.add(raw=b"raw")
                wanted.globals.add(name="bias").scalar.int_value = 3
                wanted.globals.add(name="table").array.handle = handles[1]
                self.assertEqual(launch.SerializeToString(deterministic=True),
                                 wanted.SerializeToString(deterministic=True))
                with contextlib.suppress(st.StrideError):
                    self.session.synchronize()  # none of these launches can run

    def test_varints(self):
        for number in (0, 1, 127, 128, 300, 2**14 - 1, 2**14, 2**21 - 1, 2**21, 2**35, 2**63, 2**64 - 1):
            with self.subTest(number=number):
                message = b"\x08" + _encoding.varint(number)
                self.assertEqual(pb.Operand.FromString(message).handle, number)

    def test_launches_between_other_commands_keep_their_order(self):
        """A launch reads the values recorded before it; commands recorded later see its result."""
        axpy = st.RawKernel(AXPY, "axpy")
        x, y = np.arange(10, dtype=np.float32), st.zeros(10, st.float32)
        expected = np.zeros(10, np.float32)
        for i in range(50):
            scaled = st.asarray(x) * i
            before = y + 1
            axpy((1,), 32, (np.float32(2), scaled, y, np.int32(10)))
            self.same(before, expected + 1) if i % 7 == 0 else None
            expected += 2 * x * i
        self.same(y, expected)

    def launched(self):
        axpy = st.RawKernel(AXPY, "axpy")
        x, y = st.ones(10, st.float32), st.zeros(10, st.float32)

        def launch():
            axpy(1, 32, (np.float32(1), x, y, np.int32(10)))

        launch()
        self.same(y, np.ones(10, np.float32))
        return y, launch

    def test_held_launches_are_sent_by_every_wait(self):
        """A wait of the program sends the last launches of a burst before the timer does."""
        y, launch = self.launched()
        stream = _execution.Stream()
        waits = [
            y.block_until_ready, y.tolist, self.session.synchronize, stream.synchronize, _execution.synchronize,
            lambda: y.sharding, lambda: float(st.sum(y)), lambda: st.save("held", y, overwrite=True),
            lambda: self.session._fetch_future(y._node).result(),
        ]
        with unittest.mock.patch.object(self.session, "_send_held"):  # by which the timer sends
            for i, wait in enumerate(waits):
                with self.subTest(wait=i):
                    before = float(y[0])
                    for _ in range(5):
                        launch()
                    wait()
                    self.assertIsNone(self.session._held)
                    self.assertEqual(float(y[0]), before + 5)

    def test_timer_does_not_split_a_burst(self):
        """During a burst the timer leaves launches to share a message; then it sends the last ones."""
        y, launch = self.launched()
        with unittest.mock.patch.object(_session_sending, "_HOLD_SECONDS", 0.05), Sent(self.session) as sent:
            launch()
            end = time.monotonic() + 0.4
            launches = 1
            while time.monotonic() < end:
                launch()
                launches += 1
                time.sleep(0.01)  # in which the timer's thread runs
            sent_by_timer = sum(count < _session_sending._MAX_HELD for count in sent.sizes)
            self.assertLessEqual(sent_by_timer, 1)
            deadline = time.monotonic() + 10
            while self.session._held is not None:
                self.assertLess(time.monotonic(), deadline, "what nothing follows was not sent")
                time.sleep(0.01)
        self.same(y, np.full(10, 1 + launches, np.float32))

    def test_launches_in_one_message_share_their_code(self):
        body = 'extern "C" __global__ void f(int* x, int n) { x[n] += %d; } // ' + 3000 * "x"
        sources = [body % (i + 1) for i in range(2)]
        kernels = [st.RawKernel(source, "f") for source in sources]
        x = st.zeros(40, st.int32)
        for kernel in kernels:
            kernel(1, 1, (x, np.int32(0)))
        self.same(x[:1], np.array([3], np.int32))
        with unittest.mock.patch.object(_session_sending, "_HOLD_SECONDS", 10), Sent(self.session) as sent:
            for i in range(20):
                kernels[i % 2](1, 1, (x, np.int32(i)))
            self.session.synchronize()
        launches = [command for command in sent.commands if command.operation.HasField("kernel_launch")]
        self.assertEqual(len(launches), 20)
        having = [i for i, one in enumerate(launches) if one.operation.kernel_launch.WhichOneof("code")]
        self.assertEqual([one.code_from for one in launches if one.code_from == 0], [0] * len(having))
        self.assertLessEqual(len(having), 2 * sent.num_messages)
        for i, one in enumerate(launches):
            if one.code_from:
                source = launches[i - one.code_from].operation.kernel_launch.source
                self.assertEqual(source, sources[i % 2])
        expected = np.zeros(40, np.int32)
        expected[0] = 3
        for i in range(20):
            expected[i] += i % 2 + 1
        self.same(x, expected)

    def test_large_codes_travel_in_separate_messages(self):
        """Messages have a limit, so that held launches need several."""
        sources = [f'extern "C" __global__ void f(int* x) {{ x[{i}] += 1; }} // {"x" * 200_000}' for i in range(3)]
        kernels = [st.RawKernel(source, "f") for source in sources]
        x = st.zeros(3, st.int32)
        for kernel in kernels:
            kernel(1, 1, (x,))
        with unittest.mock.patch.object(_session_sending, "_HOLD_SECONDS", 10), Sent(self.session) as sent:
            for i in range(12):
                kernels[i % 3](1, 1, (x,))
            self.session.synchronize()
        self.assertLess(max(command.ByteSize() for command in sent.commands), 300_000)
        self.same(x, np.full(3, 5, np.int32))

    def test_code_from_another_launch(self):
        """The valid uses of `code_from`. A refusal affects only its command."""
        x = st.zeros(4, st.int32).block_until_ready()

        def launch(place, code_from=0, **code):
            command = compute_service_pb2.Command(code_from=code_from)
            kernel = command.operation.kernel_launch
            for name, value in code.items():
                kernel.options.extend(value) if name == "options" else setattr(kernel, name, value)
            kernel.entry = "f"
            kernel.arguments.add().array.handle = x._node.handle
            kernel.arguments.add().scalar.int_value = place
            return command

        def results(*commands):
            answers = [Answer() for _ in commands]
            request = compute_service_pb2.ExecuteRequest(commands=commands)
            notes = {}
            for command, answer in zip(request.commands, answers):
                command.id = self.session._next_id()
                command.wait = command.HasField("operation")
                notes[command.id] = Note(answer, None, command.operation)
            self.session._stream.send(request, notes)
            return [self.session._wait(answer).status for answer in answers]

        source = 'extern "C" __global__ void f(int* x, int place) { x[place] += STEP; }'
        first = launch(0, source=source, options=["-DSTEP=2"])
        statuses = results(first, launch(1, 1), launch(2, 2), launch(3, 3))
        self.assertEqual([one.code for one in statuses], [0] * 4, statuses)
        x._node.host = None
        self.same(x, np.full(4, 2, np.int32))
        release = compute_service_pb2.Command(code_from=1)
        release.release.SetInParent()
        refused = [
            (launch(0, 1),), (first, launch(0, 2)), (first, launch(0, 1, source=source)),
            (first, launch(0, 1, options=["-DSTEP=3"])), (first, release), (release,),
            (first, launch(0, 1), launch(0, 1)),  # the code of one that has it from another
        ]
        for commands in refused:
            status = results(*commands)[-1]
            self.assertEqual(status.code, 3, status)  # INVALID_ARGUMENT
            self.assertIn("code_from", str(status))
        fill = compute_service_pb2.Command()
        fill.operation.copy.input.handle = x._node.handle
        fill.operation.outputs.add(inline_result=True)
        status = results(fill, launch(0, 1))[-1]
        self.assertIn("has no code", status.message)
        x._node.host = None
        self.same(x, np.array([14, 2, 2, 2], np.int32))  # those with code ran

    def test_first_launch_with_other_types_waits_again(self):
        """Known launches are identified by the types of their arguments and the session."""
        fill = st.RawKernel('extern "C" __global__ void fill(float* x, float a) { x[0] = a; }', "fill")
        x = st.zeros(1, st.float32)

        def waited(value):
            with Sent(self.session) as sent:
                fill(1, 1, (x, value))
                self.session.synchronize()
            return [command.wait for command in sent.commands if command.HasField("operation")][-1]

        self.assertEqual([waited(np.float32(1)) for _ in range(3)], [True, False, False])
        self.assertEqual([waited(2) for _ in range(2)], [True, False])
        self.assertEqual([waited(np.float32(3)) for _ in range(2)], [False, False])
        with st.connect(self.daemon.address, timeout=120) as other:
            z = st.zeros(1, st.float32)
            with Sent(other) as sent:
                fill(1, 1, (z, np.float32(4)))
                other.synchronize()
            self.assertTrue(any(command.wait for command in sent.commands))
            self.assertEqual(float(z[0]), 4)

    def test_grids_given_in_other_ways(self):
        axpy, x = st.RawKernel(AXPY, "axpy"), st.ones(10, st.float32)
        y = st.zeros(10, st.float32)
        for grid, block in ((1, 32), ((1,), [32]), ([1, 1], (32, 1, 1)), (np.int64(1), np.int64(32)), ((True,), 32)):
            axpy(grid, block, (1.0, x, y, 10))
        self.same(y, np.full(10, 5, np.float32))

    def test_a_launch_that_never_ran_fails_the_next_read(self):
        """The next read of its arrays, of their views and bases, or of arrays computed from them."""
        broken = st.RawKernel('extern "C" __global__ void f(float* x) { x[0] = nothing; }', "f")
        for use in (
            lambda x, view: x.tolist(),
            lambda x, view: view.tolist(),
            lambda x, view: float(st.sum(x)),
            lambda x, view: (view + 1).tolist(),
        ):
            for of_view in (False, True):
                x = st.asarray(np.zeros(4, np.float32)) + np.float32(0)
                view = x[:2]
                broken(1, 1, (view if of_view else x,))
                with self.assertRaises(st.CompileError):
                    use(x, view)
                self.same(x, np.zeros(4, np.float32))  # reported once: the array is unchanged


if __name__ == "__main__":
    client_case.main()
