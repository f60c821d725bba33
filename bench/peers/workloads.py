"""The rows: each is one function of a library and arrays, its inputs, and the bytes that it has to move.

Sizes are those of a GPU; `scale` multiplies the number of elements, and on a CPU device the rows above 1e7 elements
have 1e7. Inputs are the same in every process."""

import dataclasses
from typing import Callable

import numpy as np

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


class Sizes:
    """Inputs by count of elements."""

    def __init__(self, scale, gpu):
        self.scale, self.gpu = scale, gpu
        self.random = np.random.default_rng(1)

    def count(self, n):
        return max(int((n if self.gpu else min(n, 1e7)) * self.scale), 2)

    def side(self, n):
        """Rows of a square matrix whose number of elements scales as the others."""
        return max(int(n * min(self.scale, 1) ** 0.5), 2)

    def floats(self, *shape, dtype=np.float32):
        """Numbers in [0, 1). Beyond 2^22 elements a block is repeated, since drawing takes longer than the row."""
        count = int(np.prod(shape, dtype=np.int64))
        block = self.random.random(min(count, (1 << 22) + 7), dtype)
        return np.resize(block, count).reshape(shape)

    def normals(self, *shape, dtype=np.float32):
        return self.random.standard_normal(shape, dtype)

    def places(self, count, end, dtype=np.int64):
        return self.random.integers(0, end, count, dtype=dtype)


ROWS = []


def row(key, what, inputs, **options):
    """Adds a row of the decorated function. `torch=True`: its names are PyTorch's too. `expression`: numexpr's text.
    `eager=True`: users of JAX call it without `jit`, as the shape depends on values or the calls are what is measured.
    """
    torch, expression, eager = (options.pop(name, None) for name in ("torch", "expression", "eager"))

    def add(function):
        if torch:
            function.torch = True
        if expression:
            function.expression = expression
        if eager:
            function.eager = True
        ROWS.append(Workload(key, what, function, inputs, **options))
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


# The call


def few(s):
    return [s.floats(20_000)]  # fewer may stay on the host


@row("call", "x+x of 20,000 f32", few, is_call=True, on_host=True, tolerance=None)
def call(lib, x):
    return x + x


@row("call_number", "sum of 20,000 f32 to a number", few, is_call=True, on_host=True, number=True, tolerance=None)
def call_number(lib, x):
    return lib.xp.sum(x)


# Elements


def ramp(s):
    return [np.arange(s.count(1e7), dtype=np.float32)]


@row("trigonometric_to_host", "cos^2+sin^2 1e7 f32, NumPy in and out", ramp, to_host=True)
@row(
    "trigonometric",
    "cos^2+sin^2 1e7 f32",
    ramp,
    moved=twice,
    in_a_row=True,
    torch=True,
    expression="cos(x)**2 + sin(x)**2",
)
def cos2_sin2(lib, x):
    return lib.xp.cos(x) ** 2 + lib.xp.sin(x) ** 2


@row(
    "small_add_to_host", "x+y of 1,000 f32, NumPy in and out", lambda s: [s.floats(1000), s.floats(1000)], to_host=True
)
@row(
    "add",
    "x+y 1e8 f32",
    lambda s: [s.floats(s.count(1e8)) for _ in "xy"],
    moved=lambda x, y: 3 * x.nbytes,
    in_a_row=True,
    torch=True,
    expression="x + y",
)
def add(lib, x, y):
    return x + y


@row(
    "multiply_add",
    "x+y*z 1e8 f32",
    lambda s: [s.floats(s.count(1e8)) for _ in "xyz"],
    moved=lambda x, *_: 4 * x.nbytes,
    in_a_row=True,
    torch=True,
    expression="x + y * z",
)
def multiply_add(lib, x, y, z):
    return x + y * z


@row(
    "choose",
    "where(x>0.5,y,z) 1e8 f32",
    lambda s: [s.floats(s.count(1e8)) for _ in "xyz"],
    moved=lambda x, *_: 4 * x.nbytes,
    in_a_row=True,
    torch=True,
    expression="where(x > 0.5, y, z)",
)
def choose(lib, x, y, z):
    return lib.xp.where(x > 0.5, y, z)


