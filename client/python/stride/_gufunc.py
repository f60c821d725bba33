"""Generalised ufuncs written in Python: signatures, layouts and their kernels."""

import functools
import re
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from stride import _casts, _dtypes, _errors, _inference, _manipulation
from stride._array import _SCALARS, Array, node_of, wrap
from stride._elementwise_kernel import _plain, _run, without_dynamic
from stride._signatures import ArrayType, Signature, parse
from stride._translate import Unit
from stride._translate_source import Source
from stride._translate_types import ArrayOf, Scalar, c_type, memory_type

__all__ = ["guvectorize"]


class Layout:
    """`(m,n?),(3)->(m)`: names, fixed sizes, and optional axes of inputs and outputs."""

    _PATTERN = re.compile(r"\(([^()]*)\)")

    def __init__(self, text: str):
        self.text = text.replace(" ", "")
        sides = self.text.split("->")
        if len(sides) != 2 or any(re.sub(r"\([^()]*\)", "", one).strip(",") for one in sides):
            raise ValueError(f"a layout is written like (m,n),(n)->(m), not {text}")
        self.inputs, self.outputs = (
            [tuple(filter(None, one.split(","))) for one in self._PATTERN.findall(side)] for side in sides
        )
        names = {name.rstrip("?") for one in self.inputs for name in one}
        for one in (*self.inputs, *self.outputs):
            for name in one:
                if not re.fullmatch(r"(\d+|[A-Za-z_]\w*)\??", name):
                    raise ValueError(f"{name!r} is no size in the layout {text}")
        unknown = [
            name for one in self.outputs for name in one if name.rstrip("?") not in names and not name[0].isdigit()
        ]
        if unknown:
            raise ValueError(f"no input of {text} has the size {unknown[0]}")
        if not self.inputs or not self.outputs:
            raise ValueError(f"a layout has inputs and outputs: {text}")

    def match(self, shapes: Sequence[tuple]) -> Tuple[tuple, List[tuple], List[tuple], List[tuple]]:
        """The common leading axes, the own extents of each input and of each output, in which absent optional axes are
        1, and the outputs' without these."""
        sizes: Dict[str, int] = {}
        absent = set()
        for names, shape in zip(self.inputs, shapes):
            missing = len(names) - len(shape)
            if missing > 0:
                optional = [name for name in names if name.endswith("?")]
                if missing > len(optional):
                    raise _errors.ShapeMismatch(
                        f"{self.text}: an input of shape {shape} has fewer than {len(names)} axes",
                        reason="SHAPE_MISMATCH",
                    )
                absent.update(optional[:missing])
        loops, cores = [], []
        for names, shape in zip(self.inputs, shapes):
            there = [name for name in names if name not in absent]
            loop, own = shape[: len(shape) - len(there)], list(shape[len(shape) - len(there) :])
            core = []
            for name in names:
                extent = 1 if name in absent else own.pop(0)
                known = int(name.rstrip("?")) if name[0].isdigit() else sizes.setdefault(name.rstrip("?"), extent)
                if known != extent and name not in absent:
                    raise _errors.ShapeMismatch(f"{self.text}: {name} is {known} and {extent}", reason="SHAPE_MISMATCH")
                core.append(extent)
            loops.append(tuple(loop))
            cores.append(tuple(core))
        outs = [
            tuple(int(name.rstrip("?")) if name[0].isdigit() else sizes[name.rstrip("?")] for name in names)
            for names in self.outputs
        ]
        shown = [
            tuple(n for n, name in zip(out, names) if name not in absent) for out, names in zip(outs, self.outputs)
        ]
        return _inference.broadcast((), *loops), cores, outs, shown


