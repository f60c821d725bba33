"""CuPy's textures: descriptors, arrays of texels, and objects that a kernel takes as `cudaTextureObject_t`.

    channel = texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat)
    image = texture.CUDAarray(channel, width, height)
    image.copy_from(x)
    resource = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=image)
    sampling = texture.TextureDescriptor((runtime.cudaAddressModeClamp,) * 2, runtime.cudaFilterModeLinear)
    kernel(grid, block, (texture.TextureObject(resource, sampling), y))

A texture reads its array as it is in a launch's turn."""

from typing import Dict, Optional, Sequence, Tuple

import numpy as np

from stride import _casts, _creation, _errors
from stride._array import Array, node_of, wrap
from stride._texture import Texture
from stride.cupy.cuda import runtime
from stride.v1 import operation_pb2 as pb

__all__ = [
    "CUDAarray",
    "ChannelFormatDescriptor",
    "ResourceDescriptor",
    "SurfaceObject",
    "TextureDescriptor",
    "TextureObject",
]

_LETTERS = {
    runtime.cudaChannelFormatKindSigned: "i",
    runtime.cudaChannelFormatKindUnsigned: "u",
    runtime.cudaChannelFormatKindFloat: "f",
}


class ChannelFormatDescriptor:
    """The channels of a texel: the bits of each, and what they are.

    Parameters
        x: the bits of the first channel: 8, 16 or 32.
        y: those of the second, or 0.
        z: those of the third, or 0.
        w: those of the fourth, or 0.
        f: what they are, such as `runtime.cudaChannelFormatKindFloat`.
    Raises
        ValueError for a format that no array has.
    Example
        >>> import stride.cupy as cp
        >>> kind = cp.cuda.runtime.cudaChannelFormatKindFloat
        >>> cp.cuda.texture.ChannelFormatDescriptor(32, 0, 0, 0, kind).get_channel_format()["x"]
        32
    """

    def __init__(self, x: int, y: int, z: int, w: int, f: int):
        self._bits, self._kind = (x, y, z, w), f
        channels = [one for one in self._bits if one]
        if len(channels) not in (1, 2, 4) or any(self._bits[len(channels) :]) or len(set(channels)) != 1:
            raise ValueError(f"a texel has 1, 2 or 4 channels of one size, the first ones: {self._bits}")
        if f not in _LETTERS:
            raise ValueError(f"channels are signed, unsigned or float (runtime.cudaChannelFormatKind...): {f}")
        if channels[0] not in ((16, 32) if _LETTERS[f] == "f" else (8, 16, 32)):
            raise ValueError(f"a channel has 8, 16 or 32 bits, a float 16 or 32: {channels[0]}")
        self._channels = len(channels)
        self._dtype = np.dtype(f"{_LETTERS[f]}{channels[0] // 8}")

    def get_channel_format(self) -> Dict[str, int]:
        """The fields that it was made of.

        Returns
            A dict with x, y, z, w and f.
        Example
            >>> import stride.cupy as cp
            >>> kind = cp.cuda.runtime.cudaChannelFormatKindUnsigned
            >>> sorted(cp.cuda.texture.ChannelFormatDescriptor(8, 8, 0, 0, kind).get_channel_format())
            ['f', 'w', 'x', 'y', 'z']
        """
        return {**dict(zip("xyzw", self._bits)), "f": self._kind}


