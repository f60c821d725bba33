"""Values, recorded before they are computed, and how a flush turns them into commands."""

import contextlib
import functools
import threading
import weakref
from math import prod
from typing import TYPE_CHECKING, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple, Union

import numpy as np

from stride import _dtypes, _encoding, _errors, _inference
from stride._origin import caller, describe
from stride._stream import Note, Piece, cut, has_arrays
from stride.v1 import array_pb2, compute_service_pb2, operation_pb2 as pb

if TYPE_CHECKING:
    from stride._elements import HostCopy
    from stride._parts import Part

# Longest chain that is recorded before it is sent: expressions have at most 100 levels, and the device should
# not idle.
MAX_WEIGHT = 64
# Input arrays of one kernel: the daemon's limit is 64 with the result. The limit of numbers is separate, and
# a chain of MAX_WEIGHT cannot reach it.
_MAX_ARRAYS = 63
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
# Number of commands that carry a value of the host before it is uploaded for later ones.
_MAX_INLINE_USES = 2
# Launches of several codes, and other serialised commands, travel as one piece up to this size.
_MAX_LAUNCH_BYTES = 256 << 10
_MAX_PIECE_BYTES = 512 << 10
_MAX_PIECE_COMMANDS = 900
# Serialised steps of views that are kept.
_MAX_VIEW_STEPS = 1_024
_MAX_ITEM_BYTES = 16
# A recorded value used twice is computed twice, in two expressions, only when that is as cheap as reading it.
_MAX_REPEATED_WEIGHT = 2


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


class FrozenStrides(tuple):
    """Strides of read-only arrays and their views: broadcast arrays, whose elements repeat, and arrays that
    are views in NumPy but may be copies here, so that a write would be lost."""

    __slots__ = ()


class PartStrides(tuple):
    """Strides of an array of a part (`_parts.py`) and of its views, which hold the part's value, `root`."""

    part: "Part"
    root: Optional["Node"]

    @classmethod
    def of(cls, node: "Node", part: "Part", strides=None, root: Optional["Node"] = None) -> "PartStrides":
        if strides is None:
            strides = node.strides or _inference.contiguous_strides(node.shape)
        one = cls(strides)
        one.part, one.root = part, root
        return one


def strides_of_view(node: "Node", strides) -> tuple:
    """The strides of a view, which is writable if its base is."""
    kind = type(node.strides)
    if kind is FrozenStrides:
        return FrozenStrides(strides)
    if kind is PartStrides:
        return PartStrides.of(node, node.strides.part, strides, node.strides.root or node)
    return tuple(strides)


def passed_on(node: "Node") -> None:
    """Passes a write of `node` on to the array that it is a part of, and to its own parts."""
    if type(node.strides) is PartStrides:
        node.strides.part.pass_on()
    buffer = node.buffer
    if buffer is not None and buffer.parts:
        for one in list(buffer.parts):
            one.refresh()


_KINDS = {int: "i", float: "f", complex: "c"}


class Number:
    """A scalar operand: a Python number (weak), or a NumPy scalar with its type."""

    __slots__ = ("value", "type")

    def __init__(self, value):
        self.value = value
        kind = type(value)
        if kind is int or kind is float or kind is complex:
            self.type = kind
        elif isinstance(value, np.generic):
            self.type = _dtypes.dtype_of(value.dtype)
        else:
            self.type = _dtypes.bool if kind is bool else next(t for t in (int, float, complex) if isinstance(value, t))

    def to_proto(self) -> array_pb2.Scalar:
        scalar, value = array_pb2.Scalar(), self.value
        if isinstance(self.type, np.dtype):
            kind = self.type.kind
            if kind != "b":
                scalar.data_type = _dtypes.NUMBERS[self.type]
            value = value.item() if isinstance(value, np.generic) else value
        else:
            kind = _KINDS[self.type]
        if kind == "b":
            scalar.bool_value = bool(value)
        elif kind in "iu":
            if value < 2**63:
                scalar.int_value = value
            else:
                scalar.uint_value = value
        elif kind == "f":
            scalar.float_value = value
        else:
            scalar.complex_value.real, scalar.complex_value.imaginary = value.real, value.imag
        return scalar


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


