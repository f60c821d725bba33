"""The first use of each operation of a page of NumPy examples: what it takes on a fresh daemon with no compiled code,
and how many codes it compiled.

    PYTHONPATH=<built package> python first_use.py STRIDED [--cuda] [--rows] [--tiers]

Each line of the page runs once and its result is fetched. A daemon of its own starts with an empty cache. With
`--tiers`, also the least time of a call by blocks and with code of its own."""

import argparse
import pathlib
import statistics
import tempfile
import time

import numpy as np

import stride as st
from stride._daemon import PrivateDaemon

# From NumPy's "absolute basics for beginners" and "quickstart" pages: one operation a line, on small arrays.
PAGE = """
st.zeros(2)
st.ones(2, dtype=np.int64)
st.arange(4)
st.arange(2, 9, 2)
st.linspace(0, 10, num=5)
st.full((2, 3), 7.5)
st.sort(st.array([2, 1, 5, 3, 7, 4, 6, 8]))
st.concatenate((st.array([1, 2, 3, 4]), st.array([5, 6, 7, 8])))
st.arange(6).reshape(3, 2) + 1
a12[a12 < 5]
a12[a12 >= 5]
a12[a12 % 2 == 0]
a12[(a12 > 2) & (a12 < 11)]
(a12 > 5) | (a12 == 5)
st.nonzero(a12 < 5)[0]
st.vstack((a12, a12))
st.hstack((a12, a12))
data + ones
data - ones
data * data
data / data
data * 1.6
data.sum()
b.sum(axis=0)
b.sum(axis=1)
data.max()
data.min()
b.max(axis=0)
b.min(axis=1)
b.mean()
b.std()
st.unique(st.array([11, 11, 12, 13, 14, 15]))
b.T + b.T
st.flip(st.array([1, 2, 3, 4]))
x ** 2
st.sin(x)
st.cos(x)
10 * st.sin(x)
x < 35
b @ b.T
st.cumsum(x)
x.cumsum()
b.cumsum(axis=1)
st.exp(b)
st.sqrt(b)
st.add(b, c)
st.floor(10 * x)
x.argmax()
x.argmin()
st.where(x > 0.5, x, -x)
st.clip(x, 0.2, 0.8)
st.maximum(x, 0.5)
st.round(x, 2)
st.abs(x - 0.5)
st.log(x + 1)
x.var()
st.median(x)
st.argsort(x)
st.prod(x)
st.any(x > 0.5)
st.all(x > 0.5)
st.diff(x)
st.dot(x, x)
st.outer(x, x)
x[::2] * 2
x[st.array([1, 3, 5])]
st.isnan(x)
x.astype(np.float32)
x.astype(np.int32)
st.tile(x, 2)
st.repeat(x, 2)
st.eye(3)
st.meshgrid(x, x)[0]
(((st.array([1, 1, 1]) - st.array([1, 2, 3])) ** 2).sum()) / 3
st.histogram(x, 4)[0]
st.polyval(st.array([1.0, 2.0, 3.0]), x)
st.random.default_rng(1).random(3)
st.random.default_rng(1).integers(10, size=(2, 4))
st.random.default_rng(1).normal(size=3)
b32 + b32
b32 * 2
st.sin(b32)
b32.sum()
b32.sum(axis=0)
b32.mean()
b32 / b32.max()
i32 + i32
i32 * 2
i32.sum()
i32 // 2
i32 % 3
i32 + b32
st.sqrt(i32)
b - b.mean(axis=0)
(b - b.mean(axis=0)) / b.std(axis=0)
b[:, 0]
b[0] + b[1]
st.exp(-b ** 2 / 2)
1 / (1 + st.exp(-b))
st.cos(x) ** 2 + st.sin(x) ** 2
st.sqrt((x - 1) ** 2 + (x + 1) ** 2)
""".strip().splitlines()