def guvectorize(signatures, layout: Optional[str] = None, *, target: Optional[str] = None, **_) -> Callable:
    """A generalised ufunc from a Python function, as Numba's.

        @stride.guvectorize("(m,n),(n)->(m)")
        def matvec(a, x, out):
            for i in range(a.shape[0]):
                total = 0.0
                for j in range(a.shape[1]):
                    total += a[i, j] * x[j]
                out[i] = total

    The function gets one item's arrays (inputs without axes: numbers) and writes the outputs, which begin as
    zeros and have axes even where the layout says `()`: `out[0] = ...`. It is called with arrays that have any
    number of common axes in front, over which it is mapped. Outputs have the type to which the inputs promote,
    or what `signatures`, a list of dtypes for inputs and outputs or of Numba's signatures, says before the
    layout. An input without axes whose type is an array's has one element, as in Numba. `target` and Numba's
    other options are accepted.

    Parameters
        signatures: the layout, or dtypes or Numba's signatures with the layout after them.
        layout: NumPy's grammar, `(m,n),(n)->(m)`.
        target: accepted: the daemon chooses the device.
    Returns
        A decorator, whose result is called with arrays.
    Raises
        ValueError for a layout that is none; ExpressionError at the first call for Python outside the subset.
    Example
        >>> @st.guvectorize("(n)->()")
        ... def total(x, out):
        ...     for i in range(x.shape[0]):
        ...         out[0] += x[i]
        ...
        >>> total(st.ones((2, 3))).tolist()
        [3.0, 3.0]
    """
    if layout is None:
        signatures, layout = [], signatures
    parsed = Layout(layout)
    signatures = [_types_of(one) for one in signatures]
    for one, _arrays in signatures:
        if len(one) != len(parsed.inputs) + len(parsed.outputs):
            raise ValueError(f"{len(one)} types for the {len(parsed.inputs) + len(parsed.outputs)} arrays of {layout}")

    def decorate(function: Callable) -> Callable:
        source: List[Source] = []
        texts: Dict[tuple, Tuple[str, str]] = {}

        @functools.wraps(function)
        def call(*arguments):
            if not source:
                source.append(Source(function))
            return _map(source[0], parsed, signatures, texts, arguments)

        call.layout = parsed.text  # type: ignore[attr-defined]
        call.num_inputs, call.num_outputs = len(parsed.inputs), len(parsed.outputs)  # type: ignore[attr-defined]
        return call

    return decorate


def _types_of(signature) -> Tuple[tuple, tuple]:
    """The dtypes of a signature's arrays, and which of them are arrays where the layout has no axes."""
    if isinstance(signature, (str, Signature)):
        signature = parse(signature).args
    if isinstance(signature, tuple) and len(signature) == 1 and isinstance(signature[0], tuple):
        signature = signature[0]
    return tuple(_dtypes.dtype_of(one) for one in signature), tuple(isinstance(one, ArrayType) for one in signature)


def _map(source: Source, layout: Layout, signatures, texts, arguments):
    if len(arguments) != len(layout.inputs):
        raise TypeError(f"{source.name} takes {len(layout.inputs)} arrays, not {len(arguments)}")
    session = next((one.session for one in arguments if isinstance(one, Array)), None)
    numbers = [one for one in arguments if isinstance(one, _SCALARS)]
    given = [None if isinstance(one, _SCALARS) else node_of(one, session) for one in arguments]
    common = np.result_type(*(one.dtype for one in given if one is not None), *numbers)
    nodes = [
        (
            node_of(np.asarray(one, np.result_type(one, common) if not isinstance(one, np.generic) else None), session)
            if node is None
            else node
        )
        for node, one in zip(given, arguments)
    ]
    types, arrays = _choose(source, signatures, nodes, common, len(layout.outputs))
    loop, cores, outs, shown = layout.match([node.shape for node in nodes])
    inputs = []
    for node, dtype, core in zip(nodes, types, cores):
        if node.dtype != dtype:
            node = _casts.astype(wrap(node), dtype)._node
        # Either one item for all, or one for each.
        single = node.size == int(np.prod(core))
        whole = core if single else (*loop, *core)
        if node.shape != whole:
            array = wrap(node)
            if single:
                array = _manipulation.reshape(array, core)
            else:
                own = len(node.shape) - len(core)
                if own < 0 or node.shape[own:] != core:  # an optional axis is absent
                    array = _manipulation.reshape(array, _with_absent(node.shape, core))
                array = _manipulation.broadcast_to(array, whole)
            node = array._node
        inputs.append((_plain(node, whole), single))
    key = (types, tuple(map(len, cores)), tuple(map(len, outs)), tuple(single for _, single in inputs), arrays)
    if key not in texts:
        texts[key] = _gufunc_text(source, layout, types, cores, outs, [single for _, single in inputs], arrays)
    text, entry = texts[key]
    count = int(np.prod(loop))
    results = [((*loop, *own), dtype) for own, dtype in zip(shown, types[len(inputs) :])]
    extents = [n for own in (*cores, *outs) for n in own]
    session = nodes[0].session
    made = _run(text, entry, session, tuple(node for node, _ in inputs), results, [*extents, count], count)
    return made[0] if len(made) == 1 else tuple(made)