class CUDAarray:
    """An image of texels with one to three axes, all zero at first.

    Parameters
        desc: a texel's channels.
        width: texels of a row.
        height: rows; 0 of an image with one axis.
        depth: layers; 0 of an image with one or two axes.
        flags: accepted.
    Raises
        ValueError for a width of 0, or a depth without a height.
    Example
        >>> import stride.cupy as cp
        >>> channel = cp.cuda.texture.ChannelFormatDescriptor(32, 0, 0, 0, cp.cuda.runtime.cudaChannelFormatKindFloat)
        >>> cp.cuda.texture.CUDAarray(channel, 4, 3).ndim
        2
    """

    def __init__(self, desc: ChannelFormatDescriptor, width: int, height: int = 0, depth: int = 0, flags: int = 0):
        if width == 0:
            raise ValueError("To create a CUDA array, width must be nonzero.")
        if height == 0 and depth > 0:
            raise ValueError("To create a 2D CUDA array, height must be nonzero.")
        self.desc, self.width, self.height, self.depth, self.flags = desc, width, height, depth, flags
        self.ndim = 3 if depth > 0 else 2 if height > 0 else 1
        self._array: Optional[Array] = None

    def _shape(self) -> Tuple[int, ...]:
        return (self.depth, self.height, self.desc._channels * self.width)[3 - self.ndim :]

    def _texels(self) -> Array:
        if self._array is None:
            self._array = _creation.zeros(self._shape(), dtype=self.desc._dtype)
        return self._array

    def _check(self, array) -> None:
        if tuple(array.shape) != self._shape():
            raise ValueError(f"shape mismatch: the image's texels are {self._shape()}, not {tuple(array.shape)}")
        if array.dtype != self.desc._dtype:
            raise ValueError(f"dtype mismatch: the image's channels are {self.desc._dtype}, not {array.dtype}")

    def copy_from(self, in_arr, stream=None) -> None:
        """Sets the texels.

        Parameters
            in_arr: an array of the service or of the host, of shape `(depth, height, channels * width)`.
            stream: accepted.
        Returns
            None.
        Raises
            ValueError for another shape or type.
        Example
            >>> import stride.cupy as cp
            >>> kind = cp.cuda.runtime.cudaChannelFormatKindFloat
            >>> image = cp.cuda.texture.CUDAarray(cp.cuda.texture.ChannelFormatDescriptor(32, 0, 0, 0, kind), 3)
            >>> image.copy_from(cp.ones(3, cp.float32))
        """
        self._check(in_arr)
        self._array = _casts.copy(in_arr if isinstance(in_arr, Array) else wrap(node_of(np.array(in_arr))))

    def copy_to(self, out_arr, stream=None) -> None:
        """Copies the texels to an array.

        Parameters
            out_arr: an array of the service or of the host, of shape `(depth, height, channels * width)`.
            stream: accepted.
        Returns
            None.
        Raises
            ValueError for another shape or type, or an array that is not contiguous.
        Example
            >>> import stride.cupy as cp
            >>> kind = cp.cuda.runtime.cudaChannelFormatKindFloat
            >>> image = cp.cuda.texture.CUDAarray(cp.cuda.texture.ChannelFormatDescriptor(32, 0, 0, 0, kind), 2)
            >>> x = cp.ones(2, cp.float32)
            >>> image.copy_to(x)
            >>> x.tolist()
            [0.0, 0.0]
        """
        self._check(out_arr)
        if not out_arr.flags.c_contiguous:
            raise ValueError("The output array must be C-contiguous")
        out_arr[...] = self._texels() if isinstance(out_arr, Array) else np.asarray(self._texels())


