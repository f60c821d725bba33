"""The same work on 1, 2, 4, ... devices: a sum, a matrix times a vector, an elementwise expression, all on arrays that are there, split over the devices.

    PYTHONPATH=build/release/python python bench/python/shards.py [--elements 30000000] [--rows 10000] [--columns 300000] [--repeats 15] [--json FILE]

Prints medians and p99 in milliseconds and how many times faster than on one device, measured alternately in the same run. Connects as stride.connect
does; `STRIDE_ADDRESS`, or `strided --cpu-devices=4x1` where there is no GPU. The sum and the product end with a read of the result."""

import argparse
import json
import statistics
import time

import numpy as np

import stride as st


def counts(devices):
    return [n for n in (1, 2, 4, 8) if n <= len(devices)]


def spread(host, axis, devices):
    return st.asarray(host, sharding=st.Sharding(axis, devices))


def made(shape, axis, devices, seed):
    host = np.random.default_rng(seed).standard_normal(1 << 16, np.float32)
    reps = -(-int(np.prod(shape)) // host.size)
    return spread(np.resize(np.tile(host, min(reps, 1 << 14)), shape), axis, devices)


def measure(work, repeats):
    """By name, the seconds of each repeat; alternately, so that what disturbs one disturbs all."""
    times = {name: [] for name in work}
    for name, function in work.items():
        function()  # compiles
        function()
    for _ in range(repeats):
        for name, function in work.items():
            begin = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - begin)
    return times


def table(title, times, num_bytes):
    rows, first = [], None
    for count, seconds in times.items():
        median = statistics.median(seconds)
        p99 = sorted(seconds)[min(len(seconds) - 1, int(0.99 * len(seconds)))]
        first = first or median
        rows.append({"work": title, "devices": count, "median_ms": median * 1e3, "p99_ms": p99 * 1e3, "ratio": first / median,
                     "gigabytes_per_second": num_bytes / median / 1e9})
        print(f"{title:28} {count:2} devices  {median * 1e3:9.3f} ms  p99 {p99 * 1e3:9.3f}  {first / median:5.2f} times one  {num_bytes / median / 1e9:8.1f} GB/s")
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--elements", type=int, default=30_000_000)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=300_000)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows = []
    with st.connect(timeout=600) as session:
        found = session.devices()
        kind = "cuda" if any(device.kind == "cuda" for device in found) else "cpu"
        names = [device.name.replace("devices/", "") for device in found if device.kind == kind and device.serving]
        print(f"{len(names)} devices of kind {kind}")
        groups = {n: names[:n] for n in counts(names)}

        arrays = {n: made((arguments.elements,), 0, group, 1) for n, group in groups.items()}
        rows += table("sum, float32", measure({n: lambda x=x: float(st.sum(x)) for n, x in arrays.items()}, arguments.repeats),
                      4 * arguments.elements)

        def expression(x):
            y = st.cos(x) ** 2 + st.sin(x) ** 2
            session.synchronize()
            del y

        rows += table("cos**2 + sin**2, float32", measure({n: lambda x=x: expression(x) for n, x in arrays.items()}, arguments.repeats),
                      8 * arguments.elements)

        def add(x):
            y = x + x
            session.synchronize()
            del y

        rows += table("x + x, float32", measure({n: lambda x=x: add(x) for n, x in arrays.items()}, arguments.repeats), 8 * arguments.elements)
        arrays.clear()

        # Rows, as the result is wanted; columns, whose partial products have to be added.
        matrix_bytes = 4 * arguments.rows * arguments.columns
        vector = np.random.default_rng(2).standard_normal(arguments.columns, np.float32)
        for axis, title in ((0, "matvec by rows"), (1, "matvec by columns")):
            times = {}
            for n, group in groups.items():  # one matrix at a time: all of them may be more than a device has
                matrix = made((arguments.rows, arguments.columns), axis, group, 3)
                v = spread(vector, 0, group) if axis else st.asarray(vector, sharding=st.Sharding(devices=group, replicated=True))
                times[n] = measure({n: lambda m=matrix, v=v: (m @ v).to_numpy()}, arguments.repeats)[n]
                del matrix
                session.synchronize()
            rows += table(f"{title}, float32", times, matrix_bytes)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