class View(NamedTuple):
    """Takes the place of a Build for a view of its one input. A step is the name of a field of pb.View.Step
    and its values: ("slice", axis, start, stop, step), ("index", axis, place), or ("transpose" | "reshape" |
    "broadcast", axes or extents). Unsent views of views become one command."""

    steps: Tuple[tuple, ...]

    def write(self, steps) -> None:
        """Adds the steps to the field `steps` of a pb.View."""
        for kind, *values in self.steps:
            step = steps.add()
            if kind == "slice":
                part = step.slice
                part.axis, start, stop, by = values
                if start is not None:
                    part.start = start
                if stop is not None:
                    part.stop = stop
                if by is not None:
                    part.step = by
            elif kind == "index":
                part = step.slice
                part.axis, part.start = values
                part.index = True
            elif kind == "transpose":
                step.transpose.axes.extend(values[0])
                step.transpose.SetInParent()
            else:
                part = getattr(step, kind)
                part.shape.extend(values[0])
                part.SetInParent()


_view_steps: Dict[tuple, bytes] = {}


def _encoded_steps(views: Tuple[View, ...]) -> bytes:
    """The field `steps` of a pb.View, serialised."""
    try:
        known = _view_steps.get(views)
    except TypeError:  # steps with lists
        known = None
    if known is None:
        message = pb.View()
        for one in views:
            one.write(message.steps)
        known = message.SerializeToString()
        with contextlib.suppress(TypeError):
            if len(_view_steps) >= _MAX_VIEW_STEPS:
                _view_steps.clear()
            _view_steps[views] = known
    return known


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


_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def _fitting(name: str, number: Number, loop: np.dtype) -> Number:
    """Converts a Python integer to the type of a computation, by NumPy's rules."""
    value = number.value
    if loop.kind in "iu":
        if name in _COMPARISONS and not -(2**63) <= value < 2**64:
            return Number(
                float("inf") if value > 0 else float("-inf")
            )  # compares with each integer as the value does
        check_range(name, value, loop)
    elif loop.kind == "b":
        check_range(name, value, np.dtype(np.int64))
    elif not -(2**63) <= value < 2**64:
        return Number(float(value))  # outside the integers of the wire format
    return number


def check_numbers(name: str, operands, loop: np.dtype) -> tuple:
    """Converts Python's integers among the operands to the type of the computation."""
    return tuple([_fitting(name, one, loop) if type(one) is Number and one.type is int else one for one in operands])


def _check_exponent(exponent: Union["Node", Number]) -> None:
    """Raises for negative powers of integers, as NumPy does. An exponent that only the service knows is read."""
    if type(exponent) is Number:
        least = int(exponent.value)
    elif exponent.dtype.kind != "i" or not exponent.size:
        return
    else:
        host = exponent.cached()
        if host is None:
            if exponent.session._is_trace:
                return  # values cannot be read there
            from stride import _array, _reductions

            was_held = exponent.held
            try:
                least = int(_reductions.min(_array.wrap(exponent)))
            finally:
                exponent.held = was_held
        else:
            least = int(host.min())
    if least < 0:
        raise ValueError("Integers to negative integer powers are not allowed.")


def check_range(name: str, value: int, dtype: np.dtype) -> None:
    if name in _COMPARISONS and -(2**63) <= value < 2**64:
        return
    least, greatest = _limits(dtype)
    if not least <= value <= greatest:
        raise OverflowError(f"Python integer {value} out of bounds for {dtype}")


@functools.lru_cache(maxsize=None)
def _limits(dtype: np.dtype) -> Tuple[int, int]:
    info = np.iinfo(dtype)
    return info.min, info.max


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


