"""Functions of the namespaces for small arrays of a loop of the host (`_local.py`): NumPy's own, computed at once.

A function of the table below is `offered`: where one of its arguments is an array of such a loop, the host has the
elements of all, and what is computed stays small, the result is NumPy's. Everything else, and each call in which NumPy
raises, is the service's. Functions that make arrays are NumPy's at the places of a program whose arrays were found to
be those of such a loop (`Session._host_places`): otherwise each pass of the loop would wait for the new arrays."""

import functools
from math import prod
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import numpy as np

from stride import _dtypes, _host_arrays, _local
from stride._array import Array, get_node
from stride._copies import NUMBERS
from stride._element_numbers import Element, LocalArray
from stride._host_arrays import HostArray, LocalView

_ndarray = np.ndarray
_LOCAL = frozenset((LocalArray, LocalView, HostArray, Element))
_PLAIN = NUMBERS | {str, type(None), slice, type(Ellipsis), type, np.dtype}
_MAX_BYTES = _local.MAX_BYTES
_MAX_ELEMENTS = _MAX_BYTES // 8
# Approximate steps of NumPy for one call, and the largest extent of a matrix to decompose.
_MAX_WORK, _MAX_EXTENT = 1 << 17, 64
_MAX_ARRAYS = 64
# Sums of narrower types are rounded otherwise by the service.
_EXACT = frozenset(np.dtype(one) for one in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f8", "c16"))


class _Offer(NamedTuple):
    """How a function is NumPy's: `work` of NumPy's arguments is about the number of elements that are made, or None
    where the service is to compute. `any_type`: the result does not depend on how sums are rounded."""

    function: Callable
    work: Optional[Callable] = None
    any_type: bool = False
    makes: bool = False  # a new array, of numbers


class _NotHere(Exception):
    """The service is to compute."""


# --- arrays that NumPy makes ---


def _shape_of(shape: Any) -> int:
    return prod(shape) if isinstance(shape, (tuple, list)) else shape


def _made(shape: Any, *_, **__) -> int:
    return _shape_of(shape)


def _num_steps(start: Any, stop: Any = None, step: Any = 1, *_, **__) -> float:
    start, stop = (0, start) if stop is None else (start, stop)
    return (stop - start) / step


def _linspace(start: Any, stop: Any, num: int = 50, *_, **__) -> int:
    return num * max(np.size(start), np.size(stop))


def _identity(n: int, m: Optional[int] = None, *_, **__) -> int:
    return n * (n if m is None else m)


# --- how much it is ---


def _outer(a: Any, b: Any, *_, **__) -> int:
    return np.size(a) * np.size(b)


def _tile(a: Any, reps: Any) -> int:
    return np.size(a) * _shape_of(reps)


def _repeat(a: Any, repeats: Any, *_, **__) -> int:
    return np.size(a) * int(np.max(repeats))


def _pad(a: Any, width: Any, mode: str = "constant", *_, **__) -> int:
    return prod(n + 2 * int(np.max(width)) for n in a.shape)


def _counted(x: Any, weights: Any = None, minlength: int = 0) -> int:
    return max(int(np.max(x, initial=0)), minlength)


def _diagonal(v: Any, k: int = 0) -> int:
    return (np.size(v) + abs(k)) ** 2


def _rows(m: Any, y: Any = None, *_, **__) -> int:
    if np.ndim(m) > 2 or y is not None:
        raise _NotHere
    return max(m.shape) * m.shape[0]


def _einsum(_: str, *arrays: Any) -> int:
    return prod(max(np.size(one), 1) for one in arrays)


def _matrices(*arrays: Any, **_) -> int:
    """Decompositions and solutions: the cost rises with the third power of the extents."""
    for one in arrays:
        if type(one) is _ndarray and max(one.shape, default=0) > _MAX_EXTENT:
            raise _NotHere
    return 0


def _binned(a: Any, bins: Any = 10, *_, **__) -> int:
    return bins if type(bins) is int else np.size(bins)


def _transformed(a: Any, *more: Any, **_) -> int:
    if more:
        raise _NotHere
    return np.size(a)


def _first_places(a: Any, indices: Any, *_, **__) -> int:
    return np.size(indices) * (np.size(a) // max(a.shape[0], 1) if a.ndim else 1)


def _offers(of: Any, names: str, work: Optional[Callable] = None, **options: Any) -> Dict[str, _Offer]:
    return {name: _Offer(getattr(of, name), work, **options) for name in names.split()}


# By the module that has the functions under these names.
_TABLE = {
    "numpy": {
        **_offers(np, "zeros ones full", _made, makes=True),
        **_offers(np, "arange", _num_steps, makes=True),
        **_offers(np, "linspace", _linspace, makes=True),
        **_offers(np, "eye identity", _identity, makes=True),
        **_offers(np, "array asarray", makes=True),
        **_offers(np, "zeros_like ones_like full_like", any_type=True),
        **_offers(
            np, "sort argsort unique append delete insert roll diff searchsorted argwhere nonzero flatnonzero tril "
            "triu clip round isclose allclose array_equal digitize isin union1d intersect1d setdiff1d setxor1d vstack "
            "hstack column_stack dstack stack concatenate count_nonzero ptp take_along_axis nan_to_num", any_type=True,
        ),
        **_offers(
            np, "cumsum cumprod nancumsum nansum std var median average percentile quantile interp gradient ediff1d "
            "trapezoid cross trace polyval polyfit",
        ),
        **_offers(np, "outer kron convolve correlate", _outer),
        **_offers(np, "tile", _tile, any_type=True),
        **_offers(np, "repeat", _repeat, any_type=True),
        **_offers(np, "pad", _pad),
        **_offers(np, "bincount", _counted),
        **_offers(np, "diag", _diagonal, any_type=True),
        **_offers(np, "cov corrcoef", _rows),
        **_offers(np, "einsum", _einsum),
        **_offers(np, "histogram", _binned),
        **_offers(np, "take", _first_places, any_type=True),
    },
    "linalg": _offers(
        np.linalg, "solve inv det slogdet cholesky eig eigvals eigh eigvalsh pinv matrix_rank cond", _matrices
    ),
    "fft": _offers(np.fft, "fft ifft rfft irfft fft2 ifft2 fftshift ifftshift", _transformed),
}


# --- calls ---


# Arguments that NumPy would write into, or that say where the service puts the result.
_NOT_HERE = ("out", "copy", "overwrite_input", "device", "like", "sharding", "progress")


def _has_local(sequence: Any) -> bool:
    """Whether an array of a loop is among the first of a sequence."""
    for one in sequence[:4]:
        kind = type(one)
        if kind in _LOCAL:
            return True
        if kind is Array:
            buffer = get_node(one).buffer
            if buffer is not None and buffer.is_local:
                return True
    return False


def _values(one: Any, arrays: List[Array], any_type: bool) -> Any:
    """An argument as NumPy takes it. Adds the arrays in it to `arrays`."""
    kind = type(one)
    if kind in _PLAIN:
        return one
    if kind is list or kind is tuple:
        if len(one) > _MAX_ELEMENTS:
            raise _NotHere
        return kind([_values(each, arrays, any_type) for each in one])
    if kind is _ndarray:
        if one.nbytes > _MAX_BYTES or one.dtype.kind not in "biufc":
            raise _NotHere
        return one
    value = _host_arrays.values_of(one)
    if value is None or value.dtype not in _EXACT and not any_type or len(arrays) >= _MAX_ARRAYS:
        raise _NotHere
    arrays.append(one)
    return value


def _wrapped(value: Any, home: tuple, given: List[Any]) -> Any:
    """NumPy's result in arrays that own their memory."""
    kind = type(value)
    if kind is bool:
        return value
    if isinstance(value, (tuple, list)):
        return [_wrapped(one, home, given) for one in value] if kind is list else tuple(
            [_wrapped(one, home, given) for one in value]
        )
    if kind is not _ndarray and not isinstance(value, np.generic) or value.dtype not in _dtypes.NUMBERS:
        raise _NotHere
    if kind is _ndarray and (value.base is not None or any(value is one for one in given)):
        value = value.copy()
    array = _host_arrays.array_of(value, home)
    if array is None:
        raise _NotHere
    return array


def _call(offer: _Offer, arguments: tuple, options: dict) -> Any:
    arrays: List[Array] = []
    values = [_values(one, arrays, offer.any_type) for one in arguments]
    named = {name: _values(one, arrays, offer.any_type) for name, one in options.items()}
    home = _host_arrays.home_of(arrays)
    if home is None or home[0]._is_trace:
        raise _NotHere
    if offer.work is not None and offer.work(*values, **named) > _MAX_WORK:
        raise _NotHere
    return _wrapped(offer.function(*values, **named), home, values)


def _computing(function: Callable, offer: _Offer) -> Callable:
    code = function.__code__  # `inspect.signature` would be a tenth of the time of an import
    parameters = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    # How many positional arguments there are at most before one of those that are the service's.
    most = next((i for i, name in enumerate(parameters) if name in _NOT_HERE), 1 << 30)
    of_service = frozenset(parameters) & frozenset(_NOT_HERE)
    returned = getattr(function, "__annotations__", {}).get("return")
    result = returned if isinstance(returned, type) and hasattr(returned, "_fields") else None

    @functools.wraps(function)
    def offered(*arguments, **options):
        for one in arguments:
            kind = type(one)
            if kind is Array:
                buffer = get_node(one).buffer
                if buffer is not None and buffer.is_local:
                    break
            elif kind in _LOCAL or (kind is list or kind is tuple) and _has_local(one):
                break
        else:
            return function(*arguments, **options)
        try:
            if len(arguments) <= most and not (options and of_service.intersection(options)):
                made = _call(offer, arguments, options)
                return made if result is None else result(*made)
        except FloatingPointError:
            raise
        except Exception:  # the service computes, or words the error
            pass
        return function(*arguments, **options)

    return offered


def _making(function: Callable, offer: _Offer) -> Callable:
    from stride._session import current_session

    @functools.wraps(function)
    def offered(*arguments, **options):
        first = arguments[0] if arguments else None
        kind = type(first)
        is_here = (kind is list or kind is tuple) and _has_local(first)
        # Array results have rules of their own.
        if is_here or _local.has_places and first is not None and not isinstance(first, (Array, _ndarray)):
            try:
                session = current_session()
                if is_here or _local.is_host_place(session):
                    return _made_here(offer, session, arguments, options)
            except Exception:  # the service makes it, or words the error
                pass
        return function(*arguments, **options)

    return offered


def _made_here(offer: _Offer, session, arguments: tuple, options: dict) -> Any:
    arrays: List[Array] = []
    values = [_values(one, arrays, True) for one in arguments]
    named = {name: _values(one, arrays, True) for name, one in options.items()}
    if session._is_trace or session.device or session._has_sharded or session.closed:
        raise _NotHere
    if any(one.session is not session for one in arrays) or any(name in _NOT_HERE for name in options):
        raise _NotHere
    if offer.work is not None and not 0 <= offer.work(*values, **named) <= _MAX_ELEMENTS:
        raise _NotHere
    made = offer.function(*values, **named)
    if not made.ndim or not made.flags.c_contiguous:
        raise _NotHere
    return _wrapped(made, (session, session.device), values)


def grid(of: Any, key: Any) -> Any:
    """A grid by slices, such as `mgrid` makes; None where the service is to make it."""
    from stride._session import current_session

    try:
        session = current_session()
        if not _local.is_host_place(session):
            return None
        lines = key if type(key) is tuple else (key,)
        size = prod(
            abs(one.step) if type(one.step) is complex
            else max(_num_steps(one.start or 0, one.stop, one.step or 1), 1) for one in lines
        )
        if size * len(lines) > _MAX_ELEMENTS:
            return None
        return _wrapped(of[key], (session, session.device), [])
    except Exception:
        return None  # the service makes it, or words the error


def offer(module: Dict[str, Any], table: str = "numpy") -> None:
    """Puts others in the place of public functions of a module, whose globals are given, that are in the table. Before
    their names are imported elsewhere."""
    for name, one in _TABLE[table].items():
        function = module.get(name)
        is_public = name in module.get("__all__", _TABLE[table])
        if not is_public or getattr(function, "__module__", None) != module["__name__"]:
            continue
        made = (_making if one.makes else _computing)(function, one)  # type: ignore[arg-type]
        for other in [other for other, value in module.items() if value is function]:  # it may have several names
            module[other] = made
