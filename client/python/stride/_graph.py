"""Values that are recorded before they are computed."""

import contextlib
import functools
import threading
import weakref
from math import prod
from typing import TYPE_CHECKING, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

import numpy as np

from stride import _dtypes, _encoding, _errors, _inference
from stride._numbers import Number, _check_exponent, _fitting, check_numbers
from stride._origin import caller, describe
from stride._views import FrozenStrides, View, passed_on
from stride.v1 import array_pb2, operation_pb2 as pb

if TYPE_CHECKING:
    from stride._elements import HostCopy
    from stride._flush import Flush

# Longest chain that is recorded before it is sent: expressions have at most 100 levels, and the device should
# not idle.
MAX_WEIGHT = 64
# Work, in bytes that a device moves, from which an operation that never fuses into its readers is sent when
# it is recorded (`record`). An H100 takes about 25 us for it, the cost of a message, so that the device does
# not idle.
LONG_BYTES = 64 << 20
# Bytes of device memory that take as long as a multiply-add in float32: 67 TFLOP/s and 4.8 TB/s, by NVIDIA's
# data sheet of the H200.
_BYTES_PER_PRODUCT = 2 * 4.8 / 67
# A reduction to one element is not sent early below this size: its number then returns with the command,
# without a handle and a Fetch, which saves more than an earlier start.
_LONG_SUM_BYTES = 1 << 30
# Up to this size elements travel within the command that reads or makes them, and the daemon copies them at
# once.
INLINE_BYTES = 16 << 10
_MAX_ITEM_BYTES = 16


class Buffer:
    """State that an array shares with its views: the number of values, the number of writes, the array that
    views were first made of (a weak reference), and the copy of elements on the host (`_elements.py`).
    `touches` counts reads and writes of single elements without a copy. `is_shared`: other clients use the
    elements by a name, so that the host caches none. `loans`: mappings of its memory (`_mapping.py`), which
    is not written until they end. `parts`: parts of the elements that have separate arrays (`_parts.py`).
    `is_local`: a loop on the host uses the elements, so that the host computes small operations on them
    (`_local.py`)."""

    __slots__ = ("num_nodes", "version", "owner", "copy", "touches", "is_shared", "loans", "parts", "is_local")

    def __init__(self):
        self.num_nodes = 1
        self.version = 0
        self.owner: Optional[weakref.ref] = None
        self.copy: Optional["HostCopy"] = None
        self.touches = 0
        self.is_shared = False
        self.loans: Optional[list] = None
        self.parts: Optional[weakref.WeakSet] = None
        self.is_local = False

    def end_copy(self) -> None:
        """Ends the copy, because the elements change elsewhere or others are read."""
        copy, self.copy = self.copy, None
        if copy is not None:
            copy.end()


# Adds the operations that compute a node: (flush, node, operands). Operands are pb.Operand, one for each
# input.
Build = Callable[["Flush", "Node", list], None]


class Prepared:
    """Takes the place of a Build if all inputs are nodes. `operation` has all fields except the inputs, which
    go to the fields `inputs` of the message of its `kind`, and the remaining ones to the repeated field
    `rest`. Immutable, and shared by all operations with equal fields. `computes`: a reduction that may
    compute its input's elements as it reads them, in place of reading an array of them."""

    __slots__ = ("operation", "kind", "inputs", "rest", "computes", "template", "_tags", "_rest_tag")

    def __init__(self, operation: pb.Operation, kind: str, inputs: Tuple[str, ...], rest: str = "",
                 computes: bool = False):
        message = getattr(operation, kind)
        message.SetInParent()
        self.operation, self.kind, self.inputs, self.rest, self.computes = operation, kind, inputs, rest, computes
        self.template = _encoding.OperationTemplate(_encoding.kind_tag(kind), message.SerializeToString())
        self._tags = _encoding.field_tags(kind, inputs)
        self._rest_tag = _encoding.field_tags(kind, (rest,))[0] if rest else b""

    def encoded(self, handles: List[int]) -> bytes:
        """The fields of the inputs, serialised."""
        if len(handles) == 1 and self._tags:
            return self._tags[0] + _encoding.handle_operand(handles[0])
        tags = self._tags + (self._rest_tag,) * (len(handles) - len(self._tags))
        return b"".join([tag + _encoding.handle_operand(one) for tag, one in zip(tags, handles)])

    def fill(self, operation: pb.Operation, handles: List[int]) -> None:
        """Sets the inputs of a copy of `operation`."""
        message = getattr(operation, self.kind)
        for name, handle in zip(self.inputs, handles):
            getattr(message, name).handle = handle
        if self.rest:
            more = getattr(message, self.rest)
            for handle in handles[len(self.inputs):]:
                more.add().handle = handle


