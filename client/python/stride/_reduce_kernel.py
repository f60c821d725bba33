"""A reduction of an array by a Python function of two numbers."""

from typing import Callable

import numpy as np

from stride import _dtypes, _errors
from stride._array import Array
from stride._elementwise_kernel import _plain, _run, without_dynamic
from stride._numbers import Number
from stride._python_kernel import _BLOCK
from stride._translate import Unit
from stride._translate_source import Source
from stride._translate_types import Scalar, c_type, memory_type

_MAX_PARTS = 1024
_PER_THREAD = 8

# A block reduces a chunk: threads take turns over its elements, then halves of the block meet in shared memory.
_TEXT = """
extern "C" __global__ void {entry}(const {memory}* x, {c} start, {memory}* out, long long count, long long chunk,
                                   long long has_start) {{
  __shared__ __align__(16) unsigned char room[{block} * sizeof({c})];
  {c}* partial = ({c}*)room;
  long long begin = blockIdx.x * chunk, end = begin + chunk < count ? begin + chunk : count;
  long long size = end - begin;
  if (threadIdx.x < size) {{
    {c} value = ({c})x[begin + threadIdx.x];
    for (long long i = begin + threadIdx.x + {block}; i < end; i += {block}) value = {function}(value, ({c})x[i]);
    partial[threadIdx.x] = value;
  }}
  __syncthreads();
  for (int width = {block} / 2; width > 0; width /= 2) {{
    if (threadIdx.x < width && threadIdx.x + width < size) {{
      partial[threadIdx.x] = {function}(partial[threadIdx.x], partial[threadIdx.x + width]);
    }}
    __syncthreads();
  }}
  if (threadIdx.x == 0) out[blockIdx.x] = has_start ? ({memory}){function}(start, partial[0]) : ({memory})partial[0];
}}
"""


def reduce_by_function(function: Callable, array: Array, start) -> Array:
    """`start`: reduced with the elements; None where there is none. An array without axes, of the elements' type."""
    source, dtype = Source(function), array.dtype
    inner = _dtypes.float32 if dtype == _dtypes.float16 else dtype
    if array.size == 0:
        if start is None:
            raise ValueError(f"an empty array has no reduction by {source.name}; give it an initial value")
        from stride import _conversion

        return _conversion.asarray(np.asarray(start, dtype))
    unit = Unit()
    made = unit.call(source, (Scalar(inner), Scalar(inner)))
    without_dynamic(source, made)
    if not isinstance(made.returned, Scalar):
        raise _errors.ExpressionError(
            f"{source.file}:{source.definition.lineno}: {source.name} does not return one number"
        )
    unit.needs_half |= dtype == _dtypes.float16
    unit.needs_complex |= dtype.kind == "c"
    entry = "py_reduce"
    text = unit.prelude() + _TEXT.format(
        entry=entry, memory=memory_type(dtype), c=c_type(inner), block=_BLOCK, function=made.entry
    )
    session, node = array.session, _plain(array._node, array.shape)
    parts = max(1, min(_MAX_PARTS, -(-array.size // (_BLOCK * _PER_THREAD))))
    first = inner.type(start if start is not None else 0)

    def reduced(node, count: int, parts: int, has_start: bool, shape: tuple):
        return _run(
            text,
            entry,
            session,
            (node, Number(first)),
            [(shape, dtype)],
            [count, -(-count // parts), int(has_start)],
            parts * _BLOCK,
        )[0]

    if parts > 1:
        # Chunks are of one size, so that the last of them may be fewer than was asked for.
        parts = -(-array.size // -(-array.size // parts))
        node, count = reduced(node, array.size, parts, False, (parts,))._node, parts
    else:
        count = array.size
    return reduced(node, count, 1, start is not None, ())
