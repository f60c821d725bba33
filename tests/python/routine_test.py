"""Indices, order, running results and sets, compared with NumPy."""

import unittest

import numpy as np

import client_case
import stride as st
from stride.v1 import operation_pb2


@unittest.skipUnless(
    "gather" in operation_pb2.Operation.DESCRIPTOR.fields_by_name, "the contract has no operations by indices yet"
)
class RoutineTest(client_case.ClientCase):
    def setUp(self):
        self.host = np.random.default_rng(3).permutation(60).reshape(3, 4, 5).astype(np.float64)
        self.array = st.asarray(self.host) + 0

    def test_get_by_arrays(self):
        x = self.host
        i, j = np.array([0, 2, -1]), np.array([[1], [3]])
        mask = x > 20
        keys = [
            i, (i,), (slice(None), j), (i, j), (i[:2], 1), (i, slice(None), 2),
            (i, slice(None), np.array([0, 1, 2])), (Ellipsis, i), (slice(None, None, -1), i), (None, i),
            (i, None, j), mask, (mask[:, 0, 0],), (slice(None), mask[0]), (slice(1, None), mask[0]),
            (0, mask[0, :, 0]), (mask[:, :, 0], 2), [0, 1], [], (1, [0, 2]), True, False, x > 100,
            (slice(None), [True, False, True, True]), (i, slice(1, 3), j),
        ]
        for key in keys:
            with self.subTest(key=key):
                self.same(self.array[key], x[key])
        self.same(self.array[st.asarray(i)], x[i])
        self.same(self.array[self.array > 20], x[mask])
        # As the array API, unlike NumPy: an extent of a mask may be 0.
        self.same(self.array[np.zeros((0,), bool)], np.zeros((0, 4, 5)))
        for wrong in (np.array([0.5]), np.array([True]), (0, 0, 0, i), (7, i)):
            with self.assertRaises(IndexError):
                self.array[wrong]
        with self.assertRaises(IndexError) as raised:
            self.array[np.array([5])].to_numpy()
        self.assertIn("routine_test.py", raised.exception.origin)

    def test_set_by_arrays(self):
        i = np.array([0, 2])
        mask = self.host > 20
        for key, value in (
            (i, 7.0), ((slice(None), i), np.arange(5.0)), ((i, i), np.arange(10.0).reshape(2, 5)), (mask, -1.0),
            (mask, np.arange(float(mask.sum()))), ((slice(None, None, -1), i, slice(1, 3)), 5.0),
            ((0, mask[0]), 3.0), ((slice(None), mask[0]), np.arange(float(mask[0].sum()))),
            ((i, slice(None), i), 2.0), (True, 4.0), (False, 5.0),
        ):
            with self.subTest(key=key):
                array, host = self.array + 0, self.host + 0
                view = array[1:]
                array[key] = value
                host[key] = value
                self.same(array, host)
                self.same(view, host[1:])

    def test_take(self):
        i = np.array([[0, 2], [1, 1]])
        for axis in (0, 1, 2):
            self.same(st.take(self.array, st.asarray(i), axis=axis), np.take(self.host, i, axis=axis))
            order = np.argsort(self.host, axis=axis)
            self.same(
                st.take_along_axis(self.array, st.asarray(order), axis=axis),
                np.take_along_axis(self.host, order, axis=axis),
            )

    def test_order(self):
        for axis in (0, 1, -1):
            self.same(st.sort(self.array, axis=axis), np.sort(self.host, axis=axis))
            self.same(st.argsort(self.array, axis=axis), np.argsort(self.host, axis=axis))
            self.same(st.sort(self.array, axis=axis, descending=True), -np.sort(-self.host, axis=axis))
            falling = self.array.copy()
            falling.sort(axis, descending=True)
            self.same(falling, -np.sort(-self.host, axis=axis))
            self.same(
                self.array.argsort(axis, descending=True), np.argsort(-self.host, axis=axis, kind="stable")
            )
        host = np.array([1.0, 2.0, 2.0, 5.0])
        for side in ("left", "right"):
            values = np.array([[0.0, 2.0], [5.0, 9.0]])
            self.same(
                st.searchsorted(st.asarray(host), st.asarray(values), side=side),
                np.searchsorted(host, values, side=side),
            )
        self.same(
            st.searchsorted(st.asarray(host[::-1].copy()), st.asarray([2.0]), sorter=st.asarray([3, 2, 1, 0])), [1]
        )

    def test_running_results(self):
        for dtype in (np.int8, np.uint8, np.float32, np.float64, np.bool_):
            host = (self.host[:, 0] % 3).astype(dtype)
            for axis in (0, 1):
                self.same(st.cumulative_sum(st.asarray(host), axis=axis), np.cumulative_sum(host, axis=axis))
                self.same(st.cumulative_prod(st.asarray(host), axis=axis), np.cumulative_prod(host, axis=axis))
            self.same(
                st.cumulative_sum(st.asarray(host), axis=1, include_initial=True),
                np.cumulative_sum(host, axis=1, include_initial=True),
            )

    def test_numpys_functions(self):
        x, a = self.host, self.array
        self.same(np.sort(a, axis=0), np.sort(x, axis=0))
        self.same(np.argsort(a, axis=None), np.argsort(x, axis=None))
        self.same(np.cumsum(a), np.cumsum(x))
        self.same(np.cumprod(a[0] / 20, axis=1), np.cumprod(x[0] / 20, axis=1), rtol=1e-13)
        self.same(np.take(a, [3, 1]), np.take(x, [3, 1]))
        self.same(np.take(a, [3, 1], axis=-1), np.take(x, [3, 1], axis=-1))
        self.same(np.add.accumulate(a), np.add.accumulate(x))
        self.same(np.nonzero(a)[0], np.nonzero(x)[0])

    def test_nonzero_and_sets(self):
        host = (self.host % 3).astype(np.int32)
        for ours, theirs in zip(st.nonzero(st.asarray(host)), np.nonzero(host)):
            self.same(ours, theirs)
        second = st.nonzero(st.asarray(host))[1]  # the others are deleted
        self.same(second, np.nonzero(host)[1])
        for values in (host, np.array([3.0, 1.0, 3.0, 1.0, -0.0]), np.array([True, False]), np.zeros((0,), np.int64)):
            ours, theirs = st.unique_all(st.asarray(values)), np.unique_all(values)
            for one, other in zip(ours, theirs):
                self.same(one, other)
            self.same(st.unique_values(st.asarray(values)), np.unique(values))
            self.same(st.unique_counts(st.asarray(values)).counts, np.unique_counts(values).counts)
            self.same(st.unique_inverse(st.asarray(values)).inverse_indices, np.unique_inverse(values).inverse_indices)

    def test_modes_and_put(self):
        host = np.arange(12.0)
        for mode in ("wrap", "clip"):
            self.same(
                st.take(st.asarray(host), [-1, 15, 3, -20], mode=mode), np.take(host, [-1, 15, 3, -20], mode=mode)
            )
        for indices, values in (([0, -1, 5], [7.0, 8.0, 9.0]), ([0, 1, 2, 3, 4], [1.0, 2.0]), ([3, 3], 5.0), ([], 1.0)):
            ours, theirs = st.asarray(host.reshape(3, 4)) + 0, host.reshape(3, 4) + 0
            st.put(ours, np.array(indices, int), values)
            np.put(theirs, np.array(indices, int), values)
            self.same(ours, theirs)
            np.put(ours[:, ::2], [1, 4], -1.0)
            np.put(theirs[:, ::2], [1, 4], -1.0)
            theirs[:, ::2][0, 1], theirs[:, ::2][2, 0] = -1.0, -1.0
            self.same(ours, theirs)
        ours, theirs = self.array + 0, self.host + 0
        order = np.argsort(self.host, axis=1)[:, :2]
        st.put_along_axis(ours, order, 0.5, axis=1)
        np.put_along_axis(theirs, order, 0.5, axis=1)
        self.same(ours, theirs)

    def test_counting(self):
        host = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3])
        weights = np.linspace(0.1, 1, 10)
        self.same(st.bincount(st.asarray(host)), np.bincount(host))
        self.same(st.bincount(st.asarray(host), minlength=15), np.bincount(host, minlength=15))
        self.same(np.bincount(st.asarray(host), weights), np.bincount(host, weights))
        self.same(st.bincount(st.zeros((0,), dtype=st.int64)), np.bincount(np.zeros((0,), int)))
        with self.assertRaises(ValueError):
            st.bincount(st.asarray([-1]))
        values = self.host / 7
        for arguments in ({}, {"bins": 5}, {"bins": np.array([0.0, 1.5, 2.0, 8.0])}, {"bins": 4, "range": (1, 6)}):
            for one, other in zip(st.histogram(st.asarray(values), **arguments), np.histogram(values, **arguments)):
                self.same(one, other)
            for one, other in zip(
                np.histogram(st.asarray(values), weights=values, **arguments),
                np.histogram(values, weights=values, **arguments),
            ):
                self.same(one, other, rtol=1e-14)
        self.same(st.count_nonzero(st.asarray(host % 2), axis=0), np.asarray(np.count_nonzero(host % 2)))
        self.same(st.count_nonzero(self.array > 30, axis=(0, 2)), np.count_nonzero(self.host > 30, axis=(0, 2)))

    def test_histograms_equal_numpys(self):
        rng = np.random.default_rng(5)
        for dtype in (np.float16, np.float32, np.float64, np.int8, np.uint64, np.bool_):
            for shape in ((0,), (1,), (1000,), (40, 50)):
                values = (
                    rng.normal(0, 20, shape) if np.dtype(dtype).kind == "f" else rng.integers(0, 100, shape)
                ).astype(dtype)
                for bins, limits in ((7, None), (100, (-3, 30)), (1, (0, 1)), (np.array([-5, 0, 0, 2.5, 90]), None)):
                    if dtype == np.bool_ and limits is None and not isinstance(bins, np.ndarray):
                        continue  # NumPy has no difference of them
                    with self.subTest(dtype=dtype, shape=shape, bins=bins):
                        counts, edges = np.histogram(st.asarray(values), bins, limits)
                        wanted, wanted_edges = np.histogram(values, bins, limits)
                        self.same(edges, wanted_edges)
                        self.same(counts, wanted)
                        weights = rng.integers(0, 9, shape)
                        self.same(np.histogram(st.asarray(values), bins, limits, weights=weights)[0],
                                  np.histogram(values, bins, limits, weights=weights)[0])
        x = rng.normal(size=100000)
        first, second = (st.histogram(st.asarray(x), 50, weights=x)[0].to_numpy() for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_groups_equal_numpys(self):
        rng = np.random.default_rng(6)
        for n, groups in ((0, 3), (50, 7), (20000, 3), (20000, 15000)):
            which = rng.integers(0, groups, n)
            values = rng.integers(-50, 50, (2, n))
            for name in ("add", "maximum", "bitwise_xor"):
                wanted = np.full((2, groups), np.iinfo(np.int64).min if name == "maximum" else 0)
                getattr(np, name).at(wanted, (slice(None), which), values)
                self.same(st.group_reduce(name, values, st.asarray(which), groups, axis=1), wanted)
            self.same(st.group_reduce("add", 1, st.asarray(which), groups), np.bincount(which, minlength=groups))
        self.same(
            st.group_reduce("add", st.asarray([1, 2], dtype=st.int8), np.array([0, 1]), 2, dtype=np.float32),
            np.array([1, 2], np.float32),
        )
        with self.assertRaises(IndexError):
            st.group_reduce("add", st.arange(3), st.asarray([0, 3, 1]), 3).to_numpy()

    def test_running_from_the_end(self):
        host = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
        back = np.cumsum(host[:, ::-1], axis=1)[:, ::-1]
        self.same(st.cumulative_sum(st.asarray(host), axis=1, reverse=True), back)
        self.same(st.cumulative_sum(st.asarray(host), axis=1, exclusive=True), np.cumsum(host, axis=1) - host)
        self.same(st.cumulative_sum(st.asarray(host), axis=1, reverse=True, exclusive=True), back - host)
        self.same(st.cumulative_prod(st.asarray(host), axis=0, reverse=True), np.array([[5, 12, 21, 32], [5, 6, 7, 8]]))

    def test_top_and_groups(self):
        for axis in (0, 1, 2):
            values, places = st.top_k(self.array, 2, axis=axis)
            self.same(values, -np.sort(-self.host, axis=axis).take([0, 1], axis=axis))
            self.same(places, np.argsort(-self.host, axis=axis, stable=True).take([0, 1], axis=axis))
        self.same(st.top_k(self.array, 3, largest=False)[0], np.sort(self.host)[..., :3])
        with self.assertRaises(ValueError):
            st.top_k(self.array, 9)
        keys = np.array([2, 7, 2, 2, 7, -1])
        groups, sums = st.group_sum(st.asarray(keys), st.asarray(np.arange(6.0)))
        self.same(groups, [-1, 2, 7])
        self.same(sums, [5.0, 5.0, 5.0])
        self.same(st.group_sum(keys, np.ones(6, np.int8))[1], [1, 3, 2])

    def test_numpys_unique(self):
        host = self.host.ravel() % 4
        self.same(np.unique(st.asarray(host)), np.unique(host))
        for one, other in zip(np.unique(st.asarray(host), return_index=True, return_counts=True),
                              np.unique(host, return_index=True, return_counts=True)):
            self.same(one, other)

    def test_types_of_sorters_and_edges(self):
        x = st.asarray([1.0, 2.0, 3.0])
        for sorter in ([0, 1], [0.0, 1.0, 2.0], [[0, 1, 2]]):
            with self.assertRaises((ValueError, TypeError)):
                st.searchsorted(x, x, sorter=st.asarray(sorter))
        for edges in ([3, 1, 2], st.asarray([3.0, 1.0]) + 0):
            with self.assertRaises(ValueError):
                st.histogram(x, bins=edges)

    def test_unique_as_numpy(self):
        for host in (
            np.array([3.0, np.nan, np.nan, 1.0]),
            np.array([np.nan + 1j, 2, complex(1, np.nan), 2]),
            np.array([], float),
            np.array([2, 1, 2]),
        ):
            for equal_nan in (True, False):
                for ours, theirs in zip(
                    np.unique(
                        st.asarray(host),
                        return_index=True,
                        return_inverse=True,
                        return_counts=True,
                        equal_nan=equal_nan,
                    ),
                    np.unique(host, return_index=True, return_inverse=True, return_counts=True, equal_nan=equal_nan),
                ):
                    self.same(ours, theirs)
                self.same(np.unique(st.asarray(host), equal_nan=equal_nan), np.unique(host, equal_nan=equal_nan))
        self.assertEqual(st.unique_values(st.asarray([np.nan, np.nan])).shape, (2,))  # the standard's

    def test_isin(self):
        for x, y in (
            ([1, 2, 3], [2, 5]),
            ([[1.0, np.nan]], [np.nan, 1]),
            ([1, 2], []),
            ([], [1]),
            ([True, False], [True]),
            ([1, 2], 2),
            ([1.5, 2], [2, 3]),
        ):
            for invert in (False, True):
                self.same(st.isin(st.asarray(x), st.asarray(y), invert=invert), np.isin(x, y, invert=invert))
        self.same(st.isin(st.asarray(np.array([1, 2], np.uint8)), 300), [False, False])
        self.same(st.isin(2, st.asarray([1, 2])), True)
        self.same(np.isin(st.asarray([1, 2]), [2]), [False, True])

    def test_bounds_are_judged_at_the_line(self):
        x = st.asarray(self.host) + 0
        for use in (
            lambda: x[[5]],
            lambda: x[st.asarray([5])],
            lambda: x[0, [0, 9]],
            lambda: st.take(x, [9], axis=0),
            lambda: x.__setitem__([5], 1.0),
            lambda: st.put(x, [60], 1.0),
            lambda: st.add.at(x, [3], 1.0),
            lambda: st.put_along_axis(x, np.full((3, 4, 1), 5), 1.0, axis=2),
        ):
            with self.assertRaises(IndexError) as raised:
                use()
            self.assertIn("routine_test.py", raised.exception.origin)
        self.same(x, self.host)

    def test_a_lost_write_fails_each_later_use(self):
        """Writes that only the device can refuse: the array, its views and arrays computed from them fail."""
        for write in (
            lambda x, i: x.__setitem__(i, 1.0),
            lambda x, i: st.add.at(x, i, 1.0),
            lambda x, i: st.put(x, i, 1.0),
            lambda x, i: np.put(x[:, ::2], i, 1.0),
            lambda x, i: st.put_along_axis(x, st.reshape(i, (1, 1)), 1.0, axis=0),
            lambda x, i: x[1:].__setitem__(i, 1.0),
            lambda x, i: x.__setitem__(0, st.arange(2.0)[i][0]),
        ):
            x = st.asarray(np.ones((2, 4))) + 0
            view = x[0]
            before = x + 1
            write(x, st.asarray([40]) + 0)
            for use in (
                lambda: x.tolist(),
                lambda: float(st.sum(x)),
                lambda: view.tolist(),
                lambda: (view + 1).tolist(),
                lambda: x.tolist(),
            ):
                with self.assertRaises(IndexError) as raised:
                    use()
                self.assertIn("routine_test.py", raised.exception.origin)
            self.same(before, np.full((2, 4), 2.0))

    def test_broadcast_arrays_are_read_only(self):
        x = st.broadcast_to(st.ones(3), (2, 3))
        for write in (
            lambda: x.__setitem__(0, 1.0),
            lambda: x.__setitem__([0], 1.0),
            lambda: x.__setitem__(x > 0, 1.0),
            lambda: x.fill(2.0),
            lambda: st.put(x, [0], 1.0),
            lambda: st.add.at(x, [0], 1.0),
            lambda: st.put_along_axis(x, st.zeros((2, 1), dtype=st.int64), 1.0, axis=1),
            lambda: x.sort(),
        ):
            with self.assertRaisesRegex(ValueError, "read-only"):
                write()

    def test_possible_copies_are_read_only(self):
        """Views in NumPy: a write would be lost here."""
        z, x = st.asarray(np.arange(9).reshape(3, 3) * (1 + 1j)), st.asarray(self.host[0, :3, :3])
        for one in (
            x.imag,
            x.imag[0],
            np.diagonal(x),
            st.linalg.diagonal(x),
            np.diagonal(x)[1:],
            st.broadcast_to(x, (2, 3, 3))[0],
        ):
            for write in (lambda: one.__setitem__(..., 1), lambda: one.__iadd__(1), lambda: st.add(one, 1, out=one)):
                with self.assertRaisesRegex(ValueError, "read-only"):
                    write()
        self.same(z.real * 2 + z.imag, np.arange(9.0).reshape(3, 3) * 3)
        self.same(st.reshape(z.real, (9,))[::2] + 0, np.arange(9.0)[::2])
        real = x.real  # the array itself
        real += 1
        self.same(x, real.to_numpy())

    def test_complex_values_into_real_arrays(self):
        for key in ([0, 1], slice(0, 2), np.array([True, True, False])):
            ours, theirs = st.zeros(3), np.zeros(3)
            for array, value in ((ours, st.asarray([1j, 2 + 1j])), (theirs, np.array([1j, 2 + 1j]))):
                with self.assertWarns(np.exceptions.ComplexWarning):
                    array[key] = value
            self.same(ours, theirs)


if __name__ == "__main__":
    client_case.main()
