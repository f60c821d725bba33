"""Discrete Fourier transforms: the array API's `fft` extension, with NumPy's meaning. Any length; single precision stays single."""

from typing import Optional

import numpy as np

from stride import _creation, _dtypes, _elementwise, _errors, _inference, _manipulation
from stride._array import Array, node_of, wrap
from stride._graph import record
from stride.v1 import operation_pb2 as pb

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2", "irfftn", "rfft",
           "rfft2", "rfftfreq", "rfftn"]

_NORMS = {None: pb.Fft.NORM_BACKWARD, "backward": pb.Fft.NORM_BACKWARD, "ortho": pb.Fft.NORM_ORTHO, "forward": pb.Fft.NORM_FORWARD}
_SINGLE = (_dtypes.float16, _dtypes.float32, _dtypes.complex64)


def _array(x) -> Array:
    return x if isinstance(x, Array) else wrap(node_of(x))


def _transform(name: str, kind: int, x, axes, lengths, norm, inverse: bool = False) -> Array:
    """`lengths`: one for each of `axes`, or None where an axis keeps its own."""
    if norm not in _NORMS:
        raise ValueError(f"norm is backward, ortho or forward, not {norm}")
    x = _array(x)
    if kind == pb.Fft.KIND_REAL_TO_COMPLEX and x.dtype.kind == "c":
        raise _errors.DataTypeMismatch(f"fft.{name} takes real numbers, not {x.dtype}")
    axes = _inference.normal_axes(tuple(axes), x.ndim)
    if not axes:
        raise ValueError(f"fft.{name} needs an axis")
    shape = list(x.shape)
    lengths = list(lengths)
    for i, axis in enumerate(axes):
        if lengths[i] is None:
            lengths[i] = shape[axis] if kind != pb.Fft.KIND_COMPLEX_TO_REAL or i + 1 < len(axes) else 2 * (shape[axis] - 1)
        lengths[i] = lengths[i].__index__()
        if lengths[i] < 1:
            raise ValueError(f"a transform has at least one element, not {lengths[i]}")
        shape[axis] = lengths[i]
    if kind == pb.Fft.KIND_REAL_TO_COMPLEX:
        shape[axes[-1]] = lengths[-1] // 2 + 1
    single = x.dtype in _SINGLE
    if kind == pb.Fft.KIND_COMPLEX_TO_REAL:
        dtype = _dtypes.float32 if single else _dtypes.float64
    else:
        dtype = _dtypes.complex64 if single else _dtypes.complex128

    def build(flush, node, operands):
        flush.operation(node.handle, node.origin, fft=pb.Fft(kind=kind, input=operands[0], axes=axes, lengths=lengths, inverse=inverse,
                                                             norm=_NORMS[norm]))

    return wrap(record(x.session, tuple(shape), dtype, build, (x._node,)))


def _axes(x: Array, s, axes, default=None):
    """NumPy's rules for several axes: (axes, lengths)."""
    if axes is None:
        axes = default if default is not None else tuple(range(x.ndim) if s is None else range(-len(s), 0))
    axes = tuple(axes)
    if s is None:
        return axes, (None,) * len(axes)
    if len(s) != len(axes):
        raise ValueError("as many lengths as axes are needed")
    return axes, tuple(s)


def fft(x, /, *, n: Optional[int] = None, axis: int = -1, norm: str = "backward") -> Array:
    return _transform("fft", pb.Fft.KIND_COMPLEX, x, (axis,), (n,), norm)


def ifft(x, /, *, n: Optional[int] = None, axis: int = -1, norm: str = "backward") -> Array:
    return _transform("ifft", pb.Fft.KIND_COMPLEX, x, (axis,), (n,), norm, inverse=True)


def fftn(x, /, *, s=None, axes=None, norm: str = "backward") -> Array:
    x = _array(x)
    return _transform("fftn", pb.Fft.KIND_COMPLEX, x, *_axes(x, s, axes), norm)


