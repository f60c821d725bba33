"""NumPy's names with the same meaning here: types, constants and functions of the host. Also refused names,
with their alternatives."""

import importlib
from typing import Any, Dict

import numpy as np
from numpy import (  # noqa: F401
    ScalarType,
    base_repr,
    binary_repr,
    bool_,
    byte,
    cdouble,
    complexfloating,
    csingle,
    double,
    dtype,
    euler_gamma,
    floating,
    format_float_positional,
    format_float_scientific,
    generic,
    get_printoptions,
    getbufsize,
    geterr,
    geterrcall,
    half,
    index_exp,
    inexact,
    int_,
    intc,
    integer,
    intp,
    issubdtype,
    little_endian,
    long,
    longlong,
    mintypecode,
    ndindex,
    number,
    printoptions,
    promote_types,
    s_,
    sctypeDict,
    set_printoptions,
    setbufsize,
    seterrcall,
    short,
    signedinteger,
    single,
    typecodes,
    typename,
    ubyte,
    ufunc,
    uint,
    uintc,
    uintp,
    ulong,
    ulonglong,
    unsignedinteger,
    ushort,
)

from stride._array import Array, host_array
from stride._float_errors import errstate, seterr  # noqa: F401

ndarray = Array
False_, True_ = np.False_, np.True_

__all__ = [
    "False_",
    "ScalarType",
    "True_",
    "array2string",
    "array_repr",
    "array_str",
    "base_repr",
    "binary_repr",
    "bool_",
    "byte",
    "cdouble",
    "common_type",
    "complexfloating",
    "csingle",
    "double",
    "dtype",
    "errstate",
    "euler_gamma",
    "floating",
    "format_float_positional",
    "format_float_scientific",
    "generic",
    "get_printoptions",
    "getbufsize",
    "geterr",
    "geterrcall",
    "half",
    "index_exp",
    "inexact",
    "int_",
    "intc",
    "integer",
    "intp",
    "issubdtype",
    "little_endian",
    "long",
    "longlong",
    "min_scalar_type",
    "mintypecode",
    "ndarray",
    "ndindex",
    "number",
    "printoptions",
    "promote_types",
    "s_",
    "sctypeDict",
    "set_printoptions",
    "setbufsize",
    "seterr",
    "seterrcall",
    "short",
    "signedinteger",
    "single",
    "typecodes",
    "typename",
    "ubyte",
    "ufunc",
    "uint",
    "uintc",
    "uintp",
    "ulong",
    "ulonglong",
    "unsignedinteger",
    "ushort",
]


def _on_host(a: Any) -> Any:
    return a._read() if isinstance(a, Array) else host_array(a)


def array2string(a: Any, *arguments: Any, **options: Any) -> str:
    """An array's elements as text; they are read.

    Parameters
        a: an array, or what becomes one.
        arguments: `max_line_width`, `precision`, `suppress_small`, `separator` and so on in NumPy's order.
        options: the same by name, such as `precision` and `threshold`.
    Returns
        A str.
    Raises
        TypeError for an option that there is not.
    Example
        >>> st.array2string(st.array([1.5, 2.25]), precision=1)
        '[1.5 2.2]'
    """
    return np.array2string(_on_host(a), *arguments, **options)


