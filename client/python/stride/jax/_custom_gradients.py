"""Functions whose derivatives the caller gives or stops."""

import functools
import operator
from typing import Any, Callable, List, Optional, Sequence, Tuple

from stride import _creation, _errors, _session, tree_util
from stride._array import Array, array_of, node_of
from stride._tape import Tape
from stride._trace import Spec, Template
from stride.jax import _gradients
from stride.jax._array import as_jax
from stride.jax._gradients import _zeros_for
from stride.v1 import compute_service_pb2

__all__ = ["checkpoint", "closure_convert", "custom_gradient", "custom_jvp", "custom_vjp", "remat"]


def _tape_here() -> Optional[Tape]:
    session = _session.current_session()
    if isinstance(session, Tape):
        return session
    if getattr(session, "unrolls", False):
        raise _errors.Unimplemented(
            "a function with a derivative of its own cannot be called by vmap within grad; call vmap outside: "
            "vmap(grad(f))", reason="NOT_IMPLEMENTED", metadata={"feature": "custom derivative within vmap"})
    return None


def _outer_values(tape: Tape, tree: Any) -> Any:
    return as_jax(tree_util.tree_map(tape.outside, tree))


class _Around:
    """Within it the tape's own session is current: what runs there is not on the tape."""

    def __init__(self, tape: Tape):
        self._tape = tape

    def __enter__(self):
        traces = _session._tracing.traces
        place = traces.index(self._tape)
        self._inner = traces[place:]
        del traces[place:]

    def __exit__(self, *_):
        _session._tracing.traces.extend(self._inner)


def _lifted(tape: Tape, arguments: Any, result: Any, pull: Callable) -> Any:
    """A result computed around the tape, on it. `pull`: cotangents of the result's leaves to those of the arrays."""
    inputs = [one for one in tree_util.tree_leaves(arguments) if isinstance(one, Array)]
    leaves, tree = tree_util.tree_flatten(result)
    arrays = [array_of(one) for one in leaves]
    return as_jax(tree_util.tree_unflatten(tree, tape.add(inputs, arrays, lambda gs: pull(as_jax(gs), arrays, tree))))


def stop_gradient(x: Any) -> Any:
    """`x`, through which no derivative goes. It is `lax.stop_gradient`.

    Parameters
        x: a pytree.
    Returns
        A pytree like `x`.
    Example
        >>> from stride import jax
        >>> float(jax.grad(lambda x: x * jax.lax.stop_gradient(x))(3.0))
        3.0
    """
    return tree_util.tree_map(_stopped, x)


def _stopped(one: Any) -> Any:
    session = one.session if isinstance(one, Array) else None
    if isinstance(session, Tape):
        value = session.known(one._node)
        return as_jax(session.lifted(session.value(_stopped(value.array), False)))
    if session is not None and session._is_trace and session.unrolls:
        raise _errors.Unimplemented(
            "stop_gradient cannot be called by vmap within grad; call vmap outside: vmap(grad(f))",
            reason="NOT_IMPLEMENTED",
            metadata={"feature": "stop_gradient within vmap"},
        )
    return one


