# The functions that _elementwise.py makes of its tables; tests/python/stubs_test.py compares the two.
from typing import Any, Callable, Dict, List, Optional, Protocol, Tuple, Union

from stride._array import Array

__all__ = [
    "abs", "absolute", "acos", "acosh", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "around", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_count",
    "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "cbrt", "ceil", "clip", "conj", "conjugate", "copysign", "cos", "cosh", "deg2rad", "degrees", "divide",
    "divmod", "equal", "exp", "exp2", "expm1", "fabs", "float_power", "floor", "floor_divide", "fmax", "fmin",
    "fmod", "frexp", "gcd", "greater", "greater_equal", "heaviside", "hypot", "imag", "invert", "isfinite", "isinf",
    "isnan", "lcm", "ldexp", "left_shift", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp",
    "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "mod", "modf",
    "multiply", "negative", "nextafter", "not_equal", "positive", "pow", "power", "rad2deg", "radians", "real",
    "reciprocal", "remainder", "right_shift", "rint", "round", "sign", "signbit", "sin", "sinh", "spacing", "sqrt",
    "square", "subtract", "tan", "tanh", "true_divide", "trunc", "where",
]

UNARY: Dict[str, str]
BINARY: Dict[str, str]

class UfuncAttributes(Protocol):
    nin: int
    nout: int
    nargs: int
    ntypes: int
    types: List[str]
    identity: Any
    signature: Optional[str]
    resolve_dtypes: Callable[..., Tuple[Any, ...]]

class Ufunc1(UfuncAttributes, Protocol):
    def __call__(self, x: Any, /, out: Optional[Array] = None, *, where: Any = True, casting: str = "same_kind", dtype: Any = None) -> Array: ...
    def at(self, a: Array, indices: Any) -> None: ...

class Ufunc2(UfuncAttributes, Protocol):
    def __call__(self, x1: Any, x2: Any, /, out: Optional[Array] = None, *, where: Any = True, casting: str = "same_kind",
                 dtype: Any = None) -> Array: ...
    def reduce(self, x: Any, axis: Any = 0, dtype: Any = None, out: Optional[Array] = None, keepdims: bool = False, initial: Any = None,
               where: Any = True) -> Array: ...
    def accumulate(self, x: Any, axis: int = 0, dtype: Any = None, out: Optional[Array] = None, include_initial: bool = False,
                   reverse: bool = False, exclusive: bool = False) -> Array: ...
    def outer(self, a: Any, b: Any, **options: Any) -> Array: ...
    def at(self, a: Array, indices: Any, b: Any) -> None: ...
    def reduceat(self, x: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Optional[Array] = None) -> Array: ...

Outs = Tuple[Optional[Array], Optional[Array]]

absolute: Ufunc1
abs: Ufunc1
arccos: Ufunc1
acos: Ufunc1
arccosh: Ufunc1
acosh: Ufunc1
arcsin: Ufunc1
asin: Ufunc1
arcsinh: Ufunc1
asinh: Ufunc1
arctan: Ufunc1
atan: Ufunc1
arctanh: Ufunc1
atanh: Ufunc1
cbrt: Ufunc1
conjugate: Ufunc1
conj: Ufunc1
cos: Ufunc1
cosh: Ufunc1
deg2rad: Ufunc1
degrees: Ufunc1
exp: Ufunc1
exp2: Ufunc1
expm1: Ufunc1
fabs: Ufunc1
invert: Ufunc1
bitwise_invert: Ufunc1
isfinite: Ufunc1
isinf: Ufunc1
isnan: Ufunc1
log: Ufunc1
log10: Ufunc1
log1p: Ufunc1
log2: Ufunc1
logical_not: Ufunc1
negative: Ufunc1
positive: Ufunc1
rad2deg: Ufunc1
radians: Ufunc1
reciprocal: Ufunc1
rint: Ufunc1
sign: Ufunc1
signbit: Ufunc1
sin: Ufunc1
sinh: Ufunc1
spacing: Ufunc1
sqrt: Ufunc1
square: Ufunc1
tan: Ufunc1
tanh: Ufunc1
bitwise_count: Ufunc1
ceil: Ufunc1
floor: Ufunc1
trunc: Ufunc1
add: Ufunc2
arctan2: Ufunc2
atan2: Ufunc2
bitwise_and: Ufunc2
bitwise_or: Ufunc2
bitwise_xor: Ufunc2
copysign: Ufunc2
divide: Ufunc2
equal: Ufunc2
float_power: Ufunc2
floor_divide: Ufunc2
fmax: Ufunc2
fmin: Ufunc2
fmod: Ufunc2
gcd: Ufunc2
greater: Ufunc2
greater_equal: Ufunc2
heaviside: Ufunc2
hypot: Ufunc2
lcm: Ufunc2
ldexp: Ufunc2
left_shift: Ufunc2
bitwise_left_shift: Ufunc2
less: Ufunc2
less_equal: Ufunc2
logaddexp: Ufunc2
logaddexp2: Ufunc2
logical_and: Ufunc2
logical_or: Ufunc2
logical_xor: Ufunc2
maximum: Ufunc2
minimum: Ufunc2
multiply: Ufunc2
nextafter: Ufunc2
not_equal: Ufunc2
power: Ufunc2
pow: Ufunc2
remainder: Ufunc2
right_shift: Ufunc2
bitwise_right_shift: Ufunc2
subtract: Ufunc2

def divmod(x1: Any, x2: Any, /, out: Outs = (None, None), *, where: Any = True, casting: str = "same_kind", dtype: Any = None) -> Tuple[Array, Array]: ...
def frexp(x: Any, /, out: Outs = (None, None), *, where: Any = True, casting: str = "same_kind", dtype: Any = None) -> Tuple[Array, Array]: ...
def modf(x: Any, /, out: Outs = (None, None), *, where: Any = True, casting: str = "same_kind", dtype: Any = None) -> Tuple[Array, Array]: ...
mod: Ufunc2
true_divide: Ufunc2
bitwise_not: Ufunc1

def real(val: Any) -> Array: ...
def imag(val: Any) -> Array: ...
def round(a: Any, decimals: int = 0, out: Any = None) -> Array: ...
def around(a: Any, decimals: int = 0, out: Any = None) -> Array: ...
def clip(a: Any, min: Any = None, max: Any = None, out: Any = None, *, a_min: Any = None, a_max: Any = None,
         where: Any = True, casting: str = "same_kind", dtype: Any = None) -> Array: ...
def where(condition: Any, x1: Any = None, x2: Any = None, /) -> Any: ...
