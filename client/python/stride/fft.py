"""Discrete Fourier transforms: the array API's `fft` extension, with NumPy's parameters and meaning.

Any length of at least one element; float16, float32 and complex64 are computed in single precision, the others in
double.

In every function `norm` says what is divided: `backward` (the default, also None) the inverse transform by the number
of elements, `forward` the other, `ortho` both by its square root. `n`, or `s` with one number for each axis, is the
length that an axis is cut or filled with zeros to, by default, and where `s` has -1, its own. `out` is an array of the
result's shape to be filled, which is then returned."""

import operator
from typing import Optional, Sequence, Tuple

import numpy as np

from stride import _assembly, _casts, _conversion, _dtypes, _elementwise, _errors, _host_functions, _inference, _origin
from stride._array import Array, node_of, wrap
from stride._graph import record
from stride._ufunc import _give
from stride.v1 import operation_pb2 as pb

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

_NORMS = {
    None: pb.Fft.NORM_BACKWARD,
    "backward": pb.Fft.NORM_BACKWARD,
    "ortho": pb.Fft.NORM_ORTHO,
    "forward": pb.Fft.NORM_FORWARD,
}
_OTHER_NORM = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
_SINGLE = (_dtypes.float16, _dtypes.float32, _dtypes.complex64)
_COMPLEX, _TO_COMPLEX, _TO_REAL = pb.Fft.KIND_COMPLEX, pb.Fft.KIND_REAL_TO_COMPLEX, pb.Fft.KIND_COMPLEX_TO_REAL


def _array(x) -> Array:
    return x if isinstance(x, Array) else wrap(node_of(x))


def _length(wanted: Optional[int], extent: int, name: str) -> int:
    length = extent if wanted is None else operator.index(wanted)
    if length < 1:
        raise ValueError(f"fft.{name}: Invalid number of FFT data points ({length}) specified: there is at least one")
    return length


def _transform(
    name: str, kind: int, x, axes, lengths, norm, inverse: bool = False, out: Optional[Array] = None
) -> Array:
    """`lengths`: one for each of `axes`, or None where an axis keeps its own."""
    if norm not in _NORMS:
        raise ValueError(f"norm is backward, ortho or forward, not {norm!r}")
    x = _array(x)
    if kind == _TO_COMPLEX and x.dtype.kind == "c":
        raise _errors.DataTypeMismatch(f"fft.{name} takes real numbers, not {x.dtype}")
    axes = tuple(_inference.normal_axis(axis, x.ndim) for axis in axes)
    if not axes:
        if kind != _COMPLEX:
            raise IndexError(f"fft.{name} needs an axis: list index out of range")
        return _given(name, x, out)  # as NumPy: the array itself
    if len(set(axes)) != len(axes):
        return _given(name, _one_by_one(name, kind, x, axes, lengths, norm, inverse), out)
    shape, wanted = list(x.shape), []
    for i, (axis, length) in enumerate(zip(axes, lengths)):
        is_half = kind == _TO_REAL and i + 1 == len(axes)
        wanted.append(_length(length, 2 * (shape[axis] - 1) if is_half else shape[axis], name))
        shape[axis] = wanted[-1]
    if kind == _TO_COMPLEX:
        shape[axes[-1]] = wanted[-1] // 2 + 1
    single = x.dtype in _SINGLE
    if kind == _TO_REAL:
        dtype = _dtypes.float32 if single else _dtypes.float64
    else:
        dtype = _dtypes.complex64 if single else _dtypes.complex128

    def build(flush, node, operands):
        flush.operation(
            node.handle,
            node.origin,
            fft=pb.Fft(kind=kind, input=operands[0], axes=axes, lengths=wanted, inverse=inverse, norm=_NORMS[norm]),
        )

    result = wrap(record(x.session, tuple(shape), dtype, build, (x._node,)))
    if kind == _TO_REAL and x.dtype == _dtypes.float16 and len(axes) == 1:
        result = result.astype(_dtypes.float16)  # NumPy's type here, unlike that of the other transforms
    return _given(name, result, out)


