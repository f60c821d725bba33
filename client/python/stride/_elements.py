"""Copies of elements on the host: reads and writes of single elements of small arrays."""

import weakref
from typing import Any, Optional, Tuple

import numpy as np

from stride import _array, _errors, _local
from stride._array import Array, get_node
from stride._copies import NUMBERS, PART_BYTES, REALS, HostCopy, is_contiguous
from stride._element_numbers import Element, LocalArray, _as_plain, _element, _is_plain, _value_for
from stride._graph import Buffer, Node, check_isolated
from stride._origin import caller
from stride._stream import Answer
from stride._views import FrozenStrides, PartStrides

MAX_BYTES = 16 << 20  # largest array with a copy
# Larger ones travel on other connections, or in parts.
_INLINE_BYTES = PART_BYTES
# Up to this size an upload of the copy, within a command, costs no more than a write of one element.
_CHEAP_BYTES = 64 << 10
# Number of reads and writes of elements after which a copy is made: a round trip costs as much as this many.
# If the transfer takes longer than a round trip: one more per this many bytes.
_READS, _WRITES, _LARGE_WRITES = 8, 4, 16
_BYTES_PER_READ, _BYTES_PER_WRITE = 512 << 10, 64 << 10
_MAX_HELD = 16
_MAX_PLACES = 256  # places in programs that wait for numbers or assign arrays


def _can_have_copy(node: Node) -> bool:
    buffer = node.buffer
    return (
        not node.session._is_trace
        and (node.nbytes <= _INLINE_BYTES or node.nbytes <= MAX_BYTES and is_contiguous(node))
        and node.dtype.type in NUMBERS
        and (buffer is None or not buffer.is_shared and not buffer.loans)
    )


def _root_of(node: Node) -> Node:
    """The base value of a deferred view."""
    while node.op is not None and node.inputs and node.buffer is not None:
        base = node.inputs[0]
        if type(base) is not Node or base.buffer is not node.buffer:
            break
        node = base
    return node


def _whole_of(node: Node) -> Node:
    """The value to read for the elements of `node`. For a view it is the array that the view was made of, so
    that the next view (`a[i + 1]` after `a[i]`) finds its elements too; if that array is large or deleted,
    the view itself."""
    buffer = node.buffer
    base = buffer.owner() if buffer is not None and buffer.owner is not None else None
    if base is None:
        return node
    try:
        whole = get_node(base)
    except AttributeError:
        return node  # it was deleted
    is_whole = whole.buffer is buffer and whole.dtype == node.dtype and whole.size >= node.size
    return whole if is_whole and whole.nbytes <= _CHEAP_BYTES and is_contiguous(whole) else node


def _fetched(node: Node) -> Optional[np.ndarray]:
    """Reads the elements ahead of later reads and writes. None on failure: the next read of the array raises
    the error."""
    session, answer = node.session, Answer()
    if node.nbytes > _INLINE_BYTES:
        try:
            return session._read_bulk(node, None)
        except _errors.StrideError:
            node.own_buffer().touches = -(1 << 30)  # it would fail again
            return None
    try:
        session._flush((), lambda flush: flush.read(node, answer))
        result = session._wait(answer)
    except _errors.StrideError:
        return None
    if result.HasField("status") and result.status.code:
        node.own_buffer().touches = -(1 << 30)  # it would fail again
        return None
    if session._stream.has_failures():
        return None
    returned = result.results[0]
    values = np.ndarray(node.shape, node.dtype, returned.inline_array.data)
    if not node.handle:  # they returned with their command, and only the host has them
        values, is_sharded = session._keep_returned(node, returned)
        if is_sharded:
            return None  # the service has the array of the next one
    return values


def _copy_of(node: Node, whole: Node, fetched: Optional[np.ndarray], version: int) -> Optional[HostCopy]:
    """The buffer's copy, created if missing, with the elements of `node`. `fetched`: the elements of `whole`
    at a version of the buffer. Caller holds the session's lock."""
    copy = _copy_of_whole(whole, fetched, version)
    return copy if whole is node or copy is not None and node.cached() is not None else None


def _copy_of_whole(node: Node, fetched: Optional[np.ndarray], version: int) -> Optional[HostCopy]:
    buffer = node.own_buffer()
    copy, host = buffer.copy, node.cached()
    if copy is not None and host is not None:
        return copy
    if host is None:
        if fetched is None or buffer.version != version:
            return None
        host = fetched
        if copy is not None:
            if copy.dirty:
                return None
            buffer.end_copy()
            buffer.version += 1
    owner = _root_of(node)
    if owner is not node:
        host = owner.cached()
    if host is None or owner.op is not None:
        return None
    copy = HostCopy(owner, host)
    buffer.copy, buffer.is_local = copy, True
    owner.keep(host)
    return copy