def array_repr(arr: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """An array as its text in a program; its elements are read.

    Parameters
        arr: the array.
        max_line_width: after how many characters a line breaks; None for NumPy's setting.
        precision: digits after the point; None for NumPy's setting.
        suppress_small: whether numbers close to zero are shown as zero; None for NumPy's setting.
    Returns
        A str.
    Example
        >>> st.array_repr(st.array([1, 2]))
        'stride.Array([1, 2], dtype=int64)'
    """
    if not isinstance(arr, Array):
        return np.array_repr(arr, max_line_width, precision, suppress_small)
    if (max_line_width, precision, suppress_small) == (None, None, None):
        return repr(arr)
    text = np.array2string(arr._read(), max_line_width, precision, suppress_small, ", ", "stride.Array(")
    return f"stride.Array({text}, dtype={arr.dtype})"


def array_str(a: Any, max_line_width: Any = None, precision: Any = None, suppress_small: Any = None) -> str:
    """An array's elements as text; they are read.

    Parameters
        a: an array, or what becomes one.
        max_line_width: after how many characters a line breaks; None for NumPy's setting.
        precision: digits after the point; None for NumPy's setting.
        suppress_small: whether numbers close to zero are shown as zero; None for NumPy's setting.
    Returns
        A str.
    Example
        >>> st.array_str(st.array([1, 2]))
        '[1 2]'
    """
    return np.array_str(_on_host(a), max_line_width, precision, suppress_small)


def min_scalar_type(a: Any, /) -> np.dtype:
    """The smallest type that has a number; of an array with axes its own. An array without axes is read.

    Parameters
        a: a number or an array.
    Returns
        A numpy.dtype.
    Example
        >>> st.min_scalar_type(10)
        dtype('uint8')
    """
    if isinstance(a, Array):
        return a.dtype if a.ndim else np.min_scalar_type(a._read())
    return np.min_scalar_type(a)


def common_type(*arrays: Any) -> type:
    """The inexact type that arrays have together, float64 for integers.

    Parameters
        arrays: arrays of numbers.
    Returns
        A class of numpy, such as numpy.float64.
    Raises
        TypeError for an array of bools.
    Example
        >>> st.common_type(st.array([1], st.float32), st.array([1], st.int32)).__name__
        'float64'
    """
    stand_ins = [np.empty(0, one.dtype) if isinstance(one, Array) else one for one in arrays]
    return np.common_type(*stand_ins)


# --- modules of NumPy's own ---

# They work on types and arrays of the host, except those with a namesake here.
_MODULES = {
    "dtypes": "stride.dtypes",
    "emath": "stride.emath",
    "exceptions": "stride.exceptions",
    "lib": "stride.lib",
    "polynomial": "stride.polynomial",
    "testing": "stride.testing",
    "typing": "stride.typing",
}

# --- names that are refused ---

_STRINGS = "the service has no strings; use numpy.{name} on the host"
_DATES = "the service has no dates; use numpy.{name} on the host"
_WIDE = "the service has no long double; use float64 or complex128"
_STRUCTURED = "the service has no structured elements; use an array for each field"
_MATRIX = "matrices of a class of their own are not there; use a 2-d array, for which `@` is the product"

# The reason and the alternative; `{name}` is the name itself.
REFUSED: Dict[str, str] = {
    "asmatrix": _MATRIX,
    "bmat": _MATRIX + ", and stride.block",
    "busday_count": _DATES,
    "busday_offset": _DATES,
    "busdaycalendar": _DATES,
    "bytes_": _STRINGS,
    "char": _STRINGS,
    "character": _STRINGS,
    "clongdouble": _WIDE,
    "complex256": _WIDE,
    "core": "it is NumPy's own inside; use numpy.core itself",
    "ctypeslib": "it is for arrays of the host; use it with stride.asnumpy(x)",
    "datetime64": _DATES,
    "datetime_as_string": _DATES,
    "datetime_data": _DATES,
    "f2py": "it is NumPy's own tool; use numpy.f2py itself",
    "flatiter": "it is made by x.flat, which has a class of its own here",
    "flexible": _STRINGS,
    "float128": _WIDE,
    "fromregex": _STRUCTURED,
    "frompyfunc": "it makes arrays of objects; use stride.vectorize for a function that is compiled",
    "get_include": "NumPy's headers are found by numpy.get_include",
    "info": "use help",
    "is_busday": _DATES,
    "isnat": _DATES,
    "longdouble": _WIDE,
    "ma": "the service has no masks; use where= or the nan functions",
    "matrix": _MATRIX,
    "memmap": "a file is not mapped to a device; use stride.fromfile or stride.load",
    "nested_iters": "an element at a time is slow on a device; use whole arrays",
    "object_": "the service has no objects; use numpy.object_ on the host",
    "rec": _STRUCTURED,
    "recarray": _STRUCTURED,
    "record": _STRUCTURED,
    "show_runtime": "use stride.show_config",
    "str_": _STRINGS,
    "strings": _STRINGS,
    "test": "it runs NumPy's own tests; use numpy.test itself",
    "timedelta64": _DATES,
    "void": _STRUCTURED,
}

# Names that NumPy had once, or that other libraries have, and what has their place.
_ONCE: Dict[str, str] = {
    "alltrue": "all",
    "asscalar": "x.item()",
    "bool8": "bool",
    "cast": "astype",
    "cumproduct": "cumprod",
    "find_common_type": "result_type",
    "float": "float64",
    "float_": "float64",
    "complex": "complex128",
    "complex_": "complex128",
    "in1d": "isin",
    "int": "int64",
    "Inf": "inf",
    "Infinity": "inf",
    "infty": "inf",
    "NaN": "nan",
    "NAN": "nan",
    "object": "numpy.object_ on the host",
    "product": "prod",
    "round_": "round",
    "sometrue": "any",
    "str": "numpy.str_ on the host",
    "trapz": "trapezoid",
}


def missing(name: str) -> Any:
    """Looks up a name that the module lacks: returns one of NumPy's modules, or raises AttributeError with
    the alternative."""
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in REFUSED:
        raise AttributeError(f"stride has no {name!r}: {REFUSED[name].format(name=name)}")
    if name in _ONCE:
        instead = _ONCE[name]
        instead = instead if "." in instead else f"stride.{instead}"
        raise AttributeError(f"stride has no {name!r}; use {instead}")
    if not name.startswith("_") and hasattr(np, name):
        raise AttributeError(f"stride has no {name!r} yet; numpy.{name} on stride.asnumpy(x) computes it on the host")
    raise AttributeError(f"module 'stride' has no attribute {name!r}")


def missing_in(module: str, name: str) -> Any:
    """Raises AttributeError, with the alternative, for a name that a submodule lacks."""
    if not name.startswith("_"):
        if hasattr(getattr(np, module), name):
            raise AttributeError(
                f"stride.{module} has no {name!r}; use numpy.{module}.{name}, with stride.asnumpy(x) for arrays"
            )
        import stride

        if name in stride.__all__:
            raise AttributeError(f"stride.{module} has no {name!r}; use stride.{name}")
    raise AttributeError(f"module 'stride.{module}' has no attribute {name!r}")
