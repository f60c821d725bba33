"""Random programs, run by Stride and NumPy: views, assignments, reductions, indices and chains of functions
on arrays that share memory.

Seeds are fixed; STRIDE_FUZZ_PROGRAMS runs more of them, from STRIDE_FUZZ_SEED on. A failure prints the program."""

import os
import unittest

import numpy as np

import client_case
import stride as st

PROGRAMS = int(os.environ.get("STRIDE_FUZZ_PROGRAMS", "30"))
SEED = int(os.environ.get("STRIDE_FUZZ_SEED", "1"))
STEPS = 14
DTYPES = [np.int32, np.int64, np.uint8, np.float32, np.float64, np.bool_]
# Exact on every type they take, so that errors do not grow and comparisons do not turn.
BINARY = [
    "add", "subtract", "multiply", "maximum", "minimum", "less", "greater_equal", "equal", "logical_and",
    "logical_xor",
]
UNARY = ["negative", "absolute", "square", "logical_not", "sign", "isfinite"]


class Program:
    """Numbered variables, each an array of Stride and its twin in NumPy. Each step is a line of text that
    `run` executes for both."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.lines = []
        self.ours, self.theirs = [], []

    def pick(self):
        return int(self.random.integers(len(self.theirs)))

    def run(self, line, **values):
        """`line` is Python with `xp`, `v` (the variables) and `values`; its result becomes a new variable,
        unless it is None."""
        self.lines.append(line + (f"   # {values}" if values else ""))
        with np.errstate(all="ignore"):
            results = []
            for xp, variables in ((np, self.theirs), (st, self.ours)):
                scope = {"xp": xp, "v": variables, "np": np, **values}
                if line.startswith("!"):
                    exec(line[1:], scope)  # noqa: S102, text made above
                    results.append(None)
                else:
                    results.append(eval(line, scope))  # noqa: S307
        if results[0] is not None:
            self.theirs.append(np.asarray(results[0]) if not isinstance(results[0], np.ndarray) else results[0])
            self.ours.append(results[1])

    def new(self):
        shape = tuple(int(n) for n in self.random.integers(1, 5, self.random.integers(0, 4)))
        dtype = DTYPES[self.random.integers(len(DTYPES))]
        values = self.random.integers(0, 6, shape).astype(dtype)
        self.run("xp.asarray(np.array(values))", values=values)

    def step(self):
        i, kind = self.pick(), self.random.integers(10)
        x = self.theirs[i]
        if kind in (4, 5, 7, 8, 9) and not x.size:
            return
        if kind == 0 or len(self.theirs) < 2:
            self.new()
        elif kind in (1, 2):
            j, name = self.pick(), BINARY[self.random.integers(len(BINARY))]
            y = self.theirs[j]
            try:
                np.broadcast_shapes(x.shape, y.shape)
            except ValueError:
                return
            if name == "subtract" and x.dtype == y.dtype == bool:
                return
            self.run(f"xp.{name}(v[{i}], v[{j}])")
        elif kind == 3:
            name = UNARY[self.random.integers(len(UNARY))]
            if x.dtype == bool and name in ("negative", "sign", "square"):
                return
            self.run(f"xp.{name}(v[{i}])")
        elif kind == 4 and x.ndim:  # a view
            key = self.key(x)
            self.run(f"v[{i}][{key}]")
        elif kind == 5 and x.ndim:  # assignment through a view
            value = self.random.integers(0, 5)
            self.run(f"!v[{i}][{self.key(x)}] = {value if x.dtype != bool else bool(value % 2)}")
        elif kind == 6:
            if x.dtype == bool:
                return
            self.run(f"!v[{i}] {['+=', '*='][self.random.integers(2)]} {self.random.integers(0, 3)}")
        elif kind == 7 and x.ndim:
            axis = int(self.random.integers(x.ndim))
            name = ["sum", "max", "min", "any", "argmax", "cumulative_sum", "sort", "flip", "count_nonzero"][
                self.random.integers(9)
            ]
            extra = ", dtype=np.float64" if name in ("sum", "cumulative_sum") and x.dtype == np.float32 else ""
            self.run(f"xp.{name}(v[{i}], axis={axis}{extra})")
        elif kind == 8 and x.ndim:
            order = self.random.permutation(x.ndim).tolist()
            self.run(f"xp.permute_dims(v[{i}], {order}).reshape(-1)")
        elif kind == 9 and x.ndim:
            n = x.shape[0]
            choice = self.random.integers(3)
            if choice == 0:
                self.run(f"v[{i}][np.array({self.random.integers(-n, n, 3).tolist()}, int)]")
            elif choice == 1:
                self.run(f"v[{i}][np.array({(self.random.random(n) < 0.5).tolist()}, bool)]")
            else:
                places = self.random.permutation(n)[:2].tolist()
                self.run(
                    f"!v[{i}][np.array({places}, int)] = {self.random.integers(0, 2) if x.dtype != bool else True}"
                )

    def key(self, x):
        parts = []
        for n in x.shape[:self.random.integers(1, x.ndim + 1)]:
            kind = self.random.integers(4)
            if kind == 0:
                parts.append(str(self.random.integers(-n, n)))
            elif kind == 1:
                parts.append(["::2", "::-1", "1:", ":-1"][self.random.integers(4)])
            else:
                parts.append(":")
        return ", ".join(parts)


class FuzzTest(client_case.ClientCase):
    def compare(self, program, seed):
        for number, (ours, theirs) in enumerate(zip(program.ours, program.theirs)):
            try:
                self.same(ours, theirs)
            except Exception as error:
                raise AssertionError(f"seed {seed}, v[{number}]:\n" + "\n".join(program.lines)) from error

    def test_programs(self):
        for seed in range(SEED, SEED + PROGRAMS):
            program = Program(seed)
            program.new()
            for _ in range(STEPS):
                try:
                    program.step()
                except Exception as error:
                    raise AssertionError(f"seed {seed}:\n" + "\n".join(program.lines)) from error
                if program.random.random() < 0.1:  # reading now and then changes what is fused and cached
                    np.asarray(program.ours[program.pick()])
            self.compare(program, seed)

    def test_expressions_in_every_way(self):
        """The same random function directly, by jit, and by vmap."""
        for seed in range(SEED, SEED + PROGRAMS // 4):
            random = np.random.default_rng(seed)
            steps = [
                (
                    ["add", "subtract", "multiply", "maximum", "hypot", "arctan2"][random.integers(6)],
                    int(random.integers(3)),
                    int(random.integers(3)),
                )
                for _ in range(6)
            ]

            def function(xp, x, y):
                values = [x, y, x * 0.5]
                for name, i, j in steps:
                    values[i] = getattr(xp, name)(values[i], values[j])
                    if i == 2:
                        values[j] = values[j] - xp.mean(values[i])
                return values[0] + values[1] + values[2]

            x, y = random.random((5, 4)), random.random((5, 4))
            expected = np.stack([function(np, a, b) for a, b in zip(x, y)])
            direct = st.stack([function(st, st.asarray(a), st.asarray(b)) for a, b in zip(x, y)])
            compiled = st.jit(lambda x, y: function(st, x, y))
            with self.subTest(seed=seed, steps=steps):
                self.same(direct, expected, rtol=1e-12, atol=1e-12)
                self.same(compiled(st.asarray(x[1]), st.asarray(y[1])), expected[1], rtol=1e-12, atol=1e-12)
                self.same(
                    st.vmap(lambda x, y: function(st, x, y))(st.asarray(x), st.asarray(y)),
                    expected,
                    rtol=1e-12,
                    atol=1e-12,
                )


if __name__ == "__main__":
    client_case.main()
