"""Branches: one of several functions, which an index chooses."""

from typing import Any, Callable, List, Optional, Sequence

import numpy as np

from stride import _elementwise, _graph, _session, tree_util
from stride._array import Array, array_of, node_of
from stride._trace import flatten, prepared, trace, unflatten
from stride.lax import _bodies
from stride.lax._kinds import _UNSET, _Kind, _check_alike, _check_callable, _is_unknown, _is_value, _results

__all__ = ["cond", "switch"]


def cond(
    pred: Any, true_fun: Callable, false_fun: Callable, *operands: Any, operand: Any = _UNSET, linear: Any = None
) -> Any:
    """`true_fun(*operands)` where `pred` is true, else `false_fun(*operands)`.

    Outside `jit` and `vmap` the predicate is read and one branch is called. Within `jit` one of the two runs; short
    ones that cannot fail are both computed, and the result is selected. Within `vmap`, where the predicate differs
    between the items, that is so for all branches. Branches cannot write into arrays from outside there.

    Parameters
        pred: a number or an array without axes.
        true_fun, false_fun: functions of the operands, with results of the same structure, shapes and types.
        operands: pytrees; `operand=` is one.
        linear: changes nothing.
    Returns
        The result of a branch.
    Raises
        TypeError for a predicate with axes, and for branches whose results differ in kind.
    Example
        >>> stride.lax.cond(st.array(3) > 2, lambda x: x + 1, lambda x: x, st.array(5)).tolist()
        6
    """
    _check_callable("lax.cond", true_fun=true_fun, false_fun=false_fun)
    if operand is not _UNSET:
        operands = (operand,)
    pred = _scalar(pred, "lax.cond: the predicate", "biufc")
    if not _is_unknown(pred):
        return _results((true_fun if bool(pred) else false_fun)(*operands))
    is_true = pred if pred.dtype.kind == "b" else pred != 0
    return _branched("lax.cond", is_true, (false_fun, true_fun), ("false_fun", "true_fun"), operands)


def switch(index: Any, branches: Sequence[Callable], *operands: Any, operand: Any = _UNSET) -> Any:
    """The branch numbered `index` of the operands; an index out of range is the nearest one.

    Outside `jit` and `vmap` the index is read and one branch is called; else it is as with `cond`.

    Parameters
        index: an integer, or an array of one without axes.
        branches: functions of the operands, with results of the same structure, shapes and types.
        operands: pytrees.
        operand: one pytree, in place of operands.
    Returns
        The result of a branch.
    Raises
        TypeError for an index that is no integer without axes, and for branches whose results differ in kind;
        ValueError for no branches.
    Example
        >>> stride.lax.switch(1, [lambda x: x, lambda x: -x], st.array(5)).tolist()
        -5
    """
    branches = list(branches)
    if not branches:
        raise ValueError("lax.switch needs at least one branch")
    for i, one in enumerate(branches):
        _check_callable("lax.switch", **{f"branches[{i}]": one})
    if operand is not _UNSET:
        operands = (operand,)
    index = _scalar(index, "lax.switch: the index", "iu")
    if len(branches) == 1:
        return _results(branches[0](*operands))
    if not _is_unknown(index):
        return _results(branches[min(max(int(index), 0), len(branches) - 1)](*operands))
    names = [f"branches[{i}]" for i in range(len(branches))]
    return _branched("lax.switch", index, branches, names, operands)


def _scalar(value: Any, what: str, kinds: str) -> Any:
    """A number or an array without axes, of a required kind."""
    if isinstance(value, (bool, int, float, complex, np.generic)):
        dtype, shape = np.asarray(value).dtype, np.shape(value)
    elif isinstance(value, (Array, np.ndarray)):
        dtype, shape = value.dtype, value.shape
    else:
        raise TypeError(f"{what} is a number or an array without axes, not {value!r}")
    if shape:
        raise TypeError(f"{what} is a number or an array without axes, not an array of shape {shape}")
    if dtype.kind not in kinds:
        raise TypeError(f"{what} is an integer, not {dtype}" if kinds == "iu" else f"{what} is a number, not {dtype}")
    return value


# Branches of so few operations of these kinds, which take little time and cannot fail, are all computed.
_SMALL = 32
_HARMLESS = {"accumulation", "copy", "creation", "expression", "matmul", "outer", "reduction", "ufunc", "view"}


