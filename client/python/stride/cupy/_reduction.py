"""ReductionKernel: a mapped expression of each element, reduced along axes."""

import re
from typing import Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from stride import _inference, _manipulation
from stride._array import Array, node_of, wrap
from stride._elementwise_kernel import _plain, _run
from stride._numbers import Number
from stride._python_kernel import _BLOCK, _MAX_BLOCKS
from stride.cupy._elementwise import on_device
from stride.cupy._parameters import infer, parse, type_of
from stride.cupy._text import entry_of, parameter_type, prelude, type_name

# The size of one partial result; a type of the preamble must fit.
_ITEM_BYTES = 64
_MAX_PARTS = 512
_ELEMENTS_OF_PART = 1 << 14


class _Plan(NamedTuple):
    """How the elements are spread: a thread for each output, a block for each, or several blocks for each and a second
    launch."""

    by_thread: bool
    num_parts: int


def _plan(num_outputs: int, num_reduced: int) -> _Plan:
    if num_reduced <= 32 or num_outputs >= 256 and num_reduced <= 1024:
        return _Plan(True, 1)
    parts = min(_MAX_PARTS, -(-num_reduced // _ELEMENTS_OF_PART)) if num_outputs < 64 else 1
    # No part is empty.
    return _Plan(False, -(-num_reduced // -(-num_reduced // parts)))


class ReductionKernel:
    """A reduction, as CuPy has it.

        norm = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
        y = norm(x, axis=1)

    `map_expr` is an expression of the inputs, `reduce_expr` one of two values `a` and `b`, whose order must not
    matter, `post_map_expr` a statement that makes the outputs of `a`; `identity` is the value of no elements.
    `reduce_type` is the type of `a` (default: the first output's). `_in_ind.size()` and `_out_ind.size()` are
    the numbers of elements and of results, `_i` the result's index, `_J` the element's place among those of a
    result.

    Parameters
        in_params: the declarations of the inputs.
        out_params: the declarations of the outputs.
        map_expr: CUDA C++ of an element.
        reduce_expr: CUDA C++ of two values `a` and `b`.
        post_map_expr: a statement that makes the outputs of `a`.
        identity: the value of no elements, as CUDA C++.
        name: the kernel's name.
        reduce_type: the type of `a`; None for the first output's.
        reduce_dims: accepted.
        preamble: CUDA C++ before the kernel.
        options: the compiler's.
    Raises
        TypeError at a call for another number of arguments; CompileError for what does not compile.
    Example
        >>> import stride.cupy as cp
        >>> norm = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
        >>> float(norm(cp.array([3.0, 4.0])))
        5.0
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity,
        name: str = "reduce_kernel",
        reduce_type: Optional[str] = None,
        reduce_dims: bool = True,
        preamble: str = "",
        options: Sequence[str] = (),
    ):
        self.in_params, self.out_params = tuple(parse(in_params, True)), tuple(parse(out_params, False))
        if not self.out_params:
            raise ValueError(f"{name} has no output")
        if not name.isidentifier():
            raise ValueError(f"Invalid kernel name: {name!r}; it is an identifier of C++")
        self.params = (*self.in_params, *self.out_params)
        self.nin, self.nout, self.nargs = len(self.in_params), len(self.out_params), len(self.params)
        self.map_expr, self.reduce_expr, self.post_map_expr = map_expr, reduce_expr, post_map_expr
        self.identity = "" if identity is None else str(identity)
        self.reduce_type, self.preamble, self.options, self.name = reduce_type, preamble, tuple(options), name
        self.__name__ = name
        self._texts: Dict[tuple, str] = {}

    def __repr__(self) -> str:
        return f"<stride.cupy.ReductionKernel {self.name}>"

    def __call__(self, *args, out=None, axis=None, keepdims: bool = False, stream=None):
        """The outputs. `axis`: one, several or all (None); `out`: an array, or a tuple of them, that takes them."""
        if len(args) == self.nargs and out is None:
            args, out = args[: self.nin], tuple(args[self.nin :])
        if len(args) != self.nin:
            raise TypeError(
                f"Wrong number of arguments for {self.name!r}. It must be {self.nin}, but given {len(args)}."
            )
        outs = () if out is None else out if isinstance(out, tuple) else (out,)
        values = on_device(args)
        types = infer(self.name, (*self.out_params[: len(outs)], *self.in_params), (*outs, *values))
        dtypes = [type_of(self.name, one, types) for one in self.params]
        shapes = [
            one.shape for one, parameter in zip(values, self.in_params) if isinstance(one, Array) and not parameter.raw
        ]
        if not shapes:
            raise ValueError("Loop size is undecided.")
        shape = _inference.broadcast(*shapes)
        axes = _inference.normal_axes(axis, len(shape))
        kept = [i for i in range(len(shape)) if i not in axes]
        out_shape = tuple(shape[i] for i in kept)
        num_reduced = int(np.prod([shape[i] for i in axes]))
        if not num_reduced and not self.identity:
            raise ValueError(f"zero-size array to reduction operation {self.name} which has no identity")
        results = self._reduced(values, dtypes, shape, (*kept, *axes), out_shape, num_reduced)
        if keepdims:
            results = [
                _manipulation.reshape(one, tuple(1 if i in axes else n for i, n in enumerate(shape))) for one in results
            ]
        for given, result in zip(outs, results):
            if given.shape != result.shape:
                raise ValueError(f"{self.name}: out= has the shape {given.shape}, the result {result.shape}")
            given[...] = result
        results = list(outs) or results
        return results[0] if len(results) == 1 else tuple(results)

    def _reduced(self, values, dtypes, shape: tuple, order: tuple, out_shape: tuple, num_reduced: int) -> List[Array]:
        num_outputs = int(np.prod(out_shape))
        inputs: list = []
        parts: list = []  # (rank or None, one element for all)
        session = next(one.session for one in values if isinstance(one, Array))
        for parameter, value, dtype in zip(self.in_params, values, dtypes):
            if not isinstance(value, Array) and not parameter.raw:
                inputs.append(Number(dtype.type(value)))
                parts.append((None, True))
                continue
            array = value if isinstance(value, Array) else wrap(node_of(np.asarray(value, dtype), session))
            single = parameter.raw or array.size == 1
            if not single:
                if array.shape != shape:
                    array = _manipulation.broadcast_to(array, shape)
                if order != tuple(range(len(shape))):
                    array = _manipulation.permute_dims(array, order)
            inputs.append(_plain(array._node, array.shape))
            if parameter.raw:
                inputs += [Number(np.int64(extent)) for extent in array.shape]
            parts.append((array.ndim, single))
        plan, entry = _plan(num_outputs, num_reduced), entry_of(self.name)
        numbers = [num_outputs, num_reduced]
        results = [(out_shape, dtype) for dtype in dtypes[self.nin :]]
        if plan.num_parts == 1:
            text = self._text("thread" if plan.by_thread else "block", dtypes, parts)
            threads = num_outputs if plan.by_thread else min(_MAX_BLOCKS, num_outputs) * _BLOCK
            return _run(text, entry, session, tuple(inputs), results, [*numbers, 1], threads, options=self.options)
        num_blocks = num_outputs * plan.num_parts
        scratch = _run(
            self._text("parts", dtypes, parts),
            entry,
            session,
            tuple(inputs),
            [((num_blocks * _ITEM_BYTES,), np.dtype(np.uint8))],
            [*numbers, plan.num_parts],
            num_blocks * _BLOCK,
            options=self.options,
        )[0]
        return _run(
            self._text("last", dtypes, parts),
            entry,
            session,
            (*inputs, scratch._node),
            results,
            [*numbers, plan.num_parts],
            num_outputs * _BLOCK,
            options=self.options,
        )

    # --- text ---

    def _text(self, kind: str, dtypes, parts) -> str:
        key = (kind, tuple(dtypes), tuple(parts))
        if key not in self._texts:
            self._texts[key] = self._make(kind, dtypes, parts)
        return self._texts[key]

    def _make(self, kind: str, dtypes, parts) -> str:
        parameters, loads = [], []
        for one, dtype, (rank, single) in zip(self.in_params, dtypes, parts):
            c = f"const {type_name(dtype)}"
            if rank is None:
                parameters.append(f"const {parameter_type(dtype)} {one.name}")
                continue
            parameters.append(f"{c}* _p_{one.name}")
            if one.raw:
                extents = [f"_n{axis}_{one.name}" for axis in range(rank)]
                parameters += [f"long long {extent}" for extent in extents]
                loads.append(f"    CArray<{c}, {rank}> {one.name}({', '.join((f'_p_{one.name}', *extents))});")
            else:
                loads.append(f"    {c}& {one.name} = _p_{one.name}[{'0' if single else '_j'}];")
        stores = []
        if kind == "parts":
            parameters.append("unsigned char* _scratch")
        elif kind == "last":
            parameters.append("const unsigned char* _scratch")
        if kind != "parts":
            for one, dtype in zip(self.out_params, dtypes[self.nin :]):
                parameters.append(f"{type_name(dtype)}* _p_{one.name}")
                stores.append(f"    {type_name(dtype)}& {one.name} = _p_{one.name}[_i];")
        parameters += ["long long _num_outputs", "long long _num_reduced", "long long _num_parts"]
        typedefs = {one.ctype: dtype for one, dtype in zip(self.params, dtypes) if one.dtype is None}
        reduce_type = self.reduce_type or type_name(dtypes[self.nin])
        named = _dtype_or_none(reduce_type)
        user = "".join((self.map_expr, self.reduce_expr, self.post_map_expr, self.preamble, reduce_type))
        load = "_type_reduce _value = static_cast<_type_reduce>(" + self.map_expr + ");"
        if kind == "last":
            loads, load = (
                [],
                f"_type_reduce _value = *(const _type_reduce*)(_scratch + (_i * _num_parts + _J) * {_ITEM_BYTES});",
            )
        return "\n".join(
            [
                prelude(dtypes, user),
                *(f"typedef {type_name(dtype)} {ctype};" for ctype, dtype in typedefs.items()),
                self.preamble,
                f"typedef {named or reduce_type} _type_reduce;",
                f"static_assert(sizeof(_type_reduce) <= {_ITEM_BYTES}, \"a reduction's type has at most {_ITEM_BYTES} "
                f'bytes");',
                "struct _Extent { long long size_; __device__ long long size() const { return size_; } };",
                "__device__ _type_reduce _reduce(const _type_reduce& a, const _type_reduce& b) {",
                f"  return static_cast<_type_reduce>({self.reduce_expr});",
                "}",
                f'extern "C" __global__ void {entry_of(self.name)}({", ".join(parameters)}) {{',
                "  const _Extent _out_ind = {_num_outputs}, _in_ind = {_num_outputs * _num_reduced};",
                "  (void)_out_ind, (void)_in_ind;",
                *(
                    self._by_thread(loads, load, stores)
                    if kind == "thread"
                    else self._by_block(kind, loads, load, stores)
                ),
                "}",
                "",
            ]
        )

    def _walk(self, first: str, step: str, loads, load: str) -> List[str]:
        return [
            f"    for (long long _J = {first}; _J < _end; _J += {step}) {{",
            "      const long long _j = _i * _num_reduced + _J; (void)_j;",
            *loads,
            f"      {load}",
            "      _total = _some ? _reduce(_total, _value) : _value;",
            "      _some = true;",
            "    }",
        ]

    def _finish(self, stores) -> List[str]:
        return ["    {", *stores, "    _type_reduce a = _total; (void)a;", f"    {self.post_map_expr};", "    }"]

    def _by_thread(self, loads, load: str, stores) -> List[str]:
        return [
            "  for (long long _i = (long long)blockIdx.x * blockDim.x + threadIdx.x; _i < _num_outputs; _i += (long "
            "long)gridDim.x * blockDim.x) {",
            f"    _type_reduce _total = _type_reduce({self.identity});",
            "    bool _some = false;",
            "    const long long _end = _num_reduced;",
            *self._walk("0", "1", loads, load),
            *self._finish(stores),
            "  }",
        ]

    def _by_block(self, kind: str, loads, load: str, stores) -> List[str]:
        """Threads of a block take turns over the elements, then halves of it meet."""
        lines = [
            f"  __shared__ __align__(16) unsigned char _room[{_BLOCK} * sizeof(_type_reduce)];",
            "  _type_reduce* _partial = (_type_reduce*)_room;",
        ]
        if kind == "parts":
            lines += [
                "  {",
                "    const long long _i = blockIdx.x / _num_parts, _part = blockIdx.x % _num_parts;",
                "    const long long _chunk = (_num_reduced + _num_parts - 1) / _num_parts, _begin = _part * _chunk;",
                "    const long long _end = _begin + _chunk < _num_reduced ? _begin + _chunk : _num_reduced;",
            ]
        else:
            lines += [
                "  for (long long _i = blockIdx.x; _i < _num_outputs; _i += gridDim.x) {",
                "    const long long _begin = 0;",
                f"    const long long _end = {'_num_parts' if kind == 'last' else '_num_reduced'};",
            ]
        lines += [
            f"    _type_reduce _total = _type_reduce({self.identity});",
            "    bool _some = false;",
            *self._walk("_begin + threadIdx.x", str(_BLOCK), loads, load),
            "    const long long _count = _end - _begin;",
            "    _partial[threadIdx.x] = _total;",
            "    __syncthreads();",
            f"    for (int _width = {_BLOCK} / 2; _width > 0; _width /= 2) {{",
            "      if (threadIdx.x < _width && threadIdx.x + _width < _count)",
            "        _partial[threadIdx.x] = _reduce(_partial[threadIdx.x], _partial[threadIdx.x + _width]);",
            "      __syncthreads();",
            "    }",
            "    _total = _partial[0];",
        ]
        if kind == "parts":
            lines += [
                f"    if (threadIdx.x == 0) *(_type_reduce*)(_scratch + (long long)blockIdx.x * {_ITEM_BYTES}) = "
                f"_total;",
                "  }",
            ]
        else:
            lines += ["    if (threadIdx.x == 0)", *self._finish(stores), "    __syncthreads();", "  }"]
        return lines


def _dtype_or_none(name: str) -> Optional[str]:
    """CUDA C++'s name of NumPy's, such as `float32`; None for all others."""
    return (
        type_name(np.dtype(name)) if re.fullmatch(r"u?int(8|16|32|64)|float(16|32|64)|complex(64|128)", name) else None
    )
