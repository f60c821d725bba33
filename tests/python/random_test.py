"""Random numbers: published known answers, streams, and moments of every distribution."""

import copy
import hashlib
import inspect
import pickle
import threading
import unittest
from math import erf, lgamma, log, pi, sqrt

import numpy as np

import client_case
import stride as st
from stride import _bit_generator, _distributions, _generator, _random_state

DIGESTS = (
    ("random", (), "f23d59bc32908850"), ("uniform", (-3.0, 5.0), "f4032fa90457e356"),
    ("standard_normal", (), "2b60a2a74e0c9380"),
    ("normal", (2.0, 3.0), "7e04d7a2ac14b30e"), ("standard_exponential", (), "b0699853f5a9156d"),
    ("laplace", (1.0, 2.0), "3297a73476e7d80e"),
    ("logistic", (1.0, 2.0), "0ffe939569efc73e"), ("gumbel", (1.0, 2.0), "014ab961062fa41b"),
    ("standard_cauchy", (), "f3fe9d94a24f2864"), ("lognormal", (1.0, 2.0), "5953859a7d6fad95"),
    ("rayleigh", (2.0,), "9c33357e2fbb7f57"), ("weibull", (1.5,), "9921ea26b3b349f1"),
    ("pareto", (3.0,), "1d7efa74385314b4"), ("power", (3.0,), "44d13072c91a32a8"),
    ("geometric", (0.01,), "367d316bcfb53a8d"),
    ("triangular", (0.0, 1.0, 4.0), "fd23e372e08e93ca"), ("wald", (3.0, 2.0), "e04319e50af5ed1c"),
    ("logseries", (0.7,), "4820061f0fa75d06"), ("gamma", (0.3, 2.0), "55b9b6fde1d45d51"),
    ("gamma", (30.0, 2.0), "c8b1ec41bc4a8597"),
    ("chisquare", (3.0,), "e95a448ade861b9a"), ("noncentral_chisquare", (3.0, 2.0), "e331ffdb89cf0dab"),
    ("noncentral_chisquare", (0.5, 2.0), "a10996aaaef203cd"), ("beta", (0.5, 2.0), "c571d6d25c225eea"),
    ("f", (3.0, 4.0), "074ef7a809cd299c"),
    ("noncentral_f", (3.0, 20.0, 2.0), "dbd4082974225779"), ("standard_t", (3.0,), "c2b3e543a84b3616"),
    ("vonmises", (1.0, 4.0), "580a89c142be91a5"), ("vonmises", (1.0, 1e-9), "10ea606212de6652"),
    ("vonmises", (1.0, 1e7), "f9415835abddd5b7"),
    ("dirichlet", ([1.0, 2.0, 0.5, 3.0, 1.5],), "13efe4d32371dce3"), ("poisson", (3.0,), "48a2e2157d143dca"),
    ("poisson", (3000.0,), "d5e8499357da3f24"), ("binomial", (20, 0.3), "cdd93fedaa98c90d"),
    ("binomial", (20000, 0.7), "006bc8436339df0b"),
    ("negative_binomial", (4, 0.25), "c29953a691edb164"), ("zipf", (2.0,), "effd090f053237e1"),
    ("hypergeometric", (50, 40, 7), "1320a9ba6d660ac8"), ("hypergeometric", (500, 400, 70), "be0451f4cf8b88fe"),
    ("multinomial", (20, [0.5, 0.3, 0.2]), "357c3048ed53cffb"),
    ("multivariate_hypergeometric", ([10, 200, 30], 70), "a625765e25e64a0e"))

# Names of numpy.random that stride.random refuses, with the reason.
REFUSED = {"test": "runs NumPy's own tests", "mtrand": "a module of NumPy's insides",
        "bit_generator": "a module of NumPy's insides"}
POSITIVE = np.geomspace(1e-30, 1e8, 400_001)


def running(density, x):
    """The distribution function at x, of a density that is taken at the points x: by trapezoids."""
    parts = np.diff(x) * (density[1:] + density[:-1]) / 2
    total = np.concatenate([[0.0], np.cumsum(parts)])
    return lambda at: np.interp(at, x, total)


def of_positive(log_density):
    """The distribution function of a density on positive numbers, integrated over their logarithms."""
    y = np.log(POSITIVE)
    inner = running(np.exp(log_density(POSITIVE) + y), y)
    return lambda x: inner(np.log(np.maximum(x, 1e-300)))


def of_real(log_density):
    """The distribution function of a density on all numbers, integrated over their inverse hyperbolic sines."""
    y = np.linspace(-30, 30, 400_001)
    x = np.sinh(y)
    inner = running(np.exp(log_density(x)) * np.cosh(y), y)
    return lambda x: inner(np.arcsinh(x))


def gamma_of(shape, scale=1.0):
    return of_positive(lambda x: (shape - 1) * np.log(x / scale) - x / scale - lgamma(shape) - log(scale))


def beta_of(a, b):
    y = np.linspace(-200, 200, 400_001)  # x = 1 / (1 + exp(-y))
    low, high = -np.logaddexp(0, -y), -np.logaddexp(0, y)
    inner = running(np.exp(a * low + b * high - lgamma(a) - lgamma(b) + lgamma(a + b)), y)
    return lambda x: inner(np.log(np.maximum(x, 1e-100)) - np.log(np.maximum(1 - x, 1e-100)))


def f_of(m, n, shift=0.0):
    def log_density(x):
        parts = []
        for j in range(1 if shift == 0 else 80):
            weight = 0.0 if shift == 0 else j * log(shift / 2) - shift / 2 - lgamma(j + 1)
            k = m / 2 + j
            constant = weight + lgamma(k + n / 2) - lgamma(k) - lgamma(n / 2) + k * log(m / n)
            parts.append(constant + (k - 1) * np.log(x) - (k + n / 2) * np.log1p(m * x / n))
        return np.logaddexp.reduce(parts)

    return of_positive(log_density)


def noncentral_of(df, shift):
    def log_density(x):
        parts = []
        for j in range(150):
            constant = j * log(shift / 2) - shift / 2 - lgamma(j + 1) - lgamma(df / 2 + j) - log(2)
            parts.append(constant + (df / 2 + j - 1) * np.log(x / 2) - x / 2)
        return np.logaddexp.reduce(parts)

    return of_positive(log_density)


def vonmises_of(mu, kappa):
    x = np.linspace(-pi, pi, 400_001)
    density = np.exp(kappa * (np.cos(x - mu) - 1))
    return running(density / (np.sum(density[1:] + density[:-1]) / 2 * (x[1] - x[0])), x)


def normal_at(x):
    return 0.5 * (1 + np.vectorize(erf)(np.asarray(x) / sqrt(2)))


def triangle_at(left, mode, right):
    return lambda x: np.where(x < mode, (x - left) ** 2 / ((right - left) * (mode - left or 1)),
            1 - (right - x) ** 2 / ((right - left) * (right - mode or 1)))


