"""CuPy's `fft`: stride.fft, whatever it has."""

from stride import fft as _own


def __getattr__(name: str):
    if not name.startswith("_") and hasattr(_own, name):
        return getattr(_own, name)
    raise AttributeError(f"stride.cupy.fft has no {name} yet")


__all__ = list(_own.__all__)


def __dir__():
    return list(_own.__all__)
