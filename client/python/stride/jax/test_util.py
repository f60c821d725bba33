"""`jax.test_util`: derivatives against differences."""

from typing import Any, Callable, Optional, Sequence

import numpy as np

from stride import tree_util
from stride.jax import _gradients, numpy as jnp

__all__ = ["check_grads", "check_jvp", "check_vjp"]
_STEPS = {2: 2.0**-5, 4: 1e-4**0.5, 8: 1e-6}  # by the bytes of a real number: between rounding and curvature
_TOLERANCES = {2: 1e-1, 4: 2e-3, 8: 1e-5}


def _bytes(tree: Any) -> int:
    """Bytes of the smallest real type among the leaves."""
    sizes = []
    for one in tree_util.tree_leaves(tree):
        dtype = np.dtype(jnp.asarray(one).dtype)
        if dtype.kind in "fc":
            sizes.append(dtype.itemsize // (2 if dtype.kind == "c" else 1))
    return min(sizes, default=4)


def _random_like(tree: Any, rng: np.random.Generator) -> Any:
    def one(leaf: Any) -> Any:
        x = jnp.asarray(leaf)
        values = rng.standard_normal(x.shape)
        if x.dtype.kind == "c":
            values = values + 1j * rng.standard_normal(x.shape)
        return jnp.asarray(values.astype(x.dtype) if x.dtype.kind in "fc" else np.zeros(x.shape, x.dtype))

    return tree_util.tree_map(one, tree)


def _moved(tree: Any, tangents: Any, step: float) -> Any:
    return tree_util.tree_map(lambda x, t: x + t * jnp.asarray(step, jnp.asarray(x).dtype), tree, tangents)


def _differences(f: Callable, args: tuple, tangents: tuple, step: float) -> Any:
    later, earlier = f(*_moved(args, tangents, step)), f(*_moved(args, tangents, -step))
    return tree_util.tree_map(lambda a, b: (np.asarray(a) - np.asarray(b)) / (2 * step), later, earlier)


def _inner(left: Any, right: Any) -> Any:
    pairs = zip(tree_util.tree_leaves(left), tree_util.tree_leaves(right))
    return sum(np.sum(np.asarray(a, np.result_type(np.asarray(a), np.float64)) * np.asarray(b)) for a, b in pairs)


def _close(ours: Any, theirs: Any, atol: float, rtol: float, what: str) -> None:
    for a, b in zip(tree_util.tree_leaves(ours), tree_util.tree_leaves(theirs)):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=atol, rtol=rtol, err_msg=what)


def check_jvp(
    f: Callable, f_jvp: Callable, args: Sequence[Any], atol: Optional[float] = None, rtol: Optional[float] = None,
    eps: Optional[float] = None, err_msg: str = "",
) -> None:
    """Compares a forward derivative with central differences, along a random direction.

    Parameters
        f: a function of pytrees.
        f_jvp: a function of `args` and tangents that gives the value and its derivative.
        args: the arguments.
        atol, rtol: the tolerances; None for those of the type.
        eps: the step; None for that of the type.
        err_msg: is a part of the error's text.
    Raises
        AssertionError where they differ.
    Example
        >>> from stride import jax
        >>> from stride.jax.test_util import check_jvp
        >>> check_jvp(jax.numpy.sin, lambda x, t: jax.jvp(jax.numpy.sin, x, t), (0.5,))
    """
    args = tuple(args)
    size = _bytes(args)
    tolerance = _TOLERANCES[size]
    tangents = _random_like(args, np.random.default_rng(0))
    value, found = f_jvp(args, tangents)
    atol, rtol = tolerance if atol is None else atol, tolerance if rtol is None else rtol
    _close(value, f(*args), atol, rtol, f"{err_msg} value of jvp")
    _close(found, _differences(f, args, tangents, _STEPS[size] if eps is None else eps), atol, rtol, f"{err_msg} jvp")


def check_vjp(
    f: Callable, f_vjp: Callable, args: Sequence[Any], atol: Optional[float] = None, rtol: Optional[float] = None,
    eps: Optional[float] = None, err_msg: str = "",
) -> None:
    """Compares a reverse derivative with central differences, along a random direction and for a random cotangent.

    Parameters
        f: a function of pytrees.
        f_vjp: a function of `args` that gives the value and the function of cotangents, as `jax.vjp` does.
        args, atol, rtol, eps, err_msg: as in `check_jvp`.
    Raises
        AssertionError where they differ.
    Example
        >>> from stride import jax
        >>> from stride.jax.test_util import check_vjp
        >>> check_vjp(jax.numpy.sin, lambda *x: jax.vjp(jax.numpy.sin, *x), (0.5,))
    """
    args = tuple(args)
    size, rng = _bytes(args), np.random.default_rng(0)
    tolerance = _TOLERANCES[size]
    tangents = _random_like(args, rng)
    value, pull = f_vjp(*args)
    cotangents = _random_like(value, rng)
    atol, rtol = tolerance if atol is None else atol, tolerance if rtol is None else rtol
    expected = _inner(cotangents, _differences(f, args, tangents, _STEPS[size] if eps is None else eps))
    found = _inner(tangents, pull(cotangents))
    _close(np.real(found), np.real(expected), atol, rtol, f"{err_msg} cotangents")


def check_grads(
    f: Callable, args: Sequence[Any], order: int, modes: Sequence[str] = ("fwd", "rev"), atol: Optional[float] = None,
    rtol: Optional[float] = None, eps: Optional[float] = None,
) -> None:
    """Compares the derivatives of a function with central differences, up to an order.

    Parameters
        f: a function of pytrees.
        args: its arguments.
        order: 1 for first derivatives, 2 for those of these, and so on.
        modes: fwd, rev or both.
        atol, rtol, eps: as in `check_jvp`.
    Raises
        AssertionError where they differ.
    Example
        >>> from stride import jax
        >>> from stride.jax.test_util import check_grads
        >>> check_grads(lambda x: jax.numpy.sin(x) * x, (0.5,), order=2)
    """
    args = tuple(args)

    def check(function: Callable, given: tuple, left: int, what: str) -> None:
        if "fwd" in modes:
            check_jvp(function, lambda x, t: _gradients.jvp(function, x, t), given, atol, rtol, eps, what)
        if "rev" in modes:
            check_vjp(function, lambda *x: _gradients.vjp(function, *x), given, atol, rtol, eps, what)
        if left > 1:
            tangents = _random_like(given, np.random.default_rng(left))
            check(lambda *x: _gradients.jvp(function, x, tangents)[1], given, left - 1, f"{what} derivative of")

    check(f, args, order, "")
