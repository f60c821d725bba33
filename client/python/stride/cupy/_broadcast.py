"""cp.broadcast: arrays of different shapes as ones of a common shape."""

from typing import Any, Tuple

from stride import _manipulation
from stride._array import Array


class broadcast:  # noqa: N801, CuPy's name
    """Arrays and numbers, broadcast against each other: `shape`, `nd`, `size`, and `values`, which are views.

    Parameters
        arrays: arrays and numbers.
    Raises
        ShapeMismatch where shapes do not fit.
    Example
        >>> import stride.cupy as cp
        >>> cp.broadcast(cp.zeros((2, 1)), cp.zeros(3)).shape
        (2, 3)
    """

    def __init__(self, *arrays: Any):
        places = [i for i, one in enumerate(arrays) if isinstance(one, Array)]
        made = _manipulation.broadcast_arrays(*(arrays[i] for i in places)) if places else []
        values = list(arrays)
        for i, one in zip(places, made):
            values[i] = one
        self.values = tuple(values)
        self.shape: Tuple[int, ...] = made[0].shape if made else ()

    @property
    def nd(self) -> int:
        """The number of axes.

        Example
            >>> import stride.cupy as cp
            >>> cp.broadcast(cp.zeros((2, 1)), cp.zeros(3)).nd
            2
        """
        return len(self.shape)

    ndim = nd

    @property
    def size(self) -> int:
        """The number of elements.

        Example
            >>> import stride.cupy as cp
            >>> cp.broadcast(cp.zeros((2, 1)), cp.zeros(3)).size
            6
        """
        import math

        return math.prod(self.shape)
