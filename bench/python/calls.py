"""Cost of calls to the calling program: thread time of the Python client, in microseconds per call.

    PYTHONPATH=<built package> python calls.py STRIDED [ROW ...]

Each row has the least of 14 turns: a call as it is recorded, with its commands, and the wall time including
the wait for the results. A turn makes the table's number of calls and holds all results. With `--unsent` the
results are dropped before they are sent, and the figure is the tenth percentile of 300 turns of 16 calls: it
moves by 1 % next to other work. To compare two packages, run them in turns."""

import argparse
import gc
import time

import numpy as np

import stride as st
from stride._daemon import PrivateDaemon

_TURNS = 14
_AXPY = """extern "C" __global__ void axpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}"""


def rows() -> dict:
    """By name, a function and how many calls of it a turn makes."""
    rng = np.random.default_rng(1)

    def device(host):
        return st.asarray(host) + 0  # computed by the first `synchronize`

    x, m = device(rng.normal(size=100_000).astype(np.float32)), device(rng.normal(size=(300, 300)).astype(np.float32))
    v, keys = device(rng.normal(size=300).astype(np.float32)), device(rng.integers(0, 100, 100_000))
    vectors, others = (device(rng.normal(size=(1000, 3)).astype(np.float32)) for _ in range(2))
    from_device, to_device = device(np.ones(64, np.float32)), device(np.zeros(64, np.float32))
    host = np.arange(1000, dtype=np.float32)
    places, bins = device(rng.integers(0, 1000, 20_000)), np.linspace(-3, 3, 20)
    mask = st.asarray(rng.random(20_000) < 0.5)
    w, target = device(rng.normal(size=20_000).astype(np.float32)), device(np.zeros(1000, np.float32))
    mask = st.logical_and(mask, True).block_until_ready()
    kernels = {size: st.RawKernel(f"// {'x' * size}\n{_AXPY}", "axpy") for size in (0, 3_000, 10_000)}

    def launch(size):
        kernels[size]((1,), (64,), (np.float32(2), from_device, to_device, np.int32(64)))

    def put():
        target[places] = w

    return {
        "launch": (lambda: launch(0), 1000),
        "launch, 3 KB of source": (lambda: launch(3_000), 1000),
        "launch, 10 KB of source": (lambda: launch(10_000), 1000),
        "add": (lambda: m + m, 16),
        "add a number": (lambda: m + 1.0, 16),
        "multiply by a number": (lambda: m * 2, 16),
        "sum": (lambda: st.sum(m), 16),
        "sum, as a method": (lambda: m.sum(), 16),
        "sum along an axis": (lambda: st.sum(m, axis=0), 16),
        "product of matrices": (lambda: m @ m, 16),
        "sqrt": (lambda: st.sqrt(m), 16),
        "negative": (lambda: -m, 16),
        "compare": (lambda: m > m, 16),
        "2,000 adds": (lambda: m + 1.0, 2000),
        "slice": (lambda: m[1:], 16),
        "cos(x)**2 + sin(x)**2": (lambda: st.cos(x)**2 + st.sin(x)**2, 16),
        "add, host to host": (lambda: (st.asarray(host) + st.asarray(host)).to_numpy(), 16),
        "histogram": (lambda: st.histogram(x, bins=100), 4),
        "histogram with a range": (lambda: st.histogram(x, bins=100, range=(-4.0, 4.0)), 16),
        "percentile": (lambda: st.percentile(m, 30.0), 16),
        "percentile, two along an axis": (lambda: st.percentile(m, [25.0, 75.0], axis=0), 16),
        "median": (lambda: st.median(m), 16),
        "bincount": (lambda: st.bincount(keys), 4),
        "cross": (lambda: st.cross(vectors, others), 16),
        "diag of a vector": (lambda: st.diag(v), 16),
        "diag of a matrix": (lambda: st.diag(m), 16),
        "gradient": (lambda: st.gradient(m, axis=0), 16),
        "einsum ij,jk->ik": (lambda: st.einsum("ij,jk->ik", m, m), 16),
        "pad": (lambda: st.pad(v, 5), 16),
        "pad of a matrix": (lambda: st.pad(m, ((1, 1), (2, 2))), 16),
        "pad by edges": (lambda: st.pad(m, 2, mode="edge"), 16),
        "concat": (lambda: st.concat([v, v]), 16),
        "stack": (lambda: st.stack([w, w]), 16),
        "roll": (lambda: st.roll(w, 1234), 16),
        "repeat": (lambda: st.repeat(w, 8), 16),
        "tril": (lambda: st.tril(m), 16),
        "var along an axis": (lambda: m.var(axis=0), 16),
        "std": (lambda: w.std(), 16),
        "where": (lambda: st.where(mask, w, w), 16),
        "take": (lambda: st.take(w, places), 16),
        "x[places]": (lambda: w[places], 16),
        "x[places] = y": (put, 16),
        "x[mask]": (lambda: w[mask], 16),
        "nonzero": (lambda: st.nonzero(mask), 16),
        "digitize": (lambda: st.digitize(w, bins), 16),
        "cumsum": (lambda: st.cumsum(w), 16),
        "sort": (lambda: st.sort(w), 16),
    }


def measured(session, function, count: int) -> tuple:
    recorded, sent, wall = [], [], []
    for _ in range(_TURNS):
        gc.collect()
        session.synchronize()
        begin, start = time.perf_counter(), time.thread_time()
        held = [function() for _ in range(count)]
        recorded.append(time.thread_time() - start)
        session._settle()
        sent.append(time.thread_time() - start)
        session.synchronize()
        wall.append(time.perf_counter() - begin)
        del held
    return tuple(min(one) / count * 1e6 for one in (recorded, sent, wall))


def unsent(session, function) -> float:
    """Microseconds to record a call, and no more."""
    session.synchronize()
    turns = []
    gc.collect()
    gc.disable()
    for _ in range(300):
        start = time.thread_time()
        held = [function() for _ in range(16)]
        turns.append(time.thread_time() - start)
        del held
    gc.enable()
    return sorted(turns)[len(turns) // 10] / 16 * 1e6


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("strided")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--unsent", action="store_true", help="only record the calls")
    options = parser.parse_args()
    daemon = PrivateDaemon(options.strided, ["--no-cuda", "--cpu-devices=1x1"])
    try:
        with st.connect(daemon.address, timeout=60) as session:
            for name, (function, count) in rows().items():
                if options.names and name not in options.names:
                    continue
                if options.unsent:
                    print("%-32s recorded %7.2f us" % (name, unsent(session, function)), flush=True)
                else:
                    print("%-32s recorded %7.1f  with its commands %7.1f  wall %8.1f us" % (
                        name, *measured(session, function, count)), flush=True)
    finally:
        daemon.stop()


if __name__ == "__main__":
    main()