# Name, parameters, distribution function.
CONTINUOUS = (
    ("random", (), lambda x: x), ("uniform", (-1.0, 3.0), lambda x: (x + 1) / 4), ("standard_normal", (), normal_at),
    ("normal", (2.0, 3.0), lambda x: normal_at((x - 2) / 3)),
    ("standard_exponential", (), lambda x: -np.expm1(-x)), ("exponential", (2.0,), lambda x: -np.expm1(-x / 2)),
    ("laplace", (1.0, 2.0), lambda x: np.where(x < 1, 0.5 * np.exp((x - 1) / 2), 1 - 0.5 * np.exp(-(x - 1) / 2))),
    ("logistic", (1.0, 2.0), lambda x: 1 / (1 + np.exp(-(x - 1) / 2))),
    ("gumbel", (1.0, 2.0), lambda x: np.exp(-np.exp(-(x - 1) / 2))),
    ("standard_cauchy", (), lambda x: 0.5 + np.arctan(x) / pi),
    ("lognormal", (0.5, 0.7), lambda x: normal_at((np.log(x) - 0.5) / 0.7)),
    ("rayleigh", (2.0,), lambda x: -np.expm1(-x * x / 8)),
    ("weibull", (1.5,), lambda x: -np.expm1(-x**1.5)), ("weibull", (0.5,), lambda x: -np.expm1(-x**0.5)),
    ("pareto", (3.0,), lambda x: 1 - (1 + x) ** -3.0),
    ("power", (3.0,), lambda x: x**3), ("power", (0.2,), lambda x: x**0.2),
    ("triangular", (0.0, 1.0, 4.0), triangle_at(0, 1, 4)), ("triangular", (0.0, 0.0, 4.0), triangle_at(0, 0, 4)),
    ("triangular", (-1.0, 4.0, 4.0), triangle_at(-1, 4, 4)),
    ("wald", (3.0, 2.0), of_positive(lambda x: 0.5 * np.log(2 / (2 * pi * x**3)) - 2 * (x - 3) ** 2 / (18 * x))),
    ("wald", (1.0, 50.0), of_positive(lambda x: 0.5 * np.log(50 / (2 * pi * x**3)) - 50 * (x - 1) ** 2 / (2 * x))),
    ("standard_gamma", (0.3,), gamma_of(0.3)), ("standard_gamma", (1.0,), gamma_of(1.0)),
    ("gamma", (4.5, 2.0), gamma_of(4.5, 2.0)), ("standard_gamma", (200.0,), gamma_of(200.0)),
    ("chisquare", (3.0,), gamma_of(1.5, 2.0)), ("noncentral_chisquare", (3.0, 2.0), noncentral_of(3.0, 2.0)),
    ("noncentral_chisquare", (0.5, 2.0), noncentral_of(0.5, 2.0)),
    ("noncentral_chisquare", (1.0, 40.0), noncentral_of(1.0, 40.0)), ("beta", (2.0, 3.0), beta_of(2.0, 3.0)),
    ("beta", (0.5, 2.0), beta_of(0.5, 2.0)), ("beta", (0.2, 0.3), beta_of(0.2, 0.3)),
    ("beta", (80.0, 3.0), beta_of(80.0, 3.0)), ("f", (4.0, 12.0), f_of(4.0, 12.0)), ("f", (1.0, 1.0), f_of(1.0, 1.0)),
    ("noncentral_f", (3.0, 20.0, 2.0), f_of(3.0, 20.0, 2.0)),
    ("standard_t", (9.0,), of_real(lambda x: lgamma(5) - lgamma(4.5) - 0.5 * log(9 * pi) - 5 * np.log1p(x * x / 9))),
    ("standard_t", (0.7,),
    of_real(lambda x: lgamma(0.85) - lgamma(0.35) - 0.5 * log(0.7 * pi) - 0.85 * np.log1p(x * x / 0.7))),
    ("vonmises", (1.0, 4.0), vonmises_of(1.0, 4.0)), ("vonmises", (-2.0, 0.1), vonmises_of(-2.0, 0.1)),
    ("vonmises", (0.5, 0.0), lambda x: (x + pi) / (2 * pi)),
    ("vonmises", (0.0, 1000.0), vonmises_of(0.0, 1000.0)), ("vonmises", (0.0, 1e7), lambda x: normal_at(x * sqrt(1e7))))


def counts_of(log_probability, first, last):
    k = np.arange(first, last)
    return first, np.exp([log_probability(int(one)) for one in k])


def choose(n, k):
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def poisson_of(mean, last):
    return counts_of(lambda k: k * log(mean) - mean - lgamma(k + 1), 0, last)


def binomial_of(n, p):
    return counts_of(lambda k: choose(n, k) + k * log(p) + (n - k) * log(1 - p), 0, n + 1)


def hypergeometric_of(good, bad, draws):
    return counts_of(lambda k: choose(good, k) + choose(bad, draws - k) - choose(good + bad, draws),
            max(0, draws - bad), min(good, draws) + 1)


# Name, parameters, the first count and the probabilities from there on.
COUNTS = (
    ("poisson", (0.5,), poisson_of(0.5, 20)), ("poisson", (3.0,), poisson_of(3.0, 40)),
    ("poisson", (9.9,), poisson_of(9.9, 60)), ("poisson", (10.0,), poisson_of(10.0, 60)),
    ("poisson", (1000.0,), poisson_of(1000.0, 1400)), ("binomial", (10, 0.3), binomial_of(10, 0.3)),
    ("binomial", (30, 0.8), binomial_of(30, 0.8)),
    ("binomial", (40, 0.5), binomial_of(40, 0.5)), ("binomial", (1000, 0.9), binomial_of(1000, 0.9)),
    ("binomial", (1, 0.4), binomial_of(1, 0.4)),
    ("negative_binomial", (4, 0.25), counts_of(lambda k: choose(k + 3, k) + 4 * log(0.25) + k * log(0.75), 0, 200)),
    ("negative_binomial", (0.5, 0.6),
    counts_of(lambda k: lgamma(k + 0.5) - lgamma(0.5) - lgamma(k + 1) + 0.5 * log(0.6) + k * log(0.4), 0, 100)),
    ("geometric", (0.25,), counts_of(lambda k: log(0.25) + (k - 1) * log(0.75), 1, 150)),
    ("geometric", (0.9,), counts_of(lambda k: log(0.9) + (k - 1) * log(0.1), 1, 30)),
    ("logseries", (0.7,), counts_of(lambda k: k * log(0.7) - log(k) - log(-log(0.3)), 1, 150)),
    ("logseries", (0.05,), counts_of(lambda k: k * log(0.05) - log(k) - log(-log(0.95)), 1, 20)),
    ("zipf", (2.0,), counts_of(lambda k: -2 * log(k) - log(pi * pi / 6), 1, 2000)),
    ("zipf", (4.0,), counts_of(lambda k: -4 * log(k) - log(pi**4 / 90), 1, 2000)),
    ("hypergeometric", (50, 40, 7), hypergeometric_of(50, 40, 7)),
    ("hypergeometric", (50, 40, 85), hypergeometric_of(50, 40, 85)),
    ("hypergeometric", (12, 13, 12), hypergeometric_of(12, 13, 12)),
    ("hypergeometric", (500, 400, 70), hypergeometric_of(500, 400, 70)),
    ("hypergeometric", (30, 400, 300), hypergeometric_of(30, 400, 300)),
    ("hypergeometric", (400, 30, 300), hypergeometric_of(400, 30, 300)),
    ("hypergeometric", (5, 400, 100), hypergeometric_of(5, 400, 100)),
    ("integers", (3, 9), (3, np.full(6, 1 / 6))), ("randint", (2,), (0, np.full(2, 0.5))))

