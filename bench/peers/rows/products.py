"""Products of vectors and matrices."""

import numpy as np

from bench.peers.sizes import square
from bench.peers.workload import Rows, Workload, once

ROWS = Rows()
row = ROWS.row


def product(lib, x, y):
    return x @ y


product.torch = True


def products():
    def add_row(key, what, inputs, **options):
        ROWS.append(Workload(key, what, product, inputs, in_a_row=True, tolerance=1e-3, **options))

    def long(s):
        rows, columns = s.count(1e4) if s.gpu else s.side(1e4), 300_000 if s.gpu else 10_000
        return [s.floats(rows, columns), s.floats(columns)]

    add_row("matvec", "1e4 x 3e5 f32 by vector", long, moved=once, slow_in_numpy=True)
    add_row(
        "vecmat",
        "vector by 1e4 x 1e4 f32",
        lambda s: [s.floats(s.side(1e4)), s.floats(s.side(1e4), s.side(1e4))],
        moved=lambda x, y: y.nbytes,
    )
    add_row(
        "matvec_short",
        "1000^2 f32 by vector",
        lambda s: [s.floats(s.side(1000), s.side(1000)), s.floats(s.side(1000))],
        on_host=True,
    )
    add_row("dot", "dot 1e7 f32", lambda s: [s.floats(s.count(1e7)) for _ in "xy"], moved=lambda x, y: 2 * x.nbytes)
    for dtype in (np.float32, np.float64):
        name = np.dtype(dtype).name
        short = f"f{np.dtype(dtype).itemsize * 8}"

        def squares(n, dtype=dtype):
            return lambda s: [s.floats(s.side(n), s.side(n), dtype=dtype) for _ in "xy"]

        add_row(
            f"matmul_{name}",
            f"matmul 1024x2048x512 {short}",
            lambda s, dtype=dtype: [s.floats(1024, 2048, dtype=dtype), s.floats(2048, 512, dtype=dtype)],
        )
        ROWS.append(
            Workload(
                f"matmul_{name}_to_host",
                f"matmul 1024x2048x512 {short}, NumPy in and out",
                product,
                lambda s, dtype=dtype: [s.floats(1024, 2048, dtype=dtype), s.floats(2048, 512, dtype=dtype)],
                to_host=True,
                tolerance=1e-3,
            )
        )
        for n in (512, 1024, 4096):
            add_row(f"matmul_{n}_{name}", f"matmul {n}^3 {short}", squares(n), slow_in_numpy=n == 4096)
    add_row(
        "matmul_transpose_float32",
        "3000x3000 f32 by its transpose",
        lambda s: [(x := s.floats(s.side(3000), s.side(3000))), np.ascontiguousarray(x.T)],
    )
    add_row(
        "matmul_int64",
        "matmul 1024^3 i64",
        lambda s: [s.places((s.side(1024), s.side(1024)), 100) for _ in "xy"],
        slow_in_numpy=True,
    )
    add_row(
        "matmul_int8",
        "matmul 1024^3 i8",
        lambda s: [s.places((s.side(1024), s.side(1024)), 100).astype(np.int8) for _ in "xy"],
        slow_in_numpy=True,
    )
    add_row(
        "matmul_batch", "matmul of 1000 x 32^2 f64", lambda s: [s.floats(1000, 32, 32, dtype=np.float64) for _ in "xy"]
    )
    ROWS.append(
        Workload(
            "matmul_float16",
            "matmul 4096^3 f16",
            product,
            lambda s: [(s.floats(s.side(4096), s.side(4096)) - 0.5).astype(np.float16) for _ in "xy"],
            in_a_row=True,
            tolerance=None,
            endless_in_numpy=True,
        )
    )


products()


@row(
    "vecdot",
    "vecdot of rows 4096^2 f32",
    lambda s: square(s) + square(s),
    moved=lambda x, y: 2 * x.nbytes,
    in_a_row=True,
    tolerance=1e-4,
)
def vecdot(lib, x, y):
    return lib.xp.vecdot(x, y)


@row(
    "dense_layer",
    "relu(a @ b + c) 1024^3 f32",
    lambda s: [s.floats(s.side(1024), s.side(1024)), s.floats(s.side(1024), s.side(1024)), s.floats(s.side(1024))],
    in_a_row=True,
    tolerance=1e-3,
)
def dense_layer(lib, a, b, c):
    return lib.xp.maximum(a @ b + c, np.float32(0))
