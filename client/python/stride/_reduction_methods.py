"""The methods of arrays that reduce them, or give running results."""

from sys import modules as _modules
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from stride._array import Array


def _stride():
    return _modules["stride"]  # an import costs more


class ReductionMethods:
    """A part of Array."""

    __slots__ = ()

    # --- reductions and running results ---

    def sum(self, axis=None, dtype=None, out=None, keepdims: bool = False, initial=None, where=True) -> "Array":
        """The sum of the elements along axes: `stride.sum` of this array.

        Parameters
            axis: None for all, an integer, or a tuple of them.
            dtype: in which to sum; integers default to int64 or uint64, others to their own type.
            out: array of the result's shape that takes it.
            keepdims: whether the axes stay, with one element each.
            initial: a number to begin with.
            where: bools that broadcast with this array; elements where it is false are left out.
        Returns
            An array of `dtype` without the axes.
        Raises
            AxisError for an axis that this array lacks; ShapeMismatch for an `out` of another shape.
        Example
            >>> st.array([[1, 2], [3, 4]]).sum(axis=0).tolist()
            [4, 6]
        """
        return _stride().sum(self, axis, dtype, out, keepdims, initial, where)

    def prod(self, axis=None, dtype=None, out=None, keepdims: bool = False, initial=None, where=True) -> "Array":
        """The product of the elements along axes: `stride.prod` of this array.

        Parameters
            axis: None for all, an integer, or a tuple of them.
            dtype: in which to multiply; integers default to int64 or uint64, others to their own type.
            out: array of the result's shape that takes it.
            keepdims: whether the axes stay, with one element each.
            initial: a number to begin with.
            where: bools that broadcast with this array; elements where it is false are left out.
        Returns
            An array of `dtype` without the axes.
        Raises
            AxisError for an axis that this array lacks; ShapeMismatch for an `out` of another shape.
        Example
            >>> st.array([2, 3]).prod().item()
            6
        """
        return _stride().prod(self, axis, dtype, out, keepdims, initial, where)

    def mean(self, axis=None, dtype=None, out=None, keepdims: bool = False, *, where=True) -> "Array":
        """The mean of the elements along axes: `stride.mean` of this array.

        Parameters
            axis: None for all, an integer, or a tuple of them.
            dtype: in which to compute; integers default to float64.
            out: array of the result's shape that takes it.
            keepdims: whether the axes stay, with one element each.
            where: bools that broadcast with this array; elements where it is false are left out.
        Returns
            An array of `dtype` without the axes; NaN where there is no element.
        Raises
            AxisError for an axis that this array lacks.
        Example
            >>> st.array([1.0, 3.0]).mean().item()
            2.0
        """
        return _stride().mean(self, axis, dtype, out, keepdims, where=where)

    def min(self, axis=None, out=None, keepdims: bool = False, initial=None, where=True) -> "Array":
        """The least element along axes: `stride.min` of this array.

        Parameters
            axis: None for all, an integer, or a tuple of them.
            out: array of the result's shape that takes it.
            keepdims: whether the axes stay, with one element each.
            initial: a number to compare with as well; needed for empty arrays and with `where`.
            where: bools that broadcast with this array; elements where it is false are left out.
        Returns
            An array of this array's type without the axes.
        Raises
            ValueError for an empty array without `initial`; AxisError for an axis that this array lacks.
        Example
            >>> st.array([3, 1, 2]).min().item()
            1
        """
        return _stride().min(self, axis, out, keepdims, initial, where)

    def max(self, axis=None, out=None, keepdims: bool = False, initial=None, where=True) -> "Array":
        """The greatest element along axes: `stride.max` of this array.

        Parameters
            axis: None for all, an integer, or a tuple of them.
            out: array of the result's shape that takes it.
            keepdims: whether the axes stay, with one element each.
            initial: a number to compare with as well; needed for empty arrays and with `where`.
            where: bools that broadcast with this array; elements where it is false are left out.
        Returns
            An array of this array's type without the axes.
        Raises
            ValueError for an empty array without `initial`; AxisError for an axis that this array lacks.
        Example
            >>> st.array([3, 1, 2]).max().item()
            3
        """
        return _stride().max(self, axis, out, keepdims, initial, where)

    def any(self, axis=None, out=None, keepdims: bool = False, *, where=True) -> "Array":
        """Whether any element is not zero, along axes: `stride.any` of this array.

        Parameters
            axis: None for all, an integer, or a tuple of them.
            out: array of the result's shape that takes it.
            keepdims: whether the axes stay, with one element each.
            where: bools that broadcast with this array; elements where it is false are left out.
        Returns
            An array of bool without the axes; NaN counts as true.
        Raises
            AxisError for an axis that this array lacks.
        Example
            >>> st.array([0, 1]).any().item()
            True
        """
        return _stride().any(self, axis, out, keepdims, where=where)

    def all(self, axis=None, out=None, keepdims: bool = False, *, where=True) -> "Array":
        """Whether every element is not zero, along axes: `stride.all` of this array.

        Parameters
            axis: None for all, an integer, or a tuple of them.
            out: array of the result's shape that takes it.
            keepdims: whether the axes stay, with one element each.
            where: bools that broadcast with this array; elements where it is false are left out.
        Returns
            An array of bool without the axes; NaN counts as true.
        Raises
            AxisError for an axis that this array lacks.
        Example
            >>> st.array([0, 1]).all().item()
            False
        """
        return _stride().all(self, axis, out, keepdims, where=where)

    def std(
        self, axis=None, dtype=None, out=None, ddof: float = 0, keepdims: bool = False, *, where=True, mean=None,
        correction=None,
    ) -> "Array":
        """The standard deviation of the elements along axes: `stride.std` of this array.

        Parameters
            axis: None for all, an integer, or a tuple of them.
            dtype: in which to compute; integers default to float64.
            out: array of the result's shape that takes it.
            ddof: is subtracted from the number of elements before the division.
            keepdims: whether the axes stay, with one element each.
            where: bools that broadcast with this array; elements where it is false are left out.
            mean: the mean, as `mean(a, axis, keepdims=True)` gives it, where it is known.
            correction: is subtracted from the number of elements before the division.
        Returns
            An array of the real type that belongs to `dtype`, without the axes.
        Raises
            AxisError for an axis that this array lacks; ValueError where ddof and correction are given.
        Example
            >>> st.array([1.0, 3.0]).std().item()
            1.0
        """
        return _stride().std(self, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)

    def var(
        self, axis=None, dtype=None, out=None, ddof: float = 0, keepdims: bool = False, *, where=True, mean=None,
        correction=None,
    ) -> "Array":
        """The variance of the elements along axes: `stride.var` of this array.

        Parameters
            axis: None for all, an integer, or a tuple of them.
            dtype: in which to compute; integers default to float64.
            out: array of the result's shape that takes it.
            ddof: is subtracted from the number of elements before the division.
            keepdims: whether the axes stay, with one element each.
            where: bools that broadcast with this array; elements where it is false are left out.
            mean: the mean, as `mean(a, axis, keepdims=True)` gives it, where it is known.
            correction: is subtracted from the number of elements before the division.
        Returns
            An array of the real type that belongs to `dtype`, without the axes.
        Raises
            AxisError for an axis that this array lacks; ValueError where ddof and correction are given.
        Example
            >>> st.array([1.0, 3.0]).var().item()
            1.0
        """
        return _stride().var(self, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)

    def argmin(self, axis: Optional[int] = None, out=None, *, keepdims: bool = False) -> "Array":
        """The place of the least element along an axis: `stride.argmin` of this array.

        Parameters
            axis: None for a place among all elements in C order, or an integer.
            out: array of int64 of the result's shape that takes it.
            keepdims: whether the axis stays, with one element.
        Returns
            An array of int64 without the axis.
        Raises
            ValueError for an empty array; AxisError for an axis that this array lacks.
        Example
            >>> st.array([3, 1, 2]).argmin().item()
            1
        """
        return _stride().argmin(self, axis, out, keepdims=keepdims)

    def argmax(self, axis: Optional[int] = None, out=None, *, keepdims: bool = False) -> "Array":
        """The place of the greatest element along an axis: `stride.argmax` of this array.

        Parameters
            axis: None for a place among all elements in C order, or an integer.
            out: array of int64 of the result's shape that takes it.
            keepdims: whether the axis stays, with one element.
        Returns
            An array of int64 without the axis.
        Raises
            ValueError for an empty array; AxisError for an axis that this array lacks.
        Example
            >>> st.array([3, 1, 2]).argmax().item()
            0
        """
        return _stride().argmax(self, axis, out, keepdims=keepdims)

    def cumsum(self, axis: Optional[int] = None, dtype=None, out=None) -> "Array":
        """Running sums along an axis: `stride.cumsum` of this array.

        Parameters
            axis: the axis; None flattens this array first.
            dtype: in which to sum; integers default to int64 or uint64, others to their own type.
            out: array of the result's shape that takes it.
        Returns
            An array.
        Raises
            AxisError for an axis that this array lacks.
        Example
            >>> st.array([1, 2, 3]).cumsum().tolist()
            [1, 3, 6]
        """
        return _stride().cumsum(self, axis, dtype, out)

    def cumprod(self, axis: Optional[int] = None, dtype=None, out=None) -> "Array":
        """Running products along an axis: `stride.cumprod` of this array.

        Parameters
            axis: the axis; None flattens this array first.
            dtype: in which to sum; integers default to int64 or uint64, others to their own type.
            out: array of the result's shape that takes it.
        Returns
            An array.
        Raises
            AxisError for an axis that this array lacks.
        Example
            >>> st.array([1, 2, 3]).cumprod().tolist()
            [1, 2, 6]
        """
        return _stride().cumprod(self, axis, dtype, out)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype=None, out=None) -> "Array":
        """The sum of a diagonal: `stride.trace` of this array.

        Parameters
            offset: the number of the diagonal: 0 for the main one, above it positive.
            axis1: the axis of the rows.
            axis2: the axis of the columns.
            dtype: the element type of the result; by default the one that NumPy gives it.
            out: an array of the result's shape that takes it.
        Returns
            An array.
        Example
            >>> st.array([[1, 2], [3, 4]]).trace().item()
            5
        """
        return _stride().trace(self, offset, axis1, axis2, dtype, out)

    def ptp(self, axis=None, out=None, keepdims: bool = False) -> "Array":
        """The difference of the greatest and the least element along axes: `stride.ptp` of this array.

        Parameters
            axis: None for all, an integer, or a tuple of them.
            out: array of the result's shape that takes it.
            keepdims: whether the axes stay, with one element each.
        Returns
            An array of this array's type without the axes.
        Raises
            ValueError for an empty array; DataTypeMismatch for bools.
        Example
            >>> st.array([3, 1, 7]).ptp().item()
            6
        """
        return _stride().ptp(self, axis, out, keepdims)
