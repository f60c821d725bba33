"""Scans: a function over the items of an axis, in turn or as a tree."""

import operator
from typing import Any, Callable, List, Optional

import numpy as np

from stride import _assembly, _manipulation, _session, tree_util
from stride._array import Array, array_of, wrap
from stride._graph import Node, defer
from stride._indexing import _view_of
from stride._trace import flatten, trace, unflatten
from stride._views import View
from stride.lax import _bodies
from stride.lax._control import _HOST_BYTES, _Carry, _Progress, _looped, _pair, _typed
from stride.lax._kinds import Index, _check_callable, _is_value, _is_weak, _kind_text, _result, _results

__all__ = ["associative_scan", "map", "scan"]


def scan(
    f: Callable,
    init: Any,
    xs: Any = None,
    length: Optional[int] = None,
    reverse: bool = False,
    unroll: Any = 1,
    _split_transpose: bool = False,
) -> Any:
    """`carry, y = f(carry, x)` for each x along the first axis of `xs`: the last carry, and the ys along a new one.

    Outside `jit` and `vmap` the function is called once per step. Within `jit` a loop of more than a few operations is
    one operation of the service, whose body is traced once; a short one is recorded step by step.

    Parameters
        f: takes a carry and an element of xs, and returns a carry of the same structure, shapes and types, and a y.
        init: the first carry, a pytree of arrays and numbers.
        xs: a pytree of arrays of one length, or None.
        length: how many steps, where there are no xs.
        reverse: whether to go from the last x to the first.
        unroll, _split_transpose: changes nothing.
    Returns
        The last carry, and a pytree of the ys.
    Raises
        ValueError for lengths that differ or are missing; TypeError for a function that returns no pair, and for a
        carry that changes its kind.
    Example
        >>> carry, ys = stride.lax.scan(lambda c, x: (c + x, c * x), st.array(0), st.arange(1, 4))
        >>> carry.tolist(), ys.tolist()
        (6, [0, 2, 9])
    """
    _check_callable("lax.scan", f=f)
    sources, structure = _sources(xs)
    num_steps = _num_steps(sources, length)
    carry, progress = _Carry("lax.scan", init), _Progress("lax.scan", num_steps)
    if not num_steps:
        return _results(carry.tree), _no_results(f, carry, sources, structure)
    session = _bodies.tracing()
    if session is not None and not session.unrolls and num_steps > 1:
        looped = _looped(
            "lax.scan",
            session,
            lambda tree, *items: f(tree, tree_util.tree_unflatten(structure, items)),
            carry,
            num_steps,
            sources,
            reverse,
        )
        if looped is not None:
            return looped
    ys = _Ys(reverse)

    def step(i: int) -> Any:
        pair = f(carry.tree, tree_util.tree_unflatten(structure, [_item(one, i) for one in sources]))
        new, y = _pair(pair)
        carry.step(new)
        return y

    places = range(num_steps - 1, -1, -1) if reverse else range(num_steps)
    before = carry.leaves
    if any(_is_weak(one) for one in before):
        step(places[0])
        # Numbers take the type that the body gives them, from the first step on.
        carry.leaves = [_typed(*one) for one in zip(before, carry.leaves)]
    for i in places:
        y = step(i)
        ys.add(y)
        if progress.step(carry):
            progress.record(ys.joined())
    return _results(carry.tree), ys.tree()


def _sources(xs: Any) -> tuple:
    found, structure = tree_util.tree_flatten_with_path(xs)
    for path, one in found:
        if not isinstance(one, (Array, np.ndarray)) or not one.ndim:
            raise ValueError(
                f"lax.scan: xs{tree_util.keystr(path)} has no axis to scan over: it is "
                f"{_kind_text(one) if _is_value(one) else type(one).__name__}"
            )
    sources = [array_of(one) for _, one in found]
    for one in sources:
        if one.dtype.kind in "biu" and one.nbytes <= _HOST_BYTES and not one.session._is_trace:
            one._read()
    return sources, structure


