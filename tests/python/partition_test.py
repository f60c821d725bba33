"""Elements by rank compared with sorts: medians, quantiles, partitions of short and long rows of every type."""

import numpy as np

import client_case
import stride as st
from client_case import DTYPES, ClientCase
from sort_test import bits, elements


def keys_of(x):
    """Unsigned numbers in the order of the elements: -0 before +0, all NaN alike and last."""
    if x.dtype.kind in "biu":
        return x
    words = bits(x)
    sign, full = words.dtype.type(1 << (8 * x.dtype.itemsize - 1)), ~words.dtype.type(0)
    return np.where(np.isnan(x), full, np.where(words & sign, ~words, words | sign))


def partitioned(row, ranks):
    """Places of a row of more than 1,024 elements: below, equal to and above each pivot, each in the row's order."""
    keys = keys_of(row)
    classes = np.zeros(len(row), int)
    for pivot in np.unique(np.sort(keys)[ranks]):
        classes += (keys >= pivot).astype(int) + (keys > pivot)
    return np.argsort(classes, kind="stable")


class PartitionTest(ClientCase):
    def check(self, x, ranks, axis=-1):
        where = f"{x.dtype} {x.shape} ranks {ranks}"
        array = st.asarray(x)
        values = st.partition(array, ranks, axis=axis).to_numpy()
        places = st.argpartition(array, ranks, axis=axis).to_numpy()
        ordered = np.sort(x, axis=axis)
        for rank in ranks:
            np.testing.assert_array_equal(values.take(rank, axis), ordered.take(rank, axis), err_msg=where)
        x, values, places = (np.moveaxis(one, axis, -1).reshape(-1, x.shape[axis]) for one in (x, values, places))
        if x.dtype.kind != "c":
            sorts = x.shape[-1] <= 1024 or len(ranks) > 8
            expected = [np.argsort(row, kind="stable") if sorts else partitioned(row, ranks) for row in x]
            np.testing.assert_array_equal(places, expected, err_msg=where)
        np.testing.assert_array_equal(bits(np.take_along_axis(x, places, -1)), bits(values), err_msg=where)

    def test_every_type(self):
        random = np.random.default_rng(1)
        for dtype in DTYPES:
            for kind in ("spread", "few", "rare"):
                for size in (1, 10, 1024, 1025, 5000, 20_001):
                    with self.subTest(dtype=dtype, kind=kind, size=size):
                        x = elements(random, dtype, size, kind)
                        self.check(x, [size // 2])

    def test_several_ranks(self):
        random = np.random.default_rng(2)
        for dtype in (np.float32, np.int64, np.float16):
            for size in (1500, 9000, 40_000, 300_007):
                for ranks in ([0], [size - 1], [-1, 0], [size // 3, size // 3 + 1], list(range(0, size, size // 7))[:8],
                              list(range(10))):
                    with self.subTest(dtype=dtype, size=size, ranks=ranks):
                        self.check(elements(random, dtype, size, "rare"), ranks)

    def test_rows_and_columns(self):
        random = np.random.default_rng(3)
        for shape in ((40, 2000), (2000, 40), (3, 50_000), (9, 9000)):
            for axis in (0, 1):
                x = elements(random, np.float32, int(np.prod(shape)), "spread").reshape(shape)
                self.check(x, [shape[axis] // 2], axis)
                self.same(st.median(st.asarray(x), axis=axis), np.median(x, axis=axis))

    def test_quantiles(self):
        random = np.random.default_rng(4)
        for dtype in (np.float32, np.float64, np.int32):
            for size in (5, 1000, 5000, 30_000, 400_001):
                with self.subTest(dtype=dtype, size=size):
                    x = elements(random, dtype, size, "spread")
                    array = st.asarray(x)
                    self.same(st.median(array), np.median(x), rtol=1e-6)
                    self.same(st.percentile(array, [1, 50, 99]), np.percentile(x, [1, 50, 99]), rtol=1e-5)


if __name__ == "__main__":
    client_case.main()
