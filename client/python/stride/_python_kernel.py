"""Kernels and generalised ufuncs written in Python, translated when they first meet arguments of some types."""

import functools
import re
from typing import Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from stride import _dtypes, _errors, _inference, _manipulation
from stride._array import _SCALARS, Array, node_of, wrap
from stride._graph import Node, Number, record, record_several
from stride._kernel import RawKernel, _dim3
from stride._translate import Unit, translate_kernel
from stride._translate_source import Source
from stride._translate_types import ArrayOf, Scalar, c_type, memory_type, parameter_type
from stride.v1 import operation_pb2 as pb

__all__ = ["Kernel", "device_function", "guvectorize", "kernel"]

_BLOCK = 256
_MAX_BLOCKS = 1 << 16


def _is_contiguous(node: Node) -> bool:
    return node.strides is None or node.size <= 1 or all(
        n == 1 or s == t for n, s, t in zip(node.shape, node.strides, _inference.contiguous_strides(node.shape)))


class Kernel:
    """A Python function that many threads run: `kernel[grid, block](arguments)`. Made by stride.kernel."""

    __name__: str

    def __init__(self, function: Callable):
        functools.update_wrapper(self, function)
        self.python_function = function
        self._source: Optional[Source] = None
        self._translated: Dict[tuple, Tuple[RawKernel, List[bool]]] = {}

    def __repr__(self) -> str:
        return f"<stride.kernel {self.__name__}>"

    def __getitem__(self, configuration) -> Callable:
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise ValueError("a kernel is launched as kernel[grid, block](...) or kernel[grid, block, 0, shared_memory_bytes](...)")
        grid, block = configuration[:2]
        shared = configuration[3] if len(configuration) == 4 else 0
        return functools.partial(self._launch, grid, block, shared)

    def forall(self, count: int, block: int = _BLOCK) -> Callable:
        """With a thread for each of `count` items."""
        return self[max(1, -(-count // block)), block]

    def __call__(self, *_):
        raise TypeError(f"say with how many threads: {self.__name__}[grid, block](...)")

    def translated(self, *arguments) -> Tuple[RawKernel, List[bool]]:
        """The CUDA C++ kernel for such arguments, and which of them it writes."""
        types = tuple(map(parameter_type, arguments))
        known = self._translated.get(types)
        if known is None:
            if self._source is None:
                self._source = Source(self.python_function)
            text, entry, written = translate_kernel(self._source, types)
            known = self._translated[types] = RawKernel(text, entry), written
        return known

    def inspect_source(self, *arguments) -> str:
        """The CUDA C++ text for such arguments."""
        return str(self.translated(*arguments)[0].source)

    def _launch(self, grid, block, shared_memory_bytes: int, *arguments, device: Optional[str] = None) -> None:
        from stride import _indexing

        raw, written = self.translated(*arguments)
        session = next((one.session for one in arguments if isinstance(one, Array)), None)
        values, changed, copies, back = [], [], [], []
        for argument, writes in zip(arguments, written):
            if isinstance(argument, (Array, np.ndarray)):
                array = argument if isinstance(argument, Array) else wrap(node_of(argument, session))
                if writes:
                    _indexing.check_writable(array)
                if not _is_contiguous(array._node):
                    array = _manipulation.copy(array)
                    if writes:
                        copies.append((argument, array))
                elif writes and array is not argument:
                    back.append((argument, array))
                values += [array, *map(np.int64, array.shape)]
                if writes:
                    changed.append(array)
            else:
                values.append(argument if isinstance(argument, np.generic) else parameter_type(argument).dtype.type(argument))
        raw.launch(grid, block, values, changed, shared_memory_bytes=shared_memory_bytes, session=session, device=device)
        for argument, array in copies:
            _indexing.write(argument, array)
        for argument, array in back:  # as Numba: arrays of the host have the results when the call returns
            argument[...] = array._read()


def kernel(function: Callable) -> Kernel:
    """A kernel from a Python function, as Numba's `cuda.jit`.

        @stride.kernel
        def add(x, y, out):
            for i in range(stride.grid(1), out.size, stride.gridsize(1)):
                out[i] = x[i] + y[i]

        add[32, 128](x, y, out)

    It is translated to CUDA C++ for each combination of argument types. What Python has beyond the subset raises ExpressionError with the file and
    line at the first launch: there are numbers, arrays indexed by integers, tuples of them, if, while, for over range, arithmetic, math's functions,
    calls of other Python functions, and what `stride.cuda` has (threadIdx, shared and local arrays, syncthreads, atomics). A view that is not
    contiguous is passed as a copy, which is copied back when the kernel writes it."""
    return Kernel(function)


def device_function(function: Callable) -> Callable:
    """Numba's `cuda.jit(device=True)`: any Python function can be called from kernels, so that this does nothing."""
    return function


# --- elementwise functions with statements ---

def elementwise_kernel(name: str, source: Source, operands: Sequence) -> Array:
    """One call of a translated function for each element of the operands, which broadcast."""
    nodes = [one for one in operands if type(one) is Node]
    shape = _inference.broadcast(*(one.shape for one in nodes))
    weak_type = np.result_type(*(one.dtype for one in nodes))
    types = tuple(Scalar(one.dtype) if type(one) is Node else Scalar(np.result_type(weak_type, one.value) if not isinstance(one.type, np.dtype) else one.type)
                  for one in operands)
    types = tuple(Scalar(_dtypes.float32) if one.dtype == _dtypes.float16 else one for one in types)
    unit = Unit()
    function = unit.call(source, types)
    if function.returned is None:
        raise _errors.ExpressionError(f"{source.file}:{source.definition.lineno}: {source.name} returns nothing")
    dtype = function.returned.dtype
    if weak_type == _dtypes.float16 and dtype == _dtypes.float32:
        dtype = weak_type
    parameters, loads = [], []
    for i, one in enumerate(operands):
        if type(one) is Node:
            unit.needs_half |= one.dtype == _dtypes.float16
            parameters.append(f"const {memory_type(one.dtype)}* p{i}")
            loads.append(f"({c_type(types[i].dtype)})p{i}[{'i' if one.shape == shape else '0'}]")
        else:
            parameters.append(f"{c_type(types[i].dtype)} p{i}")
            loads.append(f"p{i}")
    text = (f"{unit.prelude()}\nextern \"C\" __global__ void py_{source.name}({', '.join(parameters)}, {memory_type(dtype)}* out, long long count) {{\n"
            "  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (long long)gridDim.x * blockDim.x)\n"
            f"    out[i] = {function.entry}({', '.join(loads)});\n}}\n")
    inputs = tuple(_plain(one, one.shape if one.size == 1 else shape) if type(one) is Node else Number(types[i].dtype.type(one.value))
                   for i, one in enumerate(operands))
    return _run(text, f"py_{source.name}", nodes[0].session, inputs, [(shape, dtype)], [int(np.prod(shape))], int(np.prod(shape)))[0]


def _plain(node: Node, shape) -> Node:
    """The same elements, contiguous and broadcast."""
    if node.shape == shape and _is_contiguous(node):
        return node
    array = wrap(node)
    return _manipulation.copy(array if node.shape == shape else _manipulation.broadcast_to(array, shape))._node


def _run(text: str, entry: str, session, inputs: tuple, results, numbers: Sequence[int], num_threads: int,
         options: Sequence[str] = ()) -> List[Array]:
    """A deferred launch: inputs, new arrays of zeros for the results, whole numbers."""
    grid = max(1, min(_MAX_BLOCKS, -(-num_threads // _BLOCK)))

    def build(flush, operands, handles, origin):
        launch = pb.KernelLaunch(
            entry=entry, source=text, options=options, grid=_dim3(grid, "grid"), block=_dim3(_BLOCK, "block")
        )
        for one in operands:
            if one.HasField("scalar"):
                launch.arguments.add(scalar=one.scalar)
            else:
                launch.arguments.add(array=one)
        for handle, (shape, dtype) in zip(handles, results):
            argument = launch.arguments.add().new_array
            argument.spec.data_type = _dtypes.NUMBERS[dtype]
            argument.spec.shape.extend(shape)
            argument.output.handle = handle
        for number in numbers:
            launch.arguments.add(scalar=Number(np.int64(number)).to_proto())
        flush.add(pb.Operation(kernel_launch=launch), origin)

    if len(results) == 1:
        shape, dtype = results[0]
        return [wrap(record(session, shape, dtype, lambda flush, node, operands: build(flush, operands, [node.handle], node.origin), inputs))]
    return [wrap(node) for node in record_several(session, results, build, inputs)]


# --- generalised ufuncs ---

class Layout:
    """`(m,n?),(3)->(m)`: names, fixed sizes, and optional axes of inputs and outputs."""

    _PATTERN = re.compile(r"\(([^()]*)\)")

    def __init__(self, text: str):
        self.text = text.replace(" ", "")
        sides = self.text.split("->")
        if len(sides) != 2 or any(re.sub(r"\([^()]*\)", "", one).strip(",") for one in sides):
            raise ValueError(f"a layout is written like (m,n),(n)->(m), not {text}")
        self.inputs, self.outputs = ([tuple(filter(None, one.split(","))) for one in self._PATTERN.findall(side)] for side in sides)
        names = {name.rstrip("?") for one in self.inputs for name in one}
        for one in (*self.inputs, *self.outputs):
            for name in one:
                if not re.fullmatch(r"(\d+|[A-Za-z_]\w*)\??", name):
                    raise ValueError(f"{name!r} is no size in the layout {text}")
        unknown = [name for one in self.outputs for name in one if name.rstrip("?") not in names and not name[0].isdigit()]
        if unknown:
            raise ValueError(f"no input of {text} has the size {unknown[0]}")
        if not self.inputs or not self.outputs:
            raise ValueError(f"a layout has inputs and outputs: {text}")

    def match(self, shapes: Sequence[tuple]) -> Tuple[tuple, List[tuple], List[tuple], List[tuple]]:
        """The common leading axes, the own extents of each input and of each output, in which absent optional axes are 1, and the outputs' without
        these."""
        sizes: Dict[str, int] = {}
        absent = set()
        for names, shape in zip(self.inputs, shapes):
            missing = len(names) - len(shape)
            if missing > 0:
                optional = [name for name in names if name.endswith("?")]
                if missing > len(optional):
                    raise _errors.ShapeMismatch(f"{self.text}: an input of shape {shape} has fewer than {len(names)} axes", reason="SHAPE_MISMATCH")
                absent.update(optional[:missing])
        loops, cores = [], []
        for names, shape in zip(self.inputs, shapes):
            there = [name for name in names if name not in absent]
            loop, own = shape[:len(shape) - len(there)], list(shape[len(shape) - len(there):])
            core = []
            for name in names:
                extent = 1 if name in absent else own.pop(0)
                known = int(name.rstrip("?")) if name[0].isdigit() else sizes.setdefault(name.rstrip("?"), extent)
                if known != extent and name not in absent:
                    raise _errors.ShapeMismatch(f"{self.text}: {name} is {known} and {extent}", reason="SHAPE_MISMATCH")
                core.append(extent)
            loops.append(tuple(loop))
            cores.append(tuple(core))
        outs = [tuple(int(name.rstrip("?")) if name[0].isdigit() else sizes[name.rstrip("?")] for name in names) for names in self.outputs]
        shown = [tuple(n for n, name in zip(out, names) if name not in absent) for out, names in zip(outs, self.outputs)]
        return _inference.broadcast((), *loops), cores, outs, shown


def guvectorize(signatures, layout: Optional[str] = None) -> Callable:
    """A generalised ufunc from a Python function, as Numba's.

        @stride.guvectorize("(m,n),(n)->(m)")
        def matvec(a, x, out):
            for i in range(a.shape[0]):
                total = 0.0
                for j in range(a.shape[1]):
                    total += a[i, j] * x[j]
                out[i] = total

    The function gets one item's arrays (inputs without axes: numbers) and writes the outputs, which begin as zeros and have axes even where the
    layout says `()`: `out[0] = ...`. It is called with arrays that have any number of common axes in front, over which it is mapped. Outputs have
    the type to which the inputs promote, or what `signatures`, a list of dtypes for inputs and outputs, says before the layout."""
    if layout is None:
        signatures, layout = [], signatures
    parsed = Layout(layout)
    signatures = [tuple(map(_dtypes.dtype_of, one)) for one in signatures]
    for one in signatures:
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
        return call

    return decorate


def _map(source: Source, layout: Layout, signatures, texts, arguments):
    if len(arguments) != len(layout.inputs):
        raise TypeError(f"{source.name} takes {len(layout.inputs)} arrays, not {len(arguments)}")
    session = next((one.session for one in arguments if isinstance(one, Array)), None)
    numbers = [one for one in arguments if isinstance(one, _SCALARS)]
    given = [None if isinstance(one, _SCALARS) else node_of(one, session) for one in arguments]
    common = np.result_type(*(one.dtype for one in given if one is not None), *numbers)
    nodes = [node_of(np.asarray(one, np.result_type(one, common) if not isinstance(one, np.generic) else None), session) if node is None else node
             for node, one in zip(given, arguments)]
    types = _choose(source, signatures, nodes, common, len(layout.outputs))
    loop, cores, outs, shown = layout.match([node.shape for node in nodes])
    inputs = []
    for node, dtype, core in zip(nodes, types, cores):
        if node.dtype != dtype:
            node = _manipulation.astype(wrap(node), dtype)._node
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
    key = (types, tuple(map(len, cores)), tuple(map(len, outs)), tuple(single for _, single in inputs))
    if key not in texts:
        texts[key] = _gufunc_text(source, layout, types, cores, outs, [single for _, single in inputs])
    text, entry = texts[key]
    count = int(np.prod(loop))
    results = [((*loop, *own), dtype) for own, dtype in zip(shown, types[len(inputs):])]
    extents = [n for own in (*cores, *outs) for n in own]
    session = nodes[0].session
    arrays = _run(text, entry, session, tuple(node for node, _ in inputs), results, [*extents, count], count)
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def _with_absent(shape: tuple, core: tuple) -> tuple:
    """The shape with axes of one element where optional ones are absent."""
    there = [n for n in core if n != 1]
    loop = shape[:len(shape) - len(there)] if there else shape
    return (*loop, *core)


def _choose(source: Source, signatures, nodes, common, num_outputs: int) -> tuple:
    if not signatures:
        return (*(node.dtype for node in nodes), *(common,) * num_outputs)
    for casting in ("no", "safe", "same_kind"):
        for one in signatures:
            if all(np.can_cast(node.dtype, dtype, casting) for node, dtype in zip(nodes, one)):
                return one
    raise _errors.DataTypeMismatch(f"{source.name} takes no such types: {', '.join(str(node.dtype) for node in nodes)}")


def _gufunc_text(source: Source, layout: Layout, types, cores, outs, single) -> Tuple[str, str]:
    unit = Unit()
    ranks = [len(one) for one in cores] + [max(1, len(one)) for one in outs]
    num_inputs = len(cores)
    function = unit.call(source, tuple(Scalar(dtype if dtype != _dtypes.float16 else _dtypes.float32) if i < num_inputs and not rank else ArrayOf(dtype, rank)
                                       for i, (dtype, rank) in enumerate(zip(types, ranks))))
    unit.needs_half |= _dtypes.float16 in types
    parameters, extents, arguments = [], [], []
    for i, (dtype, own) in enumerate(zip(types, (*cores, *outs))):
        names = [f"n{i}_{k}" for k in range(len(own))]
        extents += names
        is_input = i < num_inputs
        parameters.append(f"{'const ' if is_input else ''}{memory_type(dtype)}* p{i}")
        place = "0" if is_input and single[i] else " * ".join(["item", *names])
        if is_input and not own:
            arguments.append(f"({c_type(dtype)})p{i}[{place}]")
            continue
        # An input that the function writes is its own affair, as in Numba: not allowed, since other items may share it.
        if is_input and source.parameters[i] in function.written:
            raise _errors.ExpressionError(f"{source.file}:{source.definition.lineno}: {source.name} writes its input {source.parameters[i]}")
        arguments.append(f"p{i} + {place}")
        arguments += names or ["1"]
    entry = f"py_{source.name}"
    text = (f"{unit.prelude()}\nextern \"C\" __global__ void {entry}({', '.join((*parameters, *(f'long long {n}' for n in extents)))}, long long count) {{\n"
            "  for (long long item = (long long)blockIdx.x * blockDim.x + threadIdx.x; item < count; item += (long long)gridDim.x * blockDim.x)\n"
            f"    {function.entry}({', '.join(arguments)});\n}}\n")
    return text, entry
