"""The same work on 1, 2, 4, ... devices: a sum, a matrix times a vector, an elementwise expression, all on
existing arrays that are split over the devices.

    PYTHONPATH=build/release/python:. python bench/python/shards.py
        [--elements 30000000] [--rows 10000] [--columns 300000] [--repeats 15] [--json FILE]

Prints medians and p99 in milliseconds and the speedup over one device, measured alternately in the same run.
A sum ends with the read of its result. The other operations run several in a row, as in a program that uses
its results, with a wait for the last one: the times are per operation."""

import argparse
import contextlib
import os
import time

import numpy as np

import stride as st
from bench.report.devices import labels, models
from bench.report.row import Result, Row, Times
from stride._daemon import PrivateDaemon, find_daemon


# Operations that follow each other: so many that the wait for the last is a small part of the whole.
_IN_A_ROW = 32
# Time for a new daemon to probe its devices.
_START_S = 30


def counts(devices):
    return [n for n in (1, 2, 4, 8) if n <= len(devices)]


def spread(host, axis, devices):
    return st.asarray(host, sharding=st.Sharding(axis, devices))


def made(shape, axis, devices, seed):
    host = np.random.default_rng(seed).standard_normal(1 << 16, np.float32)
    reps = -(-int(np.prod(shape)) // host.size)
    return spread(np.resize(np.tile(host, min(reps, 1 << 14)), shape), axis, devices)


def measure(work, repeats, in_a_row=1):
    """By name, the seconds of each repeat, per operation of those in a row. Turns alternate, so that
    disturbances affect all alike."""
    times = {name: [] for name in work}
    for name, function in work.items():
        function()  # compiles
        function()
    for _ in range(repeats):
        for name, function in work.items():
            begin = time.perf_counter()
            function()
            times[name].append((time.perf_counter() - begin) / in_a_row)
    return times


def table(key, title, times, num_bytes, device):
    """A row for each number of devices but the first, held against that."""
    times = {count: Times.of(seconds) for count, seconds in times.items()}
    one = next(iter(times.values()))
    for count, of in times.items():
        print(
            f"{title:28} {count:2} devices  {of.median_s * 1e3:9.3f} ms  p99 {of.p99_s * 1e3:9.3f}  "
            f"{one.median_s / of.median_s:5.2f} times one  "
            f"{num_bytes / of.median_s / 1e9:8.1f} GB/s"
        )
    return [
        Row(f"shards/{key}/{count}/{device}", f"{title}, on {count} devices", of, "1 device", one, num_bytes)
        for count, of in times.items()
        if count > 1
    ]


@contextlib.contextmanager
def connected():
    """Connects as stride.connect does. A private daemon without GPUs has a CPU device for each processor, up
    to four, to spread over."""
    with st.connect(timeout=600) as session:
        if "STRIDE_ADDRESS" in os.environ or any(device.kind == "cuda" for device in session.devices()):
            yield session
            return
    daemon = PrivateDaemon(find_daemon(), [f"--cpu-devices={min(4, os.cpu_count())}x1"])
    try:
        with st.connect(daemon.address, timeout=600) as session:
            yield session
    finally:
        daemon.stop()


def serving(session):
    """All devices, once those of the measured kind serve: a new daemon probes its devices first."""
    end = time.monotonic() + _START_S
    while True:
        found = session.devices()
        kind = "cuda" if any(device.kind == "cuda" for device in found) else "cpu"
        wanted = [device for device in found if device.kind == kind]
        names = [device.name.replace("devices/", "") for device in wanted if device.serving]
        late = time.monotonic() > end
        if len(names) == len(wanted) or (names and late):
            return found, kind, names
        if late:
            raise RuntimeError(f"No device of kind {kind} serves")
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--elements", type=int, default=30_000_000)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=300_000)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    result = Result()
    with connected() as session:
        found, kind, names = serving(session)
        print(f"{len(names)} devices of kind {kind}")
        result.devices = models(found)
        if len(names) < 2:
            result.missing.append(f"arrays over several devices: there is one of kind {kind}")
        first = labels(found)["devices/" + names[0]]
        groups = {n: names[:n] for n in counts(names)}

        arrays = {n: made((arguments.elements,), 0, group, 1) for n, group in groups.items()}
        result.rows += table(
            "sum",
            "sum, float32",
            measure({n: lambda x=x: float(st.sum(x)) for n, x in arrays.items()}, arguments.repeats),
            4 * arguments.elements,
            first,
        )

        def row_of(operation):
            def turn():
                results = [operation() for _ in range(_IN_A_ROW)]
                session.synchronize()
                del results

            return turn

        for key, title, function in (
            ("trigonometric", "cos**2 + sin**2, float32", lambda x: st.cos(x) ** 2 + st.sin(x) ** 2),
            ("add", "x + x, float32", lambda x: x + x),
        ):
            work = {n: row_of(lambda x=x: function(x)) for n, x in arrays.items()}
            result.rows += table(key, title, measure(work, arguments.repeats, _IN_A_ROW), 8 * arguments.elements, first)
            del work
        arrays.clear()

        # Rows, as the result is wanted; columns, whose partial products have to be added.
        matrix_bytes = 4 * arguments.rows * arguments.columns
        vector = np.random.default_rng(2).standard_normal(arguments.columns, np.float32)
        for axis, key, title in ((0, "matvec_rows", "matvec by rows"), (1, "matvec_columns", "matvec by columns")):
            times = {}
            for n, group in groups.items():  # one matrix at a time: all of them may be more than a device has
                matrix = made((arguments.rows, arguments.columns), axis, group, 3)
                v = (
                    spread(vector, 0, group)
                    if axis
                    else st.asarray(vector, sharding=st.Sharding(devices=group, replicated=True))
                )
                times[n] = measure({n: row_of(lambda m=matrix, v=v: m @ v)}, arguments.repeats, _IN_A_ROW)[n]
                del matrix
                session.synchronize()
            result.rows += table(key, f"{title}, float32", times, matrix_bytes, first)
    if arguments.json:
        result.write(arguments.json)


if __name__ == "__main__":
    main()
