"""Numba's types: `types.float32`, `types.Array(types.int64, 2, "C")`, `types.void`."""

from stride._signatures import TYPES, ArrayType, ElementType, Signature, TupleType

globals().update({name: one for name, one in TYPES.items() if name.isidentifier() and name != "None"})

__all__ = ["Array", "Signature", "Tuple", "UniTuple"]
__all__ += [name for name in TYPES if name not in ("None", "bool", "int", "float", "complex")]


def Array(dtype: ElementType, ndim: int, layout: str = "C") -> ArrayType:  # noqa: N802, Numba's name
    """An array's type.

    Parameters
        dtype: the element type.
        ndim: the number of axes.
        layout: accepted: C, F or A.
    Returns
        An array's type.
    Example
        >>> from stride import numba
        >>> numba.types.Array(numba.float32, 2)
        float32[:, :]
    """
    return ArrayType(dtype, ndim, layout)


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
