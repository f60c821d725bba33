"""Copies on the host of arrays whose elements are read and written one by one (`_elements.py`)."""

import weakref
from typing import TYPE_CHECKING, Any, List, Optional

import numpy as np

from stride import _dtypes, _inference
from stride._views import View
from stride.v1 import array_pb2, operation_pb2 as pb

if TYPE_CHECKING:
    from stride._graph import Buffer, Node
    from stride._flush import Flush

# Bytes of a session's copies; above it the oldest are written back and dropped.
MAX_SESSION_BYTES = 64 << 20
PART_BYTES = 1 << 20  # largest copy that one command returns
_SWEEP_AFTER = 4096  # number of copies at which dead references are removed
_NUMPY_REALS = tuple(one.type for one in _dtypes.NUMBERS if one.kind in "biuf" and one is not _dtypes.bfloat16)
# The types of values that NumPy assigns to an element without a warning.
REALS = frozenset((bool, int, float, *_NUMPY_REALS))
NUMBERS = REALS | {complex, np.complex64, np.complex128}


class HostCopy:
    """The elements of one value of a buffer, its *owner*, which include those of all values within it.

    The buffer owns the copy. `host` is for reading. `values`, the same memory for writing, is set at the
    first write. Callers of methods that change the copy, except `close`, hold the session's lock."""

    __slots__ = (
        "session", "home", "owner", "owner_id", "handle", "host", "values", "dirty", "open", "arrays", "numbers",
        "origin", "seen_after", "num_seen", "num_bytes", "memory", "num_views", "__weakref__",
    )

    def __init__(self, owner: "Node", host: np.ndarray):
        self.session = owner.session
        self.home = (owner.session, owner.device)
        self.owner = weakref.ref(owner)
        self.owner_id = id(owner)
        self.handle = 0  # the owner's, after the owner's end
        self.host = host
        self.values: Optional[np.ndarray] = None
        self.memory: Optional[np.ndarray] = host  # which of the two has the elements; None after the end
        self.num_views = 0  # LocalViews without a node
        self.dirty = False  # the service lacks writes
        self.open = False
        self.arrays: List[weakref.ref] = []  # LocalArrays
        self.numbers = NUMBERS if owner.dtype.kind == "c" else REALS
        self.origin: Any = None  # the line of the last write that looked at more than its own array
        # The count of the session's recorded nodes that were looked at, after so many removals of some.
        self.num_seen = 0
        self.seen_after = -1
        self.num_bytes = owner.nbytes
        self.session._copies.add(self)

    def __del__(self):
        if self.handle:
            self.session._released.append(self.handle)
        self.session._copies.num_bytes -= self.num_bytes

    def close(self) -> None:
        """Makes each later write search for readers first. Any thread may call."""
        self.open = False
        for one in self.arrays:
            array = one()
            if array is not None:
                array._target = None

    def _dismiss(self) -> None:
        arrays, self.arrays = self.arrays, []
        for one in arrays:
            array = one()
            if array is not None:
                array._leave()

    def end(self) -> None:
        """The buffer has dropped the copy."""
        self.close()
        self.dirty = False
        self.memory = None
        self._dismiss()

    def uploaded(self) -> None:
        """The owner is about to be uploaded for the first time."""
        self.close()  # precedes the copy of the elements: a writer repeats a later write
        self.dirty = False

    def takes_over(self, node: "Node") -> bool:
        """True if `node`, which is about to end, is the owner and the copy needs its handle for a write back."""
        if self.values is None or id(node) != self.owner_id or self.handle or not node.handle:
            return False
        self.handle, self.owner_id = node.handle, 0
        return True

    def write_back(self, flush: "Flush", buffer: "Buffer") -> None:
        """Adds the command that writes elements that only the host has to the service."""
        if not self.dirty:
            return
        self.uploaded()
        buffer.touches = 0
        owner = self.owner()
        handle = self.handle if owner is None else owner.handle
        if not handle:
            assert owner is not None
            flush.materialise(owner)
            return
        if self.num_bytes <= PART_BYTES:
            self._send(flush, self.host, handle)
            return
        flat, step = self.host.reshape(-1), PART_BYTES // self.host.itemsize  # a large copy is contiguous
        for begin in range(0, flat.size, step):
            end = min(begin + step, flat.size)
            part = View((("reshape", flat.shape), ("slice", 0, begin, end, None)))
            self._send(flush, flat[begin:end], flush.view(handle, part, self.origin))

    def _send(self, flush: "Flush", host: np.ndarray, handle: int) -> None:
        spec = array_pb2.ArraySpec(data_type=_dtypes.NUMBERS[host.dtype], shape=host.shape)
        inline = array_pb2.InlineArray(spec=spec, data=host.tobytes())
        operation = pb.Operation(copy=pb.Copy(input=pb.Operand(inline_array=inline)))
        operation.outputs.add(handle=handle, existing=True)
        flush.add(operation, self.origin)

    def make_writable(self, buffer: "Buffer") -> bool:
        """Gives the copy separate memory with the service's layout, so that views on the host correspond to
        views on the service. False: the owner has ended."""
        if self.values is not None:
            return True
        owner = self.owner()
        if owner is None:
            return False
        self.values = _laid_out(owner, self.host)
        self.host = _for_reading(self.values)
        self.memory = self.values
        self._dismiss()
        buffer.version += 1  # other values of the buffer have their own memory on the host
        owner.host, owner.host_version = self.host, buffer.version
        return True

    def known(self, node: "Node") -> Optional[np.ndarray]:
        """The elements of a value of the buffer for reading; None if the copy lacks some."""
        part = self._within(node, self.host) if self.values is None else self.part(node)
        if part is None:
            return None
        node.host, node.host_version = _for_reading(part), node.buffer.version  # type: ignore[union-attr]
        return node.host

    def part(self, node: "Node") -> Optional[np.ndarray]:
        """As `known`, for writing; None also of a copy that was never written."""
        values, host, buffer = self.values, node.host, node.buffer
        assert buffer is not None
        if values is not None and host is not None and node is not self.owner() and node.dtype == values.dtype:
            if node.host_version == buffer.version and np.may_share_memory(host, values):
                return _for_writing(host, values)
        return self._within(node, values)

    def _within(self, node: "Node", values: Optional[np.ndarray]) -> Optional[np.ndarray]:
        """The elements of a value of the buffer, within those of the owner; None if some are missing."""
        owner = self.owner()
        if values is None or node.dtype != values.dtype:
            return None
        if node is owner:
            return values
        if owner is None or not values.flags.c_contiguous or not is_contiguous(owner):
            return None
        strides = node.strides or _inference.contiguous_strides(node.shape)
        offset = node.first_element - owner.first_element
        if 0 in node.shape:
            return np.empty(node.shape, node.dtype)
        reach = [(n - 1) * stride for n, stride in zip(node.shape, strides)]
        if offset + sum(min(0, one) for one in reach) < 0 or offset + sum(max(0, one) for one in reach) >= owner.size:
            return None
        size = values.itemsize
        return np.ndarray(node.shape, node.dtype, values.reshape(-1), offset * size, [one * size for one in strides])


