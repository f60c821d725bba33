"""Operations on small arrays whose elements a loop on the host uses. NumPy computes them at once.

The elements of a *local* buffer (`Buffer.is_local`) were read or written one by one, or were computed here
from such elements, or a number that the host waited for was computed from them. The host computes an
operation if one of its arrays is local and the host has the elements of all, at most MAX_BYTES of each and of
the result. The result is local, so that a loop that alternates between small operations and elements makes no
round trip.

The results are NumPy's. The basic operations of IEEE and those of integers have one result; others are within the
bounds of the service. Sums of less than float64 are rounded once (`wide`)."""

from math import prod
from typing import Any, Callable, FrozenSet, List, Optional

import numpy as np

from stride import _dtypes

# Up to this many bytes the host computes an operation as fast as it records and awaits one.
MAX_BYTES = 64 << 10
# Number of times that a place of the program assigns a small array to slices, or reads one or its element,
# before its inputs are read; then at each power of two.
FREQUENT = 8
# Largest number of products that one operation sums.
MAX_PRODUCTS = 1 << 16
# Whether a session has places that make the arrays of a loop (`_host_functions.py`).
has_places = False
# Fast paths that `_host_arrays.py` sets: the classes of arrays with elements on the host, a reduction (name,
# array, axis), and a product (function, left, right). They return None if the service must compute.
classes: FrozenSet[type] = frozenset()
reduced: Callable
product: Callable


def use(of: FrozenSet[type], reduction: Callable, of_two: Callable) -> None:
    global classes, reduced, product
    classes, reduced, product = of, reduction, of_two


_WIDE = {np.dtype("f2"): np.dtype("f8"), np.dtype("f4"): np.dtype("f8"), np.dtype("c8"): np.dtype("c16")}


def values_of(inputs) -> Optional[List[Any]]:
    """The inputs (nodes and Numbers) as NumPy takes them; None if the service must compute."""
    is_local, values = False, []
    for one in inputs:
        if type(one) is not Node:
            values.append(one.value)
            continue
        host = None if one.session._has_sharded else one.cached()  # a result keeps its sharding
        if host is None or host.nbytes > MAX_BYTES or host.dtype.kind == "V":
            return None
        if one.buffer is not None and one.buffer.is_local:
            is_local = True
        values.append(host)
    return values if is_local else None


def computed(session, function: Callable, inputs, shape, dtype: np.dtype) -> Optional["Node"]:
    """A node with the result of `function`, computed by NumPy; None if the service must compute."""
    values = values_of(inputs)
    if values is None or prod(shape) * dtype.itemsize > MAX_BYTES:
        return None
    return node_of(session, called(function, values), shape, dtype)


def called(function: Callable, values) -> Any:
    """The function's result; None if it raises, so that the service reports the error."""
    try:
        return function(*values)
    except FloatingPointError:
        raise
    except Exception:
        return None


def node_of(session, value: Any, shape, dtype: np.dtype) -> Optional["Node"]:
    """A local node that takes ownership of a value. None if its type or shape differs from the service's."""
    if value is None:
        return None
    host = np.asarray(value)
    if host.dtype != dtype or host.shape != tuple(shape):
        return None
    host.setflags(write=False)
    node = Node(session, host.shape, dtype, None, (), caller())
    node.host = host
    node.buffer = Buffer()
    node.buffer.is_local = True
    return node


# Functions of the service whose namesakes are no ufuncs of NumPy's.
_OTHERS = {"where": np.where}


def elementwise(session, name: str, inputs, shape, dtype: np.dtype) -> Optional["Node"]:
    function = _OTHERS.get(name) or getattr(np, name, None)
    if not isinstance(function, np.ufunc) and name not in _OTHERS:
        return None
    return computed(session, function, inputs, shape, dtype)


def wide(function: Callable, dtype: np.dtype, **options) -> Callable:
    """A sum, product or mean of NumPy's that is computed in float64 or complex128, and rounded once to `dtype`."""
    kind = _WIDE.get(dtype)
    if kind is None:
        return lambda host: function(host, dtype=dtype, **options)

    def rounded(host):
        with np.errstate(over="ignore"):
            return function(host, dtype=kind, **options).astype(dtype)

    return rounded


def mark(node: "Node") -> Optional[List["Node"]]:
    """Called when a loop waits for a value. Inputs that the host has become local, and the places of the
    program that make them are marked (`_host_functions.py`). Returns further inputs to read with the value;
    None if one is large, so that the service keeps the loop."""
    if node.session._has_sharded:
        return None
    seen, nodes, unknown = {id(node)}, [node], []
    while nodes and len(seen) < _MAX_SEEN:
        one = nodes.pop()
        if one is not node:
            if one.op is None and one.nbytes > MAX_BYTES or one.dtype.kind == "V":
                return None
            if not one.inputs and one.nbytes <= MAX_BYTES:
                note_place(one)
            if one.nbytes <= MAX_BYTES and one.cached() is not None:
                one.own_buffer().is_local = True
                continue
            if one.op is None or one.held and one.shape:
                unknown.append(one)
        for other in one.inputs:
            if type(other) is Node and id(other) not in seen:
                seen.add(id(other))
                nodes.append(other)
    return unknown if len(unknown) <= _MAX_READ and not nodes else None


def note_place(node: "Node") -> None:
    """Marks the place that makes `node`, an array that a loop on the host uses: the host makes the next one
    (`is_host_place`)."""
    global has_places
    places = node.session._host_places
    if len(places) >= _MAX_PLACES:
        places.clear()
    if type(node.origin) is tuple:
        places.add(node.origin)
        has_places = True


def is_host_place(session) -> bool:
    """Whether the array that the program is about to make belongs to a loop on the host."""
    is_plain = not session._is_trace and not session.device and not session._has_sharded and not session.closed
    return is_plain and caller() in session._host_places


_MAX_SEEN, _MAX_READ = 256, 8
_MAX_PLACES = 1024

from stride._graph import Buffer, Node, caller  # noqa: E402
