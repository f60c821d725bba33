"""Writes promotion.txt: the result type that NumPy gives for every ufunc and pair of types. Run by hand; NumPy 2.4.

Lines: function, argument types, result type or `error`. Types `int`, `float`, `complex` are weak Python scalars.
"""
import itertools
import pathlib
import warnings

import numpy as np

TYPES = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128").split()
WEAK = {"int": 1, "float": 1.0, "complex": 1j}
SKIPPED = {"divmod", "frexp", "modf", "isnat", "matmul", "matvec", "vecdot", "vecmat"}


def argument(name):
    return WEAK[name] if name in WEAK else np.ones(2, name)


def result(function, names):
    try:
        return str(function(*map(argument, names)).dtype)
    except TypeError:
        return "error"


def main():
    warnings.simplefilter("ignore")
    lines = [f"# NumPy {np.__version__}; made by make_promotion.py"]
    for name in sorted(dir(np)):
        function = getattr(np, name)
        if not isinstance(function, np.ufunc) or function.__name__ != name or name in SKIPPED:
            continue
        names = list(TYPES) + list(WEAK)
        for combination in itertools.product(names, repeat=function.nin):
            lines.append(" ".join((name, *combination, result(function, combination))))
    for combination in itertools.product(list(TYPES) + list(WEAK), repeat=2):
        lines.append(" ".join(("where", "bool", *combination, result(np.where, ("bool", *combination)))))
    for combination in itertools.product(list(TYPES) + list(WEAK), repeat=2):
        if combination[0] not in WEAK:
            lines.append(
                " ".join(
                    ("clip", *combination, combination[1], result(np._core.umath.clip, (*combination, combination[1])))
                )
            )
    path = pathlib.Path(__file__).with_name("promotion.txt")
    path.write_text("\n".join(lines) + "\n")


main()
