"""Targets of the rows. A target is a bound on one number of a row, selected by the row's id. The id names the
device, so that a GPU and the CPU device have separate targets."""

from __future__ import annotations

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Target:
    pattern: str  # matches the whole id
    number: str  # a key of _NUMBERS
    bound: float

    def words(self):
        return _NUMBERS[self.number][1](self.bound)

    def met(self, row):
        """None where the row has no such number."""
        value = _NUMBERS[self.number][0](row)
        return None if value is None else value <= self.bound


def _seconds(value):
    return f"{value * 1e3:g} ms" if value >= 1e-3 else f"{value * 1e6:g} us"


# The number of a row, and how a bound on it reads.
_NUMBERS = {
    "ratio": (lambda row: row.ratio, lambda bound: f"ratio <= {bound:.3g}"),
    "median": (lambda row: row.ours.median_s, lambda bound: f"<= {_seconds(bound)}"),
    "added": (
        lambda row: row.ours.median_s - row.baseline.median_s if row.baseline else None,
        lambda bound: f"<= {_seconds(bound)} more",
    ),
    "tail": (lambda row: row.ours.p99_s / row.ours.median_s, lambda bound: f"p99 <= {bound:g} medians"),
    "limit": (
        lambda row: row.ours.median_s / row.limit_s if row.limit_s else None,
        lambda bound: f">= {1 / bound:.2g} of limit",
    ),
}

_GPU, _CPU, _ANY = r"cuda:\d+", r"cpu:\d+", r"\w+:\d+"
_SMALL = r"(unix|tcp)"

TARGETS = [
    Target(rf"run/unix/{_ANY}", "ratio", 1.5),
    Target(rf"chain/{_SMALL}/{_ANY}", "median", 5e-6),
    Target(rf"program/{_SMALL}/{_ANY}", "median", 1.5e-6),
    Target(rf"stream_compute/{_SMALL}/{_ANY}", "added", 30e-6),
    Target(rf"(upload|download)/tcp/{_ANY}/\d+", "ratio", 1 / 0.8),
    # For an array in a region. An upload that the client copies there is compared with memcpy.
    Target(rf"in_place_(up|down)_dma/{_GPU}", "ratio", 1 / 0.85),
    Target(rf"(compile|kernel)_cold/{_ANY}", "ratio", 1.15),
    Target(rf"(compile|kernel)_cached/{_ANY}", "median", 1e-3),
    Target(rf"clients/\d+/{_ANY}", "ratio", 1.0),
    Target(rf"clients_fair/\d+/{_ANY}", "ratio", 1.05),
    Target(rf"peer/(upload|download)/arrow_flight/{_ANY}", "ratio", 0.5),
    Target(rf"peer/trigonometric_to_host/(cupy|numba)/{_GPU}", "ratio", 0.2),
    Target(rf"peer/trigonometric_to_host/numpy/{_GPU}", "median", 4e-3),
    # A rate: one wait from Python for the whole row.
    Target(rf"peer/trigonometric_in_a_row/cupy/{_GPU}", "ratio", 1.0),
    Target(rf"peer/sum/cupy/{_GPU}", "ratio", 1.0),
    Target(rf"peer/sum/numpy/{_GPU}", "tail", 1.3),
    # A worker's device without a daemon. The limit of memory-bound operations is the time for their bytes at
    # the rate of the driver's copy of a large array on the device.
    Target(rf"device/(add|multiply_add|choose)/{_GPU}", "limit", 1 / 0.9),
    Target(rf"device/matvec/{_GPU}", "limit", 1 / 0.95),
    # Compared with cuBLAS called directly.
    Target(rf"device/matmul_\w+/{_GPU}", "ratio", 1 / 0.98),
    Target(rf"shards/sum/2/{_GPU}", "ratio", 1.0),
    Target(rf"shards/matvec_rows/2/{_GPU}", "ratio", 1 / 1.95),
    Target(rf"shards/matvec_rows/4/{_GPU}", "ratio", 1 / 3.9),
    Target(rf"peer/(trigonometric|add|multiply_add|choose|selu|sum)/numexpr/{_CPU}", "ratio", 1.0),
    Target(rf"matmul_\w+/(one|all)/{_CPU}", "ratio", 1 / 0.95),
]


def target_of(row):
    for target in TARGETS:
        if re.fullmatch(target.pattern, row.id):
            return target
    return None
