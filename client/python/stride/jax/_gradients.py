"""Derivatives: functions of functions, by a tape (`stride._tape`) that is read backwards.

Reverse mode is the one there is. Forward mode pulls back twice: the pull-back of a function is linear in its cotangent,
and pulling that back again pushes tangents forward."""

import functools
import operator
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import numpy as np

from stride import _assembly, _creation, _errors, _manipulation, _session, _triangles, tree_util
from stride._array import Array, array_of, node_of
from stride._tape import Tape, Value, alias
from stride._trace import root, session_of
from stride._vmap import vmap
from stride.jax import _config
from stride.jax._array import as_jax
from stride.lax import _bodies

__all__ = [
    "grad", "hessian", "jacfwd", "jacobian", "jacrev", "jvp", "linearize", "value_and_grad", "vjp",
]
_NUMBERS = (bool, int, float, complex, np.generic)


class _Run:
    """A function carried out on a tape."""

    def __init__(self, fun: Callable, trees: Sequence[Any], where: str):
        """`trees`: the arguments, all of them to be differentiated."""
        flat, self.structure = tree_util.tree_flatten(tuple(trees))
        leaves = [_leaf(one, where) for one in flat]
        self.tape = tape = Tape(session_of([one for one, _ in leaves]))
        variables = []
        self.inputs: List[Optional[Value]] = []
        for array, is_weak in leaves:
            if array.dtype.kind not in "fc":
                variables.append(array)
                self.inputs.append(None)
                continue
            one = tape.variable(_own(array, tape.outer))
            if is_weak:
                tape._weak.add(one._node)
            variables.append(one)
            self.inputs.append(tape._values[one._node.handle])
        self.primals = [one for one, _ in leaves]
        _session._tracing.traces.append(tape)
        try:
            result = fun(*as_jax(tree_util.tree_unflatten(self.structure, variables)))
            self.result = result
            self.leaves, self.tree = tree_util.tree_flatten(result)
            self.outputs = [_output(tape, one) for one in self.leaves]
        finally:
            _session._tracing.traces.pop()
            tape.close()

    def values(self, prefix: Any = None) -> Any:
        return as_jax(
            tree_util.tree_unflatten(self.tree, [one.array if type(one) is Value else one for one in self.outputs])
        )

    def pull(self, cotangents: Sequence[Optional[Array]]) -> List[Optional[Array]]:
        pairs = [(one, g) for one, g in zip(self.outputs, cotangents) if type(one) is Value]
        wanted = [one for one in self.inputs if one is not None]
        found = iter(self.tape.pull(pairs, wanted))
        return [None if one is None else next(found) for one in self.inputs]


def _leaf(leaf: Any, where: str) -> Tuple[Array, bool]:
    """An argument as an array, and whether it was a Python number."""
    if isinstance(leaf, Array):
        return leaf, leaf.session._is_trace and leaf._node in leaf.session._weak
    if isinstance(leaf, np.ndarray):
        return array_of(leaf.astype(_config.canonical(leaf.dtype))), False
    if isinstance(leaf, _NUMBERS):
        dtype = _config.canonical(np.asarray(leaf).dtype)
        return array_of(np.asarray(leaf, dtype)), not isinstance(leaf, (bool, np.generic))
    raise TypeError(f"{where} takes pytrees of arrays and numbers; a leaf is of type {type(leaf).__name__}: {leaf!r}")


def _own(array: Array, session) -> Array:
    """The array, which no later write changes."""
    return alias(node_of(array, session)) if array.session is session else array


def _output(tape: Tape, leaf: Any) -> Any:
    if isinstance(leaf, _NUMBERS):
        return tape.value(array_of(np.asarray(leaf, _config.canonical(np.asarray(leaf).dtype))), False)
    if isinstance(leaf, np.ndarray):
        return tape.value(array_of(leaf), False)
    if not isinstance(leaf, Array):
        return leaf
    return tape.known(node_of(leaf, tape))


def _zeros_for(found: Optional[Array], primal: Array) -> Array:
    return _creation.zeros(primal.shape, dtype=primal.dtype) if found is None else found


# --- vector-Jacobian products ---


