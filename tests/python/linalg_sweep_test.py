"""Every function of linalg over sizes, shapes, batches, types and layouts. Each result must have a backward error of at
most 30 n eps.

By default matrices have at most 512 rows, so that the sweep fits into every run of the tests. STRIDE_SWEEP=full
continues to 4,096 rows; STRIDE_SWEEP_SECONDS bounds its time, and the test names the omitted sizes. The sizes run from
small to large, one test each.

A check costs less than its function: residuals are applied to a few random vectors, in double precision on the host.
For a vector w of independent normal numbers the mean of |R w|^2 is the square of R's Frobenius norm."""

import itertools
import os
import time
import unittest

import numpy as np

import client_case
import stride as st

TYPES = (np.float32, np.float64, np.complex64, np.complex128)
FULL = os.environ.get("STRIDE_SWEEP", "") == "full"
SECONDS = float(os.environ.get("STRIDE_SWEEP_SECONDS", "inf"))
SIZES = (1, 2, 31, 32, 33, 127, 500, 512)
LARGE_SIZES = (1000, 2000, 4096)
NUM_PROBES = 4
BEGIN = time.monotonic()


def adjoint(x):
    return x.conj().swapaxes(-1, -2)


def precise(x):
    """Converts to the host, in double precision."""
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def size_of(x):
    """Frobenius norms of matrices."""
    return np.sqrt((np.abs(x) ** 2).sum(axis=(-2, -1)))


