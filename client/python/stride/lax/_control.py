"""Branches and loops.

Outside `jit` and `vmap` a branch or a loop is Python's own: a condition is read, and steps are recorded one after
another. While a function is traced both become operations of the service (`_bodies.py`), or, where they are short, what
they consist of: branches are all computed and one is selected, steps are recorded one by one."""

import operator
from typing import Any, Callable, List, Optional, Sequence

import numpy as np

from stride import _assembly, _casts, _elementwise, _errors, _graph, _manipulation, _session, tree_util
from stride._array import Array, array_of, node_of, wrap
from stride._graph import Node, View, defer
from stride._indexing import _view_of
from stride._trace import flatten, prepared, trace, unflatten
from stride.lax import _bodies

__all__ = ["associative_scan", "cond", "fori_loop", "map", "scan", "switch", "while_loop"]

# Operations that a traced function may have with a loop in it: 40 programs of the service.
MAX_OPERATIONS = 20_000
# A traced loop of known length is recorded step by step up to this many operations.
_SHORT = 256
# Number of steps after which a traced loop's values are recorded and its results joined.
_STEPS = 32
# Integers to loop over are read first up to this size, so that they are indices that the host knows.
_HOST_BYTES = 64 << 10


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


class _Kind:
    """Stands for an array of a branch's results."""

    def __init__(self, shape: tuple, dtype: np.dtype):
        self.shape, self.dtype = shape, dtype


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


class _Carry:
    """The values that a loop hands from step to step: of one structure, shape and type from the first to the last."""

    def __init__(self, where: str, init: Any, first: int = 0):
        self._where = where
        self._first = first  # leaves that are the loop's own, which paths in errors leave out
        self._kinds: Optional["_LoopKinds"] = None  # set for a traced loop
        leaves, self._structure = tree_util.tree_flatten(init)
        for path, leaf in tree_util.tree_leaves_with_path(init):
            if not _is_value(leaf):
                raise TypeError(
                    f"{where}: the initial value{tree_util.keystr(path)} is of type {type(leaf).__name__}, not an "
                    f"array or a number"
                )
        self.leaves = [array_of(one) if isinstance(one, np.ndarray) else one for one in leaves]

    @property
    def tree(self) -> Any:
        return tree_util.tree_unflatten(self._structure, self.leaves)

    def of(self, leaves: Sequence[Any], kinds: "_LoopKinds") -> "_Carry":
        """The same with other values."""
        other = object.__new__(_Carry)
        other._where, other._structure, other._first = self._where, self._structure, self._first
        other.leaves = list(leaves)
        other._kinds = kinds
        return other

    def stepped(self, new: Any) -> List[Array]:
        """The arrays after a step of a traced loop, of the types before it."""
        kinds = self._kinds
        assert kinds is not None
        leaves, structure = tree_util.tree_flatten(new)
        before = list(self.leaves)
        if structure == self._structure:
            for i, (is_weak, one) in enumerate(zip(kinds.weak, leaves)):
                if not is_weak or not _is_value(one) or _shape(one):
                    continue
                dtype = np.asarray(one).dtype if not hasattr(one, "dtype") else np.dtype(one.dtype)
                if dtype != kinds.specs[i][1]:
                    still_weak = isinstance(one, Array) and one.session._weak and one._node in one.session._weak
                    raise _Retyped(i, dtype, bool(still_weak))
        self.step(new)
        after, self.leaves = self.leaves, before
        return [array_of(int(one) if isinstance(one, Index) else one) for one in after]

    def step(self, new: Any) -> None:
        leaves, structure = tree_util.tree_flatten(new)
        if structure != self._structure:
            raise TypeError(
                f"{self._where}: the body's carry must keep its structure, which is {self._structure} in and "
                f"{structure} out"
            )
        for i, (old, one) in enumerate(zip(self.leaves, leaves)):
            if one is old:
                continue
            if not _is_value(one):
                raise TypeError(f"{self._at(i)} is of type {type(one).__name__} out, not an array or a number")
            if _is_weak(old) and not _shape(one):
                continue  # a number takes the type that the body gives it
            _check_alike(self._at(i), old, one)
            if _is_weak(one):
                leaves[i] = np.asarray(one, old.dtype)[()]
        self.leaves = [array_of(one) if isinstance(one, np.ndarray) else one for one in leaves]

    def _at(self, i: int) -> str:
        placeholder = tree_util.tree_unflatten(self._structure, range(len(self.leaves)))
        path = next(path for path, leaf in tree_util.tree_leaves_with_path(placeholder) if leaf == i)
        path = path[1:] if self._first else path
        return f"{self._where}: the body's carry{tree_util.keystr(path)}, in and out,"