# Parameters outside the domain, or at its edge.
EDGES = (
    ("normal", (0.0, -1.0)), ("normal", (0.0, 0.0)), ("normal", (0.0, -0.0)), ("normal", (np.nan, 1.0)),
    ("exponential", (-1.0,)), ("exponential", (0.0,)), ("laplace", (0.0, -1.0)),
    ("logistic", (0.0, -1.0)), ("gumbel", (0.0, -1.0)), ("lognormal", (0.0, -1.0)), ("rayleigh", (-1.0,)),
    ("weibull", (-1.0,)), ("weibull", (0.0,)), ("pareto", (0.0,)),
    ("pareto", (-1.0,)), ("power", (0.0,)), ("power", (-1.0,)), ("triangular", (2.0, 1.0, 3.0)),
    ("triangular", (0.0, 4.0, 3.0)), ("triangular", (1.0, 1.0, 1.0)),
    ("wald", (0.0, 1.0)), ("wald", (1.0, 0.0)), ("wald", (-1.0, 1.0)), ("geometric", (0.0,)), ("geometric", (1.0,)),
    ("geometric", (1.1,)), ("geometric", (np.nan,)),
    ("logseries", (-0.1,)), ("logseries", (1.0,)), ("logseries", (0.0,)), ("logseries", (np.nan,)),
    ("standard_gamma", (-1.0,)), ("standard_gamma", (0.0,)), ("gamma", (1.0, -1.0)),
    ("chisquare", (0.0,)), ("chisquare", (-1.0,)), ("noncentral_chisquare", (0.0, 1.0)),
    ("noncentral_chisquare", (1.0, -1.0)), ("noncentral_chisquare", (1.0, 0.0)), ("beta", (0.0, 1.0)),
    ("beta", (1.0, -1.0)), ("f", (0.0, 1.0)), ("f", (1.0, 0.0)), ("noncentral_f", (0.0, 1.0, 1.0)),
    ("noncentral_f", (1.0, 1.0, -1.0)), ("standard_t", (0.0,)), ("vonmises", (0.0, -1.0)),
    ("vonmises", (0.0, 0.0)), ("poisson", (-1.0,)), ("poisson", (np.nan,)), ("poisson", (1e19,)), ("poisson", (0.0,)),
    ("binomial", (-1, 0.5)), ("binomial", (5, 1.5)), ("binomial", (5, -0.1)),
    ("binomial", (5, np.nan)), ("binomial", (5, 0.0)), ("binomial", (5, 1.0)), ("binomial", (0, 0.5)),
    ("binomial", (2.5, 0.5)), ("negative_binomial", (0, 0.5)), ("negative_binomial", (1, 0.0)),
    ("negative_binomial", (1, 1.0)), ("negative_binomial", (np.nan, 0.5)), ("negative_binomial", (2**62, 0.1)),
    ("negative_binomial", ([2**62], [0.1])), ("zipf", (1.0,)), ("zipf", (0.5,)),
    ("zipf", (np.nan,)), ("zipf", (2000.0,)), ("hypergeometric", (-1, 5, 2)),
    ("hypergeometric", (5, -1, 2)), ("hypergeometric", (5, 5, 11)), ("hypergeometric", (5, 5, 10)),
    ("hypergeometric", (5, 5, 0)), ("hypergeometric", (0, 5, 3)), ("hypergeometric", (5, 0, 3)),
    ("hypergeometric", (10**9, 5, 3)), ("hypergeometric", (5, 5, -1)), ("uniform", (1.0, 0.0)),
    ("uniform", (0.0, np.inf)), ("uniform", (-1e308, 1e308)), ("uniform", (1.0, 1.0)),
    ("multinomial", (5, [0.5, 0.6, 0.1])), ("multinomial", (5, [-0.1, 0.6])), ("multinomial", (-1, [0.5, 0.5])),
    ("multinomial", (5, [0.2, 0.3, 0.1])), ("multinomial", (5, [np.nan, 0.5])),
    ("multinomial", (0, [0.5, 0.5])), ("dirichlet", ([0.0, 1.0],)), ("dirichlet", ([-1.0, 1.0],)),
    ("dirichlet", ([[1.0]],)), ("multivariate_hypergeometric", ([3, 4], 8)),
    ("multivariate_hypergeometric", ([-3, 4], 1)), ("multivariate_hypergeometric", ([3, 4], -1)),
    ("multivariate_hypergeometric", ([3, 4], 0)), ("multivariate_hypergeometric", ([[3, 4]], 1)),
    ("multivariate_normal", ([0.0], [[1.0, 0.0], [0.0, 1.0]])), ("multivariate_normal", ([0.0, 1.0], [1.0, 0.0])),
    ("multivariate_normal", ([[0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]])),
    ("integers", (5, 5)), ("integers", (6, 5)), ("integers", (0,)), ("integers", ([1, 2], [2, 2])),
    ("integers", ([1, 2], [[3], [4]])), ("random", (-1,)), ("choice", (0, 1)),
    ("choice", (-3, 1)), ("choice", (0, 0)), ("choice", ([], 1)), ("choice", ([], 0)), ("choice", (3.5, 1)),
    ("choice", (3, 4, False)), ("choice", (3, 2, True, [0.5, 0.5])),
    ("choice", (3, 2, True, [0.5, 0.5, 0.5])), ("choice", (3, 2, True, [0.5, 0.7, -0.2])),
    ("choice", (3, 2, True, [np.nan, 0.5, 0.5])), ("choice", (3, 2, False, [1.0, 0.0, 0.0])),
    ("choice", (3, 2, True, [[0.5, 0.25, 0.25]])), ("choice", ([[1, 2], [3, 4]], 1)), ("permutation", (0,)),
    ("permutation", (3, 1)), ("permutation", (2.5,)), ("permuted", ([1, 2], 1)))

# Name and parameters that broadcast to (2, 3).
BROADCAST = (
    ("uniform", ([[0.0], [10.0]], [11.0, 12.0, 13.0])), ("normal", ([[0.0], [100.0]], [1.0, 2.0, 3.0])),
    ("exponential", ([[1.0, 10.0, 100.0], [1.0, 10.0, 100.0]],)), ("laplace", ([[0.0], [100.0]], [1.0, 2.0, 3.0])),
    ("logistic", ([[0.0], [100.0]], [1.0, 2.0, 3.0])), ("gumbel", ([[0.0], [100.0]], [1.0, 2.0, 3.0])),
    ("lognormal", ([[0.0], [3.0]], [0.1, 0.2, 0.3])), ("rayleigh", ([[1.0, 10.0, 100.0]] * 2,)),
    ("weibull", ([[1.0, 2.0, 5.0]] * 2,)), ("pareto", ([[3.0, 5.0, 9.0]] * 2,)), ("power", ([[1.0, 3.0, 9.0]] * 2,)),
    ("triangular", ([[0.0], [10.0]], [[11.0]], [12.0, 13.0, 14.0])),
    ("wald", ([[1.0], [9.0]], [10.0, 20.0, 30.0])), ("geometric", ([[0.1, 0.5, 1.0]] * 2,)),
    ("logseries", ([[0.1, 0.5, 0.9]] * 2,)), ("standard_gamma", ([[0.5, 5.0, 50.0]] * 2,)),
    ("gamma", ([[1.0], [9.0]], [1.0, 20.0, 300.0])), ("chisquare", ([[1.0, 5.0, 50.0]] * 2,)),
    ("noncentral_chisquare", ([[0.5], [9.0]], [1.0, 20.0, 300.0])), ("beta", ([[1.0], [9.0]], [1.0, 20.0, 300.0])),
    ("f", ([[1.0], [9.0]], [10.0, 20.0, 30.0])), ("noncentral_f", ([[0.5], [9.0]], [10.0, 20.0, 30.0], [[2.0]])),
    ("standard_t", ([[5.0, 6.0, 50.0]] * 2,)), ("vonmises", ([[-1.0], [1.0]], [1.0, 20.0, 300.0])),
    ("poisson", ([[0.5, 5.0, 500.0]] * 2,)), ("binomial", ([[1], [90]], [0.1, 0.5, 0.9])),
    ("negative_binomial", ([[1], [90]], [0.1, 0.5, 0.9])), ("zipf", ([[3.0, 4.0, 5.0]] * 2,)),
    ("hypergeometric", ([[30], [90]], [5, 50, 500], [[20]])), ("integers", ([[0], [100]], [101, 200, 300])))


