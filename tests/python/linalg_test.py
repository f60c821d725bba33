"""Linear algebra, compared with NumPy. Decompositions, which are not unique, are tested by their definitions."""

import inspect
import unittest

import numpy as np

import client_case
import stride as st
from stride import _decompositions, _norms

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
                        np.testing.assert_allclose(product, np.broadcast_to(np.eye(q.shape[-1]), product.shape),
                                atol=tolerance(dtype)["atol"])
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
                    self.near(st.linalg.matrix_norm(b, ord=ord, keepdims=keepdims),
                            np.linalg.matrix_norm(y, ord=ord, keepdims=keepdims))
            for ord in (0, 1, 2, 3, -1, np.inf, -np.inf, 0.5):
                for axis in (None, 0, (0, 2), -1):
                    self.near(st.linalg.vector_norm(b, axis=axis, ord=ord),
                            np.linalg.vector_norm(y, axis=axis, ord=ord))
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
                                           np.sort_complex(np.linalg.eigvals(x).astype(w.dtype)), rtol=100 * tolerance,
                                                   atol=100 * tolerance)
        for rows in ([[2, 0], [0, 3]], [[0, 1], [-1, 0]]):
            for function in (np.linalg.eigvals, st.linalg.eigvals, lambda x: st.linalg.eig(x).eigenvalues):
                self.near(function(st.asarray(rows)), np.linalg.eigvals(np.array(rows)))
        vectors = st.linalg.eig(st.asarray([[2.0, 1], [1, 2]])).eigenvectors
        self.assertEqual(vectors.dtype, np.linalg.eig(np.eye(2)).eigenvectors.dtype)
        self.assertEqual(vectors.strides, (2 * vectors.itemsize, vectors.itemsize))
        # The standard's are always complex.
        for version in ("2024.12", "2025.12"):
            standard = st.ones(1).__array_namespace__(api_version=version).linalg
            self.near(standard.eigvals(st.asarray([[2, 0], [0, 3]])), np.array([2.0, 3.0], complex))
            self.assertEqual(standard.eig(st.ones((2, 2))).eigenvectors.dtype, st.complex128)
            self.assertIs(standard.inv, st.linalg.inv)
        with self.assertRaises(st.ShapeMismatch):
            st.linalg.eig(st.ones((2, 3)))

    def test_numpys_functions(self):
        x = self.definite((4, 4), np.float64)
        a = st.asarray(x)
        for function in (np.linalg.inv, np.linalg.cholesky, np.linalg.det, np.linalg.svdvals, np.linalg.eigvalsh,
                np.linalg.pinv,
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
        self.same(np.linalg.diagonal(st.asarray(x)), np.linalg.diagonal(x))  # over the last two axes
        for wrong in (lambda m, a: np.trace(a), lambda m, a: np.diagonal(a)):
            with self.assertRaises(ValueError):
                wrong(st, st.ones(3))

    def both(self, name, *arguments, **options):
        """Compares our result, by the module and by NumPy's function, with NumPy's."""
        ours = [st.asarray(one) if isinstance(one, np.ndarray) else one for one in arguments]
        expected = getattr(np.linalg, name)(*arguments, **options)
        for function in (getattr(st.linalg, name), getattr(np.linalg, name)):
            result = function(*ours, **options)
            if isinstance(expected, tuple):
                self.assertEqual(type(result).__name__, type(expected).__name__)
                self.assertEqual(len(result), len(expected))
                for one, other in zip(result, expected):
                    self.near(one, other)
            else:
                self.near(result, expected)

    def test_examples(self):
        self.run_examples(st.linalg, _decompositions, _norms)

    def test_public_names(self):
        """Whatever numpy.linalg has, with its parameters by position and by name."""
        self.assertEqual([name for name in np.linalg.__all__ if not hasattr(st.linalg, name)], [])
        self.assertEqual(set(np.linalg.__all__) - set(st.linalg.__all__), set())
        for name in np.linalg.__all__:
            ours = getattr(st.linalg, name)
            self.assertTrue(ours.__doc__, name)
            if isinstance(ours, type):
                continue
            self.assertIn(">>>", ours.__doc__ or "", name)
            theirs = [one for one in inspect.signature(getattr(np.linalg, name)).parameters.values()]
            known = {one.name: one for one in inspect.signature(ours).parameters.values()}
            for place, one in enumerate(theirs):
                if one.kind is one.POSITIONAL_ONLY:
                    self.assertGreater(len(known), place, name)
                else:
                    self.assertIn(one.name, known, name)

    def test_keywords(self):
        for dtype in TYPES:
            x, d = self.matrix((2, 4, 3), dtype), self.definite((2, 3, 3), dtype)
            hermitian = (d - 5 * np.eye(3)).astype(dtype)  # with eigenvalues of either sign
            for options in ({"compute_uv": False}, {"full_matrices": False, "compute_uv": False}):
                self.both("svd", x, **options)
            self.both("svd", hermitian, hermitian=True, compute_uv=False)
            u, s, vh = st.linalg.svd(st.asarray(hermitian), hermitian=True)
            self.near(s, np.linalg.svd(hermitian, hermitian=True).S)
            self.near((u * s[..., None, :]) @ vh, hermitian)
            singular = np.zeros((3, 3), dtype)
            singular[0, 0] = -2
            u, s, vh = st.linalg.svd(st.asarray(singular), hermitian=True)
            self.near(u @ st.conj(st.matrix_transpose(u)), np.eye(3, dtype=dtype))
            self.near(vh @ st.conj(st.matrix_transpose(vh)), np.eye(3, dtype=dtype))
            self.near((u * s) @ vh, singular)
            self.both("svdvals", x)
            for options in ({}, {"tol": 0.5}, {"tol": np.array([0.5, 100.0])}, {"rtol": 0.5},
                    {"rtol": np.array([0.1, 0.9])}):
                self.both("matrix_rank", x, **options)
            self.both("matrix_rank", hermitian, hermitian=True)
            self.both("matrix_rank", hermitian, None, True)
            for options in ({}, {"rcond": 0.3}, {"rcond": np.array([0.1, 0.9])}, {"rtol": None}, {"rtol": 0.3}):
                self.both("pinv", x, **options)
            self.both("pinv", hermitian, hermitian=True)
            self.both("eigvalsh", d, "U")
            self.both("cholesky", d, upper=True)
            for p in (None, 1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc"):
                self.both("cond", d, p)
            self.both("cond", x)
            self.both("trace", x, offset=1)
            self.both("diagonal", x, offset=-1)
            self.both("matrix_transpose", x)
            self.both("outer", x[0, 0], x[0, 1])
            self.both("cross", x[0], x[1])
            self.both("cross", x[:, :3], d, axis=1)
            self.both("vecdot", x, x[0, 0])
            self.both("vecdot", x, x, axis=0)
            self.both("tensordot", x, d, axes=((2,), (1,)))
            self.both("matmul", x, d)
        for name, options in (("matrix_rank", {"tol": 1.0, "rtol": 1.0}), ("pinv", {"rcond": 1.0, "rtol": 1.0})):
            with self.assertRaises(ValueError):
                getattr(st.linalg, name)(st.ones((2, 2)), **options)
        with self.assertRaises(ValueError):
            st.linalg.eigh(st.ones((2, 2)), UPLO="X")
        with self.assertRaises(TypeError):
            st.linalg.matrix_power(st.ones((2, 2)), 1.5)
        # A sum of whole numbers of a narrow type, in the type asked for.
        self.same(st.linalg.trace(st.full((3, 3), 100, dtype=st.int8), dtype=st.int8),
                np.linalg.trace(np.full((3, 3), 100, np.int8), dtype=np.int8))

    def test_norms(self):
        integers = np.arange(24).reshape(2, 3, 4) - 7
        values = (self.matrix((2, 3, 4), np.float64), self.matrix((2, 3, 4), np.complex64), integers,
                  integers.astype(np.float32))
        for number, value in enumerate(values):
            for ord in (None, 0, 1, 2, -1, -2, 0.5, 3, np.inf, -np.inf):
                for axis, keepdims in ((0, False), (1, True), (-1, False)) if number == 0 else ((1, False),):
                    self.both("norm", value, ord, axis, keepdims)
                self.both("norm", value[0, 1], ord)
            for ord in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
                pairs = (((0, 1), False), ((1, 0), True), ((-1, 0), False)) if number == 0 else (((2, 1), True),)
                for axis, keepdims in pairs:
                    self.both("norm", value, ord=ord, axis=axis, keepdims=keepdims)
                self.both("norm", value[0], ord, keepdims=number == 0)
            self.both("norm", value)
            self.both("norm", value, keepdims=True)
        self.both("norm", np.array(3.0))
        self.both("norm", np.zeros(0))
        self.both("norm", np.array([np.nan, 1.0]))
        self.both("norm", np.array([np.inf, -np.inf]))
        self.both("norm", np.array([[np.nan, 1.0], [2.0, 3.0]]), 1)
        for shape in ((0, 3), (3, 0), (1, 1)):
            for ord in (None, "fro", 1) if 0 in shape else (None, "fro", "nuc", 1, 2):
                self.both("norm", np.ones(shape), ord)
        for ord in (1, 2, np.inf, "fro", "nuc"):
            for shape in ((0, 3), (3, 0), (2, 0, 3)):
                self.both("matrix_norm", np.ones(shape), ord=ord)
            if not isinstance(ord, str):
                self.both("vector_norm", np.ones(0), ord=ord)
                self.both("vector_norm", np.ones((2, 0)), ord=ord, axis=1)
        for arguments in ((np.ones(3), "fro"), (np.ones((2, 2)), 3), (np.ones((2, 2, 2)), 2),
                (np.ones((2, 2, 2)), None, (0, 1, 2)), (np.ones((2, 2)), "nuclear"),
                          (np.ones((2, 2)), None, (0, 0)), (np.ones((2, 2)), None, 2), (np.ones((2, 2)), None, (0, 2))):
            with self.subTest(arguments=arguments[1:]):
                for module, convert in ((np, np.asarray), (st, st.asarray)):
                    with self.assertRaises(ValueError):
                        module.linalg.norm(convert(arguments[0]), *arguments[1:])

    def test_modes_of_qr(self):
        for dtype in TYPES:
            for shape in ((4, 4), (5, 3), (3, 5), (2, 4, 3), (1, 1), (3, 1), (1, 3), (3, 0), (0, 3)):
                x = self.matrix(shape, dtype)
                with self.subTest(dtype=dtype, shape=shape):
                    ours, theirs = st.linalg.qr(st.asarray(x), mode="raw"), np.linalg.qr(x, mode="raw")
                    for one, other in zip(ours, theirs):
                        self.near(one, other)
        self.near(st.linalg.qr(st.asarray(np.array([[-1.0, 2.0], [0.0, 3.0]])), "raw")[1],
                np.linalg.qr(np.array([[-1.0, 2.0], [0.0, 3.0]]), "raw")[1])
        x = self.matrix((4, 3), np.float64)
        with self.assertWarns(DeprecationWarning):
            full = st.linalg.qr(st.asarray(x), mode="full")
        self.assertEqual([one.shape for one in full], [(4, 3), (3, 3)])
        with self.assertWarns(DeprecationWarning):
            self.assertEqual(st.linalg.qr(st.asarray(x), mode="economic").shape, (4, 3))
        with self.assertRaises(ValueError):
            st.linalg.qr(st.asarray(x), mode="other")

    def test_products_of_several(self):
        for dtype in (np.float64, np.complex64, np.int64):
            chain = [self.matrix(shape, dtype if dtype != np.int64 else np.float64)
                    for shape in ((2, 30), (30, 3), (3, 20), (20, 4))]
            chain = [(10 * one).astype(dtype) for one in chain] if dtype == np.int64 else chain
            first, last = chain[0][0], chain[-1][:, 0]
            for arrays in (chain[:2], chain[:3], chain, [first, *chain[1:]], [*chain[:-1], last],
                    [first, *chain[1:-1], last], [first, chain[1]], [chain[2], last], [first, first]):
                ours = [st.asarray(one) for one in arrays]
                expected = np.linalg.multi_dot(arrays)
                self.near(st.linalg.multi_dot(ours), expected)
                self.near(np.linalg.multi_dot(ours), expected)
                out = st.zeros(expected.shape, dtype=expected.dtype)
                self.assertIs(st.linalg.multi_dot(ours, out=out), out)
                self.near(out, expected)
        for arrays, error in (([np.ones((2, 2))], ValueError), ([np.ones((2, 3)), np.ones((2, 3))], ValueError),
                ([np.ones((2, 2, 2)), np.ones((2, 2)), np.ones((2, 2))], np.linalg.LinAlgError),
                              ([np.ones((2, 2)), np.ones(2), np.ones((2, 2))], np.linalg.LinAlgError)):
            for module, convert in ((np, np.asarray), (st, st.asarray)):
                with self.assertRaises(error):
                    module.linalg.multi_dot([convert(one) for one in arrays])

    def test_equations_of_tensors(self):
        for dtype in TYPES:
            a = self.definite((6, 6), dtype)
            self.both("tensorsolve", a.reshape(2, 3, 6), self.matrix((2, 3), dtype))
            self.both("tensorsolve", a.reshape(6, 3, 2), self.matrix((6,), dtype))
            self.both("tensorsolve", a.reshape(2, 3, 6).transpose(2, 0, 1), self.matrix((2, 3), dtype), (0,))
            self.both("tensorinv", a.reshape(6, 2, 3), 1)
            self.both("tensorinv", a.reshape(2, 3, 3, 2))
        for function in (lambda m, one: m.linalg.tensorsolve(one((2, 3, 4)), one((2, 3))), lambda m,
                one: m.linalg.tensorinv(one((2, 3, 4)))):
            for module in (np, st):
                with self.assertRaises(np.linalg.LinAlgError):
                    function(module, module.ones)
        with self.assertRaises(ValueError):
            st.linalg.tensorinv(st.ones((2, 2)), 0)

    def test_errors_are_numpys(self):
        """Shapes that do not fit: the same class, or one that is both."""
        for name, *arguments in (
                ("inv", (2, 3)), ("inv", (3,)), ("det", (2, 3)), ("slogdet", (3,)), ("cholesky", (2, 3)),
                ("eig", (2, 3)), ("eigh", (2, 3)), ("eigvals", (2, 3)), ("eigvalsh", (3,)),
                ("qr", (3,)), ("svd", (3,)), ("solve", (2, 3), (2,)), ("matrix_power", (2, 3), 2),
                ("matrix_power", (3,), 2), ("lstsq", (2, 3), (3,)), ("lstsq", (3,), (3,)),
                ("lstsq", (2, 2), (2, 2, 2)), ("pinv", (3,)), ("cond", (0, 3))):
            with self.subTest(name=name, arguments=arguments):
                for module in (np, st):
                    with self.assertRaises(np.linalg.LinAlgError):
                        getattr(module.linalg, name)(*(module.ones(one) if isinstance(one, tuple) else one
                                for one in arguments))
        for name, *arguments in (("solve", (2, 2), (3,)), ("solve", (2, 2), (3, 1)), ("cross", (4,), (4,)),
                ("vecdot", (2,), (3,))):
            for module in (np, st):
                with self.assertRaises(ValueError):
                    getattr(module.linalg, name)(*map(module.ones, arguments))
        for name in ("inv", "svd", "eigh", "qr"):
            for module in (np, st):
                with self.assertRaises(TypeError):
                    getattr(module.linalg, name)(module.ones((2, 2), dtype=np.float16))

    def test_least_squares_equal_numpys(self):
        for shape in ((5, 3), (3, 5), (4, 4), (5, 0), (0, 3)):
            x = self.matrix(shape, np.float64)
            for right in (self.matrix((shape[0],), np.float64), self.matrix((shape[0], 2), np.float64)):
                for rcond in (None, -1, 0.5):
                    ours, theirs = st.linalg.lstsq(st.asarray(x), st.asarray(right), rcond), np.linalg.lstsq(x, right,
                            rcond)
                    with self.subTest(shape=shape, right=right.shape, rcond=rcond):
                        self.assertEqual(ours[2], theirs[2])
                        for one, other in ((ours[0], theirs[0]), (ours[1], theirs[1]), (ours[3], theirs[3])):
                            self.near(one, other)
        low = np.outer(np.arange(5.0), np.arange(1.0, 4.0))
        ours, theirs = st.linalg.lstsq(st.asarray(low), st.ones(5)), np.linalg.lstsq(low, np.ones(5), rcond=None)
        self.assertEqual((ours[2], ours[1].shape), (theirs[2], theirs[1].shape))
        self.near(ours[0], theirs[0])

    def test_lists(self):
        """Nested lists, which NumPy accepts as arrays."""
        for name, *arguments in (("inv", [[2, 1], [1, 3]]), ("det", [[2.0, 1.0], [1.0, 3.0]]), ("norm", [3, 4]),
                ("solve", [[2, 0], [0, 4]], [1, 1]), ("matrix_rank", [[1, 1], [1, 1]]),
                                 ("cross", [1, 2, 3], [4, 5, 6]), ("outer", [1, 2], [3, 4]),
                                 ("eigvalsh", [[2, 1], [1, 3]])):
            self.near(getattr(st.linalg, name)(*arguments), getattr(np.linalg, name)(*arguments))


if __name__ == "__main__":
    client_case.main()
