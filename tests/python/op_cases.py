"""Reads tests/cases/*.case; tests/cases/README.md has the format."""

import pathlib
from typing import Iterator, List, NamedTuple

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "cases"


class OpCase(NamedTuple):
    op: str
    inputs: List[np.ndarray]
    expected: np.ndarray
    ulp: float
    rest: np.ndarray  # true value less expected, in units in the last place

    def differences(self, actual: np.ndarray) -> np.ndarray:
        """Where `actual` is wrong."""
        want = self.expected
        if want.dtype.kind in "biu":
            return np.flatnonzero(actual != want)
        if want.dtype.kind == "c":  # in units of the larger part
            size = np.maximum(np.abs(want.real), np.abs(want.imag))
            wrong = _far(actual.real, want.real, size, self.ulp) | _far(actual.imag, want.imag, size, self.ulp)
            return np.flatnonzero(wrong)
        return np.flatnonzero(_far(actual, want, np.abs(want), self.ulp, self.rest))


def _far(actual, want, size, ulp, rest=0.0):
    """Equal bits, except NaN's payload, if no unit is allowed; else within this many units in the last place
    of `size`."""
    both_nan = np.isnan(actual) & np.isnan(want)
    same = (actual == want) & (np.signbit(actual) == np.signbit(want))
    if ulp == 0:
        return ~(same | both_nan)
    with np.errstate(all="ignore"):
        unit = np.spacing(np.where(np.isfinite(size), size, 1).astype(want.dtype)).astype(np.longdouble)
        near = np.abs((actual.astype(np.longdouble) - want.astype(np.longdouble)) / unit - rest) <= ulp
    return ~(np.where(np.isfinite(want), near & np.isfinite(actual), actual == want) | both_nan)


def _column(dtype: np.dtype, words: List[str]) -> np.ndarray:
    if dtype.kind == "b":
        return np.array([word == "1" for word in words], dtype)
    if dtype.kind in "iu":
        return np.array([int(word) for word in words], dtype)
    if dtype.kind == "f":
        return np.array([float.fromhex(word) for word in words]).astype(dtype)
    parts = [word.split(",") for word in words]
    both = np.empty(len(parts), np.complex128)
    both.real = [float.fromhex(part[0]) for part in parts]
    both.imag = [float.fromhex(part[1]) for part in parts]
    return both.astype(dtype)


def read(name: str) -> Iterator[OpCase]:
    """Those whose types NumPy has (all but bfloat16)."""
    for block in (FOLDER / name).read_text().split("\ncase ")[1:]:
        lines = [line.split() for line in block.splitlines() if line and not line.startswith("#")]
        head, columns = lines[0], [words[1:] for words in lines[1:] if words[0] in ("in", "out")]
        types = [*head[1 : head.index("->")], head[head.index("->") + 1]]
        if "bfloat16" in types:
            continue
        arrays = [_column(np.dtype(t), column) for t, column in zip(types, columns)]
        rest = next((words[1:] for words in lines if words[0] == "rest"), [0.0] * arrays[-1].size)
        yield OpCase(head[0], arrays[:-1], arrays[-1], float(head[-1]), np.array(rest, float))
