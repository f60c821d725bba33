"""A chain of 1,000 small eager operations in Stride, compared with the same chain in this process: in CuPy if
it has a GPU, else in NumPy.

    PYTHONPATH=build/release/python:. python bench/python/chain.py
        [--length 1000] [--size 1000] [--repeats 9] [--profile] [--json FILE]

Prints microseconds per operation, medians over the repeats: to record it (the cost to the program's thread),
and with the read of the result at the end; then the ratio to the other library, measured alternately in the
same run. Kernels are compiled before. Connects as stride.connect does."""

import argparse
import cProfile
import pstats
import statistics
import time

import numpy as np

import stride as st
from bench.report.devices import models
from bench.report.row import Result, Row, Times


def chains(length):
    """Name and step of each chain: one number for all, arrays, and a mixture as programs have it."""

    def add_one(x, other, xp):
        for _ in range(length):
            x = x + 1
        return x

    def add_arrays(x, other, xp):
        for _ in range(length):
            x = x + other
        return x

    def mixture(x, other, xp):
        for _ in range(length // 4):
            y = x * 0.5 + other  # two
            x = xp.sqrt(abs(y))  # two
        return x

    return {"x + 1": add_one, "x + y": add_arrays, "sqrt(abs(x * 0.5 + y))": mixture}


def other_library():
    try:
        import cupy

        if cupy.cuda.runtime.getDeviceCount():
            return "CuPy", cupy, lambda x: cupy.asnumpy(x)
    except Exception:  # not installed, or no driver
        pass
    return "NumPy", np, np.asarray


def timed(chain, x, other, xp, read, length):
    begin = time.perf_counter()
    result = chain(x, other, xp)
    recorded = time.perf_counter()
    values = read(result)
    end = time.perf_counter()
    return (recorded - begin) / length * 1e6, (end - begin) / length * 1e6, values


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=1000)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--profile", action="store_true", help="where the time goes, by cProfile (which itself costs)")
    parser.add_argument("--json", help="a file for the rows")
    options = parser.parse_args()
    result = Result()
    name, xp, read = other_library()
    host = np.linspace(0, 1, options.size)
    with st.connect() as session:
        result.devices = models(session.devices())
        device = next(iter(result.devices))
        print(
            f"{options.length} operations on {options.size} float64; {', '.join(result.devices)}; beside {name} "
            f"{xp.__version__}; us an operation, "
            f"medians of {options.repeats}"
        )
        print(f"{'':24}{'record':>10}{'with read':>12}{name + ' record':>16}{name + ' read':>14}{'ratio':>8}")
        for title, chain in chains(options.length).items():
            ours, theirs = (st.asarray(host) + 0, st.asarray(host) * 0.5), (xp.asarray(host), xp.asarray(host) * 0.5)
            for array in ours:
                array.to_numpy()
            rows = []
            for i in range(options.repeats + 2):
                row = timed(chain, *ours, st, np.asarray, options.length), timed(
                    chain, *theirs, xp, read, options.length
                )
                np.testing.assert_allclose(row[0][2], row[1][2], rtol=1e-12)
                if i >= 2:
                    rows.append((*row[0][:2], *row[1][:2]))
            record, total, other_record, other_total = (statistics.median(column) for column in zip(*rows))
            print(
                f"{title:24}{record:10.2f}{total:12.2f}{other_record:16.2f}{other_total:14.2f}"
                f"{total / other_total:8.2f}"
            )
            ours_read, theirs_read = (Times.of(row[column] * 1e-6 for row in rows) for column in (1, 3))
            key = "".join(letter if letter.isalnum() else "_" for letter in title)
            result.rows.append(
                Row(
                    f"python_chain/{key}/{device}",
                    f"Python, an operation of {options.length}: {title}, {options.size} float64",
                    ours_read,
                    name,
                    theirs_read,
                )
            )
            if options.profile:
                profile = cProfile.Profile()
                profile.runcall(timed, chain, *ours, st, np.asarray, options.length)
                pstats.Stats(profile).sort_stats("tottime").print_stats(14)
    if options.json:
        result.write(options.json)


if __name__ == "__main__":
    main()
