"""A chain of small operations as a program: stride.jit's replay, compared with the same chain sent operation
by operation, and with an empty command.

    PYTHONPATH=build/release/python:. python bench/python/program.py
        [--length 100] [--size 1000] [--repeats 30] [--ahead 20] [--json FILE]

The chain does not fuse to one expression: every fourth operation is a cumulative sum. Prints microseconds,
medians over the repeats, measured alternately in the same run: a call with the read of its result, one of its
operations, calls in a row (`--ahead` of them, then one read), and the round trip of a synchronization, the
least cost of any answer. Connects as stride.connect does."""

import argparse
import statistics
import time

import numpy as np

import stride as st
from bench.report.devices import models
from bench.report.row import Result, Row, Times


def chain(length):
    def steps(x):
        for i in range(length // 4):
            x = st.cumulative_sum(st.sqrt(abs(x * 0.5 - 1))) * 1e-3
        return x

    return steps, length // 4 * 5


def timed(function, *arguments):
    begin = time.perf_counter()
    result = function(*arguments)
    return (time.perf_counter() - begin) * 1e6, result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=100)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--ahead", type=int, default=20)
    parser.add_argument("--json", help="a file for the rows")
    options = parser.parse_args()
    result = Result()
    steps, num_operations = chain(options.length)
    program = st.jit(steps)
    host = np.linspace(0, 1, options.size)

    def once(function, x):
        return np.asarray(function(x))

    def in_a_row(function, x):
        for _ in range(options.ahead - 1):
            result = function(x)
            result.session._settle()
        return np.asarray(function(x))

    with st.connect() as session:
        result.devices = models(session.devices())
        device = next(iter(result.devices))
        print(
            f"{num_operations} operations on {options.size} float64; {', '.join(result.devices)}; us, medians of "
            f"{options.repeats}"
        )
        x = st.asarray(host) + 0
        rows = []
        for i in range(options.repeats + 3):
            programs, values = timed(once, program, x)
            eager, other = timed(once, steps, x)
            np.testing.assert_allclose(values, other, rtol=1e-12)
            row, _ = timed(in_a_row, program, x)
            eager_row, _ = timed(in_a_row, steps, x)
            empty, _ = timed(session.synchronize)
            if i >= 3:
                rows.append((programs, eager, row / options.ahead, eager_row / options.ahead, empty))
        columns = [[one * 1e-6 for one in column] for column in zip(*rows)]
        for key, what, ours, theirs in (
            ("call", "Python, jit's call and read", 0, 1),
            ("in_a_row", "Python, jit's calls in a row", 2, 3),
        ):
            title = f"{what}, an operation of {num_operations} on {options.size} float64"
            each = (Times.of(one / num_operations for one in columns[column]) for column in (ours, theirs))
            result.rows.append(
                Row(f"python_program/{key}/{device}", title, next(each), "the same recorded", next(each))
            )
        programs, eager, row, eager_row, empty = (statistics.median(column) for column in zip(*rows))
        print(f"{'':24}{'program':>12}{'operations':>12}{'ratio':>8}")
        print(f"{'call and read':24}{programs:12.1f}{eager:12.1f}{programs / eager:8.3f}")
        print(f"{'  an operation':24}{programs / num_operations:12.2f}{eager / num_operations:12.2f}")
        print(f"{'call, in a row':24}{row:12.1f}{eager_row:12.1f}{row / eager_row:8.3f}")
        print(f"{'  an operation':24}{row / num_operations:12.2f}{eager_row / num_operations:12.2f}")
        print(f"{'an empty answer':24}{empty:12.1f}")
    if options.json:
        result.write(options.json)


if __name__ == "__main__":
    main()
