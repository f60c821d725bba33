"""`jax.scipy.stats`: densities and distribution functions of some distributions, each a namespace."""

import math
import sys
from typing import Any

from stride.jax import numpy as jnp
from stride.jax.scipy import special

__all__ = ["bernoulli", "cauchy", "expon", "gamma", "laplace", "logistic", "norm", "poisson", "uniform"]


class norm:  # noqa: N801, SciPy's name
    """The normal distribution.

    Example
        >>> from stride import jax
        >>> float(jax.scipy.stats.norm.cdf(0.0))
        0.5
    """

    @staticmethod
    def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        z = (jnp.asarray(x) - loc) / scale
        return -0.5 * z * z - jnp.log(jnp.asarray(scale) * 1.0) - 0.5 * math.log(2 * math.pi)

    @staticmethod
    def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return jnp.exp(norm.logpdf(x, loc, scale))

    @staticmethod
    def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return special.ndtr((jnp.asarray(x) - loc) / scale)

    @staticmethod
    def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return special.log_ndtr((jnp.asarray(x) - loc) / scale)

    @staticmethod
    def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return special.ndtr((loc - jnp.asarray(x)) / scale)

    @staticmethod
    def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return special.ndtri(q) * scale + loc


class expon:  # noqa: N801
    """The exponential distribution.

    Example
        >>> from stride import jax
        >>> float(jax.scipy.stats.expon.pdf(0.0))
        1.0
    """

    @staticmethod
    def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        z = (jnp.asarray(x) - loc) / scale
        return jnp.where(z < 0, -jnp.inf, -z - jnp.log(jnp.asarray(scale) * 1.0))

    @staticmethod
    def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return jnp.exp(expon.logpdf(x, loc, scale))


class uniform:  # noqa: N801
    """The uniform distribution.

    Example
        >>> from stride import jax
        >>> float(jax.scipy.stats.uniform.pdf(0.5))
        1.0
    """

    @staticmethod
    def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        z = (jnp.asarray(x) - loc) / scale
        return jnp.where((z < 0) | (z > 1), -jnp.inf, -jnp.log(jnp.asarray(scale) * 1.0))

    @staticmethod
    def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return jnp.exp(uniform.logpdf(x, loc, scale))


class laplace:  # noqa: N801
    """The Laplace distribution.

    Example
        >>> from stride import jax
        >>> float(jax.scipy.stats.laplace.pdf(0.0))
        0.5
    """

    @staticmethod
    def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return -jnp.abs(jnp.asarray(x) - loc) / scale - jnp.log(2.0 * jnp.asarray(scale))

    @staticmethod
    def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return jnp.exp(laplace.logpdf(x, loc, scale))


class cauchy:  # noqa: N801
    """The Cauchy distribution.

    Example
        >>> from stride import jax
        >>> round(float(jax.scipy.stats.cauchy.pdf(0.0)), 4)
        0.3183
    """

    @staticmethod
    def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        z = (jnp.asarray(x) - loc) / scale
        return -jnp.log1p(z * z) - jnp.log(math.pi * jnp.asarray(scale))

    @staticmethod
    def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return jnp.exp(cauchy.logpdf(x, loc, scale))


class logistic:  # noqa: N801
    """The logistic distribution.

    Example
        >>> from stride import jax
        >>> float(jax.scipy.stats.logistic.cdf(0.0))
        0.5
    """

    @staticmethod
    def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        z = (jnp.asarray(x) - loc) / scale
        return -z - 2 * jnp.logaddexp(0 * z, -z) - jnp.log(jnp.asarray(scale) * 1.0)

    @staticmethod
    def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return jnp.exp(logistic.logpdf(x, loc, scale))

    @staticmethod
    def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return special.expit((jnp.asarray(x) - loc) / scale)


class bernoulli:  # noqa: N801
    """The Bernoulli distribution.

    Example
        >>> from stride import jax
        >>> float(jax.scipy.stats.bernoulli.pmf(1, 0.25))
        0.25
    """

    @staticmethod
    def logpmf(k: Any, p: Any, loc: Any = 0) -> Any:
        z, p = jnp.asarray(k) - loc, jnp.asarray(p)
        found = special.xlogy(z * 1.0, p) + special.xlog1py(1.0 - z, -p)
        return jnp.where((z == 0) | (z == 1), found, -jnp.inf)

    @staticmethod
    def pmf(k: Any, p: Any, loc: Any = 0) -> Any:
        return jnp.exp(bernoulli.logpmf(k, p, loc))


class poisson:  # noqa: N801
    """The Poisson distribution.

    Example
        >>> from stride import jax
        >>> round(float(jax.scipy.stats.poisson.pmf(0, 1.0)), 4)
        0.3679
    """

    @staticmethod
    def logpmf(k: Any, mu: Any, loc: Any = 0) -> Any:
        z = (jnp.asarray(k) - loc) * 1.0
        found = special.xlogy(z, mu) - special.gammaln(z + 1) - mu
        return jnp.where(z < 0, -jnp.inf, found)

    @staticmethod
    def pmf(k: Any, mu: Any, loc: Any = 0) -> Any:
        return jnp.exp(poisson.logpmf(k, mu, loc))


class gamma:  # noqa: N801
    """The gamma distribution.

    Example
        >>> from stride import jax
        >>> round(float(jax.scipy.stats.gamma.pdf(1.0, 1.0)), 4)
        0.3679
    """

    @staticmethod
    def logpdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
        z = (jnp.asarray(x) - loc) / scale
        safe = jnp.where(z < 0, 1.0, z)
        found = special.xlogy(a - 1.0, safe) - safe - special.gammaln(a) - jnp.log(jnp.asarray(scale) * 1.0)
        return jnp.where(z < 0, -jnp.inf, found)

    @staticmethod
    def pdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
        return jnp.exp(gamma.logpdf(x, a, loc, scale))

# `import jax.scipy.stats.norm as norm`: JAX has modules where these are classes.
sys.modules.update({f"{__name__}.{_one}": globals()[_one] for _one in __all__})
