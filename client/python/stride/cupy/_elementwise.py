"""ElementwiseKernel: an operation in CUDA C++ for each element of arrays that broadcast."""

from typing import Dict, List, Optional, Sequence, Tuple

import numpy as np

from stride import _casts, _inference
from stride._array import _SCALARS, Array, node_of, wrap
from stride._elementwise_kernel import _plain, _run
from stride._kernel import RawKernel
from stride._numbers import Number
from stride._python_kernel import _BLOCK, _MAX_BLOCKS, _is_contiguous
from stride._texture import Texture
from stride.cupy._parameters import infer, parse, type_of
from stride.cupy._text import entry_of, parameter_type, prelude, type_name


def on_device(values: Sequence, textures: bool = False) -> list:
    """Arrays of the service in place of NumPy's; numbers as they are, and textures where the kernel takes them."""
    session = next((one.session for one in values if isinstance(one, Array)), None)
    made = []
    for one in values:
        one = getattr(one, "_as_kernel_argument", one)
        if isinstance(one, (Array, *_SCALARS)) or textures and isinstance(one, Texture):
            made.append(one)
        elif isinstance(one, np.ndarray):
            made.append(wrap(node_of(one, session)))
        else:
            raise TypeError(f"an argument is an array or a number, not {type(one).__name__}")
    return made