@row(
    "selu",
    "selu 1e6 f32",
    lambda s: [s.floats(s.count(1e6)) - np.float32(0.5)],
    moved=twice,
    torch=True,
    expression="1.05 * where(x > 0, x, 1.67 * exp(x) - 1.67)",
)
def selu(lib, x):
    return 1.05 * lib.xp.where(x > 0, x, 1.67 * lib.xp.exp(x) - 1.67)


@row(
    "exp_float64",
    "exp 1e7 f64",
    lambda s: [s.floats(s.count(1e7), dtype=np.float64)],
    moved=twice,
    in_a_row=True,
    torch=True,
    expression="exp(x)",
)
def exponential(lib, x):
    return lib.xp.exp(x)


@row(
    "complex_product",
    "x*y 4e6 c64",
    lambda s: [(s.floats(s.count(4e6)) + 1j * s.floats(s.count(4e6))).astype(np.complex64) for _ in "xy"],
    moved=lambda x, y: 3 * x.nbytes,
    in_a_row=True,
    torch=True,
)
def times(lib, x, y):
    return x * y


@row(
    "row_broadcast",
    "x * row 4096^2 f32",
    lambda s: [s.floats(s.side(4096), s.side(4096)), s.floats(s.side(4096))],
    moved=twice,
    in_a_row=True,
    torch=True,
)
def times_row(lib, x, y):
    return x * y


@row(
    "add_transpose",
    "x + y.T 4096^2 f32",
    lambda s: [s.floats(s.side(4096), s.side(4096)) for _ in "xy"],
    moved=lambda x, y: 3 * x.nbytes,
    in_a_row=True,
    torch=True,
)
def add_transpose(lib, x, y):
    return x + y.T


@row(
    "pair_differences",
    "x[:,None]-y[None], 4000x4000x3 f32",
    lambda s: [s.floats(s.side(4000), 3), s.floats(s.side(4000), 3)],
    in_a_row=True,
)
def pair_differences(lib, x, y):
    return x[:, None, :] - y[None, :, :]


def functions():
    """Each ufunc of elementary mathematics alone; numexpr has the same names where it has the function."""

    def normals(dtype):
        return lambda s: [s.normals(s.count(1e6), dtype=dtype)]

    def positive(dtype):
        return lambda s: [s.floats(s.count(1e6), dtype=dtype) + dtype(1e-3)]

    def two(make):
        return lambda s: make(s) + make(s)

    def add_row(name, dtype, inputs, expression):
        def function(lib, *arrays):
            return getattr(lib.xp, name)(*arrays)

        short = f"f{np.dtype(dtype).itemsize * 8}"
        key, what = f"{name}_{short}", f"{name} 1e6 {short}"
        row(key, what, inputs, moved=all_once, in_a_row=True, on_host=True, expression=expression)(function)

    for dtype in (np.float32, np.float64):
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "expm1", "arctan", "arcsinh"):
            add_row(name, dtype, normals(dtype), f"{name}(x)")
        for name in ("exp2", "cbrt"):
            add_row(name, dtype, normals(dtype), None)
        for name in ("log", "log10", "log1p", "sqrt"):
            add_row(name, dtype, positive(dtype), f"{name}(x)")
        add_row("log2", dtype, positive(dtype), None)
        for name in ("arcsin", "arccos", "arctanh"):
            add_row(name, dtype, lambda s, dtype=dtype: [s.floats(s.count(1e6), dtype=dtype)], f"{name}(x)")
        add_row("arctan2", dtype, two(normals(dtype)), "arctan2(x, y)")
        add_row("power", dtype, two(positive(dtype)), "x ** y")


functions()


def integers_to(dtype, high):
    return lambda s: [s.places(s.count(1e6), high, dtype)]


@row("divide_uint8", "x // 7 1e6 u8", integers_to(np.uint8, 200), in_a_row=True, on_host=True, tolerance=0)
@row("divide_int32", "x // 7 1e6 i32", integers_to(np.int32, 1 << 30), in_a_row=True, on_host=True, tolerance=0)
def floor_divide(lib, x):
    return x // 7