class Assembly(NamedTuple):
    """Takes the place of a Build for a new array that is filled part by part: each input, or a Number for all
    elements of a part, is written into a view of the result. Where parts overlap the later one counts.
    `is_zeroed`: elements outside all parts are 0; else the parts cover all elements."""

    parts: Tuple[View, ...]
    is_zeroed: bool = False


class Node:
    """One value. Deferred while `op` is set; sent once `handle` is set; on the host while `host` is set and
    its buffer has not been written since.

    A thread that records or flushes holds only the session's lock; one thread at a time uses a node, as with
    NumPy's arrays. `weight`: the largest number of commands fused with a deferred value. `offset`: elements
    from the start of the buffer; set on views if it is not 0. `num_inline`: the number of commands that
    carried the elements of a host value; set once there are any. `count`: the number of nonzero elements and
    the buffer's version at that time; set after the first request."""

    __slots__ = (
        "session", "shape", "dtype", "strides", "op", "inputs", "handle", "held", "uses", "weight", "origin",
        "host", "host_version", "buffer", "device", "offset", "num_inline", "count", "__weakref__",
    )

    def __init__(self, session, shape, dtype, op: Union[str, Build, Prepared, View, Assembly, None], inputs: tuple,
                 origin):
        self.session = session
        self.shape = shape
        self.dtype = dtype
        self.strides: Optional[Tuple[int, ...]] = None  # in elements; None: contiguous
        self.op = op
        self.inputs = inputs
        self.handle = 0
        self.held = False  # by an Array
        self.uses = 0  # by deferred nodes
        self.origin = origin
        self.host: Optional[np.ndarray] = None
        self.host_version = 0
        self.buffer: Optional[Buffer] = None
        self.device = session.device  # the requested device; empty: any
        weight = 1
        for node in inputs:
            if type(node) is Node:
                node.uses += 1
                if node.op is not None:
                    weight += node.weight
        self.weight = weight

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    @property
    def deferred(self) -> bool:
        return self.op is not None

    def cached(self) -> Optional[np.ndarray]:
        """The elements, if the host has their current values."""
        buffer = self.buffer
        if buffer is None or buffer.version == self.host_version and self.host is not None:
            return None if buffer is not None and buffer.is_shared else self.host
        return None if buffer.copy is None else buffer.copy.known(self)

    def keep(self, host: np.ndarray) -> None:
        if self.buffer is not None and self.buffer.is_shared:
            return  # another array or session may write them
        self.host = host
        self.host_version = self.buffer.version if self.buffer else 0

    def known_count(self) -> Optional[int]:
        """The number of nonzero elements, if it was read since the last write."""
        version, count = getattr(self, "count", (0, None))
        buffer = self.buffer
        if buffer is None or buffer.version == version and buffer.copy is None and not buffer.is_shared:
            return count
        return None

    def keep_count(self, version: int, count: int) -> None:
        """`version`: the buffer's, or 0, when the elements were counted."""
        self.count = version, count

    def own_buffer(self) -> Buffer:
        """The buffer that the node shares with its views, created if missing."""
        if self.buffer is None:
            self.buffer = Buffer()
            self.host_version = 0
        return self.buffer

    def freeze(self) -> "Node":
        self.strides = FrozenStrides(self.strides or _inference.contiguous_strides(self.shape))
        return self

    def share_buffer(self, base: "Node", offset: int = 0) -> None:
        """Makes this node a view of `base` that begins `offset` elements after it."""
        self.buffer = base.own_buffer()
        self.buffer.num_nodes += 1
        offset += getattr(base, "offset", 0)
        if offset:
            self.offset = offset

    @property
    def first_element(self) -> int:
        """Elements from the start of the buffer to the first element."""
        return getattr(self, "offset", 0)

    def written(self) -> None:
        """The service changes this value in place: invalidates the host's data of it and its views."""
        if self.session._is_trace:
            self.session.check_written(self)
        if self.buffer is None:
            self.host = None
            self.count = 0, None
        else:
            self.buffer.version += 1
            if self.buffer.copy is not None:
                self.buffer.end_copy()

    def returned(self, host: np.ndarray) -> None:
        """The elements returned with the command that computed them; the service has no array, as for one
        that is not uploaded yet."""
        self.keep(host)
        self.op = None
        self._let_go_of_inputs()

    def _let_go_of_inputs(self) -> None:
        for node in self.inputs:
            if type(node) is Node:
                node.uses -= 1
        self.inputs = ()

    def sent(self, handle: int) -> None:
        self.handle = handle
        self.op = None
        for node in self.inputs:  # as of `_let_go_of_inputs`, whose call costs more
            if type(node) is Node:
                node.uses -= 1
        self.inputs = ()

    def __del__(self):
        # May run in any thread at any moment, so that it must not take a lock.
        buffer = self.buffer
        if buffer is not None:
            buffer.num_nodes -= 1
            if buffer.copy is not None and buffer.num_nodes and buffer.copy.takes_over(self):
                self.handle = 0
        if self.handle:
            self.session._released.append(self.handle)
        for node in self.inputs:
            if type(node) is Node:
                node.uses -= 1


