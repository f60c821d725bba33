"""Einstein sums: parses the subscripts and lowers them to matrix products, transpositions, diagonals and
sums."""

import functools
import math
import operator
import string
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from stride import _dtypes, _errors, _host_functions, _inference, _manipulation, _reductions
from stride._array import Array, array_of
from stride._elementwise import multiply
from stride._linear_algebra import _cast, matmul
from stride._ufunc import _give

__all__ = ["einsum", "einsum_path"]

# A label is a letter, or for the axes of an ellipsis, which are counted from the last, a negative number.
Label = Union[str, int]
_LETTERS = string.ascii_uppercase + string.ascii_lowercase  # as numbers of the other form stand for them
_ORDERS = ("C", "F", "A", "K")


class _Term(NamedTuple):
    """One operand's or the result's letters: those before an ellipsis, those after it, and whether there is one."""

    before: str
    after: str
    has_ellipsis: bool

    @property
    def letters(self) -> str:
        return self.before + self.after


# --- reading ---


def _term(text: str) -> _Term:
    parts = text.split("...")
    if len(parts) > 2 or "." in "".join(parts):
        raise ValueError(
            "einsum's subscripts have a '.' that is not part of an ellipsis ('...'), or more than one in a term"
        )
    for one in "".join(parts):
        if one not in _LETTERS:
            raise ValueError(f"einsum's subscripts are letters, not {one!r}")
    return _Term(parts[0], parts[1] if len(parts) == 2 else "", len(parts) == 2)


@functools.lru_cache(maxsize=256)
def _read(text: str) -> Tuple[Tuple[_Term, ...], Optional[_Term]]:
    text = "".join(text.split())
    left, arrow, right = text.partition("->")
    if "-" in left + right or ">" in left + right:
        raise ValueError("einsum's subscripts have one '->' at most")
    if "," in right:
        raise ValueError("einsum's output subscripts have no ','")
    return tuple(map(_term, left.split(","))), _term(right) if arrow else None


def _text(sublist) -> str:
    """Subscripts, as text, of a list of integers and an Ellipsis."""
    text = ""
    for one in sublist:
        if one is Ellipsis:
            text += "..."
            continue
        number = operator.index(one)
        if not 0 <= number < len(_LETTERS):
            raise ValueError(f"einsum's subscripts are within 0 and {len(_LETTERS) - 1}, not {number}")
        text += _LETTERS[number]
    return text


def _arguments(arguments: tuple) -> Tuple[str, list]:
    """Subscripts as a text, and the operands, of either form."""
    if not arguments:
        raise ValueError("einsum takes subscripts and at least one operand, or operands with their subscripts")
    if isinstance(arguments[0], str):
        if len(arguments) < 2:
            raise ValueError("einsum takes at least one operand")
        return arguments[0], list(arguments[1:])
    pairs = arguments if len(arguments) % 2 == 0 else arguments[:-1]
    if len(arguments) < 2:
        raise ValueError("einsum takes operands with their subscripts")
    text = ",".join(map(_text, pairs[1::2]))
    if len(arguments) % 2:
        text += "->" + _text(arguments[-1])
    return text, list(pairs[::2])


def _labels(term: _Term, num_axes: int) -> Tuple[Label, ...]:
    return (*term.before, *range(-num_axes, 0), *term.after) if term.has_ellipsis else tuple(term.before)


def _resolve(text: str, shapes: Sequence[tuple]) -> Tuple[List[Tuple[Label, ...]], Tuple[Label, ...]]:
    """The labels of each operand's axes, and of the result's."""
    terms, output = _read(text)
    if len(terms) != len(shapes):
        raise ValueError(f"einsum's subscripts are for {len(terms)} operands, {len(shapes)} are given")
    inputs: List[Tuple[Label, ...]] = []
    for i, (term, shape) in enumerate(zip(terms, shapes)):
        extra = len(shape) - len(term.letters)
        if extra < 0:
            raise ValueError(f"einsum has more subscripts than axes for operand {i}: {term.letters!r} for {len(shape)}")
        if extra and not term.has_ellipsis:
            raise ValueError(
                f"einsum has fewer subscripts than axes for operand {i}, and no ellipsis: "
                f"{term.letters!r} for {len(shape)}"
            )
        inputs.append(_labels(term, extra))
    num_broadcast = max((sum(type(one) is int for one in labels) for labels in inputs), default=0)
    letters = [one for labels in inputs for one in labels if type(one) is str]
    if output is None:
        # The labels that occur once, in order.
        return inputs, (*range(-num_broadcast, 0), *sorted(one for one in set(letters) if letters.count(one) == 1))
    for one in output.letters:
        if output.letters.count(one) > 1:
            raise ValueError(f"einsum's output has the subscript {one!r} more than once")
        if one not in letters:
            raise ValueError(f"einsum's output has the subscript {one!r}, which no input has")
    if num_broadcast and not output.has_ellipsis:
        raise ValueError(f"einsum's output has no ellipsis for {num_broadcast} axes of the inputs' ellipses")
    return inputs, _labels(output, num_broadcast)