def is_contiguous(node: "Node") -> bool:
    return node.strides is None or tuple(node.strides) == _inference.contiguous_strides(node.shape)


def _laid_out(node: "Node", host: np.ndarray) -> np.ndarray:
    """A copy of the elements with the strides of the value."""
    if is_contiguous(node) or not node.size:
        return np.array(host, order="C")
    reach = [(n - 1) * stride for n, stride in zip(node.shape, node.strides)]  # type: ignore[arg-type]
    low = sum(min(0, one) for one in reach)
    memory = np.zeros(sum(max(0, one) for one in reach) - low + 1, host.dtype)
    strides = [one * host.itemsize for one in node.strides]  # type: ignore[union-attr]
    values = np.ndarray(node.shape, host.dtype, memory, -low * host.itemsize, strides)
    values[...] = host
    return values


def _for_reading(values: np.ndarray) -> np.ndarray:
    view = values.view()
    view.setflags(write=False)
    return view


def _for_writing(host: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The elements of `host`, as a view of the memory of `values`."""
    memory = values if values.base is None else values.base
    offset = host.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    return np.ndarray(host.shape, host.dtype, memory, offset, host.strides)


class Copies:
    """The copies of a session: their total size, and the oldest one."""

    def __init__(self):
        self.num_bytes = 0
        self._copies: List[weakref.ref] = []

    def add(self, copy: HostCopy) -> None:
        """Adds a copy to its buffer. Caller holds the session's lock."""
        self.num_bytes += copy.num_bytes
        self._copies.append(weakref.ref(copy))
        if self.num_bytes > MAX_SESSION_BYTES:
            self._drop_oldest(copy)
        elif len(self._copies) > _SWEEP_AFTER:
            self._copies = [one for one in self._copies if one() is not None]

    def _drop_oldest(self, newest: HostCopy) -> None:
        alive = [copy for one in self._copies if (copy := one()) is not None]
        num_bytes = sum(one.num_bytes for one in alive)
        while num_bytes > MAX_SESSION_BYTES // 2 and alive[0] is not newest:
            oldest = alive.pop(0)
            num_bytes -= oldest.num_bytes
            owner = oldest.owner()
            if owner is None or owner.buffer is None or owner.buffer.copy is not oldest:
                continue
            if oldest.dirty or not owner.handle:
                oldest.session._flush((owner,))
            owner.buffer.version += 1
            owner.host = None
            owner.buffer.end_copy()
        self._copies = [weakref.ref(one) for one in alive]

    def close(self) -> None:
        """Ends the copies with the session: every later write of an element raises."""
        for one in self._copies:
            copy = one()
            if copy is not None:
                copy.close()
