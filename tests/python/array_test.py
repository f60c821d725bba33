"""The array object, and NumPy's functions applied to it."""

import copy
import pickle
import unittest

import numpy as np

import client_case
import stride as st
from stride.v1 import operation_pb2


class ArrayTest(client_case.ClientCase):
    def test_attributes(self):
        x = st.zeros((2, 3), dtype=st.float32)
        self.assertEqual((x.shape, x.ndim, x.size, x.nbytes, x.itemsize, x.dtype, len(x)), ((2, 3), 2, 6, 24, 4, np.float32, 2))
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
        for wrong in (lambda: bool(st.ones(2)), lambda: len(st.ones(())), lambda: [][st.ones(())], lambda: float(st.ones(2)),
                      lambda: iter(st.ones(()))):
            with self.assertRaises((TypeError, ValueError)):
                wrong()

    def test_text(self):
        self.assertEqual(repr(st.asarray([1, 2])), "stride.Array([1, 2], dtype=int64)")
        self.assertEqual(str(st.asarray([1, 2])), "[1 2]")

    def test_to_numpy(self):
        x = st.arange(3.0)
        host = np.asarray(x)
        host[0] = 100  # a copy: the array is as it was
        self.same(x, np.arange(3.0))
        self.assertEqual(np.asarray(x, dtype=np.int8).dtype, np.int8)
        with self.assertRaises(ValueError):
            x.__array__(copy=False)
        self.same(copy.copy(x), np.arange(3.0))
        self.same(copy.deepcopy(x), np.arange(3.0))

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
        with self.assertRaises(BufferError):
            st.ones(100_000).__dlpack__(copy=False)

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
        with self.assertRaises(NotImplementedError):
            np.add(x, 1, where=host > 1, out=np.zeros(3))
        self.same(np.vecdot(x, x), np.asarray(host @ host))

    def test_methods(self):
        host = np.array([[3.0, 1.0, -2.0], [0.5, 7.0, 2.5]])
        x = st.asarray(host) + 0
        for name in ("sum", "prod", "any", "all", "std", "var", "argmin", "argmax", "cumsum", "cumprod", "min", "max", "mean"):
            for axis in (None, 0, 1):
                self.same(getattr(x, name)(axis=axis), getattr(host, name)(axis=axis), rtol=1e-14)
        self.same(x.var(ddof=1), np.asarray(host.var(ddof=1)), rtol=1e-14)
        for name, arguments in (("ravel", ()), ("flatten", ()), ("transpose", ()), ("transpose", (1, 0)), ("transpose", ((0, 1),)), ("swapaxes", (0, -1)),
                                ("squeeze", ()), ("repeat", (2,)), ("repeat", (2, 1)), ("take", ([4, 0],)), ("take", ([1, 0], 1)), ("argsort", ()),
                                ("argsort", (0,)), ("clip", (0, 2)), ("conj", ()), ("round", ()), ("dot", (np.arange(3.0),))):
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
        for function in (np.sum, np.mean, np.max, np.min, np.prod, np.std, np.var, np.any, np.all, np.argmax, np.count_nonzero):
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
        with self.assertRaises(NotImplementedError) as raised:
            np.linalg.tensorsolve(x, x)
        self.assertIn("tensorsolve", str(raised.exception))

    @unittest.skipIf("sort" in operation_pb2.Operation.DESCRIPTOR.fields_by_name, "the contract has them")
    def test_what_is_missing_names_itself(self):
        for name in ("sort", "cumulative_sum", "take_along_axis", "unique_values"):
            with self.assertRaises(NotImplementedError) as raised:
                getattr(st, name)(*(st.ones(3),) * (2 if name == "take_along_axis" else 1))
            self.assertIn(name, str(raised.exception))
            self.assertEqual(raised.exception.reason, "NOT_IMPLEMENTED")
        with self.assertRaises(NotImplementedError):
            st.ones(3)[st.ones(3) > 0]


if __name__ == "__main__":
    client_case.main()