@functools.lru_cache(maxsize=1024)
def _resolved(text: str, shapes: Tuple[tuple, ...]) -> Tuple[tuple, Tuple[Label, ...], Dict[Label, int]]:
    """Also the extents of the labels."""
    inputs, output = _resolve(text, shapes)
    return tuple(inputs), output, _extents(inputs, shapes)


def _extents(inputs: Sequence[Tuple[Label, ...]], shapes: Sequence[tuple]) -> Dict[Label, int]:
    extents: Dict[Label, int] = {}
    for labels, shape in zip(inputs, shapes):
        here: Dict[Label, int] = {}
        for label, extent in zip(labels, shape):
            if here.setdefault(label, extent) != extent:
                raise _errors.ShapeMismatch(
                    f"einsum: one operand has the subscript {label!r} for {here[label]} and {extent} elements",
                    reason="SHAPE_MISMATCH",
                )
            if extents.get(label, 1) == 1:
                extents[label] = extent
            elif extent not in (1, extents[label]):
                raise _errors.ShapeMismatch(
                    f"einsum: the subscript {label!r} is for {extents[label]} and {extent} elements",
                    reason="SHAPE_MISMATCH",
                )
    return extents


# --- the order of contractions ---


def _plain(labels: Sequence[Tuple[Label, ...]], output: Tuple[Label, ...]) -> str:
    """The subscripts without ellipses."""
    known: Dict[Label, str] = {label: label for one in labels for label in one if type(label) is str}
    free = iter(one for one in _LETTERS if one not in known)
    for one in labels:
        for label in one:
            if label not in known:
                known[label] = next(free)
    return (
        ",".join("".join(known[label] for label in one) for one in labels)
        + "->"
        + "".join(known[label] for label in output)
    )


@functools.lru_cache(maxsize=1024)
def _path(text: str, shapes: tuple, optimize) -> tuple:
    stand_ins = [np.broadcast_to(np.float64(0), shape) for shape in shapes]
    return tuple(np.einsum_path(text, *stand_ins, optimize=optimize)[0][1:])


def _order(inputs, output, arrays, optimize) -> tuple:
    """Which operands meet, step by step, as NumPy's einsum_path says it."""
    if isinstance(optimize, (list, tuple)):
        optimize = tuple(optimize)
    elif isinstance(optimize, (bool, np.bool_)) or optimize is None:
        optimize = "greedy"
    elif not isinstance(optimize, str):
        raise TypeError(f"optimize is a bool, a name or a path, not {type(optimize).__name__}")
    if len(arrays) <= 2 and optimize in ("greedy", "optimal"):
        return (tuple(range(len(arrays))),)
    # NumPy distinguishes its paths from names by their type, list.
    key = list(optimize) if isinstance(optimize, tuple) and optimize and optimize[0] == "einsum_path" else optimize
    text, shapes = _plain(inputs, output), tuple(one.shape for one in arrays)
    return (
        tuple(np.einsum_path(text, *(np.broadcast_to(np.float64(0), one) for one in shapes), optimize=key)[0][1:])
        if isinstance(key, list)
        else (_path(text, shapes, key))
    )


# --- computing ---


def _sum(x: Array, axes: Tuple[int, ...]) -> Array:
    """In the elements' own type, as NumPy's einsum sums."""
    if not axes:
        return x
    return _reductions.any(x, axis=axes) if x.dtype == _dtypes.bool else _reductions.sum(x, axis=axes, dtype=x.dtype)


