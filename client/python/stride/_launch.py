"""Inputs of a kernel launch: arguments, structs with arrays, values of the module's variables."""

from typing import Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from stride import _dtypes, _encoding
from stride._array import Array, node_of, wrap
from stride._numbers import Number
from stride._texture import Texture
from stride.v1 import array_pb2, operation_pb2 as pb

_POINTER_BYTES = 8
NUMBERS = (int, float, complex, np.number, np.bool_)
# Most of them by their types, which is found out sooner.
NUMBER_TYPES = frozenset((bool, int, float, complex, *[one.type for one in _dtypes.NUMBERS if one.kind in "biufc"]))


# Types that a launch takes as they are.
PLAIN_TYPES = NUMBER_TYPES | {Array}


class Struct:
    """A struct by value, laid out as C does it: arrays (pointers), NumPy scalars, other structs and `bytes` (of
    alignment 1), in order.

        view = stride.Struct(x, np.int64(len(x)))        # struct { float* data; long long size; }

    `size` adds bytes at the end; bytes without a member are zero, so that `Struct(size=8)` is a null pointer.
    The type of a pointer in a struct is not known, so that a launch counts as a write of its arrays.

    Parameters
        members: the members in order.
        size: bytes that follow the last member.
    Raises
        TypeError for a member of another kind.
    Example
        >>> st.Struct(st.zeros(4, st.float32), np.int64(4)).arrays()[0].shape
        (4,)
    """

    def __init__(self, *members, size: int = 0):
        self.alignment = 1
        self.members: List[Tuple[int, object]] = []  # offsets, and arrays or bytes
        end = 0
        for member in members:
            end = self._add(member, end)
        self.size = max(size, -(-end // self.alignment) * self.alignment)
        if self.size < 1:
            raise ValueError("a struct has at least one byte")

    def __repr__(self) -> str:
        return f"<stride.Struct of {self.size} bytes>"

    def _add(self, member, end: int) -> int:
        if isinstance(member, (Array, np.ndarray)):
            size, alignment, parts = _POINTER_BYTES, _POINTER_BYTES, [(0, member)]
        elif isinstance(member, Struct):
            size, alignment, parts = member.size, member.alignment, member.members
        elif isinstance(member, np.generic):
            data = member.tobytes()
            size, alignment, parts = len(data), min(len(data), 16), [(0, data)]
            if member.dtype.kind == "c":
                alignment //= 2
        elif isinstance(member, (bytes, bytearray)):
            size, alignment, parts = len(member), 1, [(0, bytes(member))]
        else:
            raise TypeError(
                "a struct's member is an array, a NumPy scalar, which has a size, bytes or a Struct, not "
                f"{type(member).__name__}"
            )
        start = -(-end // alignment) * alignment
        self.alignment = max(self.alignment, alignment)
        self.members += [
            (start + offset, part) for offset, part in parts if len(part) > 0 or not isinstance(part, bytes)
        ]
        return start + size

    def arrays(self) -> list:
        """The arrays among the members, those of inner structs as well.

        Returns
            A list of arrays.
        Example
            >>> len(st.Struct(st.Struct(st.zeros(2)), st.zeros(3)).arrays())
            2
        """
        return [part for _, part in self.members if not isinstance(part, bytes)]

    def _uploaded(self, session) -> "Struct":
        made = Struct(size=self.size)
        made.alignment = self.alignment
        made.members = [(offset, uploaded(part, session)) for offset, part in self.members]
        return made

    def to_proto(self, flush) -> pb.KernelArgument.Aggregate:
        """The message that describes the struct to the daemon.

        Parameters
            flush: the commands that are about to be sent.
        Returns
            A stride.v1 message.
        Raises
            ValueError for a member of another session.
        Example
            >>> callable(st.Struct(size=8).to_proto)
            True
        """
        message = pb.KernelArgument.Aggregate(size_bytes=self.size)
        for offset, part in self.members:
            member = message.members.add(offset_bytes=offset)
            if isinstance(part, bytes):
                member.raw = part
            else:
                member.array.CopyFrom(flush.operand(part._node))
        return message


def uploaded(value, session):
    """With arrays of the service in place of NumPy's."""
    if isinstance(value, np.ndarray):
        return wrap(node_of(value, session))
    return value._uploaded(session) if isinstance(value, Struct) else value


def arrays_of(values: Sequence) -> List[Array]:
    """Those of the service, within structs and textures too."""
    return [*written_arrays_of(values), *(value.array for value in values if isinstance(value, Texture))]


def written_arrays_of(values: Sequence) -> List[Array]:
    """Those of the service that a kernel may write: not a texture's."""
    found = []
    for value in values:
        if isinstance(value, Array):
            found.append(value)
        elif isinstance(value, Struct):
            found += [one for one in value.arrays() if isinstance(one, Array)]
    return found


def encoded(flush, values: Sequence, variables: Mapping[str, object]) -> Tuple[bytes, tuple, list]:
    """Serialises the arguments of a launch and the values of its module's variables: with the types of both, and the
    buffers of all arrays among them."""
    parts, types, buffers = [], [], []
    session = flush.session
    for value in values:
        kind = type(value)
        if kind is Array:
            node = value._node
            buffer = node.buffer or node.own_buffer()
            is_there = node.handle and buffer.copy is None and node.session is session
            parts.append(_encoding.array_argument(node.handle if is_there else flush.materialise(node)))
            types.append(node.dtype)
            buffers.append(buffer)
        elif kind in NUMBER_TYPES or isinstance(value, NUMBERS):
            parts.append(_encoding.number_argument(value, _scalar))
            types.append(kind)
        else:
            parts.append(_encoding.framed_argument(argument(flush, value).SerializeToString()))
            types.append(getattr(value, "dtype", kind))
            buffers += [one._node.own_buffer() for one in arrays_of((value,))]
    if variables:
        given = variables.values()
        message = pb.KernelLaunch(globals=[global_value(flush, name, value) for name, value in variables.items()])
        parts.append(message.SerializeToString())
        types += [getattr(value, "dtype", type(value)) for value in given]
        buffers += [one._node.own_buffer() for one in arrays_of(tuple(given))]
    return b"".join(parts), tuple(types), buffers


def _scalar(value) -> array_pb2.Scalar:
    return Number(value).to_proto()


def argument(flush, value) -> pb.KernelArgument:
    if isinstance(value, Array):
        return pb.KernelArgument(array=flush.operand(value._node))
    if isinstance(value, Struct):
        return pb.KernelArgument(aggregate=value.to_proto(flush))
    if isinstance(value, Texture):
        return pb.KernelArgument(texture=value.to_proto(flush))
    if isinstance(value, (bytes, bytearray)):
        return pb.KernelArgument(raw=bytes(value))
    return pb.KernelArgument(scalar=Number(value).to_proto())


def global_value(flush, name: str, value) -> pb.GlobalVariable:
    if isinstance(value, Array):
        return pb.GlobalVariable(name=name, array=flush.operand(value._node))
    if isinstance(value, Struct):
        if value.arrays():
            raise TypeError(
                f"{name}: a variable's value has no arrays in it; nothing would keep their memory once the "
                "launch has ended"
            )
        data = bytearray(value.size)
        for offset, part in value.members:
            data[offset:offset + len(part)] = part
        return pb.GlobalVariable(name=name, raw=bytes(data))
    if isinstance(value, (bytes, bytearray)):
        return pb.GlobalVariable(name=name, raw=bytes(value))
    return pb.GlobalVariable(name=name, scalar=Number(value).to_proto())


def dtype_of_global(number: int) -> Optional[np.dtype]:
    return _dtypes.dtype_numbered(number) if number else None


Constants = Optional[Mapping[str, object]]


def merged(*constants: Constants) -> Dict[str, object]:
    """Later ones win."""
    return {name: value for one in constants if one for name, value in one.items()}
