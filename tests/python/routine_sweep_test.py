"""Compares library operations over sizes and layouts with NumPy: sort, search, scans, reductions, products, transforms,
random numbers, indices.

By default arrays have at most 2**17 + 1 elements. STRIDE_SWEEP=full adds 1e6, 2**20 - 1 to 2**20 + 1 and 1e8 elements,
where 1e8 runs the operations whose NumPy reference takes seconds. STRIDE_SWEEP_SECONDS bounds the time of the sweep,
and the test names the omitted sizes."""

import itertools
import os
import time
import unittest

import numpy as np

import client_case
import stride as st

FULL = os.environ.get("STRIDE_SWEEP", "") == "full"
SECONDS = float(os.environ.get("STRIDE_SWEEP_SECONDS", "inf"))
BEGIN = time.monotonic()
EXPONENTS = (5, 8, 10, 11, 13, 17)
SIZES = sorted({0, 1, 2, 3} | {2**k + d for k in EXPONENTS for d in (-1, 0, 1)})
LARGE = (10**6, 2**20 - 1, 2**20, 2**20 + 1)
HUGE = 10**8
TYPES = (
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32,
    np.float64,
)


def eps(dtype):
    return float(np.finfo(dtype).eps)


def bisected(row, value, side):
    """The place of `value` that halving the row finds, with NumPy's order: NaN is after all numbers."""

    def before(a, b):
        return a < b or (b != b and a == a)

    low, high = 0, len(row)
    while low < high:
        middle = (low + high) // 2
        if before(row[middle], value) if side == "left" else not before(value, row[middle]):
            low = middle + 1
        else:
            high = middle
    return low


