"""A function of single items, mapped over an axis of many."""

import functools
import operator
from typing import Any, Callable, List, Optional

import numpy as np

from stride import _errors, _manipulation, tree_util
from stride._array import _SCALARS, Array, array_of, node_of, wrap
from stride._batching import _Batcher
from stride._trace import (
    Cache, argument_paths, flatten, prepared, refuse_unhashable, root, session_of, trace, unflatten,
)


def vmap(
    fun: Callable, in_axes: Any = 0, out_axes: Any = 0, axis_name: Any = None, axis_size: Optional[int] = None,
    spmd_axis_name: Any = None,
) -> Callable:
    """Maps a function over an axis of its arguments, as jax.vmap: the items are computed together, not one
    after another.

        batched = stride.vmap(lambda m, v: m @ v, in_axes=(None, 0))

    The function is traced as by stride.jit and has its limits; it may itself use vmap and jit. Operations without a
    rule (kernels, searchsorted in sorted arrays that differ) raise Unimplemented. Random numbers are the same for
    every item.

    Parameters
        fun: the function; arguments and results are pytrees.
        in_axes: for each positional argument the axis to map over, or None for one that all items share, or a pytree
            of these that ends where the argument's does or earlier. One integer is for all. Leaves that are not arrays
            are shared. Keyword arguments are mapped over their first axis.
        out_axes: the same for results: where the items' axis is, or None for a result that is the same for all items.
        axis_name, spmd_axis_name: change nothing; collective operations over a named axis are not there.
        axis_size: how many items there are, which is needed where no argument is mapped.
    Returns
        A function of the same arguments with one axis more.
    Raises
        TypeError for axes that are no integers; ValueError for axes that do not fit the arguments, and for different
        numbers of items.
    Example
        >>> st.vmap(lambda p, x: p["a"] * x, in_axes=({"a": None}, 0))({"a": 2.0}, st.arange(3)).tolist()
        [0.0, 2.0, 4.0]
    """
    if not callable(fun):
        raise TypeError(f"stride.vmap takes a function, not {fun!r}")
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    if not (in_axes is None or isinstance(in_axes, tuple) or _is_axis(in_axes)):
        raise TypeError(
            f"vmap's in_axes is an integer, None, or a tuple with an entry for each positional argument, not "
            f"{in_axes!r}"
        )
    _check_axes("in_axes", in_axes)
    _check_axes("out_axes", out_axes)
    cache = Cache()

    @functools.wraps(fun)
    def call(*arguments, **kwargs):
        if isinstance(in_axes, tuple) and len(in_axes) != len(arguments):
            raise ValueError(f"in_axes has {len(in_axes)} axes for {len(arguments)} arguments")
        leaves: list = []
        structure = flatten((arguments, kwargs), leaves)
        axes = [axis for axis, slot in zip(_axes_of(in_axes, arguments, kwargs), structure.slots) if slot is Array]
        session = session_of(leaves)
        size = _num_items(fun, arguments, kwargs, leaves, axes, axis_size)
        nodes, specs = [], []
        for leaf, axis in zip(leaves, axes):
            if axis is None:
                nodes.append(prepared(leaf, session))
                specs.append((leaf.shape, np.dtype(leaf.dtype)))
                continue
            array = leaf if isinstance(leaf, Array) else wrap(node_of(leaf, session))
            axis = axis % array.ndim
            nodes.append(prepared(_manipulation.moveaxis(array, axis, 0) if axis else array, session))
            specs.append((array.shape[:axis] + array.shape[axis + 1:], array.dtype))
        mapped = tuple(axis is not None for axis in axes)
        key = root(session), structure, tuple(specs), mapped, size

        def make():
            template, result = trace(functools.partial(_with_arrays, fun), structure, tuple(specs), session)
            places = tree_util.broadcast_prefix(out_axes, result.tree, "vmap's out_axes")
            places = [place for place, slot in zip(places, result.slots) if slot is Array]
            batched = {handle for handle, one in zip(template.inputs, mapped) if one}
            return _Batcher(template, size, batched).run([place is None for place in places]), (result, places)

        try:
            template, (result, places) = cache.get(key, make)
        except TypeError:
            refuse_unhashable(fun, arguments, kwargs)
            raise
        results = template.replay(session, nodes)
        results = [_manipulation.moveaxis(one, 0, place) if place else one for one, place in zip(results, places)]
        return unflatten(result, iter(results))

    call.templates = cache  # type: ignore[attr-defined]
    return call


def _with_arrays(function: Callable, *arguments, **kwargs):
    """Numbers among the results are results of each item."""
    result = function(*arguments, **kwargs)
    return tree_util.tree_map(lambda one: array_of(one) if isinstance(one, _SCALARS) else one, result)


def _is_axis(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _check_axes(name: str, axes: Any) -> None:
    for path, one in tree_util.tree_leaves_with_path(axes):
        if not _is_axis(one):
            raise TypeError(
                f"vmap's {name} is an integer, None, or a pytree of these, not {one!r} at "
                f"{name}{tree_util.keystr(path)}"
            )


def _axes_of(in_axes: Any, arguments: tuple, kwargs: dict) -> List[Optional[int]]:
    """An axis for each leaf of the arguments."""
    found = tree_util.broadcast_prefix(in_axes, tree_util.tree_structure(arguments), "vmap's in_axes")
    return found + [0] * tree_util.tree_structure(kwargs).num_leaves


def _num_items(function, arguments, kwargs, leaves, axes, axis_size: Optional[int]) -> int:
    """How many items the mapped axes have; errors name the arguments."""
    given: List[tuple] = []  # (how many, the number of the array or None for axis_size)
    if axis_size is not None:
        given.append((operator.index(axis_size), None))
    is_known = axis_size is not None
    for i, (leaf, axis) in enumerate(zip(leaves, axes)):
        if axis is None:
            continue
        if not -leaf.ndim <= axis < leaf.ndim:
            rank = axis + 1 if axis >= 0 else -axis
            raise ValueError(
                f"vmap maps the argument {_path(function, arguments, kwargs, i)} along axis {axis}, so it needs "
                f"{rank} axes at least; its shape is {leaf.shape}"
            )
        given.append((leaf.shape[axis], i))
        is_known = True
    if not is_known:
        if not leaves:
            raise ValueError("vmap needs an argument with an array to map over, or axis_size=")
        raise ValueError("vmap needs an array to map over: every in_axes is None; give an axis, or axis_size=")
    size = given[0][0]
    if any(one != size for one, _ in given):
        texts = [
            f"{one} of axis_size" if i is None else f"{one} of {_path(function, arguments, kwargs, i)}"
            for one, i in given
        ]
        raise _errors.ShapeMismatch(
            f"the mapped axes have different numbers of items: {', '.join(texts)}", reason="SHAPE_MISMATCH"
        )
    return size


def _path(function, arguments, kwargs, index: int) -> str:
    """The text of the path to an array among the arguments."""
    found = argument_paths(function, arguments, kwargs)
    return [path for path, one in found if isinstance(one, (Array, np.ndarray))][index]
