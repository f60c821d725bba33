"""Python functions for devices: kernels, device functions, reductions, elementwise and generalised ufuncs, under
Numba's names."""

import functools
import os
from typing import Any, Callable, Optional

import numpy as np

from stride import _errors
from stride._execution import refused
from stride._signatures import ElementType, is_signature, parse, parse_all


def jit(
    func_or_sig=None,
    argtypes=None,
    device: bool = False,
    inline: Any = "never",
    bind: bool = True,
    link=(),
    debug: Any = None,
    opt: Any = None,
    fastmath: bool = False,
    lineinfo: bool = False,
    cache: bool = False,
    max_registers: Optional[int] = None,
    **_,
):
    """A kernel, or with `device=True` a function for kernels to call.

    `func_or_sig`: the function, or its signature (`"void(float32[:], int32)"`, `void(float32[:], int32)`, a
    tuple of types), or a list of them, with which arguments of other types are refused and numbers converted.
    `fastmath` and `max_registers` are the compiler's; `link` names files of CUDA C++ with functions that
    `declare_device` declares. Numba's other options (`debug`, `lineinfo`, `opt`, `cache`, `inline`) are accepted
    and change nothing: the daemon compiles.

    Parameters
        func_or_sig: the function, or its signature, or a list of signatures.
        argtypes: types of arguments, in place of a signature.
        device: whether the function is one that kernels call.
        inline: accepted.
        bind: accepted.
        link: files of CUDA C++, or their text.
        debug: accepted.
        opt: accepted.
        fastmath: whether the compiler may use less accurate functions.
        lineinfo: accepted.
        cache: accepted.
        max_registers: the most registers of a thread; None for no limit.
    Returns
        A Kernel, or a decorator.
    Raises
        ExpressionError at the first launch for Python outside the subset.
    Example
        >>> from stride import cuda
        >>> @cuda.jit
        ... def fill(out, value):
        ...     i = cuda.grid(1)
        ...     if i < out.size:
        ...         out[i] = value
        ...
        >>> x = cuda.device_array(3)
        >>> fill[1, 32](x, 7.0)
        >>> x.copy_to_host()
        array([7., 7., 7.])
    """
    from stride._python_kernel import DeviceFunction, Kernel

    signatures = (
        parse_all(func_or_sig) if is_signature(func_or_sig) else parse_all(argtypes) if argtypes is not None else ()
    )
    links = [_read(one) for one in ([link] if isinstance(link, str) else link)]
    options = (["--use_fast_math"] if fastmath else []) + ([f"--maxrregcount={max_registers}"] if max_registers else [])

    def decorate(function: Callable):
        function = getattr(function, "python_function", function)
        # A signature with a result is a device function's.
        returns = any(
            isinstance(one.return_type, ElementType) and hasattr(one.return_type, "dtype") for one in signatures
        )
        if device or returns:
            return DeviceFunction(function, signatures)
        return Kernel(function, signatures, options, links)

    if func_or_sig is None or is_signature(func_or_sig):
        return decorate
    if not callable(func_or_sig):
        raise TypeError(f"cuda.jit takes a function or a signature, not {type(func_or_sig).__name__}")
    return decorate(func_or_sig)


def _read(path) -> str:
    """CUDA C++ of a file that is linked."""
    path = os.fspath(path)
    if not path.endswith((".cu", ".cuh", ".h")):
        raise _errors.Unimplemented(
            f"link={path!r}: only CUDA C++ sources can be linked with a kernel of Python; PTX and binaries run by "
            f"stride.RawKernel",
            reason="NOT_IMPLEMENTED",
            metadata={"feature": "link"},
        )
    with open(path, encoding="utf-8") as file:
        return file.read() + "\n"