class Numbers:
    """Random arrays, the same in every run."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def of(self, dtype, shape):
        dtype = np.dtype(dtype)
        if dtype.kind == "b":
            return self.random.integers(0, 2, shape).astype(bool)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            return self.random.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
        if dtype.kind == "c":
            return (self.random.standard_normal(shape) + 1j * self.random.standard_normal(shape)).astype(dtype)
        return self.random.standard_normal(shape).astype(dtype)

    def repeated(self, dtype, shape):
        """Few different values, so that the order among equals is visible."""
        return self.random.integers(0, 7, shape).astype(dtype)

    def with_nan(self, dtype, shape):
        x = self.of(dtype, shape)
        if x.size > 3:
            x.reshape(-1)[self.random.integers(0, x.size, max(1, x.size // 50))] = np.nan
            x.reshape(-1)[0], x.reshape(-1)[-1] = np.inf, -np.inf
        return x


class RoutineSweep(client_case.ClientCase):
    def setUp(self):
        self.numbers = Numbers(11)

    def sizes(self, sizes=SIZES):
        for n in (*sizes, *(LARGE if FULL else ())):
            if time.monotonic() - BEGIN > SECONDS:
                print(f"{self.id()}: left out from {n} elements on")
                return
            with self.subTest(n=n):
                yield n

    # --- order ---

    def test_sort_and_argsort(self):
        for n in self.sizes():
            for dtype in TYPES if n in (0, 1, 255, 1025) else (np.int64, np.float32, np.uint8):
                x = self.numbers.of(dtype, n)
                ours = st.asarray(x)
                self.same(st.sort(ours), np.sort(x))
                self.same(st.sort(ours, descending=True), np.sort(x)[::-1])
                few = self.numbers.repeated(dtype, n)
                self.same(st.argsort(st.asarray(few)), np.argsort(few, kind="stable"))

    def test_sort_of_nan_and_infinities(self):
        for n in self.sizes():
            for dtype in (np.float16, np.float32, np.float64):
                x = self.numbers.with_nan(dtype, n)
                self.same(st.sort(st.asarray(x)), np.sort(x))
                self.same(st.argsort(st.asarray(x)), np.argsort(x, kind="stable"))

    def test_sort_along_any_axis_of_permuted_arrays(self):
        x = self.numbers.of(np.float32, (31, 65, 33))
        ours = st.asarray(x)
        for order in itertools.permutations(range(3)):
            for axis in range(-3, 3):
                self.same(st.sort(st.permute_dims(ours, order), axis=axis), np.sort(x.transpose(order), axis=axis))
        for shape in ((1000, 1025), (3, 70000), (70000, 3)):
            x = self.numbers.of(np.int32, shape)
            for axis in (0, 1):
                self.same(st.argsort(st.asarray(x), axis=axis), np.argsort(x, axis=axis, kind="stable"))

    def test_unique(self):
        for n in self.sizes():
            for dtype in (np.int64, np.float32, np.uint8):
                x = self.numbers.repeated(dtype, n) if n % 2 else self.numbers.of(dtype, n)
                values, counts = np.unique(x, return_counts=True)
                found = st.unique_counts(st.asarray(x))
                self.same(found.values, values)
                self.assertTrue(np.array_equal(np.asarray(found.counts), counts))

    def test_searchsorted(self):
        for n in self.sizes():
            x = np.sort(self.numbers.of(np.float32, n))
            keys = np.concatenate([self.numbers.of(np.float32, 257), x[:100]])
            for side in ("left", "right"):
                self.same(
                    st.searchsorted(st.asarray(x), st.asarray(keys), side=side), np.searchsorted(x, keys, side=side)
                )

    def test_searchsorted_out_of_order(self):
        """The places are those of a binary search for one value, which begins with the whole row. NumPy's own places
        in a row without order differ by version."""
        for n in self.sizes():
            x = self.numbers.of(np.float32, n)
            keys = np.concatenate([self.numbers.of(np.float32, 130), x[:30], [np.nan, np.inf, -np.inf]]).astype(x.dtype)
            for side in ("left", "right"):
                want = np.array([bisected(x, key, side) for key in keys])
                self.same(st.searchsorted(st.asarray(x), st.asarray(keys), side=side), want)

    def test_top_k(self):
        for n in self.sizes():
            x = self.numbers.of(np.float32, n)
            for k in {min(1, n), min(7, n), min(513, n), n if n < 9000 else 700}:
                values, places = st.top_k(st.asarray(x), k)
                self.same(values, np.sort(x)[::-1][:k])
                self.assertTrue(np.array_equal(x[np.asarray(places)], np.asarray(values)))

    def test_medians_and_quantiles(self):
        for n in self.sizes():
            if not n:
                continue
            for dtype in (np.float32, np.float64, np.int16, np.float16):
                x = self.numbers.of(dtype, n)
                self.assertEqual(np.asarray(st.median(st.asarray(x))), np.median(x), (n, dtype))
            x = self.numbers.of(np.float64, n)
            for q in (0.0, 0.3, [0.1, 0.5, 0.99], np.linspace(0, 1, 11)):
                np.testing.assert_allclose(
                    np.asarray(st.quantile(st.asarray(x), q)), np.quantile(x, q), rtol=4 * eps(np.float64)
                )
            with_nan = self.numbers.with_nan(np.float32, n)
            self.assertTrue(np.isnan(np.asarray(st.median(st.asarray(with_nan)))) == np.isnan(np.median(with_nan)))
            self.assertEqual(
                np.nan_to_num(np.asarray(st.nanmedian(st.asarray(with_nan)))), np.nan_to_num(np.nanmedian(with_nan))
            )

    def test_medians_along_any_axis_of_permuted_arrays(self):
        x = self.numbers.with_nan(np.float32, (17, 1300, 3))
        ours = st.asarray(x)
        for order in itertools.permutations(range(3)):
            for axis in (0, 1, 2, (0, 2), (1, 2)):
                mine, theirs = ours.transpose(order), x.transpose(order)
                self.same(st.median(mine, axis=axis), np.median(theirs, axis=axis))
                self.same(st.nanmedian(mine, axis=axis), np.nanmedian(theirs, axis=axis))
                np.testing.assert_allclose(
                    np.asarray(st.nanquantile(mine, [0.25, 0.5], axis=axis)),
                    np.nanquantile(theirs, [0.25, 0.5], axis=axis), rtol=4 * eps(np.float32),
                )

    def test_partition(self):
        for n in self.sizes():
            if not n:
                continue
            x = self.numbers.repeated(np.float32, n)
            for kth in ([n // 2], [0, n - 1, n // 3], list(range(0, n, max(1, n // 12)))):
                whole = np.sort(x)
                moved = np.asarray(st.partition(st.asarray(x), kth))
                places = np.asarray(st.argpartition(st.asarray(x), kth))
                np.testing.assert_array_equal(np.sort(moved), whole)
                np.testing.assert_array_equal(np.sort(places), np.arange(n))
                for result in (moved, x[places]):
                    for k in kth:
                        self.assertEqual(result[k], whole[k])
                        self.assertTrue((result[:k] <= result[k]).all() and (result[k:] >= result[k]).all())

    def test_lexsort(self):
        for n in self.sizes():
            keys = [self.numbers.repeated(np.int8, n), self.numbers.with_nan(np.float32, n) // 1,
                    self.numbers.repeated(np.uint64, n)]
            self.same(st.lexsort([st.asarray(key) for key in keys]), np.lexsort(keys))
        keys = self.numbers.repeated(np.int16, (70, 500)) // 5
        self.same(st.lexsort(st.asarray(keys)), np.lexsort(keys))

    # --- between known values, and products along a row ---

    def test_interp(self):
        for n in self.sizes():
            if not n:
                continue
            known, values = np.sort(self.numbers.of(np.float64, n)), self.numbers.of(np.float64, n)
            places = np.concatenate([self.numbers.of(np.float64, 1000) * 2, known[:100]])
            self.same(st.interp(st.asarray(places), st.asarray(known), st.asarray(values)),
                      np.interp(places, known, values))

    def test_correlate_and_convolve(self):
        for n, m in ((1, 1), (3, 50), (1000, 33), (257, 1000), (100_003, 40)):
            for dtype in (np.int64, np.uint8):
                x, v = self.numbers.of(dtype, n), self.numbers.of(dtype, m)
                for mode in ("valid", "same", "full"):
                    self.same(st.correlate(st.asarray(x), st.asarray(v), mode), np.correlate(x, v, mode))
                    self.same(st.convolve(st.asarray(x), st.asarray(v), mode), np.convolve(x, v, mode))
            x, v = self.numbers.of(np.complex128, n), self.numbers.of(np.complex128, m)
            for mode in ("valid", "same", "full"):
                np.testing.assert_allclose(
                    np.asarray(st.correlate(st.asarray(x), st.asarray(v), mode)), np.correlate(x, v, mode), rtol=0,
                    atol=1e-12 * m,
                )

    # --- running results and reductions ---

    def test_reductions_without_nan(self):
        for n in self.sizes():
            if n < 4:
                continue
            for dtype in (np.float32, np.float64):
                x = self.numbers.with_nan(dtype, n)
                x[~np.isfinite(x)] = np.nan
                ours = st.asarray(x)
                for name in ("nanmin", "nanmax", "nanargmin", "nanargmax"):
                    self.same(getattr(st, name)(ours), np.asarray(getattr(np, name)(x)))
                for name in ("nansum", "nanmean", "nanvar", "nanstd"):
                    np.testing.assert_allclose(
                        np.asarray(getattr(st, name)(ours)), getattr(np, name)(x), rtol=0,
                        atol=8 * eps(dtype) * max(1.0, float(np.nansum(np.abs(x)))),
                    )

    def test_cumulative(self):
        for n in self.sizes():
            for dtype in (np.int64, np.uint8, np.bool_):
                x = self.numbers.of(dtype, n)
                self.same(st.cumulative_sum(st.asarray(x), axis=0), np.cumsum(x))
            x = self.numbers.of(np.float64, n)
            np.testing.assert_allclose(np.asarray(st.cumulative_sum(st.asarray(x), axis=0)), np.cumsum(x), rtol=0,
                                       atol=4 * eps(np.float64) * max(1.0, float(np.abs(x).sum())))
            signs = np.where(self.numbers.of(np.bool_, n), 1, -1).astype(np.int32)
            self.same(st.cumulative_prod(st.asarray(signs), axis=0), np.cumprod(signs))

    def test_cumulative_along_any_axis_of_permuted_arrays(self):
        x = self.numbers.of(np.int32, (17, 129, 33))
        ours = st.asarray(x)
        for order in itertools.permutations(range(3)):
            for axis in range(3):
                self.same(
                    st.cumulative_sum(st.permute_dims(ours, order), axis=axis), np.cumsum(x.transpose(order), axis=axis)
                )

    def test_reductions(self):
        for n in self.sizes():
            x = self.numbers.of(np.int32, n)
            ours = st.asarray(x)
            self.same(st.sum(ours), np.sum(x))
            self.same(st.any(ours), np.any(x))
            self.same(st.all(ours), np.all(x))
            f = self.numbers.of(np.float32, n)
            self.assertLessEqual(abs(float(st.sum(st.asarray(f))) - float(f.astype(np.float64).sum())),
                                 2 * eps(np.float32) * max(1.0, float(np.abs(f).sum(dtype=np.float64))))
            if n:
                self.same(st.max(ours), np.max(x))
                self.same(st.min(ours), np.min(x))
                few = self.numbers.repeated(np.int8, n)
                self.same(st.argmax(st.asarray(few)), np.argmax(few))
                self.same(st.argmin(st.asarray(few)), np.argmin(few))
                holed = self.numbers.with_nan(np.float32, n)
                self.same(st.max(st.asarray(holed)), np.max(holed))
                self.same(st.argmax(st.asarray(holed)), np.argmax(holed))

    def test_reductions_over_any_axes_of_permuted_arrays(self):
        x = self.numbers.of(np.int64, (9, 1, 65, 33))
        ours = st.asarray(x)
        for order in itertools.permutations(range(4)):
            host, view = x.transpose(order), st.permute_dims(ours, order)
            for count in range(1, 5):
                for axes in itertools.combinations(range(4), count):
                    self.same(st.sum(view, axis=axes), np.sum(host, axis=axes))
            self.same(st.max(view, axis=2, keepdims=True), np.max(host, axis=2, keepdims=True))
            self.same(st.argmin(view, axis=1), np.argmin(host, axis=1))
        for shape in ((1, 100003), (100003, 1), (257, 1025), (3, 5, 70001)):
            x = self.numbers.of(np.int32, shape)
            for axis in range(len(shape)):
                self.same(st.sum(st.asarray(x), axis=axis), np.sum(x, axis=axis))
        for shape in ((0, 3), (3, 0), (2, 0, 3)):
            for axis in range(len(shape)):
                self.same(st.sum(st.zeros(shape), axis=axis), np.sum(np.zeros(shape), axis=axis))

    # --- products ---

    def product(self, a, b):
        ours = st.matmul(st.asarray(a), st.asarray(b))
        slow = a.dtype.kind not in "fc" or a.dtype == np.float16
        if slow and a.ndim == 2 and a.size * b.shape[1] > 10**8:
            # NumPy takes minutes for a large product of these types: a few rows stand for the others.
            self.assertEqual(ours.shape, (a.shape[0], b.shape[1]))
            rows = np.sort(self.numbers.random.choice(a.shape[0], 16, replace=False))
            a, ours = a[rows], ours[rows]
        numpys = np.matmul(a, b)
        if a.dtype.kind in "iub":
            self.same(ours, numpys)
            return
        self.assertEqual((ours.dtype, ours.shape), (numpys.dtype, numpys.shape))
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        exact = np.matmul(a.astype(wide), b.astype(wide))
        scale = np.matmul(np.abs(a.astype(wide)), np.abs(b.astype(wide)))
        bound = (2 * a.shape[-1] + 8) * eps(a.dtype) * scale.real + 1e-300
        self.assertTrue(np.all(np.abs(np.asarray(ours).astype(wide) - exact) <= bound))

    def test_matmul_of_odd_sizes(self):
        extents = (1, 2, 3, 15, 16, 17, 31, 33, 63, 65, 127, 129)
        random = np.random.default_rng(5)
        cases = {tuple(int(i) for i in random.choice(extents, 3)) for _ in range(40)} | {
            (1, 1, 1),
            (1, 513, 1),
            (257, 1, 255),
            (1025, 31, 3),
        }
        if FULL:
            cases |= {(1000, 1001, 999), (2047, 2049, 2048), (4096, 4095, 33)}
        for m, k, n in sorted(cases):
            for dtype in (np.float32, np.float64, np.complex64, np.complex128, np.float16, np.int8, np.int64):
                with self.subTest(m=m, k=k, n=n, dtype=dtype):
                    self.product(self.numbers.of(dtype, (m, k)), self.numbers.of(dtype, (k, n)))

    def test_matmul_of_batches_and_layouts(self):
        for batch in ((1,), (3,), (1000,), (2, 3), (0,)):
            for dtype in (np.float32, np.complex128, np.int32):
                a, b = self.numbers.of(dtype, (*batch, 5, 7)), self.numbers.of(dtype, (*batch, 7, 3))
                self.product(a, b)
                self.product(a.swapaxes(-1, -2).copy().swapaxes(-1, -2), b[..., ::-1])
        a, b = self.numbers.of(np.float64, (4, 1, 33, 65)), self.numbers.of(np.float64, (3, 65, 31))
        self.product(a, b)
        for n in (0, 1, 1025):
            self.product(self.numbers.of(np.float32, (7, n)), self.numbers.of(np.float32, (n, 5)))
            self.product(self.numbers.of(np.float32, (n,)), self.numbers.of(np.float32, (n,)))

    # --- transforms ---

    def transform(self, name, x, **arguments):
        ours, numpys = getattr(st.fft, name)(st.asarray(x), **arguments), getattr(np.fft, name)(
            x.astype(np.result_type(x, np.float64)), **arguments
        )
        self.assertEqual(ours.shape, numpys.shape)
        values = np.asarray(ours)
        single = x.dtype.itemsize <= (8 if x.dtype.kind == "c" else 4)
        unit = eps(np.float32 if single else np.float64)
        norm = max(float(np.sqrt((np.abs(numpys) ** 2).sum())), 1e-30)
        error = float(np.sqrt((np.abs(values - numpys) ** 2).sum()))
        self.assertLessEqual(
            error / norm, 6 * unit * (1 + np.log2(max(x.size, 2))), (name, x.shape, x.dtype, arguments)
        )

    def test_fft_of_any_length(self):
        lengths = [
            1, 2, 3, 4, 5, 7, 8, 11, 13, 31, 32, 33, 97, 101, 127, 128, 129, 210, 243, 625, 1000, 1009, 1023, 1024,
            1025, 4099, 10007, 65537,
        ]
        if FULL:
            lengths += [100003, 2**20 - 1, 2**20, 2**20 + 1, 10**6, 1000003]
        for n in lengths:
            with self.subTest(n=n):
                for dtype in (np.float32, np.float64):
                    x = self.numbers.of(dtype, n)
                    self.transform("fft", x)
                    self.transform("rfft", x)
                    z = self.numbers.of(np.complex64 if dtype == np.float32 else np.complex128, n)
                    self.transform("ifft", z)
                    if n > 1:
                        self.transform("irfft", z, n=n)

    def test_fft_of_batches_axes_and_dimensions(self):
        for shape in ((3, 128), (1000, 32), (31, 7, 13), (5, 6, 7, 8), (2, 3, 4, 5, 6)):
            z = self.numbers.of(np.complex128, shape)
            for axis in range(len(shape)):
                self.transform("fft", z, axis=axis)
                self.transform("ifft", z[::-1], axis=axis)
            self.transform("fftn", z)
            self.transform("ifftn", z.swapaxes(0, -1))
            self.transform("rfftn", z.real.copy())
            for axes in itertools.permutations(range(len(shape)), 2):
                self.transform("fftn", z, axes=axes)
        for n in (5, 64, 200):
            self.transform("fft", self.numbers.of(np.float64, (4, 64)), n=n)

    def test_convolution_by_fft(self):
        for n, m in ((1, 1), (31, 7), (1024, 33), (100003, 1001)):
            x, y = self.numbers.of(np.float64, n), self.numbers.of(np.float64, m)
            length = n + m - 1
            ours = (
                np.asarray(
                    st.fft.irfft(st.fft.rfft(st.asarray(x), n=length) * st.fft.rfft(st.asarray(y), n=length), n=length)
                )
                if length > 1
                else np.asarray(st.asarray(x) * st.asarray(y))
            )
            self.assertLess(
                np.max(np.abs(ours - np.convolve(x, y))), 64 * eps(np.float64) * np.sqrt(n * m) * np.log2(length + 2)
            )

    # --- indices ---

    def test_gather_and_scatter(self):
        for n in self.sizes():
            x = self.numbers.of(np.int32, n)
            ours = st.asarray(x)
            mask = self.numbers.of(np.bool_, n)
            self.same(ours[st.asarray(mask)], x[mask])
            self.same(st.nonzero(st.asarray(mask))[0], np.nonzero(mask)[0])
            if not n:
                continue
            places = self.numbers.random.integers(-n, n, 2 * n + 1)
            self.same(st.take(ours, st.asarray(places), mode="wrap"), np.take(x, places, mode="wrap"))
            self.same(ours[st.asarray(places)], x[places])
            order = self.numbers.random.permutation(n)
            target, host = st.zeros(n, dtype=np.int32), np.zeros(n, np.int32)
            target[st.asarray(order)] = ours
            host[order] = x
            self.same(target, host)
            totals, sums = st.zeros(n, dtype=np.int64), np.zeros(n, np.int64)
            st.add.at(totals, st.asarray(places), 3)
            np.add.at(sums, places, 3)
            self.same(totals, sums)

    def test_gather_along_axes_of_permuted_arrays(self):
        x = self.numbers.of(np.float32, (7, 33, 129))
        ours = st.asarray(x)
        for order in itertools.permutations(range(3)):
            host, view = x.transpose(order), st.permute_dims(ours, order)
            for axis in range(3):
                places = self.numbers.random.integers(0, host.shape[axis], 50)
                self.same(st.take(view, st.asarray(places), axis=axis), np.take(host, places, axis=axis))
                along = np.argsort(host, axis=axis)
                self.same(
                    st.take_along_axis(view, st.asarray(along), axis=axis), np.take_along_axis(host, along, axis=axis)
                )

    def test_counts(self):
        for n in self.sizes():
            few = self.numbers.random.integers(0, 1000, n)
            self.same(st.bincount(st.asarray(few)), np.bincount(few))
            x = self.numbers.of(np.float64, n)
            for bins in (1, 10, 257):
                counts, edges = st.histogram(st.asarray(x), bins=bins, range=(-3.0, 3.0))
                host_counts, host_edges = np.histogram(x, bins=bins, range=(-3.0, 3.0))
                self.assertTrue(np.array_equal(np.asarray(counts), host_counts))
                np.testing.assert_allclose(np.asarray(edges), host_edges, rtol=1e-14, atol=1e-14)
            keys, values = self.numbers.random.integers(-5, 40, n), self.numbers.of(np.int32, n).astype(np.int64)
            found, sums = st.group_sum(st.asarray(keys), st.asarray(values))
            wanted, inverse = np.unique(keys, return_inverse=True)
            host_sums = np.zeros(len(wanted), np.int64)
            np.add.at(host_sums, inverse, values)
            self.same(found, wanted)
            self.same(sums, host_sums)

    # --- random numbers: repeatable, in range, with the moments of their distribution ---

    def test_random(self):
        for n in self.sizes():
            first, second = st.random.default_rng(5), st.random.default_rng(5)
            uniform = np.asarray(first.random(n))
            self.assertTrue(np.array_equal(uniform, np.asarray(second.random(n))))
            self.assertTrue(np.all((uniform >= 0) & (uniform < 1)))
            normal = np.asarray(first.standard_normal(n))
            self.assertTrue(np.all(np.isfinite(normal)))
            whole = np.asarray(first.integers(-3, 4, n))
            self.assertTrue(np.all((whole >= -3) & (whole < 4)))
            order = np.asarray(first.permutation(n))
            self.assertTrue(np.array_equal(np.sort(order), np.arange(n)))
            if n > 1000:
                self.assertLess(abs(uniform.mean() - 0.5), 6 / np.sqrt(12 * n))
                self.assertLess(abs(normal.mean()), 6 / np.sqrt(n))
                self.assertLess(abs(normal.var() - 1), 6 * np.sqrt(2 / n))
                self.assertLess(abs(whole.mean()), 6 * 2 / np.sqrt(n))

    # --- as many elements as users have ---

    @unittest.skipUnless(FULL, "STRIDE_SWEEP is not full")
    def test_1e8_elements(self):
        n = HUGE
        numbers = self.numbers.random.integers(0, 1 << 30, n, dtype=np.int32)
        ours = st.asarray(numbers)
        counts = np.bincount(numbers >> 20, minlength=1024)
        steps = [
            ("sort", lambda: self.assertTrue(bool(st.all(st.diff(st.sort(ours)) >= 0)))),
            ("argsort", lambda: self.assertTrue(bool(st.all(st.diff(st.take(ours, st.argsort(ours))) >= 0)))),
            (
                "cumulative_sum",
                lambda: self.assertEqual(
                    int(st.cumulative_sum(ours, axis=0, dtype=st.int64)[-1]), int(numbers.sum(dtype=np.int64))
                ),
            ),
            (
                "sum, max, argmax",
                lambda: self.assertEqual(
                    (int(st.sum(ours)), int(st.max(ours)), int(st.argmax(ours))),
                    (int(numbers.sum(dtype=np.int64)), int(numbers.max()), int(numbers.argmax())),
                ),
            ),
            (
                "bincount",
                lambda: self.assertTrue(np.array_equal(np.asarray(st.bincount(ours >> 20, minlength=1024)), counts)),
            ),
            ("mask", lambda: self.assertEqual(ours[ours > 1 << 29].shape[0], int((numbers > 1 << 29).sum()))),
            ("unique", lambda: self.assertEqual(st.unique_values(ours >> 10).shape[0], len(np.unique(numbers >> 10)))),
            (
                "random",
                lambda: self.assertLess(
                    abs(float(st.mean(st.random.default_rng(1).random(n))) - 0.5), 6 / np.sqrt(12 * n)
                ),
            ),
            (
                "fft",
                lambda: self.assertLess(
                    float(st.max(st.abs(st.fft.ifft(st.fft.fft(ours.astype(st.float64))).real - ours))), 1e-2
                ),
            ),
        ]
        for name, step in steps:
            if time.monotonic() - BEGIN > SECONDS:
                print(f"1e8 elements: left out from {name} on")
                return
            with self.subTest(operation=name):
                try:
                    step()
                except st.DeviceMemoryError as error:
                    print(f"1e8 elements: left out {name}, for memory: {error}")


if __name__ == "__main__":
    client_case.main()