def _num_steps(sources: List[Array], length: Any) -> int:
    lengths = sorted({one.shape[0] for one in sources})
    if len(lengths) > 1:
        raise ValueError(
            f"lax.scan: the first axes of xs have different lengths: {', '.join([str(n) for n in lengths])}"
        )
    if length is None:
        if not lengths:
            raise ValueError("lax.scan needs xs with an array, or length=")
        return lengths[0]
    length = operator.index(length)
    if lengths and lengths[0] != length:
        raise ValueError(f"lax.scan: length={length} differs from the length of xs, {lengths[0]}")
    return max(0, length)


def _item(source: Array, i: int) -> Array:
    """A view of an element, whatever the number of axes."""
    return wrap(_view_of(source._node, [i]))


class _Ys:
    """The results of the steps, put together in groups."""

    def __init__(self, reverse: bool):
        self._reverse = reverse
        self._structure: Optional[tree_util.PyTreeDef] = None
        self._group: List[list] = []  # one list for each leaf
        self._groups: List[List[Array]] = []

    def add(self, y: Any) -> None:
        found, structure = tree_util.tree_flatten_with_path(y)
        if self._structure is None:
            self._structure = structure
            self._group = [[] for _ in found]
            self._groups = [[] for _ in found]
        elif structure != self._structure:
            raise TypeError(f"lax.scan: y has the structure {self._structure} in one step and {structure} in another")
        for group, (path, one) in zip(self._group, found):
            if not _is_value(one):
                raise TypeError(
                    f"lax.scan: y{tree_util.keystr(path)} is of type {type(one).__name__}, not an array or a number"
                )
            group.append(array_of(int(one) if isinstance(one, Index) else one))

    def joined(self) -> List[Array]:
        """The steps since the last time, as one array for each leaf."""
        made = []
        for group, groups in zip(self._group, self._groups):
            if group:
                made.append(_stacked(group[::-1] if self._reverse else group))
                groups.append(made[-1])
                group.clear()
        return made

    def tree(self) -> Any:
        self.joined()
        assert self._structure is not None
        return tree_util.tree_unflatten(
            self._structure,
            [
                one[0] if len(one) == 1 else _assembly.concat(one[::-1] if self._reverse else one)
                for one in self._groups
            ],
        )


def _stacked(arrays: List[Array]) -> Array:
    """Arrays of one shape along a new first axis: a view and a copy for each."""
    first = arrays[0]
    for one in arrays:
        if (one.shape, one.dtype) != (first.shape, first.dtype):
            raise TypeError(f"lax.scan: y is {_kind_text(first)} in one step and {_kind_text(one)} in another")
    if all(one._node.cached() is not None and not one._node.handle for one in arrays):
        return array_of(np.stack([one._read() for one in arrays]))

    def build(flush, node: Node, operands):
        _assembly.make_empty(flush, node)
        for i, operand in enumerate(operands):
            _assembly.copy_into(flush, node, operand, View((("index", 0, i),)))

    nodes = tuple(one._node for one in arrays)
    return wrap(defer(first.session, (len(arrays), *first.shape), first.dtype, build, nodes))


def _no_results(f: Callable, carry: _Carry, sources: List[Array], structure: Any) -> Any:
    """The ys of no steps: the function is traced for their shapes."""
    from stride import _creation

    session = _session.current_session()
    item = tree_util.tree_unflatten(structure, [_creation.zeros(one.shape[1:], one.dtype) for one in sources])
    leaves: list = []
    arguments = flatten(((carry.tree, item), {}), leaves)
    specs = tuple([(one.shape, np.dtype(one.dtype)) for one in leaves])
    template, result = trace(f, arguments, specs, session)
    kinds = [_creation.zeros((0, *one.shape), one.dtype) for one in template.outputs]
    y = _pair(unflatten(result, iter(kinds)))[1]
    return tree_util.tree_map(
        lambda one: one if isinstance(one, Array) else _creation.zeros((0,), np.asarray(one).dtype), y
    )


