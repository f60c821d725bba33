"""Attributes of NumPy's arrays that are separate objects, and the assembly of complex numbers from parts."""

import math
from typing import Any, Iterator, Optional, Tuple

import numpy as np

from stride import _arguments, _assembly, _casts, _dtypes, _elementwise, _inference, _manipulation, _parts, _routines
from stride._array import Array, array_of, wrap
from stride._array_reading import BLOCK_BYTES
from stride._copies import NUMBERS
from stride._element_numbers import Element, LocalArray
from stride._elementwise import where
from stride._graph import elementwise
from stride._views import FrozenStrides


class Flags:
    """How an array's elements lie, as NumPy's `flags` say it; read by attribute or by name."""

    def __init__(self, array: Array):
        node = array._node
        strides = node.strides or _inference.contiguous_strides(node.shape)
        vars(self).update(
            c_contiguous=_casts.is_contiguous(node.shape, strides),
            f_contiguous=_casts.is_contiguous(node.shape[::-1], strides[::-1]),
            owndata=array.base is None,
            aligned=True,
            writebackifcopy=False,
            _array=array,
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "writeable":
            raise AttributeError(f"attribute {name!r} of flags cannot be set")
        super().__setattr__(name, value)

    @property
    def writeable(self) -> bool:
        return type(self._array._node.strides) is not FrozenStrides

    @writeable.setter
    def writeable(self, value: bool) -> None:
        self._array.setflags(write=bool(value))

    @property
    def contiguous(self) -> bool:
        return self.c_contiguous

    @property
    def fortran(self) -> bool:
        return self.fnc

    @property
    def fnc(self) -> bool:
        """In Fortran's order and not in C order."""
        return self.f_contiguous and not self.c_contiguous

    @property
    def forc(self) -> bool:
        return self.f_contiguous or self.c_contiguous

    @property
    def behaved(self) -> bool:
        return self.aligned and self.writeable

    @property
    def carray(self) -> bool:
        return self.behaved and self.c_contiguous

    @property
    def farray(self) -> bool:
        return self.behaved and self.fnc

    _SHORT = {
        "C": "c_contiguous", "F": "f_contiguous", "O": "owndata", "W": "writeable", "A": "aligned",
        "X": "writebackifcopy",
    }

    def __getitem__(self, key: str) -> bool:
        name = self._SHORT.get(key, str(key).lower())
        if name.startswith("_") or not hasattr(self, name):
            raise KeyError("Unknown flag")
        return getattr(self, name)

    def __setitem__(self, key: str, value: bool) -> None:
        if self._SHORT.get(key, str(key).lower()) != "writeable":
            raise KeyError("Unknown flag")
        self.writeable = value

    def __eq__(self, other: Any) -> Any:
        if not all(hasattr(other, name) for name in self._SHORT.values()):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._SHORT.values())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "\n".join(f"  {name.upper()} : {getattr(self, name)}" for name in self._SHORT.values())