def variables():
    x = np.linspace(0.01, 0.99, 50)
    b = np.arange(1.0, 13.0).reshape(3, 4)
    return {
        "np": np, "st": st, "a12": st.array(np.arange(1, 13).reshape(3, 4)), "data": st.array(np.array([1, 2])),
        "ones": st.array(np.ones(2, np.int64)), "x": st.array(x), "b": st.array(b), "c": st.array(b[::-1].copy()),
        "b32": st.array(b.astype(np.float32)), "i32": st.array(b.astype(np.int32)),
    }


def compiled(folder):
    """The number and bytes of the codes that this daemon compiled."""
    files = list(pathlib.Path(folder).rglob("*.module"))
    return len(files), sum(file.stat().st_size for file in files)


# Expressions of float32 `v`, each with its number of elements.
TIERS = [("v + 1.5", 1000), ("st.sqrt(v * v + 1) / (2 + v)", 1000), ("st.sin(v) * st.cos(v)", 1000),
         ("v + 1.5", 10 ** 6), ("st.sqrt(v * v + 1) / (2 + v)", 10 ** 6), ("v - v.T * 2", 1000 ** 2),
         ("st.sqrt(v * v + 1) / (2 + v)", 10 ** 7), ("st.sin(v) ** 2 - v", 10 ** 7)]


def compare_tiers(folder):
    def call(values):
        start = time.perf_counter()
        eval(text, values).block_until_ready()
        return time.perf_counter() - start

    for number, (text, count) in enumerate(TIERS):
        shape = (1000, 1000) if ".T" in text else (count + number,)  # of its own code, where the layout is
        values = {"st": st, "v": st.array(np.linspace(0.1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape))}
        values["v"].block_until_ready()
        before = compiled(folder)[0]
        # A million elements are worth a compilation: beyond that one call runs by blocks for sure.
        by_blocks = [call(values) for _ in range(100 if count < 10 ** 4 else 1)]
        waited = compiled(folder)[0] > before
        deadline = time.perf_counter() + 20
        while compiled(folder)[0] == before and time.perf_counter() < deadline:
            call(values)
        time.sleep(0.5)
        own = [call(values) for _ in range(100)]
        note = " (compiled already when the first calls ended)" if waited else ""
        print(f"{text:32} {count:9}: by blocks {min(by_blocks) * 1e6:9.0f} us, own code {min(own) * 1e6:9.0f} us, "
              f"ratio {min(by_blocks) / min(own):5.2f}{note}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("strided")
    parser.add_argument("--rows", action="store_true", help="print each line's time")
    parser.add_argument("--cuda", action="store_true", help="on the first GPU; default: a CPU device of two threads")
    parser.add_argument("--tiers", action="store_true", help="compare both tiers of some expressions")
    arguments = parser.parse_args()
    flags = [] if arguments.cuda else ["--no-cuda", "--cpu-devices=1x2"]
    with tempfile.TemporaryDirectory() as folder:
        daemon = PrivateDaemon(arguments.strided, [*flags, f"--cache-dir={folder}"])
        try:
            with st.connect(daemon.address, timeout=120, device="cuda:0" if arguments.cuda else None):
                names, times = variables(), []
                np.asarray(names["x"])
                begin = time.perf_counter()
                for line in PAGE:
                    before = compiled(folder)[0]
                    start = time.perf_counter()
                    np.asarray(eval(line, names))
                    times.append(time.perf_counter() - start)
                    if arguments.rows:
                        print(f"{times[-1] * 1e3:9.1f} ms {compiled(folder)[0] - before:3d}  {line}")
                seconds = time.perf_counter() - begin
                number, size = compiled(folder)
                if arguments.tiers:
                    compare_tiers(folder)
        finally:
            daemon.stop()
    print(f"{len(PAGE)} lines: {seconds:.2f} s, a line {statistics.median(times) * 1e3:.1f} ms (median), "
          f"{max(times) * 1e3:.0f} ms (most); {number} codes compiled, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