def meet(first, second):
    """The session of a value computed from values of two sessions: while a function is traced, the trace."""
    if first is not second and not first._is_trace and not second._is_trace:
        raise ValueError("arrays of different sessions cannot meet; download one and upload it again")
    return second if second._depth > first._depth else first


def defer(session, shape, dtype, op: Union[Build, View], inputs: tuple) -> Node:
    """A deferred node of a known shape and type, for an operation that costs a device almost no time."""
    for one in inputs:
        if type(one) is Node and one.session is not session:
            session = meet(session, one.session)
    node = Node(session, shape, dtype, op, inputs, caller())
    session._record(node)
    return node


def record(
    session, shape, dtype, op: Union[Build, Prepared, Assembly], inputs: tuple, depth: int = 0, picks: bool = False,
    host: Optional[Callable] = None,
) -> Node:
    """As `defer`, for operations that take time and never fuse into their readers. A long one is sent at
    once, so that the device works while the program continues.

    `depth`: products summed per element of the result, if computing may take longer than moving inputs and
    result. `picks`: reads at most as many elements of the first input as the result has. `host`: the same
    function for NumPy's arrays and numbers, for inputs of a loop on the host (`_local.py`); it returns new
    memory."""
    size = num_elements = prod(shape)
    has_local = False
    for one in inputs:
        if type(one) is Node:
            num_elements += prod(one.shape)
            buffer = one.buffer
            if buffer is not None and buffer.is_local:
                has_local = True
            if one.session is not session:
                session = meet(session, one.session)
    if has_local and host is not None:
        made = _local.computed(session, host, inputs, shape, dtype)
        if made is not None:
            return made
    node = Node(session, shape, dtype, op, inputs, caller(3))
    session._record(node)
    # Most are far from it.
    if num_elements * _MAX_ITEM_BYTES >= LONG_BYTES or depth and size * depth * _BYTES_PER_PRODUCT >= LONG_BYTES:
        inputs = (node, *inputs[1:]) if picks else inputs
        _send_if_long((node, *inputs), size * depth)
    return node


def record_several(session, results, build, inputs: tuple, num_products: int = 0) -> List[Node]:
    """Nodes for an operation with several results, (shape, dtype) each. `build(flush, operands, handles,
    origin)` adds the command. Sends at once where `record` would. `num_products`: of the whole operation."""
    group: List[weakref.ref] = []

    def build_group(flush, node, operands):
        alive = [one() for one in group]
        handles = [
            flush.scratch() if one is None else node.handle if one is node else flush.session._next_id()
            for one in alive
        ]
        if flush.session._is_trace:  # results without an array have no node with a shape
            flush.session.specs.update(zip(handles, results))
        build(flush, operands, handles, node.origin)
        for other, handle in zip(alive, handles):
            if other is not None and other is not node:
                other.sent(handle)

    nodes = [defer(session, shape, dtype, build_group, inputs) for shape, dtype in results]
    group.extend(map(weakref.ref, nodes))
    if nodes:
        _send_if_long((*nodes, *inputs), num_products)
    return nodes