def _with_absent(shape: tuple, core: tuple) -> tuple:
    """The shape with axes of one element where optional ones are absent."""
    there = [n for n in core if n != 1]
    loop = shape[: len(shape) - len(there)] if there else shape
    return (*loop, *core)


def _choose(source: Source, signatures, nodes, common, num_outputs: int) -> tuple:
    """The types, and which inputs without axes are arrays."""
    if not signatures:
        return (*(node.dtype for node in nodes), *(common,) * num_outputs), (False,) * (len(nodes) + num_outputs)
    for casting in ("no", "safe", "same_kind"):
        for one, arrays in signatures:
            if all(np.can_cast(node.dtype, dtype, casting) for node, dtype in zip(nodes, one)):
                return one, arrays
    raise _errors.DataTypeMismatch(f"{source.name} takes no such types: {', '.join(str(node.dtype) for node in nodes)}")


def _gufunc_text(source: Source, layout: Layout, types, cores, outs, single, arrays) -> Tuple[str, str]:
    unit = Unit()
    ranks = [len(one) or int(is_array) for one, is_array in zip(cores, arrays)] + [max(1, len(one)) for one in outs]
    num_inputs = len(cores)
    function = unit.call(
        source,
        tuple(
            (
                Scalar(dtype if dtype != _dtypes.float16 else _dtypes.float32)
                if i < num_inputs and not rank
                else ArrayOf(dtype, rank)
            )
            for i, (dtype, rank) in enumerate(zip(types, ranks))
        ),
    )
    without_dynamic(source, function)
    unit.needs_half |= _dtypes.float16 in types
    parameters, extents, arguments = [], [], []
    for i, (dtype, own) in enumerate(zip(types, (*cores, *outs))):
        names = [f"n{i}_{k}" for k in range(len(own))]
        extents += names
        is_input = i < num_inputs
        parameters.append(f"{'const ' if is_input else ''}{memory_type(dtype)}* p{i}")
        place = "0" if is_input and single[i] else " * ".join(["item", *names])
        if is_input and not ranks[i]:
            arguments.append(f"({c_type(dtype)})p{i}[{place}]")
            continue
        # An input that the function writes is its own affair, as in Numba: not allowed, since other items may share it.
        if is_input and source.parameters[i] in function.written:
            raise _errors.ExpressionError(
                f"{source.file}:{source.definition.lineno}: {source.name} writes its input {source.parameters[i]}"
            )
        arguments.append(f"p{i} + {place}")
        arguments += names or ["1"]
    entry = f"py_{source.identifier}"
    text = (
        f'{unit.prelude()}\nextern "C" __global__ void '
        f"{entry}({', '.join((*parameters, *(f'long long {n}' for n in extents)))}, long long count) {{\n"
        "  for (long long item = (long long)blockIdx.x * blockDim.x + threadIdx.x; item < count; item += (long "
        "long)gridDim.x * blockDim.x)\n"
        f"    {function.entry}({', '.join(arguments)});\n}}\n"
    )
    return text, entry
