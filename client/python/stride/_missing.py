"""Functions of the standard that the service has not yet: each says so by its own name."""

from stride import _errors

__all__ = ["argsort", "cumulative_prod", "cumulative_sum", "nonzero", "searchsorted", "sort", "take", "take_along_axis", "unique_all",
           "unique_counts", "unique_inverse", "unique_values"]


def _missing(name: str):
    def function(*_, **__):
        raise _errors.Unimplemented(f"stride.{name} is not there yet", reason="NOT_IMPLEMENTED", metadata={"feature": name})

    function.__name__ = function.__qualname__ = name
    return function


for _name in __all__:
    globals()[_name] = _missing(_name)
