"""cupyx.scipy: `special`, `fft` and `get_array_module`. Other functions of SciPy take `cp.asnumpy(x)`, and its
functions that follow the array API standard take the service's arrays (SCIPY_ARRAY_API=1)."""

import importlib
from typing import Any

__all__ = ["fft", "get_array_module", "special"]


def get_array_module(*args: Any):
    """SciPy itself, which computes on the host: pass cp.asnumpy(x).

    Parameters
        args: any objects.
    Returns
        The module scipy.
    Raises
        ImportError where SciPy is not installed.
    Example
        >>> from stride.cupyx import scipy
        >>> callable(scipy.get_array_module)
        True
    """
    import scipy

    return scipy


def __getattr__(name: str):
    if name in ("fft", "special"):
        return importlib.import_module(f"stride.cupyx.scipy.{name}")
    if name in ("fftpack", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial", "stats"):
        raise AttributeError(
            f"cupyx.scipy.{name} is not there: use scipy.{name} with cp.asnumpy(x), or cp.fft, cp.linalg and the "
            "functions of cp"
        )
    raise AttributeError(f"stride.cupyx.scipy has no {name}")


def __dir__():
    return sorted({*globals(), *__all__})
