"""CuPy's `random`: stride.random, whatever it has. As in CuPy the functions of its first generation take `dtype=`."""

import functools
from typing import Any

from stride import random as _own

_WITH_DTYPE = set("""beta binomial chisquare dirichlet exponential f gamma geometric gumbel hypergeometric laplace
logistic lognormal logseries negative_binomial noncentral_chisquare noncentral_f normal pareto poisson power rand randn
random random_sample ranf rayleigh sample standard_cauchy standard_exponential standard_gamma standard_normal standard_t
triangular uniform vonmises wald weibull zipf""".split())


def _with_dtype(function):
    @functools.wraps(function)
    def draw(*arguments: Any, dtype: Any = None, **kwargs: Any):
        from stride import _creation

        values = function(*arguments, **kwargs)
        return values if dtype is None else _creation.asarray(values).astype(dtype, copy=False)

    return draw


def __getattr__(name: str):
    if not name.startswith("_") and hasattr(_own, name):
        found = getattr(_own, name)
        return _with_dtype(found) if name in _WITH_DTYPE else found
    from stride.cupy import _names

    raise AttributeError(_names.missing_in("random", name))


__all__ = list(_own.__all__)


def __dir__():
    return list(_own.__all__)