def _send_if_long(moved, num_products: int) -> None:
    """Sends the first node among those that an operation reads or writes, if it is worth a message."""
    node = moved[0]
    num_bytes = sum(one.nbytes for one in moved if type(one) is Node)
    if num_products * _BYTES_PER_PRODUCT < LONG_BYTES and num_bytes < LONG_BYTES:
        return
    if not node.shape and num_bytes < _LONG_SUM_BYTES:
        return
    if not _parts_long_expression(node):
        node.session._send_early(node)


def _is_returned(node: Node) -> bool:
    """Whether a read may return the elements with the command that computes them. Other recorded readers need
    a handle, unless there is one element, which is cheap to send again."""
    if node.buffer is not None:
        return False
    size = prod(node.shape)
    if size == 1:
        return True
    # A result of sharded arrays keeps its sharding, which the host does not know.
    return not node.uses and 0 < size * node.dtype.itemsize <= INLINE_BYTES and not node.session._has_sharded


def _computes(node: Node) -> bool:
    return type(node.op) is Prepared and node.op.computes


def _parts_long_expression(node: Node) -> bool:
    """Whether computing `node` now would materialise a long elementwise value below its inputs, for the array
    that holds it. That value is fused if the array is deleted before a read, as a function's local variables
    are."""
    below = {node} if _computes(node) else {one for one in node.inputs if type(one) is Node}
    seen = set(below)
    while below:
        reader = below.pop()
        reduces = _computes(reader)
        for one in reader.inputs:
            if type(one) is Node and one.op is not None:
                fits = reduces or type(reader.op) is str and one.shape == reader.shape
                could_fuse = fits and type(one.op) is str and one.held
                if could_fuse and 2 * one.nbytes >= LONG_BYTES:  # written and read once more
                    return True
                if one not in seen:
                    below.add(one)
                    seen.add(one)
    return False


# Looks for floating-point errors of (name, inputs) and of (function, input, axes, dtype), while the program asks for
# them (`_float_errors.py`).
check_floats: Optional[Callable] = None
check_reduction: Optional[Callable] = None


def elementwise(name: str, inputs: tuple) -> Node:
    """A node for a function of the service on nodes and Numbers, at least one a node."""
    session = None
    types, shape, has_integers, has_local = [], None, False, False
    for one in inputs:
        if type(one) is Node:
            types.append(one.dtype)
            buffer = one.buffer
            if buffer is not None and buffer.is_local:
                has_local = True
            if session is None:
                session, shape = one.session, one.shape
                continue
            if session is not one.session:
                session = meet(session, one.session)
            if shape != one.shape:
                shape = _inference.broadcast(shape, one.shape)
        else:
            kind = one.type
            if kind is int and not 0 <= one.value < 128:  # any other number fits every type
                has_integers = True
            types.append(kind)
    if session._weak:
        return _weakly(name, inputs, types, session, shape)
    loop, dtype = _inference.elementwise(name, *types)
    if (
        has_local
        and check_floats is None
        and (made := _local.elementwise(session, name, inputs, shape, dtype)) is not None
    ):
        return made
    if has_integers:
        inputs = tuple(
            [_fitting(name, one, loop) if type(one) is Number and one.type is int else one for one in inputs]
        )
    if name == "power" and loop.kind == "i":
        _check_exponent(inputs[1])
    if check_floats is not None:
        check_floats(name, inputs)
    node = Node(session, shape, dtype, name, inputs, caller(3))
    session._record(node)
    return node


_PYTHON_TYPES: Dict[str, type] = {"i": int, "f": float, "c": complex}


def _weakly(name: str, inputs: tuple, types: list, session, shape) -> Node:
    """`elementwise` where the session has weak nodes: these take part as Python's numbers do."""
    weak = session._weak
    is_weak = [type(one) is Node and one in weak for one in inputs]
    if not any(is_weak) or all(weakly or type(one) is Number for weakly, one in zip(is_weak, inputs)):
        loop, dtype = _inference.elementwise(name, *types)
        inputs = check_numbers(name, inputs, loop)
        node = Node(session, shape, dtype, name, inputs, caller())
        session._record(node)
        if any(is_weak) and dtype.kind != "b":
            weak.add(node)
        return node
    kinds = [_PYTHON_TYPES[one.kind] if weakly else one for weakly, one in zip(is_weak, types)]
    loop, _ = _inference.elementwise(name, *kinds)
    return elementwise(
        name, tuple([_converted(one, loop) if weakly else one for weakly, one in zip(is_weak, inputs)])
    )


