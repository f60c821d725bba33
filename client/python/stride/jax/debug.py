"""`jax.debug`: printing and calling back while a function runs. Values of a function that `jit` or `vmap` traces are
not known to this process, so there both raise TracingError."""

from typing import Any, Callable

import numpy as np

from stride import _errors, tree_util
from stride._array import Array

__all__ = ["breakpoint", "callback", "print"]

_print = print


def _values(tree: Any, what: str) -> Any:
    for one in tree_util.tree_leaves(tree):
        if isinstance(one, Array) and one.session._is_trace and not one.session._reads and one._node.cached() is None:
            raise _errors.TracingError(
                f"jax.debug.{what} within a function that jit or vmap traces is not there: return the values, or call "
                f"the function without jit")
    return tree_util.tree_map(lambda one: np.asarray(one) if isinstance(one, Array) else one, tree)


def print(fmt: str, *args: Any, ordered: bool = False, partitioned: bool = False, **kwargs: Any) -> None:  # noqa: A001
    """Prints values.

    Parameters
        fmt: a text for `str.format`.
        args, kwargs: its values.
        ordered, partitioned: change nothing.
    Returns
        None.
    Raises
        TracingError for values that are not known, within jit and vmap.
    Example
        >>> from stride import jax
        >>> jax.debug.print("x = {}", jax.numpy.arange(2))
        x = [0 1]
    """
    _print(fmt.format(*_values(args, "print"), **_values(kwargs, "print")))


def callback(callback: Callable, *args: Any, ordered: bool = False, partitioned: bool = False, **kwargs: Any) -> None:
    """Calls a function with values.

    Parameters
        callback: the function, whose result is dropped.
        args, kwargs: its arguments; arrays arrive as NumPy's.
        ordered, partitioned: change nothing.
    Returns
        None.
    Raises
        TracingError for values that are not known, within jit and vmap.
    Example
        >>> from stride import jax
        >>> seen = []
        >>> jax.debug.callback(seen.append, jax.numpy.arange(2))
        >>> seen
        [array([0, 1], dtype=int32)]
    """
    callback(*_values(args, "callback"), **_values(kwargs, "callback"))


def breakpoint(**_: Any) -> None:  # noqa: A001
    """Python's breakpoint.

    Returns
        None.
    Example
        >>> from stride import jax
        >>> callable(jax.debug.breakpoint)
        True
    """
    import builtins

    builtins.breakpoint()
