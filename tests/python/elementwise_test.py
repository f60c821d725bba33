"""Every elementwise function on every type that NumPy has a loop for, compared with NumPy."""

import operator
import unittest
import warnings

import numpy as np

import client_case
import stride as st
from stride import _elementwise

_SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.5, -3.75, 7.0, 11.0, np.inf, -np.inf, np.nan, 1e-3, 100.0]
# NumPy computes float16 and complex functions by other methods; ours are within bounds there, not equal.
_RELATIVE = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-14, "complex64": 1e-5, "complex128": 1e-13}
_EXACT = {
    "absolute", "negative", "positive", "sign", "square", "ceil", "floor", "trunc", "rint", "add", "subtract",
    "multiply", "divide", "maximum", "minimum", "fmax", "fmin", "copysign", "nextafter", "sqrt", "invert",
    "heaviside",
}


def samples(dtype):
    if dtype.kind == "b":
        return np.array([False, True, True, False])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([0, 1, 2, 3, 5, 7, 100, info.max, info.min, info.max - 1], dtype)
    values = np.array(_SPECIAL, dtype if dtype.kind == "f" else np.float64)
    # The op cases cover infinite and NaN parts of complex numbers.
    return values if dtype.kind == "f" else (values[:10] + 1j * np.roll(values[:10], 3)).astype(dtype)


