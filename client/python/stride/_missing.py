"""Functions of the standard that the service has not yet: each says so by its own name."""

from typing import Optional

from stride import _errors

__all__ = ["argsort", "cumulative_prod", "cumulative_sum", "nonzero", "searchsorted", "sort", "take", "take_along_axis", "unique_all",
           "unique_counts", "unique_inverse", "unique_values"]


def _missing(name: str):
    return _errors.Unimplemented(f"stride.{name} is not there yet", reason="NOT_IMPLEMENTED", metadata={"feature": name})


def argsort(x, /, *, axis: int = -1, descending: bool = False, stable: bool = True):
    raise _missing("argsort")


def cumulative_prod(x, /, *, axis: Optional[int] = None, dtype=None, include_initial: bool = False):
    raise _missing("cumulative_prod")


def cumulative_sum(x, /, *, axis: Optional[int] = None, dtype=None, include_initial: bool = False):
    raise _missing("cumulative_sum")


def nonzero(x, /):
    raise _missing("nonzero")


def searchsorted(x1, x2, /, *, side: str = "left", sorter=None):
    raise _missing("searchsorted")


def sort(x, /, *, axis: int = -1, descending: bool = False, stable: bool = True):
    raise _missing("sort")


def take(x, indices, /, *, axis: Optional[int] = None):
    raise _missing("take")


def take_along_axis(x, indices, /, *, axis: int = -1):
    raise _missing("take_along_axis")


def unique_all(x, /):
    raise _missing("unique_all")


def unique_counts(x, /):
    raise _missing("unique_counts")


def unique_inverse(x, /):
    raise _missing("unique_inverse")


def unique_values(x, /):
    raise _missing("unique_values")
