"""stride.jit: functions recorded once for each kind of arguments, and replayed."""

import collections.abc
import functools
import inspect
import operator
from collections import Counter
from typing import Any, Callable, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

import numpy as np

from stride import _errors, _session, tree_util
from stride._array import Array
from stride._trace import (
    Cache,
    Static,
    flatten,
    function_name,
    prepared,
    refuse_unhashable,
    root,
    session_of,
    trace,
    unflatten,
)

Numbers = Union[int, Sequence[int], None]
Names = Union[str, Iterable[str], None]


class _Chosen(NamedTuple):
    """Arguments that an option names: by place, and by keyword."""

    numbers: Tuple[int, ...]
    names: Tuple[str, ...]

    def places(self, count: int) -> Set[int]:
        return {one + count if one < 0 else one for one in self.numbers}


def jit(
    fun: Optional[Callable] = None,
    /,
    *,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    keep_unused: bool = False,
    inline: bool = False,
    device: Any = None,
    backend: Optional[str] = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
) -> Callable:
    """Traces a function once for each combination of its arguments' shapes and types, and replays the
    recorded operations.

        step = stride.jit(lambda params, x: x @ params["w"] + params["b"])

    Arrays, which may stand in pytrees (nested tuples, lists, dicts, None, named tuples, registered classes), are its
    inputs. Every other leaf, such as a number or a string, is part of the combination. While it is traced nothing is
    computed: values cannot be read, so that `if x > 0` and sizes that depend on values raise TracingError. Arrays from
    outside are kept as they were when it was traced. It cannot write into its arguments; what it prints or appends
    happens at the trace only.

    Parameters
        fun: the function; without one the result is a decorator.
        static_argnums, static_argnames: arguments that are not taken apart: each is a hashable value that is part of
            the combination. One of the two names them all, where the signature is known.
        donate_argnums, donate_argnames: arguments that the caller gives up. A donated array with the shape and type of
            a result is deleted by the call: its memory is free once the call has run, and its use raises
            ArrayDeleted. Donation changes nothing for other arrays, for NumPy's arrays, and while another function is
            traced.
        keep_unused, inline: change nothing.
        device, backend, in_shardings, out_shardings: must be None; `stride.connect(device=)`, `to_device` and
            `to_sharding` say where arrays are.
    Returns
        A function of the same arguments; `clear_cache()` forgets its traces.
    Raises
        TypeError for what is not callable, TracingError for a call that cannot be traced, ValueError for an argument
        that the function lacks and for a static argument without a hash.
    Example
        >>> power = stride.jit(lambda x, n: x ** n, static_argnums=1)
        >>> power(st.array([1.0, 2.0]), 3).tolist()
        [1.0, 8.0]
    """
    for name, value in (
        ("device", device),
        ("backend", backend),
        ("in_shardings", in_shardings),
        ("out_shardings", out_shardings),
    ):
        if value is not None:
            raise _errors.Unimplemented(
                f"{name}= of stride.jit is not there: connect(device=), to_device and to_sharding say where arrays are",
                reason="NOT_IMPLEMENTED",
                metadata={"feature": f"jit {name}"},
            )
    options = static_argnums, static_argnames, donate_argnums, donate_argnames
    if fun is None:
        return lambda function: _jitted(function, *options)
    return _jitted(fun, *options)