def vjp(fun: Callable, *primals: Any, has_aux: bool = False, reduce_axes: Any = ()) -> Any:
    """The value of a function and the function that pulls cotangents of it back to its arguments.

    Parameters
        fun: a function of pytrees.
        primals: its arguments.
        has_aux: whether it returns a pair, of which the second is not differentiated.
        reduce_axes: must be empty.
    Returns
        (value, pull), or (value, pull, aux). `pull` takes a pytree like the value and returns a tuple of pytrees like
        the arguments.
    Raises
        TypeError for what is no array; Unimplemented for an operation without a rule.
    Example
        >>> from stride import jax
        >>> value, pull = jax.vjp(lambda x, y: x * y, 2.0, 3.0)
        >>> [float(one) for one in pull(1.0)]
        [3.0, 2.0]
    """
    _check_callable("vjp", fun)
    if not has_aux:
        run = _Run(fun, primals, "vjp")
        return run.values(), _pull_of(run, run.tree, 0)
    run = _Run(fun, primals, "vjp")
    value, aux = _pair(run.values(), "vjp")
    tree = tree_util.tree_structure(value)
    return value, _pull_of(run, tree, 0), aux


def _pull_of(run: _Run, tree: Any, first: int) -> Callable:
    outputs = run.outputs[first : first + tree.num_leaves]

    def pull(*given: Any) -> Any:
        if len(given) != 1:
            raise TypeError(f"the function that vjp returns takes one pytree of cotangents, not {len(given)}")
        flat, structure = tree_util.tree_flatten(given[0])
        if structure != tree:
            raise TypeError(f"a cotangent of structure {structure} does not fit a result of structure {tree}")
        cotangents: List[Optional[Array]] = [None] * len(run.outputs)
        for i, (one, output) in enumerate(zip(flat, outputs)):
            if type(output) is not Value or output.array.dtype.kind not in "fc":
                continue
            g = one if isinstance(one, Array) else array_of(np.asarray(one, output.array.dtype))
            if g.shape != output.array.shape:
                raise ValueError(
                    f"a cotangent of shape {g.shape} does not fit a result of shape {output.array.shape}"
                )
            if g.dtype != output.array.dtype:
                raise ValueError(
                    f"a cotangent of type {g.dtype} does not fit a result of type {output.array.dtype}"
                )
            cotangents[first + i] = g
        found = [_zeros_for(*pair) for pair in zip(run.pull(cotangents), run.primals)]
        return as_jax(tree_util.tree_unflatten(run.structure, found))

    return pull


def _pair(result: Any, where: str) -> Tuple[Any, Any]:
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TypeError(f"{where} with has_aux=True needs a function that returns a pair (value, aux)")
    return result[0], result[1]


def _check_callable(where: str, fun: Any) -> None:
    if not callable(fun):
        raise TypeError(f"{where} takes a function, not {fun!r}")


# --- gradients ---


