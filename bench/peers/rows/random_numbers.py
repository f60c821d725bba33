"""Random numbers."""

import numpy as np

from bench.peers.workload import Rows

ROWS = Rows()
row = ROWS.row


@row(
    "normal",
    "standard_normal 1e8 f32",
    lambda s: [s.count(1e8)],
    in_a_row=True,
    tolerance=None,
    eager=True,
    slow_in_numpy=True,
)
def normal(lib, count):
    return lib.normal(count, np.float32)


@row(
    "uniform", "random 1e8 f32", lambda s: [s.count(1e8)], in_a_row=True, tolerance=None, eager=True, slow_in_numpy=True
)
def uniform(lib, count):
    return lib.uniform(count, np.float32)


@row("integers", "integers 1e7 i32", lambda s: [s.count(1e7)], in_a_row=True, tolerance=None, eager=True)
def integers(lib, count):
    return lib.integers(count)
