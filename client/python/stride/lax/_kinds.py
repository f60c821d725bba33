"""Values that control flow carries: their shapes, types and weakness."""

from typing import Any

import numpy as np

from stride import _casts, _errors, tree_util
from stride._array import Array, array_of

# --- known values ---


def _is_unknown(value: Any) -> bool:
    """Whether the value of an array is known only when the traced function runs."""
    if not isinstance(value, Array):
        return False
    session = value.session
    return session._is_trace and not session._reads and value._node.cached() is None


def _not_traced(feature: str, way: str) -> _errors.Unimplemented:
    return _errors.Unimplemented(
        f"{feature} is not there in a function that is traced (by jit or vmap): a program has no loops. {way}",
        reason="NOT_IMPLEMENTED",
        metadata={"feature": feature},
    )


def _check_callable(where: str, **functions: Any) -> None:
    for name, one in functions.items():
        if not callable(one):
            raise TypeError(f"{where}: {name} is a function, not {one!r}")


# --- branches ---

_UNSET: Any = object()


class _Kind:
    """Stands for an array of a branch's results."""

    def __init__(self, shape: tuple, dtype: np.dtype):
        self.shape, self.dtype = shape, dtype


# --- kinds of values ---


def _is_value(leaf: Any) -> bool:
    return isinstance(leaf, (Array, np.ndarray, np.generic, bool, int, float, complex))


def _is_weak(leaf: Any) -> bool:
    """Whether a number takes the type of the other operand."""
    return isinstance(leaf, (int, float, complex)) and not isinstance(leaf, (bool, np.generic))


def _shape(leaf: Any) -> tuple:
    return getattr(leaf, "shape", ())


def _weak_kind(leaf: Any) -> str:
    return "i" if isinstance(leaf, int) else "f" if isinstance(leaf, float) else "c"


def _kind_text(leaf: Any) -> str:
    if _is_weak(leaf):
        return f"a number ({type(leaf).__name__})"
    array = leaf if isinstance(leaf, (Array, np.ndarray, _Kind)) else np.asarray(leaf)
    return f"{array.dtype}[{','.join([str(n) for n in array.shape])}]"


def _check_alike(what: str, one: Any, other: Any) -> None:
    """TypeError unless both have one shape and type; a number fits an array of its kind."""
    shapes = [_shape(leaf) for leaf in (one, other)]
    if _is_weak(one) and _is_weak(other):
        is_alike = _weak_kind(one) == _weak_kind(other)
    elif _is_weak(one) or _is_weak(other):
        number, array = (one, other) if _is_weak(one) else (other, one)
        kind = np.dtype(array.dtype if hasattr(array, "dtype") else type(array)).kind
        is_alike = (_weak_kind(number) == ("i" if kind in "iu" else kind)) and shapes[0] == shapes[1]
    else:
        types = [np.dtype(leaf.dtype if hasattr(leaf, "dtype") else type(leaf)) for leaf in (one, other)]
        is_alike = types[0] == types[1] and shapes[0] == shapes[1]
    if not is_alike:
        raise TypeError(f"{what} must have equal shapes and types, not {_kind_text(one)} and {_kind_text(other)}")


def _results(tree: Any) -> Any:
    """Numbers as arrays, and views as separate arrays."""
    return tree_util.tree_map(_result, tree)


def _result(leaf: Any) -> Any:
    if isinstance(leaf, Index):
        leaf = int(leaf)
    if not _is_value(leaf):
        return leaf
    array = array_of(leaf)
    return _casts.copy(array) if array._node.buffer is not None else array


# --- loops ---


class Index(int):
    """The number of a step: a Python integer. Its arithmetic gives such integers, its comparisons bools for `~`."""

    __slots__ = ()
    shape: tuple = ()
    ndim = 0
    size = 1

    @property
    def dtype(self) -> np.dtype:
        """The type of an array of it."""
        return np.dtype(np.int64)

    def astype(self, dtype: Any) -> Any:
        """An array of it."""
        return array_of(int(self)).astype(dtype)

    def item(self) -> int:
        """The integer."""
        return int(self)

    __hash__ = int.__hash__

    def __repr__(self) -> str:
        return int.__repr__(self)


def _closed(name: str) -> None:
    function = getattr(int, name)

    def method(self, *others):
        result = function(self, *others)
        if result is NotImplemented:
            return result
        if type(result) is bool:
            return np.bool_(result)
        return Index(result) if type(result) is int else result

    method.__name__ = name
    setattr(Index, name, method)


for _name in ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift", "pow"):
    _closed(f"__{_name}__")
    _closed(f"__r{_name}__")
for _name in ("neg", "pos", "abs", "invert", "eq", "ne", "lt", "le", "gt", "ge"):
    _closed(f"__{_name}__")
