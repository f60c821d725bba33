"""CuPy's `linalg`: stride.linalg, whatever it has."""

from stride import linalg as _own


def __getattr__(name: str):
    if not name.startswith("_") and hasattr(_own, name):
        return getattr(_own, name)
    from stride.cupy import _names

    raise AttributeError(_names.missing_in("linalg", name))


__all__ = list(_own.__all__)


def __dir__():
    return list(_own.__all__)