class Flat:
    """An array's elements in C order, as NumPy's `flat`: an iterator that is indexed and written as well."""

    def __init__(self, array: Array):
        self.base = array
        self.index = 0
        # The elements on the host that writes of a loop go to, and an iterator over them.
        self._target: Any = None
        self._elements: Any = None

    @property
    def coords(self) -> Tuple[int, ...]:
        if self.index >= len(self):
            return ()
        return tuple(int(one) for one in np.unravel_index(self.index, self.base.shape))

    def copy(self) -> Array:
        """The elements as an array of one axis."""
        return _manipulation.reshape(self.base, (self.base.size,), copy=True)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return self.copy().__array__(dtype, copy)

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Array:
        if self.index >= len(self):
            raise StopIteration
        if not self.index and self.base.nbytes <= BLOCK_BYTES and not self.base._node.session._is_trace:
            self.base._read()  # one round trip
        place = self._place(self.index)
        assert place is not None
        value = self.base[place]
        self.index += 1
        return value

    def _place(self, key: Any) -> Optional[Tuple[int, ...]]:
        """The indices of the element that an integer names; None for other keys and those out of bounds."""
        if type(key) is not int and (not isinstance(key, (int, np.integer)) or isinstance(key, bool)):
            return None
        shape, rest, place = self.base.shape, int(key), []
        size = math.prod(shape)
        if not -size <= rest < size:
            return None
        rest %= size
        for extent in reversed(shape):
            rest, one = divmod(rest, extent)
            place.append(one)
        return tuple(place[::-1])

    def __getitem__(self, key: Any) -> Array:
        self.index = 0  # as NumPy's
        place = self._place(key)
        if place is not None:
            return self.base[place]
        taken = _manipulation.ravel(self.base)[key]
        return taken if taken.ndim == 0 or not isinstance(key, slice) else _casts.copy(taken)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Values that are fewer are repeated, as NumPy's."""
        self.index = 0
        if type(key) is int and isinstance(self.base, LocalArray) and self._write(key, value):
            return
        place = self._place(key)
        if place is not None and (type(value) in NUMBERS or isinstance(value, (np.generic, Array)) and not value.ndim):
            self.base[place] = value
            return
        places = np.arange(self.base.size)
        if isinstance(key, Array):
            key = key._read()
        if isinstance(key, (int, np.integer)):
            extent = self.base.size
            if not -extent <= key < extent:
                raise IndexError(f"index {key} is out of bounds for size {extent}")
        elif isinstance(key, np.ndarray) and key.dtype.kind not in "biu":
            raise IndexError("unsupported iterator index")
        has_values = (value if isinstance(value, Array) else array_of(value)).size > 0
        if isinstance(key, (int, np.integer)) and not has_values:
            raise ValueError("an element takes a value")
        places = np.atleast_1d(places[key])
        if places.size and has_values:
            _routines.put(self.base, places, value)

    def _write(self, key: int, value: Any) -> bool:
        """Writes an element of an array whose elements a loop of the host uses, as `LocalArray.__setitem__` does."""
        base = self.base
        target = base._target  # type: ignore[attr-defined]
        if target is None:
            return False
        if target is not self._target:
            self._target, self._elements = target, target.flat
        if type(value) is Element:
            value = value._host
        if type(value) not in base._copy.numbers:  # type: ignore[attr-defined]
            return False
        try:
            self._elements[key] = value
        except Exception:
            return False  # the general path raises it
        return base._target is target  # type: ignore[attr-defined]

    def __delitem__(self, key: Any) -> None:
        raise TypeError("Cannot delete iterator elements")

    def __eq__(self, other: Any) -> Any:
        return self.copy() == other

    def __ne__(self, other: Any) -> Any:
        return self.copy() != other

    __hash__ = None  # type: ignore[assignment]


def complex_of(real: Any, imag: Any) -> Array:
    """Complex numbers of these parts, with their signs of zero, infinities and NaN.

    A number times i has a real part that is zero or NaN. It is made a negative zero, to which everything adds exactly.
    """
    real, imag = array_of(real), array_of(imag)
    kind = _inference.promote(real.dtype, imag.dtype, complex)
    part = np.dtype(np.float32) if kind == _dtypes.complex64 else np.dtype(np.float64)
    real, imag = real.astype(part, copy=False), imag.astype(part, copy=False)

    def number(real_part: float, imag_part: float) -> Any:
        return kind.type(complex(real_part, imag_part))

    negative = _elementwise.signbit(imag)
    wide = imag.astype(kind)
    turned = where(negative, wide * number(0.0, 1.0), wide * number(-0.0, 1.0))
    turned = where(imag == 0, where(negative, number(-0.0, -0.0), number(-0.0, 0.0)), turned)
    infinite = where(negative, number(-0.0, -np.inf), number(-0.0, np.inf))
    turned = where(_elementwise.isinf(imag), infinite, turned)
    turned = where(_elementwise.isnan(imag), number(-0.0, np.nan), turned)
    return _elementwise.conjugate(real.astype(kind)) + turned


def real_part(array: Array) -> Array:
    return _parts.part_of(array, "real", _real, lambda whole, part: complex_of(part, _imag(whole)))


def imaginary_part(array: Array) -> Array:
    return _parts.part_of(array, "imag", _imag, lambda whole, part: complex_of(_real(whole), part))


def _real(array: Array) -> Array:
    return wrap(elementwise("real", (array._node,)))


