"""The types of parameters, for the stubs; nothing imports this module when a program runs."""

from typing import Any, Sequence, SupportsIndex, Union

import numpy.typing as npt

from stride._array import Array

# Values that become an array: an array, a number, nested sequences of numbers, or another library's array.
ArrayLike = Union[Array, npt.ArrayLike]
# A number or an array of numbers.
Real = Union[float, Array, npt.ArrayLike]
DTypeLike = Union[npt.DTypeLike, Any]
Shape = Union[SupportsIndex, Sequence[SupportsIndex]]
Axis = Union[None, SupportsIndex, Sequence[SupportsIndex]]