def _jitted(function: Callable, static_argnums, static_argnames, donate_argnums, donate_argnames) -> Callable:
    if not callable(function):
        raise TypeError(f"stride.jit takes a function, not {function!r}")
    static = _chosen(function, "static", static_argnums, static_argnames)
    donated = _chosen(function, "donate", donate_argnums, donate_argnames)
    both = sorted({*map(str, static.numbers), *static.names} & {*map(str, donated.numbers), *donated.names})
    if both:
        raise ValueError(
            f"an argument of {function_name(function)} cannot be static and donated: {', '.join(both)} is in both"
        )
    cache = Cache()
    has_static, has_donated = static != ((), ()), donated != ((), ())

    @functools.wraps(function)
    def call(*arguments, **kwargs):
        if getattr(_session.current_session(), "unrolls", False):
            return function(*arguments, **kwargs)  # a differentiated function is recorded step by step
        given = arguments, kwargs
        if has_static:
            given = _with_static(static, arguments, kwargs)
        leaves: list = []
        structure = flatten(given, leaves)
        session = session_of(leaves)
        specs = tuple([(one.shape, np.dtype(one.dtype)) for one in leaves])
        # Captured arrays belong to a session.
        try:
            template, result = cache.get(
                (root(session), structure, specs), lambda: trace(function, structure, specs, session)
            )
        except TypeError:
            refuse_unhashable(function, *given)
            raise
        results = template.replay(session, [prepared(one, session) for one in leaves])
        if has_donated and not session._is_trace:
            _delete(_donated(donated, arguments, kwargs), results)
        return unflatten(result, iter(results))

    call.templates = cache  # type: ignore[attr-defined]
    call.clear_cache = cache.clear  # type: ignore[attr-defined]
    return call


# --- which arguments ---


def _chosen(function: Callable, what: str, argnums: Numbers, argnames: Names) -> _Chosen:
    """Both forms of an option, of which one follows from the other where the signature is known."""
    numbers = _numbers(argnums)
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames or ())
    for one in names:
        if not isinstance(one, str):
            raise TypeError(f"{what}_argnames has names, not {one!r}")
    if not numbers and not names:
        return _Chosen((), ())
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return _Chosen(numbers, names)
    kinds = [one.kind for one in parameters]
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        count = len(positional)
        wrong = [one for one in numbers if not -count <= one < count]
        if wrong:
            raise ValueError(
                f"{what}_argnums={numbers} names arguments that {function_name(function)} lacks: it has {count} "
                f"positional ones"
            )
        numbers = tuple(one % count for one in numbers)
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        known = {one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
        missing = sorted({*names} - known)
        if missing:
            raise ValueError(
                f"{what}_argnames has {', '.join(map(repr, missing))}: {function_name(function)} has no such arguments"
            )
    if argnames is None:
        names = tuple(
            positional[one].name
            for one in numbers
            if one < len(positional) and positional[one].kind == inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
    elif argnums is None:
        numbers = tuple(i for i, one in enumerate(positional) if one.name in names)
    return _Chosen(numbers, names)


def _numbers(argnums: Numbers) -> Tuple[int, ...]:
    if argnums is None:
        return ()
    if isinstance(argnums, collections.abc.Iterable) and not isinstance(argnums, str):
        return tuple(operator.index(one) for one in argnums)
    return (operator.index(argnums),)  # type: ignore[arg-type]


def _with_static(static: _Chosen, arguments: tuple, kwargs: dict) -> tuple:
    places = static.places(len(arguments))
    return (
        tuple([_as_static(f"{i}", one) if i in places else one for i, one in enumerate(arguments)]),
        {name: _as_static(repr(name), one) if name in static.names else one for name, one in kwargs.items()},
    )


def _as_static(what: str, value: Any) -> Static:
    try:
        if isinstance(value, Array):
            raise TypeError("arrays have no hash of their elements")
        hash(value)
    except TypeError as error:
        raise ValueError(
            f"the static argument {what} of type {type(value).__name__} has no hash ({error}): make it an ordinary "
            f"argument, or a value with a hash, such as a tuple"
        ) from None
    return Static(value)


# --- donation ---


def _donated(donated: _Chosen, arguments: tuple, kwargs: dict) -> List[Array]:
    places = donated.places(len(arguments))
    chosen = [one for i, one in enumerate(arguments) if i in places]
    chosen += [one for name, one in kwargs.items() if name in donated.names]
    return [one for one in tree_util.tree_leaves(chosen) if isinstance(one, Array)]


def _delete(arrays: List[Array], results: List[Array]) -> None:
    """Deletes arrays that results could take the place of, as many as there are results of their kind."""
    kinds = Counter((one.shape, one.dtype) for one in results)
    for one in arrays:
        if one.is_deleted():
            continue
        kind = one.shape, one.dtype
        if kinds[kind]:
            kinds[kind] -= 1
            one.delete()