class RandomTest(client_case.ClientCase):
    def test_known_answers(self):
        """Random123's: Philox-4x32-10 and Threefry-2x32-20."""
        ones, pi = 2**64 - 1, (0x85A308D3243F6A88, 0x0370734413198A2E, 0x299F31D0A4093822)
        self.same(st.random.Generator(key=0).bits(4, np.uint32),
                np.array([0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], np.uint32))
        self.same(st.random.Generator(key=ones, counter=ones, stream=ones).bits(4, np.uint32),
                  np.array([0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD], np.uint32))
        self.same(st.random.Generator(key=pi[2], counter=pi[0], stream=pi[1]).bits(4, np.uint32),
                  np.array([0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1], np.uint32))
        threefry = lambda key, counter: st.random.Generator(key=key, counter=counter, generator="threefry").bits(2,
                np.uint32)
        self.same(threefry(0, 0), np.array([0x6B200159, 0x99BA4EFE], np.uint32))
        self.same(threefry(ones, ones), np.array([0x1CB996FC, 0xBB002BE7], np.uint32))
        self.same(threefry(pi[1], pi[0]), np.array([0xC4923A9C, 0x483DF7A0], np.uint32))

    def test_streams(self):
        for generator in ("philox", "threefry"):
            whole = st.random.Generator(5, generator=generator).bits(64, np.uint32).to_numpy()
            parts = st.random.Generator(5, generator=generator)
            self.same(st.concat([parts.bits(8, np.uint32), parts.bits((4, 4), np.uint32).reshape(16),
                    parts.bits(40, np.uint32)]), whole)
            self.same(st.random.Generator(5, generator=generator).bits(32), whole.view(np.uint64))
            other = st.random.Generator(6, generator=generator).bits(64, np.uint32).to_numpy()
            self.assertLess((whole == other).sum(), 3)
            first, second = st.random.Generator(5, generator=generator).spawn(2)
            self.assertNotEqual(first.key, second.key)
        self.assertNotEqual(st.random.Generator().key, st.random.Generator().key)
        self.assertIsInstance(st.random.default_rng(3), st.random.Generator)
        for wrong in ({"generator": "mt19937"}, {"seed": 1, "key": 2}, {"key": -1},
                {"generator": "threefry", "stream": 1}):
            with self.assertRaises(ValueError):
                st.random.Generator(**wrong)

    def test_continuous_distributions(self):
        """The Kolmogorov-Smirnov statistic against the distribution function. It exceeds 2 in one of 1,500
        samples."""
        n = 50_000
        for number, (name, arguments, function) in enumerate(CONTINUOUS):
            for dtype in (np.float64, np.float32):
                with self.subTest(name=name, arguments=arguments, dtype=dtype):
                    values = getattr(st.random.Generator(1000 + number), name)(*arguments, size=n, dtype=dtype)
                    self.assertEqual((values.dtype, values.shape), (np.dtype(dtype), (n,)))
                    values = np.sort(values.to_numpy().astype(float))
                    self.assertTrue(np.isfinite(values).all())
                    at = function(values)
                    distance = max((np.arange(1, n + 1) / n - at).max(), (at - np.arange(n) / n).max())
                    self.assertLess(distance * sqrt(n), 2)

    def test_counts(self):
        """The squared deviations of frequencies, for which a normal number stands by Wilson's and Hilferty's cube root;
        above
        3.5 it is once in 4,000."""
        n = 50_000
        for number, (name, arguments, (first, probabilities)) in enumerate(COUNTS):
            with self.subTest(name=name, arguments=arguments):
                values = getattr(st.random.RandomState(2000 + number), name)(*arguments, size=n)
                self.assertEqual((values.dtype, values.shape), (np.int64, (n,)))
                values = values.to_numpy()
                self.assertGreaterEqual(values.min(), first)
                expected = n * probabilities
                seen = np.bincount(np.minimum(values - first, len(expected)), minlength=len(expected) + 1)
                common = expected >= 10
                kept = np.append(expected[common], n - expected[common].sum())
                found = np.append(seen[:-1][common], n - seen[:-1][common].sum())
                if kept[-1] < 10:  # the rest joins the rarest that is counted
                    kept[-2], found[-2] = kept[-2:].sum(), found[-2:].sum()
                    kept, found = kept[:-1], found[:-1]
                freedom = len(kept) - 1
                ratio = ((found - kept) ** 2 / kept).sum() / freedom
                self.assertLess(abs((ratio ** (1 / 3) - (1 - 2 / (9 * freedom))) / sqrt(2 / (9 * freedom))), 3.5)

    def test_extreme_parameters(self):
        """Where a formula could leave the range or the precision of a double."""
        n = 2000
        rng = st.random.Generator(5)
        tiny = rng.beta(1e-3, 1e-3, n).to_numpy()
        self.assertTrue(((tiny >= 0) & (tiny <= 1)).all())
        self.assertAlmostEqual((tiny < 0.5).mean(), 0.5, delta=0.06)
        rows = rng.dirichlet([1e-3, 1e-3, 1e-3], n).to_numpy()
        np.testing.assert_allclose(rows.sum(-1), 1)
        self.assertAlmostEqual((rows.max(-1) > 0.99).mean(), 1, delta=0.02)
        self.assertAlmostEqual(rng.poisson(1e15, n).to_numpy().mean() / 1e15, 1, delta=1e-8)
        self.assertAlmostEqual(rng.binomial(10**12, 1e-12, n).to_numpy().mean(), 1, delta=0.15)
        self.assertAlmostEqual(rng.standard_t(1e308, n).to_numpy().std(), 1, delta=0.08)
        self.same(rng.dirichlet([0.0, 0.0]), np.zeros(2))
        self.same(rng.dirichlet([0.0, 2.0]), np.array([0.0, 1.0]))
        self.assertFalse(np.signbit(rng.normal(0.0, 0.0, n).to_numpy()).any())
        self.same(rng.geometric(1.0, 3), np.array([1, 1, 1]))
        self.assertGreater(rng.geometric(1e-18, n).to_numpy().min(), 0)
        self.same(rng.zipf(2000.0, 3), np.array([1, 1, 1]))
        self.same(rng.standard_gamma(0.0, 3), np.zeros(3))
        self.same(rng.weibull(0.0, 3), np.zeros(3))
        self.same(rng.logseries(0.0, 3), np.array([1, 1, 1]))
        self.same(rng.binomial(7, 1.0, 3), np.array([7, 7, 7]))
        self.same(rng.hypergeometric(5, 7, 12, 3), np.array([5, 5, 5]))
        self.same(rng.hypergeometric(0, 50, 20, 3), np.array([0, 0, 0]))
        self.same(rng.hypergeometric(50, 0, 20, 3), np.array([20, 20, 20]))
        self.assertTrue(np.isnan(rng.normal(np.nan, 1.0, 3).to_numpy()).all())
        for large in (rng.vonmises(3.0, 2.0, n).to_numpy(), rng.vonmises(100.0, 1e8, n).to_numpy()):
            self.assertLessEqual(np.abs(large).max(), pi)

    def test_parameters_below_the_normal_range(self):
        n = 4000
        rng = st.random.Generator(6)
        for a, b in (
            (5e-324, 5e-324), (1e-310, 1e-310), (1e-310, 3e-310), (1e-308, 1e-308), (1e-310, 1.0),
            (2.0, 1e-320),
        ):
            with self.subTest(a=a, b=b):
                values = rng.beta(a, b, n).to_numpy()
                self.assertTrue(((values == 0) | (values == 1)).all())
                share = (a * 2.0**300) / (a * 2.0**300 + b * 2.0**300)
                self.assertAlmostEqual(values.mean(), share, delta=0.04)
        rows = rng.dirichlet([1e-310, 3e-310], n).to_numpy()
        np.testing.assert_array_equal(rows.sum(-1), 1)
        self.assertAlmostEqual(rows[:, 1].mean(), 0.75, delta=0.04)
        self.assertTrue((rng.f(1e-310, 1.0, n).to_numpy() == 0).all())
        self.assertTrue(np.isposinf(rng.f(1.0, 1e-310, n).to_numpy()).all())
        both = rng.f(1e-310, 1e-310, n).to_numpy()
        self.assertTrue(((both == 0) | np.isposinf(both)).all())
        greatest = np.iinfo(np.int64).max
        for p in (1e-30, 5e-324):
            self.same(rng.geometric(p, 3), np.full(3, greatest))
            self.same(rng.geometric(st.asarray([p, p]) * 1.0), np.full(2, greatest))
        self.assertEqual(rng.geometric(1e-20, n).to_numpy().max(), greatest)

    def test_probabilities_on_the_device_are_checked(self):
        rng = st.random.Generator(8)
        on_device = lambda *rows: st.asarray(rows) * 1.0  # noqa: E731
        for rows in ([0.5, np.nan], [1.5, -0.5], [0.9, 0.9, 0.1], [[0.5, 0.5, 0.0], [0.6, 0.6, 0.0]]):
            for pvals in (on_device(*rows), st.asarray(rows), np.asarray(rows)):
                with self.assertRaises(ValueError):
                    rng.multinomial(5, pvals)
                with self.assertRaises(ValueError):
                    np.random.default_rng(1).multinomial(5, np.asarray(rows))
        for p in (on_device(0.5, 0.6), on_device(1.5, -0.5), on_device(np.nan, 1.0), on_device(0.5, 0.25, 0.25)):
            with self.assertRaises(ValueError):
                rng.choice(2, p=p)
        self.assertEqual(rng.multinomial(5, on_device(0.5, 0.5)).to_numpy().sum(), 5)

    def test_of_several_numbers(self):
        n = 20_000
        rng = st.random.Generator(31)
        rows = rng.multinomial(20, [0.5, 0.3, 0.2], n).to_numpy()
        self.assertEqual((rows.dtype, rows.shape), (np.int64, (n, 3)))
        self.same(st.asarray(rows.sum(-1)), np.full(n, 20))
        np.testing.assert_allclose(rows.mean(0), [10, 6, 4], atol=0.1)
        np.testing.assert_allclose(np.cov(rows.T), 20 * (np.diag([0.5, 0.3, 0.2]) - np.outer([0.5, 0.3, 0.2],
                [0.5, 0.3, 0.2])), atol=0.2)
        several = rng.multinomial([[10], [1000]], [[0.5, 0.5], [0.1, 0.9], [0.0, 1.0]]).to_numpy()
        self.assertEqual(several.shape, (2, 3, 2))
        np.testing.assert_array_equal(several.sum(-1), [[10] * 3, [1000] * 3])
        np.testing.assert_array_equal(several[:, 2, 0], 0)
        rows = rng.multivariate_hypergeometric([10, 20, 30], 12, n).to_numpy()
        np.testing.assert_array_equal(rows.sum(-1), 12)
        np.testing.assert_allclose(rows.mean(0), [2, 4, 6], atol=0.06)
        share = np.array([1, 2, 3]) / 6
        np.testing.assert_allclose(np.cov(rows.T), 12 * 48 / 59 * (np.diag(share) - np.outer(share, share)), atol=0.1)
        self.assertEqual(rng.multivariate_hypergeometric([3, 4], 2, method="count").shape, (2,))
        self.assertEqual(rng.multivariate_hypergeometric([], 0, 3).shape, (3, 0))
        rows = rng.dirichlet([0.5, 2.0, 3.0], n).to_numpy()
        np.testing.assert_allclose(rows.sum(-1), 1)
        for i, a in enumerate((0.5, 2.0, 3.0)):
            ordered = np.sort(rows[:, i])
            self.assertLess(np.abs(np.arange(1, n + 1) / n - beta_of(a, 5.5 - a)(ordered)).max() * sqrt(n), 2)
        mean, cov = np.array([1.0, -2.0, 0.5]), np.array([[2.0, 0.6, 0.1], [0.6, 1.0, -0.3], [0.1, -0.3, 0.5]])
        for method in ("svd", "eigh", "cholesky"):
            rows = rng.multivariate_normal(mean, cov, (n, 1), method=method)
            self.assertEqual((rows.dtype, rows.shape), (np.float64, (n, 1, 3)))
            rows = rows.to_numpy()[:, 0]
            np.testing.assert_allclose(rows.mean(0), mean, atol=0.06)
            np.testing.assert_allclose(np.cov(rows.T), cov, atol=0.1)
        self.same(rng.multivariate_normal([1.0, 2.0], np.zeros((2, 2))), np.array([1.0, 2.0]))
        wrong = [[1.0, 2.0], [2.0, 1.0]]
        for method in ("svd", "eigh"):
            with self.assertWarns(RuntimeWarning):
                rng.multivariate_normal([0.0, 0.0], wrong, method=method)
            with self.assertRaises(ValueError):
                rng.multivariate_normal([0.0, 0.0], wrong, check_valid="raise", method=method)
            rng.multivariate_normal([0.0, 0.0], wrong, check_valid="ignore", method=method)
        with self.assertRaises(np.linalg.LinAlgError):
            rng.multivariate_normal([0.0, 0.0], wrong, method="cholesky").to_numpy()

    def test_broadcasting(self):
        for name, arguments in BROADCAST:
            with self.subTest(name=name):
                arrays = [np.asarray(one) for one in arguments]
                call = lambda *given, **options: getattr(st.random.Generator(8), name)(*given, **options)  # noqa: B023
                values = call(*arguments)
                self.assertEqual(values.shape, (2, 3))
                # Lists, arrays of the host and of the service are the same to it.
                self.same(call(*arrays), values.to_numpy())
                self.same(call(*map(st.asarray, arrays)), values.to_numpy())
                rows = call(*arguments, size=(4000, 2, 3)).to_numpy()
                theirs = getattr(np.random.default_rng(8), name)(*arguments, size=(4000, 2, 3))
                deviation = np.maximum(np.quantile(theirs, 0.75, axis=0) - np.quantile(theirs, 0.25, axis=0), 1)
                self.assertLess((np.abs(np.median(rows, axis=0) - np.median(theirs, axis=0)) / deviation).max(),
                        0.2 if rows.dtype.kind == "f" else 1.01)
                self.assertEqual(call(*arguments, size=(0, 2, 3)).shape, (0, 2, 3))
                for size in ((3,), (3, 2), (2, 2, 1), 6):
                    with self.assertRaises(ValueError):
                        call(*arguments, size=size)

    def test_sizes_types_and_out(self):
        rng = st.random.Generator(4)
        for name, arguments, *_ in (*CONTINUOUS, *COUNTS):
            if name == "randint":
                continue
            function = getattr(rng, name)
            for size, shape in ((None, ()), ((), ()), (0, (0,)), ((0,), (0,)), (3, (3,)), (np.int64(3), (3,)),
                    ([2, 1], (2, 1)), ((2, 0, 3), (2, 0, 3))):
                values = function(*arguments, size=size)
                self.assertEqual(values.shape, shape)
                self.assertEqual(values.to_numpy().shape, shape)
        for name, arguments in (("random", ()), ("standard_normal", ()), ("standard_exponential", ()),
                ("standard_gamma", (2.0,))):
            for dtype in (np.float64, np.float32):
                out = st.zeros((2, 3), dtype=dtype)
                self.assertIs(getattr(rng, name)(*arguments, out=out, dtype=dtype), out)
                self.assertTrue((out.to_numpy() != 0).all())
                again = [getattr(st.random.Generator(4), name)(*arguments, size=(2, 3), dtype=dtype,
                        **more).to_numpy() for more in ({}, {"out": out})]
                np.testing.assert_array_equal(*again)
            for wrong, error in (({"out": st.zeros(3), "size": 4}, ValueError),
                    ({"out": st.zeros(3, dtype=st.float32)}, TypeError), ({"out": np.zeros(3)}, TypeError),
                                 ({"dtype": np.int32, "size": 3}, TypeError)):
                with self.assertRaises(error):
                    getattr(rng, name)(*arguments, **wrong)
        view = st.zeros(6)
        rng.random(out=view[::2])
        self.same(view[1::2], np.zeros(3))
        self.assertGreater(float(view[0]), 0)

    def test_errors_are_numpys(self):
        """Arguments that NumPy refuses raise the same kind of error; arguments that NumPy accepts are accepted."""
        ours, theirs = st.random.Generator(1), np.random.default_rng(1)
        for name, arguments in EDGES:
            with self.subTest(name=name, arguments=arguments):
                expected = found = None
                try:
                    getattr(theirs, name)(*arguments)
                except (ValueError, TypeError, OverflowError, IndexError) as error:
                    expected = error
                try:
                    getattr(ours, name)(*arguments)
                except (ValueError, TypeError, OverflowError, IndexError) as error:
                    found = error
                self.assertEqual(found is None, expected is None, f"{found!r} beside {expected!r}")
                self.assertTrue(expected is None or isinstance(found, (type(expected), ValueError, TypeError)),
                        f"{found!r} beside {expected!r}")

    def test_examples(self):
        self.run_examples(st.random, _bit_generator, _distributions, _generator, _random_state)

    def test_public_names(self):
        self.assertEqual(sorted(set(np.random.__all__) - set(st.random.__all__)), [])
        public = {name for name in dir(np.random) if not name.startswith("_")}
        self.assertEqual({name for name in public if not hasattr(st.random, name)}, set(REFUSED))
        for theirs, ours in ((np.random.Generator, st.random.Generator),
                (np.random.RandomState, st.random.RandomState)):
            methods = {name for name in dir(theirs) if not name.startswith("_")}
            self.assertEqual({name for name in methods if not hasattr(ours, name)}, set())
        for owner in (st.random, st.random.Generator, st.random.RandomState):
            for name in vars(owner) if owner is not st.random else st.random.__all__:
                one = getattr(owner, name)
                if name.startswith("_") or name == "SeedSequence" or not callable(one):
                    continue
                self.assertIn(">>>", one.__doc__ or "", name)

    def test_parameters_are_numpys(self):
        """By position and by name."""
        for theirs, ours in ((np.random.Generator, st.random.Generator),
                (np.random.RandomState, st.random.RandomState)):
            for name in dir(theirs):
                function = getattr(theirs, name)
                if name.startswith("_") or not callable(function) or name in ("random_integers", "rand", "randn"):
                    continue
                names = [one for one in inspect.signature(function).parameters if one not in ("self", "args")]
                known = list(inspect.signature(getattr(ours, name)).parameters)[1:]
                with self.subTest(name=name, theirs=names, ours=known):
                    self.assertEqual([one for one in names if one not in known], [])
                    if "dtype" not in names:
                        self.assertEqual(known[:len(names)], names)

    def test_same_bits(self):
        """Every distribution, on whatever device this runs: a digest of its numbers, as another device gave it."""
        for name, arguments, digest in DIGESTS:
            with self.subTest(name=name, arguments=arguments):
                values = getattr(st.random.Generator(77), name)(*arguments, size=5000).to_numpy()
                self.assertEqual(hashlib.sha256(values.tobytes()).hexdigest()[:16], digest)

    def test_out_of_domain_on_the_device(self):
        rng = st.random.Generator(1)
        known = st.asarray([-1.0, np.nan, np.inf])
        for draw in (rng.poisson, rng.geometric, lambda p: rng.binomial(10, p), rng.standard_gamma):
            with self.assertRaises(ValueError):
                draw(known)
        bad = known * 1.0  # which only the device has
        self.same(rng.poisson(bad), np.array([-1, -1, -1]))
        self.same(rng.geometric(bad), np.array([-1, -1, -1]))
        self.same(rng.binomial(10, bad), np.array([-1, -1, -1]))
        self.assertTrue(np.isnan(rng.standard_gamma(bad).to_numpy()[:2]).all())

    def test_integers(self):
        rng = st.random.Generator(3)
        for dtype in (np.int8, np.uint16, np.int32, np.uint64, np.int64):
            values = rng.integers(3, 9, 3000, dtype).to_numpy()
            self.assertEqual((values.dtype, sorted(set(values.tolist()))), (np.dtype(dtype), [3, 4, 5, 6, 7, 8]))
            self.assertLess(np.abs(np.bincount(values.astype(int))[3:] - 500).max(), 130)
        self.assertEqual(sorted(set(rng.integers(2, size=100, endpoint=True).tolist())), [0, 1, 2])
        self.assertLess(rng.integers(-(2**63), 2**63 - 1, 100, endpoint=True).to_numpy().min(), 0)
        self.same(rng.integers(2**64 - 1, 2**64, 3, np.uint64), np.full(3, 2**64 - 1, np.uint64))
        self.assertGreaterEqual(rng.integers(1, 2**64, 100, np.uint64).to_numpy().min(), 1)
        for low, high, dtype in ((5, 5, np.int64), (0, 300, np.uint8), (-1, 3, np.uint32)):
            with self.assertRaises(ValueError):
                rng.integers(low, high, dtype=dtype)

    def test_shapes(self):
        rng = st.random.Generator(3)
        self.assertEqual(rng.random().shape, ())
        self.assertEqual(rng.normal(size=(2, 0, 3)).shape, (2, 0, 3))
        scales = np.array([[0.0], [1.0]])
        self.assertEqual(rng.normal(np.zeros(3), scales).shape, (2, 3))
        self.same(rng.normal(np.zeros(3), scales)[0], np.zeros(3))
        self.same(rng.uniform(np.array([1.0, 2.0]), np.array([1.0, 2.0])), [1.0, 2.0])
        with self.assertRaises(st.DataTypeMismatch):
            rng.random(3, np.int32)

    def test_order_and_choice(self):
        rng = st.random.Generator(9)
        order = rng.permutation(100).to_numpy()
        self.assertEqual(sorted(order.tolist()), list(range(100)))
        self.assertNotEqual(order.tolist(), list(range(100)))
        host = np.arange(12.0).reshape(3, 4)
        self.same(st.sort(rng.permutation(st.asarray(host), axis=1), axis=1), host)
        x = st.asarray(host) + 0
        view = x[0]
        rng.shuffle(x)
        self.same(st.sort(x, axis=0), host)
        self.same(view, x.to_numpy()[0])
        values = rng.choice(5, 1000).to_numpy()
        self.assertEqual(sorted(set(values.tolist())), [0, 1, 2, 3, 4])
        self.assertEqual(sorted(rng.choice(st.asarray([3.0, 5.0, 9.0]), 3, replace=False).tolist()), [3.0, 5.0, 9.0])
        weighted = np.bincount(rng.choice(3, (100, 100), p=[0.5, 0.0, 0.5]).to_numpy().ravel(), minlength=3)
        self.assertEqual(weighted[1], 0)
        self.assertLess(abs(weighted[0] - 5000), 300)
        self.assertEqual(sorted(rng.choice(4, 2, replace=False, p=[0.5, 0.0, 0.5, 0.0]).tolist()), [0, 2])
        for wrong in ({"size": 5, "replace": False}, {"p": [1.0]}, {"p": [0.5, 0.6, 0.0, 0.0]}):
            with self.assertRaises(ValueError):
                rng.choice(4, **wrong)

    def test_the_order_of_words_is_that_of_a_stable_sort(self):
        rng = st.random.Generator(11)
        for shape in ((4095,), (4096,), (70_000,), (300, 20), (50, 1000), (2000, 3), (3, 4, 5000)):
            for mask in (2**64 - 1, 0xFF00000000000003, 0xFFFF, 0):
                words = rng.bits(shape) & st.asarray(np.uint64(mask))
                with self.subTest(shape=shape, mask=hex(mask)):
                    self.same(st.argsort(words), np.argsort(words.to_numpy(), axis=-1, kind="stable"))

    def test_permutations_order_the_generators_words(self):
        for count in (0, 1, 4095, 70_000):
            words = np.asarray(st.random.Generator(7).bits(count))
            self.same(st.random.Generator(7).permutation(count), np.argsort(words, kind="stable"))

    def test_rows_shuffled_in_place(self):
        host = np.arange(60).reshape(20, 3)
        x = st.asarray(host) + 0
        view = x[:, 0]
        st.random.shuffle(x)
        rows = x.to_numpy()
        self.assertEqual(sorted(map(tuple, rows.tolist())), sorted(map(tuple, host.tolist())))
        self.same(view, rows[:, 0])

    def test_lists_and_numpys_arrays_are_shuffled(self):
        rng = st.random.Generator(2)
        words, host = ["a", "b", "c", "d", "e"], np.arange(12).reshape(4, 3)
        for one in (words, host):
            before = list(map(str, one))
            rng.shuffle(one)
            self.assertEqual(sorted(map(str, one)), sorted(before))
            self.assertNotEqual(list(map(str, one)), before)
        rng.shuffle(host, axis=1)
        np.testing.assert_array_equal(np.sort(host.ravel()), np.arange(12))
        for wrong in ("abc", (1, 2), {1: 2}, 3, np.array(3), st.asarray(3)):
            with self.assertRaises(TypeError):
                rng.shuffle(wrong)
        self.assertIn(rng.choice(words), words)
        self.assertEqual(rng.choice(words, (2, 3)).shape, (2, 3))
        self.assertEqual(sorted(rng.permutation(words)), sorted(words))
        self.same(st.sort(rng.permutation([3, 1, 2])), np.array([1, 2, 3]))
        self.assertEqual(rng.choice([[1, 2, 3], [4, 5, 6]], 2, axis=1).shape, (2, 2))

    def test_each_slice_in_an_order_of_its_own(self):
        rng = st.random.Generator(2)
        host = np.arange(200).reshape(4, 50)
        for axis in (0, 1, -1):
            self.same(st.sort(rng.permuted(host, axis=axis), axis=axis), host)
        rows = rng.permuted(st.asarray(np.tile(np.arange(50), (4, 1))), axis=1).to_numpy()
        self.assertFalse((rows[0] == rows[1]).all())
        self.same(st.sort(st.reshape(rng.permuted(host), (200,))), np.arange(200))
        x = st.asarray(host) + 0
        self.assertIs(rng.permuted(x, axis=1, out=x), x)
        self.same(st.sort(x, axis=1), host)
        self.assertEqual(rng.permuted(st.zeros((0, 3)), axis=1).shape, (0, 3))
        with self.assertRaises(ValueError):
            rng.permuted(host, out=st.zeros((4, 49), dtype=st.int64))

    def test_orders_are_equally_frequent(self):
        rng = st.random.Generator(6)
        seen = np.bincount([int("".join(map(str, rng.permutation(3).tolist()))) for _ in range(600)], minlength=211)
        self.assertEqual(np.count_nonzero(seen), 6)
        self.assertLess(((seen[seen > 0] - 100.0) ** 2 / 100).sum(), 20.5)  # once in a thousand

    def test_numbers_drawn_one_by_one(self):
        """Numbers that are read ahead equal those of single calls, with fewer messages."""
        for generator in ("philox", "threefry"):
            for name, arguments in (("random", ()), ("random", (None, np.float32)), ("standard_normal", ()),
                                    ("uniform", (2.0, 3.0)), ("normal", (2.0, 3.0)), ("integers", (5, 90)),
                                    ("uniform", (-7.1, 1.3, None, np.float32)), ("integers", (-(2**63), 2**62)),
                                    ("normal", (-0.3, 1e-3, None, np.float32)), ("integers", (3, 200, None, np.uint8)),
                                    ("bits", ()), ("gamma", (2.0,)),
                                    ("poisson", (3.0,)), ("exponential", (2.0, None, np.float32))):
                ahead, alone = (st.random.Generator(3, generator=generator) for _ in range(2))
                alone._ahead.number = lambda kind, state, single, *_: single()
                with self.subTest(generator=generator, name=name, arguments=arguments):
                    values = [getattr(ahead, name)(*arguments) for _ in range(100)]
                    expected = st.stack([getattr(alone, name)(*arguments) for _ in range(100)]).to_numpy()
                    self.assertEqual({(one.dtype, one.shape) for one in values}, {(expected.dtype, ())})
                    np.testing.assert_array_equal([one.item() for one in values], expected)
                    self.assertEqual(ahead.counter, alone.counter)
        rng = st.random.Generator(3)
        with client_case.Sent(self.session) as sent:
            for _ in range(300):
                float(rng.random())
                int(rng.integers(6))
        self.assertLess(sent.num_messages, 12)
        state = rng.bit_generator.state
        values = [float(rng.random()) for _ in range(5)]
        rng.bit_generator.state = state
        self.assertEqual([float(rng.random()) for _ in range(5)], values)
        for scale in range(1, 200):  # a new kind each time
            rng.gamma(2.0 + scale)
        rng, alone = st.random.Generator(4), st.random.Generator(4)
        alone._ahead.number = lambda kind, state, single, *_: single()
        with client_case.Sent(self.session) as sent:  # other parameters each time read the same words
            values = [
                (rng.integers(-i, i + 1), rng.uniform(-i, 2.0 * i), rng.normal(i, 1.0 + i)) for i in range(1, 200)
            ]
        self.assertLess(sent.num_messages, 8)
        for i, ours in enumerate(values, 1):
            expected = alone.integers(-i, i + 1), alone.uniform(-i, 2.0 * i), alone.normal(i, 1.0 + i)
            self.assertEqual([one.item() for one in ours], [one.item() for one in expected])
        self.assertEqual(st.jit(lambda x: x + rng.random())(st.ones(3)).shape, (3,))

    def test_few_of_many_without_replacement(self):
        rng = st.random.Generator(16)
        for count, wanted in ((1 << 16, 1024), (1 << 16, 1025), (1 << 16, 1), (10**12, 5000), (1 << 16, 0)):
            values = rng.choice(count, wanted, replace=False).to_numpy()
            self.assertEqual((values.shape, len(set(values.tolist()))), ((wanted,), wanted))
            self.assertTrue(((values >= 0) & (values < count)).all())
        values = np.concatenate([rng.choice(1 << 16, 1024, replace=False).to_numpy() for _ in range(50)])
        self.assertLess(abs(values.mean() / (1 << 16) - 0.5), 0.01)
        first = np.array([rng.choice(1 << 16, (2, 512), replace=False).to_numpy()[0, 0] for _ in range(200)])
        self.assertLess(abs(first.mean() / (1 << 16) - 0.5), 0.09)  # in no order

    def test_few_of_many_by_weights_without_replacement(self):
        weights = np.tile([0.0, 1.0, 2.0, 3.0], 25)
        weights /= weights.sum()
        rng, counts = st.random.Generator(9), np.zeros(100)
        for _ in range(60):
            chosen = rng.choice(100, 10, replace=False, p=weights).to_numpy()
            self.assertEqual(len(set(chosen.tolist())), 10)
            counts[chosen] += 1
        by_weight = counts.reshape(25, 4).sum(0)
        self.assertEqual(by_weight[0], 0)
        self.assertTrue((np.diff(by_weight) > 30).all(), by_weight)
        # The first of many are the first of few: both are in the order of the same keys.
        few, many = (st.random.Generator(10).choice(100, n, replace=False, p=weights).to_numpy() for n in (25, 26))
        np.testing.assert_array_equal(few, many[:25])

    def test_integers_of_no_size_need_no_integer_between_the_bounds(self):
        for made in (st.random.default_rng(7).integers, st.random.RandomState(7).randint):
            for arguments in ((0, 0, (3, 0, 4)), (0, -10, 0), (10, 10, 0)):
                with self.subTest(arguments=arguments):
                    self.assertEqual(made(*arguments).shape, np.zeros(arguments[2]).shape)
            with self.assertRaises(ValueError):
                made(0, 0, 3)

    def test_probabilities_of_small_types_add_up_to_one_as_far_as_these_can(self):
        for dtype in (np.float16, np.float32, np.float64):
            for module in (np, st):
                p = module.array([4, 4, 2], dtype=dtype) / 10
                with self.subTest(dtype=dtype, module=module.__name__):
                    self.assertIn(int(st.random.default_rng(7).choice([1, 2, 3], p=p)), (1, 2, 3))
        with self.assertRaises(ValueError):
            st.random.default_rng(7).choice(3, p=np.array([0.4, 0.4, 0.3], np.float16))

    def test_seeds_from_elements_of_arrays(self):
        seeds = st.arange(3) + 5
        for seed, same in ((seeds[1], 6), (seeds, [5, 6, 7]), ([seeds[0], 6], [5, 6])):
            with self.subTest(seed=seed):
                ours, theirs = (st.random.default_rng(one).random(4) for one in (seed, same))
                np.testing.assert_array_equal(ours, theirs)

    def test_integers_between_arrays(self):
        rng = st.random.Generator(3)
        low, high = np.array([[0], [-5]]), np.array([1, 3, 200])
        values = rng.integers(low, high, size=(500, 2, 3), dtype=np.int16).to_numpy()
        self.assertEqual(values.dtype, np.int16)
        self.assertTrue(((values >= low) & (values < high)).all())
        np.testing.assert_array_equal(values.min(0)[:, :2], [[0, 0], [-5, -5]])
        np.testing.assert_array_equal(values.max(0)[:, :2], [[0, 2], [0, 2]])
        self.assertEqual(rng.integers(st.asarray(low), st.asarray(high), endpoint=True).shape, (2, 3))
        all_ = rng.integers([0, 0], [2**64, 2**64], size=(400, 2), dtype=np.uint64).to_numpy()
        self.assertGreater(all_.max(), 2**63)
        signed = rng.integers([-(2**63)], [2**63 - 1], size=400, dtype=np.int64, endpoint=True).to_numpy()
        self.assertTrue((signed < 0).any() and (signed > 0).any())
        self.assertEqual(rng.integers([0, 1], 2, dtype=bool).dtype, np.bool_)
        numbers = st.random.Generator(4).integers(3, 90, 10).to_numpy()
        for bounds in (([3], [90]), (3, [90] * 10), (np.full(10, 3), 90)):
            self.same(st.random.Generator(4).integers(*bounds, size=10), numbers)
        for wrong in (([0], [300], np.uint8), ([-1], [3], np.uint32), ([1.5], [3], np.int64),
                ([0], [2**65], np.uint64)):
            with self.assertRaises((ValueError, TypeError)):
                rng.integers(*wrong[:2], dtype=wrong[2])

    def test_legacy_functions(self):
        for name, arguments in (("rand", (2, 3)), ("randn", (2, 3)), ("random_sample", ((2, 3),)), ("ranf", ((2, 3),)),
                ("sample", ((2, 3),)), ("random", ((2, 3),))):
            st.random.seed(5)
            values = getattr(st.random, name)(*arguments)
            self.assertEqual((values.dtype, values.shape), (np.float64, (2, 3)))
            st.random.seed(5)
            self.same(getattr(st.random, name)(*arguments), values.to_numpy())
        self.assertEqual((st.random.rand().shape, st.random.randn().shape), ((), ()))
        self.assertEqual(st.random.randint(5, size=3).dtype, np.int64)
        self.assertEqual(st.random.randint(0, 200, 3, np.uint8).dtype, np.uint8)
        with self.assertWarns(DeprecationWarning):
            values = st.random.random_integers(2, size=100).to_numpy()
        self.assertEqual(sorted(set(values.tolist())), [1, 2])
        self.assertGreater(st.random.RandomState(1).tomaxint(100).to_numpy().max(), 2**62)
        self.assertEqual(len(st.random.bytes(7)), 7)
        self.assertNotEqual(st.random.bytes(16), st.random.bytes(16))
        with self.assertRaises(ValueError):
            st.random.seed(-1)

    def test_states(self):
        for legacy in (True, False):
            st.random.seed(3)
            st.random.rand(7)
            state = st.random.get_state(legacy)
            values = st.random.rand(5).to_numpy()
            st.random.set_state(state)
            self.same(st.random.rand(5), values)
        for wrong, error in ((np.random.RandomState(1).get_state(), ValueError),
                (np.random.RandomState(1).get_state(legacy=False), ValueError), (3, TypeError)):
            with self.assertRaises(error):
                st.random.set_state(wrong)
        rng = st.random.Generator(st.random.PCG64(9))
        for twin in (copy.deepcopy(rng), pickle.loads(pickle.dumps(rng)),
                st.random.Generator(copy.deepcopy(rng.bit_generator))):
            self.same(twin.random(4), copy.deepcopy(rng).random(4).to_numpy())
        state = rng.bit_generator.state
        values = rng.normal(size=4).to_numpy()
        rng.bit_generator.state = state
        self.same(rng.normal(size=4), values)
        with self.assertRaises(ValueError):
            st.random.Philox(1).state = state

    def test_bit_generators(self):
        for name in ("MT19937", "PCG64", "PCG64DXSM", "SFC64", "Philox", "Threefry"):
            kind = getattr(st.random, name)
            first, second = (st.random.Generator(kind(11)).random(3).to_numpy() for _ in range(2))
            np.testing.assert_array_equal(first, second)
            self.assertEqual(kind(11).random_raw(4).dtype, np.uint64)
            self.assertNotEqual(*(one.key for one in kind(11).spawn(2)))
        shared = st.random.Philox(1)
        one, other = st.random.Generator(shared), st.random.default_rng(shared)
        self.assertIs(one.bit_generator, shared)
        self.assertFalse((one.random(3).to_numpy() == other.random(3).to_numpy()).any())
        # NumPy's give their seed.
        self.same(st.random.Generator(np.random.PCG64(4)).random(3), st.random.Generator(4).random(3).to_numpy())
        self.same(st.random.default_rng(np.random.SeedSequence(4)).random(3),
                st.random.default_rng(4).random(3).to_numpy())
        self.assertIs(st.random.SeedSequence, np.random.SeedSequence)
        self.assertNotEqual(st.random.Philox(1).jumped().stream, 0)
        before = st.random.get_bit_generator()
        st.random.set_bit_generator(st.random.Philox(8))
        self.same(st.random.rand(3), st.random.Generator(8).random(3).to_numpy())
        st.random.set_bit_generator(before)
        for wrong in (lambda: st.random.Threefry(1).jumped(), lambda: st.random.Generator(shared, key=3),
                lambda: st.random.Philox(-1)):
            with self.assertRaises(ValueError):
                wrong()
        with self.assertRaises(TypeError):
            st.random.set_bit_generator(3)

    def test_threads_share_a_bit_generator(self):
        """No two calls read the same blocks."""
        shared = st.random.Philox(1)
        taken = []

        def work():
            taken.extend(shared.take(3)[1] for _ in range(2000))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        self.assertEqual(sorted(taken), list(range(0, 24000, 3)))


if __name__ == "__main__":
    client_case.main()
