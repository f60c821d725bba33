"""Kernels written in Python, translated when they first meet arguments of some types."""

import functools
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from stride import _casts, _inference
from stride._array import Array, node_of, wrap
from stride._execution import devices, refused
from stride._graph import Node
from stride._kernel import RawKernel, _dim3
from stride._signatures import TYPES, ArrayType, ElementType, Signature, TupleType, parse
from stride._translate import Translated, translate_kernel
from stride._translate_source import Source
from stride._translate_types import ArrayOf, Scalar, TupleOf, leaves, parameter_type

__all__ = ["DeviceFunction", "Kernel", "device_function", "kernel"]

_BLOCK = 256
_MAX_BLOCKS = 1 << 16


def _is_contiguous(node: Node) -> bool:
    return (
        node.strides is None
        or node.size <= 1
        or all(n == 1 or s == t for n, s, t in zip(node.shape, node.strides, _inference.contiguous_strides(node.shape)))
    )


class Kernel:
    """A Python function that many threads run: `kernel[grid, block](arguments)`. Made by stride.kernel and cuda.jit.

    With `signatures` it takes arguments of these types only; numbers are converted to them. `options` are the
    compiler's, `links` CUDA C++ that it calls.

    Parameters
        function: a function of the subset of Python that `stride.kernel` describes.
        signatures: the types of arguments that it takes; empty for any.
        options: the compiler's.
        links: CUDA C++ that it calls.
    Raises
        ExpressionError at the first launch for Python outside the subset.
    Example
        >>> @st.kernel
        ... def fill(out, value):
        ...     i = st.grid(1)
        ...     if i < out.size:
        ...         out[i] = value
        ...
        >>> x = st.zeros(3)
        >>> fill[1, 32](x, 7.0)
        >>> x.tolist()
        [7.0, 7.0, 7.0]
    """

    __name__: str

    def __init__(
        self,
        function: Callable,
        signatures: Sequence[Signature] = (),
        options: Sequence[str] = (),
        links: Sequence[str] = (),
    ):
        functools.update_wrapper(self, function)
        self.python_function = self.py_func = function
        self.signatures = tuple(signatures)
        self._options, self._links = tuple(options), tuple(links)
        self._source: Optional[Source] = None
        self._translated: Dict[tuple, Tuple[RawKernel, Translated]] = {}

    def __repr__(self) -> str:
        return f"<stride.kernel {self.__name__}>"

    def __getitem__(self, configuration) -> Callable:
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise ValueError(
                "a kernel is launched as kernel[grid, block](...) or kernel[grid, block, stream, "
                "shared_memory_bytes](...)"
            )
        return self.configure(*configuration)

    def configure(self, griddim, blockdim, stream=0, sharedmem: int = 0) -> Callable:
        """A callable that launches the kernel with this number of blocks and threads; `stream` is accepted,
        since operations run in order.

        Parameters
            griddim: the number of blocks, for each axis.
            blockdim: the number of threads of a block, for each axis.
            stream: accepted: operations run in order whatever the stream.
            sharedmem: bytes of dynamic shared memory of a block.
        Returns
            A function that takes the kernel's arguments.
        Raises
            ValueError for a number of blocks or threads below 1.
        Example
            >>> @st.kernel
            ... def fill(out, value):
            ...     out[st.grid(1)] = value
            ...
            >>> x = st.zeros(3)
            >>> fill.configure(1, 3)(x, 7.0)
            >>> x.tolist()
            [7.0, 7.0, 7.0]
        """
        _dim3(griddim, "grid")
        _dim3(blockdim, "block")
        return functools.partial(self._launch, griddim, blockdim, sharedmem)

    def forall(self, ntasks: int, tpb: int = 0, stream=0, sharedmem: int = 0) -> Callable:
        """A callable that launches the kernel with a thread for each item.

        Parameters
            ntasks: the number of items.
            tpb: threads of a block; 0 for a usual number.
            stream: accepted: operations run in order whatever the stream.
            sharedmem: bytes of dynamic shared memory of a block.
        Returns
            A function that takes the kernel's arguments.
        Example
            >>> @st.kernel
            ... def fill(out, value):
            ...     i = st.grid(1)
            ...     if i < out.size:
            ...         out[i] = value
            ...
            >>> x = st.zeros(3)
            >>> fill.forall(3)(x, 7.0)
            >>> x.tolist()
            [7.0, 7.0, 7.0]
        """
        if ntasks < 0:
            raise ValueError(f"Can't create ForAll with negative task count: {ntasks}")
        block = tpb or _BLOCK
        return self.configure(max(1, -(-ntasks // block)), block, stream, sharedmem)

    def __call__(self, *_):
        raise ValueError(
            f"Kernel launch configuration was not specified: say with how many threads, as {self.__name__}[grid, "
            f"block](...)"
        )

    def specialize(self, *arguments) -> "Kernel":
        """Translates the kernel for the types of arguments.

        Parameters
            arguments: arguments as of a launch.
        Returns
            The kernel.
        Raises
            ExpressionError for Python outside the subset.
        Example
            >>> @st.kernel
            ... def fill(out, value):
            ...     out[st.grid(1)] = value
            ...
            >>> fill.specialize(st.zeros(3), 7.0) is fill
            True
        """
        self.translated(*arguments)
        return self

    def compile(self, signature) -> "Kernel":
        """Adds a signature, whose arguments the kernel then takes too.

        Parameters
            signature: such as `void(float32[:], int32)`, a text or types.
        Returns
            The kernel.
        Raises
            ValueError for a text that is no signature.
        Example
            >>> @st.kernel
            ... def fill(out, value):
            ...     out[st.grid(1)] = value
            ...
            >>> fill.compile("void(float64[:], float64)") is fill
            True
        """
        self.signatures = (*self.signatures, parse(signature))
        return self

    def translated(self, *arguments) -> Tuple[RawKernel, List[bool]]:
        """The CUDA C++ kernel for such arguments, and which of them it writes.

        Parameters
            arguments: arguments as of a launch.
        Returns
            A RawKernel, and a bool for each argument.
        Raises
            ExpressionError for Python outside the subset.
        Example
            >>> @st.kernel
            ... def fill(out, value):
            ...     out[st.grid(1)] = value
            ...
            >>> fill.translated(st.zeros(3), 7.0)[1]
            [True, False]
        """
        types = tuple(map(parameter_type, arguments))
        raw, made = self._translation(types)
        written = iter(made.written)
        return raw, [any([next(written) for _ in leaves("", one)]) for one in types]

    def _translation(self, types: tuple) -> Tuple[RawKernel, Translated]:
        known = self._translated.get(types)
        if known is None:
            if self._source is None:
                self._source = Source(self.python_function)
            made = translate_kernel(self._source, types, self._links)
            known = self._translated[types] = RawKernel(made.text, made.entry, self._options), made
        return known

    def inspect_source(self, *arguments) -> str:
        """The CUDA C++ text for such arguments.

        Parameters
            arguments: arguments as of a launch.
        Returns
            A str.
        Raises
            ExpressionError for Python outside the subset.
        Example
            >>> @st.kernel
            ... def fill(out, value):
            ...     out[st.grid(1)] = value
            ...
            >>> "__global__" in fill.inspect_source(st.zeros(3), 7.0)
            True
        """
        return str(self.translated(*arguments)[0].source)

    @property
    def overloads(self) -> Dict[tuple, "Overload"]:
        """The kernels so far, and those of its signatures, by the types of their arguments.

        Example
            >>> @st.kernel
            ... def fill(out, value):
            ...     out[st.grid(1)] = value
            ...
            >>> fill[1, 3](st.zeros(3), 7.0)
            >>> len(fill.overloads)
            1
        """
        for one in self.signatures:
            self._translation(tuple(map(_translators_type, one.args)))
        return {numba_types(types): Overload(self, raw, made) for types, (raw, made) in self._translated.items()}

    def _compiled(self, field: str):
        """A number that the compiler says of each kernel so far, by the types of its arguments; 0 where the device kind
        has no such notion."""
        from stride._module import RawModule

        made = {}
        for types, (raw, _) in self._translated.items():
            infos = RawModule(raw.source, options=raw.options, entries=[raw.name])._there(None).kernels
            made[numba_types(types)] = int(getattr(infos[0], field))
        return made

    def get_regs_per_thread(self, signature=None):
        """Registers of a thread, by the types of the arguments it was launched with.

        Parameters
            signature: types of arguments; None for all that were launched.
        Returns
            An int for a signature, else a dict by types.
        Raises
            KeyError for types that were not launched.
        Example
            >>> @st.kernel
            ... def fill(out, value):
            ...     out[st.grid(1)] = value
            ...
            >>> fill[1, 3](st.zeros(3), 7.0)
            >>> [one >= 0 for one in fill.get_regs_per_thread().values()]
            [True]
        """
        return self._compiled("registers")

    def get_shared_mem_per_block(self, signature=None):
        """Bytes of shared memory of a block, by the types of the arguments it was launched with.

        Parameters
            signature: types of arguments; None for all that were launched.
        Returns
            An int for a signature, else a dict by types.
        Raises
            KeyError for types that were not launched.
        Example
            >>> @st.kernel
            ... def fill(out, value):
            ...     out[st.grid(1)] = value
            ...
            >>> fill[1, 3](st.zeros(3), 7.0)
            >>> list(fill.get_shared_mem_per_block().values())
            [0]
        """
        return self._compiled("shared_bytes")

    def get_local_mem_per_thread(self, signature=None):
        """Bytes of local memory of a thread, by the types of the arguments it was launched with.

        Parameters
            signature: types of arguments; None for all that were launched.
        Returns
            An int for a signature, else a dict by types.
        Raises
            KeyError for types that were not launched.
        Example
            >>> @st.kernel
            ... def fill(out, value):
            ...     out[st.grid(1)] = value
            ...
            >>> fill[1, 3](st.zeros(3), 7.0)
            >>> [one >= 0 for one in fill.get_local_mem_per_thread().values()]
            [True]
        """
        return self._compiled("local_bytes")

    def get_const_mem_size(self, signature=None):
        """Bytes of constant memory, by the types of the arguments it was launched with.

        Parameters
            signature: types of arguments; None for all that were launched.
        Returns
            An int for a signature, else a dict by types.
        Raises
            KeyError for types that were not launched.
        Example
            >>> @st.kernel
            ... def fill(out, value):
            ...     out[st.grid(1)] = value
            ...
            >>> fill[1, 3](st.zeros(3), 7.0)
            >>> [one >= 0 for one in fill.get_const_mem_size().values()]
            [True]
        """
        return self._compiled("constant_bytes")

    def get_max_threads_per_block(self, signature=None):
        """The most threads of a block, by the types of the arguments it was launched with.

        Parameters
            signature: types of arguments; None for all that were launched.
        Returns
            An int for a signature, else a dict by types.
        Raises
            KeyError for types that were not launched.
        Example
            >>> @st.kernel
            ... def fill(out, value):
            ...     out[st.grid(1)] = value
            ...
            >>> fill[1, 3](st.zeros(3), 7.0)
            >>> [one > 0 for one in fill.get_max_threads_per_block().values()]
            [True]
        """
        return self._compiled("max_threads_per_block")

    def inspect_asm(self, *_):
        """Refused: `inspect_source` has the CUDA C++ that the daemon compiles.

        Parameters
            _: accepted.
        Returns
            Nothing: it raises.
        Raises
            Unimplemented.
        Example
            >>> @st.kernel
            ... def fill(out, value):
            ...     out[st.grid(1)] = value
            ...
            >>> try:
            ...     fill.inspect_asm()
            ... except st.Unimplemented:
            ...     print("refused")
            ...
            refused
        """
        refused(
            "inspect_asm",
            "the daemon compiles the kernel; inspect_source(arguments...) has the CUDA C++ that it is given",
        )

    inspect_llvm = inspect_sass = inspect_types = inspect_asm

    def _converted(self, arguments: tuple) -> tuple:
        """The arguments in the types of the first signature that takes them."""
        if not self.signatures:
            return arguments
        for one in self.signatures:
            made = converted(one, arguments)
            if made is not None:
                return made
        given = ", ".join(
            f"{one.dtype}[{', '.join(':' * len(one.shape))}]" if hasattr(one, "shape") else type(one).__name__
            for one in arguments
        )
        raise TypeError(
            f"No matching definition for argument type(s): {self.__name__} takes "
            f"{' or '.join(map(repr, self.signatures))}, not ({given})"
        )

    def _launch(self, grid, block, shared_memory_bytes: int, *arguments, device: Optional[str] = None) -> None:
        from stride import _indexing

        arguments = self._converted(arguments)
        raw, made = self._translation(tuple(map(parameter_type, arguments)))
        if any(isinstance(one, tuple) for one in arguments):
            arguments = tuple(_flattened(arguments))
        session = next((one.session for one in arguments if isinstance(one, Array)), None)
        values: list = [np.int64(shared_memory_bytes)] if made.needs_dynamic else []
        changed, copies, back = [], [], []
        for argument, writes in zip(arguments, made.written):
            if (
                not isinstance(argument, (Array, np.ndarray))
                and hasattr(argument, "shape")
                and not isinstance(argument, np.generic)
            ):
                argument = np.asarray(argument)
            if isinstance(argument, (Array, np.ndarray)):
                array = argument if isinstance(argument, Array) else wrap(node_of(argument, session))
                if writes:
                    _indexing.check_writable(array)
                if not _is_contiguous(array._node):
                    array = _casts.copy(array)
                    if writes:
                        copies.append((argument, array))
                elif writes and array is not argument:
                    back.append((argument, array))
                values += [array, *map(np.int64, array.shape)]
                if writes:
                    changed.append(array)
            else:
                values.append(
                    argument if isinstance(argument, np.generic) else parameter_type(argument).dtype.type(argument)
                )
        raw.launch(
            grid,
            block,
            values,
            changed,
            shared_memory_bytes=shared_memory_bytes,
            cooperative=made.is_cooperative,
            session=session,
            device=device,
        )
        for argument, array in copies:
            _indexing.write(argument, array)
        for argument, array in back:  # as Numba: arrays of the host have the results when the call returns
            argument[...] = array._read()


def _flattened(arguments) -> Iterator:
    """The numbers and arrays of arguments, those within tuples too."""
    for one in arguments:
        if isinstance(one, tuple):
            yield from _flattened(one)
        else:
            yield one


def _translators_type(kind) -> object:
    """A type of a signature as the translator has it."""
    if isinstance(kind, TupleType):
        return TupleOf(tuple(map(_translators_type, kind.types)))
    return ArrayOf(kind.dtype, kind.ndim) if isinstance(kind, ArrayType) else Scalar(kind.dtype)


def numba_types(types: tuple) -> tuple:
    """Types of arguments as Numba has them: `float32`, `int32[:, :]`."""

    def one_of(kind):
        if isinstance(kind, TupleOf):
            return TupleType(map(one_of, kind.parts))
        return ArrayType(kind.dtype, kind.ndim) if isinstance(kind, ArrayOf) else TYPES[kind.dtype.name]

    return tuple(map(one_of, types))


class Overload:
    """A kernel for arguments of one combination of types."""

    def __init__(self, kernel: Kernel, raw: RawKernel, made: Translated):
        self.kernel, self.raw, self.cooperative = kernel, raw, made.is_cooperative

    def max_cooperative_grid_blocks(self, blockdim, dynsmemsize: int = 0) -> int:
        """How many blocks run at once and may meet on the device: of a GPU what the compiler says. A CPU device takes
        more than the number that is given, which a launch that is too large names."""
        from stride._module import RawModule

        threads = int(np.prod(blockdim))
        info = RawModule(self.raw.source, options=self.raw.options, entries=[self.raw.name])._there(None).kernels[0]
        blocks = max(1, info.max_threads_per_block // threads)
        return (
            blocks * info.max_active_blocks * devices()[0].num_compute_units
            if info.HasField("max_active_blocks")
            else blocks
        )


def converted(signature: Signature, arguments: tuple) -> Optional[tuple]:
    """The arguments in a signature's types; None where it does not take them."""
    if len(signature.args) != len(arguments):
        return None
    made = []
    for wanted, given in zip(signature.args, arguments):
        is_array = hasattr(given, "shape") and not isinstance(given, np.generic)
        if isinstance(wanted, ArrayType) != is_array or isinstance(given, tuple) and not isinstance(wanted, TupleType):
            return None
        if is_array:
            if given.dtype != wanted.dtype or len(given.shape) != wanted.ndim:
                return None
        elif isinstance(wanted, ElementType):
            if (
                wanted.dtype.kind in "biuf"
                and isinstance(given, (complex, np.complexfloating))
                and not isinstance(given, (bool, int, float))
            ):
                return None
            given = _number_as(wanted.dtype, given)
        made.append(given)
    return tuple(made)


def _number_as(dtype: np.dtype, given):
    """A number of a type; integers outside of its range wrap, as in Numba."""
    if dtype.kind not in "iu" or not isinstance(given, (int, np.integer)):
        return dtype.type(given)
    bits = 8 * dtype.itemsize
    return np.array(int(given) % (1 << bits), f"u{dtype.itemsize}").astype(dtype)[()]


def kernel(function: Callable) -> Kernel:
    """A kernel from a Python function, as Numba's `cuda.jit`.

        @stride.kernel
        def add(x, y, out):
            for i in range(stride.grid(1), out.size, stride.gridsize(1)):
                out[i] = x[i] + y[i]

        add[32, 128](x, y, out)

    It is translated to CUDA C++ for each combination of argument types. Python outside the subset raises
    ExpressionError with the file and line at the first launch: there are numbers, complex ones too, arrays with
    indices and slices, tuples, if, while, for over range, arrays and tuples, arithmetic, math's functions, calls
    of other Python functions, and what `stride.cuda` has (threadIdx, shared and local arrays, syncthreads,
    atomics, warps). A view that is not contiguous is passed as a copy, which is copied back when the kernel
    writes it.

    Parameters
        function: the function; its arguments are arrays and numbers.
    Returns
        A Kernel.
    Raises
        TypeError for an object that is no function of Python.
    Example
        >>> @st.kernel
        ... def add(x, y, out):
        ...     for i in range(st.grid(1), out.size, st.gridsize(1)):
        ...         out[i] = x[i] + y[i]
        ...
        >>> out = st.zeros(3)
        >>> add[32, 128](st.ones(3), st.arange(3.0), out)
        >>> out.tolist()
        [1.0, 2.0, 3.0]
    """
    return Kernel(function)


class DeviceFunction:
    """A Python function for kernels to call. With signatures its arguments and its result have one's types. Called
    outside a kernel it is Python's."""

    __name__: str

    def __init__(self, function: Callable, signatures: Sequence[Signature] = ()):
        functools.update_wrapper(self, function)
        self.python_function = self.py_func = function
        self.signatures = tuple(signatures)

    def __repr__(self) -> str:
        return f"<stride.cuda device function {self.__name__}>"

    def __call__(self, *arguments, **kwargs):
        return self.python_function(*arguments, **kwargs)


def device_function(function: Callable) -> Callable:
    """Numba's `cuda.jit(device=True)`: any Python function can be called from kernels, so that this only marks it."""
    return DeviceFunction(function)
