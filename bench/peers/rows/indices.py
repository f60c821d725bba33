"""Reads and writes at indices, and sums by index."""

from bench.peers.sizes import keys
from bench.peers.workload import Rows

ROWS = Rows()
row = ROWS.row


@row(
    "take",
    "take 1e7 of 3e7 f32",
    lambda s: [s.floats(s.count(3e7)), s.places(s.count(1e7), s.count(3e7))],
    in_a_row=True,
)
def take(lib, x, places):
    return x[places]


@row(
    "scatter",
    "y[idx]=x, 1e7 into 1e6 f32",
    lambda s: [s.floats(s.count(1e6)), s.places(s.count(1e7), s.count(1e6)), s.floats(s.count(1e7))],
    in_a_row=True,
    tolerance=None,
)
def scatter(lib, y, places, x):
    return lib.write(y, places, x)


@row(
    "add_at_few",
    "add.at 1e6 into 16 f32",
    lambda s: [s.floats(16), s.places(s.count(1e6), 16), s.floats(s.count(1e6))],
    in_a_row=True,
    tolerance=None,
)
@row(
    "add_at_many",
    "add.at 1e7 into 1e6 f32",
    lambda s: [s.floats(s.count(1e6)), s.places(s.count(1e7), s.count(1e6)), s.floats(s.count(1e7))],
    in_a_row=True,
    tolerance=None,
)
def add_at(lib, y, places, x):
    return lib.add_at(y, places, x)


@row(
    "bincount",
    "bincount 1e7, 1000 bins",
    lambda s: [s.places(s.count(1e7), 1000)],
    in_a_row=True,
    tolerance=0,
    eager=True,
)
def bincount(lib, x):
    return lib.xp.bincount(x)


@row(
    "group_sum",
    "sums of 1e7 f32 by 1000 groups",
    lambda s: [s.places(s.count(1e7), 1000), s.floats(s.count(1e7))],
    in_a_row=True,
    tolerance=1e-2,
    eager=True,
)
def group_sum(lib, groups, values):
    return lib.group_sum(groups, values, 1000)


@row("histogram", "histogram 1e7 f32, 100 bins", keys, in_a_row=True, tolerance=None, eager=True)
def histogram(lib, x):
    return lib.xp.histogram(x, bins=100)[0]