def _imag(array: Array) -> Array:
    return wrap(elementwise("imag", (array._node,)))


is_part = _parts.is_own


def byte_strides(array: Array) -> Tuple[int, ...]:
    node = array._node
    return tuple(one * node.dtype.itemsize for one in node.strides or _inference.contiguous_strides(node.shape))


def resized(array: Array, shape: Any) -> Array:
    """NumPy's `resize` method: the elements in C order, with zeros where there are too few."""
    from stride import _creation

    shape = _creation._shape(shape)
    count = int(np.prod(shape, dtype=np.int64))
    flat = _manipulation.reshape(array, (array.size,))
    if count <= array.size:
        return _manipulation.reshape(_casts.copy(flat[:count]), shape)
    more = _creation.zeros((count - array.size,), array.dtype)
    return _manipulation.reshape(_assembly.concat([flat, more]), shape)


# By words, whatever the types are: one kernel for each width.
_REINTERPRET = """
extern "C" __global__ void stride_reinterpret(const void* from, void* to, unsigned long long num_words) {{
  const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < num_words; i += step)
    ((unsigned {word}*)to)[i] = ((const unsigned {word}*)from)[i];
}}
"""
_WORDS = {1: "char", 2: "short", 4: "int", 8: "long long"}
_BLOCK = 256
_MAX_BLOCKS = 1024


def reinterpreted(array: Array, dtype: Any) -> Array:
    """The elements' bytes as elements of another type, as a view."""
    other_order = not np.dtype(dtype).isnative
    dtype, own = _dtypes.dtype_of(dtype), array.dtype
    if other_order:
        # NumPy's would read the bytes in the other order.
        return _parts.part_of(
            array,
            ("swapped", dtype),
            lambda whole: _as_type(whole, dtype).byteswap(),
            lambda whole, part: _as_type(part.byteswap(), own),
        )
    if dtype == own:
        return array[...]
    return _parts.part_of(
        array, dtype, lambda whole: _as_type(whole, dtype), lambda whole, part: _as_type(part, own)
    )


def _as_type(array: Array, dtype: np.dtype) -> Array:
    """The elements' bytes as elements of another type, in an array of their own."""
    from stride import _creation

    if dtype == array.dtype:
        return _casts.copy(array)
    before, after = array.dtype.itemsize, dtype.itemsize
    if not array.ndim and before != after:
        raise ValueError("Changing the dtype of a 0d array is only supported if the itemsize is unchanged")
    if before != after and array.shape[-1] != 1 and byte_strides(array)[-1] != before and array.size:
        raise ValueError("To change to a dtype of a different size, the last axis must be contiguous")
    num_bytes = array.shape[-1] * before if array.ndim else before
    if num_bytes % after:
        raise ValueError(
            "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last "
            "axis of "
            "the array."
        )
    shape = (*array.shape[:-1], num_bytes // after) if array.ndim else ()
    result = _as_real_words(array, dtype, shape)
    if result is None:
        result = _creation.zeros(shape, dtype)
        if result.size:
            from stride._kernel import RawKernel

            width = min(before, after)
            text = _REINTERPRET.format(word=_WORDS[width])
            count = array.nbytes // width
            blocks = min(_MAX_BLOCKS, -(-count // _BLOCK))
            whole = array if array.flags.c_contiguous else _casts.copy(array)
            RawKernel(text, "stride_reinterpret")((blocks,), (_BLOCK,), (whole, result, np.uint64(count)))
    return result


def _as_real_words(array: Array, dtype: np.dtype, shape: Tuple[int, ...]) -> Optional[Array]:
    """Complex numbers as pairs of their parts and back, and integers of one size, which need no kernel."""
    parts = ((_dtypes.complex64, _dtypes.float32), (_dtypes.complex128, _dtypes.float64))
    if (array.dtype, dtype) in parts and array.ndim:
        return _manipulation.reshape(_assembly.stack([_real(array), _imag(array)], -1), shape)
    if (dtype, array.dtype) in parts:
        return complex_of(array[..., 0::2], array[..., 1::2])
    if array.dtype.kind in "iu" and dtype.kind in "iu" and array.dtype.itemsize == dtype.itemsize:
        return array.astype(dtype)
    return None

