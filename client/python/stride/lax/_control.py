"""Loops: of a count, and while a condition holds."""

from typing import Any, Callable, List, Optional, Sequence

import numpy as np

from stride import _errors, _session, tree_util
from stride._array import Array, array_of, node_of
from stride.lax import _bodies
from stride.lax._branches import _scalar
from stride.lax._kinds import (
    Index, _check_alike, _check_callable, _is_unknown, _is_value, _is_weak, _kind_text, _not_traced, _results, _shape,
)

__all__ = ["fori_loop", "while_loop"]

# Operations that a traced function may have with a loop in it: 40 programs of the service.
MAX_OPERATIONS = 20_000
# A traced loop of known length is recorded step by step up to this many operations.
_SHORT = 256
# Number of steps after which a traced loop's values are recorded and its results joined.
_STEPS = 32
# Integers to loop over are read first up to this size, so that they are indices that the host knows.
_HOST_BYTES = 64 << 10


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


def _pair(pair: Any) -> tuple:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        text = _kind_text(pair) if _is_value(pair) else str(tree_util.tree_structure(pair))
        raise TypeError(f"lax.scan: f returns a pair of carry and y, not {text}")
    return pair[0], pair[1]