class ElementwiseKernel:
    """An elementwise kernel, as CuPy has it.

        squared_difference = cp.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared_difference")
        z = squared_difference(x, y)

    `in_params` and `out_params` declare arrays and numbers: `T x` with a placeholder for any type, `float32 x`,
    `raw T x` for an array that the operation indexes itself. `operation` is CUDA C++ with the index `i`, the
    number of elements `n` and `_ind.size()`; `preamble` stands in front of the kernel, `loop_prep` and
    `after_loop` before and after each thread's loop. An index of a raw array counts in C order, or is an array
    of one number for each axis.

    Called with the inputs, or with inputs and outputs; `size` is needed where all arrays are raw. Inputs are not
    written: what is written is an output.

    Parameters
        in_params: the declarations of the inputs.
        out_params: the declarations of the outputs.
        operation: CUDA C++ for one element.
        name: the kernel's name.
        reduce_dims: accepted.
        preamble: CUDA C++ before the kernel.
        no_return: whether a call returns None.
        return_tuple: whether a call with one output returns a tuple.
        loop_prep: CUDA C++ before a thread's loop.
        after_loop: CUDA C++ after a thread's loop.
        options: the compiler's.
        doc: accepted.
    Raises
        TypeError at a call for another number of arguments; CompileError for what does not compile.
    Example
        >>> import stride.cupy as cp
        >>> twice = cp.ElementwiseKernel("T x", "T y", "y = 2 * x", "twice")
        >>> twice(cp.arange(3.0)).tolist()
        [0.0, 2.0, 4.0]
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        reduce_dims: bool = True,
        preamble: str = "",
        no_return: bool = False,
        return_tuple: bool = False,
        loop_prep: str = "",
        after_loop: str = "",
        options: Sequence[str] = (),
        doc: str = "",
        **_,
    ):
        self.in_params, self.out_params = tuple(parse(in_params, True)), tuple(parse(out_params, False))
        self.params = (*self.in_params, *self.out_params)
        if len({one.name for one in self.params}) != len(self.params):
            raise ValueError(f"a name is both an input and an output of {name}")
        if not name.isidentifier():
            raise ValueError(f"Invalid kernel name: {name!r}; it is an identifier of C++")
        self.nin, self.nout, self.nargs = len(self.in_params), len(self.out_params), len(self.params)
        self.operation, self.name, self.preamble, self.reduce_dims = operation, name, preamble, reduce_dims
        self.no_return, self.return_tuple = no_return, return_tuple
        self.loop_prep, self.after_loop, self.options = loop_prep, after_loop, tuple(options)
        self.__name__ = name
        if doc:
            self.__doc__ = doc
        self._texts: Dict[tuple, Tuple[str, str]] = {}

    def __repr__(self) -> str:
        return f"<stride.cupy.ElementwiseKernel {self.name}>"

    def __call__(self, *args, size: Optional[int] = None, block_size: int = -1, stream=None, out=None):
        """The outputs. `size` is the number of threads' items where all arrays are raw. `block_size` and `stream`
        change nothing."""
        if block_size == 0 or block_size < -1:
            raise ValueError(f"Invalid block_size: {block_size}")
        if out is not None:
            args = (*args, *(out if isinstance(out, tuple) else (out,)))
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(
                f"Wrong number of arguments for {self.name!r}. It must be either {self.nin} or {self.nargs} (with "
                f"outputs), but given {len(args)}."
            )
        for parameter, one in zip(self.out_params, args[self.nin :]):
            if not isinstance(one, Array):
                raise TypeError(
                    f"{self.name}: the output {parameter.name} is an array of the service, not {type(one).__name__}"
                )
        values = on_device(args, textures=True)
        types = infer(
            self.name,
            (*self.params[self.nin : len(values)], *self.in_params),
            (*values[self.nin :], *values[: self.nin]),
        )
        textures = {one.name for one, value in zip(self.in_params, values) if isinstance(value, Texture)}
        dtypes = [None if one.name in textures else type_of(self.name, one, types) for one in self.params]
        shape = self._shape(values, size)
        makes_raw = size is not None and any(one.raw for one in self.out_params)
        if len(values) == self.nin and (makes_raw or textures):
            from stride import _creation

            values = [*values, *(_creation.zeros(shape, dtype=dtype) for dtype in dtypes[self.nin :])]
        if len(values) == self.nargs:
            results = self._launch(values, dtypes, shape)
        else:
            results = self._record(values, dtypes, shape)
        if self.no_return:
            return None
        return results[0] if len(results) == 1 and not self.return_tuple else tuple(results)

    def _shape(self, values: Sequence, size: Optional[int]) -> tuple:
        shapes = [
            one.shape for one, parameter in zip(values, self.params) if isinstance(one, Array) and not parameter.raw
        ]
        outputs = [one.shape for one, parameter in zip(values[self.nin :], self.out_params) if not parameter.raw]
        if size is not None:
            if shapes:
                raise ValueError("Specified 'size' can be used only if all of the ndarray are 'raw'.")
            return (int(size),)
        if not shapes:
            raise ValueError("Loop size is undecided.")
        shape = _inference.broadcast(*shapes)
        if any(one != shape for one in outputs):
            raise ValueError(
                f"Out shape is mismatched: {self.name} has an output of "
                f"{next(one for one in outputs if one != shape)}, where "
                f"the operation is of {shape}"
            )
        return shape

    # --- text ---

    def _text(
        self,
        key: tuple,
        dtypes: Sequence[np.dtype],
        ranks: Sequence[Optional[int]],
        indexed: Sequence[bool],
        num_axes: int,
    ) -> Tuple[str, str]:
        """`ranks`: None of a number passed by value. `indexed`: whether the array has an element for each index, rather
        than one for all."""
        known = self._texts.get(key)
        if known is None:
            known = self._texts[key] = self._make(dtypes, ranks, indexed, num_axes), entry_of(self.name)
        return known

    def _make(self, dtypes, ranks, indexed, num_axes: int) -> str:
        parameters, before, inside = [], [], []
        named = [(one, dtype) for one, dtype in zip(self.params, dtypes) if dtype is not None]
        typedefs = {one.ctype: dtype for one, dtype in named if one.dtype is None}
        for one, dtype, rank, each in zip(self.params, dtypes, ranks, indexed):
            if dtype is None:
                parameters.append(f"cudaTextureObject_t {one.name}")
                continue
            c = ("const " if one.is_const else "") + type_name(dtype)
            if rank is None:
                parameters.append(f"const {parameter_type(dtype)} {one.name}")
                continue
            parameters.append(f"{c}* _p_{one.name}")
            if one.raw:
                extents = [f"_n{axis}_{one.name}" for axis in range(rank)]
                parameters += [f"long long {extent}" for extent in extents]
                before.append(f"  CArray<{c}, {rank}> {one.name}({', '.join((f'_p_{one.name}', *extents))});")
            else:
                inside.append(f"    {c}& {one.name} = _p_{one.name}[{'i' if each else '0'}];")
        body = f"{self.operation}{self.loop_prep}{self.after_loop}"
        shape = [f"_s{axis}" for axis in range(num_axes)] if "_ind" in body else []
        parameters += [f"long long {extent}" for extent in shape] + ["long long _size"]
        size = [] if any(one.name == "n" for one in self.params) else ["  const long long n = _size;"]
        return "\n".join(
            [
                prelude([dtype for _, dtype in named], body + self.preamble),
                *(f"typedef {type_name(dtype)} {ctype};" for ctype, dtype in typedefs.items()),
                self.preamble,
                f'extern "C" __global__ void {entry_of(self.name)}({", ".join(parameters)}) {{',
                *before,
                *size,
                f"  CIndexer<{len(shape)}> _ind({', '.join(('_size', *shape))});",
                f"  {self.loop_prep};",
                "  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < _size; i += (long "
                "long)gridDim.x * blockDim.x) {",
                "    _ind.set(i);" if shape else "",
                *inside,
                f"    {self.operation};",
                "  }",
                f"  {self.after_loop};",
                "}",
                "",
            ]
        )

    # --- launches ---

    def _inputs(self, values: Sequence, dtypes, shape: tuple) -> Tuple[list, list, list]:
        """The arguments of the inputs, their ranks, and whether each has an element for each index."""
        arguments, ranks, indexed = [], [], []
        for parameter, value, dtype in zip(self.in_params, values, dtypes):
            if isinstance(value, Texture):
                arguments.append(value)
                ranks.append(None)
                indexed.append(False)
                continue
            if not isinstance(value, Array):
                if parameter.raw:
                    value = wrap(node_of(np.asarray(value, dtype)))
                else:
                    arguments.append(dtype.type(value))
                    ranks.append(None)
                    indexed.append(False)
                    continue
            whole = parameter.raw or value.size == 1 and shape != value.shape
            arguments.append(_plain(value._node, value.shape if whole else shape))
            ranks.append(value.ndim)
            indexed.append(not whole)
        return arguments, ranks, indexed

    def _record(self, values: Sequence, dtypes, shape: tuple) -> List[Array]:
        """Into new arrays, deferred as other operations are."""
        if any(one.raw for one in self.out_params):
            raise ValueError("Output array size is Undecided: an output that is raw is given")
        arguments, ranks, indexed = self._inputs(values, dtypes, shape)
        inputs: list = []
        for parameter, one, rank in zip(self.in_params, arguments, ranks):
            inputs.append(Number(one) if rank is None else one)
            if parameter.raw and rank:
                inputs += [Number(np.int64(extent)) for extent in one.shape]
        ranks += [len(shape)] * self.nout
        indexed += [True] * self.nout
        key = (tuple(dtypes), tuple(ranks), tuple(indexed), len(shape))
        text, entry = self._text(key, dtypes, ranks, indexed, len(shape))
        session = next((one.session for one in arguments if not isinstance(one, np.generic)), None)
        if session is None:
            from stride._session import current_session

            session = current_session()
        count = int(np.prod(shape))
        extents = list(shape) if "_ind" in f"{self.operation}{self.loop_prep}{self.after_loop}" else []
        return _run(
            text,
            entry,
            session,
            tuple(inputs),
            [(shape, dtype) for dtype in dtypes[self.nin :]],
            [*extents, count],
            count,
            options=self.options,
        )

    def _launch(self, values: Sequence, dtypes, shape: tuple) -> List[Array]:
        """Into arrays that exist."""
        from stride import _indexing

        arguments, ranks, indexed = self._inputs(values, dtypes, shape)
        flat, copies, written = [], [], []
        for parameter, one, rank in zip(self.in_params, arguments, ranks):
            flat.append(one if rank is None else wrap(one) if not one.held else _held(one, values))
            if parameter.raw and rank:
                flat += [np.int64(extent) for extent in one.shape]
        for parameter, given in zip(self.out_params, values[self.nin :]):
            _indexing.check_writable(given)
            array = given
            if not _is_contiguous(given._node):
                array = _casts.copy(given)
                copies.append((given, array))
            flat.append(array)
            written.append(array)
            if parameter.raw and given.ndim:
                flat += [np.int64(extent) for extent in given.shape]
            ranks.append(given.ndim)
            indexed.append(not parameter.raw)
        key = (tuple(dtypes), tuple(ranks), tuple(indexed), len(shape))
        text, entry = self._text(key, dtypes, ranks, indexed, len(shape))
        count = int(np.prod(shape))
        if "_ind" in f"{self.operation}{self.loop_prep}{self.after_loop}":
            flat += [np.int64(extent) for extent in shape]
        flat.append(np.int64(count))
        if count:
            grid = max(1, min(_MAX_BLOCKS, -(-count // _BLOCK)))
            RawKernel(text, entry, self.options).launch(
                grid, _BLOCK, flat, written, session=written[0].session if written else None
            )
        for given, array in copies:
            _indexing.write(given, array)
        return list(values[self.nin :])

    @property
    def kwargs(self) -> dict:
        """The options of the constructor other than parameters and operation.

        Example
            >>> import stride.cupy as cp
            >>> sorted(cp.ElementwiseKernel("T x", "T y", "y = 2 * x", "twice").kwargs)[:1]
            ['after_loop']
        """
        return {"loop_prep": self.loop_prep, "after_loop": self.after_loop, "options": self.options}


def _held(node, values: Sequence) -> Array:
    """The array that has a node."""
    return next(one for one in values if isinstance(one, Array) and one._node is node)