def _branched(where: str, index: Array, functions: Sequence[Callable], names: Sequence[str], operands: tuple) -> Any:
    """The results of the branch that `index` chooses, as part of the function that is traced: all are computed and one
    is selected where that is little work, else one alone runs. `index` is a bool or within the branches' number."""
    session = _session.current_session()
    leaves: list = []
    structure = flatten((operands, {}), leaves)
    specs = tuple([(one.shape, np.dtype(one.dtype)) for one in leaves])
    # They are traced apart, so that writes are seen.
    with _graph.isolated(session):
        traces = [trace(one, structure, specs, session) for one in functions]
    kinds = [one[0].WhichOneof("kind") for template, _ in traces for one in template.commands if one[0] is not None]
    # Gradients of what is selected would have the other branch's NaN and infinities.
    if len(kinds) > _SMALL or not _HARMLESS.issuperset(kinds) or getattr(session, "unrolls", False):
        return _chosen(where, index, functions, names, session, structure, leaves, traces)
    outputs = [
        unflatten(result, iter(template.replay(session, [prepared(one, session) for one in leaves])))
        for template, result in traces
    ]
    if index.dtype.kind == "b":
        return _selected(index, outputs[1], outputs[0], names=(names[1], names[0]), where=where)
    result = outputs[-1]
    for i in range(len(outputs) - 2, -1, -1):
        result = _selected(index <= i, outputs[i], result, names=names[i : i + 2], where=where)
    return result


def _chosen(where: str, index: Array, functions, names, session, structure, leaves: list, traces: list) -> Any:
    """One operation of the service, which runs one of the branches."""
    results = []
    for template, result in traces:
        kinds = iter([_Kind(one.shape, one.dtype) for one in template.outputs])
        results.append([next(kinds) if slot is Array else slot.value for slot in result.slots])
    tree = traces[0][1].tree
    for name, (_, other) in zip(names[1:], traces[1:]):
        if other.tree != tree:
            raise TypeError(
                f"{where}: the results of {names[0]} and {name} must have the same structure, not {tree} and "
                f"{other.tree}"
            )
    numbered = tree_util.tree_unflatten(tree, range(tree.num_leaves))
    paths = {leaf: tree_util.keystr(path) for path, leaf in tree_util.tree_leaves_with_path(numbered)}
    types: List[Optional[np.dtype]] = []  # None: what is no array
    for i, alike in enumerate(zip(*results)):
        first = next((one for one in alike if isinstance(one, _Kind)), alike[0])
        for name, one in zip(names, alike):
            text = f"{where}: the results of {names[0]} and {name} at {paths[i] or 'the result'}"
            if _is_value(first) or isinstance(first, _Kind):
                if not (_is_value(one) or isinstance(one, _Kind)):
                    raise TypeError(f"{text} are no arrays and differ: {first!r} and {one!r}")
                _check_alike(text, first, one)
            elif type(one) is not type(first) or one != first:
                raise TypeError(f"{text} are no arrays and differ: {first!r} and {one!r}")
        is_array = _is_value(first) or isinstance(first, _Kind)
        dtype = first.dtype if hasattr(first, "dtype") else np.asarray(first).dtype if is_array else None
        types.append(np.dtype(dtype) if is_array else None)

    def body_of(function: Callable) -> Any:
        def flat(*arrays):
            arguments, kwargs = unflatten(structure, iter(arrays))
            found = tree_util.tree_leaves(function(*arguments, **kwargs))
            return [
                one if isinstance(one, Array) else array_of(np.asarray(one, dtype))
                for one, dtype in zip(found, types)
                if dtype is not None
            ]

        specs = [(one.shape, np.dtype(one.dtype)) for one in leaves]
        return _bodies.traced(where, flat, specs, session)

    inputs = [prepared(one, session) for one in leaves]
    if not any(types):  # nothing is computed
        return tree_util.tree_unflatten(tree, results[0])
    made = iter(_bodies.branch(session, [body_of(one) for one in functions], node_of(index, session), inputs))
    return tree_util.tree_unflatten(
        tree, [results[0][i] if dtype is None else next(made) for i, dtype in enumerate(types)]
    )


def _selected(is_first: Array, first: Any, second: Any, names: tuple, where: str) -> Any:
    """Leaf by leaf, of results of two branches that must be alike."""
    flat, structure = tree_util.tree_flatten_with_path(first)
    others, other_structure = tree_util.tree_flatten(second)
    if structure != other_structure:
        raise TypeError(
            f"{where}: the results of {names[0]} and {names[1]} must have the same structure, not {structure} and "
            f"{other_structure}"
        )
    leaves = []
    for (path, one), other in zip(flat, others):
        text = f"{where}: the results of {names[0]} and {names[1]} at {tree_util.keystr(path) or 'the result'}"
        if not (_is_value(one) and _is_value(other)):
            if type(one) is not type(other) or one != other:
                raise TypeError(f"{text} are no arrays and differ: {one!r} and {other!r}")
            leaves.append(one)
            continue
        _check_alike(text, one, other)
        leaves.append(_elementwise.where(is_first, one, other))
    return tree_util.tree_unflatten(structure, leaves)
