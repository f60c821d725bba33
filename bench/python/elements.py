"""Loops over single elements: Stride beside NumPy, in turns of the same run.

    PYTHONPATH=build/release/python:. python bench/python/elements.py [--size 32400] [--repeats 15] [--json FILE]

Prints nanoseconds a step of each loop, medians, and the ratio: at most 10 is meant. An array is new for each turn, so
that the round trip that brings its elements here is part of the time. Connects as stride.connect does."""

import argparse
import math
import time

import numpy as np

import stride as st
from bench.report.devices import models
from bench.report.row import Result, Row, Times


def running_sum(a, n):
    s = 0.0
    for i in range(n):
        s += a[i]
        a[i] = s


def reads(a, n):
    for i in range(n):
        a[i]


def writes(a, n):
    for i in range(n):
        a[i] = 2.5


def neighbours(a, n):
    for i in range(1, n - 1):
        if a[i] > a[i - 1]:
            a[i] = (a[i - 1] + a[i + 1]) * 0.5


def roots(a, n):
    for i in range(n):
        a[i] = math.sqrt(a[i])


def grid(a, n):
    side = math.isqrt(n)
    square = a.reshape(side, n // side)
    for i in range(1, side):
        for j in range(1, n // side):
            square[i, j] = square[i - 1, j] + square[i, j - 1]


LOOPS = {
    "s += a[i]; a[i] = s": running_sum, "a[i]": reads, "a[i] = 2.5": writes, "neighbours": neighbours,
    "math.sqrt": roots, "a[i, j]": grid,
}


def timed(loop, array, size):
    begin = time.perf_counter()
    loop(array, size)
    return (time.perf_counter() - begin) / size


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=32_400)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", help="a file for the rows")
    options = parser.parse_args()
    result = Result()
    host = np.linspace(0, 1e-3, options.size)
    with st.connect() as session:
        result.devices = models(session.devices())
        device = next(iter(result.devices))
        print(f"{options.size} float64; {', '.join(result.devices)}; NumPy {np.__version__}; ns a step, medians")
        print(f"{'':24}{'Stride':>10}{'NumPy':>10}{'ratio':>8}")
        for name, loop in LOOPS.items():
            turns = []
            for _ in range(options.repeats):
                ours, theirs = st.asarray(host) * 1, host * 1
                with np.errstate(all="ignore"):
                    turns.append((timed(loop, ours, options.size), timed(loop, theirs, options.size)))
                np.testing.assert_array_equal(ours.to_numpy(), theirs)
            mine, numpys = (Times.of(column) for column in zip(*turns))
            ratio = mine.median_s / numpys.median_s
            print(f"{name:24}{mine.median_s * 1e9:10.0f}{numpys.median_s * 1e9:10.0f}{ratio:8.2f}", flush=True)
            key = "".join(letter if letter.isalnum() else "_" for letter in name)
            title = f"Python, a step of a loop over elements: {name}, {options.size} float64"
            result.rows.append(Row(f"python_elements/{key}/{device}", title, mine, "NumPy", numpys))
    if options.json:
        result.write(options.json)


if __name__ == "__main__":
    main()