def _is_read_often(node: Node) -> bool:
    """Whether this place of the program repeatedly reads elements of small results. Then the inputs of the
    results are read, so that the host computes the next ones."""
    if node.nbytes > _CHEAP_BYTES:
        return False
    return _is_due(node.session, "element") and _read_sources(node)


def read(array: Array, key: Tuple[int, ...]) -> Optional["Element"]:
    """The element at integer indices, if the host has or reads it; None: the service reads it."""
    node = array._node
    if not _can_have_copy(node):
        return None
    fetched, version, session, whole = None, 0, node.session, node
    if node.cached() is None:
        buffer = node.own_buffer()
        buffer.touches += 1
        if session.closed:
            return None
        if buffer.touches < _READS + node.nbytes // _BYTES_PER_READ and not _is_read_often(node):
            return None
        whole = _whole_of(node)
        version, fetched = buffer.version, _fetched(whole)
        if fetched is None:
            return None
    with session._lock:
        copy = _copy_of(node, whole, fetched, version)
        host = node.cached()
        if host is None:
            return None
        if copy is not None:
            _join(array, copy, host)
    try:
        return _element(host[key], (session, node.device))
    except IndexError:
        return None  # the general path raises it


def _join(array: Array, copy: HostCopy, host: np.ndarray) -> None:
    """Makes the array read from the copy. Caller holds the session's lock."""
    if type(array) is not Array:
        return
    array._copy, array._home, array._target, array._host = copy, copy.home, None, host  # type: ignore[attr-defined]
    array.__class__ = LocalArray
    if len(copy.arrays) >= 8:
        copy.arrays = [one for one in copy.arrays if one() is not None]
    copy.arrays.append(weakref.ref(array))


def joined(array: Array) -> bool:
    """Gives an array with elements on the host a copy that views may share."""
    node = array._node
    host = node.cached()
    if host is None or not _can_have_copy(node):
        return False
    with node.session._lock:
        copy = _copy_of(node, node, None, 0)
        if copy is None:
            return False
        _join(array, copy, host)
    return type(array) is LocalArray and array._host is not None


def _settled_value(value: Any, buffer: Buffer) -> Any:
    """The value to assign to an element. A number that only the service knows is read if the loop has read
    and written elements, so that the loop continues on the host; so is a small array computed from small
    ones. Otherwise the value itself."""
    if type(value) is not Array:
        return value
    node = value._node
    if node.session._is_trace or node.dtype.type not in NUMBERS or node.cached() is not None:
        return value
    if node.shape:
        if node.nbytes <= _CHEAP_BYTES:
            if not node.session.closed and _is_due(node.session, "assigned"):
                _read_sources(node, node)
        # The service writes the array: reading it for a few numbers in between would cost a round trip each
        # time.
        buffer.touches = 0
        return value
    buffer.touches += 1
    if buffer.touches < _READS or node.buffer is not None and node.buffer.num_nodes > 1:
        return value
    note_wait(node)
    host = _fetched(node)
    if host is not None:
        home = node.session, node.device
        node.held = False
        del value._node
        value._host, value._home = host[()], home  # type: ignore[attr-defined]
        value.__class__ = Element
    return value


def _read_sources(node: Node, *wanted: Node) -> bool:
    """Makes the small arrays that `node` is computed from local (`_local.py`). Reads `wanted` and those that
    only the service has. False: some are large, or a read fails."""
    unknown = _local.mark(node)
    if unknown is None:
        return False
    session = node.session
    unknown += _held_results(node)
    reads = [(one, Answer()) for one in {id(one): one for one in (*unknown, *wanted)}.values()]

    def add(flush):
        for one, answer in reads:
            flush.read(one, answer)

    try:
        if reads:
            session._flush((), add)
        for one, answer in reads:
            result = session._wait(answer)
            if result.HasField("status") and result.status.code or session._stream.has_failures():
                return False
            if one.cached() is None:
                _, is_sharded = session._keep_returned(one, result.results[0])
                if is_sharded and not one.handle:
                    return False
            one.own_buffer().is_local = True
    except _errors.StrideError:
        return False
    return True


def _held_results(node: Node) -> list:
    """Other recorded small results that the program references. The next iteration of the loop uses them."""
    found = []
    for one in list(node.session._recorded):
        other = one()
        if other is not None and other is not node and other.held and other.op is not None and other.shape:
            if len(found) == _MAX_HELD:
                return []
            if other.nbytes <= _local.MAX_BYTES and other.buffer is None:  # a view follows its base
                found.append(other)
    return [one for one in found if _local.mark(one) is not None]


def _count(session, place: Any) -> int:
    """The number of these requests at a place of the program, including this one."""
    if len(session._places) >= _MAX_PLACES:
        session._places.clear()
    count = session._places[place] = session._places.get(place, 0) + 1
    return count


def _is_due(session, what: str) -> bool:
    """Counts something at a place of the program. True at each power of two from FREQUENT on."""
    count = _count(session, (caller(), what))
    return count >= _local.FREQUENT and count & (count - 1) == 0