class custom_vjp:  # noqa: N801, JAX's name
    """A function with a custom derivative, which `defvjp` sets.

    Parameters
        fun: the function.
        nondiff_argnums: positional arguments that are no arrays; the backward function has them first.
    Example
        >>> from stride import jax
        >>> double = jax.custom_vjp(lambda x: x)
        >>> double.defvjp(lambda x: (x, None), lambda residuals, g: (g * 2,))
        >>> float(jax.grad(double)(3.0))
        2.0
    """

    def __init__(self, fun: Callable, nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()):
        functools.update_wrapper(self, fun)
        self.fun, self.nondiff_argnums = fun, tuple(nondiff_argnums)
        self.fwd: Optional[Callable] = None
        self.bwd: Optional[Callable] = None

    def defvjp(self, fwd: Callable, bwd: Callable, symbolic_zeros: bool = False, optimize_remat: bool = False) -> None:
        """Sets the derivative.

        Parameters
            fwd: takes the arguments and returns (value, residuals).
            bwd: takes residuals and a cotangent, and returns a tuple of cotangents of the arguments; None is zero.
            symbolic_zeros, optimize_remat: must be False.
        Returns
            None.
        Example
            >>> from stride import jax
            >>> jax.custom_vjp(lambda x: x).defvjp(lambda x: (x, None), lambda residuals, g: (g,))
        """
        self.fwd, self.bwd = fwd, bwd

    def __call__(self, *arguments: Any, **kwargs: Any) -> Any:
        tape = _tape_here()
        if tape is None:
            return self.fun(*arguments, **kwargs)
        if self.fwd is None or self.bwd is None:
            name = self.__name__  # type: ignore
            raise AttributeError(f"No VJP defined for custom_vjp function {name} using defvjp.")
        arguments = _bound(self.fun, arguments, kwargs)
        static = [arguments[i] for i in self.nondiff_argnums]
        dynamic = [one for i, one in enumerate(arguments) if i not in self.nondiff_argnums]
        values = _outer_values(tape, arguments)
        with _Around(tape):
            if self.nondiff_argnums:
                result, residuals = self.fwd(*values)
            else:
                result, residuals = self.fwd(*values)
        bwd = self.bwd

        def pull(gs, arrays, tree):
            given = tree_util.tree_unflatten(tree, [_zeros_for(*pair) for pair in zip(gs, arrays)])
            found = bwd(*_outer_values(tape, static), residuals, given)
            if not isinstance(found, (tuple, list)) or len(found) != len(dynamic):
                raise TypeError(
                    f"the backward function of a custom_vjp returns a tuple of {len(dynamic)} cotangents, one for "
                    f"each argument"
                )
            leaves = []
            for argument, one in zip(dynamic, found):
                flat, structure = tree_util.tree_flatten(argument)
                parts = [None] * len(flat) if one is None else structure.flatten_up_to(one)
                leaves += [part for leaf, part in zip(flat, parts) if isinstance(leaf, Array)]
            return [None if one is None else array_of(one) for one in leaves]

        return _lifted(tape, dynamic, result, pull)


class custom_jvp:  # noqa: N801, JAX's name
    """A function with a custom derivative, which `defjvp` or `defjvps` sets.

    Parameters
        fun: the function.
        nondiff_argnums: positional arguments that are no arrays; the rule has them first.
    Example
        >>> from stride import jax
        >>> double = jax.custom_jvp(lambda x: x)
        >>> rule = double.defjvp(lambda primals, tangents: (primals[0], tangents[0] * 2))
        >>> float(jax.grad(double)(3.0))
        2.0
    """

    def __init__(self, fun: Callable, nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()):
        functools.update_wrapper(self, fun)
        self.fun, self.nondiff_argnums = fun, tuple(nondiff_argnums)
        self.jvp: Optional[Callable] = None

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
        """Sets the derivative; also a decorator.

        Parameters
            jvp: takes tuples of primals and tangents, and returns (value, change); it is linear in the tangents.
            symbolic_zeros: must be False.
        Returns
            `jvp`.
        Example
            >>> from stride import jax
            >>> rule = jax.custom_jvp(lambda x: x).defjvp(lambda primals, tangents: (primals[0], tangents[0]))
        """
        self.jvp = jvp
        return jvp

    def defjvps(self, *jvps: Optional[Callable]) -> None:
        """Sets a derivative for each argument.

        Parameters
            jvps: for each argument None, or a function of (tangent, value, *primals) that returns its change.
        Returns
            None.
        Example
            >>> from stride import jax
            >>> jax.custom_jvp(lambda x: x).defjvps(lambda tangent, value, x: tangent)
        """

        def jvp(primals, tangents):
            value = self(*primals)
            parts = [one(t, value, *primals) for one, t in zip(jvps, tangents) if one is not None]
            return value, functools.reduce(lambda a, b: tree_util.tree_map(operator.add, a, b), parts)

        self.jvp = jvp

    def __call__(self, *arguments: Any, **kwargs: Any) -> Any:
        tape = _tape_here()
        if tape is None:
            return self.fun(*arguments, **kwargs)
        if self.jvp is None:
            name = self.__name__  # type: ignore
            raise AttributeError(f"No JVP defined for custom_jvp function {name} using defjvp.")
        arguments = _bound(self.fun, arguments, kwargs)
        chosen = [i for i in range(len(arguments)) if i not in self.nondiff_argnums]
        values = _outer_values(tape, list(arguments))
        static = [values[i] for i in self.nondiff_argnums]
        primals = tuple(values[i] for i in chosen)
        rule = self.jvp
        with _Around(tape):
            result = self(*values)
        flat, structure = tree_util.tree_flatten(primals)

        def pull(gs, arrays, tree):
            given = tree_util.tree_unflatten(tree, [_zeros_for(*pair) for pair in zip(gs, arrays)])
            kinds = [array_of(one) for one in flat]
            zeros = [_creation.zeros(one.shape, dtype=one.dtype) for one in kinds]

            def pushed(*tangents):
                return rule(*static, primals, tree_util.tree_unflatten(structure, list(tangents)))[1]

            _, back = _gradients.vjp(pushed, *zeros)
            return [g for g, one in zip(back(given), flat) if isinstance(one, Array)]

        return _lifted(tape, [arguments[i] for i in chosen], result, pull)


