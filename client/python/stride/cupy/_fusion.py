"""fuse: operations of a function as one program."""

import functools
from typing import Callable, Optional

import numpy as np

from stride import _errors
from stride._array import Array
from stride._jit import jit


def fuse(*args, kernel_name: Optional[str] = None, **_):
    """Records a function's operations once for each shape and type of its arguments, which are then one program of the
    daemon (stride.jit).

        @cp.fuse()
        def squared_difference(x, y):
            return (x - y) * (x - y)

    Elementwise operations fuse without it too: it saves the recording. A call with numbers among its arguments,
    or of a function that reads values or writes into its arguments, is recorded as it stands. NumPy computes its own
    arrays.

    Parameters
        args: the function, or nothing for a decorator.
        kernel_name: accepted.
    Returns
        The function, or a decorator.
    Example
        >>> import stride.cupy as cp
        >>> @cp.fuse()
        ... def squared_difference(x, y):
        ...     return (x - y) * (x - y)
        ...
        >>> squared_difference(cp.arange(3.0), cp.ones(3)).tolist()
        [1.0, 0.0, 1.0]
    """

    def decorate(function: Callable) -> Callable:
        def checked(*arguments, **kwargs):
            given = [one for one in (*arguments, *kwargs.values()) if isinstance(one, Array)]
            before = [one._node for one in given]
            result = function(*arguments, **kwargs)
            # `x += y` gives the argument other elements, which the caller's array is to have.
            if any(one._node is not node for one, node in zip(given, before)):
                raise _errors.TracingError("a fused function writes into its arguments")
            return result

        traced = jit(checked)
        state = {"traceable": True}

        @functools.wraps(function)
        def call(*arguments, **kwargs):
            given = (*arguments, *kwargs.values())
            # Arrays of NumPy alone are computed by NumPy, as CuPy leaves them.
            arrays = all(isinstance(one, (Array, np.ndarray)) for one in given) and any(
                isinstance(one, Array) for one in given
            )
            if arrays and arguments and state["traceable"]:
                try:
                    return traced(*arguments, **kwargs)
                except _errors.TracingError:
                    state["traceable"] = False
            return function(*arguments, **kwargs)

        call.clear_cache = lambda: None  # type: ignore[attr-defined]
        call.templates = traced.templates  # type: ignore[attr-defined]
        if kernel_name is not None:
            call.__name__ = kernel_name
        return call

    if len(args) == 1 and callable(args[0]) and not isinstance(args[0], str):
        return decorate(args[0])
    return decorate
