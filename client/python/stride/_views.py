"""Views of recorded values: their steps and strides."""

import contextlib
from typing import TYPE_CHECKING, Dict, NamedTuple, Optional, Tuple

from stride import _inference
from stride.v1 import operation_pb2 as pb

if TYPE_CHECKING:
    from stride._graph import Node
    from stride._parts import Part

# Serialised steps of views that are kept.
_MAX_VIEW_STEPS = 1_024


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
