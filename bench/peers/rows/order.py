"""Sorts, searches and selections by order."""

import numpy as np

from bench.peers.sizes import keys
from bench.peers.workload import Rows

ROWS = Rows()
row = ROWS.row


@row("sort", "sort 1e7 f32", keys, in_a_row=True)
@row("sort_int64", "sort 1e7 i64", lambda s: [s.places(s.count(1e7), 1 << 60)], in_a_row=True)
def sort(lib, x):
    return lib.xp.sort(x)


@row(
    "sort_short_float64",
    "sort 3e4 f64",
    lambda s: [s.normals(s.count(3e4), dtype=np.float64)],
    in_a_row=True,
    on_host=True,
)
@row("sort_short", "sort 3e4 f32", lambda s: [s.normals(s.count(3e4))], in_a_row=True)
@row("sort_float64", "sort 1e6 f64", lambda s: [s.normals(s.count(1e6), dtype=np.float64)], in_a_row=True)
def sort_other(lib, x):
    return lib.xp.sort(x)


@row("argsort_int64", "argsort 1e6 i64", lambda s: [s.places(s.count(1e6), 1 << 60)], in_a_row=True, tolerance=None)
@row("argsort", "argsort 1e7 f32", keys, in_a_row=True, tolerance=None)
def argsort(lib, x):
    return lib.xp.argsort(x)


@row("unique", "unique 1e7 f32", keys, in_a_row=True, eager=True)
def unique(lib, x):
    return lib.xp.unique(x)


@row("partition", "partition 1e6 f32", lambda s: [s.normals(s.count(1e6))], in_a_row=True, tolerance=None)
def partition(lib, x):
    return lib.xp.partition(x, x.shape[0] // 2)


@row(
    "isin",
    "isin 1e6 of 1e5 i64",
    lambda s: [s.places(s.count(1e6), 1 << 40), s.places(s.count(1e5), 1 << 40)],
    in_a_row=True,
    tolerance=0,
)
def isin(lib, x, y):
    return lib.xp.isin(x, y)


@row(
    "intersect1d",
    "intersect1d of 1e6 i64 twice",
    lambda s: [s.places(s.count(1e6), 1_000_000) for _ in "xy"],
    tolerance=0,
    eager=True,
)
def intersect1d(lib, x, y):
    return lib.xp.intersect1d(x, y)


@row(
    "digitize",
    "digitize 1e6 f32 in 50",
    lambda s: [s.normals(s.count(1e6)), np.linspace(-3, 3, 50, dtype=np.float32)],
    in_a_row=True,
    tolerance=0,
)
def digitize(lib, x, edges):
    return lib.xp.digitize(x, edges)


def random_square(s):
    return [s.normals(s.side(4096), s.side(4096))]


@row("sort_rows", "sort axis 1 4096^2 f32", random_square, in_a_row=True, slow_in_numpy=True)
def sort_rows(lib, x):
    return lib.xp.sort(x, axis=1)


@row("sort_columns", "sort axis 0 4096^2 f32", random_square, in_a_row=True, slow_in_numpy=True)
def sort_columns(lib, x):
    return lib.xp.sort(x, axis=0)


@row("top_k", "top 100 of 1e7 f32", keys, in_a_row=True, tolerance=None)
def top_k(lib, x):
    return lib.top_k(x, 100)


@row(
    "searchsorted",
    "searchsorted 1e7 in 1e6 f32",
    lambda s: [np.sort(s.normals(s.count(1e6))), s.normals(s.count(1e7))],
    in_a_row=True,
    tolerance=0,
    slow_in_numpy=True,
)
def searchsorted(lib, x, y):
    return lib.xp.searchsorted(x, y)


@row("permutation", "permutation 1e6", lambda s: [s.count(1e6)], in_a_row=True, tolerance=None, eager=True)
def permutation(lib, count):
    return lib.permutation(count)
