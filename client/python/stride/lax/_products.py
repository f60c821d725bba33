"""JAX's products of matrices, which promote nothing."""

from typing import Any

import numpy as np

from stride import _linear_algebra, _manipulation
from stride._array import Array, array_of
from stride.lax._operators import _operands

__all__ = ["batch_matmul", "dot", "dot_general"]


def dot(
    lhs: Any, rhs: Any, *, dimension_numbers: Any = None, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """The product of vectors and matrices; `precision` changes nothing.

    Parameters
        lhs, rhs: arrays.
        dimension_numbers: None, or those of dot_general.
        precision: changes nothing.
        preferred_element_type: the type in which it is computed.
    Returns
        An array.
    Example
        >>> stride.lax.dot(st.array([1.0, 2.0]), st.array([3.0, 4.0])).tolist()
        11.0
    """
    if dimension_numbers is not None:
        return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)
    lhs, rhs = (array_of(one) for one in _operands("dot", (lhs, rhs), "biufc", False))
    if not (1 <= lhs.ndim <= 2 and 1 <= rhs.ndim <= 2 and lhs.shape[-1] == rhs.shape[0]):
        raise ValueError(f"lax.dot takes vectors and matrices that fit, not the shapes {lhs.shape} and {rhs.shape}")
    return _linear_algebra.matmul(lhs, rhs, dtype=preferred_element_type, casting="unsafe")


def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    **ignored: Any,
) -> Array:
    """Products summed over some axes, for each place of others.

    Parameters
        lhs: an array.
        rhs: an array of the same type.
        dimension_numbers: ((axes of lhs, axes of rhs) that are summed over, (axes of lhs, axes of rhs) that both
            have).
        precision: changes nothing.
        preferred_element_type: the type in which it is computed.
        ignored: JAX's other options, which change nothing.
    Returns
        An array with the axes that both have, then the others of `lhs`, then those of `rhs`.
    Raises
        TypeError for axes that do not fit.
    Example
        >>> a, b = st.ones((2, 3)), st.ones((3, 4))
        >>> stride.lax.dot_general(a, b, (([1], [0]), ([], []))).shape
        (2, 4)
    """
    lhs, rhs = (array_of(one) for one in _operands("dot_general", (lhs, rhs), "biufc", False))
    (left_sum, right_sum), (left_batch, right_batch) = dimension_numbers
    sides = []
    for name, array, summed, batch in (("lhs", lhs, left_sum, left_batch), ("rhs", rhs, right_sum, right_batch)):
        axes = [*batch, *summed]
        if len(set(axes)) != len(axes) or any(not 0 <= one < array.ndim for one in axes):
            raise TypeError(f"lax.dot_general: the axes of {name} are {tuple(axes)} of {array.ndim}")
        sides.append([one for one in range(array.ndim) if one not in axes])
    shapes = [
        [array.shape[axis] for axis in axes]
        for array, axes in ((lhs, left_sum), (rhs, right_sum), (lhs, left_batch), (rhs, right_batch))
    ]
    if shapes[0] != shapes[1] or shapes[2] != shapes[3]:
        raise TypeError(
            f"lax.dot_general: axes of {lhs.shape} and {rhs.shape} do not fit: summed ones have {shapes[0]} and "
            f"{shapes[1]} elements, those of both {shapes[2]} and {shapes[3]}"
        )
    left_free, right_free = sides
    num_batch, num_summed = int(np.prod(shapes[2])), int(np.prod(shapes[0]))
    left_shape = [lhs.shape[axis] for axis in left_free]
    right_shape = [rhs.shape[axis] for axis in right_free]
    left = _manipulation.permute_dims(lhs, (*left_batch, *left_free, *left_sum))
    right = _manipulation.permute_dims(rhs, (*right_batch, *right_sum, *right_free))
    left = _manipulation.reshape(left, (num_batch, int(np.prod(left_shape)), num_summed))
    right = _manipulation.reshape(right, (num_batch, num_summed, int(np.prod(right_shape))))
    product = _linear_algebra.matmul(left, right, dtype=preferred_element_type, casting="unsafe")
    return _manipulation.reshape(product, (*shapes[2], *left_shape, *right_shape))


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Array:
    """Products of the matrices in the last two axes, for each place of the others.

    Parameters
        lhs, rhs: arrays.
        precision: changes nothing.
    Returns
        An array.
    Example
        >>> stride.lax.batch_matmul(st.ones((2, 3, 4)), st.ones((2, 4, 5))).shape
        (2, 3, 5)
    """
    lhs, rhs = (array_of(one) for one in _operands("batch_matmul", (lhs, rhs), "biufc", False))
    if lhs.ndim < 2 or lhs.ndim != rhs.ndim:
        raise ValueError(f"lax.batch_matmul takes stacks of matrices, not the shapes {lhs.shape} and {rhs.shape}")
    return _linear_algebra.matmul(lhs, rhs)
