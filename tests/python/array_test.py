"""The array object, and NumPy's functions applied to it."""

import copy
import itertools
import pickle
import unittest
from unittest import mock

import numpy as np

import client_case
import stride as st
from stride.v1 import operation_pb2


class ArrayTest(client_case.ClientCase):
    def test_powers_that_numpy_has_functions_for(self):
        """`x ** 0.5` is the square root to the last bit, with its infinities and signed zeros."""
        rng = np.random.default_rng(2)
        for dtype in "?bhilBHILefd":
            host = rng.normal(size=2000) * 10
            host = (np.abs(host) + 1 if dtype in "BHIL?" else host).astype(dtype)
            if dtype in "fd":
                host[:5] = -0.0, 0.0, -np.inf, np.inf, np.nan
            for exponent in (-1, -1.0, 0.5, 2, 2.0):
                if dtype in "?bhilBHIL" and exponent == -1:
                    continue
                with self.subTest(dtype=dtype, exponent=exponent), np.errstate(all="ignore"):
                    expected = host**exponent
                    self.same(st.asarray(host) ** exponent, expected)
                    array, local = st.asarray(host), st.asarray(host)
                    if expected.dtype == host.dtype:
                        array **= exponent
                        self.same(array, expected)
                    float(local[1].real)  # a loop of the host
                    self.same(local**exponent, expected)
        np.testing.assert_allclose(np.asarray(st.asarray([4.0, 9.0]) ** np.float64(0.5)), [2.0, 3.0], rtol=1e-15)
        self.same(0.5 ** st.asarray([1.0, 2.0]), np.array([0.5, 0.25]))

    def test_index_arrays_apart(self):
        """Index arrays with a slice, None or an Ellipsis between them, also one of no axes, put their axes first."""
        host = np.arange(60).reshape(3, 4, 5)
        parts = (slice(None), slice(1, None), 0, [0, 1], np.array([[0], [1]]))
        for first, second, third in itertools.product(parts, repeat=3):
            for key in (
                (first, Ellipsis, second, third),
                (first, second, Ellipsis, third),
                (first, None, second, third),
                (first, Ellipsis, None, second),
                (Ellipsis, first, second),
                (first, second, third, Ellipsis),
            ):
                expected = host[key]
                self.same(st.asarray(host)[key], expected)
                written, array = host.copy(), st.asarray(host) + 0
                written[key] = array[key] = np.arange(expected.size).reshape(expected.shape)
                self.same(array, written)
        mask = np.array([True, False, True])
        for key in ((mask, Ellipsis, slice(None), 1), (mask, slice(None), Ellipsis, [1, 2])):
            self.same(st.asarray(host)[key], host[key])

    def test_attributes(self):
        x = st.zeros((2, 3), dtype=st.float32)
        self.assertEqual(
            (x.shape, x.ndim, x.size, x.nbytes, x.itemsize, x.dtype, len(x)), ((2, 3), 2, 6, 24, 4, np.float32, 2)
        )
        self.assertEqual(x.device, "auto")
        self.assertIs(x.__array_namespace__(), st)
        with self.assertRaises(ValueError):
            x.__array_namespace__(api_version="1999.01")
        with self.assertRaises(TypeError):
            hash(x)
        with self.assertRaises(TypeError):
            st.Array()

    def test_python_values(self):
        self.assertEqual(int(st.asarray(3)), 3)
        self.assertEqual(float(st.asarray([2.5])), 2.5)
        self.assertEqual(complex(st.asarray(1j)), 1j)
        self.assertTrue(bool(st.asarray(True)))
        self.assertEqual([10, 20, 30][st.asarray(1)], 20)
        self.assertEqual(st.asarray([[1, 2], [3, 4]]).tolist(), [[1, 2], [3, 4]])
        self.assertEqual([int(x) for x in st.asarray([1, 2])], [1, 2])
        self.assertEqual(f"{st.asarray(2.5):.2f}", "2.50")
        for wrong in (
            lambda: bool(st.ones(2)),
            lambda: len(st.ones(())),
            lambda: [][st.ones(())],
            lambda: float(st.ones(2)),
            lambda: iter(st.ones(())),
        ):
            with self.assertRaises((TypeError, ValueError)):
                wrong()

    def test_text(self):
        self.assertEqual(repr(st.asarray([1, 2])), "stride.Array([1, 2], dtype=int64)")
        self.assertEqual(str(st.asarray([1, 2])), "[1 2]")

    def test_to_numpy(self):
        x = st.arange(3.0)
        host = np.asarray(x)
        host[0] = 100  # a copy: the array is unchanged
        self.same(x, np.arange(3.0))
        self.assertEqual(np.asarray(x, dtype=np.int8).dtype, np.int8)
        with self.assertRaises(ValueError):
            x.__array__(copy=False)
        self.same(copy.copy(x), np.arange(3.0))
        self.same(copy.deepcopy(x), np.arange(3.0))

    def test_array_interface(self):
        """Libraries that ask for it, such as Pillow, get a copy on the host."""
        for host in (np.arange(6.0).reshape(2, 3), np.zeros((0, 3), np.int8), np.array(2.5), np.array([True, False]),
                     np.array([1 + 2j]), np.arange(3, dtype=np.uint16)):  # fmt: skip
            for x, theirs in ((st.asarray(host), host), (np.transpose(st.asarray(host)), host.T)):
                interface = x.__array_interface__
                self.assertEqual((interface["shape"], interface["typestr"]), (theirs.shape, theirs.dtype.str))
                self.assertIsNotNone(interface["strides"])
                read = np.asarray(x)
                np.testing.assert_array_equal(read, theirs)
                self.assertTrue(read.flags.writeable)
        x = st.arange(4)
        np.asarray(x)[...] = 9
        self.same(x, np.arange(4))
        x[0] = 5
        self.same(np.asarray(x) + st.zeros(4, np.int64), [5, 1, 2, 3])

    def test_dlpack(self):
        x = st.arange(6.0).reshape(2, 3)
        np.testing.assert_array_equal(np.from_dlpack(x), np.arange(6.0).reshape(2, 3))
        self.assertEqual(x.__dlpack_device__(), (1, 0))
        self.same(st.from_dlpack(np.arange(4)), np.arange(4))
        # Few elements are kept on the host, and these are given.
        for y in (x, x + 1, x[1:, ::2], st.asarray(np.arange(6.0))):
            before = y.to_numpy()
            given = np.from_dlpack(y, copy=False)
            np.testing.assert_array_equal(given, before)
            given[...] = -1
            self.same(y, before)
        # Others are mapped; only a connection over a network refuses that (interchange_test).
        x = st.ones(100_000)
        if x.session.devices()[0].kind == "cpu":
            self.same(st.from_dlpack(x.__dlpack__(copy=False)), np.ones(100_000))

    def test_pickle(self):
        x = st.asarray(np.arange(6.0).reshape(2, 3)) * 2
        back, view = pickle.loads(pickle.dumps((x, x[:, 1])))
        self.same(back, x.to_numpy())
        self.same(view, x.to_numpy()[:, 1])
        back[0] = 0
        self.assertEqual(float(x[0, 1]), 2)

    def test_numpy_ufuncs(self):
        host = np.array([0.5, 1.5, 2.5])
        x = st.asarray(host)
        self.same(np.cos(x), np.cos(host), rtol=1e-14)
        self.same(np.add(host, x), host + host)
        self.same(np.float32(2) * x, np.float32(2) * host)
        self.same(np.matmul(x, x), np.asarray(host @ host))
        self.same(np.add.reduce(x), np.asarray(host.sum()))
        self.same(np.maximum.reduce(x), np.asarray(host.max()))
        self.same(np.multiply.outer(x, x), np.multiply.outer(host, host))
        out = st.zeros(3)
        self.assertIs(np.add(x, 1, out=out), out)
        self.same(out, host + 1)
        into = np.zeros(3)
        np.multiply(x, 2, out=into)
        np.testing.assert_array_equal(into, host * 2)
        np.add(x, 1, where=host > 1, out=into)
        np.testing.assert_array_equal(into, np.where(host > 1, host + 1, host * 2))
        self.same(np.vecdot(x, x), np.asarray(host @ host))

    def test_methods(self):
        host = np.array([[3.0, 1.0, -2.0], [0.5, 7.0, 2.5]])
        x = st.asarray(host) + 0
        for name in (
            "sum", "prod", "any", "all", "std", "var", "argmin", "argmax", "cumsum", "cumprod", "min", "max",
            "mean",
        ):
            for axis in (None, 0, 1):
                self.same(getattr(x, name)(axis=axis), getattr(host, name)(axis=axis), rtol=1e-14)
        self.same(x.var(ddof=1), np.asarray(host.var(ddof=1)), rtol=1e-14)
        for name, arguments in (
            ("ravel", ()), ("flatten", ()), ("transpose", ()), ("transpose", (1, 0)), ("transpose", ((0, 1),)),
            ("swapaxes", (0, -1)), ("squeeze", ()), ("repeat", (2,)), ("repeat", (2, 1)), ("take", ([4, 0],)),
            ("take", ([1, 0], 1)), ("argsort", ()), ("argsort", (0,)), ("clip", (0, 2)), ("conj", ()),
            ("round", ()), ("dot", (np.arange(3.0),)),
        ):
            self.same(getattr(x, name)(*arguments), getattr(host, name)(*arguments))
        for ours, theirs in zip(x.nonzero(), host.nonzero()):
            self.same(ours, theirs)
        flat = x.flatten()
        x.sort(axis=0)
        self.same(x, np.sort(host, axis=0))
        self.same(flat, host.ravel())
        self.same(x[0].searchsorted([0.0]), np.sort(host, axis=0)[0].searchsorted([0.0]))
        x.ravel().fill(4)
        self.same(x, np.full((2, 3), 4.0))

    def test_numpy_functions(self):
        host = np.arange(12.0).reshape(3, 4)
        x = st.asarray(host)
        for function in (
            np.sum, np.mean, np.max, np.min, np.prod, np.std, np.var, np.any, np.all, np.argmax,
            np.count_nonzero,
        ):
            self.same(function(x, axis=1), function(host, axis=1), rtol=1e-12)
            self.same(function(x), np.asarray(function(host)), rtol=1e-12)
        self.same(np.var(x, ddof=1), np.asarray(np.var(host, ddof=1)), rtol=1e-12)
        self.same(np.concatenate([x, x]), np.concatenate([host, host]))
        self.same(np.stack([x, x], axis=1), np.stack([host, host], axis=1))
        self.same(np.where(x > 3, x, 0), np.where(host > 3, host, 0))
        self.same(np.transpose(x), host.T)
        self.same(np.reshape(x, (4, 3)), host.reshape(4, 3))
        self.same(np.clip(x, 2, 5), np.clip(host, 2, 5))
        self.same(np.dot(x, x.T), host @ host.T)
        self.same(np.linalg.norm(x), np.asarray(np.linalg.norm(host)), rtol=1e-12)
        self.same(np.zeros_like(x), np.zeros_like(host))
        self.assertTrue(np.allclose(x, host))

    @unittest.skipIf("sort" in operation_pb2.Operation.DESCRIPTOR.fields_by_name, "the contract has them")
    def test_unimplemented_functions_are_named_in_the_error(self):
        for name in ("sort", "cumulative_sum", "take_along_axis", "unique_values"):
            with self.assertRaises(NotImplementedError) as raised:
                getattr(st, name)(*(st.ones(3),) * (2 if name == "take_along_axis" else 1))
            self.assertIn(name, str(raised.exception))
            self.assertEqual(raised.exception.reason, "NOT_IMPLEMENTED")
        with self.assertRaises(NotImplementedError):
            st.ones(3)[st.ones(3) > 0]

    def both(self, expression, kind=None, **names):
        """The expression with NumPy's arrays and with ours: the same elements, or errors of one kind."""
        def value(module):
            arrays = {name: module.asarray(one) if isinstance(one, np.ndarray) else one for name, one in names.items()}
            return eval(expression, {"np": np, "m": module, **arrays})

        with self.subTest(expression=expression, **names):
            if kind is not None:
                with self.assertRaises(kind):
                    value(np)
                with self.assertRaises(kind):
                    value(st)
            else:
                self.same(value(st), value(np))

    def test_lists_with_arrays(self):
        x = np.array([1, 2, 3])
        for other in ("[1, 2, 4]", "(1, 2, 4)", "range(3)", "None", "'x'", "{}", "[1.5, 2, 3]"):
            self.both(f"x == {other}", x=x)
            self.both(f"x != {other}", x=x)
        for other in ("[1, 2, 4]", "(1, 2, 4)", "range(3)"):
            for operator in ("+", "-", "*", "<", ">=", "//", "**", "@"):
                self.both(f"x {operator} {other}", x=x)
                if operator != "**":
                    self.both(f"{other} {operator} x", x=x)
        for other in ("None", "'x'"):
            for operator in ("+", "<"):
                self.both(f"x {operator} {other}", TypeError, x=x)
        self.both("x == [1, 2]", ValueError, x=x)

        class Foreign:  # an array of another library, which computes with ours
            __array_ufunc__ = None

            def __eq__(self, other):
                return "its own"

        self.assertEqual(st.asarray(x) == Foreign(), "its own")

    def test_integers_that_do_not_fit(self):
        for expression in (
            "m.full(2, 300, dtype=np.uint8)",
            "m.full_like(u, 256)",
            "m.asarray([-1], dtype=np.uint8)",
            "m.asarray(300, dtype=np.int8)",
            "m.arange(-3, 0, dtype=np.uint8)",
            "m.clip(u, 300, None)",
            "m.where(u > 0, u, m.where(u, u, u)) + 300",
            "i + 2**64",
            "m.maximum(u, -1)",
            "u.fill(300)",
            "u.__setitem__(0, 300)",
            "u.__setitem__(slice(None), [300, 1])",
            "m.ones(2) + 10**400",
        ):
            self.both(expression, OverflowError, u=np.ones(2, np.uint8), i=np.arange(2))
        for expression in (
            "f + 2**64",
            "f * 10**30",
            "g * 10**30",
            "c + 2**64",
            "i < 2**64",
            "i == 2**64",
            "i > -2**70",
            "u < 300",
            "u == -1",
            "f < 2**64",
            "m.maximum(f, 2**64)",
            "m.asarray([300.7], dtype=np.int64)",
            "m.asarray(np.array([300]), dtype=np.uint8)",
            "m.full(2, np.array(300), dtype=np.uint8)",
            "m.add(f, 2**64, dtype=np.float64)",
        ):
            self.both(
                expression,
                f=np.ones(2),
                g=np.ones(2, np.float32),
                c=np.ones(2, complex),
                i=np.arange(2),
                u=np.ones(2, np.uint8),
            )

    def test_masked_arrays_are_refused(self):
        masked = np.ma.array([1.0, 2.0, -99.0], mask=[0, 0, 1])
        x = st.ones(3)
        for use in (
            lambda: st.asarray(masked),
            lambda: st.mean(masked),
            lambda: x + masked,
            lambda: st.maximum(x, masked),
            lambda: np.add(x, masked),
            lambda: x.__setitem__(slice(None), masked),
            lambda: x.__setitem__([0, 1, 2], masked),
            lambda: x[np.ma.array([0, 1], mask=[0, 1])],
            lambda: st.asarray([masked]),
            lambda: st.concat([x, masked]),
            lambda: st.full(3, masked),
            lambda: st.matmul(x, masked),
            lambda: st.add.at(x, [0, 1, 2], masked),
            lambda: st.searchsorted(x, masked),
            lambda: st.random.Generator(1).normal(masked),
            lambda: x == masked,
            lambda: st.save("masked", masked),
        ):
            with self.assertRaisesRegex(TypeError, "masked"):
                use()
        self.same(x, np.ones(3))
        np.testing.assert_array_equal((masked + x).mask, masked.mask)  # NumPy's own operator

    def test_contains_and_iteration_in_blocks(self):
        host = np.arange(20000)
        x = st.asarray(host) + 0
        with client_case.Sent(self.session) as sent:
            self.assertIn(19999, x)
            self.assertNotIn(20000, x)
        self.assertLessEqual(sent.num_messages, 4)
        with client_case.Sent(self.session) as sent:
            self.assertEqual([int(one) for one in x], host.tolist())
        self.assertLessEqual(sent.num_messages, 10)
        rows = st.asarray(host.reshape(200, 100)) + 0
        with client_case.Sent(self.session) as sent:
            self.assertEqual([row.tolist() for row in rows], host.reshape(200, 100).tolist())
        self.assertLessEqual(sent.num_messages, 10)
        for i, row in enumerate(rows):  # they are views
            row[:] = i
        self.same(rows, np.repeat(np.arange(200), 100).reshape(200, 100))

    def test_text_of_large_arrays(self):
        for shape in ((5000,), (40, 50), (2, 3000), (1001, 1), (7, 8, 9, 10), (0, 5), (6, 200)):
            for host in (
                np.arange(np.prod(shape)).reshape(shape),
                np.linspace(-1, 1e5, int(np.prod(shape))).reshape(shape),
            ):
                text = np.array2string(host, separator=", ", prefix="stride.Array(")
                self.assertEqual(repr(st.asarray(host) + 0), f"stride.Array({text}, dtype={host.dtype})")
                self.assertEqual(str(st.asarray(host) + 0), str(host))
        large = st.zeros((3000, 1000))
        with mock.patch.object(type(self.session), "_read_bulk", side_effect=AssertionError("all of it is read")):
            repr(large)

    def test_numbers_in_arrays(self):
        x = st.asarray([2.567, 1.0])
        self.assertEqual(round(x[0], 1), 2.6)
        self.assertEqual(round(x[0]), 3)
        self.assertEqual({x[1]: "one"}[1.0], "one")
        with self.assertRaises(TypeError):
            hash(x)
        n = st.asarray([1, 3]).max()
        for expression in (
            "m.linspace(0, n, 4)",
            "m.arange(1, n + 1)",
            "m.eye(n)",
            "m.full((2, 2), [1, 2])",
            "m.arange(n)",
            "m.linspace(start=0, stop=1, num=3)",
            "m.repeat(3, 4)",
            "m.sort([[2, 1]], axis=None)",
            "m.empty_like((1, 2)) * 0",
            "m.matrix_transpose([[1, 2]])",
            "m.tril([[1, 2], [3, 4]])",
            "m.zeros_like([1.5])",
            "m.repeat([1, 2], True)",
            "m.repeat([1, 2], [True, False])",
            "m.roll([1, 2, 3], 1)",
            "m.flip([1, 2])",
            "m.tile([1, 2], 2)",
            "m.diff([1, 4])",
            "m.vecdot([1, 2], [3, 4])",
            "m.tensordot([1, 2], [3, 4], axes=1)",
        ):
            self.both(expression, n=np.array(3))
        self.same(st.linspace(0, n, 4), np.linspace(0, 3, 4))
        self.same(st.linspace(st.zeros(2), 1, 3), np.linspace(np.zeros(2), 1, 3))
        for expression, kind in (
            ("m.zeros(2, dtype=0)", TypeError),
            ("m.zeros(2, dtype=False)", TypeError),
            ("m.roll([1, 2], 1, axis='0')", TypeError),
            ("m.reshape(m.ones(6), (2.0, 3))", TypeError),
            ("m.ones(2)[[0, 1], range(3)]", IndexError),
            ("m.ones((2, 3))[[0, 1], range(3)]", IndexError),
        ):
            self.both(expression, kind)

    def test_powers_of_integers(self):
        for expression in ("x ** -1", "x ** y", "2 ** y", "m.power(x, y)", "m.power(x, np.int64(-1))"):
            self.both(expression, ValueError, x=np.array([2, 3]), y=np.array([-1, 2]))
        with self.assertRaises(ValueError):
            st.asarray([2, 3]) ** (st.asarray([1, -2]) + 0)
        self.both("x ** y", x=np.array([2, 3]), y=np.array([0, 2]))
        self.both("x ** -1.0", x=np.array([2, 4]))
        self.both("x ** -1", x=np.array([2.0, 4.0]))


if __name__ == "__main__":
    client_case.main()