def _bound(fun: Callable, arguments: tuple, kwargs: dict) -> tuple:
    """All arguments by place."""
    import inspect

    if not kwargs:
        return arguments
    try:
        bound = inspect.signature(fun).bind(*arguments, **kwargs)
    except (TypeError, ValueError):
        raise TypeError("a function with a derivative of its own takes arguments by place") from None
    bound.apply_defaults()
    return bound.args


def custom_gradient(fun: Callable) -> Callable:
    """A function that returns its value and the function that pulls cotangents back.

    Parameters
        fun: returns (value, pull).
    Returns
        A function with that value and derivative.
    Example
        >>> from stride import jax
        >>> float(jax.grad(jax.custom_gradient(lambda x: (x, lambda g: (g * 2,))))(3.0))
        2.0
    """
    made = custom_vjp(lambda *arguments: fun(*arguments)[0])

    def bwd(pull, g):
        found = pull(g)
        return found if isinstance(found, (tuple, list)) else (found,)

    made.defvjp(fun, bwd)
    return functools.wraps(fun)(lambda *arguments: made(*arguments))


def closure_convert(fun: Callable, *example_args: Any) -> Tuple[Callable, list]:
    """A function and no values: a tape sees the arrays that a function captures.

    Parameters
        fun: a function.
        example_args: its arguments.
    Returns
        (a function that takes the arguments, an empty list).
    Example
        >>> from stride import jax
        >>> jax.closure_convert(lambda x: x, 1.0)[1]
        []
    """
    return fun, []


def checkpoint(
    fun: Optional[Callable] = None, *, prevent_cse: bool = True, policy: Any = None, static_argnums: Any = (),
    concrete: bool = False,
) -> Callable:
    """`fun` itself: intermediate values are kept for the gradient. The values are the same; memory is not reduced.

    Parameters
        fun: a function; without one the result is a decorator.
        prevent_cse, policy, static_argnums, concrete: change nothing.
    Returns
        A function.
    Example
        >>> from stride import jax
        >>> float(jax.checkpoint(lambda x: x + 1)(1.0))
        2.0
    """
    return (lambda function: function) if fun is None else fun


remat = checkpoint


def carried_out(body: Any, specs: dict, bodies: dict, arrays: Sequence[Array]) -> List[Array]:
    """The results of a branch's body, whose operations are recorded in the current session."""
    commands = [(compute_service_pb2.Command(operation=one), None) for one in body.operations]
    outputs = [Spec(handle, *specs[handle]) for handle in body.outputs]
    template = Template(commands, list(body.inputs), [], outputs, dict(specs), bodies)
    session = _session.current_session()
    return template.replay(session, [node_of(one, session) for one in arrays])
