"""Parts of an array's elements that are views in NumPy and separate arrays in the service: `.real`, `.imag` and
`.view(dtype)`.

A **Part** joins the two. A write to the part's array, or to a view of that, is passed on to the whole; a
write to the whole is passed on to each of its parts that is still referenced. Both happen in
`_graph.write_in_place`, and cost nothing where there is no part. The array of a part holds the value of the
whole, as views in NumPy hold their base; the whole knows its parts by weak references (`Buffer.parts`)."""

import contextlib
import weakref
from typing import Any, Callable, Iterator, Optional

from stride._array import Array, get_node, wrap
from stride._graph import Buffer, Node
from stride._views import FrozenStrides, PartStrides


class Part:
    """`read(whole)` gives the part's elements, and `combine(whole, part)` the whole's with those of the part."""

    def __init__(self, whole: Node, part: Node, kind: Any, read: Callable, combine: Callable):
        self.whole = whole
        self.kind = kind
        self._array = weakref.ref(part)
        self._read = read
        self._combine = combine
        self._is_passing_on = False

    def is_of(self, node: Node, kind: Any) -> bool:
        return self.whole is node and self.kind == kind

    def _visible(self) -> Optional[Node]:
        """The part's value, if an array has it or a view of it."""
        node = self._array()
        return node if node is not None and (node.held or node.own_buffer().num_nodes > 1) else None

    def pass_on(self) -> None:
        """Called after a write to the part."""
        node, whole = self._array(), self.whole
        if self._is_passing_on or node is None:
            return
        buffer = whole.own_buffer()
        if not (whole.held or buffer.num_nodes > 1 or len(buffer.parts or ()) > 1):
            return  # the whole is no array's any more
        from stride import _indexing

        with self._passing_on(), _borrowed(whole) as array, _borrowed(node) as part:
            _indexing.write(array, self._combine(array, part))

    def refresh(self) -> None:
        """Called after a write to the whole."""
        node = None if self._is_passing_on else self._visible()
        if node is None:
            return
        from stride import _indexing

        with self._passing_on(), _borrowed(self.whole) as array, _borrowed(node) as part:
            _indexing.write(part, self._read(array))

    @contextlib.contextmanager
    def _passing_on(self) -> Iterator[None]:
        self._is_passing_on = True
        try:
            yield
        finally:
            self._is_passing_on = False


@contextlib.contextmanager
def _borrowed(node: Node) -> Iterator[Array]:
    """An array of a node that another may have, or none."""
    was_held = node.held
    array = wrap(node)
    try:
        yield array
    finally:
        if get_node(array) is node:
            array.__class__ = Array
            del array._node  # so that its end changes nothing
            node.held = was_held


def part_of(whole: Array, kind: Any, read: Callable[[Array], Array], combine: Callable[[Array, Array], Array]) -> Array:
    """The array of a part. Read-only where the whole is, and while a function is recorded."""
    node = whole._node
    result = read(whole)
    part = result._node
    if type(node.strides) is FrozenStrides or node.session._is_trace:
        part.freeze()
        return result
    joint = Part(node, part, kind, read, combine)
    part.strides = PartStrides.of(part, joint)
    buffer = node.own_buffer()
    if buffer.parts is None:
        buffer.parts = weakref.WeakSet()
    buffer.parts.add(joint)
    return result


def have_readers(buffer: Buffer) -> bool:
    """Whether an array of a part of the buffer's elements is still referenced."""
    return any(one._visible() is not None for one in list(buffer.parts or ()))


def is_own(value: Any, whole: Array, kind: Any) -> bool:
    """Whether a value is this part of the array itself, as in `x.real += 1`, which assigns it once more."""
    strides = value._node.strides if isinstance(value, Array) else None
    return type(strides) is PartStrides and strides.root is None and strides.part.is_of(whole._node, kind)