@row(
    "astype",
    "astype 1e7 f64 to f32",
    lambda s: [s.floats(s.count(1e7), dtype=np.float64)],
    in_a_row=True,
    on_host=True,
)
def astype(lib, x):
    return x.astype(np.float32)


# Reductions


@row(
    "sum",
    "sum 3e7 f32 to a number",
    lambda s: [s.floats(s.count(3e7))],
    moved=once,
    number=True,
    tolerance=1e-4,
    torch=True,
    expression="sum(x)",
)
@row(
    "sum_int32", "sum 3e7 i32 to a number", lambda s: [s.places(s.count(3e7), 1000, np.int32)], moved=once, number=True
)
def total(lib, x):
    return lib.xp.sum(x)


@row(
    "max_int32", "max 3e7 i32 to a number", lambda s: [s.places(s.count(3e7), 1000, np.int32)], moved=once, number=True
)
def greatest(lib, x):
    return lib.xp.max(x)


@row(
    "max", "max 2.5e7 f32 to a number", lambda s: [s.normals(s.count(2.5e7))], moved=once, number=True, on_host=True
)
@row(
    "max_float64",
    "max 1e7 f64 to a number",
    lambda s: [s.normals(s.count(1e7), dtype=np.float64)],
    moved=once,
    number=True,
    on_host=True,
)
@row("max_short", "max 1e5 f32 to a number", lambda s: [s.normals(s.count(1e5))], number=True, on_host=True)
def greatest_float(lib, x):
    return lib.xp.max(x)


@row(
    "argmax",
    "argmax of 2.5e7 f32 to a number",
    lambda s: [s.normals(s.count(2.5e7))],
    moved=once,
    number=True,
    tolerance=0,
    torch=True,
)
def place_of_greatest(lib, x):
    return lib.xp.argmax(x)


def square(s):
    return [s.floats(s.side(4096), s.side(4096))]


def lines(s):
    return [s.floats(s.count(5e3), 5000)]


@row("sum_columns", "sum of columns, 5000x5000 f32", lines, moved=once, tolerance=1e-4)
@row("sum_axis0", "sum axis 0 4096^2 f32", square, moved=once, in_a_row=True, tolerance=1e-4)
def sum_axis0(lib, x):
    return lib.xp.sum(x, axis=0)


@row("sum_axis1", "sum axis 1 4096^2 f32", square, moved=once, in_a_row=True, tolerance=1e-4)
def sum_axis1(lib, x):
    return lib.xp.sum(x, axis=1)


@row(
    "sum_leading",
    "sum axis 0 of (1e6, 8) f32",
    lambda s: [s.floats(s.count(1e6), 8)],
    moved=once,
    in_a_row=True,
    tolerance=1e-4,
)
def sum_leading(lib, x):
    return lib.xp.sum(x, axis=0)


@row("var_axis0", "var axis 0 4096^2 f32", square, moved=once, in_a_row=True, tolerance=1e-4)
def var_axis0(lib, x):
    return lib.xp.var(x, axis=0)


@row("std", "std 1e7 f32", lambda s: [s.floats(s.count(1e7))], moved=once, in_a_row=True, tolerance=1e-4)
def std(lib, x):
    return lib.xp.std(x)


@row(
    "argmax_axis1",
    "argmax axis 1 4096^2 f32",
    lambda s: [s.normals(s.side(4096), s.side(4096))],
    moved=once,
    in_a_row=True,
    tolerance=0,
)
def argmax_axis1(lib, x):
    return lib.xp.argmax(x, axis=1)


@row(
    "sum_of_squares",
    "sum((a-b)**2, axis 1) 4096^2 f32",
    lambda s: square(s) + square(s),
    moved=lambda x, y: 2 * x.nbytes,
    in_a_row=True,
    tolerance=1e-4,
)
def sum_of_squares(lib, x, y):
    return lib.xp.sum((x - y) ** 2, axis=1)


@row("median", "median 1e7 f32", lambda s: [s.normals(s.count(1e7))], in_a_row=True)
def median(lib, x):
    return lib.xp.median(x)


# Order


def keys(s):
    return [s.normals(s.count(1e7))]


