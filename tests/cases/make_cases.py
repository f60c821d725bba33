"""Writes ufunc.case: expected results of every ufunc with one output, from NumPy. Run by hand; README.md has the
format.

Real functions that are not exact are evaluated in the next wider type, so that NumPy's own last-place errors do not
count.
"""
import pathlib
import warnings

import numpy as np

FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
WIDER = {"float16": np.float64, "float32": np.float64, "float64": np.longdouble}
SKIPPED = {"divmod", "frexp", "modf", "isnat", "matmul", "matvec", "vecdot", "vecmat"}

# Units in the last place beyond which a result is wrong. Not named: exact.
INEXACT = {
    name: 3
    for name in "arccos arccosh arcsin arcsinh arctan arctanh cos cosh exp exp2 expm1 log log10 log1p log2 "
    "sin sinh tan tanh cbrt power float_power arctan2 hypot logaddexp logaddexp2 degrees radians deg2rad "
    "rad2deg".split()
}
INEXACT.update(logaddexp=16, logaddexp2=16)  # near zero the logarithm cancels the larger argument
COMPLEX_INEXACT = dict(
    {name: 12 for name in INEXACT},
    sqrt=4, divide=4, reciprocal=4, sign=3, absolute=2, multiply=2, square=2, power=150, float_power=150,
    arccosh=16, arccos=16, arcsin=16, arcsinh=16,
)
RANDOM = np.random.default_rng(20)


def specials(dtype):
    if dtype == "bool":
        return [False, True]
    if dtype in INTS:
        info = np.iinfo(dtype)
        return [0, 1, 2, 3, 7, 100, info.max, info.max - 1, info.min, info.min + 1] + (
            [-1, -2, -3, -7] if info.min < 0 else []
        )
    if dtype in FLOATS:
        info = np.finfo(dtype)
        return [
            0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 2.0, 3.0, np.inf, -np.inf, np.nan, info.max, -info.max,
            info.tiny, info.smallest_subnormal, -info.smallest_subnormal, info.tiny * 0.75, 10.0, -7.25, 0.1,
            100.0,
        ]
    return [0, 1, -1, 1j, -1j, 1 + 1j, -2 + 0.5j, 3 - 4j, 0.25 - 0.125j, -0.5 - 3j, 10 + 20j]


