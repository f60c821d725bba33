"""A row of the comparison: one function of a library and arrays, its inputs, and the bytes that it has to move."""

import dataclasses
from typing import Callable

# Operations that begin before one wait.
IN_A_ROW = 16


@dataclasses.dataclass(frozen=True)
class Workload:
    key: str  # part of the row's id; stable across runs
    what: str
    function: Callable  # (library, *arrays) -> an array or a tuple of arrays
    inputs: Callable  # (Sizes) -> NumPy arrays, or numbers that stay on the host
    # (*inputs) -> bytes that must be read and written; 0 where memory is not the limit.
    moved: Callable = lambda *inputs: 0
    # The arrays begin in NumPy and the result ends there, inside the measured time.
    to_host: bool = False
    # The result is one number on the host.
    number: bool = False
    # Also measured with IN_A_ROW operations before one wait, of which one is this row's time.
    in_a_row: bool = False
    # Relative and absolute difference from NumPy's result; None: the values are not compared.
    tolerance: float | None = 1e-5
    # NumPy's turn takes seconds: next to a GPU it is left out.
    slow_in_numpy: bool = False
    # NumPy's turn takes minutes: it is left out everywhere.
    endless_in_numpy: bool = False
    # Only where the device is a CPU device.
    on_host: bool = False
    # Its time is that of the call.
    is_call: bool = False

    def has_numpy(self, gpu):
        return not (self.endless_in_numpy or gpu and self.slow_in_numpy)

    @property
    def on_threads(self):
        """Whether NumPy's turn runs on OpenBLAS's threads."""
        return self.function.__name__ in ("product", "dense_layer", "solve", "inverse", "cholesky", "qr", "eigh", "svd")


class Rows(list):
    """Workloads in the order in which they run."""

    def row(self, key, what, inputs, **options):
        """Adds a row of the decorated function. `torch=True`: its names are PyTorch's too. `expression`: numexpr's
        text. `eager=True`: users of JAX call it without `jit`, as the shape depends on values or the calls are what is
        measured."""
        torch, expression, eager = (options.pop(name, None) for name in ("torch", "expression", "eager"))

        def add(function):
            if torch:
                function.torch = True
            if expression:
                function.expression = expression
            if eager:
                function.eager = True
            self.append(Workload(key, what, function, inputs, **options))
            return function

        return add


def twice(x, *_):
    """Read once and written once."""
    return 2 * x.nbytes


def once(x, *_):
    return x.nbytes


def all_once(x, *others):
    """All read once, a result like the first written once."""
    return 2 * x.nbytes + sum(one.nbytes for one in others)