def _one_by_one(name: str, kind: int, x: Array, axes, lengths, norm, inverse: bool) -> Array:
    """For an axis that is there twice: the last axis first, or where that gives real numbers last, then from the last
    but
    one to the first. Lengths that are not given are those before all of them."""
    lengths = [x.shape[axis] if length is None else length for axis, length in zip(axes, lengths[:-1])] + [lengths[-1]]
    steps = [(kind, axes[-1], lengths[-1])]
    rest = [(_COMPLEX, axis, length) for axis, length in zip(axes[:-1], lengths[:-1])]
    steps = rest + steps if kind == _TO_REAL else steps + rest[::-1]
    for one, axis, length in steps:
        x = _transform(name, one, x, (axis,), (length,), norm, inverse or one == _COMPLEX and kind == _TO_REAL)
    return x


def _given(name: str, result: Array, out: Optional[Array]) -> Array:
    if out is not None:
        if not isinstance(out, Array):
            raise TypeError(f"out= is a stride array, not {type(out).__name__}")
        if out.shape != result.shape:
            raise _errors.ShapeMismatch(
                f"fft.{name}: out= has wrong shape {out.shape}, the result has {result.shape}", reason="SHAPE_MISMATCH"
            )
    return _give(result, out, None, "same_kind")


def _deprecated(what: str) -> None:
    """By NumPy, which warns as well."""
    _origin.warn(what, DeprecationWarning)


def _axes(x: Array, s: Optional[Sequence[int]], axes) -> Tuple[tuple, tuple]:
    """NumPy's rules for several axes: (axes, lengths)."""
    if axes is None:
        if s is not None:
            _deprecated("`axes` should not be `None` if `s` is not `None`")
        axes = tuple(range(x.ndim) if s is None else range(-len(s), 0))
    axes = tuple(axes)
    if s is None:
        return axes, (None,) * len(axes)
    if len(s) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    if any(one is None for one in s):
        _deprecated("Passing an array containing `None` values to `s` is deprecated; use -1 for an axis' own length")
    return axes, tuple(None if one is None or one == -1 else one for one in s)


def fft(a, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None, out: Optional[Array] = None) -> Array:
    """The transform along an axis.

    Parameters: `a`, an array of any numbers; `n`; `axis`; `norm`; `out`. Returns complex64 or complex128 of the shape
    of `a` with `n` elements along the axis. Raises ValueError for a length below 1 or another norm, AxisError for an
    axis that there is not.

    >>> stride.fft.fft(stride.ones(4)).real.tolist()
    [4.0, 0.0, 0.0, 0.0]
    """
    return _transform("fft", _COMPLEX, a, (axis,), (n,), norm, out=out)


def ifft(a, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None, out: Optional[Array] = None) -> Array:
    """The inverse of `fft`.

    Parameters: `a`, an array of any numbers; `n`; `axis`; `norm`; `out`. Returns complex64 or complex128 of the shape
    of `a` with `n` elements along the axis. Raises ValueError for a length below 1 or another norm, AxisError for an
    axis that there is not.

    >>> stride.fft.ifft(stride.asarray([4.0, 0.0, 0.0, 0.0])).real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _transform("ifft", _COMPLEX, a, (axis,), (n,), norm, inverse=True, out=out)


def fftn(
    a,
    s: Optional[Sequence[int]] = None,
    axes: Optional[Sequence[int]] = None,
    norm: Optional[str] = None,
    out: Optional[Array] = None,
) -> Array:
    """The transform along several axes.

    Parameters: `a`, an array of any numbers; `s`; `axes`, by default all, or the last ones where `s` is given; `norm`;
    `out`. Returns complex64 or complex128 of the shape of `a` with `s` elements along the axes. Raises ValueError for a
    length below 1, another norm, or as many lengths as there are not axes.

    >>> stride.fft.fftn(stride.ones((2, 2))).real.tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """
    a = _array(a)
    return _transform("fftn", _COMPLEX, a, *_axes(a, s, axes), norm, out=out)


def ifftn(
    a,
    s: Optional[Sequence[int]] = None,
    axes: Optional[Sequence[int]] = None,
    norm: Optional[str] = None,
    out: Optional[Array] = None,
) -> Array:
    """The inverse of `fftn`.

    Parameters: `a`, an array of any numbers; `s`; `axes`, by default all, or the last ones where `s` is given; `norm`;
    `out`. Returns complex64 or complex128 of the shape of `a` with `s` elements along the axes. Raises ValueError for a
    length below 1, another norm, or as many lengths as there are not axes.

    >>> stride.fft.ifftn(stride.ones((2, 2))).real.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    a = _array(a)
    return _transform("ifftn", _COMPLEX, a, *_axes(a, s, axes), norm, inverse=True, out=out)


