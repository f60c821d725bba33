"""cupyx.scipy.fft: SciPy's Fourier transforms. Unlike those of `cupy.fft` they give float32 and complex64 for float16,
and refuse an axis that is named twice. `scipy.fft.set_backend` takes this module."""

from typing import Any, Callable, Optional, Sequence

from stride import _conversion, _dtypes, _elementwise, _errors, _inference, fft as _own
from stride._array import Array
from stride.fft import fftfreq, fftshift, ifftshift, rfftfreq

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "next_fast_len", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

__ua_domain__ = "numpy.scipy.fft"
_OTHER_NORM = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _given(x: Any, plan: Any) -> Array:
    if plan is not None:
        raise _errors.Unimplemented(
            "plan= is not yet supported: the daemon makes the plans", reason="NOT_IMPLEMENTED",
            metadata={"feature": "plans of transforms"},
        )  # fmt: skip
    array = _conversion.asarray(x)
    return array.astype(_dtypes.float32) if array.dtype == _dtypes.float16 else array


def _along(name: str, text: str, result: str) -> Callable:
    def call(
        x: Any, n: Optional[int] = None, axis: int = -1, norm: Optional[str] = None, overwrite_x: bool = False,
        *, plan: Any = None, workers: Optional[int] = None,
    ) -> Array:
        return getattr(_own, name)(_given(x, plan), n, axis, norm)

    return _described(call, name, text, "n: the length; None for the array's.\n        axis: the axis.", result)


def _over(name: str, text: str, result: str, axes: Any) -> Callable:
    def call(
        x: Any, s: Optional[Sequence[int]] = None, axes: Any = axes, norm: Optional[str] = None,
        overwrite_x: bool = False, *, plan: Any = None, workers: Optional[int] = None,
    ) -> Array:
        return _transformed(name, _given(x, plan), s, axes, norm)

    lengths = "s: the lengths; None for the array's.\n        axes: the axes; None for all, or the last of `s`."
    return _described(call, name, text, lengths, result)


def _transformed(name: str, x: Array, s: Any, axes: Any, norm: Optional[str]) -> Array:
    lengths = None if s is None else (s,) if isinstance(s, int) else tuple(s)
    if axes is None:
        if lengths is not None and len(lengths) > x.ndim:
            raise ValueError("shape requires more axes than are present")
        places = tuple(range(x.ndim)) if lengths is None else tuple(range(x.ndim - len(lengths), x.ndim))
    else:
        places = tuple(_inference.normal_axis(one, x.ndim) for one in ((axes,) if isinstance(axes, int) else axes))
    if len(set(places)) != len(places):
        raise ValueError("all axes must be unique")
    if lengths is not None:
        if len(lengths) != len(places):
            raise ValueError("when given, axes and shape arguments have to be of the same length")
        lengths = tuple(x.shape[axis] if n == -1 else n for n, axis in zip(lengths, places))
    plain = {"fft2": "fftn", "ifft2": "ifftn", "rfft2": "rfftn", "irfft2": "irfftn"}.get(name, name)
    if plain in ("hfft2", "hfftn"):
        return _own.irfftn(_elementwise.conj(x), lengths, places, _other(norm))
    if plain in ("ihfft2", "ihfftn"):
        return _elementwise.conj(_own.rfftn(x, lengths, places, _other(norm)))
    if not places and plain in ("rfftn", "irfftn"):
        raise ValueError("at least 1 axis must be transformed")
    return getattr(_own, plain)(x, lengths, places, norm)


def _other(norm: Optional[str]) -> str:
    if norm not in _OTHER_NORM:
        raise ValueError(f"Invalid norm value {norm!r}, should be \"backward\", \"ortho\" or \"forward\"")
    return _OTHER_NORM[norm]


def _described(call: Callable, name: str, text: str, lengths: str, result: str) -> Callable:
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"""{text}

    Parameters
        x: an array.
        {lengths}
        norm: backward, ortho or forward.
        overwrite_x, workers: change nothing.
        plan: None.
    Returns
        An array.
    Raises
        ValueError for lengths below 1 and axes that do not fit; Unimplemented for a plan.
    Example
        >>> from stride.cupyx.scipy import fft
        >>> abs(fft.{name}(st.ones((2, 2)))).tolist()
        {result}
    """
    return call


