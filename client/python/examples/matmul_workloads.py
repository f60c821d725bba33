"""Matrix products of several sizes, copies included and excluded.

    python3 matmul_workloads.py [LARGEST]      (default 1024; the originals go to 3000 and beyond)"""

import sys
import time

import numpy as np

import stride as st


def measure(left, right, label):
    begin = time.perf_counter()
    result = np.asarray(st.asarray(left) @ st.asarray(right))
    with_copies = time.perf_counter() - begin
    np.testing.assert_allclose(
        result, left.astype(np.float64) @ right, rtol=1e-3 if left.dtype == np.float32 else 1e-10, atol=1e-2
    )
    x, y = st.asarray(left) + 0, st.asarray(right) + 0
    st.current_session().synchronize()
    begin = time.perf_counter()
    product = x @ y
    st.current_session().synchronize()
    resident = time.perf_counter() - begin
    del product
    print(f"{label}: {1e3 * with_copies:.1f} ms with copies, {1e3 * resident:.1f} ms without")


def main(largest):
    random = np.random.default_rng(5)
    for dtype in (np.float32, np.float64):
        measure(
            random.random((1024, 2048)).astype(dtype),
            random.random((2048, 512)).astype(dtype),
            f"1024x2048 by 2048x512 {np.dtype(dtype)}",
        )
    measure(random.random((1000, 1000)), random.random((1000, 1000)), "1000x1000 float64")
    size = 256
    while size <= largest:
        square = random.random((size, size), np.float32)
        measure(square, square, f"{size}x{size} float32")
        size *= 2
    tall = random.random((min(3000, largest),) * 2, np.float32)
    measure(tall, np.ascontiguousarray(tall.T), f"{len(tall)}x{len(tall)} times its transpose")


if __name__ == "__main__":
    with st.connect():
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1024)
