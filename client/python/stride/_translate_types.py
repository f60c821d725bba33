"""The translator's knowledge of a value: a number's type or an array's, and its text in CUDA C++."""

import ast
from dataclasses import dataclass, field, replace
from typing import Iterator, Optional, Tuple

import numpy as np

from stride import _dtypes, _errors

C_TYPES = {
    _dtypes.bool: "bool",
    _dtypes.int8: "signed char",
    _dtypes.int16: "short",
    _dtypes.int32: "int",
    _dtypes.int64: "long long",
    _dtypes.uint8: "unsigned char",
    _dtypes.uint16: "unsigned short",
    _dtypes.uint32: "unsigned int",
    _dtypes.uint64: "unsigned long long",
    _dtypes.float16: "float",
    _dtypes.float32: "float",
    _dtypes.float64: "double",
    _dtypes.complex64: "st_complex<float>",
    _dtypes.complex128: "st_complex<double>",
}

BOOL, INT, FLOAT, COMPLEX = _dtypes.bool, _dtypes.int64, _dtypes.float64, _dtypes.complex128
_WEAK = {bool: BOOL, int: INT, float: FLOAT, complex: COMPLEX}


@dataclass(frozen=True)
class Scalar:
    """A number: `dtype`, or None while it is a weak literal of Python type `weak`."""

    dtype: Optional[np.dtype] = None
    weak: Optional[type] = None
    never_negative: bool = False

    def definite(self) -> "Scalar":
        if self.dtype is not None:
            return self
        return Scalar(_WEAK[self.weak], None, self.never_negative)


@dataclass(frozen=True)
class ArrayOf:
    """`root` is the parameter that its memory is, or several with `|` between them; empty for shared and local arrays;
    `=` and a name for constants. Without `strided` it is C-contiguous; else `strides`, in elements, say where its
    elements are."""

    dtype: np.dtype
    ndim: int
    root: str = ""
    extents: Tuple[str, ...] = field(default=(), compare=False)
    strided: bool = False
    strides: Tuple[str, ...] = field(default=(), compare=False)

    def signature(self) -> "ArrayOf":
        """As a part of a function's signature: without its memory."""
        return ArrayOf(self.dtype, self.ndim, strided=self.strided)

    def steps(self) -> Tuple[str, ...]:
        """The distance between elements along each axis, in elements."""
        if self.strided:
            return self.strides
        return tuple(" * ".join(("1LL", *self.extents[i + 1 :])) for i in range(self.ndim))


@dataclass(frozen=True)
class TupleOf:
    """Numbers; of a parameter also arrays and tuples. `literals` are those that are known, else None; `fields` the
    names of a named tuple's."""

    parts: Tuple[object, ...]
    fields: Tuple[str, ...] = ()
    literals: tuple = field(default=(), compare=False)


@dataclass
class Value:
    text: str
    type: object  # Scalar, ArrayOf
    literal: object = None  # its value, when it is known now
    place: str = ""  # location of an element that is read through a conversion

    def lvalue(self) -> str:
        """The text to which a value is assigned."""
        return self.place or self.text


class Several(list):
    """The values of a tuple, with the names that a named tuple has for them."""

    def __init__(self, values, fields: Tuple[str, ...] = ()):
        super().__init__(values)
        self.fields = fields


def flattened(value) -> Iterator[Value]:
    """The numbers and arrays of a tuple, or a value alone."""
    if not isinstance(value, list):
        yield value
        return
    for one in value:
        yield from flattened(one)


class UnknownValue(_errors.ExpressionError):
    """A number would have to be known while a function is translated, such as the extent of a shared array."""


class Unknown(Value):
    """The result of a recursive call before the other results of the function determine its type."""