class ResourceDescriptor:
    """Where texels lie: in a CUDAarray, in an array read by numbers of texels, or in an array of rows.

    Parameters
        restype: `runtime.cudaResourceTypeArray`, `cudaResourceTypeLinear` or `cudaResourceTypePitch2D`.
        cuArr: the CUDAarray.
        arr: else the array, whose bytes are read as `chDesc` says.
        chDesc: the channels of a texel of `arr`.
        sizeInBytes: the bytes of `arr` that are texels; of linear memory.
        width: texels of a row; of rows.
        height: the number of rows.
        pitchInBytes: the bytes from one row to the next.
    Raises
        NotImplementedError for mipmaps; TypeError for what is missing.
    Example
        >>> import stride.cupy as cp
        >>> channel = cp.cuda.texture.ChannelFormatDescriptor(32, 0, 0, 0, cp.cuda.runtime.cudaChannelFormatKindFloat)
        >>> kind = cp.cuda.runtime.cudaResourceTypeLinear
        >>> x = cp.zeros(8, cp.float32)
        >>> resource = cp.cuda.texture.ResourceDescriptor(kind, arr=x, chDesc=channel, sizeInBytes=32)
        >>> resource.get_resource_desc()["resType"]
        2
    """

    def __init__(
        self,
        restype: int,
        cuArr: Optional[CUDAarray] = None,  # noqa: N803
        arr: Optional[Array] = None,
        chDesc: Optional[ChannelFormatDescriptor] = None,  # noqa: N803
        sizeInBytes: int = 0,  # noqa: N803
        width: int = 0,
        height: int = 0,
        pitchInBytes: int = 0,  # noqa: N803
    ):
        if restype == runtime.cudaResourceTypeMipmappedArray:
            raise NotImplementedError("cudaResourceTypeMipmappedArray is currently not supported.")
        if restype == runtime.cudaResourceTypeArray:
            if not isinstance(cuArr, CUDAarray):
                raise TypeError("cudaResourceTypeArray needs cuArr, a CUDAarray")
        elif restype not in (runtime.cudaResourceTypeLinear, runtime.cudaResourceTypePitch2D):
            raise ValueError(f"restype is one of runtime.cudaResourceType..., not {restype}")
        elif not isinstance(arr, Array) or not isinstance(chDesc, ChannelFormatDescriptor):
            raise TypeError("linear memory and rows need arr, an array of the service, and chDesc")
        self.chDesc, self.cuArr, self.arr, self._type = chDesc, cuArr, arr, restype
        self._size, self._width, self._height, self._pitch = sizeInBytes, width, height, pitchInBytes

    def get_resource_desc(self) -> Dict:
        """The fields that it was made of. Arrays have no address in a client and stand there themselves.

        Returns
            A dict.
        Example
            >>> import stride.cupy as cp
            >>> kind = cp.cuda.runtime.cudaChannelFormatKindFloat
            >>> image = cp.cuda.texture.CUDAarray(cp.cuda.texture.ChannelFormatDescriptor(32, 0, 0, 0, kind), 3)
            >>> cp.cuda.texture.ResourceDescriptor(0, cuArr=image).get_resource_desc()["resType"]
            0
        """
        made: Dict = {"resType": self._type}
        if self._type == runtime.cudaResourceTypeArray:
            return {**made, "array": {"array": self.cuArr}}
        described = {"devPtr": self.arr, "desc": self._channel().get_channel_format()}
        if self._type == runtime.cudaResourceTypeLinear:
            return {**made, "linear": {**described, "sizeInBytes": self._size}}
        shape = {"width": self._width, "height": self._height, "pitchInBytes": self._pitch}
        return {**made, "pitch2D": {**described, **shape}}

    def _channel(self) -> ChannelFormatDescriptor:
        channel = self.chDesc if self.cuArr is None else self.cuArr.desc
        assert channel is not None
        return channel

    def _fields(self) -> Tuple[Array, Dict]:
        """The array of texels, and what of a texture's description is the resource's."""
        channel = self._channel()
        fields: Dict = {"channels": channel._channels}
        if self.cuArr is not None:
            return self.cuArr._texels(), fields
        assert self.arr is not None
        texels = self.arr if self.arr.dtype == channel._dtype else self.arr.view(channel._dtype)
        if self._type == runtime.cudaResourceTypeLinear:
            texel_bytes = channel._channels * channel._dtype.itemsize
            return texels, {**fields, "layout": pb.Texture.LAYOUT_LINEAR, "extents": (self._size // texel_bytes,)}
        return texels, {**fields, "extents": (self._width, self._height), "pitch_bytes": self._pitch}


class TextureDescriptor:
    """How a texture is read.

    Parameters
        addressModes: for each axis what a coordinate outside reads, such as `runtime.cudaAddressModeClamp`.
        filterMode: `runtime.cudaFilterModePoint` or `cudaFilterModeLinear`.
        readMode: `runtime.cudaReadModeElementType`, or `cudaReadModeNormalizedFloat` for floats from integers.
        sRGB: only false.
        borderColors: what each channel is outside, with `runtime.cudaAddressModeBorder`.
        normalizedCoords: whether coordinates are from 0 to 1.
        maxAnisotropy: accepted: there are no smaller copies of an image to choose from.
    Raises
        Unimplemented for sRGB.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.texture.TextureDescriptor((1, 1), 0, 0).get_texture_desc()["filterMode"]
        0
    """

    def __init__(
        self,
        addressModes: Optional[Sequence[int]] = None,  # noqa: N803
        filterMode: int = 0,  # noqa: N803
        readMode: int = 0,  # noqa: N803
        sRGB: Optional[int] = None,  # noqa: N803
        borderColors: Optional[Sequence[float]] = None,  # noqa: N803
        normalizedCoords: Optional[int] = None,  # noqa: N803
        maxAnisotropy: Optional[int] = None,  # noqa: N803
    ):
        modes, colors = tuple(addressModes or ()), tuple(borderColors or ())
        assert len(modes) <= 3 and len(colors) <= 4
        if any(one not in range(4) for one in modes) or filterMode not in (0, 1) or readMode not in (0, 1):
            raise ValueError("modes are those of runtime.cudaAddressMode..., cudaFilterMode... and cudaReadMode...")
        if sRGB:
            raise _errors.Unimplemented(
                "TextureDescriptor: sRGB is not there: convert the texels",
                reason="NOT_IMPLEMENTED",
                metadata={"feature": "sRGB"},
            )
        self._modes, self._filter, self._read, self._colors = modes, filterMode, readMode, colors
        self._normalized, self._anisotropy = int(normalizedCoords or 0), int(maxAnisotropy or 0)

    def get_texture_desc(self) -> Dict:
        """The fields that it was made of.

        Returns
            A dict.
        Example
            >>> import stride.cupy as cp
            >>> cp.cuda.texture.TextureDescriptor().get_texture_desc()["addressMode"]
            (0, 0, 0)
        """
        return {
            "addressMode": (self._modes + (0, 0, 0))[:3],
            "filterMode": self._filter,
            "readMode": self._read,
            "sRGB": 0,
            "borderColor": (self._colors + (0.0,) * 4)[:4],
            "normalizedCoords": self._normalized,
            "maxAnisotropy": self._anisotropy,
        }

    def _fields(self) -> Dict:
        # CUDA's numbers are one less than the contract's. Those that are not given are 0, as in CUDA.
        return {
            "address_modes": [one + 1 for one in (self._modes + (0, 0, 0))[:3]],
            "filter": pb.Texture.FILTER_LINEAR if self._filter else pb.Texture.FILTER_POINT,
            "normalized_coordinates": bool(self._normalized),
            "normalized_values": bool(self._read),
            "border_color": self._colors,
        }


class TextureObject:
    """A texture, as an argument of a RawKernel or an ElementwiseKernel.

    Parameters
        ResDesc: where the texels lie.
        TexDesc: how they are read.
    Example
        >>> import stride.cupy as cp
        >>> kind = cp.cuda.runtime.cudaChannelFormatKindFloat
        >>> image = cp.cuda.texture.CUDAarray(cp.cuda.texture.ChannelFormatDescriptor(32, 0, 0, 0, kind), 3)
        >>> image.copy_from(cp.arange(3, dtype=cp.float32))
        >>> resource = cp.cuda.texture.ResourceDescriptor(0, cuArr=image)
        >>> clamp = cp.cuda.texture.TextureDescriptor((1,), 0, 0)
        >>> source = '''extern "C" __global__ void read(cudaTextureObject_t t, float* y) {
        ...   y[threadIdx.x] = tex1D<float>(t, threadIdx.x);
        ... }'''
        >>> y = cp.zeros(4, cp.float32)
        >>> cp.RawKernel(source, "read")((1,), (4,), (cp.cuda.texture.TextureObject(resource, clamp), y))
        >>> y.tolist()
        [0.0, 1.0, 2.0, 2.0]
    """

    def __init__(self, ResDesc: ResourceDescriptor, TexDesc: TextureDescriptor):  # noqa: N803
        self.ResDesc, self.TexDesc = ResDesc, TexDesc

    @property
    def _as_kernel_argument(self) -> Texture:
        texels, fields = self.ResDesc._fields()
        return Texture(texels, **fields, **self.TexDesc._fields())


class SurfaceObject:
    """Refused: a kernel writes arrays through pointers.

    Parameters
        ResDesc: where the texels lie.
    Raises
        Unimplemented.
    Example
        >>> import stride.cupy as cp
        >>> try:
        ...     cp.cuda.texture.SurfaceObject(None)
        ... except st.Unimplemented:
        ...     print("refused")
        ...
        refused
    """

    def __init__(self, ResDesc: Optional[ResourceDescriptor]):  # noqa: N803
        raise _errors.Unimplemented(
            "SurfaceObject is not there: a kernel writes arrays through pointers",
            reason="NOT_IMPLEMENTED",
            metadata={"feature": "surfaces"},
        )