def rfft(a, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None, out: Optional[Array] = None) -> Array:
    """The half of the transform of real numbers that says all.

    Parameters: `a`, an array of real numbers; `n`; `axis`; `norm`; `out`. Returns complex64 or complex128 of the shape
    of `a` with n // 2 + 1 elements along the axis. Raises ValueError for a length below 1 or another norm,
    DataTypeMismatch for complex numbers, AxisError for an axis that there is not.

    >>> stride.fft.rfft(stride.ones(4)).real.tolist()
    [4.0, 0.0, 0.0]
    """
    return _transform("rfft", _TO_COMPLEX, a, (axis,), (n,), norm, out=out)


def irfft(a, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None, out: Optional[Array] = None) -> Array:
    """The inverse of `rfft`.

    Parameters: `a`, an array of any numbers, m along the axis; `n`, the length of the result there, by default 2 * (m -
    1); `axis`; `norm`; `out`. Returns float32 or float64. Raises ValueError for a length below 1 or another norm,
    AxisError for an axis that there is not.

    >>> stride.fft.irfft(stride.asarray([4.0, 0.0, 0.0])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _transform("irfft", _TO_REAL, a, (axis,), (n,), norm, out=out)


def rfftn(
    a,
    s: Optional[Sequence[int]] = None,
    axes: Optional[Sequence[int]] = None,
    norm: Optional[str] = None,
    out: Optional[Array] = None,
) -> Array:
    """`rfft` along the last of several axes, `fft` along the others.

    Parameters: `a`, an array of real numbers; `s`; `axes`, by default all, or the last ones where `s` is given; `norm`;
    `out`. Returns complex64 or complex128. Raises ValueError for a length below 1, another norm, or as many lengths as
    there are not axes, DataTypeMismatch for complex numbers.

    >>> stride.fft.rfftn(stride.ones((2, 4))).shape
    (2, 3)
    """
    a = _array(a)
    return _transform("rfftn", _TO_COMPLEX, a, *_axes(a, s, axes), norm, out=out)


def irfftn(
    a,
    s: Optional[Sequence[int]] = None,
    axes: Optional[Sequence[int]] = None,
    norm: Optional[str] = None,
    out: Optional[Array] = None,
) -> Array:
    """The inverse of `rfftn`.

    Parameters: `a`, an array of any numbers, m along the last of the axes; `s`, by default 2 * (m - 1) for that;
    `axes`, by default all, or the last ones where `s` is given; `norm`; `out`. Returns float32 or float64. Raises
    ValueError for a length below 1, another norm, or as many lengths as there are not axes.

    >>> stride.fft.irfftn(stride.ones((2, 3))).shape
    (2, 4)
    """
    a = _array(a)
    return _transform("irfftn", _TO_REAL, a, *_axes(a, s, axes), norm, out=out)


def fft2(
    a,
    s: Optional[Sequence[int]] = None,
    axes: Optional[Sequence[int]] = (-2, -1),
    norm: Optional[str] = None,
    out: Optional[Array] = None,
) -> Array:
    """The Fourier transform of complex numbers along two axes.

    Parameters
        a: an array, or what becomes one.
        s: the number of points along each axis; elements are cut off or zeros added.
        axes: the two axes.
        norm: `backward`, `ortho` or `forward`: which transform divides by the number of points.
        out: an array of complex numbers of the result's shape that takes it.
    Returns
        An array of complex numbers.
    Raises
        ValueError for a number of points below 1 or another `norm`; AxisError for an axis that `a` lacks.
    Example
        >>> st.fft.fft2(st.ones((2, 2))).real.tolist()
        [[4.0, 0.0], [0.0, 0.0]]
    """
    return fftn(a, s, axes, norm, out)


def ifft2(
    a,
    s: Optional[Sequence[int]] = None,
    axes: Optional[Sequence[int]] = (-2, -1),
    norm: Optional[str] = None,
    out: Optional[Array] = None,
) -> Array:
    """The inverse Fourier transform of complex numbers along two axes.

    Parameters
        a: an array, or what becomes one.
        s: the number of points along each axis; elements are cut off or zeros added.
        axes: the two axes.
        norm: `backward`, `ortho` or `forward`: which transform divides by the number of points.
        out: an array of complex numbers of the result's shape that takes it.
    Returns
        An array of complex numbers.
    Raises
        ValueError for a number of points below 1 or another `norm`; AxisError for an axis that `a` lacks.
    Example
        >>> st.fft.ifft2(st.ones((2, 2))).real.tolist()
        [[1.0, 0.0], [0.0, 0.0]]
    """
    return ifftn(a, s, axes, norm, out)


def rfft2(
    a,
    s: Optional[Sequence[int]] = None,
    axes: Optional[Sequence[int]] = (-2, -1),
    norm: Optional[str] = None,
    out: Optional[Array] = None,
) -> Array:
    """The Fourier transform of real numbers along two axes: the half of it that determines the rest.

    Parameters
        a: an array, or what becomes one.
        s: the number of points along each axis; elements are cut off or zeros added.
        axes: the two axes.
        norm: `backward`, `ortho` or `forward`: which transform divides by the number of points.
        out: an array of complex numbers of the result's shape that takes it.
    Returns
        An array of complex numbers.
    Raises
        ValueError for a number of points below 1 or another `norm`; AxisError for an axis that `a` lacks.
    Example
        >>> st.fft.rfft2(st.ones((2, 4))).shape
        (2, 3)
    """
    return rfftn(a, s, axes, norm, out)


def irfft2(
    a,
    s: Optional[Sequence[int]] = None,
    axes: Optional[Sequence[int]] = (-2, -1),
    norm: Optional[str] = None,
    out: Optional[Array] = None,
) -> Array:
    """The inverse of `rfft2`: real numbers from half of their Fourier transform along two axes.

    Parameters
        a: an array, or what becomes one.
        s: the number of points of the result along each axis.
        axes: the two axes.
        norm: `backward`, `ortho` or `forward`: which transform divides by the number of points.
        out: an array of real numbers of the result's shape that takes it.
    Returns
        An array of real numbers.
    Raises
        ValueError for a number of points below 1 or another `norm`; AxisError for an axis that `a` lacks.
    Example
        >>> st.fft.irfft2(st.ones((2, 3))).shape
        (2, 4)
    """
    return irfftn(a, s, axes, norm, out)


def _conjugate(x: Array) -> Array:
    return _elementwise.conjugate(x) if x.dtype.kind == "c" else x


def hfft(a, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None, out: Optional[Array] = None) -> Array:
    """The transform of a signal that is Hermitian in time, of which a half is given, and so real in frequency.

    Parameters: `a`, an array of any numbers, m along the axis; `n`, the length of the result there, by default 2 * (m -
    1); `axis`; `norm`; `out`. Returns float32 or float64. Raises ValueError for a length below 1 or another norm,
    AxisError for an axis that there is not.

    >>> stride.fft.hfft(stride.asarray([1.0, 0.0, 0.0])).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _transform("hfft", _TO_REAL, _conjugate(_array(a)), (axis,), (n,), _OTHER_NORM.get(norm, norm), out=out)