def _typed(number: Any, after: Any) -> Any:
    """A number in the type of what it becomes."""
    if not _is_weak(number) or _is_weak(after) and type(after) is type(number):
        return number
    return np.asarray(number, after.dtype if hasattr(after, "dtype") else type(after))[()]


class _Progress:
    """Records a traced loop's steps a few at a time, in their order, so that few values are alive between them, and
    ends a loop that would make the function too long. Outside traces it does nothing."""

    def __init__(self, where: str, num_steps: Optional[int] = None):
        self._where, self._num_steps = where, num_steps
        session = _session.current_session()
        self._trace: Any = session if session._is_trace else None
        self.num_steps = 0

    def step(self, carry: _Carry) -> bool:
        """Whether this step ends a group."""
        self.num_steps += 1
        if self.num_steps % _STEPS:
            return False
        self.record(carry.leaves)
        return True

    def record(self, leaves: list) -> None:
        if self._trace is None:
            return
        nodes = [one._node for one in leaves if isinstance(one, Array) and one.session is self._trace]
        self._trace._flush([one for one in nodes if one.deferred])
        if len(self._trace.commands) > MAX_OPERATIONS:
            steps = "" if self._num_steps is None else f" of {self._num_steps} steps"
            raise _not_traced(
                f"{self._where}{steps} with more than {MAX_OPERATIONS} operations",
                "Call the loop outside, where its steps run as they are recorded, and jit its body.",
            )


def fori_loop(lower: Any, upper: Any, body_fun: Callable, init_val: Any, *, unroll: Any = None) -> Any:
    """`val = body_fun(i, val)` for i from `lower` to `upper`, which is not among them.

    Outside `jit` and `vmap` the body is called once per step; `i` is an integer then, so that `x[i]` is a view and
    `x * i` keeps the type of x. Within `jit` a loop of more than a few operations is one operation of the service: the
    body is traced once, with an array for `i` that keeps the type of x in `x * i` too. A short one, and one whose body
    needs `i` as a number, is recorded step by step, up to 20,000 operations.

    Parameters
        lower, upper: integers, or arrays of one without axes.
        body_fun: takes the step's number and a value, and returns a value of the same structure, shapes and types.
        init_val: a pytree of arrays and numbers.
        unroll: changes nothing.
    Returns
        The last value.
    Raises
        TypeError for bounds that are no integers and for a value that changes its kind; Unimplemented within `jit` for
        a loop that cannot be an operation and is too long.
    Example
        >>> stride.lax.fori_loop(0, 4, lambda i, x: x * 2 + i, st.array(1)).tolist()
        27
    """
    _check_callable("lax.fori_loop", body_fun=body_fun)
    given = [
        _scalar(lower, "lax.fori_loop: lower", "iu"),
        _scalar(upper, "lax.fori_loop: upper", "iu"),
    ]
    session = _bodies.tracing()
    carry = _Carry("lax.fori_loop", init_val)
    if any(_is_unknown(one) for one in given):
        return _fori_to_unknown(given, body_fun, carry, session)
    bounds = [int(one) for one in given]
    num_steps = max(0, bounds[1] - bounds[0])
    if session is not None and not session.unrolls and num_steps > 1:
        looped = _looped(
            "lax.fori_loop",
            session,
            lambda tree: ((tree[0] + 1, body_fun(tree[0], tree[1])), None),
            _Carry("lax.fori_loop", (bounds[0], carry.tree), first=1),
            num_steps,
        )
        if looped is not None:
            return looped[0][1]
    progress = _Progress("lax.fori_loop", num_steps)
    for i in range(*bounds):
        carry.step(body_fun(Index(i), carry.tree))
        progress.step(carry)
    return _results(carry.tree)


