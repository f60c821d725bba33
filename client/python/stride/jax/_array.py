"""JAX's arrays: Stride's, without writes in place, in 32 bits unless `jax_enable_x64` is set, and with an index out of
range that is the nearest element."""

import functools
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from stride import _conversion, _errors, tree_util
from stride import _array as _base
from stride._tape import alias
from stride.jax._config import canonical

if TYPE_CHECKING:
    from stride._at import At

_IN_PLACE = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "matmul")
_OPERATORS = (
    *(f"__{one}__" for one in _IN_PLACE),
    *(f"__r{one}__" for one in _IN_PLACE),
    *(f"__{one}__" for one in ("lt", "le", "gt", "ge", "eq", "ne", "pos", "neg", "abs", "invert", "divmod", "rdivmod")),
    "__round__", "__copy__", "__deepcopy__",
)  # fmt: skip
_METHODS = (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "block_until_ready", "clip", "compress",
    "conj", "conjugate", "copy", "cumprod", "cumsum", "diagonal", "dot", "flatten", "max", "mean", "min", "nonzero",
    "prod", "ptp", "ravel", "repeat", "reshape", "round", "searchsorted", "sort", "squeeze", "std", "sum", "swapaxes",
    "take", "to_device", "trace", "transpose", "var", "view",
)  # fmt: skip
_VIEWS = ("T", "mT", "real", "imag")


class Array(_base.Array):
    """An array of JAX's kind: immutable, and of 32-bit elements unless `jax_enable_x64` is set.

    Example
        >>> from stride import jax
        >>> jax.numpy.arange(3) / 2
        Array([0. , 0.5, 1. ], dtype=float32)
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if not _base.is_readable(self):
            return f"Tracer({self.dtype}[{','.join(map(str, self.shape))}])"
        text = _base._text(self, ", ", "Array(")
        return f"Array({text}, dtype={self.dtype})"

    def __getitem__(self, key: Any) -> "Array":
        if _is_plain(key):
            try:
                return as_jax(plain(self)[key])
            except IndexError:
                if not _within_rank(self, key):
                    raise
                return as_jax(plain(self).at[key].get())
        keys = key if isinstance(key, tuple) else (key,)
        for one in keys:
            if isinstance(one, list):
                raise TypeError("Using a non-tuple sequence for multidimensional indexing is not allowed; use "
                                "`arr[array(seq)]` instead of `arr[seq]`")
        if any(getattr(one, "dtype", None) == np.dtype(bool) for one in keys):
            return as_jax(plain(self)[plain(key)])
        return as_jax(plain(self).at[plain(key)].get())

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError(
            "JAX arrays are immutable and do not support in-place item assignment. Instead of x[idx] = y, use "
            "x = x.at[idx].set(y) or another .at[] method."
        )

    def __iter__(self) -> Any:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(self.shape[0])])

    @property
    def at(self) -> "At":
        """Updates that make a new array: `x.at[i].set(v)`."""
        return _At(self)  # type: ignore[return-value]

    @property
    def weak_type(self) -> bool:
        """False: types of numbers are not kept."""
        return False

    @property
    def sharding(self) -> Any:
        """The single device that the array is used on, or its mesh and partition."""
        from stride.jax import sharding

        return sharding.sharding_of(self)

    def devices(self) -> set:
        """The set of devices that it is on."""
        return self.sharding.device_set

    def addressable_data(self, index: int) -> "Array":
        """The array itself: one client reads all of it."""
        return self


class _At:
    def __init__(self, array: Array):
        self._array = array

    def __getitem__(self, key: Any) -> "_AtIndex":
        return _AtIndex(plain(self._array).at[plain(key)])


class _AtIndex:
    """The updates of `x.at[i]`; values take the array's type."""

    def __init__(self, inner: Any):
        self._inner = inner

    def __getattr__(self, name: str) -> Callable:
        method = getattr(self._inner, {"mul": "multiply", "sub": "subtract"}.get(name, name))

        def call(*arguments: Any, **options: Any) -> Any:
            return as_jax(method(*plain(arguments), **options))

        return call


def plain(value: Any) -> Any:
    """The arrays of a tuple or list as Stride's own, which its functions take."""
    if isinstance(value, Array):
        return alias(value._node)
    if type(value) in (tuple, list):
        return type(value)([plain(one) for one in value])
    return value


def _is_plain(key: Any) -> bool:
    """An index without arrays and lists."""
    keys = key if isinstance(key, tuple) else (key,)
    return all(one is None or one is Ellipsis or isinstance(one, (int, np.integer, slice)) and not isinstance(one, bool)
               or type(one).__name__ == "Index" for one in keys)


def _within_rank(array: Any, key: Any) -> bool:
    keys = key if isinstance(key, tuple) else (key,)
    return sum(one is not None and one is not Ellipsis for one in keys) <= array.ndim


def as_jax(value: Any) -> Any:
    """The arrays of a pytree as arrays of this kind."""
    if isinstance(value, _base.Array):
        return _one(value)
    if isinstance(value, (tuple, list, dict)):
        return tree_util.tree_map(lambda one: _one(one) if isinstance(one, _base.Array) else one, value)
    if value is None or isinstance(value, (int, float, complex, str, np.generic)):
        return value
    return tree_util.tree_map(lambda one: _one(one) if isinstance(one, _base.Array) else one, value)


def _one(array: _base.Array) -> Array:
    dtype = canonical(array.dtype) if array.dtype.itemsize >= 8 else array.dtype
    if dtype != array.dtype:
        array = _base.Array.astype(array, dtype)
    if type(array) is not Array:
        if type(array) is not _base.Array:  # a single element on the host, or one that another array holds
            array = alias(array._node)
        array.__class__ = Array  # both have the same slots
    return array  # type: ignore[return-value]


def given(value: Any) -> Any:
    """An argument of Stride's functions: NumPy's arrays become arrays, all else stays."""
    if isinstance(value, _base.Array):
        return plain(_one(value))
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return _conversion.asarray(value.astype(canonical(value.dtype)))
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return type(value)([given(one) for one in value])
    return value


def inside(function: Callable) -> Callable:
    """A function that the service calls with Stride's arrays, called with arrays of this kind."""

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        return function(*as_jax(arguments), **as_jax(options))

    return call


class IncompatibleShapes(_errors.ShapeMismatch, TypeError):
    """Shapes that do not fit, which JAX reports as TypeError or ValueError."""


def as_type_error(error: _errors.ShapeMismatch) -> _errors.ShapeMismatch:
    """The error, which is then a TypeError too."""
    error.__class__ = IncompatibleShapes
    return error


def _operator(name: str) -> Callable:
    base = getattr(_base.Array, name)

    @functools.wraps(base)
    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        keywords = {key: given(one) for key, one in options.items()}
        try:
            result = base(plain(self), *[given(one) for one in arguments], **keywords)
        except _errors.ShapeMismatch as error:
            raise as_type_error(error)
        return result if result is NotImplemented else as_jax(result)

    return method


def _view(name: str) -> property:
    base = getattr(_base.Array, name)

    def get(self: Any) -> Any:
        return as_jax(base.fget(plain(self)))

    return property(get, doc=base.__doc__)


for _name in (*_OPERATORS, *_METHODS):
    if hasattr(_base.Array, _name):
        setattr(Array, _name, _operator(_name))
for _name in _VIEWS:
    setattr(Array, _name, _view(_name))


def _not_in_place(self: Any, other: Any) -> Any:
    return NotImplemented


for _name in _IN_PLACE:
    setattr(Array, f"__i{_name}__", _not_in_place)
