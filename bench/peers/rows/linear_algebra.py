"""Factorizations and linear systems."""

import numpy as np

from bench.peers.workload import Rows, Workload

ROWS = Rows()


def matrix(n, dtype):
    """Symmetric and positive definite, so that every factorization takes it."""

    def make(s):
        x = s.normals(n, n, dtype=np.float32)
        return [(x @ x.T / n + np.eye(n)).astype(dtype)]

    return make


def matrices(count, n):
    def make(s):
        x = s.normals(count, n, n, dtype=np.float64)
        return [x @ np.swapaxes(x, 1, 2) / n + np.eye(n)]

    return make


def solve(lib, x):
    return lib.xp.linalg.solve(x, x[..., :1])


def inverse(lib, x):
    return lib.xp.linalg.inv(x)


def cholesky(lib, x):
    return lib.xp.linalg.cholesky(x)


def qr(lib, x):
    return lib.xp.linalg.qr(x)[1]


def eigh(lib, x):
    return lib.xp.linalg.eigh(x)[0]


def svd(lib, x):
    return lib.xp.linalg.svd(x, full_matrices=False)[1]


def linear_algebra():
    for function, sizes in (
        (solve, (512, 2048)),
        (inverse, (512, 2048)),
        (cholesky, (512, 4096)),
        (qr, (512, 2048)),
        (eigh, (512, 1024)),
        (svd, (512, 1024)),
    ):
        name = function.__name__
        for n in sizes:
            dtype = np.float32 if n == 4096 else np.float64
            # The signs of qr's rows are the library's choice.
            ROWS.append(
                Workload(
                    f"{name}_{n}",
                    f"{name} {n}^2 f{np.dtype(dtype).itemsize * 8}",
                    function,
                    matrix(n, dtype),
                    tolerance=None if function is qr else 1e-3,
                    slow_in_numpy=n > 512,
                )
            )
        if function is not qr:
            ROWS.append(
                Workload(
                    f"{name}_batch",
                    f"{name} of 1000 x 32^2 f64",
                    function,
                    matrices(1000, 32),
                    in_a_row=True,
                    tolerance=1e-6,
                )
            )


linear_algebra()