def ifftn(x, /, *, s=None, axes=None, norm: str = "backward") -> Array:
    x = _array(x)
    return _transform("ifftn", pb.Fft.KIND_COMPLEX, x, *_axes(x, s, axes), norm, inverse=True)


def rfft(x, /, *, n: Optional[int] = None, axis: int = -1, norm: str = "backward") -> Array:
    return _transform("rfft", pb.Fft.KIND_REAL_TO_COMPLEX, x, (axis,), (n,), norm)


def irfft(x, /, *, n: Optional[int] = None, axis: int = -1, norm: str = "backward") -> Array:
    return _transform("irfft", pb.Fft.KIND_COMPLEX_TO_REAL, x, (axis,), (n,), norm)


def rfftn(x, /, *, s=None, axes=None, norm: str = "backward") -> Array:
    x = _array(x)
    return _transform("rfftn", pb.Fft.KIND_REAL_TO_COMPLEX, x, *_axes(x, s, axes), norm)


def irfftn(x, /, *, s=None, axes=None, norm: str = "backward") -> Array:
    x = _array(x)
    return _transform("irfftn", pb.Fft.KIND_COMPLEX_TO_REAL, x, *_axes(x, s, axes), norm)


def fft2(x, /, *, s=None, axes=(-2, -1), norm: str = "backward") -> Array:
    return fftn(x, s=s, axes=axes, norm=norm)


def ifft2(x, /, *, s=None, axes=(-2, -1), norm: str = "backward") -> Array:
    return ifftn(x, s=s, axes=axes, norm=norm)


def rfft2(x, /, *, s=None, axes=(-2, -1), norm: str = "backward") -> Array:
    return rfftn(x, s=s, axes=axes, norm=norm)


def irfft2(x, /, *, s=None, axes=(-2, -1), norm: str = "backward") -> Array:
    return irfftn(x, s=s, axes=axes, norm=norm)


_OTHER_NORM = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _conjugate(x: Array) -> Array:
    return _elementwise.conjugate(x) if x.dtype.kind == "c" else x


def hfft(x, /, *, n: Optional[int] = None, axis: int = -1, norm: str = "backward") -> Array:
    """Of a signal that is Hermitian in time, and so real in frequency."""
    return _transform("hfft", pb.Fft.KIND_COMPLEX_TO_REAL, _conjugate(_array(x)), (axis,), (n,), _OTHER_NORM.get(norm, norm))


def ihfft(x, /, *, n: Optional[int] = None, axis: int = -1, norm: str = "backward") -> Array:
    return _elementwise.conjugate(_transform("ihfft", pb.Fft.KIND_REAL_TO_COMPLEX, x, (axis,), (n,), _OTHER_NORM.get(norm, norm)))


def _frequencies(numbers: np.ndarray, n: int, d: float, dtype, device) -> Array:
    dtype = _dtypes.float64 if dtype is None else _dtypes.dtype_of(dtype)
    return _creation.asarray((numbers / (n * d)).astype(dtype), device=device)


def fftfreq(n: int, /, *, d: float = 1.0, dtype=None, device: Optional[str] = None) -> Array:
    """The frequency of each element of a transform of n elements that are `d` apart."""
    half = (n - 1) // 2 + 1
    return _frequencies(np.concatenate([np.arange(half), np.arange(-(n // 2), 0)]), n, d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype=None, device: Optional[str] = None) -> Array:
    return _frequencies(np.arange(n // 2 + 1), n, d, dtype, device)


def _shift(x, axes, amount) -> Array:
    x = _array(x)
    axes = _inference.normal_axes(axes, x.ndim)
    return _manipulation.roll(x, tuple(amount(x.shape[axis]) for axis in axes), axis=axes) if axes else x


def fftshift(x, /, *, axes=None) -> Array:
    """Frequency zero to the middle."""
    return _shift(x, axes, lambda n: n // 2)


def ifftshift(x, /, *, axes=None) -> Array:
    return _shift(x, axes, lambda n: -(n // 2))
