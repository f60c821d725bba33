"""Numba's types: `types.float32`, `types.Array(types.int64, 2, "C")`, `types.void`."""

from stride._signatures import TYPES, ElementType, Signature, TupleType, Type
from stride._signatures import ArrayType as Array

globals().update({name: one for name, one in TYPES.items() if name.isidentifier() and name != "None"})

__all__ = ["Array", "Signature", "Tuple", "Type", "UniTuple"]
__all__ += [name for name in TYPES if name not in ("None", "bool", "int", "float", "complex")]


def Tuple(types) -> TupleType:  # noqa: N802, Numba's name
    """The type of several results.

    Parameters
        types: the types, in order.
    Returns
        A tuple's type.
    Example
        >>> from stride import numba
        >>> numba.types.Tuple((numba.float32, numba.int64))
        (float32, int64)
    """
    return TupleType(types)


def UniTuple(dtype, count: int) -> TupleType:  # noqa: N802, Numba's name
    """The type of several results of one type.

    Parameters
        dtype: the type of each.
        count: how many there are.
    Returns
        A tuple's type.
    Example
        >>> from stride import numba
        >>> numba.types.UniTuple(numba.float32, 2)
        (float32, float32)
    """
    return TupleType([dtype] * count)
