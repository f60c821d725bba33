"""`x.at[i]`: updates that make a new array, as JAX's arrays have them.

An index that is out of range is no error here: an update there is dropped, and `get` takes the nearest element. `mode=`
chooses otherwise. Plain indexing, `x[i]`, raises an error."""

from typing import Any, Callable, Optional

import numpy as np

from stride import _errors
from stride._array import _SCALARS, Array, array_of

# The meanings of an index out of range, by the names of `mode`.
_DROP, _CLIP, _PROMISE = "drop", "clip", "promise"
_MODES = {"drop": _DROP, "fill": _DROP, "clip": _CLIP, "promise_in_bounds": _PROMISE}


class At:
    """`x.at`, to be indexed."""

    __slots__ = ("_array",)

    def __init__(self, array: Array):
        self._array = array

    def __getitem__(self, key: Any) -> "AtIndex":
        return AtIndex(self._array, key)

    def __repr__(self) -> str:
        return f"<at of an array of shape {self._array.shape}>"


class AtIndex:
    """`x.at[key]`: its methods return a new array. In each of them `mode` says what an index out of range means
    (`drop` or `fill`, `clip`, `promise_in_bounds`); `indices_are_sorted` and `unique_indices` change nothing."""

    __slots__ = ("_array", "_key")

    def __init__(self, array: Array, key: Any):
        self._array, self._key = array, key

    def __repr__(self) -> str:
        return f"<at of an array of shape {self._array.shape}, with the index {self._key!r}>"

    def set(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None
    ) -> Array:
        """A copy with `values` at the index.

        Example
            >>> st.arange(4).at[1:3].set(9).tolist()
            [0, 9, 9, 3]
        """

        def write(target: Array, key: Any) -> Array:
            target[key] = _in_type(values, target)
            return target

        return self._updated(write, mode)

    def add(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None
    ) -> Array:
        """A copy with `values` added at the index; a repeated index counts each time.

        Example
            >>> st.zeros(3).at[st.array([0, 0, 2])].add(1).tolist()
            [2.0, 0.0, 1.0]
        """
        return self._combined("add", values, mode)

    def subtract(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None
    ) -> Array:
        """A copy with `values` subtracted at the index."""
        return self._combined("subtract", values, mode)

    def multiply(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None
    ) -> Array:
        """A copy with the elements at the index multiplied by `values`."""
        return self._combined("multiply", values, mode)

    mul = multiply

    def divide(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None
    ) -> Array:
        """A copy with the elements at the index divided by `values`; integers give floats."""
        return self._array / _ones_like(self._array, values).at[self._key].multiply(values, mode=mode)

    def power(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None
    ) -> Array:
        """A copy with the elements at the index raised to `values`."""
        return self._array ** _ones_like(self._array, values).at[self._key].multiply(values, mode=mode)

    def min(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None
    ) -> Array:
        """A copy with the lesser of the elements at the index and `values`."""
        return self._combined("minimum", values, mode)

    def max(
        self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None
    ) -> Array:
        """A copy with the greater of the elements at the index and `values`."""
        return self._combined("maximum", values, mode)

    def apply(
        self, func: Callable, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: Any = None
    ) -> Array:
        """A copy with `func` of the elements at the index. For index arrays `unique_indices` must be true,
        because a repeated index would apply `func` repeatedly."""

        def write(target: Array, key: Any) -> Array:
            target[key] = _in_type(func(target[key]), target)
            return target

        def refuse(_: Array, __: Any) -> Array:
            raise _errors.Unimplemented(
                "x.at[i].apply with an index array needs unique_indices=True: an index that is there twice is not "
                "applied twice",
                reason="NOT_IMPLEMENTED",
                metadata={"feature": "at.apply of equal indices"},
            )

        return self._updated(write, mode, by_arrays=None if unique_indices else refuse)

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: Any = None,
    ) -> Array:
        """The elements at the index: a copy. Out of range it takes the nearest element, or with `mode="fill"` the
        `fill_value` (by default NaN, the least integer, or True).

        Example
            >>> st.arange(3.0).at[st.array([1, 7])].get(mode="fill", fill_value=-1).tolist()
            [1.0, -1.0]
        """
        from stride import _casts

        kind = _CLIP if mode is None else _mode(mode)
        fill = _filling(self._array.dtype) if fill_value is None else fill_value
        index = _Index(self._array, self._key, kind, fill)
        if index.is_outside:
            return _full(index.shape_of(), fill, self._array)
        return _casts.copy(index.array[index.key])

    # --- inside ---

    def _combined(self, name: str, values: Any, mode: Any) -> Array:
        from stride import _device_methods, _elementwise

        function = getattr(_elementwise, name)

        def write(target: Array, key: Any) -> Array:
            target[key] = function(target[key], _in_type(values, target))
            return target

        def masked(target: Array, mask: Array) -> Array:
            mask = mask.reshape(mask.shape + (1,) * (target.ndim - mask.ndim))
            return _elementwise.where(mask, function(target, _in_type(values, target)), target)

        def by_arrays(target: Array, key: Any) -> Array:
            _device_methods._scatter(name, target, key, _in_type(values, target))
            return target

        return self._updated(write, mode, by_arrays, masked if np.ndim(values) == 0 else None)

    def _updated(
        self, write: Callable, mode: Any, by_arrays: Optional[Callable] = None, masked: Optional[Callable] = None
    ) -> Array:
        """The copy that `write(target, key)` returns. `by_arrays` is called in its place where the index has arrays of
        integers or masks, `masked(target, mask)` where it is one mask."""
        from stride import _casts

        index = _Index(self._array, self._key, _DROP if mode is None else _mode(mode))
        if index.is_outside or not self._array.size:
            return _casts.copy(self._array)
        if index.mask is not None and masked is not None:
            return masked(self._array, index.mask)
        target = _casts.copy(index.array) if index.array is self._array else index.array
        function = by_arrays if by_arrays is not None and index.has_arrays else write
        return index.restored(function(target, index.key))