@row("sort", "sort 1e7 f32", keys, in_a_row=True)
@row("sort_int64", "sort 1e7 i64", lambda s: [s.places(s.count(1e7), 1 << 60)], in_a_row=True)
def sort(lib, x):
    return lib.xp.sort(x)


@row(
    "sort_short_float64",
    "sort 3e4 f64",
    lambda s: [s.normals(s.count(3e4), dtype=np.float64)],
    in_a_row=True,
    on_host=True,
)
@row("sort_short", "sort 3e4 f32", lambda s: [s.normals(s.count(3e4))], in_a_row=True)
@row("sort_float64", "sort 1e6 f64", lambda s: [s.normals(s.count(1e6), dtype=np.float64)], in_a_row=True)
def sort_other(lib, x):
    return lib.xp.sort(x)


@row("argsort_int64", "argsort 1e6 i64", lambda s: [s.places(s.count(1e6), 1 << 60)], in_a_row=True, tolerance=None)
@row("argsort", "argsort 1e7 f32", keys, in_a_row=True, tolerance=None)
def argsort(lib, x):
    return lib.xp.argsort(x)


@row("unique", "unique 1e7 f32", keys, in_a_row=True, eager=True)
def unique(lib, x):
    return lib.xp.unique(x)


@row("partition", "partition 1e6 f32", lambda s: [s.normals(s.count(1e6))], in_a_row=True, tolerance=None)
def partition(lib, x):
    return lib.xp.partition(x, x.shape[0] // 2)


@row(
    "isin",
    "isin 1e6 of 1e5 i64",
    lambda s: [s.places(s.count(1e6), 1 << 40), s.places(s.count(1e5), 1 << 40)],
    in_a_row=True,
    tolerance=0,
)
def isin(lib, x, y):
    return lib.xp.isin(x, y)


@row(
    "intersect1d",
    "intersect1d of 1e6 i64 twice",
    lambda s: [s.places(s.count(1e6), 1_000_000) for _ in "xy"],
    tolerance=0,
    eager=True,
)
def intersect1d(lib, x, y):
    return lib.xp.intersect1d(x, y)


@row(
    "digitize",
    "digitize 1e6 f32 in 50",
    lambda s: [s.normals(s.count(1e6)), np.linspace(-3, 3, 50, dtype=np.float32)],
    in_a_row=True,
    tolerance=0,
)
def digitize(lib, x, edges):
    return lib.xp.digitize(x, edges)


def random_square(s):
    return [s.normals(s.side(4096), s.side(4096))]


@row("sort_rows", "sort axis 1 4096^2 f32", random_square, in_a_row=True, slow_in_numpy=True)
def sort_rows(lib, x):
    return lib.xp.sort(x, axis=1)


@row("sort_columns", "sort axis 0 4096^2 f32", random_square, in_a_row=True, slow_in_numpy=True)
def sort_columns(lib, x):
    return lib.xp.sort(x, axis=0)


@row("top_k", "top 100 of 1e7 f32", keys, in_a_row=True, tolerance=None)
def top_k(lib, x):
    return lib.top_k(x, 100)


@row(
    "searchsorted",
    "searchsorted 1e7 in 1e6 f32",
    lambda s: [np.sort(s.normals(s.count(1e6))), s.normals(s.count(1e7))],
    in_a_row=True,
    tolerance=0,
    slow_in_numpy=True,
)
def searchsorted(lib, x, y):
    return lib.xp.searchsorted(x, y)


@row("permutation", "permutation 1e6", lambda s: [s.count(1e6)], in_a_row=True, tolerance=None, eager=True)
def permutation(lib, count):
    return lib.permutation(count)


# Scans and masks


@row(
    "cumsum",
    "cumsum 3e7 f32",
    lambda s: [s.floats(s.count(3e7)) - np.float32(0.5)],
    moved=twice,
    in_a_row=True,
    tolerance=None,
)
@row(
    "cumsum_int64", "cumsum 3e7 i64", lambda s: [s.places(s.count(3e7), 1000)], moved=twice, in_a_row=True, tolerance=0
)
def cumsum(lib, x):
    return lib.xp.cumsum(x)


@row("cumsum_axis1", "cumsum axis 1 4096^2 f32", square, moved=twice, in_a_row=True, tolerance=1e-3)
def cumsum_axis1(lib, x):
    return lib.xp.cumsum(x, axis=1)


@row("cumsum_axis0", "cumsum axis 0 4096^2 f32", square, moved=twice, in_a_row=True, tolerance=1e-3)
def cumsum_axis0(lib, x):
    return lib.xp.cumsum(x, axis=0)


@row(
    "mask",
    "x[mask] 1e7 f32",
    lambda s: [s.floats(s.count(1e7)), s.floats(s.count(1e7)) > 0.5],
    in_a_row=True,
    eager=True,
)
def masked(lib, x, mask):
    return x[mask]


@row("nonzero", "nonzero 1e7", lambda s: [s.floats(s.count(1e7)) > 0.5], in_a_row=True, tolerance=0, eager=True)
def nonzero(lib, mask):
    return lib.xp.nonzero(mask)[0]


# Indices


@row(
    "take",
    "take 1e7 of 3e7 f32",
    lambda s: [s.floats(s.count(3e7)), s.places(s.count(1e7), s.count(3e7))],
    in_a_row=True,
)
def take(lib, x, places):
    return x[places]


@row(
    "scatter",
    "y[idx]=x, 1e7 into 1e6 f32",
    lambda s: [s.floats(s.count(1e6)), s.places(s.count(1e7), s.count(1e6)), s.floats(s.count(1e7))],
    in_a_row=True,
    tolerance=None,
)
def scatter(lib, y, places, x):
    return lib.write(y, places, x)


@row(
    "add_at_few",
    "add.at 1e6 into 16 f32",
    lambda s: [s.floats(16), s.places(s.count(1e6), 16), s.floats(s.count(1e6))],
    in_a_row=True,
    tolerance=None,
)
@row(
    "add_at_many",
    "add.at 1e7 into 1e6 f32",
    lambda s: [s.floats(s.count(1e6)), s.places(s.count(1e7), s.count(1e6)), s.floats(s.count(1e7))],
    in_a_row=True,
    tolerance=None,
)
def add_at(lib, y, places, x):
    return lib.add_at(y, places, x)


@row(
    "bincount",
    "bincount 1e7, 1000 bins",
    lambda s: [s.places(s.count(1e7), 1000)],
    in_a_row=True,
    tolerance=0,
    eager=True,
)
def bincount(lib, x):
    return lib.xp.bincount(x)


@row(
    "group_sum",
    "sums of 1e7 f32 by 1000 groups",
    lambda s: [s.places(s.count(1e7), 1000), s.floats(s.count(1e7))],
    in_a_row=True,
    tolerance=1e-2,
    eager=True,
)
def group_sum(lib, groups, values):
    return lib.group_sum(groups, values, 1000)


@row("histogram", "histogram 1e7 f32, 100 bins", keys, in_a_row=True, tolerance=None, eager=True)
def histogram(lib, x):
    return lib.xp.histogram(x, bins=100)[0]


# Moves


@row("transpose", "x.T copy 8192^2 f32", lambda s: [s.floats(s.side(8192), s.side(8192))], moved=twice, in_a_row=True)
def transpose(lib, x):
    return x.T + np.float32(0) if lib.name == "JAX" else lib.xp.ascontiguousarray(x.T)


@row("roll", "roll 1e7 f32", lambda s: [s.floats(s.count(1e7))], moved=twice, in_a_row=True)
def roll(lib, x):
    return lib.xp.roll(x, 12345)


@row("repeat", "repeat 1e6 x 8 f32", lambda s: [s.floats(s.count(1e6))], moved=lambda x: 9 * x.nbytes, in_a_row=True)
def repeat(lib, x):
    return lib.xp.repeat(x, 8)


@row("tril", "tril 4096^2 f32", square, moved=twice, in_a_row=True)
def tril(lib, x):
    return lib.xp.tril(x)


@row(
    "stack",
    "stack 2 x 1e7 f32",
    lambda s: [s.floats(s.count(1e7)) for _ in "xy"],
    moved=lambda x, y: 4 * x.nbytes,
    in_a_row=True,
)
def stack(lib, x, y):
    return lib.xp.stack([x, y])


@row(
    "concatenate",
    "concatenate 2 x 1e7 f32",
    lambda s: [s.floats(s.count(1e7)) for _ in "xy"],
    moved=lambda x, y: 4 * x.nbytes,
    in_a_row=True,
)
def concatenate(lib, x, y):
    return lib.xp.concatenate([x, y])


# Random numbers


@row(
    "normal",
    "standard_normal 1e8 f32",
    lambda s: [s.count(1e8)],
    in_a_row=True,
    tolerance=None,
    eager=True,
    slow_in_numpy=True,
)
def normal(lib, count):
    return lib.normal(count, np.float32)


@row(
    "uniform", "random 1e8 f32", lambda s: [s.count(1e8)], in_a_row=True, tolerance=None, eager=True, slow_in_numpy=True
)
def uniform(lib, count):
    return lib.uniform(count, np.float32)


@row("integers", "integers 1e7 i32", lambda s: [s.count(1e7)], in_a_row=True, tolerance=None, eager=True)
def integers(lib, count):
    return lib.integers(count)


# Transforms


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


# Products


def product(lib, x, y):
    return x @ y


product.torch = True


def products():
    def add_row(key, what, inputs, **options):
        ROWS.append(Workload(key, what, product, inputs, in_a_row=True, tolerance=1e-3, **options))

    def long(s):
        rows, columns = s.count(1e4) if s.gpu else s.side(1e4), 300_000 if s.gpu else 10_000
        return [s.floats(rows, columns), s.floats(columns)]

    add_row("matvec", "1e4 x 3e5 f32 by vector", long, moved=once, slow_in_numpy=True)
    add_row(
        "vecmat",
        "vector by 1e4 x 1e4 f32",
        lambda s: [s.floats(s.side(1e4)), s.floats(s.side(1e4), s.side(1e4))],
        moved=lambda x, y: y.nbytes,
    )
    add_row(
        "matvec_short",
        "1000^2 f32 by vector",
        lambda s: [s.floats(s.side(1000), s.side(1000)), s.floats(s.side(1000))],
        on_host=True,
    )
    add_row("dot", "dot 1e7 f32", lambda s: [s.floats(s.count(1e7)) for _ in "xy"], moved=lambda x, y: 2 * x.nbytes)
    for dtype in (np.float32, np.float64):
        name = np.dtype(dtype).name
        short = f"f{np.dtype(dtype).itemsize * 8}"

        def squares(n, dtype=dtype):
            return lambda s: [s.floats(s.side(n), s.side(n), dtype=dtype) for _ in "xy"]

        add_row(
            f"matmul_{name}",
            f"matmul 1024x2048x512 {short}",
            lambda s, dtype=dtype: [s.floats(1024, 2048, dtype=dtype), s.floats(2048, 512, dtype=dtype)],
        )
        ROWS.append(
            Workload(
                f"matmul_{name}_to_host",
                f"matmul 1024x2048x512 {short}, NumPy in and out",
                product,
                lambda s, dtype=dtype: [s.floats(1024, 2048, dtype=dtype), s.floats(2048, 512, dtype=dtype)],
                to_host=True,
                tolerance=1e-3,
            )
        )
        for n in (512, 1024, 4096):
            add_row(f"matmul_{n}_{name}", f"matmul {n}^3 {short}", squares(n), slow_in_numpy=n == 4096)
    add_row(
        "matmul_transpose_float32",
        "3000x3000 f32 by its transpose",
        lambda s: [(x := s.floats(s.side(3000), s.side(3000))), np.ascontiguousarray(x.T)],
    )
    add_row(
        "matmul_int64",
        "matmul 1024^3 i64",
        lambda s: [s.places((s.side(1024), s.side(1024)), 100) for _ in "xy"],
        slow_in_numpy=True,
    )
    add_row(
        "matmul_int8",
        "matmul 1024^3 i8",
        lambda s: [s.places((s.side(1024), s.side(1024)), 100).astype(np.int8) for _ in "xy"],
        slow_in_numpy=True,
    )
    add_row(
        "matmul_batch", "matmul of 1000 x 32^2 f64", lambda s: [s.floats(1000, 32, 32, dtype=np.float64) for _ in "xy"]
    )
    ROWS.append(
        Workload(
            "matmul_float16",
            "matmul 4096^3 f16",
            product,
            lambda s: [(s.floats(s.side(4096), s.side(4096)) - 0.5).astype(np.float16) for _ in "xy"],
            in_a_row=True,
            tolerance=None,
            endless_in_numpy=True,
        )
    )


products()


@row(
    "vecdot",
    "vecdot of rows 4096^2 f32",
    lambda s: square(s) + square(s),
    moved=lambda x, y: 2 * x.nbytes,
    in_a_row=True,
    tolerance=1e-4,
)
def vecdot(lib, x, y):
    return lib.xp.vecdot(x, y)


@row(
    "dense_layer",
    "relu(a @ b + c) 1024^3 f32",
    lambda s: [s.floats(s.side(1024), s.side(1024)), s.floats(s.side(1024), s.side(1024)), s.floats(s.side(1024))],
    in_a_row=True,
    tolerance=1e-3,
)
def dense_layer(lib, a, b, c):
    return lib.xp.maximum(a @ b + c, np.float32(0))


# Linear algebra


def matrix(n, dtype):
    """Symmetric and positive definite, so that every factorization takes it."""

    def make(s):
        x = s.normals(n, n, dtype=np.float32)
        return [(x @ x.T / n + np.eye(n)).astype(dtype)]

    return make


def matrices(count, n):
    def make(s):
        x = s.normals(count, n, n, dtype=np.float64)
        return [x @ np.swapaxes(x, 1, 2) / n + np.eye(n)]

    return make


def solve(lib, x):
    return lib.xp.linalg.solve(x, x[..., :1])


def inverse(lib, x):
    return lib.xp.linalg.inv(x)


def cholesky(lib, x):
    return lib.xp.linalg.cholesky(x)


def qr(lib, x):
    return lib.xp.linalg.qr(x)[1]


def eigh(lib, x):
    return lib.xp.linalg.eigh(x)[0]


def svd(lib, x):
    return lib.xp.linalg.svd(x, full_matrices=False)[1]


def linear_algebra():
    for function, sizes in (
        (solve, (512, 2048)),
        (inverse, (512, 2048)),
        (cholesky, (512, 4096)),
        (qr, (512, 2048)),
        (eigh, (512, 1024)),
        (svd, (512, 1024)),
    ):
        name = function.__name__
        for n in sizes:
            dtype = np.float32 if n == 4096 else np.float64
            # The signs of qr's rows are the library's choice.
            ROWS.append(
                Workload(
                    f"{name}_{n}",
                    f"{name} {n}^2 f{np.dtype(dtype).itemsize * 8}",
                    function,
                    matrix(n, dtype),
                    tolerance=None if function is qr else 1e-3,
                    slow_in_numpy=n > 512,
                )
            )
        if function is not qr:
            ROWS.append(
                Workload(
                    f"{name}_batch",
                    f"{name} of 1000 x 32^2 f64",
                    function,
                    matrices(1000, 32),
                    in_a_row=True,
                    tolerance=1e-6,
                )
            )


linear_algebra()


# Calls


@row("launch", "launch of a CUDA kernel on 1,000 f32", lambda s: [s.floats(1000)], in_a_row=True, tolerance=None)
def launch(lib, x):
    if not hasattr(lib, "launcher"):
        lib.launcher = lib.kernel()
    return lib.launcher(x)


@row("held_small", "2,000 sums of 1,000 f32, all held", lambda s: [s.floats(1000), s.floats(1000)], eager=True)
def held_small(lib, x, y):
    return [x + y for _ in range(2000)]


@row(
    "chain",
    "1,000 additions, each of the last one's result, 1,000 f32",
    lambda s: [s.floats(1000), s.floats(1000)],
    tolerance=1e-3,
    eager=True,
)
def chain(lib, x, y):
    for _ in range(1000):
        x = lib.xp.add(x, y)
    return x
