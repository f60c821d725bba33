"""Writes accuracy.case: elementary functions over the whole range of their types, with values that mpmath
computed to as many bits as needed. Run by hand; README.md has the format. Needs numpy and mpmath.

The bounds are the documented ones: 4 units in the last place for float32, 2 for float64; float16 is computed
in float32.
"""
import fractions
import math
import pathlib
import re

import mpmath
import numpy as np

ULP = {"float16": 1, "float32": 4, "float64": 2}
# Bits of the significand, exponent of the smallest denormal.
PRECISION = {"float16": (11, -24), "float32": (24, -149), "float64": (53, -1074)}
# cos(1e308) needs a thousand bits before the first that is wanted.
mpmath.mp.prec = 2400

ONE = mpmath.mpf(1)


def odd(function):
    return lambda x: -function(-x) if x < 0 else function(x)


# Name -> the function, and the interval that it is defined on.
ANYWHERE, POSITIVE = (-math.inf, math.inf), (0, math.inf)
UNARY = {
    "arccos": (mpmath.acos, (-1, 1)), "arccosh": (mpmath.acosh, (1, math.inf)), "arcsin": (mpmath.asin, (-1, 1)),
    "arcsinh": (odd(mpmath.asinh), ANYWHERE), "arctan": (mpmath.atan, ANYWHERE), "arctanh": (mpmath.atanh, (-1, 1)),
    "cbrt": (odd(mpmath.cbrt), ANYWHERE), "cos": (mpmath.cos, ANYWHERE), "cosh": (mpmath.cosh, ANYWHERE),
    "degrees": (mpmath.degrees, ANYWHERE), "exp": (mpmath.exp, ANYWHERE),
    "exp2": (lambda x: mpmath.power(2, x), ANYWHERE),
    "expm1": (mpmath.expm1, ANYWHERE), "log": (mpmath.log, POSITIVE), "log10": (mpmath.log10, POSITIVE),
    "log1p": (mpmath.log1p, (-1, math.inf)), "log2": (lambda x: mpmath.log(x) / mpmath.ln2, POSITIVE),
    "radians": (mpmath.radians, ANYWHERE), "sin": (mpmath.sin, ANYWHERE), "sinh": (odd(mpmath.sinh), ANYWHERE),
    "sqrt": (mpmath.sqrt, POSITIVE), "tan": (mpmath.tan, ANYWHERE), "tanh": (mpmath.tanh, ANYWHERE),
}  # fmt: skip
# Functions that keep a tighter bound in a part of their range, and where others found one that did not.
CLOSER = {"arccos": (1, (-1, 1), [0.6660556232864296]), "sinh": (1, (-1, 1), [-0.06122643270586914])}
BINARY = {"arctan2": mpmath.atan2, "hypot": mpmath.hypot, "power": mpmath.power, "divide": lambda x, y: x / y}
RANDOM = np.random.default_rng(22)


def rounded(value, dtype):
    """To the nearest, ties to even, once: float() of a long number would round twice where the result is denormal."""
    bits, least = PRECISION[dtype]
    sign, mantissa, exponent, length = value._mpf_
    if not mantissa:
        return 0.0
    if length + exponent < least - 2:
        return -0.0 if sign else 0.0
    if length + exponent > 1100:
        return -math.inf if sign else math.inf
    unit = max(length + exponent - bits, least)
    # Python's round() rounds ties to even.
    units = round(fractions.Fraction(int(mantissa)) * fractions.Fraction(2) ** (exponent - unit))
    exact = units * fractions.Fraction(2) ** unit
    result = math.inf if exact > float(np.finfo(dtype).max) else float(exact)
    return -result if sign else result


def rest_of(value, result, dtype):
    """The rounding error, in units in the last place of the result."""
    if math.isinf(result):
        return 0.0
    bits, least = PRECISION[dtype]
    unit = max(math.frexp(result)[1] - bits, least)
    return float(mpmath.ldexp(value - mpmath.mpf(result), -unit))