class ElementwiseTest(client_case.ClientCase):
    def check(self, name, *inputs):
        function = getattr(np, name)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = function(*inputs)
        ours = getattr(st, name)(*(st.asarray(one) for one in inputs))
        tolerance = {}
        if expected.dtype.kind in "fc" and (name not in _EXACT or inputs[0].dtype.kind == "c"):
            relative = _RELATIVE[expected.dtype.name]
            tolerance = {
                "rtol": relative,
                "atol": relative if expected.dtype.kind == "c" or inputs[0].dtype == np.float16 else 1e-300,
            }
            if name in ("log", "log2", "log10", "sin", "cos", "tan", "power", "float_power", "logaddexp", "logaddexp2"):
                tolerance["atol"] = max(tolerance["atol"], relative)
        with self.subTest(name=name, types=[str(one.dtype) for one in inputs]):
            self.same(ours, expected, **tolerance)

    def test_large_results(self):
        """Beyond 16 MiB the CPU device writes past the cache, from wherever the result begins."""
        x, y = (np.random.default_rng(seed).integers(-1000, 1000, 5_000_011).astype(np.float32) for seed in (1, 2))
        ours = st.asarray(x) + st.asarray(y)
        self.same(ours, x + y)
        self.same(st.asarray(x)[3:] * 2 + ours[3:], x[3:] * 2 + (x + y)[3:])
        self.same(st.asarray(x.astype(np.int16)) + st.asarray(np.int16(3)), x.astype(np.int16) + np.int16(3))
        self.same(st.asarray(x) > st.asarray(y), x > y)
        self.same(st.asarray(x.astype(np.complex64)) + 1j, x.astype(np.complex64) + np.complex64(1j))

    def test_transposed_operands_of_any_size(self):
        """Inputs whose elements lie along another axis than the result's, of sizes around those of a GPU's tiles."""
        random = np.random.default_rng(3)
        for shape in ((31, 40), (32, 32), (33, 65), (100, 129), (3, 33, 70), (40, 2, 50), (2, 35, 1, 34)):
            axes = list(range(len(shape)))
            for order in (axes[::-1], axes[1:] + axes[:1], axes[:-2] + axes[:-3:-1]):
                turned = tuple(shape[axis] for axis in order)
                plain, other = random.integers(0, 100, shape), random.integers(0, 100, turned)
                for dtype in (np.int8, np.float16, np.float32, np.float64, np.complex128):
                    x, y = plain.astype(dtype), other.astype(dtype)
                    ours_x, ours_y = st.asarray(x), st.asarray(y)
                    with self.subTest(shape=shape, order=order, dtype=dtype.__name__):
                        self.same(ours_x.transpose(order).copy(), x.transpose(order).copy())
                        self.same(ours_x.transpose(order) + ours_y, x.transpose(order) + y)
                        self.same(ours_y - ours_x.transpose(order) + ours_y[:1], y - x.transpose(order) + y[:1])
                        self.same(ours_x.transpose(order)[1:, ::-1] + ours_y[1:], x.transpose(order)[1:, ::-1] + y[1:])
        mixed = [random.integers(0, 100, (50, 60)).astype(dtype) for dtype in (np.int16, np.float32, np.float64)]
        ours = [st.asarray(one) for one in mixed]
        self.same(ours[0].T * 2.0 + ours[1].T + ours[2].T, mixed[0].T * 2.0 + mixed[1].T + mixed[2].T)

    def test_one_input(self):
        for name in _elementwise.UNARY:
            for dtype in client_case.DTYPES:
                try:
                    getattr(np, name).resolve_dtypes((dtype, None))
                except TypeError:
                    continue
                if name in ("reciprocal", "spacing") or (
                    dtype.kind == "c" and name in ("log10", "sign", "tan", "tanh")
                ):
                    continue  # infinities and undefined integers: the op cases have them
                if dtype.kind == "c" and name in (
                    "arccosh", "arctanh", "arcsinh", "arccos", "arcsin", "arctan", "log", "log2", "log1p",
                    "reciprocal",
                ):
                    self.check(name, samples(dtype) + dtype.type(0.25 + 0.125j))
                    continue
                self.check(name, samples(dtype))

    def test_two_inputs(self):
        for name in _elementwise.BINARY:
            for dtype in client_case.DTYPES:
                try:
                    types = getattr(np, name).resolve_dtypes((dtype, dtype, None))
                except TypeError:
                    continue
                if name == "ldexp" or types[-1] not in client_case.DTYPES:
                    continue
                x = samples(dtype)
                y = np.roll(x, 1)
                if name in ("floor_divide", "remainder", "fmod") and dtype.kind in "iu":
                    y = np.where((y == 0) | (y == -1), dtype.type(3), y).astype(dtype)  # the least integer by -1
                if name in ("left_shift", "right_shift"):
                    y = np.abs(x.astype(np.int64) % 7).astype(dtype)
                if name == "power" and dtype.kind in "iu":
                    y = np.arange(len(x)).astype(dtype) % dtype.type(5)
                if dtype.kind == "c":
                    y = y + dtype.type(0.5 + 0.25j)
                if name in ("power", "float_power") and dtype.kind in "c":
                    x, y = x + dtype.type(0.25 + 0.5j), np.full_like(y, 2)
                if name in ("power", "float_power") and dtype.kind == "f" or name == "lcm":
                    x, y = x[:10], y[:10]
                if name == "float_power" and dtype.kind in "iu":
                    x, y = x[1:6], y[1:6]
                if name in ("lcm",):
                    x, y = x[:6], y[:6]
                if name in ("fmod", "remainder", "floor_divide") and dtype.kind == "f":
                    x, y = x[2:10], np.roll(x[2:10], 1)
                self.check(name, x, y)

    def test_quotients_of_integers_are_exact(self):
        random = np.random.default_rng(7)
        for dtype in map(np.dtype, ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")):
            info = np.iinfo(dtype)
            edges = np.array([info.min, info.min + 1, 0, 1, 2, 3, 7, info.max // 2, info.max - 1, info.max], dtype)
            x = np.concatenate([np.repeat(edges, 10), random.integers(info.min, info.max, 20000, dtype, endpoint=True)])
            y = np.concatenate([np.tile(edges, 10), random.integers(info.min, info.max, 20000, dtype, endpoint=True)])
            # Quotients of every length, and dividends next to a multiple of the divisor.
            y[100:10000] >>= random.integers(0, 8 * dtype.itemsize - 1, 9900).astype(dtype)
            with np.errstate(all="ignore"):
                x[5000:10000] = (
                    y[5000:10000] * (x[5000:10000] >> (4 * dtype.itemsize))
                    + random.integers(0, 3, 5000).astype(dtype)
                    - 1
                )
                for name in ("floor_divide", "remainder", "fmod"):
                    with self.subTest(dtype=dtype.name, name=name):
                        want = getattr(np, name)(x, y)
                        self.same(getattr(st, name)(st.asarray(x), st.asarray(y)), want)

    def test_promotion(self):
        for left in client_case.DTYPES:
            for right in client_case.DTYPES:
                x, y = np.array([0, 1, 1], left), np.array([1, 0, 1], right)
                with self.subTest(left=left, right=right):
                    self.same(st.asarray(x) + st.asarray(y), x + y)
                    self.same(st.asarray(x) <= st.asarray(y), x <= y)

    def test_python_numbers_are_weak(self):
        for dtype in client_case.DTYPES:
            x = np.array([1, 0, 1], dtype)
            for number in (True, 2, 2.5, 1 + 2j):
                with self.subTest(dtype=dtype, number=number):
                    self.same(st.asarray(x) + number, x + number)
                    self.same(number * st.asarray(x), number * x)

    def test_numpy_scalars_are_not_weak(self):
        x = np.arange(3, dtype=np.float32)
        for scalar in (np.float64(2.5), np.float16(2), np.int8(3), np.complex64(1j), np.bool_(True)):
            self.same(st.asarray(x) * scalar, x * scalar)
            self.same(scalar * st.asarray(x), scalar * x)

    def test_integers_out_of_range(self):
        x = st.asarray(np.zeros(3, np.int8))
        with self.assertRaises(OverflowError):
            x + 300
        self.same(x < 300, np.array([True] * 3))

    def test_operators(self):
        x, y = np.array([7, -7, 5]), np.array([2, 3, -4])
        for op in (
            operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
            operator.and_, operator.or_, operator.xor, operator.lt, operator.le, operator.gt, operator.ge,
            operator.eq, operator.ne,
        ):
            self.same(op(st.asarray(x), st.asarray(y)), op(x, y))
            self.same(op(st.asarray(x), 3), op(x, 3))
            self.same(op(3, st.asarray(y)), op(3, y))
            self.same(op(st.asarray(x), y), op(x, y))
            self.same(op(x, st.asarray(y)), op(x, y))
        self.same(-st.asarray(x), -x)
        self.same(~st.asarray(x), ~x)
        self.same(abs(st.asarray(x)), abs(x))
        self.same(st.asarray(x) ** 2, x ** 2)
        self.same(st.asarray(x) << 2, x << 2)

    def test_turns_of_blocks_with_and_without_large_arguments(self):
        # The CPU device computes blocks of 256 elements: results written over the input must not change what
        # a block reads.
        for dtype, units in ((np.float32, 4), (np.float64, 2)):
            x = np.linspace(-300, 300, 3000).astype(dtype)
            x[[5, 700]], x[[1100, 1101, 1102, 1103]] = 1e10, [np.inf, np.nan, 0.0, -0.0]
            for name in ("sin", "cos", "tan"):
                with self.subTest(name=name, dtype=dtype), np.errstate(invalid="ignore"):
                    wide = getattr(np, name)(x.astype(np.longdouble))
                    ours = st.asarray(x)
                    result = np.asarray(getattr(st, name)(ours))
                    error = np.abs(result - wide) / np.spacing(np.abs(wide.astype(dtype)))
                    self.assertLessEqual(np.nanmax(error), units)
                    np.testing.assert_array_equal(np.isnan(result), np.isnan(wide))
                    np.testing.assert_array_equal(np.signbit(result[[1102, 1103]]), np.signbit(wide[[1102, 1103]]))
                    getattr(st, name)(ours, out=ours)
                    self.assertEqual(np.asarray(ours).tobytes(), result.tobytes())
                    last = np.asarray(getattr(st, name)(st.asarray(x[2000:])))
                    self.assertEqual(last.tobytes(), result[2000:].tobytes())

    def test_two_results(self):
        quotient, remainder = divmod(st.asarray([7, -7]), 3)
        self.same(quotient, [2, -3])
        self.same(remainder, [1, 2])

    def test_broadcast(self):
        x, y = np.arange(6.0).reshape(2, 1, 3), np.arange(4.0).reshape(4, 1)
        self.same(st.asarray(x) * st.asarray(y), x * y)
        with self.assertRaises(st.ShapeMismatch) as raised:
            st.asarray([1, 2]) + st.asarray([1, 2, 3])
        self.assertEqual(raised.exception.reason, "SHAPE_MISMATCH")
        self.assertIsInstance(raised.exception, ValueError)

    def test_where_clip_round(self):
        x = np.array([-2.5, -0.5, 0.5, 1.5, np.nan])
        self.same(st.where(st.asarray(x) > 0, st.asarray(x), 0.0), np.where(x > 0, x, 0.0))
        self.same(st.clip(st.asarray(x), -1, 1), np.clip(x, -1, 1))
        self.same(st.clip(st.asarray(x), max=1), np.minimum(x, 1))
        self.same(st.clip(st.asarray([1, 200], dtype=st.uint8), -5, 300), np.array([1, 200], np.uint8))
        self.same(st.round(st.asarray(x)), np.round(x))
        self.same(st.round(st.asarray([1, 2])), [1, 2])
        z = np.array([1 + 2j, 3 - 4j])
        self.same(st.real(st.asarray(z)), z.real)
        self.same(st.asarray(z).imag, z.imag)

    def test_special_values_of_complex_functions(self):
        """The array API's results where NumPy's differ."""
        inf, nan = np.inf, np.nan
        cases = {
            "expm1": [
                (complex(0.0, 0.0), complex(0, 0)), (complex(-0.0, 0.0), complex(0, 0)),
                (complex(1, inf), complex(nan, nan)), (complex(inf, 0), complex(inf, 0)),
                (complex(-inf, 1), complex(-1, 0)), (complex(-inf, inf), complex(-1, 0)),
                (complex(inf, inf), complex(inf, nan)), (complex(nan, 0), complex(nan, 0)),
                (complex(nan, 1), complex(nan, nan)),
            ],
            "tanh": [
                (complex(0.0, 0.0), complex(0, 0)), (complex(1, inf), complex(nan, nan)),
                (complex(50, nan), complex(nan, nan)), (complex(inf, 1), complex(1, 0)),
                (complex(inf, nan), complex(1, 0)), (complex(nan, 0), complex(nan, 0)),
                (complex(1, nan), complex(nan, nan)),
            ],
            "asinh": [
                (complex(0, nan), complex(nan, nan)),
                (complex(1, nan), complex(nan, nan)),
                (complex(nan, 0), complex(nan, 0)),
                (complex(inf, nan), complex(inf, nan)),
            ],
        }
        for name, pairs in cases.items():
            for dtype in (np.complex64, np.complex128):
                for value, expected in pairs:
                    with self.subTest(name=name, dtype=dtype, value=value):
                        result = np.asarray(getattr(st, name)(st.asarray(np.array([value], dtype))))[0]
                        np.testing.assert_array_equal([result.real, result.imag], [expected.real, expected.imag])
                        if expected == 0:
                            self.assertFalse(np.signbit(result.real))

    def test_types_that_no_loop_takes(self):
        with self.assertRaises(st.DataTypeMismatch):
            st.bitwise_and(st.ones(3), st.ones(3))
        with self.assertRaises(TypeError):
            -st.asarray([True])
        with self.assertRaises(st.DataTypeMismatch):
            st.asarray(np.array(["a"]))

    def test_clip_has_the_common_type(self):
        for dtype in (np.int64, np.uint8, np.float32, np.float64):
            x = np.arange(5).astype(dtype)
            for low, high in (
                (0.5, 1.5),
                (1, None),
                (None, 2),
                (np.float64(0.5), 3),
                (np.int64(1), np.int64(3)),
                (-1, 300),
                (np.arange(5.0), 4),
                (2, 1),
            ):
                self.same(np.clip(st.asarray(x), low, high), np.clip(x, low, high))
        out = st.zeros(3)
        self.assertIs(np.clip(st.asarray([1.0, 5.0, 9.0]), 2, 6, out=out), out)
        self.same(out, [2.0, 5.0, 6.0])
        self.same(np.clip(st.asarray([1, 5]), min=2), [2, 5])

    @unittest.skipIf(np.finfo(np.longdouble).nmant <= 52, "no wider type here to compare with")
    def test_accuracy_against_a_wider_type(self):
        if client_case.DEVICE_KIND != "cpu":
            self.skipTest("CUDA's own functions have bounds of their own")
        rng = np.random.default_rng(11)
        points = {
            "sinh": np.concatenate(
                [
                    [-0.06122643270586914, 1.0, -1.0, 5e-324, 1e-300, 0.0],
                    rng.uniform(-1.5, 1.5, 100_000),
                    rng.uniform(-700, 700, 10_000),
                ]
            ),
            "arccos": np.concatenate(
                [[0.6660556232864296, 1.0, -1.0, 0.0], rng.uniform(-1, 1, 100_000), 1 - rng.uniform(0, 1e-6, 1000)]
            ),
        }
        for name, x in points.items():
            true = getattr(np, name)(x.astype(np.longdouble))
            ours = np.asarray(getattr(st, name)(st.asarray(x)))
            units = np.abs((ours - true) / np.spacing(np.abs(true.astype(np.float64)))).astype(float)
            self.assertLess(units.max(), 1.49, f"{name} of {x[units.argmax()]!r}")  # within 1 of the nearest number

    def test_names_of_one_function(self):
        for table in (_elementwise.UNARY, _elementwise.BINARY):
            for name, public in table.items():
                if public:
                    self.assertIs(getattr(st, public), getattr(st, name))

    def test_functions_of_numbers_alone(self):
        out = st.zeros(2)
        st.add(1, 2, out=out)
        self.same(out, [3.0, 3.0])
        self.same(st.add(1, 2), 3)
        self.same(st.sqrt(np.float32(2)), np.sqrt(np.float32(2)))
        self.same(st.floor(7), np.floor(7))
        for call in (lambda: st.negative(True), lambda: st.subtract(True, False), lambda: st.power(2, -1)):
            with self.assertRaises((TypeError, ValueError)):
                call()

    def test_functions_of_numbers_alone_send_no_commands(self):
        """A loop over pixels computes with numbers: each would be a round trip."""
        session = st.current_session()
        with client_case.Sent(session) as sent:
            total = 0.0
            for i in range(10):
                distance = st.sqrt((i - 3) ** 2 + 4)
                total += int(128 + 127 * st.sin(distance * 0.1)) + float(st.maximum(i, 2.5)) + st.floor(i / 2)
            value = float(total)
        self.assertEqual(sent.num_messages, 0)
        self.assertEqual(value, sum(
            int(128 + 127 * np.sin(np.sqrt((i - 3) ** 2 + 4) * 0.1)) + max(i, 2.5) + i // 2 for i in range(10)
        ))
        self.same(st.jit(lambda x: x * st.sqrt(2.0))(st.ones(2)), np.full(2, np.sqrt(2.0)))


if __name__ == "__main__":
    client_case.main()
