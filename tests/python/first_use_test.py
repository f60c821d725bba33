"""A first use waits for no compiler: with the product's precompiled code, single operations and their
expressions compile nothing (docs/decisions/0041)."""

import functools
import itertools
import pathlib
import shutil
import tempfile
import time
import unittest
import unittest.mock

import client_case
import first_use_page
import numpy as np

import stride as st
from stride import _local
from stride._daemon import PrivateDaemon

TYPES = [np.bool_, np.int8, np.int32, np.int64, np.uint8, np.uint64, np.float16, np.float32, np.float64, np.complex64,
         np.complex128]
# NumPy's ufuncs that are loops over elements; `matmul` and its like are products.
UFUNCS = [name for name, function in vars(np).items()
          if isinstance(function, np.ufunc) and function.signature is None and hasattr(st, name)]


def folder_of_code():
    return pathlib.Path(client_case.strided()).parent / "precompiled"




class FirstUseTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        assert any(folder_of_code().glob("*.module")), "build the target `precompiled`"
        # The host computes nothing in place of the service.
        for name, value in (("is_host_place", lambda session: False), ("FREQUENT", 1 << 60)):
            patch = unittest.mock.patch.object(_local, name, value)
            patch.start()
            cls.addClassCleanup(patch.stop)
        cls.device = None
        if client_case.DEVICE_KIND == "cpu":
            return
        with tempfile.TemporaryDirectory() as cache:
            daemon = PrivateDaemon(client_case.strided(), client_case.FLAGS, cache=cache)
            try:
                with st.connect(daemon.address, timeout=120) as session:
                    names = [one.name for one in session.devices() if one.kind == client_case.DEVICE_KIND]
                if not names:
                    print(f"no device of kind {client_case.DEVICE_KIND} here")  # ctest and ci/gpu search for this text
                    raise unittest.SkipTest(f"no device of kind {client_case.DEVICE_KIND} here")
                cls.device = names[0]
                with st.connect(daemon.address, timeout=120, device=cls.device):
                    np.asarray(st.array([1.0, 2.0]) + 1)
            finally:
                daemon.stop()
            if any(pathlib.Path(cache).rglob("*.module")):
                raise unittest.SkipTest("the folder has no code for this GPU: add its target, such as cuda:sm_90")

    def setUp(self):
        # A daemon for each test, because frequent code of one test would be compiled during another.
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = pathlib.Path(folder.name)
        self.daemon = PrivateDaemon(client_case.strided(), client_case.FLAGS, cache=folder.name)
        self.addCleanup(self.daemon.stop)
        self.session = st.connect(self.daemon.address, timeout=120, device=self.device)
        self.session.__enter__()
        self.addCleanup(self.session.close)
        self.before = self.compiled()

    def compiled(self):
        """Codes that this daemon has compiled so far: it keeps each in a file."""
        return {file.name for file in self.cache.rglob("*.module")}

    def assert_nothing_compiled(self):
        self.assertEqual(self.compiled() - self.before, set())

    def test_ufuncs(self):
        count = 0
        for name in UFUNCS:
            function, numpys = getattr(st, name), getattr(np, name)
            for dtype in TYPES:
                values = np.array([1, 0, 2, 3, 1]).astype(dtype)
                arguments = [values] * numpys.nin
                with np.errstate(all="ignore"):
                    try:
                        wanted = numpys(*arguments)
                    except TypeError:
                        continue  # NumPy has no loop of this type
                    ours = function(*[st.array(argument) for argument in arguments])
                for one, other in zip(np.atleast_1d(wanted) if numpys.nout == 1 else wanted,
                                      np.atleast_1d(np.asarray(ours)) if numpys.nout == 1 else ours):
                    np.testing.assert_allclose(np.asarray(other).astype(np.complex128),
                                               np.asarray(one).astype(np.complex128), rtol=1e-2, err_msg=name)
                count += 1
        self.assertGreater(count, 500)
        self.assert_nothing_compiled()

    def test_layouts_and_types_side_by_side(self):
        matrix = np.arange(12.0).reshape(3, 4)
        ours = st.array(matrix)
        for result, wanted in (
                (ours + ours[0], matrix + matrix[0]),
                (ours.T * 2, matrix.T * 2),
                (ours[:, ::2] - ours[:, 1::2], matrix[:, ::2] - matrix[:, 1::2]),
                (ours[::-1] + ours[:, :1], matrix[::-1] + matrix[:, :1]),
                (ours + st.array(np.arange(4, dtype=np.int8)), matrix + np.arange(4, dtype=np.int8)),
                (ours.astype(np.float16), matrix.astype(np.float16)),
                (st.arange(5) < 2, np.arange(5) < 2)):
            np.testing.assert_array_equal(np.asarray(result), wanted)
        ours += 1
        np.testing.assert_array_equal(np.asarray(ours), matrix + 1)
        self.assert_nothing_compiled()

    def test_expressions_run_as_single_operations(self):
        x = np.linspace(0.1, 2, 3000)
        ours = st.array(x)
        result = np.asarray(st.sqrt(ours ** 2 + st.cos(ours)) / (1 + st.exp(-ours)) > 0.7)
        np.testing.assert_array_equal(result, np.sqrt(x ** 2 + np.cos(x)) / (1 + np.exp(-x)) > 0.7)
        self.assert_nothing_compiled()

    def test_random_numbers(self):
        generator = st.random.default_rng(1)
        self.assertEqual(np.asarray(generator.random(5)).shape, (5,))
        self.assertEqual(np.asarray(generator.integers(10, size=5)).shape, (5,))
        self.assertEqual(np.asarray(generator.normal(size=5)).shape, (5,))
        self.assert_nothing_compiled()

    def test_reductions(self):
        for dtype in [*TYPES, np.int16, np.uint16, np.uint32]:
            matrix = (np.arange(600).reshape(20, 30) % 7 == 0).astype(dtype) + dtype(1)  # products stay finite
            ours = st.array(matrix)
            for name in ("sum", "prod", "min", "max", "any", "all", "argmin", "argmax", "mean"):
                if dtype == np.float16 and name in ("sum", "prod", "mean"):
                    continue  # compared in python/reduction_test: here the values overflow
                for axis in (None, 0, 1):
                    result, wanted = getattr(ours, name)(axis), getattr(matrix, name)(axis)
                    with np.errstate(all="ignore"):
                        np.testing.assert_allclose(np.asarray(result), wanted, rtol=1e-4, err_msg=f"{name} {dtype}")
        self.assert_nothing_compiled()

    def test_reductions_over_any_axes_and_layout(self):
        random = np.random.default_rng(5)
        missing = {}
        for shape in ((3, 4, 5), (1, 7, 1), (700, 3), (3, 700), (2100,), (2, 3, 4, 5), (70, 60)):
            values = random.integers(-9, 9, shape)
            axes = range(len(shape))
            chosen = [None, *axes, *itertools.combinations(axes, 2)]
            layouts = {
                "plain": lambda x: x,
                "transposed": lambda x: x.T,
                "every second": lambda x: x[..., ::2],
                "reversed": lambda x: x[::-1],
                "every second of each axis": lambda x: x[(slice(None, None, 2),) * x.ndim],
            }
            for dtype in (np.int32, np.float32, np.float64, np.complex64):
                matrix = values.astype(dtype)
                ours = st.array(matrix)
                for layout, change in layouts.items():
                    for name in ("sum", "max", "mean"):
                        if name == "max" and dtype == np.complex64:
                            continue  # this device has no order of complex numbers
                        for axis in chosen:
                            result, wanted = getattr(change(ours), name)(axis), getattr(change(matrix), name)(axis)
                            np.testing.assert_allclose(np.asarray(result), wanted, rtol=1e-4, atol=1e-4)
                            if len(self.compiled()) > len(self.before) + len(missing):
                                missing[(shape, dtype.__name__, layout, name, axis)] = None
        self.assertEqual(list(missing), [], "compiled codes")
        self.assert_nothing_compiled()

    def test_reductions_of_expressions(self):
        matrix = np.linspace(-1, 2, 1200).reshape(30, 40)
        ours = st.array(matrix)
        for result, wanted in (
                (((ours - 1) ** 2).sum(), ((matrix - 1) ** 2).sum()),
                (st.any(ours > 1.5, axis=0), np.any(matrix > 1.5, axis=0)),
                ((ours.T * 2).max(axis=0), (matrix.T * 2).max(axis=0)),
                (st.abs(ours).mean(axis=1), np.abs(matrix).mean(axis=1)),
                (ours.std(axis=0), matrix.std(axis=0)), (ours.var(), matrix.var()),
                (st.sum(ours[:, ::3]), matrix[:, ::3].sum())):
            np.testing.assert_allclose(np.asarray(result), wanted, rtol=1e-12)
        self.assert_nothing_compiled()

    def compiling_lines(self, lines, variables):
        """Those that compiled code. Results are compared with NumPy's elsewhere, in the tests of each function.
        `variables`: makes what the lines name, for each of them, since the host computes with arrays that it read."""
        found = []
        for line in lines:
            before = self.compiled()
            try:
                np.asarray(eval(line, variables()))
                self.session.synchronize()  # an operation in place returns no array
            except Exception as error:
                raise AssertionError(line) from error
            if self.compiled() != before:
                found.append(line)
        return found

    def test_page(self):
        for group, lines in first_use_page.GROUPS.items():
            with self.subTest(group):
                self.assertEqual(self.compiling_lines(lines, first_use_page.variables), [])

    def test_narrow_types(self):
        for dtype in first_use_page.NARROW_TYPES:
            with self.subTest(dtype.__name__):
                variables = functools.partial(first_use_page.narrow_variables, dtype)
                self.assertEqual(self.compiling_lines(first_use_page.NARROW, variables), [])

    def test_orders_scans_and_indices(self):
        for dtype in (np.int32, np.int64, np.float32, np.float64):
            x = np.array([3, 1, 2, 5, 4]).astype(dtype)
            ours = st.array(x)
            for result, wanted in (
                    (st.sort(ours), np.sort(x)), (st.argsort(ours), np.argsort(x)), (st.cumsum(ours), np.cumsum(x)),
                    (ours[st.array([0, 2])], x[[0, 2]]), (ours[ours > 2], x[x > 2]),
                    (st.nonzero(ours > 2)[0], np.nonzero(x > 2)[0]),
                    (st.searchsorted(st.sort(ours), ours), np.searchsorted(np.sort(x), x))):
                np.testing.assert_array_equal(np.asarray(result), wanted)
        self.assert_nothing_compiled()

    def test_both_tiers_are_equal_to_the_bit(self):
        """Against a daemon that lacks the folder, and compiles each operation before it runs."""
        with tempfile.TemporaryDirectory() as workers:
            for program in folder_of_code().parent.glob(f"stride-*-{client_case.DEVICE_KIND}"):
                shutil.copy2(program, workers)
            daemon = PrivateDaemon(client_case.strided(), [*client_case.FLAGS, f"--worker-dir={workers}"])
            self.addCleanup(daemon.stop)
            with st.connect(daemon.address, timeout=120, device=self.device):
                compiled = self.bits_of_results()
        self.assertGreater(len(compiled), 80)
        for (text, one), (_, other) in zip(self.bits_of_results(), compiled):
            self.assertEqual(one, other, text)

    def bits_of_results(self):
        numbers = np.random.default_rng(41)
        results = []
        for shape in ((2000,), (40, 50), (3, 700), (9, 20, 30), (600, 17)):
            x = numbers.normal(size=shape).astype(np.float32)
            values = {"x": st.array(x), "y": st.array(np.exp(numbers.normal(size=shape))),
                      "i": st.array(numbers.integers(-9, 9, size=shape)), "st": st}
            for text in ("(x * y).sum({})", "(x - 1).sum({})", "st.max(x.T * 2, {})", "st.mean(abs(x), {})",
                         "st.argmin(-y, {})", "st.argmax(i % 5, {})", "st.any(x > 3, {})", "st.all(x < 3, {})",
                         "st.prod(1 + x / 64, {})", "(i * i).min({})", "x[..., ::-2].sum({})", "st.std(y, {})",
                         "(x + 1j * y).sum({})", "((x - y.sum(-1, keepdims=True)) * i).sum({})",
                         "(x.T * 2 + i.T).mean({})", "st.norm(x[..., ::2] - 1, axis={})"):
                for axis in ("None", "0", "-1"):
                    expression = text.format(axis)
                    result = np.asarray(eval(expression, dict(values)))
                    results.append((f"{expression} {shape}", result.tobytes()))
        # Several reduced axes that are not contiguous together, and none longer than 1.
        x = numbers.normal(size=(4, 6, 10, 9)).astype(np.float32)
        views = {"x[::2, ::2, ::2, ::2]": None, "x[::-1, :, :, ::2]": (0, 1), "x[::2, ::2, ::2]": (0, 1, 2),
                 "x[:, :, :1]": 2, "x[::2, ::2, :, 1:]": (1, 2, 3)}
        for text, axis in views.items():
            for name in ("sum", "argmax", "min", "mean"):
                if name == "argmax" and isinstance(axis, tuple):
                    continue
                result = np.asarray(getattr(eval(text, {"x": st.array(x)}), name)(axis))
                np.testing.assert_allclose(result, getattr(eval(text), name)(axis), rtol=1e-4, atol=1e-6)
                results.append((f"{name} of {text} over {axis}", result.tobytes()))
        return results

    def test_long_rows_of_expressions(self):
        """Their values do not fit 64 MiB, and take no array."""
        x = st.ones((4500, 4096), np.float32)
        for _ in range(2):  # by blocks, then perhaps by compiled code, which pays for this many elements
            self.assertEqual(float(((x - 3) ** 2).sum()), 4 * 4500 * 4096)
            np.testing.assert_array_equal(((x * 0.5).sum(axis=1)).to_numpy(), np.full(4500, 2048, np.float32))

    def test_frequent_expression_gets_compiled_code(self):
        """Results stay the same to the bit while the compiler runs."""
        x = st.array(np.linspace(0.5, 3, 1 << 20).astype(np.float32))
        first = np.asarray(st.sin(x) * x + 3)
        deadline = time.monotonic() + 60
        while self.compiled() == self.before and time.monotonic() < deadline:
            np.testing.assert_array_equal(np.asarray(st.sin(x) * x + 3), first)
        self.assertNotEqual(self.compiled(), self.before)
        np.testing.assert_array_equal(np.asarray(st.sin(x) * x + 3), first)


if __name__ == "__main__":
    client_case.main()
