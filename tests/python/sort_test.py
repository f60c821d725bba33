"""Sorts compared with NumPy's stable sorts bit by bit: sizes next to those at which an algorithm changes, every type,
NaN of several payloads, zeros of both signs, many equal elements, rows and columns."""

import numpy as np

import client_case
import stride as st
from client_case import DTYPES, ClientCase

# The processor's networks hold up to 256 keys, its stack 8,192 items, a tile of several 32,768 and more.
SIZES = [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 48, 49, 63, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025]
LONG_SIZES = [4095, 4097, 8191, 8192, 8193, 32769, 65535, 65536, 65537, 131073]


def bits(x):
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize // (2 if x.dtype.kind == 'c' else 1)}")


def elements(random, dtype, count, kind):
    """`kind`: "spread" over the type's range, "few" different ones, "rare": zeros of both signs, NaN, infinities."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, count).astype(bool)
    if dtype.kind in "iu":
        if kind == "few":
            return random.integers(0, 5, count).astype(dtype)
        limits = np.iinfo(dtype)
        x = random.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)
        if kind == "rare":
            x[random.random(count) < 0.3] = limits.max
            x[random.random(count) < 0.3] = limits.min
        return x
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return elements(random, part, 2 * count, kind).view(dtype)
    if kind == "few":
        return random.integers(-2, 3, count).astype(dtype)
    x = (random.standard_normal(count) * 1e3).astype(dtype)
    if kind == "rare":
        words = x.view(f"u{dtype.itemsize}")
        sign = words.dtype.type(1 << (8 * dtype.itemsize - 1))
        quiet = np.array(np.nan, dtype).view(words.dtype)
        for value in (0, sign, quiet, quiet + words.dtype.type(3), quiet | sign):
            words[random.random(count) < 0.12] = value
        x[random.random(count) < 0.05] = np.inf
        x[random.random(count) < 0.05] = -np.inf
    return x


def order(x, axis, descending):
    """The stable order: NaN last in either direction."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    if x.dtype.kind == "f":
        return np.argsort(-x, axis=axis, kind="stable")  # a NaN stays one
    keys = x.astype(np.int64) if x.dtype.itemsize < 8 else x
    return np.argsort(~keys, axis=axis, kind="stable")


class SortTest(ClientCase):
    def check(self, x, axis=-1, descending=False):
        expected = order(x, axis, descending)
        array = st.asarray(x)
        where = f"{x.dtype} {x.shape} axis {axis} descending {descending}"
        np.testing.assert_array_equal(
            st.argsort(array, axis=axis, descending=descending).to_numpy(), expected, err_msg=where
        )
        np.testing.assert_array_equal(
            bits(st.sort(array, axis=axis, descending=descending).to_numpy()),
            bits(np.take_along_axis(x, expected, axis)),
            err_msg=where,
        )

    def test_every_type_and_size(self):
        random = np.random.default_rng(3)
        for dtype in DTYPES:
            for kind in ("spread", "few", "rare"):
                with self.subTest(dtype=dtype, kind=kind):
                    for size in SIZES if kind == "rare" else SIZES[::3]:
                        self.check(elements(random, dtype, size, kind))

    def test_descending(self):
        random = np.random.default_rng(4)
        for dtype in (bool, np.int8, np.uint16, np.int32, np.uint64, np.float16, np.float32, np.float64):
            with self.subTest(dtype=dtype):
                for size in (1, 17, 200, 1025, 9000, 70001):
                    self.check(elements(random, dtype, size, "rare"), descending=True)

    def test_long_rows(self):
        random = np.random.default_rng(5)
        for dtype in (np.int16, np.float16, np.float32, np.int64, np.float64):
            for kind in ("spread", "few", "rare"):
                with self.subTest(dtype=dtype, kind=kind):
                    for size in LONG_SIZES:
                        self.check(elements(random, dtype, size, kind))

    def test_a_million(self):
        random = np.random.default_rng(6)
        for dtype in (np.uint8, np.int32, np.float32, np.float64, np.uint64):
            for kind in ("spread", "rare"):
                with self.subTest(dtype=dtype, kind=kind):
                    self.check(elements(random, dtype, 1_000_003, kind))

    def test_sorted_and_reversed_inputs(self):
        n = 100_000
        rows = [np.arange(n), np.arange(n)[::-1], np.zeros(n), np.arange(n) % 2, np.abs(np.arange(n) - n // 2)]
        rows += [np.repeat([0, 1], n // 2), np.r_[np.arange(n - 1), 0], np.full(n, np.iinfo(np.int64).max)]
        for row in rows:
            for dtype in (np.int32, np.float32, np.int64, np.float64):
                self.check(row.astype(dtype))

    def test_rows_and_columns(self):
        random = np.random.default_rng(7)
        for shape in (
            (1000, 7), (7, 1000), (33, 257), (2000, 20), (5, 20_000), (3, 40_001), (2, 3, 100), (30, 50, 17),
            (0, 4), (4, 0),
        ):
            for dtype in (np.float32, np.int64, np.uint8):
                for axis in range(len(shape)):
                    with self.subTest(shape=shape, dtype=dtype, axis=axis):
                        count = int(np.prod(shape))
                        self.check(elements(random, dtype, count, "rare").reshape(shape), axis)

    def test_a_view_of_every_other_element_backwards(self):
        x = elements(np.random.default_rng(8), np.float32, 200_000, "rare")
        for step in (2, -1, -3):
            view = st.asarray(x)[::step]
            np.testing.assert_array_equal(bits(st.sort(view).to_numpy()), bits(np.sort(x[::step], kind="stable")))

    def test_in_place(self):
        random = np.random.default_rng(9)
        for size in (100, 20_000, 100_000):
            for dtype in (np.float32, np.float64, np.int32):
                x = elements(random, dtype, size, "rare")
                array = st.asarray(x)
                array.sort()
                np.testing.assert_array_equal(bits(array.to_numpy()), bits(np.sort(x, kind="stable")))

    def test_the_greatest_and_least(self):
        random = np.random.default_rng(10)
        for dtype in (np.int8, np.float16, np.float32, np.int64, np.float64):
            for size in (10, 1000, 5000, 200_001):
                x = elements(random, dtype, size, "rare")
                array = st.asarray(x)
                for k in {1, 5, min(size, 100), min(size, 512), min(size, 2000)}:
                    for largest in (True, False):
                        with self.subTest(dtype=dtype, size=size, k=k, largest=largest):
                            places = order(x, -1, largest)[:k]
                            values, found = st.top_k(array, k, largest=largest)
                            np.testing.assert_array_equal(found.to_numpy(), places)
                            np.testing.assert_array_equal(bits(values.to_numpy()), bits(x[places]))

    def test_many_rows_greatest(self):
        x = elements(np.random.default_rng(11), np.float32, 50 * 3000, "rare").reshape(50, 3000)
        values, places = st.top_k(st.asarray(x), 10)
        expected = order(x, -1, True)[:, :10]
        np.testing.assert_array_equal(places.to_numpy(), expected)
        np.testing.assert_array_equal(bits(values.to_numpy()), bits(np.take_along_axis(x, expected, -1)))


if __name__ == "__main__":
    client_case.main()
