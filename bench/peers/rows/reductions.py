"""Reductions."""

import numpy as np

from bench.peers.sizes import square
from bench.peers.workload import Rows, once

ROWS = Rows()
row = ROWS.row


@row(
    "sum",
    "sum 3e7 f32 to a number",
    lambda s: [s.floats(s.count(3e7))],
    moved=once,
    number=True,
    tolerance=1e-4,
    torch=True,
    expression="sum(x)",
)
@row(
    "sum_int32", "sum 3e7 i32 to a number", lambda s: [s.places(s.count(3e7), 1000, np.int32)], moved=once, number=True
)
def total(lib, x):
    return lib.xp.sum(x)


@row(
    "max_int32", "max 3e7 i32 to a number", lambda s: [s.places(s.count(3e7), 1000, np.int32)], moved=once, number=True
)
def greatest(lib, x):
    return lib.xp.max(x)


@row(
    "max", "max 2.5e7 f32 to a number", lambda s: [s.normals(s.count(2.5e7))], moved=once, number=True, on_host=True
)
@row(
    "max_float64",
    "max 1e7 f64 to a number",
    lambda s: [s.normals(s.count(1e7), dtype=np.float64)],
    moved=once,
    number=True,
    on_host=True,
)
@row("max_short", "max 1e5 f32 to a number", lambda s: [s.normals(s.count(1e5))], number=True, on_host=True)
def greatest_float(lib, x):
    return lib.xp.max(x)


@row(
    "argmax",
    "argmax of 2.5e7 f32 to a number",
    lambda s: [s.normals(s.count(2.5e7))],
    moved=once,
    number=True,
    tolerance=0,
    torch=True,
)
def place_of_greatest(lib, x):
    return lib.xp.argmax(x)


def lines(s):
    return [s.floats(s.count(5e3), 5000)]


@row("sum_columns", "sum of columns, 5000x5000 f32", lines, moved=once, tolerance=1e-4)
@row("sum_axis0", "sum axis 0 4096^2 f32", square, moved=once, in_a_row=True, tolerance=1e-4)
def sum_axis0(lib, x):
    return lib.xp.sum(x, axis=0)


@row("sum_axis1", "sum axis 1 4096^2 f32", square, moved=once, in_a_row=True, tolerance=1e-4)
def sum_axis1(lib, x):
    return lib.xp.sum(x, axis=1)


@row(
    "sum_leading",
    "sum axis 0 of (1e6, 8) f32",
    lambda s: [s.floats(s.count(1e6), 8)],
    moved=once,
    in_a_row=True,
    tolerance=1e-4,
)
def sum_leading(lib, x):
    return lib.xp.sum(x, axis=0)


@row("var_axis0", "var axis 0 4096^2 f32", square, moved=once, in_a_row=True, tolerance=1e-4)
def var_axis0(lib, x):
    return lib.xp.var(x, axis=0)


@row("std", "std 1e7 f32", lambda s: [s.floats(s.count(1e7))], moved=once, in_a_row=True, tolerance=1e-4)
def std(lib, x):
    return lib.xp.std(x)


@row(
    "argmax_axis1",
    "argmax axis 1 4096^2 f32",
    lambda s: [s.normals(s.side(4096), s.side(4096))],
    moved=once,
    in_a_row=True,
    tolerance=0,
)
def argmax_axis1(lib, x):
    return lib.xp.argmax(x, axis=1)


@row(
    "sum_of_squares",
    "sum((a-b)**2, axis 1) 4096^2 f32",
    lambda s: square(s) + square(s),
    moved=lambda x, y: 2 * x.nbytes,
    in_a_row=True,
    tolerance=1e-4,
)
def sum_of_squares(lib, x, y):
    return lib.xp.sum((x - y) ** 2, axis=1)


@row("median", "median 1e7 f32", lambda s: [s.normals(s.count(1e7))], in_a_row=True)
def median(lib, x):
    return lib.xp.median(x)