def ihfft(a, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None, out: Optional[Array] = None) -> Array:
    """The inverse of `hfft`.

    Parameters: `a`, an array of real numbers; `n`; `axis`; `norm`; `out`. Returns complex64 or complex128 of the shape
    of `a` with n // 2 + 1 elements along the axis. Raises ValueError for a length below 1 or another norm,
    DataTypeMismatch for complex numbers, AxisError for an axis that there is not.

    >>> stride.fft.ihfft(stride.ones(4)).real.tolist()
    [1.0, 0.0, 0.0]
    """
    return _given(
        "ihfft",
        _elementwise.conjugate(_transform("ihfft", _TO_COMPLEX, a, (axis,), (n,), _OTHER_NORM.get(norm, norm))),
        out,
    )


def _frequencies(name: str, n, d, dtype, device, numbers) -> Array:
    if not hasattr(n, "__index__"):
        raise ValueError(f"fft.{name}: n should be an integer")
    n = operator.index(n)
    dtype = _dtypes.float64 if dtype is None else _dtypes.dtype_of(dtype)
    return _conversion.asarray((numbers(n) * (1.0 / (n * float(d)))).astype(dtype), device=device)


def fftfreq(n: int, d: float = 1.0, *, dtype=None, device: Optional[str] = None) -> Array:
    """The frequency of each element of a transform.

    Parameters: `n`, the number of elements; `d`, the time between them; `dtype`, float64 by default; `device`. Returns
    an array (n,). Raises ValueError where n is no integer, ZeroDivisionError where it is 0.

    >>> stride.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    return _frequencies(
        "fftfreq", n, d, dtype, device, lambda n: np.concatenate([np.arange((n - 1) // 2 + 1), np.arange(-(n // 2), 0)])
    )


def rfftfreq(n: int, d: float = 1.0, *, dtype=None, device: Optional[str] = None) -> Array:
    """The frequency of each element of an `rfft`.

    Parameters: `n`, the number of real elements; `d`, the time between them; `dtype`, float64 by default; `device`.
    Returns an array (n // 2 + 1,). Raises ValueError where n is no integer, ZeroDivisionError where it is 0.

    >>> stride.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    return _frequencies("rfftfreq", n, d, dtype, device, lambda n: np.arange(n // 2 + 1))


def _shift(x, axes, amount) -> Array:
    x = _array(x)
    axes = (
        tuple(range(x.ndim))
        if axes is None
        else tuple(_inference.normal_axis(one, x.ndim) for one in (axes if np.ndim(axes) else (axes,)))
    )
    return (
        _assembly.roll(x, tuple(amount(x.shape[axis]) for axis in axes), axis=axes)
        if axes
        else _casts.copy(x)
    )


def fftshift(x, axes=None) -> Array:
    """Puts frequency zero into the middle.

    Parameters: `x`, an array; `axes`, one or several, by default all. Returns an array of this type and shape. Raises
    AxisError for an axis that there is not.

    >>> stride.fft.fftshift(stride.fft.fftfreq(4)).tolist()
    [-0.5, -0.25, 0.0, 0.25]
    """
    return _shift(x, axes, lambda n: n // 2)


def ifftshift(x, axes=None) -> Array:
    """The inverse of `fftshift`.

    Parameters: `x`, an array; `axes`, one or several, by default all. Returns an array of this type and shape. Raises
    AxisError for an axis that there is not.

    >>> stride.fft.ifftshift(stride.asarray([-0.5, -0.25, 0.0, 0.25])).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    return _shift(x, axes, lambda n: -(n // 2))


_host_functions.offer(globals(), "fft")


def __getattr__(name: str):
    from stride import _numpy_names

    return _numpy_names.missing_in("fft", name)
