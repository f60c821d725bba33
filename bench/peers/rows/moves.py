"""Copies of elements to other places."""

import numpy as np

from bench.peers.sizes import square
from bench.peers.workload import Rows, twice

ROWS = Rows()
row = ROWS.row


@row("transpose", "x.T copy 8192^2 f32", lambda s: [s.floats(s.side(8192), s.side(8192))], moved=twice, in_a_row=True)
def transpose(lib, x):
    return x.T + np.float32(0) if lib.name == "JAX" else lib.xp.ascontiguousarray(x.T)


@row("roll", "roll 1e7 f32", lambda s: [s.floats(s.count(1e7))], moved=twice, in_a_row=True)
def roll(lib, x):
    return lib.xp.roll(x, 12345)


@row("repeat", "repeat 1e6 x 8 f32", lambda s: [s.floats(s.count(1e6))], moved=lambda x: 9 * x.nbytes, in_a_row=True)
def repeat(lib, x):
    return lib.xp.repeat(x, 8)


@row("tril", "tril 4096^2 f32", square, moved=twice, in_a_row=True)
def tril(lib, x):
    return lib.xp.tril(x)


@row(
    "stack",
    "stack 2 x 1e7 f32",
    lambda s: [s.floats(s.count(1e7)) for _ in "xy"],
    moved=lambda x, y: 4 * x.nbytes,
    in_a_row=True,
)
def stack(lib, x, y):
    return lib.xp.stack([x, y])


@row(
    "concatenate",
    "concatenate 2 x 1e7 f32",
    lambda s: [s.floats(s.count(1e7)) for _ in "xy"],
    moved=lambda x, y: 4 * x.nbytes,
    in_a_row=True,
)
def concatenate(lib, x, y):
    return lib.xp.concatenate([x, y])
