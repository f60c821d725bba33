"""Features of ufuncs other than a plain call, compared with NumPy: out, where, dtype, casting, two results, methods."""

import unittest

import numpy as np

import client_case
import stride as st
from numpy_rules import NumpyRules  # noqa: F401, whose tests run here


class UfuncTest(client_case.ClientCase):
    def setUp(self):
        self.x = np.array([[1.5, -2.0, 3.25], [0.0, 7.5, -1.0]])
        self.y = np.array([2.0, 0.5, -4.0])
        self.mask = np.array([[True, False, True], [False, False, True]])

    def test_where(self):
        for name in ("add", "hypot", "arctan2"):
            ours, theirs = getattr(st, name), getattr(np, name)
            self.same(
                ours(st.asarray(self.x), self.y, where=self.mask),
                theirs(self.x, self.y, where=self.mask, out=np.zeros((2, 3))),
                rtol=1e-15,
            )
        self.same(st.sqrt(st.asarray([4.0, 9.0]), where=st.asarray([True, False])), [2.0, 0.0])
        self.same(st.sqrt(st.asarray([4.0, 9.0]), where=st.asarray(False)), [0.0, 0.0])
        # The mask's shape counts too.
        self.same(
            st.add(st.asarray(self.y), 1, where=self.mask), np.add(self.y, 1, where=self.mask, out=np.zeros((2, 3)))
        )
        with self.assertRaises(st.DataTypeMismatch):
            st.add(st.asarray(self.y), 1, where=np.array([1, 0, 1]))

    def test_out(self):
        for view in (False, True):
            for where in (True, self.mask):
                with self.subTest(view=view, masked=where is not True):
                    base, host = st.ones((4, 3)), np.ones((4, 3))
                    out, host_out = (base[1:3], host[1:3]) if view else (st.ones((2, 3)), np.ones((2, 3)))
                    self.assertIs(st.multiply(st.asarray(self.x), self.y, out=out, where=where), out)
                    np.multiply(self.x, self.y, out=host_out, where=where)
                    self.same(out, host_out)
                    self.same(base, host)
        out = st.zeros((2, 3))
        self.same(st.negative(st.asarray(self.y), out=(out,)), np.negative(self.y, out=np.zeros((2, 3))))
        with self.assertRaises(st.ShapeMismatch):
            st.add(st.asarray(self.x), 1, out=st.zeros((3,)))
        with self.assertRaises(TypeError):
            st.add(st.asarray(self.x), 1, out=np.zeros((2, 3)))

    def test_casting(self):
        out = st.zeros((2, 3), dtype=st.int32)
        with self.assertRaises(st.DataTypeMismatch):
            st.add(st.asarray(self.x), 1, out=out)
        st.add(st.asarray(self.x), 1, out=out, casting="unsafe")
        self.same(out, np.add(self.x, 1, out=np.zeros((2, 3), np.int32), casting="unsafe"))
        half = np.array([1, 2, 3], np.int16)
        self.same(st.add(st.asarray(half), 1, casting="no"), np.add(half, 1, casting="no"))
        for casting in ("no", "equiv", "safe"):
            with self.assertRaises(TypeError):
                np.add(half, half, dtype=np.int8, casting=casting)
            with self.assertRaises(st.DataTypeMismatch):
                st.add(st.asarray(half), st.asarray(half), dtype=np.int8, casting=casting)
        with self.assertRaises(ValueError):
            st.add(st.asarray(half), 1, casting="anything")

    def test_dtype(self):
        small = np.array([100, 100, -100], np.int8)
        for dtype in (np.int16, np.float32, np.float64, np.complex64):
            self.same(st.add(st.asarray(small), st.asarray(small), dtype=dtype), np.add(small, small, dtype=dtype))
            self.same(st.add(st.asarray(small), st.asarray(small), dtype=dtype, where=[True, False, True]),
                      np.add(small, small, dtype=dtype, where=[True, False, True], out=np.zeros(3, dtype)))
        self.same(st.sin(st.asarray(small), dtype=np.float32), np.sin(small, dtype=np.float32), rtol=1e-6)
        self.same(st.divide(st.asarray(self.y), 3, dtype=np.float32), np.divide(self.y, 3, dtype=np.float32))
        with self.assertRaises(st.DataTypeMismatch):
            st.bitwise_and(st.asarray(small), 1, dtype=np.float64)

    def test_two_results(self):
        x = np.array([0.0, -0.0, 1.5, -7.25, 1e-310, np.inf, -np.inf, np.nan])
        for dtype in (np.float16, np.float32, np.float64):
            for name in ("frexp", "modf"):
                with np.errstate(all="ignore"):
                    host = x.astype(dtype)
                    expected = getattr(np, name)(host)
                finite = np.isfinite(host)
                for i, (ours, theirs) in enumerate(zip(getattr(st, name)(st.asarray(host)), expected)):
                    keep = finite if name == "frexp" and i else slice(None)  # the exponent of infinity is anything
                    self.same(ours[keep], theirs[keep])
        for a, b in ((np.array([7, -7, 9], np.int32), np.array([2, 2, -4], np.int32)), (self.x, self.y)):
            for ours, theirs in zip(st.divmod(st.asarray(a), st.asarray(b)), np.divmod(a, b)):
                self.same(ours, theirs)
        for ours, theirs in zip(divmod(20, st.asarray([3, -3])), divmod(20, np.array([3, -3]))):
            self.same(ours, theirs)
        second = st.modf(st.asarray(self.x))[1]  # the first is gone
        self.same(second, np.modf(self.x)[1])
        out = st.ones((2, 3))
        fraction, whole = st.modf(st.asarray(self.x), out=(None, out), where=self.mask)
        self.assertIs(whole, out)
        self.same(out, np.where(self.mask, np.modf(self.x)[1], 1))
        self.same(fraction, np.where(self.mask, np.modf(self.x)[0], 0))
        self.same(np.frexp(st.asarray(self.y))[1], np.frexp(self.y)[1])

    def test_reduce(self):
        integers = np.array([[12, 18, 30], [8, 20, 28]])
        for name in (
            "add", "multiply", "maximum", "minimum", "fmax", "fmin", "gcd", "lcm", "bitwise_and", "bitwise_or",
            "bitwise_xor", "logical_and", "logical_or", "logical_xor", "subtract", "floor_divide",
        ):
            for axis in (0, 1):
                for keepdims in (False, True):
                    with self.subTest(name=name, axis=axis, keepdims=keepdims):
                        if name in (
                            "gcd", "lcm", "bitwise_and", "bitwise_or", "bitwise_xor", "subtract",
                            "floor_divide",
                        ):
                            host = integers
                        else:
                            host = self.x
                        self.same(getattr(st, name).reduce(st.asarray(host), axis, keepdims=keepdims),
                                  getattr(np, name).reduce(host, axis, keepdims=keepdims))
        self.same(st.gcd.reduce(st.asarray(integers), axis=None), np.gcd.reduce(integers, axis=None))
        self.same(st.gcd.reduce(st.zeros((0, 3), dtype=st.int64)), np.gcd.reduce(np.zeros((0, 3), np.int64)))
        self.same(
            st.add.reduce(st.asarray(self.x), initial=5, where=self.mask),
            np.add.reduce(self.x, initial=5, where=self.mask),
        )
        self.same(st.maximum.reduce(st.asarray(self.x), axis=None, initial=-1, where=self.mask),
                  np.maximum.reduce(self.x, axis=None, initial=-1, where=self.mask))
        self.same(st.minimum.reduce(st.zeros((0,)), initial=4), np.minimum.reduce(np.zeros((0,)), initial=4))
        out = st.zeros((3,))
        self.assertIs(st.add.reduce(st.asarray(self.x), out=out), out)
        self.same(out, np.add.reduce(self.x))
        with self.assertRaises(ValueError):
            st.subtract.reduce(st.asarray(self.x), axis=None)
        with self.assertRaises(ValueError):
            st.fmax.reduce(st.zeros((0,)))

    def test_accumulate_and_outer(self):
        for name in ("add", "multiply", "subtract", "maximum", "logical_or", "power"):
            for axis in (0, 1):
                with self.subTest(name=name, axis=axis):
                    host = np.abs(self.x)
                    self.same(
                        getattr(st, name).accumulate(st.asarray(host), axis),
                        getattr(np, name).accumulate(host, axis),
                        rtol=1e-15,
                    )
        self.same(np.maximum.accumulate(st.asarray(self.x), axis=1), np.maximum.accumulate(self.x, axis=1))
        self.same(st.add.accumulate(st.asarray([1, 2], dtype=st.int8)), np.add.accumulate(np.array([1, 2], np.int8)))
        self.same(
            st.add.accumulate(st.asarray([100, 100], dtype=st.int8), dtype=np.int8),
            np.add.accumulate(np.array([100, 100], np.int8), dtype=np.int8),
        )
        self.same(st.subtract.outer(st.asarray(self.x), self.y), np.subtract.outer(self.x, self.y))
        self.same(np.less.outer(self.y, st.asarray(self.x)), np.less.outer(self.y, self.x))

    def test_at(self):
        indices = np.array([0, 3, 3, -1, 0, 3])
        values = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
        for name in ("add", "subtract", "multiply", "maximum", "fmin"):
            ours, theirs = st.ones(5) * 3, np.ones(5) * 3
            getattr(st, name).at(ours, indices, values)
            getattr(np, name).at(theirs, indices, values)
            self.same(ours, theirs)
        ours, theirs = st.zeros((3, 4), dtype=st.int32), np.zeros((3, 4), np.int32)
        view, host_view = ours[:, ::2], theirs[:, ::2]
        st.add.at(view, ([0, 2, 0], [1, 1, 1]), 5)
        np.add.at(host_view, ([0, 2, 0], [1, 1, 1]), 5)
        np.add.at(ours, (slice(None), [0, 0]), 1)
        np.add.at(theirs, (slice(None), [0, 0]), 1)
        self.same(ours, theirs)
        with self.assertRaises(IndexError):
            st.add.at(ours, ([5], [0]), 1)
        with self.assertRaises(IndexError):
            st.add.at(ours, st.asarray([7]), 1)
        # Errors that only the device detects are raised when the array is read.
        st.add.at(ours, st.asarray([7]) + 0, 1)
        with self.assertRaises(IndexError):
            ours.to_numpy()

    def test_at_casts_each_result_as_numpy_does(self):
        values = np.array([1.5, 2.5, -0.5, 1.0])
        for dtype in (np.int8, np.int32, np.uint64, np.float16, np.float32):
            for name in ("add", "multiply", "maximum", "minimum"):
                for given in (1.5, 2.0, np.float32(2.5), values, values.astype(np.float32), np.array([1, 2, 3, 4])):
                    theirs, ours = np.arange(6, dtype=dtype), st.arange(6, dtype=dtype)
                    getattr(np, name).at(theirs, [1, 1, 3, 1], given)
                    there = st.asarray(given) if isinstance(given, np.ndarray) else given
                    getattr(st, name).at(ours, st.asarray([1, 1, 3, 1]), there)
                    self.same(ours, theirs)
        theirs, ours = np.arange(12).reshape(3, 4), st.arange(12).reshape(3, 4)
        np.sqrt.at(theirs[:, 1:], ([1, 2, 2], slice(None)))
        st.sqrt.at(ours[:, 1:], ([1, 2, 2], slice(None)))
        self.same(ours, theirs)
        with self.assertRaises(IndexError):
            st.add.at(ours, ([5], [0]), 1.5)
        with self.assertRaises(st.DataTypeMismatch):
            st.jit(lambda x: st.add.at(x, [0], 1.5) or x)(st.zeros(3, dtype=st.int32))

    def test_at_of_signed_values_into_unsigned_arrays(self):
        unsigned, signed = (np.uint8, np.uint16, np.uint32), (np.int8, np.int16, np.int32, np.int64)
        for name in ("add", "subtract", "multiply", "bitwise_xor", "maximum", "floor_divide"):
            for dtype in unsigned:
                for kind in signed:
                    with self.subTest(name=name, array=dtype, values=kind):
                        modular = name in ("add", "subtract", "multiply", "bitwise_xor")
                        values = np.array([2, -7 if modular else 7, 100], kind)
                        theirs = np.array([1, 200, 3], dtype)
                        ours = st.asarray(theirs)
                        with np.errstate(all="ignore"):
                            getattr(np, name).at(theirs, [0, 1, 0], values)
                        getattr(st, name).at(ours, [0, 1, 0], st.asarray(values))
                        self.same(ours, theirs)

    def test_at_equals_numpys(self):
        rng = np.random.default_rng(7)
        for dtype in (np.int8, np.int64, np.float16, np.float32, np.float64, np.complex64):
            for shape, keys in (
                ((9,), (rng.integers(-9, 9, 40),)),
                ((4, 5), (rng.integers(-4, 4, (3, 7)), rng.integers(0, 5, 7))),
                ((4, 5), (rng.integers(0, 4, 6),)),
                ((4, 5), (slice(1, None), np.array([0, 3, 3]))),
                ((6,), (2,)),
            ):
                start = rng.integers(0, 5, shape).astype(dtype)
                for name, value in (
                    ("add", 1),
                    ("multiply", np.asarray(2, dtype)),
                    ("subtract", rng.integers(0, 3, start[keys].shape).astype(dtype)),
                ):
                    with self.subTest(dtype=dtype, shape=shape, name=name):
                        ours, theirs = st.asarray(start) + 0, start + 0
                        with np.errstate(over="ignore"):
                            getattr(np, name).at(theirs, keys, value)
                        getattr(np, name).at(ours, keys, value)
                        if dtype not in (np.int8, np.int64):
                            self.same(ours, theirs, rtol=1e-2 if dtype == np.float16 else 1e-5)
                        else:
                            self.same(ours, theirs)
        for name in ("negative", "sqrt", "square"):
            ours, theirs = st.ones((3, 4)) * 2, np.ones((3, 4)) * 2
            getattr(np, name).at(ours[:, ::2], ([0, 2, 0], [1, 1, 1]))
            getattr(np, name).at(theirs[:, ::2], ([0, 2, 0], [1, 1, 1]))
            getattr(st, name).at(ours, (slice(None), 0))
            getattr(np, name).at(theirs, (slice(None), 0))
            self.same(ours, theirs)

    def test_reduce_in_one_operation(self):
        rng = np.random.default_rng(3)
        for _ in range(60):
            shape = tuple(rng.integers(0, 5, rng.integers(1, 4)))
            dtype = rng.choice([np.int16, np.uint8, np.float32, np.float64, np.bool_])
            host = rng.integers(0, 7, shape).astype(dtype)
            axis = None if rng.random() < 0.3 else int(rng.integers(-len(shape), len(shape)))
            name = rng.choice(["add", "multiply", "maximum", "minimum", "logical_or", "fmax", "hypot", "bitwise_xor"])
            if name == "hypot" and dtype == np.bool_ or name == "bitwise_xor" and host.dtype.kind == "f":
                continue
            options = {"axis": axis, "keepdims": bool(rng.integers(2)), "initial": 3 if dtype != np.bool_ else True}
            if rng.random() < 0.7:
                options["where"] = rng.integers(0, 2, shape[rng.integers(len(shape)):]).astype(bool)
            with self.subTest(shape=shape, dtype=dtype, name=name, options=options):
                array = st.asarray(host)
                with client_case.Sent(self.session) as sent:
                    ours = getattr(np, name).reduce(array, **options)
                    ours.to_numpy()
                self.same(ours, getattr(np, name).reduce(host, **options), rtol=2e-3 if name == "hypot" else 1e-6)
                kinds = [one.operation.WhichOneof("kind") for one in sent.commands if one.HasField("operation")]
                self.assertEqual([kind for kind in kinds if kind not in ("copy", "view")], ["reduction"], kinds)
        x = st.asarray(self.x)
        self.same(np.sum(x, initial=2.5, where=self.mask), np.sum(self.x, initial=2.5, where=self.mask))
        self.same(np.max(x, axis=1, initial=0.5, where=self.mask), np.max(self.x, axis=1, initial=0.5, where=self.mask))
        for name in ("mean", "var", "std", "any", "all"):
            self.same(
                getattr(np, name)(x, axis=1, where=self.mask),
                getattr(np, name)(self.x, axis=1, where=self.mask),
                rtol=1e-14,
            )
        self.same(np.sum(x, axis=(), where=self.mask), np.sum(self.x, axis=(), where=self.mask))
        with self.assertRaises(ValueError):
            st.max(x, where=self.mask)
        with self.assertRaises(st.ShapeMismatch):
            st.sum(x, where=np.ones((4, 2, 3), bool))

    def test_reduceat(self):
        for name in ("add", "maximum", "multiply"):
            for axis, indices in ((0, [0, 1]), (1, [0, 2]), (1, [2, 0, 1, 1])):
                self.same(
                    getattr(st, name).reduceat(st.asarray(self.x), indices, axis),
                    getattr(np, name).reduceat(self.x, indices, axis),
                )
        self.same(np.add.reduceat(st.arange(8), [0, 4, 1, 5]), np.add.reduceat(np.arange(8), [0, 4, 1, 5]))
        with self.assertRaises(IndexError):
            st.add.reduceat(st.arange(8), [8])
        with self.assertRaises(IndexError):
            st.add.reduceat(st.arange(8), st.asarray([8])).to_numpy()
        for dtype in (np.complex64, np.float16):
            host = np.arange(8).astype(dtype)
            self.same(np.add.reduceat(st.asarray(host), st.asarray([0, 3])), np.add.reduceat(host, [0, 3]))

    def test_floor_divide_of_the_standard(self):
        inf = np.inf
        x, y = np.array([inf, -inf, inf, 3.0, -3.0, inf, np.nan, 7.0]), np.array(
            [2.0, 2.0, -2.0, inf, inf, inf, inf, 2.0]
        )
        self.same(st.floor_divide(st.asarray(x), st.asarray(y)), [inf, -inf, -inf, 0.0, -0.0, np.nan, np.nan, 3.0])
        self.same(st.asarray(x) // 2, [inf, -inf, inf, 1.0, -2.0, inf, np.nan, 3.0])
        self.same(-7.0 // st.asarray([inf, -inf, 2.0]), [-0.0, 0.0, -4.0])
        self.same(np.floor_divide(st.asarray([inf, 5.0]), 2.0), np.floor_divide([inf, 5.0], 2.0))

    def test_through_numpy(self):
        out = np.zeros((2, 3))
        self.assertIs(np.add(st.asarray(self.x), 1, out=out), out)
        np.testing.assert_array_equal(out, self.x + 1)
        self.same(
            np.add(st.asarray(self.x), 1, where=self.mask, out=st.ones((2, 3))), np.where(self.mask, self.x + 1, 1)
        )
        self.same(np.add(st.asarray([1, 2]), 1, dtype=np.float32), np.add([1, 2], 1, dtype=np.float32))
        self.same(np.gcd.reduce(st.asarray([12, 18])), np.asarray(6))
        self.same(
            np.add.reduce(st.asarray(self.x), axis=1, keepdims=True), np.add.reduce(self.x, axis=1, keepdims=True)
        )


if __name__ == "__main__":
    client_case.main()