def _diagonals(x: Array, labels: Tuple[Label, ...]) -> Tuple[Array, Tuple[Label, ...]]:
    """Each label once: of axes that share one the diagonal is taken."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            n = x.shape[first]
            rest = tuple(one for i, one in enumerate(labels) if i not in (first, second))
            moved = _manipulation.moveaxis(x, (first, second), (-2, -1))
            flat = _manipulation.reshape(moved, (*moved.shape[:-2], n * n))
            taken = flat[..., :: n + 1] if n else flat
            if taken._node.buffer is None or taken._node.buffer is not x._node.buffer:
                taken._node.freeze()  # a copy: a write to it would not reach the operand
            x, labels = taken, (*rest, label)
    return x, labels


def _arranged(x: Array, labels: Sequence[Label], wanted: Sequence[Label]) -> Array:
    """The axes in the requested order, with axes of one element for missing ones."""
    order = [labels.index(one) for one in wanted if one in labels]
    x = _manipulation.permute_dims(x, order) if order != list(range(x.ndim)) else x
    extents = iter(x.shape)
    return (
        _manipulation.reshape(x, tuple(next(extents) if one in labels else 1 for one in wanted))
        if len(order) < len(wanted)
        else x
    )


def _reduced(x: Array, labels: Tuple[Label, ...], keep: set) -> Tuple[Array, Tuple[Label, ...]]:
    axes = tuple(i for i, one in enumerate(labels) if one not in keep)
    return _sum(x, axes), tuple(one for one in labels if one in keep)


class _Meeting(NamedTuple):
    """A contraction of two operands, by their labels and shapes: axes to remove and to sum, the order and the
    shape to bring them to (None: unchanged), and the product's labels and shape."""

    removed: Tuple[tuple, tuple]
    summed: Tuple[tuple, tuple]
    orders: Tuple[Optional[tuple], Optional[tuple]]
    shapes: Tuple[Optional[tuple], Optional[tuple]]
    is_elementwise: bool
    labels: Tuple[Label, ...]
    shape: tuple


@functools.lru_cache(maxsize=1024)
def _meeting(left: Tuple[Label, ...], a: tuple, right: Tuple[Label, ...], b: tuple, keep: frozenset) -> _Meeting:
    """The contraction of operands of shapes `a` and `b`. The product is summed over labels that are not in `keep`."""
    # An axis of one element that meets a longer one counts as none.
    sizes_a, sizes_b = dict(zip(left, a)), dict(zip(right, b))
    short_a = {one for one in left if sizes_a[one] == 1 and sizes_b.get(one, 1) != 1}
    short_b = {one for one in right if sizes_b[one] == 1 and sizes_a.get(one, 1) != 1}
    removed = tuple(map(left.index, short_a)), tuple(map(right.index, short_b))
    left = tuple(one for one in left if one not in short_a)
    right = tuple(one for one in right if one not in short_b)
    kept_a, kept_b = keep | set(right), keep | {one for one in left if one in keep or one in right}
    summed = (
        tuple(i for i, one in enumerate(left) if one not in kept_a),
        tuple(i for i, one in enumerate(right) if one not in kept_b),
    )
    left = tuple(one for one in left if one in kept_a)
    right = tuple(one for one in right if one in kept_b)
    shared = [one for one in left if one in right]
    batch, inner = [one for one in shared if one in keep], [one for one in shared if one not in keep]
    only_left, only_right = [one for one in left if one not in right], [one for one in right if one not in left]
    labels = (*batch, *only_left, *only_right)
    sizes = {**{one: sizes_a[one] for one in left}, **{one: sizes_b[one] for one in right}}
    if inner:
        batch_shape, m, k, n = tuple(sizes[one] for one in batch), *(
            math.prod(sizes[one] for one in group) for group in (only_left, inner, only_right)
        )
        wanted = (*batch, *only_left, *inner), (*batch, *inner, *only_right)
        shapes = (*batch_shape, m, k), (*batch_shape, k, n)
    else:
        wanted = labels, labels
        shapes = tuple(sizes[one] if one in left else 1 for one in labels), \
            tuple(sizes[one] if one in right else 1 for one in labels)
    orders, laid = [], []
    for own, order, shape in zip((left, right), wanted, shapes):
        places = tuple(own.index(one) for one in order if one in own)
        orders.append(None if places == tuple(range(len(own))) else places)
        laid.append(None if shape == tuple(sizes[own[i]] for i in places) else shape)
    return _Meeting(removed, summed, (orders[0], orders[1]), (laid[0], laid[1]), not inner, labels,
                    tuple(sizes[one] for one in labels))


def _meet(
    a: Array, left: Tuple[Label, ...], b: Array, right: Tuple[Label, ...], keep: set
) -> Tuple[Array, Tuple[Label, ...]]:
    """The product of two operands, summed over labels that are not in `keep`."""
    meeting = _meeting(left, a.shape, right, b.shape, frozenset(keep))
    arranged = []
    for x, removed, summed, order, shape in zip((a, b), *meeting[:4]):
        x = _sum(_manipulation.squeeze(x, axis=removed) if removed else x, summed)
        x = x if order is None else _manipulation.permute_dims(x, order)
        arranged.append(x if shape is None else _manipulation.reshape(x, shape))
    if meeting.is_elementwise:
        return multiply(*arranged), meeting.labels
    product = matmul(*arranged)
    return product if product.shape == meeting.shape else _manipulation.reshape(product, meeting.shape), meeting.labels