def value_and_grad(
    fun: Callable, argnums: Union[int, Sequence[int]] = 0, has_aux: bool = False, holomorphic: bool = False,
    allow_int: bool = False, reduce_axes: Any = (),
) -> Callable:
    """A function that returns the value of `fun`, a scalar, and its gradient.

    Parameters
        fun: a function whose result has no axes.
        argnums: which positional arguments to differentiate, one or several; each is a pytree of floats.
        has_aux: whether it returns a pair, of which the second is not differentiated.
        holomorphic: whether it is a holomorphic function of complex numbers.
        allow_int: whether integers may be among what is differentiated; their gradients are zeros.
        reduce_axes: must be empty.
    Returns
        A function of the same arguments with the result (value, gradient), or ((value, aux), gradient).
    Raises
        TypeError for a result with axes, and for arguments that are no floats.
    Example
        >>> from stride import jax
        >>> [float(one) for one in jax.value_and_grad(lambda x: x ** 2)(3.0)]
        [9.0, 6.0]
    """
    _check_callable("value_and_grad", fun)
    places = (argnums,) if isinstance(argnums, (int, np.integer)) else tuple(argnums)

    @functools.wraps(fun)
    def call(*arguments: Any, **kwargs: Any) -> Any:
        if any(not -len(arguments) <= one < len(arguments) for one in places):
            raise ValueError(f"argnums={argnums} names arguments that a call with {len(arguments)} does not have")
        chosen = [operator.index(one) % len(arguments) for one in places]
        for one in tree_util.tree_leaves([arguments[i] for i in chosen]):
            _check_input(one, holomorphic, allow_int)

        def of_chosen(*values: Any) -> Any:
            given = list(arguments)
            for i, one in zip(chosen, values):
                given[i] = one
            return fun(*given, **kwargs)

        run = _Run(of_chosen, [arguments[i] for i in chosen], "grad")
        result = run.values()
        value = _pair(result, "grad")[0] if has_aux else result
        if not isinstance(value, (Array, *_NUMBERS)) or np.shape(value) != ():
            text = f"an array of shape {value.shape}" if isinstance(value, Array) else type(value).__name__
            raise TypeError(f"Gradient only defined for scalar-output functions. The result was {text}")
        if value.dtype.kind == "c" and not holomorphic:
            raise TypeError("grad needs a result of real numbers, or holomorphic=True for complex ones")
        if value.dtype.kind not in "fc":
            raise TypeError(f"grad needs a result of floats, not of {value.dtype}")
        cotangents: List[Optional[Array]] = [None] * len(run.outputs)
        cotangents[0] = _creation.ones((), dtype=value.dtype)
        found = [_zeros_for(*pair) for pair in zip(run.pull(cotangents), run.primals)]
        gradients = as_jax(tree_util.tree_unflatten(run.structure, found))
        return result, gradients[0] if isinstance(argnums, (int, np.integer)) else gradients

    return call


def _check_input(leaf: Any, holomorphic: bool, allow_int: bool) -> None:
    if not isinstance(leaf, (Array, np.ndarray, *_NUMBERS)):
        raise TypeError(f"grad takes pytrees of arrays and numbers; a leaf is of type {type(leaf).__name__}")
    dtype = leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype
    kind = np.dtype(dtype).kind
    if kind not in "fc" and not allow_int:
        raise TypeError(
            f"grad requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but got "
            f"{_config.canonical(dtype)}."
        )
    if holomorphic and kind != "c":
        raise TypeError(f"grad with holomorphic=True requires complex inputs, but got {dtype}")


def grad(
    fun: Callable, argnums: Union[int, Sequence[int]] = 0, has_aux: bool = False, holomorphic: bool = False,
    allow_int: bool = False, reduce_axes: Any = (),
) -> Callable:
    """A function that returns the gradient of `fun`, as `value_and_grad` has it.

    Parameters
        fun: a function whose result has no axes.
        argnums: which positional arguments to differentiate, one or several; each is a pytree of floats.
        has_aux: whether it returns a pair, of which the second is not differentiated.
        holomorphic: whether it is a holomorphic function of complex numbers.
        allow_int: whether integers may be among what is differentiated; their gradients are zeros.
        reduce_axes: must be empty.
    Returns
        A function of the same arguments with the gradient as result, or (gradient, aux).
    Raises
        TypeError for a result with axes, and for arguments that are no floats.
    Example
        >>> from stride import jax
        >>> float(jax.grad(lambda x: x ** 3)(2.0))
        12.0
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @functools.wraps(fun)
    def call(*arguments: Any, **kwargs: Any) -> Any:
        result, gradients = both(*arguments, **kwargs)
        return (gradients, result[1]) if has_aux else gradients

    return call


# --- forward mode ---


def linearize(fun: Callable, *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function and the function that pushes tangents of its arguments forward.

    Parameters
        fun: a function of pytrees.
        primals: its arguments.
        has_aux: whether it returns a pair, of which the second is not differentiated.
    Returns
        (value, push), or (value, push, aux). `push` takes tangents like the arguments.
    Raises
        TypeError for what is no array; Unimplemented for an operation without a rule.
    Example
        >>> from stride import jax
        >>> value, push = jax.linearize(lambda x: x ** 2, 3.0)
        >>> float(push(1.0))
        6.0
    """
    found = vjp(fun, *primals, has_aux=has_aux)
    value, pull = found[0], found[1]
    flat, tree = tree_util.tree_flatten(value)
    arrays = [array_of(one) for one in flat]
    zeros = [_creation.zeros(one.shape, dtype=one.dtype) for one in arrays]
    _, again = vjp(lambda *gs: pull(tree_util.tree_unflatten(tree, gs)), *zeros)

    structure = tree_util.tree_structure(tuple(primals))
    kinds = [_leaf(one, "linearize")[0] for one in tree_util.tree_leaves(tuple(primals))]

    def push(*tangents: Any) -> Any:
        leaves, given = tree_util.tree_flatten(tuple(tangents))
        if given != structure:
            raise TypeError(f"tangents of structure {given} do not fit arguments of structure {structure}")
        typed = [
            one if isinstance(one, Array) and one.dtype == kind.dtype else
            array_of(np.asarray(one, kind.dtype)) if not isinstance(one, Array) else one.astype(kind.dtype)
            for one, kind in zip(leaves, kinds)
        ]
        return as_jax(tree_util.tree_unflatten(tree, list(again(tree_util.tree_unflatten(structure, typed)))))

    return (value, push, found[2]) if has_aux else (value, push)


