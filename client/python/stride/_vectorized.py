"""`vectorize` with signatures: a function of elements that has a ufunc's methods, as Numba's does."""

import functools
import hashlib
from typing import Callable, List, Optional, Sequence

import numpy as np

from stride import _dtypes, _errors, _functions, _manipulation, _signatures
from stride._array import Array, node_of, operands_of, wrap
from stride._elementwise_kernel import without_dynamic
from stride._graph import Node
from stride._translate import Unit
from stride._translate_source import Source
from stride._translate_types import Scalar, c_type


class _Loop:
    """Types of one signature. `result` is None where the signature does not give it."""

    def __init__(self, given):
        signature = _signatures.parse(given)
        if not all(isinstance(one, _signatures.ElementType) for one in signature.args):
            raise ValueError(f"a signature is written like float32(float32, int64), not {given!r}")
        result = signature.return_type
        self.result: Optional[np.dtype] = None if result is None else _dtypes.dtype_of(result)
        self.inputs: List[np.dtype] = [_dtypes.dtype_of(one) for one in signature.args]

    def accepts(self, kinds: Sequence) -> bool:
        """`kinds`: a dtype of an array, or the Python type of a number, for each argument."""
        return len(self.inputs) == len(kinds) and all(
            np.can_cast(kind, want, "safe") if isinstance(kind, np.dtype) else np.result_type(want, kind(0)) == want
            for kind, want in zip(kinds, self.inputs)
        )


class Vectorized:
    """A function of elements with Numba's signatures.

    A call casts the arguments to the first signature that accepts them, and the result to its result type. The
    methods of a function of two inputs are those of NumPy's ufuncs: `reduce`, `accumulate`, `reduceat`, `outer` and
    `at`. The daemon keeps the function that they use under a name of its content.

    A reduction takes the elements in order, unless `identity` says that the order does not matter.

    Parameters
        function: a function of numbers, in stride.kernel's subset of Python.
        signatures: Numba's, such as `float32(float32, float32)`.
        call: the function of arrays that computes `function`.
        identity: the value of an empty reduction, or "reorderable" for none; None: the order matters.
    """

    def __init__(self, function: Callable, signatures: Sequence, call: Callable, identity=None):
        functools.update_wrapper(self, function)
        self.py_func = function
        self._call = call
        self._loops = [_Loop(one) for one in signatures]
        self.identity = None if identity == "reorderable" else identity
        self._is_reorderable = identity is not None
        self.nin, self.nout = len(self._loops[0].inputs), 1
        self.nargs, self.ntypes, self.signature = self.nin + 1, len(self._loops), None

    def __repr__(self) -> str:
        return f"<stride function {self.__name__}>"

    def __call__(self, *arguments, out: Optional[Array] = None) -> Array:
        operands = operands_of(arguments)
        kinds = [one.dtype if type(one) is Node else one.type for one in operands]
        for loop in self._loops:
            if not loop.accepts(kinds):
                continue
            made = self._call(*(
                wrap(one).astype(want, copy=False) if type(one) is Node else want.type(one.value)
                for one, want in zip(operands, loop.inputs)
            ))
            made = made if loop.result is None else made.astype(loop.result, copy=False)
            return made if out is None else _functions._give(made, out, None, "same_kind")
        names = ", ".join(getattr(kind, "name", None) or kind.__name__ for kind in kinds)
        raise _errors.DataTypeMismatch(f"{self.__name__} takes no such types: {names}", reason="DATA_TYPE_MISMATCH")

    def reduce(self, array, axis=0, dtype=None, out: Optional[Array] = None, keepdims: bool = False, initial=None,
               where=True) -> Array:
        array, ufunc = self._of_two(array, "reduce", dtype)
        return ufunc.reduce(array, axis, keepdims, out, initial, where)

    def accumulate(self, array, axis: int = 0, dtype=None, out: Optional[Array] = None) -> Array:
        array, ufunc = self._of_two(array, "accumulate", dtype)
        return ufunc.accumulate(array, axis, out)

    def reduceat(self, array, indices, axis: int = 0, dtype=None, out: Optional[Array] = None) -> Array:
        array, ufunc = self._of_two(array, "reduceat", dtype)
        return ufunc.reduceat(array, indices, axis, out)

    def outer(self, a, b) -> Array:
        self._check_two("outer")
        a, b = (one if isinstance(one, Array) else wrap(node_of(one)) for one in (a, b))
        return self(_manipulation.reshape(a, a.shape + (1,) * b.ndim), b)

    def at(self, a: Array, indices, b=None) -> None:
        """`a[indices] = function(a[indices], b)`, in the order of the indices; a repeated index counts each time."""
        self._ufunc.at(a, indices, b)

    def _check_two(self, method: str) -> None:
        if self.nin != 2:
            raise ValueError(f"{method} is only supported for functions of two inputs; {self.__name__} has {self.nin}")

    def _of_two(self, array, method: str, dtype):
        self._check_two(method)
        array = array if isinstance(array, Array) else wrap(node_of(array))
        return array if dtype is None else array.astype(dtype), self._ufunc

    @functools.cached_property
    def _ufunc(self) -> _functions.Ufunc:
        source, unit = Source(self.py_func), Unit()
        wrappers, signatures = [], []
        for loop in self._loops:
            made = unit.call(source, tuple(Scalar(one) for one in loop.inputs))
            without_dynamic(source, made)
            if not isinstance(made.returned, Scalar):
                raise _errors.ExpressionError(
                    f"{source.file}:{source.definition.lineno}: {source.name} does not return one number")
            result = made.returned.dtype if loop.result is None else loop.result
            unit.needs_complex |= any(one.kind == "c" for one in (result, *loop.inputs))
            parameters = ", ".join(f"{c_type(one)} x{i}" for i, one in enumerate(loop.inputs))
            passed = ", ".join(f"x{i}" for i in range(len(loop.inputs)))
            wrappers.append(f"__device__ {c_type(result)} {{entry}}({parameters}) "
                            f"{{{{ return ({c_type(result)}){made.entry}({passed}); }}}}\n")
            signatures.append(",".join(one.name for one in loop.inputs) + "->" + result.name)
        body = unit.prelude()
        wrapped = "".join(wrappers)
        content = "\0".join((body, wrapped, *signatures, repr(self.identity), str(self._is_reorderable)))
        name = f"{source.identifier[:64]}_{hashlib.sha256(content.encode()).hexdigest()[:24]}"
        return _functions.define_ufunc(
            name, signatures, source=body + wrapped.format(entry=name), identity=self.identity,
            associative=self._is_reorderable)
