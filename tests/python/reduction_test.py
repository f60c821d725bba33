"""Reductions and matrix products, compared with NumPy."""

import pickle
import warnings

import numpy as np

import client_case
import stride as st


_RTOL = {"float16": 1e-2, "float32": 1e-5, "float64": 1e-12, "complex64": 1e-5, "complex128": 1e-12}


class ReductionTest(client_case.ClientCase):
    def values(self, dtype, shape=(3, 4, 5)):
        numbers = np.random.default_rng(7).integers(0, 5, shape)
        return (numbers + (1j * numbers[::-1] if dtype.kind == "c" else 0)).astype(dtype)

    def check(self, name, host, tolerance=True, **kwargs):
        expected = np.asarray(getattr(np, name)(host, **kwargs))
        ours = getattr(st, name)(st.asarray(host), **kwargs)
        with self.subTest(name=name, type=host.dtype, arguments=kwargs):
            rtol = {"rtol": _RTOL[expected.dtype.name]} if tolerance and expected.dtype.kind in "fc" else {}
            self.same(ours, expected, **rtol)

    def test_all_types(self):
        for dtype in client_case.DTYPES:
            host = self.values(dtype)
            for axis in (None, 0, -1, (0, 2), ()):
                for keepdims in (False, True):
                    for name in (
                        "sum",
                        "any",
                        "all",
                        *(() if dtype.kind == "b" else ("mean",)),
                        *(("min", "max") if dtype.kind != "c" else ()),
                    ):
                        self.check(name, host, axis=axis, keepdims=keepdims)
            self.check("prod", host[:, :1, :1] + host.dtype.type(1), axis=0)

    def test_spread(self):
        for dtype in map(np.dtype, (st.float32, st.float64, st.complex128, st.int16)):
            host = self.values(dtype)
            for axis in (None, 1, (0, 1)):
                for name in ("var", "std"):
                    self.check(name, host, axis=axis)
                    expected = np.asarray(getattr(np, name)(host, axis=axis, ddof=1))
                    self.same(getattr(st, name)(st.asarray(host), axis=axis, correction=1), expected, rtol=1e-5)

    def test_spread_around_a_large_mean(self):
        """Within some units of the last place, where the mean takes most digits of the elements."""
        random = np.random.default_rng(11)
        mask = random.random((300, 700)) < 0.3
        for dtype, rtol in ((np.float32, 2e-6), (np.float64, 1e-14), (np.complex64, 2e-6)):
            host = (random.normal(size=(300, 700)) + 4000).astype(dtype)
            x, wide = st.asarray(host), host.astype(np.clongdouble if dtype is np.complex64 else np.longdouble)
            for axis in (None, 0, 1) if dtype is np.float32 else (0,):
                for options in ({}, {"ddof": 1}, {"keepdims": True}, {"where": mask, "ddof": 2.5}):
                    expected = np.asarray(wide.var(axis=axis, **options)).astype(host.real.dtype)
                    self.same(st.var(x, axis=axis, **options), expected, rtol=rtol)
            expected = wide.std(axis=1).astype(host.real.dtype)
            self.same(st.jit(lambda y: st.std(y, axis=1))(x), expected, rtol=rtol)

    def test_spread_is_one_operation(self):
        x = st.asarray(np.arange(12.0).reshape(3, 4))
        for one in (st.var(x), st.std(x, axis=1), st.nanvar(x, axis=0), st.nanstd(x), st.std(x, where=x > 3)):
            self.assertEqual(one._node.inputs[0] is x._node, True)

    def test_spread_of_too_few(self):
        host = np.array([[1.0, 2.0, np.nan], [3.0, np.nan, np.nan]])
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for ddof in (0, 1, 2, 3):
                for axis in (None, 0, 1):
                    for name in ("var", "std", "nanvar", "nanstd"):
                        self.check(name, host, axis=axis, ddof=ddof)
                    mask = np.isfinite(host)
                    self.check("var", host, axis=axis, ddof=ddof, where=mask)
                self.check("var", np.zeros((0, 3)), axis=0, ddof=ddof)
                self.check("std", np.float64(3), ddof=ddof)

    def test_places(self):
        host = np.array([[3.0, 1.0, np.nan], [7.0, -2.0, 5.0]])
        for name in ("argmin", "argmax"):
            for axis in (None, 0, 1):
                for keepdims in (False, True):
                    self.check(name, host, axis=axis, keepdims=keepdims)
        self.check("count_nonzero", self.values(np.dtype(st.int8)), axis=1)

    def test_types_asked_for(self):
        host = np.array([100, 100, 100], np.int8)
        self.check("sum", host)
        self.check("sum", host, dtype=np.int8)
        self.check("sum", host, dtype=np.float32)
        self.check("sum", np.array([1.5, 2.5]), dtype=np.int64)
        self.assertEqual(int(st.sum(st.arange(100000))), 4999950000)

    def test_cached_operations_are_not_confused(self):
        # Operations are copies of cached ones: these differ in one field each, and all are recorded before
        # the first is sent.
        hosts = [self.values(np.dtype(np.int32), (2, 3)) + i for i in range(2)]
        arrays = [st.asarray(host) + 0 for host in hosts]
        asked = [
            (name, kwargs)
            for name in ("sum", "prod", "max", "min", "any", "all", "count_nonzero")
            for kwargs in (
                {},
                {"axis": 0},
                {"axis": 1},
                {"axis": (0, 1), "keepdims": True},
                {"axis": 1, "keepdims": True},
            )
        ]
        asked += [
            (name, {"dtype": dtype, **more})
            for name in ("sum", "prod")
            for dtype in (np.int8, np.int32, np.float64)
            for more in ({}, {"initial": 3}, {"where": hosts[0] > 2})
        ]
        asked += [(name, {"axis": 0, "initial": 1}) for name in ("sum", "max")]
        reduced = [
            (getattr(np, name).reduce, getattr(st, name).reduce, kwargs)
            for name in ("add", "multiply", "maximum")
            for kwargs in ({}, {"axis": 1}, {"keepdims": True})
        ]
        reduced += [(getattr(np, name), getattr(st, name), kwargs) for name, kwargs in asked]
        for _ in range(2):
            pending = [
                (theirs(host, **kwargs), ours(x, **kwargs), (theirs, kwargs))
                for theirs, ours, kwargs in reduced
                for host, x in zip(hosts, arrays)
            ]
            for expected, ours, which in reversed(pending):
                with self.subTest(which=which):
                    self.same(ours, expected)
        # The daemon's shape, too.
        host = self.values(np.dtype(np.int32), (3, 3))
        x = st.asarray(host) + 0
        for keepdims in (False, True, False):
            self.same(x - st.sum(x, axis=1, keepdims=keepdims), host - np.sum(host, axis=1, keepdims=keepdims))

    def test_empty(self):
        empty = st.zeros((0, 2))
        self.same(st.sum(empty, axis=0), np.zeros(2))
        self.same(st.prod(empty), np.array(1.0))
        self.same(st.all(empty), np.array(True))
        with self.assertRaises(ValueError):
            st.max(empty, axis=0)
        self.same(st.max(empty, axis=1), np.zeros(0))

    def test_norm(self):
        for host in (np.arange(10.0), np.arange(10), np.array([3 + 4j, 1j])):
            self.same(st.norm(st.asarray(host)), np.asarray(np.linalg.norm(host)), rtol=1e-12)

    def test_matmul(self):
        random = np.random.default_rng(1)
        for left, right in (
            ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
            ((5, 1, 2, 3), (2, 3, 4)), ((0, 3), (3, 2)), ((2, 0), (0, 3)),
        ):
            for dtype in (st.float32, st.float64, st.complex64, st.int32, st.uint8):
                x, y = ((random.integers(0, 9, shape)).astype(dtype) for shape in (left, right))
                with self.subTest(left=left, right=right, dtype=dtype):
                    self.same(st.asarray(x) @ st.asarray(y), x @ y, rtol=1e-5)
        with self.assertRaises(st.ShapeMismatch):
            st.ones((2, 3)) @ st.ones((2, 3))
        with self.assertRaises(ValueError):
            st.ones(3) @ 2.0

    def test_products(self):
        random = np.random.default_rng(2)
        x, y = random.normal(size=(4, 5, 6)), random.normal(size=(4, 5, 6))
        z = x + 1j * y
        self.same(st.vecdot(st.asarray(x), st.asarray(y)), np.vecdot(x, y), rtol=1e-12)
        self.same(st.vecdot(st.asarray(z), st.asarray(x + 0j), axis=-2), np.vecdot(z, x + 0j, axis=-2), rtol=1e-12)
        self.same(
            st.tensordot(st.asarray(x), st.asarray(y), axes=((0, 2), (0, 2))),
            np.tensordot(x, y, axes=((0, 2), (0, 2))),
            rtol=1e-12,
        )
        self.same(
            st.tensordot(st.asarray(x[0]), st.asarray(y[0].T), axes=1),
            np.tensordot(x[0], y[0].T, axes=1),
            rtol=1e-12,
            atol=1e-12,
        )
        self.same(
            st.tensordot(st.asarray(x[0, 0]), st.asarray(y[0, 0]), axes=0),
            np.tensordot(x[0, 0], y[0, 0], axes=0),
            rtol=1e-12,
        )

    def test_axes_of_numbers(self):
        ours, theirs = st.asarray(3.0), np.array(3.0)
        for name in ("sum", "prod", "max", "min", "any", "all", "count_nonzero", "argmax", "argmin"):
            for axis in (0, -1, None):
                self.same(getattr(st, name)(ours, axis=axis), getattr(np, name)(theirs, axis=axis))
            for axis in (1, -2):
                with self.subTest(name=name, axis=axis):
                    for kind in (np.exceptions.AxisError, st.AxisError, ValueError, IndexError):
                        with self.assertRaises(kind):
                            getattr(st, name)(ours, axis=axis)
        self.same(st.squeeze(ours, axis=0), np.squeeze(theirs, axis=0))
        self.same(st.take(ours, 0, axis=0), np.take(theirs, 0, axis=0))

    def test_invalid_axes_raise(self):
        x = st.ones((2, 3))
        for use in (
            lambda: st.sum(x, axis=2),
            lambda: st.mean(x, axis=-3),
            lambda: st.sort(x, axis=2),
            lambda: st.expand_dims(x, axis=5),
            lambda: st.flip(x, axis=2),
            lambda: st.concat([x, x], axis=2),
            lambda: st.stack([x], axis=4),
            lambda: x.swapaxes(0, 5),
            lambda: st.permute_dims(x, (0, 2)),
            lambda: st.moveaxis(x, 2, 0),
            lambda: st.take(x, [0], axis=2),
            lambda: st.cumulative_sum(x, axis=2),
            lambda: st.roll(x, 1, axis=2),
            lambda: st.repeat(x, 2, axis=2),
            lambda: st.squeeze(x, axis=2),
            lambda: st.unstack(x, axis=2),
            lambda: st.diff(x, axis=2),
            lambda: st.add.reduce(x, axis=2),
            lambda: x.sort(axis=2),
            lambda: np.trace(x, axis1=2),
            lambda: st.fft.fft(x, axis=2),
        ):
            with self.assertRaises(np.exceptions.AxisError) as raised:
                use()
            again = pickle.loads(pickle.dumps(raised.exception))
            self.assertEqual(
                (str(again), again.axis, again.ndim),
                (str(raised.exception), raised.exception.axis, raised.exception.ndim),
            )

    def test_means_of_a_type(self):
        for dtype in (np.int64, np.int32, np.float32):
            for host in (np.array([1, 2, 4]), np.array([[1.5, 2], [3, 4.9]])):
                for axis in (None, 0):
                    self.same(
                        np.mean(st.asarray(host), axis=axis, dtype=dtype),
                        np.asarray(np.mean(host, axis=axis, dtype=dtype)),
                    )


if __name__ == "__main__":
    client_case.main()
