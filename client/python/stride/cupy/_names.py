"""CuPy's names that are NumPy's, names that differ here, and refused names with their alternatives."""

# Types, and what computes with types, shapes and text alone.
FROM_NUMPY = set(
    """bool_ byte bytes_ cdouble complex64 complex128 complexfloating csingle double float16 float32 float64 floating
generic half inexact int8 int16 int32 int64 int_ intc integer intp long longlong number short signedinteger
single ubyte uint uint16 uint32 uint64 uint8 uintc uintp ulong ulonglong unsignedinteger ushort dtype finfo
iinfo can_cast common_type min_scalar_type mintypecode promote_types result_type issubdtype isdtype typename
broadcast_shapes binary_repr base_repr format_float_positional format_float_scientific get_printoptions
set_printoptions printoptions set_string_function isscalar errstate geterr seterr index_exp s_ ndindex Inf NAN
NaN NINF PINF NZERO PZERO euler_gamma ComplexWarning RankWarning VisibleDeprecationWarning AxisError
TooHardError DTypePromotionError exceptions iterable""".split()
)

# NumPy 2 has no longer some names that CuPy still has.
ALIASES = {
    "absolute": "abs",
    "conjugate": "conj",
    "bool8": "bool",
    "trapz": "trapezoid",
    "product": "prod",
    "cumproduct": "cumprod",
    "sometrue": "any",
    "alltrue": "all",
    "round_": "round",
}

REFUSED = {
    "ufunc": (
        "functions are not objects of one class; ufuncs have reduce, accumulate, outer, at and reduceat all the " "same"
    ),
    "core": "it is CuPy's own machinery",
    "_core": "it is CuPy's own machinery",
    "create_ufunc": "use ElementwiseKernel or stride.vectorize",
    "create_reduction_func": "use ReductionKernel",
    "flatiter": "arrays are walked over by x.ravel()",
    "char": "the service has no strings",
    "str_": "the service has no strings",
    "object_": "the service has no objects",
    "void": "the service has no structured types",
    "datetime64": "the service has no dates",
    "longdouble": "devices compute in float64 at most",
    "clongdouble": "devices compute in complex128 at most",
    "float128": "devices compute in float64 at most",
    "complex256": "devices compute in complex128 at most",
    "cublas": "use matmul and linalg",
    "cusolver": "use linalg",
    "cusparse": "the service has no sparse matrices",
    "cutensor": "use einsum and tensordot",
    "nccl": "arrays are spread over devices with stride.Sharding",
    "prof": "cupyx.profiler has time_range and profile",
    "util": "memoize and clear_memo are at the top",
    "compile_with_cache": "use RawModule",
    "binary": "use the functions of bits at the top",
    "asfarray": "use asarray(x, dtype=float)",
    "in1d": "use isin(x.ravel(), y)",
    "msort": "use sort(x, axis=0)",
    "byte_bounds": "memory of the device has no address in a client",
    "set_string_function": "use set_printoptions",
    "fromDlpack": "use from_dlpack",
    "statistics": "functions are at the top",
    "xpx": "use array_api_extra itself",
}


def missing_in(module: str, name: str) -> str:
    """The text about a name that a submodule lacks: what to use, where NumPy has it."""
    import numpy

    if not name.startswith("_") and hasattr(getattr(numpy, module), name):
        return f"stride.cupy.{module} has no {name}; use numpy.{module}.{name}, with cp.asnumpy(x) for arrays"
    return f"stride.cupy.{module} has no {name}"
