"""`import stride.jax.numpy as jnp`: NumPy's functions on arrays of JAX's kind.

Each function is Stride's of that name. Results are immutable, and of 32-bit elements unless `jax_enable_x64` is
set. Functions that write in place or read files are not there."""

import builtins as _builtins
import functools as _functools
from typing import Any as _Any, Callable as _Callable

import numpy as _np

import stride as _st
from stride import _errors
from stride.jax._array import Array, as_jax as _as_jax, as_type_error as _as_type_error, given as _given
from stride.jax._config import canonical as _canonical

ndarray = Array
# These write in place, or are about sessions and kernels.
_LEFT_OUT = {
    "Array", "Device", "DeviceSample", "Global", "Kernel", "MappedArray", "RawKernel", "RawModule", "Session",
    "Sharding", "Struct", "abi", "aio", "asnumpy", "atomic", "blockDim", "blockIdx", "connect", "copyto", "cuda",
    "current_session", "devices", "fill_diagonal", "grid", "gridDim", "gridsize", "guvectorize", "jit", "kernel", "lax",
    "linalg", "fft", "local", "place", "put", "put_along_axis", "putmask", "random", "reshard", "shared",
    "syncthreads", "syncwarp", "threadIdx", "tree", "tree_util", "vmap", "vectorize", "bool",
}  # fmt: skip


def _wrapped(name: str, function: _Callable[..., _Any]) -> _Callable[..., _Any]:
    @_functools.wraps(function)
    def call(*arguments: _Any, **options: _Any) -> _Any:
        options.pop("out_sharding", None)
        options.pop("precision", None)
        wanted = options.pop("preferred_element_type", None)
        keywords = {key: _given(one) for key, one in options.items()}
        values = [_given(one) for one in arguments]
        if wanted is not None and name == "matmul":
            keywords.update(dtype=wanted, casting="unsafe")
        elif wanted is not None:
            values = [one.astype(wanted) if isinstance(one, _st.Array) else one for one in values]
        try:
            return _as_jax(function(*values, **keywords))
        except _errors.ShapeMismatch as error:
            raise _as_type_error(error)

    return call


def _names_of(module: _Any, left_out: _Any = ()) -> dict:
    found = {}
    for name in module.__all__:
        one = getattr(module, name)
        if name in left_out:
            continue
        found[name] = _wrapped(name, one) if callable(one) and not isinstance(one, type) else one
    return found


globals().update(_names_of(_st, _LEFT_OUT))
bool_ = _np.bool_
int_, float_, complex_ = _np.int64, _np.float64, _np.complex128
uint, int32, int64 = _np.uint64, _np.int32, _np.int64
single, double, csingle, cdouble = _np.float32, _np.float64, _np.complex64, _np.complex128
floating, inexact, integer, signedinteger = _np.floating, _np.inexact, _np.integer, _np.signedinteger
unsignedinteger, complexfloating, number, generic = _np.unsignedinteger, _np.complexfloating, _np.number, _np.generic
dtype = _np.dtype
finfo, iinfo = _np.finfo, _np.iinfo
pi, e, inf, nan, newaxis, euler_gamma = _np.pi, _np.e, _np.inf, _np.nan, None, _np.euler_gamma


def array(object: _Any, dtype: _Any = None, copy: _Any = True, order: _Any = "K", ndmin: int = 0, **_: _Any) -> Array:
    """An array of numbers, nested lists, or another array.

    Parameters
        object: what becomes an array.
        dtype: the element type; None for that of the elements.
        copy, order: accepted.
        ndmin: at least so many axes.
    Returns
        An array.
    Example
        >>> from stride.jax import numpy as jnp
        >>> jnp.array([1.0, 2.0])
        Array([1., 2.], dtype=float32)
    """
    if isinstance(object, (list, tuple)) and any_array(object):
        result = _st.stack([array(one) for one in object])
    elif isinstance(object, _st.Array):
        result = _st.copy(object)
    else:
        if hasattr(object, "__jax_array__"):
            return array(object.__jax_array__(), dtype, ndmin=ndmin)
        values = _np.asarray(object)
        if values.dtype.kind not in "biufc" and values.dtype.name != "bfloat16":
            raise TypeError(f"Value {object!r} with dtype {values.dtype} is not a valid JAX array type. Only arrays of "
                            "numeric types are supported by JAX.")
        result = _st.asarray(values.astype(_canonical(values.dtype)))
    if dtype is not None:
        result = result.astype(_canonical(dtype))
    if result.ndim < ndmin:
        result = _st.reshape(result, (*(1,) * (ndmin - result.ndim), *result.shape))
    return _as_jax(result)


def any_array(value: _Any) -> _builtins.bool:
    return isinstance(value, _st.Array) or isinstance(value, (list, tuple)) and _builtins.any(map(any_array, value))


def asarray(a: _Any, dtype: _Any = None, order: _Any = None, *, copy: _Any = None, **_: _Any) -> Array:
    """An array of numbers, nested lists, or another array: itself where it is one of that type.

    Parameters
        a: what becomes an array.
        dtype: the element type; None for that of the elements.
        order, copy: accepted.
    Returns
        An array.
    Example
        >>> from stride.jax import numpy as jnp
        >>> jnp.asarray([1, 2]).dtype
        dtype('int32')
    """
    if isinstance(a, _st.Array) and (dtype is None or a.dtype == _canonical(dtype)):
        return _as_jax(a)
    return array(a, dtype)


