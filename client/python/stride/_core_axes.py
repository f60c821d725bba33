"""`axes=`, `axis=` and `keepdims=` of products of matrices and vectors, by NumPy's rules of generalised ufuncs."""

import operator
from typing import Any, Callable, Tuple

from stride import _arguments, _dtypes, _inference, _manipulation
from stride._array import Array

# How many axes the inputs and the result of a product have for themselves. Matmul takes vectors for matrices as well.
_CORES = {"matmul": (2, 2, 2), "vecdot": (1, 1, 0), "matvec": (2, 1, 1), "vecmat": (1, 2, 1)}


def check(name: str, order: Any, dtype: Any, signature: Any, axis: Any, keepdims: Any) -> Any:
    """The type to compute in, of the keywords that a product without `axis=` has."""
    if order != "K":
        _arguments.check_order(order)
    if axis is not None:
        raise TypeError(f"{name} does not support axis=: its inputs or result have several axes; give axes=")
    if keepdims:
        raise TypeError(f"{name} does not support keepdims=: its result has axes of its own")
    return computing_type(name, dtype, signature)


def computing_type(name: str, dtype: Any, signature: Any) -> Any:
    if signature is None:
        return dtype
    if dtype is not None:
        raise TypeError("signature= names the types itself: leave dtype= out")
    if isinstance(signature, str) and "->" in signature:
        inputs, _, outputs = signature.partition("->")
        if (len(inputs), len(outputs)) != (2, 1):
            raise ValueError(f"signature= of {name} names 2 inputs and 1 result: {signature!r}")
        signature = tuple(inputs + outputs)
    given = signature if isinstance(signature, tuple) else (signature,)
    types = {_dtypes.dtype_of(one) for one in given if one is not None}
    if len(types) > 1:
        raise _arguments.unimplemented(f"signature= of {name} with several types", "convert the inputs, or give dtype=")
    return types.pop() if types else None


def moved(name: str, x1: Array, x2: Array, axes: Any) -> Tuple[Array, Array, Callable[[Array], Array]]:
    """The inputs with their own axes last, and what puts those of the result into their places."""
    if not isinstance(axes, list):
        raise TypeError("axes should be a list.")
    cores = _CORES[name]
    if len(axes) == 2 and not cores[2]:
        axes = [*axes, ()]
    if len(axes) != 3:
        raise ValueError(f"axes= of {name} is a list with an entry for each input and the result, not of {len(axes)}")
    missing = [name == "matmul" and one.ndim == 1 for one in (x1, x2)]
    first, second = (
        _last(name, one, entry, 1 if alone else core)
        for one, entry, core, alone in zip((x1, x2), axes, cores, missing)
    )
    count = cores[2] - sum(missing)
    return first, second, lambda result: _placed(name, result, axes[2], count)


def _entry(name: str, entry: Any, count: int, rank: int) -> Tuple[int, ...]:
    if not isinstance(entry, tuple):
        entry = (operator.index(entry),)
    if len(entry) != count:
        raise ValueError(f"an entry of axes= of {name} has {count} axes here, not {len(entry)}")
    places = tuple(_inference.normal_axis(one, rank) for one in entry)
    if len(set(places)) != count:
        raise ValueError(f"an entry of axes= of {name} names an axis twice: {entry}")
    return places


def _last(name: str, one: Array, entry: Any, count: int) -> Array:
    if one.ndim < count:
        raise ValueError(f"{name}: an array of {one.ndim} axes lacks the {count} that axes= names")
    return _manipulation.moveaxis(one, _entry(name, entry, count, one.ndim), tuple(range(-count, 0)))


def _placed(name: str, result: Array, entry: Any, count: int) -> Array:
    places = _entry(name, entry, count, result.ndim)
    return _manipulation.moveaxis(result, tuple(range(-count, 0)), places) if count else result


def kept(result: Array, axis: int) -> Array:
    """The result of a product along an axis, with the axis of one element in its place."""
    return _manipulation.expand_dims(result, axis=axis)
