"""`jax.sharding`: devices as JAX has them. Arrays are spread by `stride.Sharding`, not by a mesh."""

from typing import Any

from stride import _errors

__all__ = ["Device", "Mesh", "NamedSharding", "PartitionSpec", "Sharding", "SingleDeviceSharding"]


class Device:
    """A device of the session's daemon.

    Example
        >>> from stride import jax
        >>> jax.devices()[0].id
        0
    """

    def __init__(self, number: int, name: str, kind: str):
        self.id, self.name, self.local_hardware_id, self.process_index = number, name, number, 0
        self.platform = "gpu" if kind == "cuda" else "cpu"
        self.device_kind = kind

    def __repr__(self) -> str:
        return f"{'CudaDevice' if self.platform == 'gpu' else 'CpuDevice'}(id={self.id})"

    __str__ = __repr__

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Device) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class Sharding:
    """Where an array is."""


class SingleDeviceSharding(Sharding):
    """On one device.

    Parameters
        device: the device.
    Example
        >>> from stride import jax
        >>> len(jax.sharding.SingleDeviceSharding(jax.devices()[0]).device_set)
        1
    """

    def __init__(self, device: Device):
        self.device_set = {device}
        self.is_fully_addressable = self.is_fully_replicated = True

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={next(iter(self.device_set))})"


class PartitionSpec(tuple):
    """Names of a mesh's axes for the axes of an array; it has no effect without a mesh.

    Example
        >>> from stride import jax
        >>> jax.sharding.PartitionSpec("x", None)
        PartitionSpec('x', None)
    """

    def __new__(cls, *partitions: Any):
        return super().__new__(cls, partitions)

    def __repr__(self) -> str:
        return f"PartitionSpec{tuple(self)!r}"


def _missing(name: str) -> _errors.Unimplemented:
    return _errors.Unimplemented(
        f"jax.sharding.{name} is not there: arrays are spread over devices by stride.Sharding and x.to_sharding",
        reason="NOT_IMPLEMENTED", metadata={"feature": f"jax.sharding.{name}"})


class Mesh:
    """Not there.

    Raises
        Unimplemented, which names `stride.Sharding`.
    """

    def __init__(self, *_: Any, **__: Any):
        raise _missing("Mesh")


class NamedSharding(Sharding):
    """Not there.

    Raises
        Unimplemented, which names `stride.Sharding`.
    """

    def __init__(self, *_: Any, **__: Any):
        raise _missing("NamedSharding")


def sharding_of(array: Any) -> SingleDeviceSharding:
    """The single device that an array is on, or will be computed on by default.

    Parameters
        array: an array.
    Returns
        A SingleDeviceSharding.
    Example
        >>> from stride import jax
        >>> len(jax.sharding.sharding_of(jax.numpy.ones(1)).device_set)
        1
    """
    from stride.jax import _runtime

    return SingleDeviceSharding(_runtime.devices()[0])
