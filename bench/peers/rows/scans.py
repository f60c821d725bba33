"""Scans and masks."""

import numpy as np

from bench.peers.sizes import square
from bench.peers.workload import Rows, twice

ROWS = Rows()
row = ROWS.row


@row(
    "cumsum",
    "cumsum 3e7 f32",
    lambda s: [s.floats(s.count(3e7)) - np.float32(0.5)],
    moved=twice,
    in_a_row=True,
    tolerance=None,
)
@row(
    "cumsum_int64", "cumsum 3e7 i64", lambda s: [s.places(s.count(3e7), 1000)], moved=twice, in_a_row=True, tolerance=0
)
def cumsum(lib, x):
    return lib.xp.cumsum(x)


@row("cumsum_axis1", "cumsum axis 1 4096^2 f32", square, moved=twice, in_a_row=True, tolerance=1e-3)
def cumsum_axis1(lib, x):
    return lib.xp.cumsum(x, axis=1)


@row("cumsum_axis0", "cumsum axis 0 4096^2 f32", square, moved=twice, in_a_row=True, tolerance=1e-3)
def cumsum_axis0(lib, x):
    return lib.xp.cumsum(x, axis=0)


@row(
    "mask",
    "x[mask] 1e7 f32",
    lambda s: [s.floats(s.count(1e7)), s.floats(s.count(1e7)) > 0.5],
    in_a_row=True,
    eager=True,
)
def masked(lib, x, mask):
    return x[mask]


@row("nonzero", "nonzero 1e7", lambda s: [s.floats(s.count(1e7)) > 0.5], in_a_row=True, tolerance=0, eager=True)
def nonzero(lib, mask):
    return lib.xp.nonzero(mask)[0]
