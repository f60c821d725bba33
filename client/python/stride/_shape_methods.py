"""The methods of arrays that give other shapes, and move axes."""

from typing import TYPE_CHECKING, Optional

from stride._reduction_methods import _stride

if TYPE_CHECKING:
    from stride._array import Array


class ShapeMethods:
    """A part of Array."""

    __slots__ = ()

    # --- shapes ---

    def reshape(self, *shape, order: Optional[str] = "C", copy: Optional[bool] = None) -> "Array":
        """The elements in another shape: integers, or one sequence of them. A view where there is one, else a copy.

        Parameters
            shape: the extents, of which one may be -1, or one sequence of them.
            order: C or F: in which order the elements are read and placed.
            copy: True makes a copy always, False never; None makes one where there is no view.
        Returns
            An array of the same elements.
        Raises
            ValueError where the number of elements does not fit, and for copy=False without a view.
        Example
            >>> st.arange(4).reshape(2, -1).tolist()
            [[0, 1], [2, 3]]
        """
        if len(shape) == 1:
            shape = shape[0]
        elif not shape:
            raise TypeError("reshape() takes exactly 1 argument (0 given)")
        return _stride().reshape(self, shape, order, copy=copy)

    def ravel(self, order: Optional[str] = "C") -> "Array":
        """All elements along one axis: a view where there is one, else a copy.

        Parameters
            order: C, F, A or K: in which order the elements are read.
        Returns
            An array of one axis.
        Example
            >>> st.array([[1, 2], [3, 4]]).ravel("F").tolist()
            [1, 3, 2, 4]
        """
        return _stride().ravel(self, order)

    def flatten(self, order: Optional[str] = "C") -> "Array":
        """All elements along one axis, in a copy.

        Parameters
            order: C, F, A or K: in which order the elements are read.
        Returns
            An array of one axis.
        Example
            >>> st.array([[1, 2], [3, 4]]).flatten().tolist()
            [1, 2, 3, 4]
        """
        if isinstance(order, str) and order.upper() == "K":
            return _stride().copy(self.ravel(order))
        order = "C" if order is None else order
        return _stride().reshape(self, (self.size,), order, copy=True)  # type: ignore[attr-defined]

    def resize(self, *new_shape, refcheck: bool = True) -> None:
        """Another shape in place: the elements in C order, and zeros where there are too few. An array with views is
        not resized unless `refcheck` is False.

        Parameters
            new_shape: the extents, or one sequence of them.
            refcheck: whether an array with views is refused.
        Returns
            None.
        Raises
            ValueError for an array that does not own its elements or has views.
        Example
            >>> x = st.array([1, 2])
            >>> x.resize(3)
            >>> x.tolist()
            [1, 2, 0]
        """
        from stride import _array_attributes, _indexing

        shape = new_shape[0] if len(new_shape) == 1 else new_shape
        if shape is None or not new_shape:
            return
        buffer = self._node.buffer  # type: ignore[attr-defined]
        if self.base is not None:  # type: ignore[attr-defined]
            raise ValueError("cannot resize this array: it does not own its data")
        if refcheck and buffer is not None and buffer.num_nodes > 1:
            raise ValueError("cannot resize an array that references or is referenced by another array in this way.")
        _indexing.check_writable(self)  # type: ignore[arg-type]
        result = _array_attributes.resized(self, shape)  # type: ignore[arg-type]
        self._node, result._node = result._node, self._node  # type: ignore[attr-defined]

    def transpose(self, *axes) -> "Array":
        """A view with the axes in another order, all reversed where none are named.

        Parameters
            axes: the axes in their new order, or one sequence of them.
        Returns
            A view with as many axes.
        Raises
            ValueError for axes that are no permutation.
        Example
            >>> st.zeros((2, 3, 4)).transpose(1, 0, 2).shape
            (3, 2, 4)
        """
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            axes = axes[0] or ()
        return _stride().transpose(self, axes or None)

    def swapaxes(self, axis1: int, axis2: int) -> "Array":
        """A view in which two axes have changed places.

        Parameters
            axis1: an axis.
            axis2: another axis.
        Returns
            A view with as many axes.
        Raises
            AxisError for an axis that the array does not have.
        Example
            >>> st.zeros((2, 3)).swapaxes(0, 1).shape
            (3, 2)
        """
        return _stride().swapaxes(self, axis1, axis2)

    def squeeze(self, axis=None) -> "Array":
        """A view without axes of one element.

        Parameters
            axis: the axis, or a tuple of them, of one element each; None for all such.
        Returns
            A view with fewer axes.
        Raises
            ValueError for an axis of more than one element.
        Example
            >>> st.zeros((1, 3, 1)).squeeze().shape
            (3,)
        """
        return _stride().squeeze(self, axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> "Array":
        """The elements of a diagonal, for reading: `stride.diagonal` of this array.

        Parameters
            offset: which diagonal; positive ones are above the main one.
            axis1: the axes.
            axis2: the axes.
        Returns
            An array without the two axes and with one more at the end.
        Raises
            ShapeMismatch for fewer axes; ValueError for equal ones; AxisError for ones that this array lacks.
        Example
            >>> st.array([[1, 2], [3, 4]]).diagonal().tolist()
            [1, 4]
        """
        return _stride().diagonal(self, offset, axis1, axis2)

    def repeat(self, repeats, axis: Optional[int] = None) -> "Array":
        """The elements, each so many times: `stride.repeat` of this array.

        Parameters
            repeats: how often: an integer, or one for each element; counts in an array of the service are read.
            axis: the axis; None flattens this array first.
        Returns
            An array of this array's type.
        Raises
            ValueError for a negative number; ShapeMismatch where counts do not fit the axis.
        Example
            >>> st.array([1, 2]).repeat(2).tolist()
            [1, 1, 2, 2]
        """
        return _stride().repeat(self, repeats, axis)
