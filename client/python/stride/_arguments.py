"""Arguments that NumPy's functions have in common: `out=`, `order=`, `subok=`, and arrays of one session."""

import operator
from typing import Any, Optional, Tuple

import numpy as np

from stride import _array, _dtypes, _errors
from stride._array import Array, array_of

ORDERS = ("C", "F", "A", "K")


def arrays(*given: Any) -> Tuple[Array, ...]:
    """Arrays of the session that the first array among them has."""
    session = next((one.session for one in given if isinstance(one, Array)), None)
    return tuple(array_of(one, session) for one in given)


def check_order(order: Optional[str], allowed: Tuple[str, ...] = ORDERS) -> str:
    """`order=`: C where none is given. Elements lie in C order in the service; an order of memory alone is accepted and
    changes nothing of the values."""
    if order is None:
        return allowed[-1] if "K" in allowed else "C"
    if not isinstance(order, str):
        raise TypeError(f"order is one of {', '.join(allowed)}, not {type(order).__name__}")
    if order.upper() not in allowed:
        raise ValueError(f"order is one of {', '.join(allowed)}, not {order!r}")
    return order.upper()


CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


def check_casting(casting: Any) -> None:
    if not isinstance(casting, str):
        raise TypeError(f"casting is one of {', '.join(CASTINGS)}, not {type(casting).__name__}")
    if casting not in CASTINGS:
        raise ValueError(f"casting is one of {', '.join(CASTINGS)}, not {casting!r}")


_INDEX_MODES = ("clip", "wrap", "raise")  # by NumPy's numbers


def index_mode(mode: Any) -> str:
    """NumPy's treatment of an index outside: by name, by number, or None for an error."""
    if mode is None:
        return "raise"
    if isinstance(mode, str):
        if mode in _INDEX_MODES:
            return mode
        raise ValueError(f"mode is one of raise, wrap, clip, not {mode!r}")
    number = _plain_index(mode, f"mode is one of raise, wrap, clip, not {mode!r}")
    if not 0 <= number < len(_INDEX_MODES):
        raise ValueError(f"mode is one of raise, wrap, clip, or a number below {len(_INDEX_MODES)}, not {mode!r}")
    return _INDEX_MODES[number]


def _plain_index(value: Any, otherwise: str) -> int:
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(otherwise)
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(otherwise) from None


_CORRELATE_MODES = ("valid", "same", "full")  # by NumPy's numbers


def correlate_mode(mode: Any) -> str:
    """NumPy's `mode=` of correlate and convolve: a whole name, or its number."""
    names = ", ".join(_CORRELATE_MODES)
    if isinstance(mode, str):
        if mode not in _CORRELATE_MODES:
            raise ValueError(f"mode must be one of {names}, not {mode!r}")
        return mode
    number = _plain_index(mode, f"mode must be one of {names}, not {mode!r}")
    if not 0 <= number < len(_CORRELATE_MODES):
        raise ValueError(f"mode must be one of {names}, or 0, 1 or 2, not {mode!r}")
    return _CORRELATE_MODES[number]


def refuse_subok(subok: Any) -> None:
    if subok:
        raise _errors.Unimplemented(
            "subok=True keeps subclasses of arrays, and the service's arrays have none; leave it out",
            reason="NOT_IMPLEMENTED",
            metadata={"feature": "subok"},
        )


def refuse_fields(order: Any) -> None:
    """`order=` of NumPy's sorts names the fields of structured arrays."""
    if order is not None:
        raise ValueError(f"order= names fields of structured arrays, which the service does not have: {order!r}")


def unimplemented(what: str, instead: str) -> _errors.Unimplemented:
    return _errors.Unimplemented(
        f"{what} is not there; {instead}", reason="NOT_IMPLEMENTED", metadata={"feature": what}
    )


def one_out(out: Any) -> Any:
    """`out=`, which may be a tuple of one."""
    if isinstance(out, tuple):
        if len(out) != 1:
            raise ValueError(f"out= takes one array, not {len(out)}")
        out = out[0]
    if out is not None and not isinstance(out, (Array, np.ndarray)):
        raise TypeError(f"out= is an array, not {type(out).__name__}")
    return out


def give(result: Array, out: Any, casting: str = "same_kind") -> Any:
    """The result, or `out` with its elements; `out` may be on the host, and is of the result's shape."""
    out = one_out(out)
    if out is None:
        return result
    if out.shape != result.shape:
        raise _errors.ShapeMismatch(
            f"out= has the shape {out.shape}, the result {result.shape}", reason="SHAPE_MISMATCH"
        )
    if isinstance(out, np.ndarray):
        np.copyto(out, result._read(), casting=casting)  # type: ignore[arg-type]
        return out
    return _array._assign_in_place(out, result, casting)


def count(value: Any, name: str) -> int:
    number = operator.index(value)
    if number < 0:
        raise ValueError(f"{name} must not be negative: {number}")
    return number


def inexact(x: Array) -> Array:
    """Integers and bools as float64."""
    return x.astype(_dtypes.float64) if x.dtype.kind in "biu" else x


def is_real(dtype: np.dtype) -> bool:
    return dtype.kind != "c"
