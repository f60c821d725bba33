"""Arrays read as NumPy's arrays, as Python's numbers and lists, and by other libraries."""

import operator
import warnings
from typing import TYPE_CHECKING, Iterator, Tuple

import numpy as np

import stride as _st  # whose modules import arrays: each is read at a call

if TYPE_CHECKING:
    from stride._array import Array


def _real_number(value):
    """Python's number without its imaginary part, with NumPy's warning."""
    if type(value) is not complex:
        return value
    warnings.warn(
        "Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning, stacklevel=3
    )
    return value.real


BLOCK_BYTES = 64 << 10  # that the host keeps of what it reads


class Reading:
    """A part of Array."""

    __slots__ = ()

    # --- reading ---

    def _read(self) -> np.ndarray:
        return self._node.session._read(self._node)

    def to_numpy(self, *, progress=None) -> np.ndarray:
        """A copy on the host. `progress(done_bytes, total_bytes)` is called while a large array comes down.

        Parameters
            progress: a function of two numbers of bytes, or None.
        Returns
            A numpy.ndarray of the same shape and type.
        Raises
            The error of the operation that computes the array.
        Example
            >>> st.arange(3).to_numpy()
            array([0, 1, 2])
        """
        return self._node.session._read_own(self._node, progress)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        if copy is False:
            raise ValueError("the elements are on a device: reading them is always a copy")
        if dtype is not None and np.dtype(dtype) != self.dtype:
            return self._read().astype(dtype)
        return self.to_numpy()

    @property
    def __array_interface__(self) -> dict:
        """A copy on the host, for libraries that take memory in this way, as Pillow does. The strides are always
        there: such a library then asks for `tobytes`, since an array has no buffer of the host."""
        host = self.__array__()
        if host.dtype.kind not in "biufc":
            raise AttributeError(f"the array interface has no element type {host.dtype}")
        if not (host.flags.c_contiguous or host.flags.f_contiguous):
            host = np.ascontiguousarray(host)
        data = host.ravel("K").data  # a view: the elements as they lie
        return {"version": 3, "shape": host.shape, "typestr": host.dtype.str, "strides": host.strides, "data": data}

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """A DLPack capsule of a copy on the host. `copy=False`: the cached elements of a small array, which
        the consumer then owns; the mapped memory of an array on a CPU device of this machine, for reading.
        `dl_device` a GPU: the mapped memory of an array there."""
        from stride import _interchange

        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            if copy or tuple(dl_device)[0] != 2:  # kDLCUDA
                raise BufferError(f"only host memory and a GPU's are given, not device {tuple(dl_device)}")
            return self.map_memory().__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)
        if stream not in (None, -1):
            raise BufferError(f"host memory has no streams: stream must be None, not {stream!r}")
        if copy is False and not self._node.session._may_hand_over(self._node):
            return _interchange.mapped_on_host(self).__dlpack__(max_version=max_version)
        values = self._node.session._hand_over(self._node) if copy is False else self.to_numpy()
        return _interchange.exported(values, max_version)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (1, 0)  # kDLCPU

    def item(self, *args):
        """An element as Python's number: the only one, or the one at a place in C order or at indices.

        Parameters
            args: nothing, a number in C order, or an index for each axis.
        Returns
            A bool, an int, a float or a complex.
        Raises
            ValueError where no place is given and there is not one element; IndexError for a place outside.
        Example
            >>> st.array([[1, 2], [3, 4]]).item(1, 0)
            3
        """
        if args:
            index = args[0] if len(args) == 1 else args
            if isinstance(index, tuple) and len(index) == 1:
                index = index[0]
            if not isinstance(index, tuple):
                return _st._manipulation.ravel(self)[operator.index(index)]._read().item()
            if len(index) != self.ndim:
                raise ValueError("incorrect number of indices for array")
            return self[index]._read().item()
        if self.size != 1:
            raise ValueError("only an array of one element is a Python scalar")
        return self._read().item()

    def tolist(self):
        """The elements as nested lists of Python's numbers.

        Returns
            Nested lists, as deep as there are axes; a number for an array without axes.
        Raises
            The error of the operation that computes the array.
        Example
            >>> st.array([[1, 2], [3, 4]]).tolist()
            [[1, 2], [3, 4]]
        """
        return self._read().tolist()

    def _one(self, what: str):
        if self.size != 1:
            raise TypeError(f"only an array of one element converts to {what}; this one has the shape {self.shape}")
        return self._read().item()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError("the truth of an array is ambiguous; use stride.any or stride.all")
        return bool(self._one("bool"))

    def __int__(self) -> int:
        return int(_real_number(self._one("int")))

    def __float__(self) -> float:
        return float(_real_number(self._one("float")))

    def __complex__(self) -> complex:
        return complex(self._one("complex"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" or self.ndim:
            raise TypeError("only a zero-dimensional array of integers is an index")
        return operator.index(self._one("int"))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a zero-dimensional array has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator["Array"]:
        if not self.shape:
            raise TypeError("a zero-dimensional array cannot be iterated over")
        return self._rows()

    def _rows(self) -> Iterator["Array"]:
        """Reads in blocks, rather than one element at a time."""
        count = self.shape[0]
        if self._node.session._is_trace or self.nbytes <= BLOCK_BYTES:
            if not self._node.session._is_trace:
                self._read()
            yield from (self[i] for i in range(count))
            return
        step = max(1, BLOCK_BYTES * count // self.nbytes)
        for begin in range(0, count, step):
            block = self[begin:begin + step]
            if block.nbytes <= BLOCK_BYTES:
                block._read()
            yield from (block[i] for i in range(block.shape[0]))

    def __contains__(self, value) -> bool:
        """True if an element equals the value: one round trip."""
        found = self == value
        return bool(found if isinstance(found, bool) else _st._reductions.any(found))


for _name, _method in vars(Reading).items():
    if callable(_method):
        _method.__qualname__ = f"Array.{_name}"  # which errors about arguments name