fft = _along("fft", "The discrete Fourier transform along an axis.", "[[2.0, 0.0], [2.0, 0.0]]")
ifft = _along("ifft", "The inverse of `fft`.", "[[1.0, 0.0], [1.0, 0.0]]")
rfft = _along("rfft", "The first half of `fft` of real numbers.", "[[2.0, 0.0], [2.0, 0.0]]")
irfft = _along("irfft", "The inverse of `rfft`.", "[[1.0, 0.0], [1.0, 0.0]]")
hfft = _along("hfft", "The transform of a signal that is real in the frequencies.", "[[2.0, 0.0], [2.0, 0.0]]")
ihfft = _along("ihfft", "The inverse of `hfft`.", "[[1.0, 0.0], [1.0, 0.0]]")
fft2 = _over("fft2", "The transform over two axes.", "[[4.0, 0.0], [0.0, 0.0]]", (-2, -1))
ifft2 = _over("ifft2", "The inverse of `fft2`.", "[[1.0, 0.0], [0.0, 0.0]]", (-2, -1))
fftn = _over("fftn", "The transform over several axes.", "[[4.0, 0.0], [0.0, 0.0]]", None)
ifftn = _over("ifftn", "The inverse of `fftn`.", "[[1.0, 0.0], [0.0, 0.0]]", None)
rfft2 = _over("rfft2", "The first half of `fft2` of real numbers.", "[[4.0, 0.0], [0.0, 0.0]]", (-2, -1))
irfft2 = _over("irfft2", "The inverse of `rfft2`.", "[[1.0, 0.0], [0.0, 0.0]]", (-2, -1))
rfftn = _over("rfftn", "The first half of `fftn` of real numbers.", "[[4.0, 0.0], [0.0, 0.0]]", None)
irfftn = _over("irfftn", "The inverse of `rfftn`.", "[[1.0, 0.0], [0.0, 0.0]]", None)
hfft2 = _over("hfft2", "As `hfft`, over two axes.", "[[4.0, 0.0], [0.0, 0.0]]", (-2, -1))
ihfft2 = _over("ihfft2", "The inverse of `hfft2`.", "[[1.0, 0.0], [0.0, 0.0]]", (-2, -1))
hfftn = _over("hfftn", "As `hfft`, over several axes.", "[[4.0, 0.0], [0.0, 0.0]]", None)
ihfftn = _over("ihfftn", "The inverse of `hfftn`.", "[[1.0, 0.0], [0.0, 0.0]]", None)


def next_fast_len(target: int, real: bool = False) -> int:
    """The least length from `target` on that has no prime factor above 7.

    Parameters
        target: a length, not below 0.
        real: changes nothing.
    Returns
        An int.
    Raises
        ValueError for a length below 0.
    Example
        >>> from stride.cupyx.scipy import fft
        >>> fft.next_fast_len(11)
        12
    """
    if target < 0:
        raise ValueError(f"Target cannot be negative: {target}")
    while target:
        rest = target
        for prime in (2, 3, 5, 7):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            break
        target += 1
    return target


def __ua_function__(method: Any, args: tuple, kwargs: dict) -> Any:
    """SciPy's protocol of backends: this module's function of the name of SciPy's."""
    found = globals().get(method.__name__) if method.__name__ in __all__ else None
    return NotImplemented if found is None else found(*args, **kwargs)


def __getattr__(name: str) -> Any:
    if name in ("dct", "dctn", "dst", "dstn", "fht", "fhtoffset", "idct", "idctn", "idst", "idstn", "ifht"):
        raise AttributeError(f"cupyx.scipy.fft.{name} is not there: use scipy.fft.{name} with cp.asnumpy(x)")
    raise AttributeError(f"stride.cupyx.scipy.fft has no {name}")
