"""Linear algebra beside NumPy; decompositions, which are not unique, by what they must fulfil."""

import unittest

import numpy as np

import client_case
import stride as st

TYPES = (np.float32, np.float64, np.complex64, np.complex128)


def tolerance(dtype):
    return {"rtol": 2e-4, "atol": 2e-4} if np.finfo(dtype).eps > 1e-10 else {"rtol": 1e-11, "atol": 1e-11}


class LinalgTest(client_case.ClientCase):
    def setUp(self):
        self.random = np.random.default_rng(5)

    def matrix(self, shape, dtype):
        x = self.random.standard_normal(shape)
        if np.dtype(dtype).kind == "c":
            x = x + 1j * self.random.standard_normal(shape)
        return x.astype(dtype)

    def definite(self, shape, dtype):
        x = self.matrix(shape, dtype)
        return (x @ x.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1], dtype=dtype)).astype(dtype)

    def near(self, ours, numpys):
        numpys = np.asarray(numpys)
        self.same(ours, numpys, **(tolerance(numpys.dtype) if numpys.dtype.kind in "fc" else {}))

    def test_unique_results(self):
        for dtype in TYPES:
            for shape in ((1, 1), (4, 4), (2, 3, 5, 5)):
                x, d = self.matrix(shape, dtype), self.definite(shape, dtype)
                ours, definite = st.asarray(x), st.asarray(d)
                with self.subTest(dtype=dtype, shape=shape):
                    self.near(st.linalg.cholesky(definite), np.linalg.cholesky(d))
                    self.near(st.linalg.cholesky(definite, upper=True), np.linalg.cholesky(d).conj().swapaxes(-1, -2))
                    self.near(st.linalg.inv(definite), np.linalg.inv(d))
                    self.near(st.linalg.det(ours), np.linalg.det(x))
                    for one, other in zip(st.linalg.slogdet(ours), np.linalg.slogdet(x)):
                        self.near(one, other)
                    self.near(st.linalg.svdvals(ours), np.linalg.svdvals(x))
                    self.near(st.linalg.eigvalsh(definite), np.linalg.eigvalsh(d))
                    self.near(st.linalg.eigvalsh(definite, UPLO="U"), np.linalg.eigvalsh(d, UPLO="U"))
                    b = self.matrix((*shape[:-1], 2), dtype)
                    self.near(st.linalg.solve(definite, st.asarray(b)), np.linalg.solve(d, b))
                    vector = self.matrix(shape[-1:], dtype)
                    self.near(st.linalg.solve(definite, st.asarray(vector)), np.linalg.solve(d, vector))

    def test_qr(self):
        for dtype in TYPES:
            for shape in ((4, 4), (6, 3), (3, 6), (2, 5, 4), (2, 4, 5)):
                x = self.matrix(shape, dtype)
                for mode in ("reduced", "complete"):
                    with self.subTest(dtype=dtype, shape=shape, mode=mode):
                        q, r = st.linalg.qr(st.asarray(x), mode=mode)
                        expected = np.linalg.qr(x, mode=mode)
                        self.assertEqual((q.shape, r.shape), (expected.Q.shape, expected.R.shape))
                        self.near(q @ r, x)
                        hosted = np.asarray(q)
                        product = hosted.conj().swapaxes(-1, -2) @ hosted
                        np.testing.assert_allclose(product, np.broadcast_to(np.eye(q.shape[-1]), product.shape), atol=tolerance(dtype)["atol"])
                        np.testing.assert_array_equal(np.tril(np.asarray(r), -1), 0)
                self.assertEqual(st.linalg.qr(st.asarray(x), mode="r").shape, np.linalg.qr(x, mode="r").shape)

    def test_svd_and_eigh(self):
        for dtype in TYPES:
            for shape in ((4, 4), (6, 3), (3, 6), (2, 5, 4)):
                x = self.matrix(shape, dtype)
                for full in (False, True):
                    u, s, vh = st.linalg.svd(st.asarray(x), full_matrices=full)
                    expected = np.linalg.svd(x, full_matrices=full)
                    self.assertEqual([one.shape for one in (u, s, vh)], [one.shape for one in expected])
                    self.near(s, expected.S)
                    k = s.shape[-1]
                    self.near((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x)
            x = self.definite((2, 5, 5), dtype)
            w, v = st.linalg.eigh(st.asarray(x))
            self.near(w, np.linalg.eigh(x).eigenvalues)
            self.near(st.asarray(x) @ v - v * w[..., None, :], np.zeros_like(x))

    def test_made_of_others(self):
        for dtype in TYPES:
            x, y = self.matrix((3, 4), dtype), self.matrix((2, 4, 3), dtype)
            square = self.matrix((2, 3, 3), dtype)
            a, b, c = st.asarray(x), st.asarray(y), st.asarray(square)
            self.near(st.linalg.pinv(a), np.linalg.pinv(x))
            self.near(st.linalg.pinv(b), np.linalg.pinv(y))
            self.same(st.linalg.matrix_rank(b), np.linalg.matrix_rank(y))
            self.same(st.linalg.matrix_rank(st.asarray(np.ones((4, 4), dtype))), np.asarray(1))
            for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
                for keepdims in (False, True):
                    self.near(st.linalg.matrix_norm(b, ord=ord, keepdims=keepdims), np.linalg.matrix_norm(y, ord=ord, keepdims=keepdims))
            for ord in (0, 1, 2, 3, -1, np.inf, -np.inf, 0.5):
                for axis in (None, 0, (0, 2), -1):
                    self.near(st.linalg.vector_norm(b, axis=axis, ord=ord), np.linalg.vector_norm(y, axis=axis, ord=ord))
            for n in (-2, 0, 1, 2, 5):
                self.near(st.linalg.matrix_power(c, n), np.linalg.matrix_power(square, n))
            self.near(st.linalg.cross(a[:, :3], c), np.linalg.cross(x[:, :3], square))
            self.near(st.linalg.cross(c, c + 1, axis=-2), np.linalg.cross(square, square + 1, axis=-2))
            self.near(st.linalg.outer(a[0], a[1]), np.linalg.outer(x[0], x[1]))
            for offset in (-4, -2, -1, 0, 1, 3, 5):
                for one, other in ((a, x), (b, y), (st.matrix_transpose(b), y.swapaxes(-1, -2))):
                    self.same(st.linalg.diagonal(one, offset=offset), np.linalg.diagonal(other, offset=offset))
                    self.near(st.linalg.trace(one, offset=offset), np.linalg.trace(other, offset=offset))
            self.near(st.linalg.cond(c), np.linalg.cond(square))
            self.near(st.linalg.cond(c, "fro"), np.linalg.cond(square, "fro"))
            self.near(st.linalg.norm(b, axis=(2, 0)), np.linalg.norm(y, axis=(2, 0)))
            self.near(st.linalg.norm(a, 2), np.linalg.norm(x, 2))
            for right in (self.matrix((4, 2), dtype), self.matrix((4,), dtype)):
                ours, theirs = st.linalg.lstsq(b[0], st.asarray(right)), np.linalg.lstsq(y[0], right, rcond=None)
                self.near(ours[0], theirs[0])
                self.near(ours[1], np.atleast_1d(theirs[1]))
                self.assertEqual(ours[2], theirs[2])
                self.near(ours[3], theirs[3])

    def test_integers_and_empty(self):
        x = np.array([[2, 1], [1, 3]], np.int32)
        self.near(st.linalg.inv(st.asarray(x)), np.linalg.inv(x))
        self.near(st.linalg.det(st.asarray(x)), np.linalg.det(x))
        self.same(st.linalg.trace(st.asarray(x)), np.linalg.trace(x))
        for shape in ((0, 0), (2, 0, 0), (0, 3, 3)):
            empty = st.zeros(shape)
            self.same(st.linalg.det(empty), np.linalg.det(np.zeros(shape)))
            self.same(st.linalg.inv(empty), np.zeros(shape))
        q = st.linalg.qr(st.zeros((3, 0)), mode="complete").Q
        self.same(q, np.eye(3))
        # Where the product of the pivots leaves the range on its way, but not at its end.
        self.near(st.linalg.det(st.asarray(np.diag([1e200, 1e200, 1e-200, 1e-200]))), 1.0)

    def test_errors(self):
        singular = st.asarray(np.zeros((3, 3)))
        for function in (st.linalg.inv, st.linalg.cholesky, lambda x: st.linalg.solve(x, st.ones(3))):
            result = function(singular) + 1
            with self.assertRaises(st.LinAlgError) as raised:
                result.to_numpy()
            self.assertEqual(raised.exception.reason, "LINEAR_ALGEBRA")
            self.assertIsInstance(raised.exception, np.linalg.LinAlgError)
        self.assertEqual(float(st.linalg.det(singular)), 0.0)
        with self.assertRaises(st.LinAlgError):
            st.linalg.svd(st.full((3, 3), float("nan"))).S.to_numpy()
        with self.assertRaises(st.ShapeMismatch):
            st.linalg.inv(st.ones((2, 3)))
        with self.assertRaises(st.ShapeMismatch):
            st.linalg.solve(st.ones((2, 2)), st.ones(3))
        with self.assertRaises(st.ShapeMismatch):
            st.linalg.svdvals(st.ones(3))
        with self.assertRaises(st.DataTypeMismatch):
            st.linalg.inv(st.ones((2, 2), dtype=st.float16))
        self.near(st.linalg.inv(st.eye(2) * 2), np.eye(2) / 2)

    def test_eig(self):
        try:
            np.asarray(st.linalg.eigvals(st.ones((2, 2))))
        except st.Unimplemented as error:
            self.assertIn("cusolverDnXgeev", str(error))  # a GPU with CUDA before 12.8
            self.assertNotEqual(client_case.DEVICE_KIND, "cpu")
            return
        for dtype in TYPES:
            for shape in ((1, 1), (5, 5), (2, 4, 4)):
                x = self.matrix(shape, dtype)
                values, vectors = np.linalg.eig(st.asarray(x))
                self.assertEqual([one.dtype for one in (values, vectors)], [one.dtype for one in np.linalg.eig(x)])
                v, w = np.asarray(vectors), np.asarray(values)
                tolerance = 1e-4 if np.finfo(dtype).eps > 1e-10 else 1e-11
                np.testing.assert_allclose(x @ v, v * w[..., None, :], atol=tolerance)
                np.testing.assert_allclose(np.sort_complex(np.asarray(st.linalg.eigvals(st.asarray(x)))),
                                           np.sort_complex(np.linalg.eigvals(x).astype(w.dtype)), rtol=100 * tolerance, atol=100 * tolerance)
        # NumPy's function as NumPy has it, ours as the standard.
        self.near(np.linalg.eigvals(st.asarray([[2, 0], [0, 3]])), np.linalg.eigvals(np.array([[2, 0], [0, 3]])))
        self.near(st.linalg.eigvals(st.asarray([[2, 0], [0, 3]])), np.array([2.0, 3.0], complex))
        self.assertEqual(st.linalg.eig(st.ones((2, 2))).eigenvectors.dtype, st.complex128)
        with self.assertRaises(st.ShapeMismatch):
            st.linalg.eig(st.ones((2, 3)))

    def test_numpys_functions(self):
        x = self.definite((4, 4), np.float64)
        a = st.asarray(x)
        for function in (np.linalg.inv, np.linalg.cholesky, np.linalg.det, np.linalg.svdvals, np.linalg.eigvalsh, np.linalg.pinv,
                         np.linalg.matrix_rank, np.linalg.cond, np.linalg.norm, np.trace, np.diagonal):
            self.near(function(a), function(x))
        self.near(np.linalg.solve(a, a), np.eye(4))
        self.near(np.linalg.qr(a).R[0, 0] ** 2, np.linalg.qr(x).R[0, 0] ** 2)
        self.near(np.linalg.svd(a, full_matrices=False).S, np.linalg.svd(x).S)
        self.near(np.linalg.norm(a, ord=1, axis=0), np.linalg.norm(x, ord=1, axis=0))
        self.near(np.outer(a[0], a[1]), np.outer(x[0], x[1]))

    def test_numpys_dot_trace_and_diagonal(self):
        rng = np.random.default_rng(4)
        x, y, v = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4, 3)), rng.normal(size=4)
        for a, b in (
            (x, y),
            (x, v),
            (v, v),
            (x, y[0]),
            (x[0], y),
            (x, 2.0),
            (2.0, x),
            (v, y),
            (x, np.float32(2)),
            (x + 1j, y),
        ):
            ours = np.dot(*(st.asarray(one) if isinstance(one, np.ndarray) else one for one in (a, b)))
            self.same(ours, np.dot(a, b), rtol=1e-13)
        self.same(st.asarray(x).dot(v), x.dot(v), rtol=1e-13)
        self.same(st.dot([1, 2], [3, 4]), np.dot([1, 2], [3, 4]))
        for options in (
            {},
            {"offset": 1},
            {"offset": -1},
            {"axis1": 0, "axis2": 2},
            {"axis1": -1, "axis2": 0},
            {"offset": 1, "axis1": 2, "axis2": 1},
        ):
            self.same(np.diagonal(st.asarray(x), **options), np.diagonal(x, **options))
            self.same(np.trace(st.asarray(x), **options), np.trace(x, **options), rtol=1e-13)
        self.same(np.linalg.diagonal(st.asarray(x)), np.linalg.diagonal(x))  # of the last two axes
        for wrong in (lambda m, a: np.trace(a), lambda m, a: np.diagonal(a)):
            with self.assertRaises(ValueError):
                wrong(st, st.ones(3))


if __name__ == "__main__":
    client_case.main()
