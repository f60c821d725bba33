"""Distributions of one random number: functions of a uniform number, and rejection."""

import math
from typing import Optional

import numpy as np

from stride import _dtypes, _elementwise as _e, _parameters as _p
from stride._array import Array
from stride._ufunc import _give


# NumPy's bounds of counts that a double still distinguishes.
_MOST_POISSON = 9223372006484771072.0


class Distributions:
    """The part of Generator that samples distributions of one number."""

    # --- by a function of one number ---

    def standard_exponential(
        self, size=None, dtype=np.float64, method: str = "zig", out: Optional[Array] = None
    ) -> Array:
        """Exponential numbers of mean 1.

        Parameters: `size`; `dtype`; `method`, NumPy's `zig` or `inv`, changes nothing: numbers are made by inversion;
        `out`, an array of this type and shape to be filled. Returns an array of `dtype`, or `out`. Raises ValueError
        for another method.

        >>> stride.random.Generator(7).standard_exponential(3).shape
        (3,)
        """
        if method not in ("zig", "inv"):
            raise ValueError(f"method is zig or inv, not {method!r}")
        dtype = _p.real_type(dtype)
        return _give(self._sample("exponential", _p.target(size, dtype, out), dtype), out, None, "same_kind")

    def exponential(self, scale=1.0, size=None, dtype=np.float64) -> Array:
        """Exponential numbers.

        Parameters: `scale`, the mean, not negative; `size`; `dtype`. Returns an array of `dtype`. Raises ValueError for
        a negative scale.

        >>> stride.random.Generator(7).exponential(2.0, 3).shape
        (3,)
        """
        scale = _p.non_negative(scale, "scale")
        return self._scaled(0.0, scale, self._sample("exponential", _p.shape_of(size, scale), dtype))

    @staticmethod
    def _scaled(loc, scale, values: Array) -> Array:
        scaled = values if type(scale) is float and scale == 1 else scale * values
        return (scaled if type(loc) is float and loc == 0 else loc + scaled).astype(values.dtype, copy=False)

    def _located(self, name: str, loc, scale, size, dtype) -> Array:
        loc, scale = _p.parameter(loc, "loc"), _p.non_negative(scale, "scale")
        values = self._sample(name, _p.shape_of(size, loc, scale), dtype)
        return (loc + scale * values).astype(values.dtype, copy=False)

    def laplace(self, loc=0.0, scale=1.0, size=None, dtype=np.float64) -> Array:
        """Laplace's (double exponential) numbers.

        Parameters: `loc`, the mean; `scale`, not negative; `size`; `dtype`. Returns an array of `dtype`. Raises
        ValueError for a negative scale.

        >>> stride.random.Generator(7).laplace(0.0, 2.0, 3).shape
        (3,)
        """
        return self._located("laplace", loc, scale, size, dtype)

    def logistic(self, loc=0.0, scale=1.0, size=None, dtype=np.float64) -> Array:
        """Logistic numbers.

        Parameters: `loc`, the mean; `scale`, not negative; `size`; `dtype`. Returns an array of `dtype`. Raises
        ValueError for a negative scale.

        >>> stride.random.Generator(7).logistic(0.0, 2.0, 3).shape
        (3,)
        """
        return self._located("logistic", loc, scale, size, dtype)

    def gumbel(self, loc=0.0, scale=1.0, size=None, dtype=np.float64) -> Array:
        """Gumbel's (extreme value) numbers.

        Parameters: `loc`, the mode; `scale`, not negative; `size`; `dtype`. Returns an array of `dtype`. Raises
        ValueError for a negative scale.

        >>> stride.random.Generator(7).gumbel(0.0, 2.0, 3).shape
        (3,)
        """
        return self._located("gumbel", loc, scale, size, dtype)

    def standard_cauchy(self, size=None, dtype=np.float64) -> Array:
        """Cauchy's numbers of mode 0.

        Parameters: `size`; `dtype`. Returns an array of `dtype`.

        >>> stride.random.Generator(7).standard_cauchy(3).shape
        (3,)
        """
        return self._sample("cauchy", size, dtype)

    def lognormal(self, mean=0.0, sigma=1.0, size=None, dtype=np.float64) -> Array:
        """Numbers whose logarithms are normal.

        Parameters: `mean` and `sigma`, of the logarithms, sigma not negative; `size`; `dtype`. Returns an array of
        `dtype`. Raises ValueError for a negative sigma.

        >>> stride.random.Generator(7).lognormal(0.0, 0.5, 3).shape
        (3,)
        """
        return self._sample("lognormal", size, dtype, _p.parameter(mean, "mean"), _p.non_negative(sigma, "sigma"))

    def rayleigh(self, scale=1.0, size=None, dtype=np.float64) -> Array:
        """Rayleigh's numbers.

        Parameters: `scale`, the mode, not negative; `size`; `dtype`. Returns an array of `dtype`. Raises ValueError for
        a negative scale.

        >>> stride.random.Generator(7).rayleigh(2.0, 3).shape
        (3,)
        """
        scale = _p.non_negative(scale, "scale")
        values = self._sample("exponential", _p.shape_of(size, scale), dtype)
        return (scale * _e.sqrt(2 * values)).astype(values.dtype, copy=False)

    def weibull(self, a, size=None, dtype=np.float64) -> Array:
        """Weibull's numbers of scale 1.

        Parameters: `a`, the shape, not negative; `size`; `dtype`. Returns an array of `dtype`. Raises ValueError for a
        negative shape.

        >>> stride.random.Generator(7).weibull(1.5, 3).shape
        (3,)
        """
        return self._sample("weibull", size, dtype, _p.non_negative(a, "a"))

    def pareto(self, a, size=None, dtype=np.float64) -> Array:
        """Numbers of Pareto's second (Lomax) distribution of scale 1.

        Parameters: `a`, the shape, above 0; `size`; `dtype`. Returns an array of `dtype`. Raises ValueError for a shape
        not above 0.

        >>> stride.random.Generator(7).pareto(3.0, 3).shape
        (3,)
        """
        return self._sample("pareto", size, dtype, _p.positive(a, "a"))

    def power(self, a, size=None, dtype=np.float64) -> Array:
        """Numbers in [0, 1] of density a x^(a - 1).

        Parameters: `a`, above 0; `size`; `dtype`. Returns an array of `dtype`. Raises ValueError for an `a` not above
        0.

        >>> stride.random.Generator(7).power(3.0, 3).shape
        (3,)
        """
        return self._sample("power", size, dtype, _p.positive(a, "a"))

    def triangular(self, left, mode, right, size=None, dtype=np.float64) -> Array:
        """Numbers whose density is a triangle.

        Parameters: `left` <= `mode` <= `right`, left < right; `size`; `dtype`. Returns an array of `dtype`. Raises
        ValueError where the three are not in this order.

        >>> stride.random.Generator(7).triangular(0.0, 1.0, 4.0, 3).shape
        (3,)
        """
        left, mode, right = (
            _p.parameter(one, name) for one, name in ((left, "left"), (mode, "mode"), (right, "right"))
        )
        if not any(isinstance(one, Array) for one in (left, mode, right)):
            for wrong, text in (
                (np.greater(left, mode), "left > mode"),
                (np.greater(mode, right), "mode > right"),
                (np.equal(left, right), "left == right"),
            ):
                if np.any(wrong):
                    raise ValueError(text)
        u = self.random(_p.shape_of(size, left, mode, right), dtype)
        rising = left + _e.sqrt(u * ((right - left) * (mode - left)))
        falling = right - _e.sqrt((1 - u) * ((right - left) * (right - mode)))
        return _e.where(u * (right - left) < mode - left, rising, falling).astype(u.dtype, copy=False)

    def wald(self, mean, scale, size=None, dtype=np.float64) -> Array:
        """Wald's (inverse Gaussian) numbers.

        Parameters: `mean` and `scale`, above 0; `size`; `dtype`. Returns an array of `dtype`. Raises ValueError for one
        not above 0.

        >>> stride.random.Generator(7).wald(3.0, 2.0, 3).shape
        (3,)
        """
        return self._sample("wald", size, dtype, _p.positive(mean, "mean"), _p.positive(scale, "scale"))

    def geometric(self, p, size=None) -> Array:
        """The number of trials up to the first success.

        Parameters: `p`, the probability of success, in (0, 1]; `size`. Returns an array of int64. Raises ValueError for
        another probability.

        >>> stride.random.Generator(7).geometric(0.25, 3).dtype
        dtype('int64')
        """
        return self._sample("geometric", size, _dtypes.int64, _p.within(p, "p", 0, 1, has_low=False))

    def logseries(self, p, size=None) -> Array:
        """Numbers k >= 1 of probability -p^k / (k log(1 - p)).

        Parameters: `p`, in [0, 1); `size`. Returns an array of int64. Raises ValueError for another `p`.

        >>> stride.random.Generator(7).logseries(0.6, 3).dtype
        dtype('int64')
        """
        return self._sample("logseries", size, _dtypes.int64, _p.within(p, "p", 0, 1, has_high=False))

    # --- by rejection ---

    def standard_gamma(self, shape, size=None, dtype=np.float64, out: Optional[Array] = None) -> Array:
        """Numbers of the gamma distribution of scale 1.

        Parameters: `shape`, not negative; `size`; `dtype`; `out`, an array of this type and shape to be filled. Returns
        an array of `dtype`, or `out`. Raises ValueError for a negative shape.

        >>> stride.random.Generator(7).standard_gamma(2.5, 3).shape
        (3,)
        """
        dtype = _p.real_type(dtype)
        return _give(
            self._sample("gamma", _p.target(size, dtype, out), dtype, _p.non_negative(shape, "shape")),
            out,
            None,
            "same_kind",
        )

    def gamma(self, shape, scale=1.0, size=None, dtype=np.float64) -> Array:
        """Numbers of the gamma distribution.

        Parameters: `shape` and `scale`, not negative; `size`; `dtype`. Returns an array of `dtype`. Raises ValueError
        for a negative one.

        >>> stride.random.Generator(7).gamma(2.5, 2.0, 3).shape
        (3,)
        """
        shape, scale = _p.non_negative(shape, "shape"), _p.non_negative(scale, "scale")
        return self._scaled(0.0, scale, self._sample("gamma", _p.shape_of(size, shape, scale), dtype, shape))

    def chisquare(self, df, size=None, dtype=np.float64) -> Array:
        """Numbers of the chi-squared distribution.

        Parameters: `df`, the degrees of freedom, above 0; `size`; `dtype`. Returns an array of `dtype`. Raises
        ValueError for a number not above 0.

        >>> stride.random.Generator(7).chisquare(3.0, 3).shape
        (3,)
        """
        return self._sample("gamma", size, dtype, _p.positive(df, "df") / 2) * 2

    def noncentral_chisquare(self, df, nonc, size=None, dtype=np.float64) -> Array:
        """Numbers of the noncentral chi-squared distribution.

        Parameters: `df`, the degrees of freedom, above 0; `nonc`, the noncentrality, not negative; `size`; `dtype`.
        Returns an array of `dtype`. Raises ValueError for one outside its domain.

        >>> stride.random.Generator(7).noncentral_chisquare(3.0, 2.0, 3).shape
        (3,)
        """
        df, nonc = _p.positive(df, "df"), _p.non_negative(nonc, "nonc")
        return self._noncentral(df, nonc, _p.shape_of(size, df, nonc)).astype(_p.real_type(dtype), copy=False)

    def _noncentral(self, df, nonc, shape: tuple) -> Array:
        """A normal number is shifted, where there is a degree of freedom for it; else as many are added as a Poisson
        variable
        says."""
        on_host = not isinstance(df, Array)
        if on_host and np.all(np.greater(df, 1)):
            return 2 * self.standard_gamma((df - 1) / 2, shape) + _e.square(self.standard_normal(shape) + _e.sqrt(nonc))
        if on_host and not np.any(np.greater(df, 1)):
            return 2 * self.standard_gamma(df / 2 + self.poisson(nonc / 2, shape), shape)
        has_one = _e.greater(df, 1)
        shifted = _e.where(has_one, _e.square(self.standard_normal(shape) + _e.sqrt(nonc)), 0.0)
        shapes = _e.where(has_one, (df - 1) / 2, df / 2 + self.poisson(nonc / 2, shape))
        is_within = _e.logical_and(_e.greater(df, 0), _e.greater_equal(nonc, 0))
        return _e.where(is_within, 2 * self.standard_gamma(shapes, shape) + shifted, math.nan)

    def beta(self, a, b, size=None, dtype=np.float64) -> Array:
        """Numbers of the beta distribution.

        Parameters: `a` and `b`, above 0; `size`; `dtype`. Returns an array of `dtype`. Raises ValueError for one not
        above 0.

        >>> stride.random.Generator(7).beta(2.0, 3.0, 3).shape
        (3,)
        """
        return self._sample("beta", size, dtype, _p.positive(a, "a"), _p.positive(b, "b"))

    def f(self, dfnum, dfden, size=None, dtype=np.float64) -> Array:
        """Numbers of the F distribution.

        Parameters: `dfnum` and `dfden`, the degrees of freedom, above 0; `size`; `dtype`. Returns an array of `dtype`.
        Raises ValueError for one not above 0.

        >>> stride.random.Generator(7).f(4.0, 12.0, 3).shape
        (3,)
        """
        return self._sample("f", size, dtype, _p.positive(dfnum, "dfnum"), _p.positive(dfden, "dfden"))

    def noncentral_f(self, dfnum, dfden, nonc, size=None, dtype=np.float64) -> Array:
        """Numbers of the noncentral F distribution.

        Parameters: `dfnum` and `dfden`, the degrees of freedom, above 0; `nonc`, the noncentrality, not negative;
        `size`; `dtype`. Returns an array of `dtype`. Raises ValueError for one outside its domain.

        >>> stride.random.Generator(7).noncentral_f(3.0, 20.0, 2.0, 3).shape
        (3,)
        """
        dfnum, dfden, nonc = _p.positive(dfnum, "dfnum"), _p.positive(dfden, "dfden"), _p.non_negative(nonc, "nonc")
        shape = _p.shape_of(size, dfnum, dfden, nonc)
        values = self._noncentral(dfnum, nonc, shape) / dfnum / (self.chisquare(dfden, shape) / dfden)
        return values.astype(_p.real_type(dtype), copy=False)

    def standard_t(self, df, size=None, dtype=np.float64) -> Array:
        """Numbers of Student's t distribution.

        Parameters: `df`, the degrees of freedom, above 0; `size`; `dtype`. Returns an array of `dtype`. Raises
        ValueError for a number not above 0.

        >>> stride.random.Generator(7).standard_t(9.0, 3).shape
        (3,)
        """
        return self._sample("student", size, dtype, _p.positive(df, "df"))

    def vonmises(self, mu, kappa, size=None, dtype=np.float64) -> Array:
        """Angles of von Mises' distribution, in [-pi, pi].

        Parameters: `mu`, the mode; `kappa`, the concentration, not negative; `size`; `dtype`. Returns an array of
        `dtype`. Raises ValueError for a negative kappa.

        >>> stride.random.Generator(7).vonmises(0.0, 4.0, 3).shape
        (3,)
        """
        return self._sample("vonmises", size, dtype, _p.parameter(mu, "mu"), _p.non_negative(kappa, "kappa"))

    def poisson(self, lam=1.0, size=None) -> Array:
        """Counts of Poisson's distribution.

        Parameters: `lam`, the mean, not negative; `size`. Returns an array of int64. Raises ValueError for a mean that
        is negative, NaN or above 2^63.

        >>> stride.random.Generator(7).poisson(3.0, 3).dtype
        dtype('int64')
        """
        lam = _p.within(lam, "lam", 0, _MOST_POISSON)
        name = "poisson" if type(lam) is not float else "poisson_small" if lam < 10 else "poisson_large"
        return self._sample(name, size, _dtypes.int64, lam)

    def binomial(self, n, p, size=None) -> Array:
        """The number of successes in `n` trials.

        Parameters: `n`, how many, not negative; `p`, the probability of each, in [0, 1]; `size`. Returns an array of
        int64. Raises ValueError for one outside its domain.

        >>> stride.random.Generator(7).binomial(10, 0.3, 3).dtype
        dtype('int64')
        """
        n, p = _p.whole(n, "n"), _p.within(p, "p", 0, 1)
        name = "binomial"
        if _p.are_numbers(n, p):
            name = "binomial_small" if n * (1 - p if p > 0.5 else p) < 10 else "binomial_large"
        return self._sample(name, size, _dtypes.int64, n, p)

    def negative_binomial(self, n, p, size=None) -> Array:
        """The number of failures before the n-th success.

        Parameters: `n`, above 0, whole or not; `p`, the probability of success, in (0, 1]; `size`. Returns an array of
        int64. Raises ValueError for one outside its domain.

        >>> stride.random.Generator(7).negative_binomial(4, 0.25, 3).dtype
        dtype('int64')
        """
        n, p = _p.within(n, "n", 0, math.inf, has_low=False), _p.within(p, "p", 0, 1, has_low=False)
        if not isinstance(n, Array) and not isinstance(p, Array):
            # NumPy's bound: ten deviations above the mean of the Poisson variable's mean.
            if np.any((np.subtract(1, p) / p) * (n + 10 * np.sqrt(n)) > _MOST_POISSON):
                raise ValueError("n too large or p too small")
        shape = _p.shape_of(size, n, p)
        return self.poisson(self.standard_gamma(n, shape) * ((1 - p) / p), shape)

    def zipf(self, a, size=None) -> Array:
        """Numbers k >= 1 of probability proportional to k^-a.

        Parameters: `a`, above 1; `size`. Returns an array of int64. Raises ValueError for another `a`.

        >>> stride.random.Generator(7).zipf(2.0, 3).dtype
        dtype('int64')
        """
        return self._sample("zipf", size, _dtypes.int64, _p.within(a, "a", 1, math.inf, has_low=False))

    def hypergeometric(self, ngood, nbad, nsample, size=None) -> Array:
        """How many of a draw without replacement are good.

        Parameters: `ngood` and `nbad`, how many there are, below 10^9; `nsample`, how many are drawn; `size`. Returns
        an array of int64. Raises ValueError where a number is negative or more are drawn than there are.

        >>> stride.random.Generator(7).hypergeometric(50, 40, 7, 3).dtype
        dtype('int64')
        """
        good, bad, draws = _p.whole(ngood, "ngood"), _p.whole(nbad, "nbad"), _p.whole(nsample, "nsample")
        for one, name in ((good, "ngood"), (bad, "nbad")):
            if not isinstance(one, Array) and np.any(np.greater_equal(one, 1e9)):
                raise ValueError(f"{name} is below 10^9")
        if not any(isinstance(one, Array) for one in (good, bad, draws)) and np.any(
            np.greater(draws, np.add(good, bad))
        ):
            raise ValueError("ngood + nbad < nsample")
        name = "hypergeometric_small" if type(draws) is float and draws <= 10 else "hypergeometric"
        return self._sample(name, size, _dtypes.int64, good, bad, draws)


for _name, _method in vars(Distributions).items():
    if callable(_method):
        _method.__qualname__ = f"Generator.{_name}"  # which errors about arguments name