class _Index:
    """An index with every place in range: clipped, or with those out of range moved to one more row of the array,
    which has `fill` in it."""

    def __init__(self, array: Array, key: Any, mode: str, fill: Any = 0):
        from stride import _indexing

        self.array, self.mode = array, mode
        self.keys = _indexing._expand(_indexing._as_keys(key), array.ndim)
        self.is_outside = False  # an integer alone names no element
        self._axis: Optional[int] = None  # that has one more row
        self._extent = 0
        arrays = [one for one in self.keys if isinstance(one, Array)]
        masks = [one for one in arrays if one.dtype.kind == "b"]
        self.has_arrays, self.has_masks = bool(arrays), bool(masks)
        is_whole = len(arrays) == 1 and all(
            isinstance(one, slice) and one == slice(None) for one in self.keys if one is not arrays[0]
        )
        self.mask = masks[0] if masks and is_whole and self.keys[0] is masks[0] and masks[0].ndim else None
        if mode != _PROMISE:
            self._move(fill)

    @property
    def key(self) -> tuple:
        return tuple(self.keys)

    def restored(self, result: Array) -> Array:
        """Without the row that was added."""
        if self._axis is None:
            return result
        return result[(slice(None),) * self._axis + (slice(0, self._extent),)]

    def shape_of(self) -> tuple:
        """The shape of the selected elements, for an index of integers, slices and index arrays."""
        inside = [0 if isinstance(one, int) else one for one in self.keys]
        inside = [np.zeros(one.shape, np.int64) if isinstance(one, Array) else one for one in inside]
        whole = np.broadcast_to(
            np.zeros(()), tuple(max(1, n) if i in self._indexed() else n for i, n in enumerate(self.array.shape))
        )
        return whole[tuple(inside)].shape

    def _indexed(self) -> set:
        """The axes that integers and index arrays take."""
        return {axis for axis, _ in self._integers()}

    def _integers(self):
        """(axis, place in keys) of each integer and array of integers."""
        axis = 0
        for i, one in enumerate(self.keys):
            if isinstance(one, Array) and one.dtype.kind == "b":
                axis += one.ndim
                continue
            if isinstance(one, (int, np.integer)) or isinstance(one, Array):
                yield axis, i
            axis += one is not None and one is not Ellipsis

    def _move(self, fill: Any) -> None:
        """Moves indices out of range."""
        from stride import _assembly, _elementwise

        moved, valid = [], []
        for axis, i in self._integers():
            extent, one = self.array.shape[axis], self.keys[i]
            if not isinstance(one, Array):
                place = one + extent if one < 0 else one
                if not 0 <= place < extent:
                    if self.mode == _DROP or not extent:
                        self.is_outside = True
                    place = min(max(place, 0), extent - 1)
                self.keys[i] = place
                continue
            host = one._node.cached()
            if host is not None and not host.size or host is not None and -extent <= host.min() and host.max() < extent:
                continue
            one = one.astype(np.int64)
            one = _elementwise.where(one < 0, one + extent, one)
            moved.append((axis, i))
            valid.append((one >= 0) & (one < extent))
            self.keys[i] = _elementwise.clip(one, 0, max(extent - 1, 0))
        if self.is_outside or not moved or self.mode == _CLIP or not self.array.size:
            return
        is_valid = valid[0]
        for one in valid[1:]:
            is_valid = is_valid & one
        axis, i = moved[0]
        self._axis, self._extent = axis, self.array.shape[axis]
        self.keys[i] = _elementwise.where(is_valid, self.keys[i], self._extent)
        row = (*self.array.shape[:axis], 1, *self.array.shape[axis + 1 :])
        self.array = _assembly.concat([self.array, _full(row, fill, self.array)], axis=axis)


def _mode(mode: Any) -> str:
    name = getattr(mode, "name", mode)
    if not isinstance(name, str) or name.lower() not in _MODES:
        raise ValueError(f"mode is one of {', '.join(_MODES)}, not {mode!r}")
    return _MODES[name.lower()]


def _filling(dtype: np.dtype) -> Any:
    """The element that `get` has out of range, as in JAX."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max
    return True if dtype.kind == "b" else float("nan")


def _full(shape: tuple, value: Any, like: Array) -> Array:
    from stride import _creation

    return _creation.full_like(like, value, shape=shape)


def _in_type(values: Any, target: Array) -> Any:
    """Values in the type of the array that is updated, as JAX converts them."""
    if isinstance(values, _SCALARS):
        return target.dtype.type(values)
    return array_of(values, target.session).astype(target.dtype, copy=False)


def _ones_like(array: Array, values: Any) -> Array:
    """Factors for the elements of an array, in the type in which `values` are used."""
    from stride import _inference

    dtype: Any = array_of(values, array.session).dtype if not isinstance(values, _SCALARS) else type(values)
    return _full(array.shape, 1, array).astype(_inference.promote(array.dtype, dtype))