class Matrices:
    """Random matrices, the same in every run."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def normal(self, shape, dtype=np.float64):
        x = self.random.standard_normal(shape)
        if np.dtype(dtype).kind == "c":
            x = x + 1j * self.random.standard_normal(shape)
        return x.astype(dtype)

    def _reflected(self, x):
        """H x for the reflection H at a random vector: unitary, of determinant -1."""
        v = self.normal((*x.shape[:-1], 1), x.dtype)
        v /= size_of(v)[..., None, None]
        return x - 2 * v @ (adjoint(v) @ x)

    def with_values(self, values, m, n, dtype):
        """m x n matrices with these singular values, in double precision. The determinant is their product."""
        x = np.zeros((*values.shape[:-1], m, n), np.complex128 if np.dtype(dtype).kind == "c" else np.float64)
        places = np.arange(values.shape[-1])
        x[..., places, places] = values
        return adjoint(self._reflected(adjoint(self._reflected(x))))

    def hermitian_with_values(self, values, dtype):
        n = values.shape[-1]
        v = self.normal((*values.shape[:-1], n, 1), np.complex128 if np.dtype(dtype).kind == "c" else np.float64)
        v /= size_of(v)[..., None, None]
        reflection = np.eye(n) - 2 * v @ adjoint(v)
        x = (reflection * values[..., None, :]) @ reflection if n <= 512 else self._product(v, values)
        return (x + adjoint(x)) / 2

    @staticmethod
    def _product(v, values):
        """H diag(values) H without a product of matrices."""
        x = -2 * v @ (adjoint(v) * values[..., None, :])
        places = np.arange(values.shape[-1])
        x[..., places, places] += values
        return x - 2 * (x @ v) @ adjoint(v)


def spectral(x):
    """An estimate of the 2-norm, from below."""
    if not x.size:
        return np.zeros(x.shape[:-2])
    v = np.random.default_rng(1).standard_normal((*x.shape[:-2], x.shape[-1], 1))
    for _ in range(8):
        v = adjoint(x) @ (x @ (v / np.maximum(size_of(v), 1e-300)[..., None, None]))
    return np.sqrt(size_of(v))


class Sweep(client_case.ClientCase):
    def setUp(self):
        self.matrices = Matrices(7)
        self.left_out = []

    def within(self, what, error, scale, n, dtype):
        """`error`, of each matrix, against 30 n eps times its `scale`."""
        bound = 30 * max(n, 1) * np.finfo(dtype).eps * np.maximum(np.asarray(scale, float), 1e-300)
        error = np.asarray(error, float)
        self.assertTrue(np.all(np.isfinite(error)), f"{what}: {error.ravel()[:5]}")
        self.assertTrue(np.all(error <= bound), f"{what}: {np.max(error / bound):.3g} of the bound")

    def probes(self, like, n):
        kind = np.complex128 if np.asarray(like).dtype.kind == "c" else np.float64
        return Matrices(9).normal((n, NUM_PROBES), kind)

    def residual(self, what, applied, scale, n, dtype):
        """The norm of a residual that was applied to probes."""
        self.within(what, size_of(applied) / np.sqrt(NUM_PROBES), scale, n, dtype)

    def unitary_columns(self, what, q, n, dtype):
        w = self.probes(q, q.shape[-1])
        self.residual(what, adjoint(q) @ (q @ w) - w, np.ones(q.shape[:-2]), n, dtype)

    def look(self, array, shape, dtype):
        """Checks the array's shape and type and returns it on the host, in double precision."""
        self.assertEqual((array.shape, array.dtype), (tuple(shape), np.dtype(dtype)))
        return precise(array)

    # --- functions: `x` on the host in its own type, `ours` the same on the device ---

    def check_solve(self, x, ours):
        *batch, n, _ = x.shape
        a, norm = precise(x), spectral(precise(x))
        for shape in ((n,), (*batch, n, 3)):
            b = self.matrices.normal(shape, x.dtype)
            y = self.look(st.linalg.solve(ours, st.asarray(b)), (*batch, n) if len(shape) == 1 else shape, x.dtype)
            columns, right = (y[..., None], precise(b)[..., None]) if len(shape) == 1 else (y, precise(b))
            self.within("solve", size_of(a @ columns - right), norm * size_of(columns) + size_of(right), n, x.dtype)

    def check_inv(self, x, ours):
        n = x.shape[-1]
        y, a, w = self.look(st.linalg.inv(ours), x.shape, x.dtype), precise(x), self.probes(x, n)
        self.residual("inv", a @ (y @ w) - w, spectral(a) * spectral(y), n, x.dtype)

    def check_det(self, x, ours):
        *batch, n, _ = x.shape
        real = np.finfo(x.dtype).dtype
        values = np.exp(self.matrices.random.uniform(-0.3, 0.3, (*batch, n)))
        values = values * np.exp(2j * np.pi * self.matrices.random.random(values.shape)) if x.dtype.kind == "c" else \
            values * self.matrices.random.choice([-1.0, 1.0], values.shape)
        known = st.asarray(self.matrices.with_values(values, n, n, x.dtype).astype(x.dtype))
        expected = values.prod(axis=-1)
        got = self.look(st.linalg.det(known), batch, x.dtype)
        self.within("det", np.abs(got - expected), np.abs(expected), n, x.dtype)
        sign, logarithm = st.linalg.slogdet(known)
        self.within(
            "slogdet",
            np.abs(self.look(logarithm, batch, real) - np.log(np.abs(values)).sum(axis=-1)),
            1 + np.zeros(batch),
            n,
            x.dtype,
        )
        self.within(
            "slogdet",
            np.abs(self.look(sign, batch, x.dtype) - expected / np.abs(expected)),
            1 + np.zeros(batch),
            n,
            x.dtype,
        )

    def check_cholesky(self, x, ours):
        *batch, n, _ = x.shape
        d = self.matrices.hermitian_with_values(1 + self.matrices.random.random((*batch, n)), x.dtype).astype(x.dtype)
        a, w = precise(d), self.probes(x, n)
        for upper in (False, True):
            f = self.look(st.linalg.cholesky(st.asarray(d), upper=upper), x.shape, x.dtype)
            lower = adjoint(f) if upper else f
            self.assertFalse(np.any(np.triu(lower, 1)))
            self.residual("cholesky", lower @ (adjoint(lower) @ w) - a @ w, spectral(a), n, x.dtype)

    def check_matrix_power(self, x, ours):
        *batch, n, _ = x.shape
        values = 1 + self.matrices.random.random((*batch, n)) / 4
        d = self.matrices.hermitian_with_values(values, x.dtype).astype(x.dtype)
        a, w = precise(d), self.probes(x, n)
        for power in (3, -2):
            y = self.look(st.linalg.matrix_power(st.asarray(d), power), x.shape, x.dtype)
            left, right = y @ w, w
            for _ in range(abs(power)):
                left, right = (left, a @ right) if power > 0 else (a @ left, right)
            self.residual("matrix_power", left - right, 2 + np.zeros(batch), n, x.dtype)

    def check_norm(self, x, ours):
        n, real = max(x.shape[-2:]), np.finfo(x.dtype).dtype
        a = np.abs(precise(x))
        for order, expected in (
            ("fro", size_of(a)),
            (1, a.sum(axis=-2).max(axis=-1)),
            (-np.inf, a.sum(axis=-1).min(axis=-1)),
        ):
            got = self.look(st.linalg.norm(ours, order, axis=(-2, -1)), x.shape[:-2], real)
            self.within(f"norm {order}", np.abs(got - expected), expected, n, x.dtype)
        got = self.look(st.linalg.vector_norm(ours, axis=-1), x.shape[:-1], real)
        self.within("vector_norm", np.abs(got - np.sqrt((a**2).sum(axis=-1))), np.sqrt((a**2).sum(axis=-1)), n, x.dtype)

    def check_qr(self, x, ours):
        *batch, m, n = x.shape
        a, w = precise(x), self.probes(x, n)
        for mode in ("reduced", "complete"):
            k = m if mode == "complete" else min(m, n)
            q, r = st.linalg.qr(ours, mode=mode)
            q, r = self.look(q, (*batch, m, k), x.dtype), self.look(r, (*batch, k, n), x.dtype)
            self.assertFalse(np.any(np.tril(r, -1)))
            self.residual("qr", q @ (r @ w) - a @ w, spectral(a), max(m, n), x.dtype)
            self.unitary_columns("qr: Q", q, max(m, n), x.dtype)
        alone = self.look(st.linalg.qr(ours, mode="r"), (*batch, min(m, n), n), x.dtype)
        self.within("qr: R", np.abs(size_of(alone) - size_of(a)), size_of(a), max(m, n), x.dtype)

    def check_eigh(self, x, ours):
        *batch, n, _ = x.shape
        h = ((x + adjoint(x)) / 2).astype(x.dtype)
        real, a, ours = np.finfo(x.dtype).dtype, precise(h), st.asarray(h)
        norm = spectral(a)
        for uplo in "LU":
            values, vectors = st.linalg.eigh(ours, UPLO=uplo)
            values, v = self.look(values, (*batch, n), real), self.look(vectors, x.shape, x.dtype)
            self.assertTrue(np.all(np.diff(values) >= 0))
            w = self.probes(v, n)
            self.residual("eigh", a @ (v @ w) - v @ (values[..., None] * w), norm, n, x.dtype)
            self.unitary_columns("eigh: vectors", v, n, x.dtype)
            if n > 512:
                break
        self.check_eigvalsh(ours, values, norm)

    def check_eigvalsh(self, ours, values, norm):
        alone = self.look(st.linalg.eigvalsh(ours), values.shape, np.finfo(ours.dtype).dtype)
        self.within("eigvalsh", np.abs(alone - values).max(axis=-1), norm, values.shape[-1], ours.dtype)

    def check_svd(self, x, ours, full=(False, True)):
        *batch, m, n = x.shape
        real, a, k, w = np.finfo(x.dtype).dtype, precise(x), min(m, n), self.probes(x, n)
        norm = spectral(a)
        for full_matrices in full:
            u, s, vh = st.linalg.svd(ours, full_matrices=full_matrices)
            u = self.look(u, (*batch, m, m if full_matrices else k), x.dtype)
            s = self.look(s, (*batch, k), real)
            vh = self.look(vh, (*batch, n if full_matrices else k, n), x.dtype)
            self.assertTrue(np.all(np.diff(s) <= 0) and np.all(s >= 0))
            self.residual("svd", u[..., :k] @ (s[..., None] * (vh[..., :k, :] @ w)) - a @ w, norm, max(m, n), x.dtype)
            self.unitary_columns("svd: U", u, max(m, n), x.dtype)
            self.unitary_columns("svd: Vh", adjoint(vh), max(m, n), x.dtype)
        alone = self.look(st.linalg.svdvals(ours), (*batch, k), real)
        self.within("svdvals", np.abs(alone - s).max(axis=-1), norm, max(m, n), x.dtype)

    def check_svd_reduced(self, x, ours):
        self.check_svd(x, ours, full=(False,))

    def check_eig(self, x, ours):
        *batch, n, _ = x.shape
        a, complex_type = precise(x), np.result_type(x.dtype, np.complex64)
        values, vectors = st.linalg.eig(ours)
        dtype = values.dtype
        self.assertIn(dtype, (complex_type, x.dtype))
        values, v = self.look(values, (*batch, n), dtype), self.look(vectors, x.shape, dtype)
        w = self.probes(v, n)
        self.residual("eig", a @ (v @ w) - v @ (values[..., None] * w), 2 * spectral(a), n, x.dtype)
        self.within(
            "eig: vectors",
            np.abs(np.sqrt((np.abs(v) ** 2).sum(axis=-2)) - 1).max(axis=-1),
            1 + np.zeros(batch),
            n,
            x.dtype,
        )
        self.check_eigvals(ours, a, st.linalg.eigvals(ours))

    def check_eigvals(self, ours, a, values):
        """Checks eigenvalues alone, by the traces of the matrix and of its square: they must be those of a matrix
        nearby."""
        *batch, n, _ = a.shape
        values = self.look(values, (*batch, n), values.dtype)
        norm = size_of(a)
        self.within(
            "eigvals", np.abs(values.sum(axis=-1) - np.trace(a, axis1=-2, axis2=-1)), np.sqrt(n) * norm, n, ours.dtype
        )
        self.within(
            "eigvals",
            np.abs((values**2).sum(axis=-1) - (a * a.swapaxes(-1, -2)).sum(axis=(-2, -1))),
            2 * norm**2,
            n,
            ours.dtype,
        )

    def check_pinv(self, x, ours):
        *batch, m, n = x.shape
        a = precise(x)
        y = self.look(st.linalg.pinv(ours), (*batch, n, m), x.dtype)
        w = self.probes(x, n)
        self.residual("pinv", a @ (y @ (a @ w)) - a @ w, spectral(a) ** 2 * spectral(y), max(m, n), x.dtype)

    def check_lstsq(self, x, ours):
        if x.ndim > 2:
            return  # NumPy's takes one matrix too
        m, n = x.shape
        a = precise(x)
        for shape in ((m,), (m, 2)):
            b = self.matrices.normal(shape, x.dtype)
            y, residuals, rank, s = st.linalg.lstsq(ours, st.asarray(b))
            self.assertEqual(
                (rank, s.shape, residuals.shape), (min(m, n), (min(m, n),), (shape[1:] or (1,)) if m > n else (0,))
            )
            y = self.look(y, (n, *shape[1:]), x.dtype).reshape(n, -1)
            right = precise(b).reshape(m, -1)
            left_over = right - a @ y
            norm = spectral(a)
            self.within(
                "lstsq",
                size_of(adjoint(a) @ left_over),
                norm * (norm * size_of(y) + size_of(right)),
                max(m, n),
                x.dtype,
            )
            if m > n:
                squares = (np.abs(left_over) ** 2).sum(axis=0)
                self.within(
                    "lstsq: residuals", np.abs(precise(residuals) - squares).max(), squares.max(), max(m, n), x.dtype
                )

    def check_known(self, x, ours):
        """Functions of the singular values alone: cond, matrix_rank, norms."""
        *batch, m, n = x.shape
        real, k = np.finfo(x.dtype).dtype, min(m, n)
        values = 1 + np.sort(self.matrices.random.random((*batch, k)))[..., ::-1]
        known = st.asarray(self.matrices.with_values(values, m, n, x.dtype).astype(x.dtype))
        for got, expected in (
            (st.linalg.cond(known), values[..., 0] / values[..., -1]),
            (st.linalg.cond(known, -2), values[..., -1] / values[..., 0]),
            (st.linalg.norm(known, 2, axis=(-2, -1)), values[..., 0]),
            (st.linalg.norm(known, "nuc", axis=(-2, -1)), values.sum(axis=-1)),
        ):
            self.within("cond, norm", np.abs(self.look(got, batch, real) - expected), expected, max(m, n), x.dtype)
        rank = k // 2
        values = values.copy()
        values[..., rank:] = 0
        deficient = st.asarray(self.matrices.with_values(values, m, n, x.dtype).astype(x.dtype))
        np.testing.assert_array_equal(np.asarray(st.linalg.matrix_rank(deficient)), np.full(batch, rank))
        np.testing.assert_array_equal(np.asarray(st.linalg.matrix_rank(known)), np.full(batch, k))
        if m == n:
            y = precise(st.linalg.cond(known, "fro"))
            expected = np.sqrt(
                (precise(known) ** 2 if x.dtype.kind != "c" else np.abs(precise(known)) ** 2).sum(axis=(-2, -1))
            )
            self.assertTrue(np.all(y >= expected / 2))

    DIRECT = (check_solve, check_inv, check_det, check_cholesky, check_matrix_power, check_norm, check_qr, check_eigh)
    ITERATIVE = (check_svd, check_eig)
    # The client derives these from others.
    DERIVED = (check_pinv, check_lstsq, check_known)

    def run_checks(self, cases):
        """Runs (check, matrix, its array) triples; collects failures and omits those after the time limit."""
        for check, x, ours in cases:
            name = f"{check.__name__[6:]} {x.shape} {x.dtype}"
            if time.monotonic() - BEGIN > SECONDS:
                self.left_out.append(name)
                continue
            begin = time.monotonic()
            with self.subTest(name):
                check(self, x, ours)
            if FULL and time.monotonic() - begin > 1:
                print(f"{time.monotonic() - begin:8.2f} s  {name}", flush=True)
        if self.left_out:
            print(f"left out after {SECONDS:g} s: {', '.join(self.left_out)}", flush=True)

    def square(self, n):
        """All functions; beyond 512 rows, the functions that the client derives from others, in one type each."""
        by_type = {}
        for dtype in TYPES:
            x = self.matrices.normal((n, n), dtype)
            by_type[dtype] = x, st.asarray(x)
        for checks in (self.DIRECT, self.ITERATIVE, self.DERIVED):
            for i, (check, dtype) in enumerate(itertools.product(checks, TYPES)):
                if n > 512 and checks is self.DERIVED and dtype is not TYPES[i // len(TYPES) % len(TYPES)]:
                    continue
                if n > 512 and check is Sweep.check_svd:
                    check = Sweep.check_svd_reduced
                yield check, *by_type[dtype]

    def test_tall_and_wide(self):
        shapes = [(1, 5), (5, 1), (33, 7), (7, 33), (32, 127), (127, 32), (500, 31), (31, 500)]
        if FULL:
            shapes += [(2000, 500), (500, 2000), (4096, 100), (100, 4096)]
        for shape in shapes:
            for dtype in TYPES:
                x = self.matrices.normal(shape, dtype)
                checks = (
                    Sweep.check_qr,
                    Sweep.check_svd_reduced if max(shape) > 1000 else Sweep.check_svd,
                    Sweep.check_norm,
                    *self.DERIVED,
                )
                self.run_checks((check, x, st.asarray(x)) for check in checks)

    def test_batches(self):
        for count, n in ((1, 1), (1, 32), (3, 2), (3, 33), (1000, 1), (1000, 3), (1000, 8)):
            for i, dtype in enumerate(TYPES):
                if count == 1000 and i != n % len(TYPES) and n != 3:
                    continue
                x = self.matrices.normal((count, n, n), dtype)
                self.run_checks((check, x, st.asarray(x)) for check in (*self.DIRECT, *self.ITERATIVE, *self.DERIVED))
        x = self.matrices.normal((2, 3, 5, 4), np.float32)
        self.run_checks(
            (check, x, st.asarray(x)) for check in (Sweep.check_qr, Sweep.check_svd, Sweep.check_norm, *self.DERIVED)
        )

    def test_layouts(self):
        """Views: transposed, every other row, reversed, a column of a larger array, one matrix for a whole batch."""
        for n, dtype in ((1, np.float64), (33, np.complex64), (64, np.float32), (127, np.float64)):
            whole = self.matrices.normal((2 * n, 2 * n), dtype)
            ours = st.asarray(whole)
            few = self.matrices.normal((n, n, 3), dtype)
            cases = [
                (whole[:n, :n].T, ours[:n, :n].T),
                (whole[::2, 1::2], ours[::2, 1::2]),
                (whole[n - 1::-1, :n], ours[n - 1::-1, :n]),
                (whole[n:, ::-2], ours[n:, ::-2]),
                (np.moveaxis(few, 2, 0), st.moveaxis(st.asarray(few), 2, 0)),
                (np.broadcast_to(whole[:n, :n], (2, n, n)), st.broadcast_to(ours[:n, :n], (2, n, n))),
            ]
            for x, view in cases:
                np.testing.assert_array_equal(x, np.asarray(view))
                self.run_checks((check, x, view) for check in (*self.DIRECT, *self.ITERATIVE, *self.DERIVED))

    def test_nothing(self):
        """Matrices without elements, compared with NumPy."""
        for shape, dtype in itertools.product(((0, 0), (2, 0, 0), (0, 3, 3)), TYPES):
            x, ours = np.zeros(shape, dtype), st.zeros(shape, dtype=dtype)
            for name in ("inv", "det", "cholesky", "eigvalsh", "svdvals", "eigvals"):
                with self.subTest(name, shape=shape, dtype=dtype):
                    # NumPy's functions on our arrays: the types of eig and eigvals are NumPy's there alone.
                    self.same(
                        getattr(np.linalg if name == "eigvals" else st.linalg, name)(ours), getattr(np.linalg, name)(x)
                    )
            for name in ("slogdet", "qr", "eigh", "svd", "eig"):
                with self.subTest(name, shape=shape, dtype=dtype):
                    for one, other in zip(
                        getattr(np.linalg if name == "eig" else st.linalg, name)(ours), getattr(np.linalg, name)(x)
                    ):
                        self.same(one, other)
            right = np.zeros((shape[-1], 2), dtype)
            self.same(st.linalg.solve(ours, st.asarray(right)), np.linalg.solve(x, right))
            self.same(st.linalg.matrix_power(ours, 3), np.linalg.matrix_power(x, 3))
            self.same(st.linalg.pinv(ours), np.linalg.pinv(x))
        for shape in ((0, 4), (4, 0), (2, 0, 3), (3, 2, 0)):
            x, ours = np.zeros(shape), st.zeros(shape)
            for mode in ("reduced", "complete"):
                for one, other in zip(st.linalg.qr(ours, mode=mode), np.linalg.qr(x, mode=mode)):
                    self.same(one, other)
            for full in (False, True):
                for one, other in zip(st.linalg.svd(ours, full_matrices=full), np.linalg.svd(x, full_matrices=full)):
                    self.same(one, other)
            self.same(st.linalg.svdvals(ours), np.linalg.svdvals(x))
            self.same(st.linalg.pinv(ours), np.linalg.pinv(x))
            self.same(st.linalg.norm(ours, axis=(-2, -1)), np.linalg.norm(x, axis=(-2, -1)))
        for m, n in ((0, 3), (3, 0)):
            b = np.ones(m)
            for one, other in zip(
                st.linalg.lstsq(st.zeros((m, n)), st.asarray(b)), np.linalg.lstsq(np.zeros((m, n)), b, rcond=None)
            ):
                np.testing.assert_array_equal(np.asarray(one), other)
        with self.assertRaises(st.LinAlgError):
            st.linalg.cond(st.zeros((0, 0)))

    def test_singular(self):
        for n, dtype in itertools.product((1, 2, 33, 128), TYPES):
            with self.subTest(n=n, dtype=dtype):
                x = np.zeros((3, n, n), dtype)
                x[:2] = np.eye(n)
                ours = st.asarray(x)
                for function in (
                    st.linalg.inv,
                    st.linalg.cholesky,
                    lambda a: st.linalg.solve(a, st.ones(a.shape[-1], dtype=a.dtype)),
                    lambda a: st.linalg.matrix_power(a, -1),
                ):
                    with self.assertRaisesRegex(st.LinAlgError, "2"):
                        function(ours).to_numpy()
                zero, real = np.zeros((n, n), dtype), np.finfo(dtype).dtype
                self.same(st.linalg.det(ours), np.array([1, 1, 0], dtype))
                for one, other in zip(st.linalg.slogdet(ours), np.linalg.slogdet(x)):
                    self.same(one, other)
                for order in (None, 2, 1, "fro", np.inf):
                    self.same(st.linalg.cond(ours, order), np.linalg.cond(x, order), rtol=1e-5)
                    self.same(st.linalg.cond(st.asarray(zero), order), np.asarray(np.inf, real))
                self.same(st.linalg.matrix_rank(ours), np.array([n, n, 0]))
                self.same(st.linalg.pinv(ours), x)
                self.same(st.linalg.eigvalsh(ours), np.linalg.eigvalsh(x))
                self.same(np.linalg.eigvals(ours), np.linalg.eigvals(x))
                ones = np.ones((n, n), dtype)
                self.same(st.linalg.matrix_rank(st.asarray(ones)), np.asarray(1))
                y, _, rank, s = st.linalg.lstsq(st.asarray(ones), st.ones(n, dtype=dtype))
                self.assertEqual(rank, 1)
                np.testing.assert_allclose(np.asarray(y), np.full(n, 1 / n), rtol=1e-4)

    def test_numbers_that_are_not_finite(self):
        for n, dtype in itertools.product((2, 40), TYPES):
            for bad in (np.nan, np.inf):
                x = np.eye(n, dtype=dtype)
                x[n - 1, 0] = bad
                with self.subTest(n=n, dtype=dtype, bad=bad):
                    for function in (st.linalg.eig, st.linalg.eigvals):
                        with self.assertRaises(st.LinAlgError):
                            np.asarray(function(st.asarray(x))[0])
                    self.assertFalse(np.isfinite(np.asarray(st.linalg.norm(st.asarray(x)))))

    def test_eigenvalues_are_real_where_numpys_are(self):
        for dtype in TYPES:
            for x in (
                np.array([[2, 1], [0, 3]], dtype),
                np.array([[0, -1], [1, 0]], dtype),
                np.array([[[2, 0], [0, 3]], [[0, -1], [1, 0]]], dtype),
            ):
                with self.subTest(dtype=dtype, x=x.tolist()):
                    ours, theirs = np.linalg.eig(st.asarray(x)), np.linalg.eig(x)
                    self.assertEqual([one.dtype for one in ours], [one.dtype for one in theirs])
                    self.same(np.linalg.eigvals(st.asarray(x)), np.linalg.eigvals(x), rtol=1e-5)
                    self.assertEqual(st.linalg.eigvals(st.asarray(x)).dtype, theirs[0].dtype)
                    standard = st.asarray(x).__array_namespace__(api_version="2025.12").linalg
                    self.assertEqual(standard.eigvals(st.asarray(x)).dtype.kind, "c")
                    self.same(ours.eigenvalues, theirs.eigenvalues, rtol=1e-5)
                    self.assertEqual(st.jit(st.linalg.eigvals)(st.asarray(x)).dtype.kind, "c")

    def test_vectors_and_types_together(self):
        for x in (np.zeros(3), np.array([0, 2, 0]), np.array(5.0), np.array(0)):
            self.assertEqual(int(st.linalg.matrix_rank(st.asarray(x))), np.linalg.matrix_rank(x))
        a, b = self.matrices.normal((6, 4), np.float32), self.matrices.normal((6, 2), np.float64)
        ours, theirs = st.linalg.lstsq(st.asarray(a), st.asarray(b)), np.linalg.lstsq(a, b, rcond=None)
        for one, other in zip((*ours[:2], ours[3]), (*theirs[:2], theirs[3])):
            self.same(one, other, rtol=1e-9)


def _square(n):
    return lambda self: self.run_checks(self.square(n))


for _n in (*SIZES, *(LARGE_SIZES if FULL else ())):
    setattr(Sweep, f"test_{_n:04}_rows", _square(_n))


if __name__ == "__main__":
    client_case.main()
