"""Numba's types: `types.float32`, `types.Array(types.int64, 2, "C")`, `types.void`."""

from stride._signatures import TYPES, ElementType, Signature, TupleType, Type
from stride._signatures import ArrayType as Array

globals().update({name: one for name, one in TYPES.items() if name.isidentifier() and name != "None"})

__all__ = ["Array", "Signature", "Tuple", "Type", "UniTuple"]


def Tuple(types) -> TupleType:  # noqa: N802, Numba's name
    """The type of several results."""
    return TupleType(types)


def UniTuple(dtype, count: int) -> TupleType:  # noqa: N802, Numba's name
    """The type of several results of one type."""
    return TupleType([dtype] * count)