def jvp(fun: Callable, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """The value of a function and the change of it for a change of its arguments.

    Parameters
        fun: a function of pytrees.
        primals: its arguments, as a tuple or list.
        tangents: their changes, like them.
        has_aux: whether it returns a pair, of which the second is not differentiated.
    Returns
        (value, change), or (value, change, aux).
    Raises
        TypeError for what is no array and for tangents that do not fit.
    Example
        >>> from stride import jax
        >>> [float(one) for one in jax.jvp(lambda x: x ** 2, (3.0,), (1.0,))]
        [9.0, 6.0]
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("jvp takes primals and tangents as tuples or lists")
    for one, other in zip(tree_util.tree_leaves(tuple(primals)), tree_util.tree_leaves(tuple(tangents))):
        if np.shape(one) != np.shape(other):
            raise ValueError(
                f"jvp: a tangent of shape {np.shape(other)} does not fit a primal of shape {np.shape(one)}"
            )
    found = linearize(fun, *primals, has_aux=has_aux)
    result = found[0], found[1](*tangents)
    return (*result, found[2]) if has_aux else result


# --- Jacobians ---


def _basis(like: Array) -> Array:
    return _manipulation.reshape(_triangles.eye(like.size, dtype=like.dtype), (like.size, *like.shape))


def _mapped(fun: Callable, basis: Array) -> Any:
    """`fun` of each row, together or, where an operation cannot be mapped, one after another."""
    try:
        return vmap(fun)(basis)
    except _errors.Unimplemented:
        rows = [fun(basis[i]) for i in range(basis.shape[0])]
        return tree_util.tree_map(lambda *parts: _assembly.stack(list(parts)), *rows)


def jacrev(
    fun: Callable, argnums: Union[int, Sequence[int]] = 0, has_aux: bool = False, holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable:
    """The Jacobian of a function, a row at a time.

    Parameters
        fun: a function of pytrees of arrays.
        argnums: which positional arguments to differentiate, one or several.
        has_aux: whether it returns a pair, of which the second is not differentiated.
        holomorphic, allow_int: as in `grad`.
    Returns
        A function of the same arguments: for each array of the result a pytree like the arguments, whose arrays have
        the axes of the result and then those of the argument.
    Raises
        TypeError for arguments that are no floats.
    Example
        >>> from stride import jax
        >>> jax.jacrev(lambda x: x * x)(st.array([1.0, 2.0])).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    _check_callable("jacrev", fun)

    @functools.wraps(fun)
    def call(*arguments: Any, **kwargs: Any) -> Any:
        of_chosen, values = _partial(fun, argnums, arguments, kwargs, holomorphic, allow_int)
        found = vjp(of_chosen, *values, has_aux=has_aux)
        flat, tree = tree_util.tree_flatten(found[0])
        arrays = [array_of(one) for one in flat]
        rows = []
        for i, one in enumerate(arrays):

            def pulled(g, i=i):
                gs = [_creation.zeros(other.shape, dtype=other.dtype) for other in arrays]
                gs[i] = g
                result = found[1](tree_util.tree_unflatten(tree, gs))
                return result[0] if isinstance(argnums, (int, np.integer)) else result

            stacked = _mapped(pulled, _basis(one))
            rows.append(tree_util.tree_map(
                lambda part, one=one: _manipulation.reshape(part, (*one.shape, *part.shape[1:])), stacked))
        result = as_jax(tree_util.tree_unflatten(tree, rows))
        return (result, found[2]) if has_aux else result

    return call


def jacfwd(
    fun: Callable, argnums: Union[int, Sequence[int]] = 0, has_aux: bool = False, holomorphic: bool = False,
) -> Callable:
    """The Jacobian of a function, a column at a time.

    Parameters
        fun: a function of pytrees of arrays.
        argnums: which positional arguments to differentiate, one or several.
        has_aux: whether it returns a pair, of which the second is not differentiated.
        holomorphic: as in `grad`.
    Returns
        A function as `jacrev` returns it.
    Raises
        TypeError for arguments that are no floats.
    Example
        >>> from stride import jax
        >>> jax.jacfwd(lambda x: x * x)(jax.numpy.array([1.0, 2.0])).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    _check_callable("jacfwd", fun)

    @functools.wraps(fun)
    def call(*arguments: Any, **kwargs: Any) -> Any:
        of_chosen, values = _partial(fun, argnums, arguments, kwargs, holomorphic, False)
        found = linearize(of_chosen, *values, has_aux=has_aux)
        flat, tree = tree_util.tree_flatten(tuple(values))
        arrays = [_leaf(one, "jacfwd")[0] for one in flat]
        out_tree = tree_util.tree_structure(found[0])
        columns: List[List[Array]] = []  # for each input, for each output
        for i, one in enumerate(arrays):

            def pushed(t, i=i):
                ts = [_creation.zeros(other.shape, dtype=other.dtype) for other in arrays]
                ts[i] = t
                return tree_util.tree_leaves(found[1](*tree_util.tree_unflatten(tree, ts)))

            parts = []
            for part in _mapped(pushed, _basis(one)):
                moved = _manipulation.moveaxis(part, 0, -1)
                parts.append(_manipulation.reshape(moved, (*moved.shape[:-1], *one.shape)))
            columns.append(parts)
        leaves = []
        for i in range(out_tree.num_leaves):
            inner = tree_util.tree_unflatten(tree, [parts[i] for parts in columns])
            leaves.append(inner[0] if isinstance(argnums, (int, np.integer)) else inner)
        result = as_jax(tree_util.tree_unflatten(out_tree, leaves))
        return (result, found[2]) if has_aux else result

    return call


jacobian = jacrev


def hessian(
    fun: Callable, argnums: Union[int, Sequence[int]] = 0, has_aux: bool = False, holomorphic: bool = False,
) -> Callable:
    """The second derivatives of a function: the Jacobian of its Jacobian.

    Parameters
        fun: a function of pytrees of arrays.
        argnums: which positional arguments to differentiate, one or several.
        has_aux: whether it returns a pair, of which the second is not differentiated.
        holomorphic: as in `grad`.
    Returns
        A function of the same arguments.
    Raises
        TypeError for arguments that are no floats.
    Example
        >>> from stride import jax
        >>> jax.hessian(lambda x: (x ** 3).sum())(jax.numpy.array([1.0, 2.0])).tolist()
        [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


def _partial(fun, argnums, arguments, kwargs, holomorphic: bool, allow_int: bool) -> Tuple[Callable, list]:
    places = (argnums,) if isinstance(argnums, (int, np.integer)) else tuple(argnums)
    chosen = [operator.index(one) % max(1, len(arguments)) for one in places]
    for one in tree_util.tree_leaves([arguments[i] for i in chosen]):
        _check_input(one, holomorphic, allow_int)

    def of_chosen(*values: Any) -> Any:
        given = list(arguments)
        for i, one in zip(chosen, values):
            given[i] = one
        return fun(*given, **kwargs)

    return of_chosen, [arguments[i] for i in chosen]