def randoms(dtype, count):
    if dtype == "bool":
        return []
    if dtype in INTS:
        info = np.iinfo(dtype)
        return list(RANDOM.integers(info.min, info.max, count, endpoint=True, dtype=dtype))
    if dtype in FLOATS:
        return list(
            np.concatenate(
                [
                    RANDOM.normal(0, 3, count // 2),
                    RANDOM.normal(0, 1, count - count // 2) * 10.0 ** RANDOM.integers(-4, 4, count - count // 2),
                ]
            )
        )
    return list(RANDOM.normal(0, 2, count) + 1j * RANDOM.normal(0, 2, count))


def inputs_of(name, dtypes):
    values = [np.array(specials(d) + randoms(d, 24)).astype(d) for d in dtypes]
    if len(dtypes) == 1:
        return values
    # Every pair of specials, then the random ones side by side.
    first = [np.array(specials(d)[:17]).astype(d) for d in dtypes[:2]]
    left, right = (grid.ravel() for grid in np.meshgrid(*first, indexing="ij"))
    rest = [np.array(randoms(d, 40)).astype(d) for d in dtypes[:2]]
    result = [np.concatenate([left, rest[0]]), np.concatenate([right, rest[1]])]
    if name in ("power", "float_power") and dtypes[1] in INTS:
        info = np.iinfo(dtypes[1])
        result[1] = np.where(result[1] < 0, np.array(5, dtypes[1]), result[1])
    return result


def expected(function, arguments, result_type):
    kind = arguments[0].dtype.name
    if kind in WIDER and result_type in WIDER and function.__name__ in INEXACT:
        return function(*[a.astype(WIDER[kind]) for a in arguments]).astype(result_type)
    if (
        kind in COMPLEX
        and function.__name__ != "conjugate"
        and result_type != "bool"
        and function.__name__ not in ("maximum", "minimum", "fmax", "fmin")
    ):
        wide = function(*[a.astype(np.clongdouble) for a in arguments])
        return wide.astype(result_type)
    return function(*arguments)


def text_of(array):
    def one(x):
        if np.isnan(x):
            return "nan"
        if np.isinf(x):
            return "inf" if x > 0 else "-inf"
        return float(x).hex()

    if array.dtype.kind == "b":
        return " ".join(str(int(x)) for x in array)
    if array.dtype.kind in "iu":
        return " ".join(str(x) for x in array)
    if array.dtype.kind == "f":
        return " ".join(one(x) for x in array)
    return " ".join(one(x.real) + "," + one(x.imag) for x in array)


def case(lines, name, arguments, result, ulp):
    lines.append(
        "case {} {} -> {} ulp {}".format(name, " ".join(a.dtype.name for a in arguments), result.dtype.name, ulp)
    )
    lines.extend(("in " + text_of(a)).rstrip() for a in arguments)
    lines.append(("out " + text_of(result)).rstrip())
    lines.append("")


def tolerance(name, dtypes, result_type):
    if result_type in ("bool",) or result_type in INTS:
        return 0
    if dtypes[0] in COMPLEX:
        return COMPLEX_INEXACT.get(name, 0)
    return 1 if result_type == "float16" and name in INEXACT else INEXACT.get(name, 0)


def add_cases(lines, name):
    function = getattr(np, name)
    seen = set()
    for signature in function.types:
        names, result = signature.split("->")
        if any(c in "OMmgG" for c in signature):
            continue
        dtypes = tuple(np.dtype(c).name for c in names)
        if dtypes in seen:
            continue
        seen.add(dtypes)
        arguments = inputs_of(name, dtypes)
        if name == "ldexp":
            arguments[1] = (arguments[1] % 40 - 20).astype(dtypes[1])
        want = expected(function, arguments, np.dtype(result).name)
        keep = np.ones(want.shape, bool)
        if dtypes[0] in COMPLEX and tolerance(name, dtypes, np.dtype(result).name):
            # Special values of complex functions differ between C libraries.
            keep = np.isfinite(want) & (np.abs(want) < 1e30)
        if name in ("maximum", "minimum", "fmax", "fmin"):  # which zero wins is not said
            keep &= ~((arguments[0] == 0) & (arguments[1] == 0))
        case(lines, name, [a[keep] for a in arguments], want[keep], tolerance(name, dtypes, np.dtype(result).name))
    case(lines, name, [a[:0] for a in arguments], want[:0], 0)


def to_bfloat16(values):
    """Rounded once, to nearest even, as float32 that have no other bits."""
    wide = np.asarray(values, np.float64)
    mantissa, exponent = np.frexp(wide)
    bits = np.minimum(8, exponent + 133)  # fewer for denormals
    rounded = np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)
    return np.where(
        np.abs(rounded) >= 2.0**128, np.copysign(np.inf, wide), np.where(np.isfinite(wide), rounded, wide)
    ).astype(np.float32)


# NumPy has no bfloat16: float64 stands in, rounded once. Zero where IEEE 754 asks for the nearest.
BFLOAT16_UNARY = {name: 1 for name in "cos sin tan exp exp2 expm1 log log2 log1p sinh cosh tanh arctan cbrt".split()}
BFLOAT16_UNARY.update(
    {name: 0 for name in "negative absolute square sqrt floor ceil trunc rint sign reciprocal".split()}
)
BFLOAT16_BINARY = (
    "add", "subtract", "multiply", "divide", "fmod", "copysign", "less", "less_equal", "equal", "not_equal",
)


def add_bfloat16(lines):
    def text(name, arguments, result, ulp):
        kinds = "bfloat16" if result.dtype != bool else "bool"
        lines.append(f"case {name} {' '.join(['bfloat16'] * len(arguments))} -> {kinds} ulp {ulp}")
        lines.extend("in " + text_of(a) for a in arguments)
        lines.extend(["out " + text_of(result), ""])

    random = np.random.default_rng(21)
    edges = [
        0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, np.inf, -np.inf, np.nan, 3.3895314e38, 2.0**-126, 2.0**-133,
        -3 * 2.0**-133, 256.0, 257.0, 0.1, 100.0,
    ]
    values = to_bfloat16(
        np.concatenate([edges, random.normal(0, 3, 60), random.normal(0, 1, 30) * 10.0 ** random.integers(-4, 4, 30)])
    )
    for name, ulp in sorted(BFLOAT16_UNARY.items()):
        text(name, [values], to_bfloat16(getattr(np, name)(values.astype(np.float64))), ulp)
    left, right = (grid.ravel() for grid in np.meshgrid(values[:18], values[:18], indexing="ij"))
    left, right = np.concatenate([left, values[18:]]), np.concatenate([right, values[18:][::-1]])
    for name in BFLOAT16_BINARY:
        result = getattr(np, name)(left.astype(np.float64), right.astype(np.float64))
        text(name, [left, right], result if result.dtype == bool else to_bfloat16(result), 0)


def main():
    warnings.simplefilter("ignore")
    lines = [f"# NumPy {np.__version__}; made by make_cases.py", ""]
    for name in sorted(dir(np)):
        function = getattr(np, name)
        if isinstance(function, np.ufunc) and function.__name__ == name and name not in SKIPPED:
            add_cases(lines, name)
    for dtype in ("bool",) + INTS + FLOATS + COMPLEX:
        a, b = (np.array(specials(dtype)).astype(dtype) for _ in range(2))
        mask = np.arange(a.size) % 3 == 0
        case(lines, "where", [mask, a, b[::-1]], np.where(mask, a, b[::-1]), 0)
        if dtype not in COMPLEX:
            low, high = (
                np.sort(np.array(specials(dtype)).astype(dtype))[[1, -2]]
                if dtype not in FLOATS
                else np.array([-1.25, 2.5], dtype)
            )
            low, high = np.full(a.shape, low), np.full(a.shape, high)
            case(lines, "clip", [a, low, high], np._core.umath.clip(a, low, high), 0)
    add_bfloat16(lines)
    pathlib.Path(__file__).with_name("ufunc.case").write_text("\n".join(lines) + "\n")


main()
