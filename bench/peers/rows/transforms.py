"""Fourier transforms."""

import numpy as np

from bench.peers.sizes import square
from bench.peers.workload import Rows, twice

ROWS = Rows()
row = ROWS.row


def complexes(n):
    return lambda s: [(s.floats(s.count(n)) + 1j * s.floats(s.count(n))).astype(np.complex64)]


@row("fft", "fft 4M c64", complexes(1 << 22), moved=twice, in_a_row=True, tolerance=None)
@row("fft_1e6", "fft 1e6 c64", complexes(1e6), moved=twice, in_a_row=True, tolerance=None)
def fft(lib, x):
    return lib.xp.fft.fft(x)


@row("rfft_rows", "rfft of rows, 4096^2 f32", square, in_a_row=True, tolerance=1e-2)
def rfft(lib, x):
    return lib.xp.fft.rfft(x)


@row(
    "fft2",
    "fft2 2048^2 c64",
    lambda s: [(s.floats(s.side(2048), s.side(2048)) + 0j).astype(np.complex64)],
    in_a_row=True,
    tolerance=None,
)
def fft2(lib, x):
    return lib.xp.fft.fft2(x)


@row(
    "fftn",
    "fftn 256^3 c64",
    lambda s: [(s.floats(*[max(int(256 * min(s.scale, 1) ** 0.34), 2)] * 3) + 0j).astype(np.complex64)],
    in_a_row=True,
    tolerance=None,
)
def fftn(lib, x):
    return lib.xp.fft.fftn(x)