def vectorize(
    pyfunc: _Callable[..., _Any], *, excluded: _Any = frozenset(), signature: _Any = None
) -> _Callable[..., _Any]:
    """A function of single items that takes arrays, by `vmap` over the axes that broadcast.

    Parameters
        pyfunc: the function.
        excluded: numbers of arguments that are passed on as they are.
        signature: the axes of an item, such as `(n),(n)->()`; None for items without axes.
    Returns
        A function of arrays.
    Example
        >>> from stride.jax import numpy as jnp
        >>> jnp.vectorize(lambda x, y: x + y)(jnp.arange(2), jnp.arange(2)).tolist()
        [0, 2]
    """
    from stride.jax import vmap

    cores = None
    if signature is not None:
        cores = [len([axis for axis in one.strip("() ").split(",") if axis.strip()])
                 for one in signature.replace(" ", "").split("->")[0].replace("),(", ")|(").split("|")]

    @_functools.wraps(pyfunc)
    def call(*arguments: _Any) -> _Any:
        chosen = [i for i in range(len(arguments)) if i not in excluded]
        arrays = [asarray(arguments[i]) for i in chosen]
        ranks = [0] * len(arrays) if cores is None else [cores[i] for i in range(len(arrays))]
        shape = _np.broadcast_shapes(*[one.shape[: one.ndim - rank] for one, rank in zip(arrays, ranks)])

        def item(*values: _Any) -> _Any:
            given = list(arguments)
            for i, one in zip(chosen, values):
                given[i] = one
            return pyfunc(*given)

        mapped = item
        for axis in range(len(shape)):
            left = len(shape) - 1 - axis
            spread = [None if one.ndim - rank <= axis or one.shape[one.ndim - rank - 1 - axis] == 1 != shape[left]
                      else 0 for one, rank in zip(arrays, ranks)]
            mapped = vmap(mapped, in_axes=tuple(spread), axis_size=shape[left])
        squeezed = []
        for one, rank in zip(arrays, ranks):
            lead = one.shape[: one.ndim - rank]
            ones = tuple(i for i, n in enumerate(lead) if n == 1 != shape[len(shape) - len(lead) + i])
            squeezed.append(one.squeeze(ones) if ones else one)
        return mapped(*squeezed)

    return call


def _extended(name: str) -> _Callable[..., _Any]:
    """NumPy's creation functions, whose default type is JAX's."""
    function = globals()[name]

    @_functools.wraps(function)
    def call(*arguments: _Any, **options: _Any) -> _Any:
        if options.get("dtype") is not None:
            options["dtype"] = _canonical(options["dtype"])
        return function(*arguments, **options)

    return call


for _name in ("zeros", "ones", "full", "arange", "linspace", "eye", "zeros_like", "ones_like", "full_like"):
    globals()[_name] = _extended(_name)


def clip(arr: _Any = None, /, min: _Any = None, max: _Any = None, *, a: _Any = None, a_min: _Any = None,  # noqa: A002
         a_max: _Any = None) -> Array:
    """The elements, not below one bound and not above another.

    Parameters
        arr: an array.
        min, max: the bounds; None for none.
        a, a_min, a_max: older names.
    Returns
        An array.
    Example
        >>> from stride.jax import numpy as jnp
        >>> jnp.clip(jnp.arange(4), 1, 2).tolist()
        [1, 1, 2, 2]
    """
    x = asarray(a if arr is None else arr)
    return _as_jax(_st.clip(x, min if min is not None else a_min, max if max is not None else a_max))


def astype(x: _Any, dtype: _Any, **_: _Any) -> Array:
    """The elements as another type.

    Parameters
        x: an array.
        dtype: the type.
    Returns
        An array.
    Example
        >>> from stride.jax import numpy as jnp
        >>> jnp.astype(jnp.arange(2), float).dtype
        dtype('float32')
    """
    return asarray(x).astype(_canonical(dtype))


def from_dlpack(external_array: _Any, device: _Any = None, copy: _Any = None) -> Array:
    """An array with the elements of another library's.

    Parameters
        external_array: an object with `__dlpack__`.
        device, copy: accepted.
    Returns
        An array.
    Example
        >>> from stride.jax import numpy as jnp
        >>> jnp.from_dlpack(np.arange(2)).tolist()
        [0, 1]
    """
    return _as_jax(_st.from_dlpack(external_array))


def promote_types(a: _Any, b: _Any) -> _np.dtype:
    """The type that two types are computed in, by JAX's rules: an integer and a float give that float.

    Parameters
        a, b: types.
    Returns
        A dtype.
    Example
        >>> from stride.jax import numpy as jnp
        >>> jnp.promote_types("int32", "float32")
        dtype('float32')
    """
    first, second = _np.dtype(a), _np.dtype(b)
    kinds = {first.kind, second.kind}
    if kinds & {"f", "c"} and kinds & {"i", "u", "b"}:
        return first if first.kind in "fc" else second
    return _canonical(_np.promote_types(first, second))


from stride.jax.numpy import fft, linalg  # noqa: E402

__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in ("any_array",))


def __getattr__(name: str) -> _Any:
    raise AttributeError(f"stride.jax.numpy has no {name}")