def _compiled_here(name: str):
    def refuse(*_, **__):
        refused(
            f"cuda.{name}", "the daemon compiles; kernel.inspect_source(arguments...) has the CUDA C++ that it is given"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"""Refused: the daemon compiles; a kernel's `inspect_source` has the CUDA C++ that it is given.

    Parameters
        _: accepted.
        __: accepted.
    Returns
        Nothing: it raises.
    Raises
        Unimplemented.
    Example
        >>> from stride import cuda
        >>> try:
        ...     cuda.{name}(abs, ())
        ... except st.Unimplemented:
        ...     print("refused")
        ...
        refused
    """
    return refuse


compile_ptx, compile_ptx_for_current_device, compile_for_current_device = map(
    _compiled_here, ("compile_ptx", "compile_ptx_for_current_device", "compile_for_current_device")
)


class DeclaredFunction:
    """A function of CUDA C++ that kernels call: `extern "C" __device__ int name(R* result, arguments...)`, as Numba has
    them."""

    def __init__(self, name: str, signature):
        self.name = self.__name__ = name
        self.linked_signature = parse(signature)
        self.sig = self.linked_signature
        if not isinstance(self.linked_signature.return_type, ElementType):
            raise TypeError(
                f"Return type must be provided for device declarations: the signature of {name} has a result, as in "
                f"float32(float32)"
            )

    def __repr__(self) -> str:
        return f"<stride.cuda declared function {self.name}>"

    def __call__(self, *_):
        raise TypeError(f"{self.name} is called inside kernels, whose link= names the file that it is in")


def declare_device(name: str, sig) -> DeclaredFunction:
    """Declares a function of CUDA C++, defined in a file that a kernel's `link` names.

    Parameters
        name: the function's name in CUDA C++.
        sig: its signature, such as `float32(float32)`.
    Returns
        A function that kernels call.
    Raises
        ValueError for a text that is no signature.
    Example
        >>> from stride import cuda
        >>> callable(cuda.declare_device("halve", "float32(float32)"))
        True
    """
    return DeclaredFunction(name, sig)


class Reduce:
    """A reduction of an array to one number by a function of two numbers, whose order does not matter.

    add = cuda.reduce(lambda a, b: a + b)
    total = add(x, init=0)

    Parameters
        functor: a function of two numbers.
    Raises
        ExpressionError at the first call for Python outside the subset.
    Example
        >>> from stride import cuda
        >>> total = cuda.reduce(lambda a, b: a + b)
        >>> float(total(st.arange(4.0)))
        6.0
    """

    def __init__(self, functor: Callable):
        functools.update_wrapper(self, functor)
        self._functor = functor

    def __call__(self, arr, size: Optional[int] = None, res=None, init=0, stream=0):
        """`init` is reduced too. `size`: of the first so many elements. `res`: an array whose first element becomes the
        result, which is returned else."""
        from stride import _conversion, _reduce_kernel

        array = _conversion.asarray(arr)
        if array.ndim != 1:
            raise TypeError(f"cuda.reduce takes an array of one axis, not of {array.ndim}")
        array = array if size is None else array[:size]
        result = _reduce_kernel.reduce_by_function(
            getattr(self._functor, "python_function", self._functor), array, init
        )
        if res is None:
            return result.to_numpy()[()]
        res[:1] = result.reshape(1)
        return None


reduce = Reduce


def _is_host(values) -> bool:
    from stride._array import Array

    return not any(isinstance(one, Array) for one in values)


def _given(result, out, on_host: bool):
    """A result where Numba has it: in `out`, on the host when all arguments were there, else on the device."""
    if out is not None:
        out[...] = result.to_numpy() if isinstance(out, np.ndarray) else result
        return out
    return result.to_numpy()[()] if on_host else result


class UFunc:
    """An elementwise function: of arrays of the host an array of the host, of arrays of the service one of the
    service."""

    def __init__(self, function: Callable, signatures):
        from stride._kernel import compiled, vectorize as vectorized

        functools.update_wrapper(self, function)
        self.python_function = self.py_func = function
        self._call = vectorized(signatures)(function) if signatures else compiled(function)
        self.max_blocksize = 1024

    def __call__(self, *arguments, out=None, stream=0):
        """`out`: an array that takes the result."""
        return _given(self._call(*arguments), out, _is_host(arguments))

    def reduce(self, arg, axis: int = 0, stream=0):
        """Reduces an array of one axis by a function of two numbers whose order does not matter."""
        from stride import _conversion, _reduce_kernel

        array = _conversion.asarray(arg)
        if array.ndim != 1 or axis != 0:
            raise TypeError("a vectorized function reduces arrays of one axis")
        result = _reduce_kernel.reduce_by_function(self.python_function, array, None)
        return _given(result, None, _is_host((arg,)))


def vectorize(ftylist_or_function=None, target: str = "cuda", **_):
    """An elementwise function from one of numbers, with Numba's signatures or without. Numba's other options are
    accepted and change nothing.

    Parameters
        ftylist_or_function: a list of signatures, or the function of numbers.
        target: accepted: the daemon chooses the device.
    Returns
        A function of arrays, or a decorator.
    Raises
        ExpressionError at the first call for Python outside the subset.
    Example
        >>> from stride import cuda
        >>> @cuda.vectorize(["float64(float64, float64)"])
        ... def scaled(x, factor):
        ...     return x * factor
        ...
        >>> scaled(np.arange(3.0), 2.0)
        array([0., 2., 4.])
    """
    if callable(ftylist_or_function) and not is_signature(ftylist_or_function):
        return UFunc(ftylist_or_function, [])
    signatures = [] if ftylist_or_function is None else list(parse_all(ftylist_or_function))
    return lambda function: UFunc(function, signatures)


class GUFunc:
    """A generalised ufunc: of arrays of the host an array of the host, of arrays of the service one of the service."""

    def __init__(self, function: Callable, signatures, layout: str):
        from stride._gufunc import guvectorize as generalised

        functools.update_wrapper(self, function)
        self.python_function = self.py_func = function
        self._call = generalised(signatures, layout)(function)
        self.max_blocksize = 1024

    def __call__(self, *arguments, out=None, stream=0):
        """Takes arrays for the inputs; after them, or as `out`, arrays that take the results."""
        inputs, outs = arguments[: self._call.num_inputs], arguments[self._call.num_inputs :]
        results = self._call(*inputs)
        results = results if isinstance(results, tuple) else (results,)
        outs = outs or (out if isinstance(out, tuple) else (out,) * 1 if out is not None else (None,) * len(results))
        if len(outs) != len(results):
            name = getattr(self, "__name__", "the function")
            raise TypeError(f"{name} has {len(results)} results, not {len(outs)}")
        made = tuple(_given(one, place, _is_host(inputs)) for one, place in zip(results, outs))
        return made[0] if len(made) == 1 else made


def guvectorize(ftylist, signature: Optional[str] = None, target: str = "cuda", **_):
    """A generalised ufunc with Numba's signatures and layout: `guvectorize([(float32[:], float32[:])], "(n)->(n)")`.

    Parameters
        ftylist: a list of signatures, or the layout where none are given.
        signature: the layout, such as `(n)->(n)`.
        target: accepted: the daemon chooses the device.
    Returns
        A decorator, whose result is called with arrays.
    Raises
        ValueError for a layout that is none; ExpressionError at the first call for Python outside the subset.
    Example
        >>> from stride import cuda
        >>> @cuda.guvectorize("(n)->()")
        ... def total(x, out):
        ...     for i in range(x.shape[0]):
        ...         out[0] += x[i]
        ...
        >>> total(np.ones((2, 3))).tolist()
        [3.0, 3.0]
    """
    if signature is None:
        ftylist, signature = [], ftylist
    kinds = ftylist if isinstance(ftylist, list) else [ftylist]
    return lambda function: GUFunc(function, kinds, signature)
