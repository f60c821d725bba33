"""Functions of elements."""

import numpy as np

from bench.peers.workload import Rows, all_once, twice

ROWS = Rows()
row = ROWS.row


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
