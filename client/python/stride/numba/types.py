"""Numba's types: `types.float32`, `types.Array(types.int64, 2, "C")`, `types.void`."""

from stride._signatures import TYPES, ArrayType, ElementType, Signature, TupleType

globals().update({name: one for name, one in TYPES.items() if name.isidentifier() and name != "None"})

# What every type here is an instance of: `isinstance(x, types.Type)`.
Type = (ElementType, ArrayType, TupleType)

__all__ = ["Array", "Signature", "Tuple", "Type", "UniTuple"]


def Array(dtype: ElementType, ndim: int, layout: str = "C") -> ArrayType:  # noqa: N802, Numba's name
    """An array's type."""
    return ArrayType(dtype, ndim, layout)


def Tuple(types) -> TupleType:  # noqa: N802, Numba's name
    """The type of several results."""
    return TupleType(types)


def UniTuple(dtype, count: int) -> TupleType:  # noqa: N802, Numba's name
    """The type of several results of one type."""
    return TupleType([dtype] * count)