def map(f: Callable, xs: Any, *, batch_size: Optional[int] = None) -> Any:  # noqa: A001
    """The results of `f` for each element along the first axis of `xs`, put together; `batch_size` of them at a time
    by `vmap`.

    Parameters
        f: takes an element of xs.
        xs: a pytree of arrays of one length.
        batch_size: how many elements one call of vmap takes; None for calls of one.
    Returns
        A pytree of the results along a new first axis.
    Example
        >>> stride.lax.map(lambda x: x * x, st.arange(3)).tolist()
        [0, 1, 4]
    """
    from stride._vmap import vmap

    _check_callable("lax.map", f=f)
    if batch_size is None:
        return scan(lambda _, x: (None, f(x)), None, xs)[1]
    if batch_size < 1:
        raise ValueError(f"lax.map: batch_size is at least 1, not {batch_size}")
    sources, structure = _sources(xs)
    num_steps = _num_steps(sources, None)
    if not num_steps:
        return scan(lambda _, x: (None, f(x)), None, xs)[1]
    batched = vmap(f)
    parts = []
    for begin in range(0, num_steps, batch_size):
        part = [one[begin : begin + batch_size] for one in sources]
        parts.append(batched(tree_util.tree_unflatten(structure, part)))
    return tree_util.tree_map(lambda *ones: _assembly.concat(list(ones)), *parts)


def associative_scan(fn: Callable, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The elements along an axis combined with all before them, by an associative function of arrays: log(n) steps.

    Parameters
        fn: takes two pytrees of arrays with elements along the axis, and combines them one by one.
        elems: a pytree of arrays of one length along the axis.
        reverse: whether each is combined with all that follow it.
        axis: the axis.
    Returns
        A pytree of the same structure and shapes.
    Raises
        ValueError for different lengths.
    Example
        >>> stride.lax.associative_scan(lambda a, b: a + b, st.arange(5)).tolist()
        [0, 1, 3, 6, 10]
    """
    _check_callable("lax.associative_scan", fn=fn)
    leaves, structure = tree_util.tree_flatten(elems)
    arrays = [array_of(one) for one in leaves]
    arrays = [_manipulation.moveaxis(one, axis, 0) for one in arrays]
    lengths = sorted({one.shape[0] for one in arrays})
    if len(lengths) != 1:
        raise ValueError(f"lax.associative_scan: the arrays have different lengths along the axis: {lengths}")

    def combined(left: List[Array], right: List[Array]) -> List[Array]:
        pair = [
            tree_util.tree_unflatten(structure, [_manipulation.moveaxis(one, 0, axis) for one in part])
            for part in (left, right)
        ]
        flat = structure.flatten_up_to(fn(*pair))
        return [_manipulation.moveaxis(array_of(one), axis, 0) for one in flat]

    def scanned(parts: List[Array]) -> List[Array]:
        count = parts[0].shape[0]
        if count < 2:
            return parts
        odd = scanned(combined([one[:-1:2] for one in parts], [one[1::2] for one in parts]))
        if count == 2:
            even = [one[:1] for one in parts]
        else:
            before = odd if count % 2 else [one[:-1] for one in odd]
            even = combined(before, [one[2::2] for one in parts])
            even = [_assembly.concat([first[:1], rest]) for first, rest in zip(parts, even)]
        return [_interleaved(*both) for both in zip(even, odd)]

    arrays = [one[::-1] for one in arrays] if reverse else arrays
    arrays = scanned(arrays)
    arrays = [one[::-1] for one in arrays] if reverse else arrays
    return tree_util.tree_unflatten(structure, [_result(_manipulation.moveaxis(one, 0, axis)) for one in arrays])


def _interleaved(even: Array, odd: Array) -> Array:
    from stride import _creation

    result = _creation.zeros_like(even, shape=(even.shape[0] + odd.shape[0], *even.shape[1:]))
    result[::2] = even
    result[1::2] = odd
    return result
