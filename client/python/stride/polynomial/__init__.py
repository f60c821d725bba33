"""NumPy's `polynomial`, which works on the host: it reads arrays of the service, and gives arrays of NumPy."""

import importlib as _importlib
import sys as _sys

from numpy.polynomial import (  # noqa: F401
    Chebyshev,
    Hermite,
    HermiteE,
    Laguerre,
    Legendre,
    Polynomial,
    set_default_printstyle,
)

_MODULES = ("chebyshev", "hermite", "hermite_e", "laguerre", "legendre", "polynomial", "polyutils")

__all__ = ["Chebyshev", "Hermite", "HermiteE", "Laguerre", "Legendre", "Polynomial", "set_default_printstyle"]

for _name in _MODULES:
    globals()[_name] = _sys.modules[f"{__name__}.{_name}"] = _importlib.import_module(f"numpy.polynomial.{_name}")