class Object:
    """A Python object that is no number: a module, a function, a type."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other) -> bool:
        if not isinstance(other, Object):
            return False
        return (
            self.value is other.value
            or self._is_known()
            and (type(self.value), self.value) == (type(other.value), other.value)
        )

    def __hash__(self) -> int:
        return hash(self.value) if self._is_known() else id(self.value)

    def _is_known(self) -> bool:
        """Whether it is numbers."""
        return isinstance(self.value, (bool, int, float, complex, tuple))


def leaves(name: str, kind: object) -> Iterator[Tuple[str, object]]:
    """A parameter's numbers and arrays, one after another, each with the name of its value in C++. Those of tuples
    within a tuple have a path in place of a number, such as t_x_0s2."""
    if not isinstance(kind, TupleOf):
        yield f"v_{name}", kind
        return
    for path, one in _paths(kind, ""):
        yield f"t_{name}_{path}", one


def _paths(kind: TupleOf, before: str) -> Iterator[Tuple[str, object]]:
    for i, one in enumerate(kind.parts):
        if isinstance(one, TupleOf):
            yield from _paths(one, f"{before}{i}s")
        else:
            yield f"{before}{i}", one


def with_memory(name: str, kind: object, path: str = "") -> object:
    """A parameter's type, with the names of the extents and strides of its arrays."""
    if isinstance(kind, TupleOf):
        paths = [f"{path}s{i}" if path else str(i) for i in range(len(kind.parts))]
        return replace(kind, parts=tuple(with_memory(name, one, own) for one, own in zip(kind.parts, paths)))
    if not isinstance(kind, ArrayOf):
        return kind
    own = f"{name}_{path}_" if path else f"{name}_"
    of_tuple = "t" if path else ""
    return replace(
        kind,
        root=f"{name}.{path}" if path else name,
        extents=tuple(f"n{of_tuple}_{own}{i}" for i in range(kind.ndim)),
        strides=tuple(f"w{of_tuple}_{own}{i}" for i in range(kind.ndim)) if kind.strided else (),
    )


def parameter_type(value) -> object:
    """The type of an argument of a kernel; part of a signature."""
    if hasattr(value, "shape") and not isinstance(value, np.generic):
        return ArrayOf(np.dtype(value.dtype), len(value.shape))
    if isinstance(value, np.generic):
        return Scalar(_dtypes.dtype_of(value.dtype))
    if isinstance(value, int) and 2**63 <= value < 2**64:
        return Scalar(_dtypes.uint64)
    if isinstance(value, (bool, int, float, complex)):
        return Scalar(_WEAK[next(t for t in (bool, int, float, complex) if isinstance(value, t))])
    if isinstance(value, tuple):
        return TupleOf(tuple(map(parameter_type, value)), tuple(getattr(value, "_fields", ())))
    raise _errors.DataTypeMismatch(f"a kernel takes arrays, numbers and tuples of these, not {type(value).__name__}")


def calls_a_function(node: ast.AST) -> bool:
    """Whether what a node computes may differ, or do something, when it is computed again."""
    return any(isinstance(one, (ast.Call, ast.NamedExpr)) for one in ast.walk(node))


def c_type(dtype: np.dtype) -> str:
    return C_TYPES[dtype]


def memory_type(dtype: np.dtype) -> str:
    return "__half" if dtype == _dtypes.float16 else C_TYPES[dtype]


def promote(*types: Scalar) -> Scalar:
    """NumPy's, with weak literals; weak only when all are."""
    if all(one.dtype is None for one in types):
        weak = max((one.weak for one in types), key=list(_WEAK).index)
        return Scalar(None, weak)
    stand_ins = [
        one.dtype if one.dtype is not None else {bool: BOOL, int: 0, float: 0.0, complex: 0j}[one.weak] for one in types
    ]
    dtype = np.result_type(*stand_ins)
    return Scalar(dtype)


def promote_parts(node, one: tuple, other: tuple, fail) -> tuple:
    """The types of two tuples of numbers, promoted part by part."""
    if len(one) != len(other):
        fail(node, f"a tuple of {len(one)} and one of {len(other)} numbers under one name")
    return tuple(promote(a, b).definite() for a, b in zip(one, other))
