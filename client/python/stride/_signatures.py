"""Numba's element types and signatures: `float32`, `float32[:, ::1]`, `void(float32[:], int32)`, and the same as
strings.

An element type is a dtype for NumPy (`np.zeros(3, float32)`), a conversion in a kernel (`float32(x)`), and,
called outside one with other types, a signature."""

import ast
from typing import Dict, Optional, Tuple

import numpy as np

from stride import _dtypes

__all__ = ["ArrayType", "ElementType", "Signature", "TYPES", "parse"]


class Type:
    """Every type here: `isinstance(float32[:], types.Type)`.

    Example
        >>> from stride import numba
        >>> isinstance(numba.float32[:], numba.types.Type)
        True
    """


class ElementType(Type):
    """A number's type; `float32[:]` is an array's, `float32(float32)` a signature, `float32(1)` a number.

    Parameters
        name: the type's name.
        dtype: the type of NumPy; None for void.
    Example
        >>> from stride import numba
        >>> numba.float32[:, :], numba.float32(numba.int64), numba.int64(2.5)
        (float32[:, :], float32(int64), np.int64(2))
    """

    def __init__(self, name: str, dtype: Optional[np.dtype]):
        self.name = name
        if dtype is not None:
            self.dtype = dtype  # NumPy takes an object with this for the dtype

    @property
    def underlying_float(self) -> "ElementType":
        """The type of a complex number's parts.

        Example
            >>> from stride import numba
            >>> numba.complex64.underlying_float
            float32
        """
        if getattr(self, "dtype", np.dtype(bool)).kind != "c":
            raise AttributeError(f"{self.name} is no complex type")
        return TYPES["float32" if self.dtype.itemsize == 8 else "float64"]  # type: ignore[return-value]

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other) -> bool:
        return isinstance(other, ElementType) and getattr(self, "dtype", None) == getattr(other, "dtype", None)

    def __hash__(self) -> int:
        return hash(getattr(self, "dtype", None))

    def __getitem__(self, axes) -> "ArrayType":
        axes = axes if isinstance(axes, tuple) else (axes,)
        if not all(isinstance(one, slice) for one in axes):
            raise TypeError(f"an array type is written like {self.name}[:, :]")
        return ArrayType(self, len(axes))

    def __call__(self, *arguments):
        """A signature with this type for its result, or a number of this type.

        Parameters
            arguments: types of arguments, or a number.
        Returns
            A Signature, or a number of NumPy.
        Example
            >>> from stride import numba
            >>> numba.float32(numba.int64), numba.int64(2.5)
            (float32(int64), np.int64(2))
        """
        if (
            not hasattr(self, "dtype")
            or not arguments
            or any(isinstance(one, (ElementType, ArrayType, TupleType)) for one in arguments)
        ):
            return Signature(self, arguments)
        return self.dtype.type(*arguments)


class ArrayType(Type):
    """An array of `dtype` with `ndim` axes.

    Parameters
        dtype: the element type.
        ndim: how many axes there are.
        layout: C, F or A.
    Example
        >>> from stride import numba
        >>> numba.types.Array(numba.int64, 2, "C")
        int64[:, :]
    """

    def __init__(self, dtype, ndim: int, layout: str = "A"):
        self.element = (
            dtype
            if isinstance(dtype, ElementType)
            else ElementType(str(_dtypes.dtype_of(dtype)), _dtypes.dtype_of(dtype))
        )
        self.ndim, self.layout = ndim, layout

    @property
    def dtype(self) -> np.dtype:
        """The element type, as one of NumPy.

        Example
            >>> from stride import numba
            >>> numba.float32[:].dtype
            dtype('float32')
        """
        return self.element.dtype

    def __repr__(self) -> str:
        return f"{self.element}[{', '.join(':' * self.ndim)}]"

    def __eq__(self, other) -> bool:
        return isinstance(other, ArrayType) and (self.dtype, self.ndim) == (other.dtype, other.ndim)

    def __hash__(self) -> int:
        return hash((self.dtype, self.ndim))

    def __call__(self, *arguments) -> "Signature":
        return Signature(self, arguments)


class TupleType(Type):
    """Several results of a function."""

    def __init__(self, types):
        self.types = tuple(types)

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self.types))})"

    def __call__(self, *arguments) -> "Signature":
        return Signature(self, arguments)


