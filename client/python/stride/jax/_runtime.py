"""Devices, transfers, and waiting."""

from typing import Any, List, Optional

import numpy as np

from stride import _execution, _transfers, tree_util
from stride._array import Array as _Plain
from stride.jax import numpy as jnp
from stride.jax._array import as_jax
from stride.jax.sharding import Device, SingleDeviceSharding

__all__ = [
    "block_until_ready", "default_backend", "device_count", "device_get", "device_put", "devices",
    "local_device_count", "local_devices", "process_count", "process_index", "typeof",
]  # fmt: skip


def devices(backend: Optional[str] = None) -> List[Device]:
    """The session's devices: its GPUs, or, where it has none, its CPU devices.

    Parameters
        backend: None, cpu, gpu or cuda.
    Returns
        A list of Device.
    Raises
        RuntimeError for a kind that there is none of.
    Example
        >>> from stride import jax
        >>> len(jax.devices()) > 0
        True
    """
    found = _execution.real_session().devices() if backend else _execution.devices()
    made = [Device(i, one.name, one.kind) for i, one in enumerate(found)]
    if backend is not None:
        made = [one for one in made if one.platform == ("gpu" if backend in ("gpu", "cuda") else backend)]
        if not made:
            raise RuntimeError(f"Unknown backend {backend}: the daemon has no such device")
    return made


def local_devices(process_index: Optional[int] = None, backend: Optional[str] = None, host_id: Any = None) -> list:
    """As `devices`: all are this process's.

    Parameters
        process_index, host_id: accepted.
        backend: as there.
    Returns
        A list of Device.
    Example
        >>> from stride import jax
        >>> jax.local_devices() == jax.devices()
        True
    """
    return devices(backend)


def device_count(backend: Optional[str] = None) -> int:
    """How many devices there are.

    Parameters
        backend: as in `devices`.
    Returns
        An int.
    Example
        >>> from stride import jax
        >>> jax.device_count() == len(jax.devices())
        True
    """
    return len(devices(backend))


local_device_count = device_count


def default_backend() -> str:
    """gpu or cpu.

    Returns
        A string.
    Example
        >>> from stride import jax
        >>> jax.default_backend() in ("cpu", "gpu")
        True
    """
    return devices()[0].platform


def process_count(backend: Any = None) -> int:
    """1: one process.

    Returns
        An int.
    Example
        >>> from stride import jax
        >>> jax.process_count()
        1
    """
    return 1


def process_index(backend: Any = None) -> int:
    """0: one process.

    Returns
        An int.
    Example
        >>> from stride import jax
        >>> jax.process_index()
        0
    """
    return 0


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: bool = False, may_alias: Any = None) -> Any:
    """A pytree's arrays and numbers as arrays, on a device.

    Parameters
        x: a pytree.
        device: a Device, a SingleDeviceSharding, or None for where they are used.
        src, donate, may_alias: change nothing.
    Returns
        A pytree of arrays.
    Example
        >>> from stride import jax
        >>> jax.device_put(np.arange(2)).tolist()
        [0, 1]
    """
    if isinstance(device, SingleDeviceSharding):
        device = next(iter(device.device_set))

    def one_put(one: Any) -> Any:
        array = jnp.asarray(one)
        return array.to_device(device.name) if isinstance(device, Device) else array

    return tree_util.tree_map(one_put, x)


def device_get(x: Any) -> Any:
    """A pytree's arrays as NumPy's.

    Parameters
        x: a pytree.
    Returns
        A pytree.
    Example
        >>> from stride import jax
        >>> jax.device_get(jax.numpy.arange(2))
        array([0, 1], dtype=int32)
    """
    return tree_util.tree_map(lambda one: np.asarray(one) if isinstance(one, _Plain) else one, x)


def block_until_ready(x: Any) -> Any:
    """Waits for a pytree's arrays.

    Parameters
        x: a pytree.
    Returns
        `x`.
    Raises
        The error of an operation that computes one of them.
    Example
        >>> from stride import jax
        >>> jax.block_until_ready(jax.numpy.arange(2)).tolist()
        [0, 1]
    """
    return as_jax(_transfers.block_until_ready(x))


def typeof(x: Any) -> Any:
    """Shape and type of an array or number.

    Parameters
        x: an array or a number.
    Returns
        A ShapeDtypeStruct.
    Example
        >>> from stride import jax
        >>> jax.typeof(1.0)
        ShapeDtypeStruct(shape=(), dtype=float32)
    """
    from stride.jax._transforms import ShapeDtypeStruct

    array = jnp.asarray(x)
    return ShapeDtypeStruct(array.shape, array.dtype)