def _contract(
    arrays: List[Array], inputs: Sequence[Tuple[Label, ...]], output: Tuple[Label, ...], order: tuple
) -> Tuple[Array, Tuple[Label, ...]]:
    terms = [_diagonals(x, labels) for x, labels in zip(arrays, inputs)]
    for step in order:
        group = [terms[i] for i in step]
        terms = [one for i, one in enumerate(terms) if i not in step]
        x, labels = group[0]
        for i, (other, theirs) in enumerate(group[1:], 2):
            keep = set(output).union(*(one for _, one in terms), *(one for _, one in group[i:]))
            x, labels = _meet(x, labels, other, theirs, keep)
        terms.append(_reduced(x, labels, set(output).union(*(one for _, one in terms))))
    ((x, labels),) = terms
    return x, labels


def einsum(
    *operands, out: Optional[Array] = None, dtype=None, order: str = "K", casting: str = "safe", optimize=False
) -> Array:
    """Einstein's sum: the product of the operands, summed over the axes whose subscripts the result lacks.

    Parameters: subscripts such as `"ij,jk->ik"`, then as many arrays; or each array followed by its subscripts as a
    list of integers below 52, and the result's last. `...` stands for axes that broadcast. A subscript that one operand
    has twice takes the diagonal. Without `->` the result has those that are there once, in the alphabet's order. `out`,
    an array of the result's shape to be filled; `dtype`, the type of the computation, by default the common one (views
    keep the operand's); `order` is there for NumPy's sake; `casting`, how operands may be converted; `optimize`: a path
    of `einsum_path`, `greedy`, `optimal`, True or False. Operands meet two at a time in any case. Returns an array,
    where nothing is summed or multiplied a view, or `out`. Raises ValueError for subscripts that do not fit,
    ShapeMismatch for extents that do not, DataTypeMismatch for a conversion that `casting` forbids.

    >>> stride.einsum("ij,jk->ki", stride.ones((2, 3)), stride.ones((3, 4))).shape
    (4, 2)
    """
    if not isinstance(order, str) or order.upper() not in _ORDERS:
        raise ValueError(f"order is one of {', '.join(_ORDERS)}, not {order!r}")
    text, given = _arguments(operands)
    session = next((one.session for one in given if isinstance(one, Array)), None)
    arrays = [array_of(one, session) for one in given]
    inputs, output, extents = _resolved(text, tuple([one.shape for one in arrays]))
    if len(arrays) == 1 and out is None and set(output) == set(inputs[0]):
        # Nothing is computed: a view, in the operand's type whatever `dtype`, as NumPy's.
        view = _arranged(*_diagonals(arrays[0], inputs[0]), output)
        return view[...] if view is arrays[0] else view
    arrays = _cast(arrays, _inference.promote(*(one.dtype for one in arrays)) if dtype is None else dtype, casting)
    x, labels = _contract(arrays, inputs, output, _order(inputs, output, arrays, optimize))
    result = _arranged(x, labels, output)
    shape = tuple(extents[one] for one in output)
    if out is not None and not isinstance(out, Array):
        raise TypeError(f"out= is a stride array, not {type(out).__name__}")
    if out is not None and out.shape != shape:
        raise _errors.ShapeMismatch(
            f"einsum: out= has the shape {out.shape}, the result {shape}", reason="SHAPE_MISMATCH"
        )
    return _give(result, out, None, casting)


def einsum_path(*operands, optimize: Union[bool, str, tuple, list] = "greedy") -> Tuple[list, str]:
    """The order in which `einsum` contracts its operands at the least cost, as NumPy finds it.

    Parameters
        operands: the subscripts and arrays, as `einsum` takes them.
        optimize: `greedy`, `optimal`, True, False, a pair of a name and the most elements that a result between may
            have, or a path.
    Returns
        A tuple of a path, which `einsum` takes for `optimize`, and a text about it.
    Raises
        ValueError for subscripts that do not fit.
    Example
        >>> st.einsum_path("ij,jk,kl->il", st.ones((2, 3)), st.ones((3, 4)), st.ones((4, 5)))[0]
        ['einsum_path', (1, 2), (0, 1)]
    """
    text, given = _arguments(operands)
    shapes = [one.shape if isinstance(one, Array) else np.shape(one) for one in given]
    inputs, output = _resolve(text, shapes)
    _extents(inputs, shapes)
    # Shapes are all that counts: no elements are read.
    return np.einsum_path(
        "".join(text.split()), *(np.broadcast_to(np.float64(0), one) for one in shapes), optimize=optimize
    )


_host_functions.offer(globals())