class Signature:
    """The types of a function's arguments (`args`) and of its result (`return_type`, None where the text does not
    say).

    Parameters
        return_type: the result's type, or None.
        args: the arguments' types.
    Raises
        TypeError for an object that is no type.
    Example
        >>> from stride import numba
        >>> numba.float32(numba.float32, numba.int64).args
        (float32, int64)
    """

    def __init__(self, return_type, args):
        self.return_type, self.args = return_type, tuple(args)
        for one in self.args:
            if not isinstance(one, (ElementType, ArrayType, TupleType)):
                raise TypeError(f"a signature is made of types such as float32 and int64[:], not {one!r}")

    def __repr__(self) -> str:
        return f"{self.return_type or ''}({', '.join(map(repr, self.args))})"


VOID = ElementType("void", None)


def _made() -> Dict[str, object]:
    table: Dict[str, object] = {"void": VOID, "none": VOID, "None": VOID}
    for dtype in (
        *(np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
        *(np.dtype(f"float{bits}") for bits in (16, 32, 64)),
        np.dtype("complex64"),
        np.dtype("complex128"),
    ):
        table[dtype.name] = table[f"{dtype.kind}{dtype.itemsize}"] = ElementType(dtype.name, dtype)
    for alias, name in {
        "intp": "int64",
        "uintp": "uint64",
        "intc": "int32",
        "uintc": "uint32",
        "long_": "int64",
        "ulong": "uint64",
        "longlong": "int64",
        "int_": "int64",
        "uint": "uint64",
        "float_": "float32",
        "double": "float64",
        "char": "int8",
        "uchar": "uint8",
        "byte": "uint8",
        "short": "int16",
        "ushort": "uint16",
        "ssize_t": "int64",
        "size_t": "uint64",
        "float": "float64",
        "int": "int64",
        "complex": "complex128",
    }.items():
        table[alias] = table[name]
    for alias in ("boolean", "bool_", "bool", "b1", "bool8"):
        table[alias] = ElementType("boolean", _dtypes.bool)
    return table


# By every name that Numba has for them.
TYPES = _made()


def _evaluate(node, text: str):
    if isinstance(node, ast.Name) and node.id in TYPES:
        return TYPES[node.id]
    if isinstance(node, ast.Attribute):
        return _evaluate(ast.Name(node.attr), text)
    if isinstance(node, ast.Constant) and node.value is None:
        return VOID
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if all(isinstance(one, ast.Slice) for one in parts):
            return ArrayType(_evaluate(node.value, text), len(parts))
    if isinstance(node, ast.Tuple):
        return tuple(_evaluate(one, text) for one in node.elts)
    if isinstance(node, ast.Call) and not node.keywords:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in ("Tuple", "UniTuple"):
            inner = [_evaluate(one, text) for one in node.args if not isinstance(one, ast.Constant)]
            count = next((one.value for one in node.args if isinstance(one, ast.Constant)), 1)
            return TupleType(inner[0] if isinstance(inner[0], tuple) else inner * count)
        return Signature(_evaluate(node.func, text), [_evaluate(one, text) for one in node.args])
    raise ValueError(f"a signature is written like void(float32[:], int64), not {text!r}")


def parse(one) -> Signature:
    """A Signature from itself, from a string, or from a tuple of types."""
    if isinstance(one, str):
        text = one.strip()
        try:
            one = _evaluate(ast.parse(text, mode="eval").body, text)
        except SyntaxError:
            raise ValueError(f"a signature is written like void(float32[:], int64), not {text!r}") from None
    if isinstance(one, (ElementType, ArrayType)):
        one = (one,)
    if isinstance(one, (tuple, list)):
        return Signature(None, one)
    if not isinstance(one, Signature):
        raise ValueError(f"a signature is written like float32(float32, int64), not {one!r}")
    return one


def parse_all(given) -> Tuple[Signature, ...]:
    """A signature, or a list of them; a tuple is one signature's types unless signatures or strings are in it."""
    if given is None:
        return ()
    if (
        isinstance(given, list)
        or isinstance(given, tuple)
        and given
        and all(isinstance(one, (Signature, str)) for one in given)
    ):
        return tuple(map(parse, given))
    return (parse(given),)


def is_signature(anything) -> bool:
    """Whether `jit` was given signatures rather than a function."""
    return isinstance(anything, (str, list, tuple, Signature, ElementType, ArrayType))
