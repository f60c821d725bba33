"""Pytrees to devices and back, and the wait for them: JAX's device_put, device_get and block_until_ready."""

from typing import Any

from stride import _conversion, tree_util
from stride._array import Array

__all__ = ["block_until_ready", "device_get", "device_put"]


def device_put(x: Any, device: Any = None, **ignored: Any) -> Any:
    """A pytree with an array of the service for each array and number.

    Parameters
        x: a pytree of arrays and numbers.
        device: where they are put: the name of a device, a Device, a Sharding, or a pytree of these that ends where
            that of `x` does or earlier. None leaves arrays where they are.
        ignored: JAX's `may_alias` and `donate`, which change nothing.
    Returns
        A pytree of the same structure.
    Raises
        NotFound for a device that the daemon does not have; TypeError for another keyword.
    Example
        >>> stride.device_put({"a": [1, 2.5]})["a"][1].tolist()
        2.5
    """
    wrong = set(ignored) - {"src", "may_alias", "donate"}
    if wrong:
        raise TypeError(f"device_put() got an unexpected keyword argument {sorted(wrong)[0]!r}")
    leaves, structure = tree_util.tree_flatten(x)
    devices = tree_util.broadcast_prefix(device, structure, "device")
    return tree_util.tree_unflatten(structure, [_put(*one) for one in zip(leaves, devices)])


def _put(leaf: Any, device: Any) -> Array:
    from stride._sharding import Sharding

    if isinstance(device, Sharding):
        return _conversion.asarray(leaf).to_sharding(device)
    name = getattr(device, "name", device)
    if name is None:
        return _conversion.asarray(leaf)
    name = str(name).replace("devices/", "", 1)
    return leaf.to_device(name) if isinstance(leaf, Array) else _conversion.asarray(leaf, device=name)


def device_get(x: Any) -> Any:
    """A pytree with a NumPy array for each array of the service; other leaves stay.

    Parameters
        x: an array, or a pytree of arrays.
    Returns
        The same structure with arrays of NumPy.
    Example
        >>> stride.device_get((st.arange(2), 5))
        (array([0, 1]), 5)
    """
    return tree_util.tree_map(lambda one: one.to_numpy() if isinstance(one, Array) else one, x)


def block_until_ready(x: Any) -> Any:
    """Waits until every array of a pytree has been computed, and returns the pytree. Raises what went wrong.

    Parameters
        x: an array, or a pytree of arrays.
    Returns
        The same.
    Example
        >>> st.block_until_ready(st.ones(2)).tolist()
        [1.0, 1.0]
    """
    for one in tree_util.tree_leaves(x):
        if hasattr(one, "block_until_ready"):
            one.block_until_ready()
    return x


def wait_for(array: Array) -> None:
    """Waits for one array: a read of its first element comes after all that computes it."""
    session = array.session
    if session._is_trace or array._node.cached() is not None:
        return
    if not array.size:
        session.synchronize()
        return
    from stride import _indexing

    session._flush((array._node,))
    session._read(_indexing._view_of(array._node, [0] * array.ndim) if array.ndim else array._node, is_used=False)