def note_wait(node: Node) -> None:
    """Called before the host waits for a number. A repeated wait at one place of the program is a loop: the
    number's inputs are read, if they are small, so that the loop continues on the host."""
    session, place = node.session, caller()
    if session.closed or session._is_trace:
        return
    count = _count(session, place)
    # Less and less often: a loop that keeps waiting has operations for the service.
    if count > 1 and count % (1 << max(0, count.bit_length() - 3)) == 0:
        _read_sources(node)


def note_small(node: Node) -> None:
    """Called before the host reads a small array. Frequent reads at one place of the program are a loop."""
    session = node.session
    if not session.closed and not session._is_trace and _is_due(session, "array"):
        _read_sources(node)


def note_read(node: Node) -> None:
    """Called when the host reads a number. If it is computed from elements, a copy of their array is worth
    its round trip."""
    note_wait(node)
    nodes = [node]
    for _ in range(8):
        if not nodes:
            return
        node = nodes.pop()
        if node.buffer is not None and not node.shape:
            node.buffer.touches += _READS if sum(map(_num_bytes, node.inputs)) <= _CHEAP_BYTES else _READS // 2
        else:
            nodes += [one for one in node.inputs if type(one) is Node and not one.shape]


def _num_bytes(one: Any) -> int:
    return one.nbytes if type(one) is Node else 0


def write(array: Array, key: Any, value: Any) -> bool:
    """Assigns to the array's copy, if it has one or should have one. False: the service must assign, or the
    general path refuses it."""
    if not _is_plain(key):
        key = _as_plain(key)
        if not _is_plain(key):
            return False
    node = array._node
    if not _can_have_copy(node) or type(node.strides) in (FrozenStrides, PartStrides):
        return False
    check_isolated(node)
    buffer = node.own_buffer()
    if buffer.parts and _have_readers(buffer):
        return False  # arrays of a part of the elements must see the write
    value = _value_for(_settled_value(value, buffer), NUMBERS if node.dtype.kind == "c" else REALS)
    if value is None:
        return False
    session = node.session
    is_known, is_cheap = node.cached() is not None, node.nbytes <= _CHEAP_BYTES
    fetched, version, whole = None, 0, node
    if not is_known and is_cheap and node.op is not None and not node.inputs and _is_due(session, "new"):
        _local.note_place(node)
    if not is_known or not is_cheap and (buffer.copy is None or not buffer.copy.dirty):
        buffer.touches += 1
        if buffer.touches < (_WRITES if is_cheap else _LARGE_WRITES + node.nbytes // _BYTES_PER_WRITE):
            return False
        if not is_known:
            session._check_open()
            whole = _whole_of(node)
            version, fetched = buffer.version, _fetched(whole)
            if fetched is None:
                return False
    with session._lock:
        session._check_open()
        copy = _copy_of(node, whole, fetched, version)
        if copy is None or not copy.make_writable(buffer):
            return False
        _send_readers(session, copy, buffer)
        values = copy.part(node) if buffer.copy is copy else None
        if values is None:
            return False
        try:
            values[key] = value
        except Exception:
            return False  # the general path raises it
        copy.dirty = True
        copy.origin = caller()
        base = buffer.owner() if buffer.owner is not None else None
        for one in (array, base):
            if one is not None and type(one) is Array and one._node.buffer is buffer:
                host = one._node.cached()
                if host is not None:
                    _join(one, copy, host)
        _open(copy, buffer)
    return True


def _have_readers(buffer: Buffer) -> bool:
    from stride import _parts

    return _parts.have_readers(buffer)


def _send_readers(session, copy: HostCopy, buffer: Buffer) -> None:
    """Sends recorded operations that read elements before they change."""
    recorded = session._recorded
    end = len(recorded)
    for i in range(copy.num_seen if copy.seen_after == session._num_taken else 0, end):
        node = recorded[i]()
        if node is not None and node.op is not None and node.buffer is not buffer:
            if any(type(one) is Node and one.buffer is buffer for one in node.inputs):
                session._settle()
                end = 0
                break
    copy.seen_after, copy.num_seen = session._num_taken, end


def _open(copy: HostCopy, buffer: Buffer) -> None:
    """Opens the copy if all values of the buffer are known: those of LocalArrays, and their bases that no
    array references."""
    arrays = [array for one in copy.arrays if (array := one()) is not None]
    nodes = {id(get_node(array)) for array in arrays}
    for array in arrays:
        node = get_node(array)
        while node.op is not None and node.inputs and type(node.inputs[0]) is Node:
            node = node.inputs[0]
            if node.buffer is not buffer or node.held:
                break
            nodes.add(id(node))
    if len(nodes) + copy.num_views != buffer.num_nodes:
        return
    for array in arrays:
        node = get_node(array)
        if type(node.strides) is not FrozenStrides:
            array._target = copy.part(node)  # type: ignore[attr-defined]
    copy.open = True
