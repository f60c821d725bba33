"""Random Python functions as kernels, compared with Python: integers exactly, floats to the last bit (only
basic operations occur).

Seeds are fixed; STRIDE_FUZZ_FUNCTIONS runs more of them, from STRIDE_FUZZ_SEED on. A failure prints the function."""

import importlib.util
import os
import pathlib
import tempfile
import unittest

import numpy as np

import client_case
import stride as st

FUNCTIONS = int(os.environ.get("STRIDE_FUZZ_FUNCTIONS", "25"))
SEED = int(os.environ.get("STRIDE_FUZZ_SEED", "1"))
BOUND = 1 << 30  # results are kept below, so that int64 does not overflow where Python's integers do not


class Writer:
    """Text of a function of whole numbers a and b and floats x and y, which returns one number."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.lines = ["def function(a, b, x, y):", "    c = a - b", "    z = x * 0.5"]

    def choose(self, *options):
        return options[self.random.integers(len(options))]

    def integer(self, depth):
        if depth == 0:
            return self.choose("a", "b", "c", str(self.random.integers(-9, 10)))
        left, right = self.integer(depth - 1), self.integer(depth - 1)
        kind = self.random.integers(9)
        if kind < 3:
            return f"({left} {self.choose('+', '-', '*')} {right})"
        if kind == 3:
            return f"({left} {self.choose('//', '%')} {self.choose('7', '-5', '3')})"
        if kind == 4:
            return f"({left} {self.choose('&', '|', '^')} {right})"
        if kind == 5:
            return f"({left} {self.choose('<<', '>>')} {self.random.integers(0, 4)})"
        if kind == 6:
            return f"({left} if {self.condition(depth - 1)} else {right})"
        if kind == 7:
            return f"{self.choose('min', 'max')}({left}, {right})"
        return self.choose(
            f"abs({left})",
            f"(-{left})",
            f"(~{left})",
            f"int({self.real(depth - 1)})",
            f"({left} % 11) ** 2",
            f"int({self.condition(0)})",
        )

    def real(self, depth):
        if depth == 0:
            return self.choose("x", "y", "z", repr(float(self.random.integers(-8, 9)) / 4))
        left, right = self.real(depth - 1), self.choose(self.real, self.integer)(depth - 1)
        kind = self.random.integers(6)
        if kind < 3:
            return f"({left} {self.choose('+', '-', '*')} {right})"
        if kind == 3:
            return f"({left} {self.choose('/', '//', '%')} {self.choose('2.0', '-0.75', '3')})"
        if kind == 4:
            return f"({left} if {self.condition(depth - 1)} else {right} * 1.0)"
        return self.choose(
            f"abs({left})", f"(-{left})", f"min({left}, 100.0)", f"max({left}, -100.0)", f"float({self.integer(0)})"
        )

    def condition(self, depth):
        one = self.choose(self.integer, self.real)
        parts = f"{one(depth)} {self.choose('<', '<=', '>', '>=', '==', '!=')} {one(depth)}"
        return self.choose(
            f"({parts})",
            f"({parts} {self.choose('and', 'or')} {self.integer(0)} < {self.integer(0)})",
            f"(not {parts})",
            f"({self.integer(0)} < {self.integer(0)} <= {self.integer(0)})",
        )

    def statement(self, indent, depth):
        pad = "    " * indent
        kind = self.random.integers(6 if depth else 3)
        if kind == 0:
            self.lines.append(f"{pad}{self.choose('c', 'c', 'd')} = ({self.integer(2)}) % {BOUND}")
        elif kind == 1:
            self.lines.append(f"{pad}z = ({self.real(2)}) % 1024.0")
        elif kind == 2:
            self.lines.append(f"{pad}c {self.choose('+', '-')}= {self.integer(1)} % 1000")
        elif kind == 3:
            self.lines.append(f"{pad}if {self.condition(1)}:")
            self.statement(indent + 1, depth - 1)
            if self.random.random() < 0.5:
                self.lines.append(f"{pad}else:")
                self.statement(indent + 1, depth - 1)
        elif kind == 4:
            name = f"i{len(self.lines)}"
            self.lines.append(
                f"{pad}for {name} in range({self.choose('3', 'a % 5', '1, 6', '8, 0, -3', 'b % 4, 9, a % 3 + 1')}):"
            )
            self.lines.append(f"{pad}    c = (c + {name}) % {BOUND}")
            self.statement(indent + 1, depth - 1)
            if self.random.random() < 0.3:
                self.lines.append(f"{pad}    if {self.condition(0)}:")
                self.lines.append(f"{pad}        {self.choose('break', 'continue')}")
        else:
            name = f"n{len(self.lines)}"
            self.lines += [
                f"{pad}{name} = {self.random.integers(1, 5)}",
                f"{pad}while {name} > 0 and {self.condition(0)}:",
                f"{pad}    {name} -= 1",
            ]
            self.statement(indent + 1, depth - 1)

    def text(self):
        self.lines.append("    d = 1")
        for _ in range(5):
            self.statement(1, 2)
        self.lines.append(
            f"    return {self.choose(self.integer, self.real)(2)} + (c + d) * {self.choose('1', '1.0')} + z * "
            f"{self.choose('0', '1')}"
        )
        return "\n".join(self.lines) + "\n"


class TranslationFuzzTest(client_case.ClientCase):
    def test_functions(self):
        random = np.random.default_rng(0)
        a, b = random.integers(-50, 50, 40), random.integers(-50, 50, 40)
        x, y = random.integers(-200, 200, 40) / 8, random.integers(-200, 200, 40) / 8
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(SEED, SEED + FUNCTIONS):
                text = Writer(seed).text()
                file = pathlib.Path(folder) / f"function{seed}.py"
                file.write_text(text)
                spec = importlib.util.spec_from_file_location(file.stem, file)
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                expected = np.array(
                    [float(module.function(*map(lambda one: one.item(), row))) for row in zip(a, b, x, y)]
                )
                try:
                    ours = st.vectorize(module.function)(*map(st.asarray, (a, b, x, y))).astype(st.float64).to_numpy()
                    np.testing.assert_array_equal(ours, expected)
                except Exception as error:
                    raise AssertionError(f"seed {seed}:\n{text}") from error


if __name__ == "__main__":
    client_case.main()
