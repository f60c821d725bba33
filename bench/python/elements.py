"""Loops over elements, small slices and single random numbers: Stride next to NumPy, in turns of the same run.

    PYTHONPATH=build/release/python:. python bench/python/elements.py [--size 32400] [--repeats 15] [--json FILE]

Prints nanoseconds a step of each loop, medians, and the ratio: at most 10 is meant. `--cpu` takes the process's own
time, for a machine on which others run. An array is new for each turn, so
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


# Small operations: of a module, on arrays of 64 x 64.


def rows(m, a, b, n):
    for i in range(n):
        b[i % 64, :] = a[i % 64, :] * 2


def sums(m, a, b, n):
    total = 0.0
    for i in range(n):
        total += a[i % 64].sum()
    b[0, 0] = total


def function_sums(m, a, b, n):
    for i in range(n):
        b[0, i % 64] = m.sum(a[i % 64])


def stencil(m, a, b, n):
    for i in range(n):
        k = i % 60
        b[1 + k, 1:-1] = (a[k, 1:-1] + a[2 + k, 1:-1] + a[1 + k, 2:] + a[1 + k, :-2]) / 4


def steps(m, a, b, n):
    position, velocity = m.asarray([1.0, 2.0, 3.0]), m.asarray([0.1, 0.2, 0.3])
    for _ in range(n):
        position = position + velocity * 0.01
        if position[0] > 1e9:
            break
    b[0, :3] = position


def products(m, a, b, n):
    for i in range(n):
        b[0, i % 64] = m.dot(a[i % 64], a[0])


def norms(m, a, b, n):
    for i in range(n):
        b[0, i % 64] = m.linalg.norm(a[i % 64])


def tests(m, a, b, n):
    for i in range(n):
        if (a[i % 64] > 2).any():
            b[0, 0] += 1


def flat(m, a, b, n):
    elements = b.flat
    for i in range(n):
        elements[i % 4096] = i


def whole(m, a, b, n):
    for _ in range(n // 16):
        old = b.copy()
        b[1:, 1:] = old[1:, 1:] - 0.1 * (old[1:, 1:] - old[:-1, 1:])
        b[0, :] = 1


def draws(m, a, b, n):
    for _ in range(n):
        m.random.rand()


def integers(m, a, b, n):
    for i in range(n):
        m.random.randint(0, 10 + i)


def normals(m, a, b, n):
    for i in range(n):
        m.random.normal(i, 2.0)


SMALL = {
    "b[i, :] = a[i, :] * 2": rows, "t += a[i].sum()": sums, "b[0, i] = sum(a[i])": function_sums, "stencil": stencil,
    "p = p + v * dt; p[0]": steps, "dot(a[i], a[0])": products, "norm(a[i])": norms, "(a[i] > 2).any()": tests,
    "b.flat[i] = i": flat, "a step on 64 x 64, / 16": whole, "rand()": draws, "randint(0, i)": integers,
    "normal(i, 2)": normals,
}

LOOPS = {
    "s += a[i]; a[i] = s": running_sum, "a[i]": reads, "a[i] = 2.5": writes, "neighbours": neighbours,
    "math.sqrt": roots, "a[i, j]": grid,
}


def timed(loop, *arguments, clock):
    begin = clock()
    loop(*arguments)
    return (clock() - begin) / arguments[-1]


def small_turns(loop, options, clock):
    """Pairs of seconds a step. The results agree."""
    turns, host = [], np.random.default_rng(1).random((64, 64))
    for _ in range(options.repeats):
        times, results = [], []
        for m in (st, np):
            a, b = m.asarray(host), m.zeros((64, 64))
            times.append(timed(loop, m, a, b, options.size, clock=clock))
            results.append(np.asarray(b))
        turns.append(times)
        np.testing.assert_allclose(*results, rtol=1e-12)
    return turns


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=32_400)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", help="a file for the rows")
    parser.add_argument("--cpu", action="store_true", help="seconds of the process, not of the clock")
    options = parser.parse_args()
    clock = time.process_time if options.cpu else time.perf_counter
    result = Result()
    host = np.linspace(0, 1e-3, options.size)
    with st.connect() as session:
        result.devices = models(session.devices())
        device = next(iter(result.devices))
        print(f"{options.size} float64; {', '.join(result.devices)}; NumPy {np.__version__}; ns a step, medians")
        print(f"{'':24}{'Stride':>10}{'NumPy':>10}{'ratio':>8}")
        for name, loop in {**LOOPS, **SMALL}.items():
            turns = small_turns(loop, options, clock) if name in SMALL else []
            for _ in range(options.repeats if name in LOOPS else 0):
                ours, theirs = st.asarray(host) * 1, host * 1
                with np.errstate(all="ignore"):
                    turns.append([timed(loop, one, options.size, clock=clock) for one in (ours, theirs)])
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
