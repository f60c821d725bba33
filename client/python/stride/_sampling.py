"""Launches of the distributions of `_sampling_text`: each element, or row, uses a separate stream."""

import functools
import math
from typing import Sequence

import numpy as np

from stride import _dtypes, _elementwise_kernel, _manipulation, _sampling_math, _sampling_text, _ufunc_methods
from stride._array import Array, array_of, host_array, node_of, wrap
from stride._numbers import Number
from stride._session import current_session

# A fused multiply-add would give other bits than two operations.
_OPTIONS = ("--fmad=false",)
# Where a first attempt was rejected: a NaN that no function gives, and a number that no count is.
_MARKS = r"""
__device__ bool is_rejected(double x) { return __double_as_longlong(x) == 0x7FF8000000000BADll; }
__device__ bool is_rejected(long long x) { return x == -0x7FFFFFFFFFFFFFFFll - 1; }
__device__ void store(double* to, double x, bool ok) { *to = ok ? x : __longlong_as_double(0x7FF8000000000BADll); }
__device__ void store(double* to, double x) { *to = x; }
// A number beyond the range is the greatest count, as in NumPy.
__device__ void store(long long* to, double x) {
  *to = x < 9223372036854775808.0 ? (long long)x : 0x7FFFFFFFFFFFFFFFll;
}
__device__ void store(long long* to, double x, bool ok) { *to = ok ? (long long)x : -0x7FFFFFFFFFFFFFFFll - 1; }
"""
_LOOP = (
    "for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < count;"
    " i += (long long)gridDim.x * blockDim.x)"
)
_STREAM = "Stream s = {key, counter + i, stream ^ 0x8000000000000000ull, 0, false};"


@functools.lru_cache(maxsize=None)
def _text(name: str, dtype: np.dtype, singles: tuple) -> str:
    """The kernel for parameters of which some are one number for all. A first loop without branches tries
    once for each element; a second one continues for rejected elements."""
    parameters = "".join(f"const double* __restrict__ p{i}, " for i in range(len(singles)))
    values = "".join(f", p{i}[{'0' if single else 'i'}]" for i, single in enumerate(singles))
    c_type = _ufunc_methods.c_type(dtype)
    head = (
        f'extern "C" __global__ void sample_{name}({parameters}u64 key, u64 counter, u64 stream, '
        f"{c_type}* __restrict__ out, long long count) {{\n"
    )
    value = f"{name}(s{values})"
    if name in _sampling_text.SIMPLE_NAMES:
        body = f"  {_LOOP} {{\n    {_STREAM}\n    store(out + i, {value});\n  }}\n"
    else:
        body = f"""  {_LOOP} {{
    {_STREAM}
    Try one = first_{value};
    store(out + i, one.value, one.ok);
  }}
  __syncthreads();
  {_LOOP} {{
    if (!is_rejected(out[i])) continue;
    {_STREAM}
    out[i] = ({c_type}){value};
  }}
"""
    return f"{_sampling_math.TEXT}{_sampling_text.TEXTS[name]}{_MARKS}{head}{body}}}\n"


def _session_of(*arrays):
    return next((one.session for one in arrays if isinstance(one, Array)), None) or current_session()


def _numbers(*values: int) -> tuple:
    return tuple(Number(np.uint64(one)) for one in values)


def sample(name: str, shape: tuple, dtype: np.dtype, key: int, counter: int, stream: int, *parameters) -> Array:
    """`dtype` is float64, or int64 for counts. A parameter on the device that the distribution does not allow gives
    NaN, or
    for counts -1."""
    session = _session_of(*parameters)
    nodes, singles = [], []
    for one in parameters:
        array = one if isinstance(one, Array) else wrap(node_of(host_array(one).astype(float), session))
        array = array.astype(_dtypes.float64, copy=False)
        single = array.size == 1
        nodes.append(
            _elementwise_kernel._plain(
                _manipulation.reshape(array, (1,))._node if single else array._node, (1,) if single else shape
            )
        )
        singles.append(single)
    count = math.prod(shape)
    return _elementwise_kernel._run(
        _text(name, dtype, tuple(singles)),
        f"sample_{name}",
        session,
        (*nodes, *_numbers(key, counter, stream)),
        [(shape, dtype)],
        [count],
        count,
        options=_OPTIONS,
    )[0]


def _rows(
    entry: str, session, inputs: Sequence, state: tuple, result: tuple, numbers: Sequence[int], count: int
) -> Array:
    text = _sampling_math.TEXT + _sampling_text.ROWS_TEXT
    return _elementwise_kernel._run(
        text, entry, session, (*inputs, *_numbers(*state)), [result], [*numbers, count], count, options=_OPTIONS
    )[0]


def shares(logs: Array) -> Array:
    """exp(logs) over its sum along the last axis."""
    k = logs.shape[-1]
    return _rows(
        "shares", logs.session, (logs._node,), (), (logs.shape, _dtypes.float64), (k,), logs.size // k if k else 0
    )


def multinomial(shape: tuple, n, pvals, state: tuple) -> Array:
    """Rows of `shape` (...) and as many counts in each as `pvals` has on its last axis. `n` and the rows of `pvals` are
    one
    for all, or `shape` many."""
    session = _session_of(n, pvals)
    n, pvals = (
        array_of(n, session).astype(_dtypes.int64, copy=False),
        array_of(pvals, session).astype(_dtypes.float64, copy=False),
    )
    k, count = pvals.shape[-1], math.prod(shape)
    n_step, p_step = int(n.size != 1), 0 if pvals.size == k else k
    n_node = _elementwise_kernel._plain(n._node, shape if n_step else n.shape)
    p_node = _elementwise_kernel._plain(pvals._node, (*shape, k) if p_step else pvals.shape)
    return _rows(
        "sample_multinomial", session, (n_node, p_node), state, ((*shape, k), _dtypes.int64), (n_step, p_step, k), count
    )


def colors(shape: tuple, numbers: np.ndarray, draws: int, state: tuple) -> Array:
    """Rows of `shape` with as many of each color as a draw of so many without replacement has."""
    session = current_session()
    k = len(numbers)
    return _rows(
        "sample_colors",
        session,
        (node_of(numbers.astype(np.int64), session),),
        state,
        ((*shape, k), _dtypes.int64),
        (draws, int(numbers.sum()), k),
        math.prod(shape),
    )


def integers(shape: tuple, low: Array, span: Array, state: tuple) -> Array:
    """uint64 numbers in [low, low + span), modulo 2^64; a span of 0 is all of them."""
    inputs = tuple(_elementwise_kernel._plain(one._node, shape) for one in (low, span))
    return _rows("sample_integers", low.session, inputs, state, (shape, _dtypes.uint64), (), math.prod(shape))
