"""The op cases of tests/cases through the service: every function on every type, as the C++ runner checks them in process."""

import pathlib

import numpy as np

import client_case
import stride as st

CASES = pathlib.Path(__file__).resolve().parents[1] / "cases/ufunc.case"


def number(word, dtype):
    if dtype.kind == "c":
        return complex(*(float.fromhex(part) for part in word.split(",")))
    if dtype.kind == "f":
        return float.fromhex(word)
    return bool(int(word)) if dtype.kind == "b" else int(word)


def column(line, dtype):
    return np.array([number(word, dtype) for word in line.split()[1:]], dtype)


def read_cases():
    """(line, name, inputs, expected, ulp)"""
    lines = CASES.read_text().splitlines()
    for i, line in enumerate(lines):
        words = line.split()
        if not words or words[0] != "case":
            continue
        arrow = words.index("->")
        types, result = [np.dtype(word) if word != "bfloat16" else None for word in words[2:arrow]], words[arrow + 1]
        if None in types or result == "bfloat16":
            continue  # NumPy has no such type
        inputs = [column(lines[i + 1 + k], dtype) for k, dtype in enumerate(types)]
        yield i + 1, words[1], inputs, column(lines[i + 1 + len(types)], np.dtype(result)), float(words[-1])


def parts(values):
    """Floats as columns of doubles: one, or real and imaginary."""
    return np.stack([values.real, values.imag], -1).astype(float) if values.dtype.kind == "c" else values.astype(float)[:, None]


def wrong_places(actual, expected, ulp):
    if expected.dtype.kind not in "fc":
        return np.flatnonzero(actual != expected)
    with np.errstate(all="ignore"):
        ours, theirs = parts(actual), parts(expected)
        largest = np.abs(theirs).max(-1, keepdims=True)
        kind = np.finfo(expected.dtype)
        unit = np.ldexp(1.0, np.maximum(np.frexp(np.where(np.isfinite(largest), largest, 1))[1] - kind.nmant - 1,
                                        kind.minexp - kind.nmant)) if expected.dtype.itemsize else 0
        if ulp == 0:
            right = (ours == theirs) & (np.signbit(ours) == np.signbit(theirs))
        else:
            right = (ours == theirs) | np.isfinite(ours) & np.isfinite(theirs) & (np.abs(ours - theirs) <= ulp * unit)
        right |= np.isnan(ours) & np.isnan(theirs)
    return np.flatnonzero(~right.all(-1))


class CaseTest(client_case.ClientCase):
    def test_cases(self):
        cases = list(read_cases())
        self.assertGreater(len(cases), 700)
        # All are recorded before the first is read.
        results = [st.where(*map(st.asarray, inputs)) if name == "where" else getattr(np, name)(*map(st.asarray, inputs)) for _, name, inputs, _, _ in cases]
        failures = []
        for (line, name, inputs, expected, ulp), ours in zip(cases, results):
            actual = np.asarray(ours)
            if (actual.dtype, actual.shape) != (expected.dtype, expected.shape):
                failures.append(f"line {line}: {name} gives {actual.dtype}{actual.shape}, not {expected.dtype}{expected.shape}")
                continue
            for place in wrong_places(actual, expected, ulp)[:1]:
                arguments = ", ".join(repr(one[place]) for one in inputs)
                failures.append(f"line {line}: {name}({arguments}) = {actual[place]!r}, not {expected[place]!r} within {ulp:g} ulp")
        self.assertFalse(failures, "\n".join(failures[:40]))


if __name__ == "__main__":
    client_case.main()
