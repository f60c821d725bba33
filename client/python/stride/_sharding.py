"""Arrays spread over several devices."""

from dataclasses import dataclass
from typing import Optional, Sequence, Tuple

from stride import _dtypes
from stride._array import Array, wrap
from stride._graph import record
from stride._session import _device_name
from stride.v1 import array_pb2, operation_pb2 as pb

__all__ = ["Sharding", "reshard"]


@dataclass(frozen=True)
class Sharding:
    """How an array is spread: split along `axis` as numpy.array_split does, or `replicated`, a copy on each device.

    `devices` are in the order of the parts, such as `("cuda:0", "cuda:1")`; None: all that serve, of the kind that
    the daemon prefers.

    Parameters
        axis: the axis that is split.
        devices: names of devices in the order of the parts; None for all that serve.
        replicated: whether each device has a copy of all.
    Raises
        InvalidArgument, when an array is spread, for an axis or a device that there is not.
    Example
        >>> st.Sharding(axis=1).axis
        1
    """

    axis: int = 0
    devices: Optional[Tuple[str, ...]] = None
    replicated: bool = False

    def __post_init__(self):
        if self.devices is not None:
            devices: Sequence[str] = (self.devices,) if isinstance(self.devices, str) else self.devices
            object.__setattr__(
                self, "devices", tuple(_device_name(device).replace("devices/", "", 1) for device in devices)
            )
        if self.replicated and self.axis:
            raise ValueError("a replicated array is split along no axis")

    def to_proto(self) -> array_pb2.Sharding:
        """The message that describes the sharding to the daemon.

        Returns
            A stride.v1 message.
        Example
            >>> st.Sharding(axis=1).to_proto().axis
            1
        """
        return array_pb2.Sharding(
            axis=self.axis, replicated=self.replicated, devices=[_device_name(device) for device in self.devices or ()]
        )

    @staticmethod
    def from_proto(proto: array_pb2.Sharding) -> "Sharding":
        """The sharding that a message of the daemon describes.

        Parameters
            proto: a stride.v1 message.
        Returns
            A Sharding.
        Example
            >>> st.Sharding.from_proto(st.Sharding(axis=1).to_proto()).axis
            1
        """
        return Sharding(proto.axis, tuple(proto.devices), proto.replicated)


def reshard(x: Array, sharding: Optional[Sharding], /) -> Array:
    """A copy that is spread in this way; None: in one piece, on one device.

    Parameters
        x: the array.
        sharding: a Sharding, or None.
    Returns
        An array of `x`'s shape and type.
    Raises
        NotFound for a device that the daemon does not have.
    Example
        >>> st.reshard(st.arange(2), None).tolist()
        [0, 1]
    """

    def build(flush, node, operands):
        operation = pb.Operation(copy=pb.Copy(input=operands[0]))
        output = operation.outputs.add(handle=node.handle)
        if sharding is not None:
            output.sharding.CopyFrom(sharding.to_proto())
        flush.add(operation, node.origin)

    node = x._node
    if sharding is not None:
        node.session._has_sharded = True
    return wrap(record(node.session, node.shape, _dtypes.dtype_of(node.dtype), build, (node,)))
