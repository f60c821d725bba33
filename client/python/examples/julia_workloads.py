"""CUDA.jl's multi-GPU examples: a matrix times a vector by blocks of columns, a large sum, and slices of one
array on several devices.

    python3 julia_workloads.py [ROWS COLUMNS]      (the original: 10000 300000, which is 12 GB)"""

import sys
import time

import numpy as np

import stride as st


def matrix_times_vector(rows, columns):
    random = np.random.default_rng(3)
    matrix, vector = random.random((rows, columns), np.float32), random.random(columns, np.float32)
    parts = 3
    edges = [columns * i // parts for i in range(parts + 1)]
    a, x = st.asarray(matrix), st.asarray(vector)
    # The partial results must be summed, which the original forgets.
    total = sum(
        (a[:, begin:end] @ x[begin:end] for begin, end in zip(edges, edges[1:])), st.zeros(rows, dtype=st.float32)
    )
    np.testing.assert_allclose(np.asarray(total), matrix.astype(np.float64) @ vector, rtol=1e-4)
    print(f"matrix times vector: {rows} x {columns}, right")


def large_sum(count=30_000_000):
    x = st.ones(count, dtype=st.float32)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        assert float(st.sum(x)) == count
        times.append(time.perf_counter() - begin)
    print(f"sum of {count:,} float32: {1e3 * sorted(times)[2]:.1f} ms")


def slices():
    devices = [device.name for device in st.current_session().devices() if device.serving]
    host = np.random.default_rng(4).random((64, 64, 4))
    a, b, c = st.asarray(host), st.asarray(2 * host), st.zeros((64, 64, 4))
    for g in range(4):
        c[:, :, g] = (a[:, :, g] + b[:, :, g]).to_device(devices[g % len(devices)])
    np.testing.assert_allclose(np.asarray(c), 3 * host)
    print("slices: right, over", ", ".join(devices))


if __name__ == "__main__":
    with st.connect():
        matrix_times_vector(*(map(int, sys.argv[1:3]) if len(sys.argv) > 2 else (1000, 3000)))
        large_sum()
        slices()