class Flush:
    """One pass that makes commands of nodes, inputs first. Caller holds the session's lock."""

    def __init__(self, session):
        self.session = session
        # The message that is sent: copying a command costs more than writing it.
        self.request = compute_service_pb2.ExecuteRequest()
        self.commands = self.request.commands
        self.notes = {}
        # The last command of `begin`: the number of commands up to it, its handle, its output and its note.
        self._begun: tuple = (0, 0, None, None)
        self._scratch: List[int] = []
        self.pieces: List[Piece] = []  # commands before those of the request, serialised
        # Serialised commands after the pieces, their bytes, and for each kernel's code the position of the
        # launch that has it. They travel in one message.
        self._serialised: List[bytes] = []
        self._serialised_bytes = 0
        self._code_places: Dict[bytes, int] = {}
        # Whether operations are added as messages: a trace keeps these, and a read changes the last.
        self._as_messages = session._is_trace
        self.num_launches = 0
        self.is_urgent = False  # has a command that must not be held
        self.has_long = False  # has an operation that keeps the device at work
        # First, so that new arrays may reuse the memory of deleted ones.
        self._release([])

    def __bool__(self) -> bool:
        """True if there are commands to send."""
        return bool(self.pieces or self._serialised or self.commands)

    def seal(self) -> None:
        """Serialises the commands so far; later ones follow as bytes."""
        self._end_serialised()
        if self.commands:
            self.pieces += cut(self.request)
            self.request = compute_service_pb2.ExecuteRequest()
            self.commands = self.request.commands
            self._begun = 0, 0, None, None

    def begin(
        self, handle: int, origin, prepared: Optional[pb.Operation] = None, existing: bool = False
    ) -> pb.Operation:
        """Adds a command, as a message, that makes `handle`, or with `existing` writes into it. The caller
        sets its kind, which is not a view, and must not fail after that, because the command is sent in any
        case. `prepared` is copied."""
        session, commands = self.session, self.commands
        command_id = session._next_id()
        command = commands.add()
        command.id = command_id
        operation = command.operation
        if prepared is not None:
            operation.CopyFrom(prepared)
        output = operation.outputs.add()
        output.handle = handle
        if existing:
            output.existing = True
        if session.device:
            operation.device = session.device
        note = self.notes[command_id] = Note(None, origin, operation)
        self._begun = len(commands), handle, output, note
        return operation

    def operation(self, handle: int, origin, **kind) -> None:
        """Adds a command with this kind; its output is `handle`, 0 for none."""
        (name, message), = kind.items()
        if handle and not self._as_messages:
            content = _encoding.kind_tag(name) + _encoding.framed(message.SerializeToString())
            content = _encoding.operation_with(content, handle, self.session.device if name != "view" else "")
            self._add_operation(content, origin)
            return
        command_id = self.session._next_id()
        operation = self.commands.add(id=command_id).operation
        getattr(operation, name).CopyFrom(message)
        if handle:
            operation.outputs.add(handle=handle)
        if self._is_placed(operation):
            operation.device = self.session.device
        self.notes[command_id] = Note(None, origin, operation)

    def encode(self, template: "_encoding.OperationTemplate", inputs: bytes, handle: int, origin,
               existing: bool = False, is_placed: bool = True) -> None:
        """Adds a command that makes `handle`, or with `existing` writes into it. `inputs`: the fields that the template
        lacks, serialised. `is_placed`: it runs on the session's device."""
        session, varint = self.session, _encoding.varint
        command_id = session._next_id()
        device = session.device if is_placed else ""
        command = template.command(varint(command_id), inputs, varint(handle), device, existing)
        self._add_serialised(command)
        self.notes[command_id] = Note(None, origin, command)

    def _add_operation(self, content: bytes, origin) -> None:
        """Adds a command with this serialised field, an operation."""
        command_id = self.session._next_id()
        command = _encoding.command(command_id, content)
        self._add_serialised(command)
        self.notes[command_id] = Note(None, origin, command)

    def ask(self, content: bytes, answer) -> None:
        """Adds a command other than an operation, serialised without its id, and awaits its answer."""
        command_id = self.session._next_id()
        self._add_serialised(_encoding.command(command_id, content))
        self.notes[command_id] = Note(answer)

    def add(self, operation: pb.Operation, origin, launch=None, written=()) -> None:
        """`launch`: the kernel's identity for CommandStream.launched. The daemon answers a kernel's first launch when
        it is done, and the commands after it later. It answers every launch of a kernel without arrays like this, since
        no array could report the fault. `written`: the buffers of a launch's arrays."""
        wait = launch is not None and (launch not in self.session._stream.launched or not has_arrays(operation))
        command_id = self.session._next_id()
        is_placed = self._is_placed(operation)
        recorded: Union[pb.Operation, bytes]
        if self._as_messages:
            recorded = self.commands.add(id=command_id, operation=operation, wait=wait).operation
            if is_placed:
                recorded.device = self.session.device
        else:
            content = operation.SerializeToString()
            if is_placed:
                content += _encoding.device_field(self.session.device)
            recorded = _encoding.command(command_id, _encoding.operation(content, wait))
            self._add_serialised(recorded)
        self.notes[command_id] = Note(None, origin, recorded, launch if wait else None, written)

    def add_launch(self, template: "_encoding.LaunchTemplate", arguments: bytes, origin, launch, written) -> None:
        """Adds a launch with these serialised arguments. `launch`, `written`: as of `add`; `written` names all arrays
        that it has. No `launch`: the kernel is known to have been launched before."""
        session = self.session
        if session._is_trace:
            request = compute_service_pb2.ExecuteRequest.FromString(template.command(0, arguments, False, 0))
            self.add(request.commands[0].operation, origin, launch, written)
            return
        wait = not written or launch is not None and launch not in session._stream.launched
        if wait:
            self.is_urgent = True
        command_id, code = session._next_id(), template.code
        if self.commands:
            self.seal()
        elif code not in self._code_places and self._serialised_bytes + len(code) > _MAX_LAUNCH_BYTES:
            self._end_serialised()
        place = len(self._serialised)
        command = template.command(command_id, arguments, wait, place - self._code_places.setdefault(code, place))
        self._serialised.append(command)  # as of `_add_serialised`, whose call costs more
        self._serialised_bytes += len(command)
        if place + 1 >= _MAX_PIECE_COMMANDS:
            self._end_serialised()
        self.num_launches += 1
        self.notes[command_id] = Note(None, origin, command, launch if wait else None, written)

    def _add_serialised(self, command: bytes) -> None:
        if self.commands:
            self.seal()
        serialised = self._serialised
        serialised.append(command)
        self._serialised_bytes += len(command)
        if len(serialised) >= _MAX_PIECE_COMMANDS or self._serialised_bytes >= _MAX_PIECE_BYTES:
            self._end_serialised()

    def _end_serialised(self) -> None:
        if self._serialised:
            self.pieces.append((b"".join(self._serialised), len(self._serialised)))
            self._serialised, self._serialised_bytes, self._code_places = [], 0, {}

    def _is_placed(self, operation: pb.Operation) -> bool:
        """Whether the operation, which names no device, runs on the session's."""
        return bool(self.session.device) and not operation.device and operation.WhichOneof("kind") != "view" and \
            not any(output.HasField("sharding") for output in operation.outputs)

    def read(self, node: Node, answer) -> None:
        """Adds the command that answers with the elements. A few elements return with the command that
        computes them, if it is unsent: the worker writes them to memory that the daemon reads, without a
        handle, device memory or a fetch. The value stays deferred until they arrive, so that it can be read
        again after an error."""
        session = self.session
        if node.op is not None and _is_returned(node) and node.session is session and node.device == session.device:
            handle = self.session._next_id()
            self._as_messages = True
            try:
                self._compute(node, handle)
            finally:
                self._as_messages = session._is_trace
            if self._return(handle, answer):
                node.handle = 0
                return
            node.sent(handle)
        self.fetch(self.materialise(node), answer)

    def _return(self, handle: int, answer) -> bool:
        """Makes the last command return this array, if that command alone makes it. True on success."""
        if not self.commands:
            return False
        count, begun, output, note = self._begun
        if begun != handle or count != len(self.commands):
            command = self.commands[-1]
            operation = command.operation
            if len(operation.outputs) != 1 or operation.HasField("view") or operation.HasField("program_call"):
                return False
            output, note = operation.outputs[0], self.notes[command.id]
            if output.handle != handle or output.existing or output.HasField("sharding"):
                return False
        output.inline_result = True
        note.answer = answer
        return True

    def fetch(self, handle: int, answer) -> None:
        self.ask(_encoding.fetch(handle), answer)

    def scratch(self) -> int:
        """A handle that is released when the flush ends."""
        handle = self.session._next_id()
        self._scratch.append(handle)
        return handle

    def view(self, handle: int, view: View, origin) -> int:
        """A view of an array by its handle: a handle that is released when the flush ends."""
        result = self.scratch()
        self._add_view(handle, (view,), result, origin)
        return result

    def note_long(self) -> None:
        """Counts the last operation as a launch, because it keeps the device busy. Later operations may reuse
        the memory of deleted arrays."""
        self.num_launches += 1
        self.has_long = True
        self._release([])

    def finish(self) -> None:
        self._release(self._scratch)
        self._scratch = []
        self._end_serialised()

    def take(self) -> Tuple[compute_service_pb2.ExecuteRequest, Dict[int, Note], List[Piece]]:
        """Removes and returns the commands after `finish`, for CommandStream.send. The flush is then empty
        and reusable."""
        taken = self.request, self.notes, self.pieces
        self.request = compute_service_pb2.ExecuteRequest()
        self.commands = self.request.commands
        self.notes, self.pieces = {}, []
        self._begun = 0, 0, None, None
        self.num_launches, self.is_urgent, self.has_long = 0, False, False
        return taken

    def _release(self, handles: List[int]) -> None:
        """Adds the release of these handles, which it changes, and of those without a Python object."""
        released = self.session._released
        while released:
            handles.append(released.popleft())
        if not handles:
            return
        command_id = self.session._next_id()
        if self._as_messages:
            self.commands.add(id=command_id).release.handles.extend(handles)
        else:
            self._add_serialised(_encoding.command(command_id, _encoding.release(handles)))

    def operand(self, one: Union[Node, Number]) -> pb.Operand:
        if type(one) is Number:
            return pb.Operand(scalar=one.to_proto())
        return pb.Operand(handle=self.materialise(one))

    def materialise(self, node: Node) -> int:
        """The handle of a node. Adds a command that computes it unless there is one."""
        if node.session is not self.session:
            return self.session._foreign(node)
        if node.handle:
            buffer = node.buffer
            if buffer is not None and buffer.copy is not None:
                buffer.copy.write_back(self, buffer)
            return node.handle
        handle = self.session._next_id()
        if node.op is None:
            if node.buffer is not None and node.buffer.copy is not None:
                node.buffer.copy.uploaded()
            self._upload(node, handle)
        else:
            self._compute(node, handle)
        node.sent(handle)
        return handle

    def _compute(self, node: Node, handle: int) -> None:
        op = node.op
        if type(op) is str:
            self._elementwise(node, handle)
            return
        if type(op) is Prepared:
            if op.computes and self._only_reduced(node.inputs[0]):
                self._reduce_expression(node, op, handle)
                return
            handles = list(map(self.materialise, node.inputs))
            if self._as_messages:
                op.fill(self.begin(handle, node.origin, op.operation), handles)
            else:
                self.encode(op.template, op.encoded(handles), handle, node.origin)
            return
        if type(op) is View:
            self._view(node, op, handle)
            return
        if type(op) is Assembly:
            self._assemble(node, op, handle)
            return
        node.handle = handle  # for builders that write into it
        try:
            op(self, node, [self.operand(one) for one in node.inputs])
        except BaseException:
            node.handle = 0
            raise

    def _only_reduced(self, root: Node) -> bool:
        """Whether a reduction of `root` computes its elements: `root` is an expression that has no other
        reader and fits one kernel. The daemon fuses traced operations."""
        if type(root.op) is not str or root.held or root.uses > 1 or root.buffer is not None:
            return False
        session = self.session
        return root.session is session and not session._is_trace and self._num_arrays(root, root) <= _MAX_ARRAYS

    def _num_arrays(self, node: Node, root: Node) -> int:
        """Arrays that the expression of `root` reads below `node`, with repetitions."""
        return sum(
            self._num_arrays(one, root) if self._fuses(one, root) else 1 for one in node.inputs if type(one) is Node
        )

    def _reduce_expression(self, node: Node, op: Prepared, handle: int) -> None:
        text, inputs, origins = self._expression(node.inputs[0])
        if not self._as_messages:
            encoded = _encoding.framed(self._encoded_expression(text, inputs))
            self.encode(op.template, _encoding.REDUCED_EXPRESSION + encoded, handle, [node.origin, *origins])
            return
        reduction = self.begin(handle, [node.origin, *origins], op.operation).reduction
        self._write_expression(reduction.expression, text, inputs)

    def _assemble(self, node: Node, op: Assembly, handle: int) -> None:
        sources: List[Union[Node, Number, int]] = [
            one if type(one) is Number or self._is_made_in_place(one, node) else self.materialise(one)
            for one in node.inputs
        ]
        origin = node.origin
        self.make_empty(node, handle, op.is_zeroed)
        try:
            for source, part in zip(sources, op.parts):
                self._fill_part(source, self.view(handle, part, origin), origin)
        except BaseException:
            self._scratch.append(handle)  # already sent in part, and of no use
            raise

    def make_empty(self, node: Node, handle: int, is_zeroed: bool = False) -> None:
        """Makes an array like `node` for later commands to write."""
        made = _empty(_dtypes.NUMBERS[node.dtype], node.shape, is_zeroed)
        if self._as_messages:
            self.begin(handle, node.origin, made.operation)
        else:
            self.encode(made.template, b"", handle, node.origin)

    def copy_into(self, source: Union[Number, int], target: int, origin) -> None:
        """Copies a number, or an array by its handle, into the array of the handle `target`."""
        if self._as_messages:
            copy = self.begin(target, origin, existing=True).copy
            if type(source) is Number:
                copy.input.scalar.CopyFrom(source.to_proto())
            else:
                copy.input.handle = source
            return
        operand = _encoding.number_operand(source) if type(source) is Number else _encoding.handle_operand(source)
        self.encode(_encoding.COPY, _encoding.COPY_INPUT + operand, target, origin, True)

    def _fill_part(self, source: Union[Node, Number, int], view: int, origin) -> None:
        """Writes a value into a view: an elementwise value, which is computed in place, a number, or an array
        by handle."""
        if type(source) is Node:
            self._elementwise(source, view, True)
        else:
            self.copy_into(source, view, origin)

    def _is_made_in_place(self, part: Node, whole: Node) -> bool:
        """Whether a part of an Assembly is computed in its destination, since it has no other reader."""
        session = self.session
        return (type(part.op) is str and not part.held and part.uses == 1 and part.dtype == whole.dtype
                and part.session is session and not session._is_trace and not session._has_sharded)

    def _view(self, node: Node, op: View, handle: int) -> None:
        origin, chain = node.origin, [op]
        base = node.inputs[0]
        while type(base.op) is View and base.session is self.session:
            chain.append(base.op)
            base = base.inputs[0]
        self._add_view(self.materialise(base), reversed(chain), handle, origin)

    def _add_view(self, base: int, views: Iterable[View], handle: int, origin) -> None:
        if not self._as_messages:
            inputs = _encoding.VIEW_INPUT + _encoding.handle_operand(base) + _encoded_steps(tuple(views))
            self.encode(_encoding.VIEW, inputs, handle, origin, is_placed=False)
            return
        command_id = self.session._next_id()
        command = self.commands.add()
        command.id = command_id
        operation = command.operation
        operation.view.input.handle = base
        for one in views:
            one.write(operation.view.steps)
        operation.outputs.add().handle = handle
        self.notes[command_id] = Note(None, origin, operation)

    def _upload(self, node: Node, handle: int) -> None:
        inline = array_pb2.InlineArray(spec=spec_of(node), data=node.host.tobytes())
        self.operation(handle, node.origin, copy=pb.Copy(input=pb.Operand(inline_array=inline)))

    def _inline(self, node: Node) -> Optional[bytes]:
        """An Operand with the elements of a small value of the host, which travel within the command that reads them.
        None if the value has or needs a handle: it was read often enough, or is too large."""
        if node.handle or node.op is not None or node.host is None or self.session._is_trace:
            return None
        num_inline = getattr(node, "num_inline", 0)
        if num_inline >= _MAX_INLINE_USES or node.session is not self.session or node.buffer is not None:
            return None
        host = node.host
        if not 0 < host.nbytes <= INLINE_BYTES or node.device != self.session.device:
            return None
        node.num_inline = num_inline + 1
        inline = array_pb2.InlineArray(spec=spec_of(node), data=host.tobytes())
        return pb.Operand(inline_array=inline).SerializeToString()

    def _elementwise(self, node: Node, handle: int, existing: bool = False) -> None:
        """`existing`: the array of the handle is overwritten."""
        for one in node.inputs:
            if type(one) is Node and one.op is not None:  # otherwise there is nothing to fuse
                text, inputs, origins = self._expression(node)
                if len(inputs) > _MAX_ARRAYS and sum(type(one) is not Number for one in inputs.values()) > _MAX_ARRAYS:
                    self._split(node, node)
                    text, inputs, origins = self._expression(node)
                if len(origins) == 1:
                    break
                if self._as_messages:
                    self._write_expression(self.begin(handle, origins, existing=existing).expression, text, inputs)
                else:
                    encoded = self._encoded_expression(text, inputs)
                    self.encode(_encoding.EXPRESSION, encoded, handle, origins, existing)
                return
        if self._as_messages:
            self._ufunc(node, handle, existing)
            return
        session, inputs = self.session, b""
        for one in node.inputs:
            if type(one) is Number:
                operand = _encoding.number_operand(one)
            else:
                # As `materialise` does, whose call costs more.
                read = one.handle if one.buffer is None and one.session is session else 0
                inline = None if read else self._inline(one)
                operand = _encoding.handle_operand(read or self.materialise(one)) if inline is None else \
                    _encoding.framed(inline)
            inputs += _encoding.UFUNC_INPUT + operand
        self.encode(_encoding.ufunc_templates[node.op], inputs, handle, node.origin, existing)

    def _ufunc(self, node: Node, handle: int, existing: bool) -> None:
        """A single function, as a message."""
        operands = [
            one.to_proto() if type(one) is Number else self._inline(one) or self.materialise(one)
            for one in node.inputs
        ]
        ufunc = self.begin(handle, node.origin, existing=existing).ufunc
        ufunc.function = node.op
        add = ufunc.inputs.add
        for one in operands:
            if type(one) is int:
                add().handle = one  # copying an Operand costs more
            elif type(one) is bytes:
                add().MergeFromString(one)
            else:
                add().scalar.CopyFrom(one)

    @staticmethod
    def _encoded_expression(text: str, inputs: dict) -> bytes:
        return _encoding.expression(text, {
            name: _encoding.handle_operand(one) if type(one) is int else
            _encoding.framed(one) if type(one) is bytes else _encoding.number_operand(one)
            for name, one in inputs.items()
        })

    @staticmethod
    def _write_expression(expression: pb.Expression, text: str, inputs: dict) -> None:
        expression.text = text
        fields = expression.inputs
        for name, one in inputs.items():
            if type(one) is int:
                fields[name].handle = one
            elif type(one) is bytes:
                fields[name].MergeFromString(one)
            else:
                fields[name].scalar.CopyFrom(one.to_proto())

    def _expression(self, node: Node) -> tuple:
        """Text, inputs and origins of the nodes that are fused with this one. An input is a handle, a serialised
        Operand or a Number."""
        inputs: dict = {}
        origins = [node.origin]
        return self._text(node, node, {}, inputs, origins, True), inputs, origins

    def _split(self, node: Node, root: Node) -> set:
        """Materialises parts of the expression of `root` below `node` until it reads no more arrays than one
        kernel may. Returns their handles."""
        parts = []
        for one in node.inputs:
            if type(one) is Node:
                parts.append((self._split(one, root) if self._fuses(one, root) else {self.materialise(one)}, one))
        handles = set().union(*(read for read, _ in parts))
        while len(handles) > _MAX_ARRAYS:
            largest = max(range(len(parts)), key=lambda i: len(parts[i][0]))
            parts[largest] = {self.materialise(parts[largest][1])}, parts[largest][1]
            handles = set().union(*(read for read, _ in parts))
        return handles

    def _text(self, node: Node, root: Node, names, inputs, origins, is_root=False) -> str:
        if not is_root:
            if not self._fuses(node, root):
                name = names.get(node)
                if name is not None:
                    return name
                inline = self._inline(node)
                if inline is not None:
                    name = names[node] = f"a{len(inputs)}"
                    inputs[name] = inline
                    return name
                handle = self.materialise(node)
                name = names.get(handle)
                if name is None:
                    name = names[handle] = f"a{len(inputs)}"
                    inputs[name] = handle
                return name
            origins.append(node.origin)
        arguments = []
        for one in node.inputs:
            if type(one) is Number:
                arguments.append(self._number(one, names, inputs))
            else:
                arguments.append(self._text(one, root, names, inputs, origins))
        return f"{node.op}({', '.join(arguments)})"

    @staticmethod
    def _number(number: Number, names, inputs) -> str:
        """The name of a scalar input. Equal scalars share a name; zeros with different signs do not, also as
        parts of complex numbers."""
        key = (
            (number.type, number.value)
            if number.value and not isinstance(number.value, (complex, np.complexfloating))
            else None
        )
        name = names.get(key) if key is not None else None
        if name is None:
            name = f"s{len(inputs)}"
            inputs[name] = number
            if key is not None:
                names[key] = name
        return name

    @staticmethod
    def _fuses(node: Node, root: Node) -> bool:
        return (type(node.op) is str and not node.held and node.shape == root.shape and node.session is root.session
                and (node.uses <= 1 or node.weight <= _MAX_REPEATED_WEIGHT))

from stride import _local  # noqa: E402, which stands on this module