def points(dtype, low, high, count):
    """Every magnitude of the type, including denormals, then common values, then the neighbours of critical points."""
    info = np.finfo(dtype)
    smallest, largest = math.log2(float(info.smallest_subnormal)), math.log2(float(info.max))
    signs = RANDOM.choice([-1.0, 1.0], count)
    everywhere = signs * np.exp2(RANDOM.uniform(smallest, largest - 1e-3, count))
    usual = np.concatenate(
        [RANDOM.normal(0, 3, count // 2), RANDOM.uniform(-1, 1, count // 2), RANDOM.uniform(-90, 90, count // 4)]
    )
    turns = [
        0.5, 1, math.pi / 4, math.pi / 2, math.pi, 3 * math.pi, 22, math.log(float(info.max)), largest,
        math.log(float(info.tiny)), 1e5,
    ]
    near = [step * turn * (1 + k * float(info.eps)) for turn in turns for k in (-2, 0, 1) for step in (-1, 1)]
    edges = [float(info.smallest_subnormal), float(info.tiny), float(info.tiny) * 0.75, float(info.max)]
    with np.errstate(over="ignore"):
        values = np.concatenate([everywhere, usual, near, edges, np.negative(edges)]).astype(dtype)
    values = values[np.isfinite(values) & (values > low) & (values < high) & (values != 0)]
    return np.unique(values)


def case(lines, name, dtype, arguments, values, ulp=None):
    results = [rounded(value, dtype) for value in values]

    def text(values):
        return " ".join(str(x) if math.isinf(x) else re.sub(r"\.?0*p", "p", float(x).hex()) for x in values)

    if ulp is None:
        ulp = 0 if name in ("sqrt", "divide") else ULP[dtype]  # IEEE 754 asks for the nearest of these two
    lines.append(f"case {name} {' '.join([dtype] * len(arguments))} -> {dtype} ulp {ulp}")
    lines.extend("in " + text(values) for values in arguments)
    lines.append("out " + text(results))
    if name not in ("sqrt", "divide"):
        lines.append(
            "rest " + " ".join(f"{rest_of(value, result, dtype):.3f}" for value, result in zip(values, results))
        )
    lines.append("")


def main():
    lines = [f"# mpmath {mpmath.__version__}; made by make_accuracy.py", ""]
    for dtype in PRECISION:
        for name, (function, (low, high)) in UNARY.items():
            arguments = points(dtype, low, high, 60)
            case(lines, name, dtype, [arguments], [function(mpmath.mpf(float(x))) for x in arguments])
        for name, function in BINARY.items():
            pool = points(dtype, -math.inf, math.inf, 60)
            x, y = RANDOM.choice(pool, 240), RANDOM.choice(pool, 240)
            if name == "power":  # where results are not all zero or infinite
                x = np.abs(x)
                with np.errstate(all="ignore"):
                    y[:180] = (
                        RANDOM.uniform(-1.05, 1.05, 180)
                        * math.log2(float(np.finfo(dtype).max))
                        / np.log2(x[:180].astype(np.float64))
                    ).astype(dtype)
                    keep = np.isfinite(y) & (np.abs(y.astype(np.float64) * np.log2(x.astype(np.float64))) < 3000)
                x, y = x[keep], y[keep]
            if name == "hypot":  # also operands of similar size
                with np.errstate(over="ignore"):
                    y[:120] = x[:120] * RANDOM.uniform(0.1, 2, 120).astype(dtype)
                keep = np.isfinite(y)
                x, y = x[keep], y[keep]
            case(
                lines, name, dtype, [x, y], [function(mpmath.mpf(float(a)), mpmath.mpf(float(b))) for a, b in zip(x, y)]
            )
    for name, (ulp, (low, high), found) in CLOSER.items():
        arguments = np.concatenate([np.linspace(low, high, 302)[1:-1], found, np.negative(found)])
        case(lines, name, "float64", [arguments], [UNARY[name][0](mpmath.mpf(float(x))) for x in arguments], ulp)
    pathlib.Path(__file__).with_name("accuracy.case").write_text("\n".join(lines) + "\n")


main()
