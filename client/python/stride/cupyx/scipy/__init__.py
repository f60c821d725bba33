"""SciPy's functions are not there but `get_array_module`; scipy's own take `cp.asnumpy(x)`, and array functions of
SciPy take the service's arrays where they follow the array API standard (SCIPY_ARRAY_API=1)."""

from typing import Any

__all__ = ["get_array_module"]


def get_array_module(*args: Any):
    """SciPy itself, which computes on the host: pass cp.asnumpy(x)."""
    import scipy

    return scipy


def __getattr__(name: str):
    if name in (
        "fft",
        "fftpack",
        "interpolate",
        "linalg",
        "ndimage",
        "optimize",
        "signal",
        "sparse",
        "spatial",
        "special",
        "stats",
    ):
        raise AttributeError(
            f"cupyx.scipy.{name} is not there: use scipy.{name} with cp.asnumpy(x), or cp.fft, cp.linalg and the "
            f"functions of cp"
        )
    raise AttributeError(f"stride.cupyx.scipy has no {name}")
