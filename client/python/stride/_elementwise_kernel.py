"""Elementwise functions written in Python, run by a kernel over all elements."""

from typing import List, Sequence

import numpy as np

from stride import _casts, _dtypes, _errors, _inference, _manipulation
from stride._array import Array, wrap
from stride._graph import Node, record, record_several
from stride._kernel import _dim3
from stride._numbers import Number
from stride._python_kernel import _BLOCK, _MAX_BLOCKS, _is_contiguous
from stride._translate import Unit
from stride._translate_source import Source
from stride._translate_types import Scalar, c_type, memory_type
from stride.v1 import operation_pb2 as pb


def without_dynamic(source: Source, function) -> None:
    """Refuses a function with a shared array of the launch's size, where no launch says one."""
    if function.needs_dynamic:
        raise _errors.ExpressionError(
            f"{source.file}:{source.definition.lineno}: {source.name}: a shared array of 0 elements has the size that "
            f"the launch of a kernel says; here there is none"
        )


def elementwise_kernel(name: str, source: Source, operands: Sequence) -> Array:
    """One call of a translated function for each element of the operands, which broadcast."""
    nodes = [one for one in operands if type(one) is Node]
    shape = _inference.broadcast(*(one.shape for one in nodes))
    weak_type = np.result_type(*(one.dtype for one in nodes))
    types = tuple(
        (
            Scalar(one.dtype)
            if type(one) is Node
            else Scalar(np.result_type(weak_type, one.value) if not isinstance(one.type, np.dtype) else one.type)
        )
        for one in operands
    )
    types = tuple(Scalar(_dtypes.float32) if one.dtype == _dtypes.float16 else one for one in types)
    unit = Unit()
    function = unit.call(source, types)
    without_dynamic(source, function)
    if not isinstance(function.returned, Scalar):
        raise _errors.ExpressionError(
            f"{source.file}:{source.definition.lineno}: {source.name} returns "
            f"{'several numbers' if function.returned else 'nothing'}"
        )
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
    text = (
        f"{unit.prelude()}\nextern \"C\" __global__ void py_{source.identifier}({', '.join(parameters)}, "
        f"{memory_type(dtype)}* out, long long count) {{\n"
        "  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (long long)gridDim.x * "
        "blockDim.x)\n"
        f"    out[i] = {function.entry}({', '.join(loads)});\n}}\n"
    )
    inputs = tuple(
        (
            _plain(one, one.shape if one.size == 1 else shape)
            if type(one) is Node
            else Number(types[i].dtype.type(one.value))
        )
        for i, one in enumerate(operands)
    )
    return _run(
        text,
        f"py_{source.identifier}",
        nodes[0].session,
        inputs,
        [(shape, dtype)],
        [int(np.prod(shape))],
        int(np.prod(shape)),
    )[0]


def _plain(node: Node, shape) -> Node:
    """The same elements, contiguous and broadcast."""
    if node.shape == shape and _is_contiguous(node):
        return node
    array = wrap(node)
    return _casts.copy(array if node.shape == shape else _manipulation.broadcast_to(array, shape))._node


def _run(
    text: str,
    entry: str,
    session,
    inputs: tuple,
    results,
    numbers: Sequence[int],
    num_threads: int,
    options: Sequence[str] = (),
) -> List[Array]:
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
        return [
            wrap(
                record(
                    session,
                    shape,
                    dtype,
                    lambda flush, node, operands: build(flush, operands, [node.handle], node.origin),
                    inputs,
                )
            )
        ]
    return [wrap(node) for node in record_several(session, results, build, inputs)]