def _converted(node: Node, dtype: np.dtype) -> Node:
    """A number without weakness, of that type."""

    def build(flush, result, operands):
        flush.operation(
            result.handle, result.origin, copy=pb.Copy(input=operands[0], data_type=_dtypes.NUMBERS[dtype])
        )

    return defer(node.session, node.shape, dtype, build, (node,))


def floor_divide(inputs: tuple) -> Node:
    """The array API's floor_divide. It differs from NumPy's where one operand is infinite: the result is the
    quotient, not NaN or -1."""
    left, right = inputs
    types = [one.dtype if type(one) is Node else one.type for one in inputs]
    quotient = elementwise("floor_divide", inputs)
    if quotient.dtype.kind != "f":
        return quotient
    infinite = [
        (
            _inference.is_infinite(one.value)
            if type(one) is Number
            else elementwise("isinf", (one,)) if types[i].kind == "f" else False
        )
        for i, one in enumerate(inputs)
    ]
    first, second = infinite
    if type(first) is bool and type(second) is bool:
        if first == second:
            return quotient
        return elementwise("divide", inputs)
    if type(first) is bool or type(second) is bool:
        known, other = (first, second) if type(first) is bool else (second, first)
        one_alone = elementwise("logical_not", (other,)) if known else other
    else:
        one_alone = elementwise("not_equal", (first, second))
    return elementwise("where", (one_alone, elementwise("divide", inputs), quotient))


class _Isolation(threading.local):
    """Set while a branch of stride.lax is traced: arrays of sessions with a lesser depth are for reading."""

    depth = 0


isolation = _Isolation()


@contextlib.contextmanager
def isolated(session) -> Iterator[None]:
    """While a branch is traced in `session`, a trace: `check_isolated` looks at each write."""
    before, isolation.depth = isolation.depth, session._depth + 1
    while session._is_trace:
        session = session.outer
    session._copies.close()  # an open copy is written without a look
    try:
        yield
    finally:
        isolation.depth = before


def check_isolated(node: Node) -> None:
    """Raises for a write in a branch, which would happen whether or not the branch is taken, and for a write
    into mapped memory."""
    if node.buffer is not None and node.buffer.loans:
        from stride import _mapping

        _mapping.check_returned(node.buffer)
    if node.session._depth < isolation.depth:
        raise _errors.TracingError(
            "a branch of stride.lax.cond or switch cannot write into an array from outside it, since both branches "
            "are computed: return the new value, such as x.at[i].set(v)",
            origin=describe(caller()),
        )


def write_in_place(node: Node, make: Callable[["Flush"], pb.Operation]) -> None:
    """Sends all recorded operations, which read the old elements, then the operation `make(flush)`, whose
    output is the array of `node`. Writes in quick succession share a message, as launches do. The next read
    reports its errors; the caller has checked shapes and types."""
    session, origin = node.session, caller()
    check_isolated(node)

    def add(flush):
        operation = make(flush)
        operation.outputs.add(handle=flush.materialise(node), existing=True)
        flush.add(operation, origin)
        flush.num_launches += 1
        flush.has_long = True
        if node.buffer is not None and node.buffer.is_shared:
            flush.is_urgent = True  # other sessions look at the elements
        node.written()  # with the lock: another thread's write into a copy on the host is repeated

    session._launch(add)
    node.origin = origin  # origin of an error that its next read may raise
    passed_on(node)


def spec_of(node: Node) -> array_pb2.ArraySpec:
    return array_pb2.ArraySpec(data_type=_dtypes.NUMBERS[node.dtype], shape=node.shape)


@functools.lru_cache(maxsize=1024)
def _empty(data_type: int, shape: Tuple[int, ...], is_zeroed: bool) -> "Prepared":
    """A new array, zeroed or uninitialised."""
    spec = array_pb2.ArraySpec(data_type=data_type, shape=shape)
    creation = pb.Creation(fill=pb.Creation.Fill(spec=spec)) if is_zeroed else \
        pb.Creation(empty=pb.Creation.Empty(spec=spec))
    return Prepared(pb.Operation(creation=creation), "creation", ())

from stride import _local  # noqa: E402, which stands on this module