def _fori_to_unknown(bounds: list, body_fun: Callable, carry: "_Carry", session: Any) -> Any:
    """A loop to a bound that is known only when the function runs: as JAX has it, a while loop."""
    whole = _Carry("lax.fori_loop", (*bounds, carry.tree), first=2)

    def condition(tree):
        return tree[0] < tree[1]

    def body(tree):
        return tree[0] + 1, tree[1], body_fun(tree[0], tree[2])

    whole.leaves[:2] = [array_of(one).astype(np.int64) for one in bounds]
    return _while(session, condition, body, whole, weak_places={0})[2]


def while_loop(cond_fun: Callable, body_fun: Callable, init_val: Any) -> Any:
    """`val = body_fun(val)` as long as `cond_fun(val)` is true.

    Outside `jit` and `vmap` both functions are called at each step and the condition is read: a round trip. Within
    `jit` the loop is one operation of the service: both are traced once, and the daemon reads the condition between
    the steps. Where the condition stands on Python's numbers alone, the first steps are recorded one by one. Within
    `vmap` the loop runs until it is done for all items; those that are done keep their values.

    Parameters
        cond_fun: takes the value, and returns a bool.
        body_fun: takes the value, and returns one of the same structure, shapes and types.
        init_val: a pytree of arrays and numbers.
    Returns
        The last value.
    Raises
        TypeError for a condition that is no bool without axes, and for a value that changes its kind.
    Example
        >>> stride.lax.while_loop(lambda x: x < 10, lambda x: x * 3, st.array(1)).tolist()
        27
        >>> stride.jit(lambda x: stride.lax.while_loop(lambda v: v < 10, lambda v: v * 3, x))(st.array(1)).tolist()
        27
    """
    _check_callable("lax.while_loop", cond_fun=cond_fun, body_fun=body_fun)
    carry, progress = _Carry("lax.while_loop", init_val), _Progress("lax.while_loop")
    session = _bodies.tracing()
    while True:
        condition = _checked_condition(cond_fun(carry.tree))
        is_long = session is not None and not session.unrolls and progress.num_steps >= _STEPS
        if _is_unknown(condition) or is_long:
            return _while(session, cond_fun, body_fun, carry)
        if not bool(condition):
            return _results(carry.tree)
        carry.step(body_fun(carry.tree))
        progress.step(carry)


def _checked_condition(condition: Any) -> Any:
    is_bool = isinstance(condition, (bool, np.bool_)) or (
        isinstance(condition, (Array, np.ndarray)) and condition.dtype.kind == "b" and not condition.shape
    )
    if not is_bool:
        text = _kind_text(condition) if _is_value(condition) else str(tree_util.tree_structure(condition))
        raise TypeError(f"lax.while_loop: cond_fun returns a bool without axes, not {text}")
    return condition


def _while(session: Any, cond_fun: Callable, body_fun: Callable, carry: "_Carry", weak_places: Any = ()) -> Any:
    """A loop with a condition as one operation."""
    where = carry._where
    kinds = _LoopKinds(carry, weak_places)

    def step(*arrays):
        inner = carry.of(arrays, kinds)
        new = inner.stepped(body_fun(inner.tree))
        again = _checked_condition(cond_fun(carry.of(new, kinds).tree))
        return [array_of(again), *new]

    body = kinds.settled(lambda: _bodies.traced(where, step, kinds.specs, session, kinds.weak))
    first = carry.of(kinds.arrays(session), kinds)
    condition = array_of(_checked_condition(cond_fun(first.tree)))
    results = _bodies.loop(
        session, body, [one._node for one in first.leaves], condition=node_of(condition, session)
    )
    return _results(carry.of(results, kinds).tree)


