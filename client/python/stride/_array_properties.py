"""The attributes of arrays: shape, type, memory, device, and the views T, real and imag."""

from typing import TYPE_CHECKING, Any, Optional, Tuple

import numpy as np

import stride as _st  # whose modules import arrays: each is read at a call
from stride._execution import DeviceName
from stride._graph import elementwise

if TYPE_CHECKING:
    from stride._array import Array
    from stride._array_attributes import Flags, Flat
    from stride._sharding import Sharding


class Properties:
    """A part of Array."""

    __slots__ = ()

    # --- attributes ---

    @property
    def shape(self) -> Tuple[int, ...]:
        """How many elements there are along each axis.

        Example
            >>> st.zeros((2, 3)).shape
            (2, 3)
        """
        return self._node.shape

    @shape.setter
    def shape(self, shape) -> None:
        """Another shape of the same elements, where that is a view."""
        try:
            view = _st._manipulation.reshape(self, shape, copy=False)
        except ValueError as error:
            if "no view of this array" not in str(error):
                raise
            raise AttributeError(
                "Incompatible shape for in-place modification. Use `.reshape()` to make a copy."
            ) from None
        self._node, view._node = view._node, self._node

    @property
    def strides(self) -> Tuple[int, ...]:
        """How many bytes lie between neighbours along each axis.

        Example
            >>> st.zeros((2, 3)).strides
            (24, 8)
        """
        from stride import _array_attributes

        return _array_attributes.byte_strides(self)

    @property
    def flags(self) -> "Flags":
        """How the elements lie: c_contiguous, f_contiguous, owndata, writeable and so on.

        Example
            >>> st.zeros((2, 3)).flags.c_contiguous
            True
        """
        from stride import _array_attributes

        return _array_attributes.Flags(self)

    @property
    def base(self) -> Optional["Array"]:
        """The array that this is a view of. None if the array owns its elements, and once the base is
        deleted: its views then own them.

        Example
            >>> x = st.arange(4)
            >>> x[1:].base is x, x.base
            (True, None)
        """
        buffer = self._node.buffer
        owner = None if buffer is None or buffer.owner is None else buffer.owner()
        return None if owner is None or owner is self or owner._node.buffer is not buffer else owner

    @property
    def flat(self) -> "Flat":
        """The elements in C order, to iterate over, to index and to write.

        Example
            >>> [int(one) for one in st.array([[1, 2], [3, 4]]).flat]
            [1, 2, 3, 4]
        """
        from stride import _array_attributes

        return _array_attributes.Flat(self)

    @flat.setter
    def flat(self, value) -> None:
        from stride import _array_attributes

        _array_attributes.Flat(self)[:] = value

    @property
    def dtype(self) -> np.dtype:
        """The element type.

        Example
            >>> st.zeros(2, st.float32).dtype
            dtype('float32')
        """
        return self._node.dtype

    @property
    def ndim(self) -> int:
        """The number of axes.

        Example
            >>> st.zeros((2, 3)).ndim
            2
        """
        return len(self._node.shape)

    @property
    def size(self) -> int:
        """The number of elements.

        Example
            >>> st.zeros((2, 3)).size
            6
        """
        return self._node.size

    @property
    def nbytes(self) -> int:
        """The bytes of all elements.

        Example
            >>> st.zeros((2, 3), st.float32).nbytes
            24
        """
        return self._node.nbytes

    @property
    def itemsize(self) -> int:
        """The bytes of an element.

        Example
            >>> st.zeros(2, st.float32).itemsize
            4
        """
        return self._node.dtype.itemsize

    @property
    def session(self):
        """The session that it belongs to.

        Example
            >>> st.zeros(2).session is st.current_session()
            True
        """
        return self._node.session

    @property
    def device(self) -> str:
        """The device that it was put on or that the session's operations run on, or `auto` where the daemon chooses for
        each.

        Example
            >>> isinstance(st.zeros(2).device, str)
            True
        """
        return DeviceName(self._node.device.replace("devices/", "", 1) or "auto")

    def to_device(self, device: str, /, *, stream: Optional[Any] = None) -> "Array":
        """A copy there; this array itself when that is where it is.

        Parameters
            device: the name of a device, such as `cuda:0`.
            stream: None; the array API has others for libraries with streams.
        Returns
            An array of the same shape and type.
        Raises
            NotFound for a device that the daemon does not have, ValueError for a stream.
        Example
            >>> st.arange(2).to_device(st.devices()[0].name).tolist()
            [0, 1]
        """
        if stream is not None:
            raise ValueError("the service has no streams: stream must be None")
        return self if device == self.device else _st._casts.to_device(self, device)

    @property
    def sharding(self) -> Optional["Sharding"]:
        """How it is spread over devices, as the daemon says; None: it is in one piece.

        Example
            >>> print(st.zeros(2).sharding)
            None
        """
        from stride._sharding import Sharding

        if not self._node.handle and self._node.op is None and self._node.host is not None:
            return None
        described = self._node.session._describe(self._node)
        return Sharding.from_proto(described.sharding) if described.HasField("sharding") else None

    def to_sharding(self, sharding: Optional["Sharding"], /) -> "Array":
        """A copy spread in this way; None: in one piece.

        Parameters
            sharding: a Sharding, or None.
        Returns
            An array of the same shape and type.
        Raises
            NotFound for a device that the daemon does not have.
        Example
            >>> st.arange(2).to_sharding(None).tolist()
            [0, 1]
        """
        from stride._sharding import reshard

        return reshard(self, sharding)

    @property
    def T(self) -> "Array":  # noqa: N802, NumPy's name
        """A view with all axes reversed.

        Example
            >>> st.zeros((2, 3)).T.shape
            (3, 2)
        """
        return _st._manipulation.permute_dims(self)

    @property
    def mT(self) -> "Array":  # noqa: N802, the standard's name
        """A view of matrices in the last two axes with rows and columns exchanged.

        Example
            >>> st.zeros((5, 2, 3)).mT.shape
            (5, 3, 2)
        """
        return _st._manipulation.matrix_transpose(self)

    @property
    def real(self) -> "Array":
        """A view of the real parts; for an array of real numbers, the array itself.

        Example
            >>> st.array([1 + 2j]).real.tolist()
            [1.0]
        """
        if self.dtype.kind != "c":
            return self
        from stride import _array_attributes

        return _array_attributes.real_part(self)

    @property
    def imag(self) -> "Array":
        """A view of the imaginary parts; for an array of real numbers, zeros for reading.

        Example
            >>> st.array([1 + 2j]).imag.tolist()
            [2.0]
        """
        if self.dtype.kind != "c":
            return _st._array.wrap(elementwise("imag", (self._node,)).freeze())
        from stride import _array_attributes

        return _array_attributes.imaginary_part(self)

    @real.setter
    def real(self, value) -> None:
        """Writes the real parts; the imaginary ones stay."""
        from stride import _array_attributes

        if self.dtype.kind != "c":
            self[...] = value
        elif not _array_attributes.is_part(value, self, "real"):
            self[...] = _array_attributes.complex_of(value, self.imag)

    @imag.setter
    def imag(self, value) -> None:
        """Writes the imaginary parts; the real ones stay."""
        from stride import _array_attributes

        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        if not _array_attributes.is_part(value, self, "imag"):
            self[...] = _array_attributes.complex_of(self.real, value)
