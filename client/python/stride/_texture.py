"""An array that a kernel reads through a texture, as an argument of a launch."""

from typing import Optional, Sequence

from stride.v1 import operation_pb2 as pb


class Texture:
    """The argument of a launch for a `cudaTextureObject_t`. The kernel reads the array as it is in the
    launch's turn."""

    def __init__(
        self,
        array,
        *,
        layout: int = pb.Texture.LAYOUT_IMAGE,
        extents: Sequence[int] = (),
        pitch_bytes: int = 0,
        channels: int = 1,
        address_modes: Sequence[int] = (),
        filter: int = pb.Texture.FILTER_POINT,
        normalized_coordinates: bool = False,
        normalized_values: bool = False,
        border_color: Sequence[float] = (),
        described: Optional[pb.Texture] = None,
    ):
        self.array = array
        self._described = described or pb.Texture(
            layout=layout,
            extents=extents,
            pitch_bytes=pitch_bytes,
            channels=channels,
            address_modes=address_modes,
            filter=filter,
            normalized_coordinates=normalized_coordinates,
            normalized_values=normalized_values,
            border_color=border_color,
        )

    def __repr__(self) -> str:
        return f"<stride texture of {self.array.dtype}{tuple(self.array.shape)}>"

    def of(self, array) -> "Texture":
        """The same texture of another array."""
        return Texture(array, described=self._described)

    def to_proto(self, flush) -> pb.Texture:
        message = pb.Texture()
        message.CopyFrom(self._described)
        message.array.CopyFrom(flush.operand(self.array._node))
        return message