def _looped(
    where: str, session: Any, f: Callable, carry: "_Carry", num_steps: int, sources: Sequence[Array] = (), reverse=False
) -> Any:
    """A loop of known length as one operation: its last carry and its ys. `f` takes a carry, and an element of each
    source, and returns a carry and a y. None where it is short, or needs values that are known when it runs alone."""
    kinds = _LoopKinds(carry)
    structures: list = []

    def step(*arrays):
        inner = carry.of(arrays[: len(kinds.specs)], kinds)
        pair = f(inner.tree, *arrays[len(kinds.specs) :])
        new, y = _pair(pair)
        leaves, structure = tree_util.tree_flatten_with_path(y)
        for path, one in leaves:
            if not _is_value(one):
                raise TypeError(
                    f"{where}: y{tree_util.keystr(path)} is of type {type(one).__name__}, not an array or a number"
                )
        structures[:] = [structure]
        return [*inner.stepped(new), *(array_of(one) for _, one in leaves)]

    items = [(one.shape[1:], one.dtype) for one in sources]
    try:
        body = kinds.settled(
            lambda: _bodies.traced(where, step, [*kinds.specs, *items], session, [*kinds.weak, *([False] * len(items))])
        )
    except _errors.TracingError:
        return None
    if body.num_operations * num_steps <= _SHORT:
        return None
    results = _bodies.loop(
        session,
        body,
        [node_of(one, session) for one in kinds.arrays(session)],
        [node_of(one, session) for one in sources],
        count=num_steps,
        reverse=reverse,
    )
    num_carried = len(kinds.specs)
    last = carry.of(results[:num_carried], kinds)
    return _results(last.tree), tree_util.tree_unflatten(structures[0], results[num_carried:])


class _Retyped(Exception):
    """A number that a loop carries has become of another type: the loop is traced again."""

    def __init__(self, place: int, dtype: np.dtype, is_weak: bool):
        self.place, self.dtype, self.is_weak = place, dtype, is_weak


class _LoopKinds:
    """The types that a loop carries. A number has the type that the body gives it, as soon as it gives one."""

    def __init__(self, carry: "_Carry", weak_places: Any = ()):
        self._carry = carry
        self.weak = [_is_weak(one) or i in weak_places for i, one in enumerate(carry.leaves)]
        self.specs = [
            (_shape(one), np.dtype(one.dtype) if hasattr(one, "dtype") else np.asarray(one).dtype)
            for one in carry.leaves
        ]

    def settled(self, trace_body: Callable) -> Any:
        """Repeats `trace_body` until no type changes, and returns its result."""
        while True:
            try:
                return trace_body()
            except _Retyped as change:
                # Numbers change from integers to real ones to complex ones; others change once.
                is_wider = "ifc".find(change.dtype.kind) > "ifc".find(self.specs[change.place][1].kind)
                self.weak[change.place] = change.is_weak and is_wider
                self.specs[change.place] = self.specs[change.place][0], change.dtype

    def arrays(self, session: Any) -> List[Array]:
        """The first values."""
        return [
            one if isinstance(one, Array) and one.dtype == dtype else array_of(np.asarray(one, dtype), session)
            for one, (_, dtype) in zip(self._carry.leaves, self.specs)
        ]


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


def _pair(pair: Any) -> tuple:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        text = _kind_text(pair) if _is_value(pair) else str(tree_util.tree_structure(pair))
        raise TypeError(f"lax.scan: f returns a pair of carry and y, not {text}")
    return pair[0], pair[1]


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
