"""Random distributions: a million samples of each, in Stride and NumPy, in turns of the same run.

    PYTHONPATH=build/release/python:. python bench/python/distributions.py [--size N] [--repeats 7] [--only NAME]
        [--json FILE]

Prints milliseconds, medians, and the ratio: above 2 a distribution is slower than it is meant to be on a CPU device.
Both generators are made once; kernels are compiled before. Connects as stride.connect does."""

import argparse
import time

import numpy as np

import stride as st
from bench.report.devices import models
from bench.report.row import Result, Row, Times


def distributions(size):
    """Name and call of each, of a generator of either library."""
    shares = [0.2, 0.3, 0.5]
    return {
        "random": lambda g: g.random(size),
        "random float32": lambda g: g.random(size, dtype=np.float32),
        "integers(1000)": lambda g: g.integers(0, 1000, size),
        "integers(2**40)": lambda g: g.integers(0, 2**40, size),
        "bytes": lambda g: g.bytes(size),
        "uniform": lambda g: g.uniform(-1, 1, size),
        "normal": lambda g: g.normal(0, 1, size),
        "standard_normal float32": lambda g: g.standard_normal(size, dtype=np.float32),
        "exponential": lambda g: g.exponential(2, size),
        "standard_exponential": lambda g: g.standard_exponential(size),
        "gamma(0.5)": lambda g: g.gamma(0.5, 2, size),
        "gamma(3)": lambda g: g.gamma(3, 2, size),
        "beta": lambda g: g.beta(2, 3, size),
        "beta(0.5, 0.5)": lambda g: g.beta(0.5, 0.5, size),
        "chisquare": lambda g: g.chisquare(3, size),
        "noncentral_chisquare": lambda g: g.noncentral_chisquare(3, 1, size),
        "f": lambda g: g.f(3, 5, size),
        "noncentral_f": lambda g: g.noncentral_f(3, 5, 1, size),
        "standard_t": lambda g: g.standard_t(4, size),
        "standard_cauchy": lambda g: g.standard_cauchy(size),
        "laplace": lambda g: g.laplace(0, 1, size),
        "logistic": lambda g: g.logistic(0, 1, size),
        "lognormal": lambda g: g.lognormal(0, 1, size),
        "gumbel": lambda g: g.gumbel(0, 1, size),
        "pareto": lambda g: g.pareto(3, size),
        "power": lambda g: g.power(3, size),
        "rayleigh": lambda g: g.rayleigh(2, size),
        "weibull": lambda g: g.weibull(2, size),
        "wald": lambda g: g.wald(1, 2, size),
        "vonmises": lambda g: g.vonmises(0, 4, size),
        "triangular": lambda g: g.triangular(0, 1, 3, size),
        "binomial(10, 0.3)": lambda g: g.binomial(10, 0.3, size),
        "binomial(1000, 0.3)": lambda g: g.binomial(1000, 0.3, size),
        "negative_binomial": lambda g: g.negative_binomial(5, 0.4, size),
        "poisson(3)": lambda g: g.poisson(3, size),
        "poisson(100)": lambda g: g.poisson(100, size),
        "geometric": lambda g: g.geometric(0.3, size),
        "hypergeometric": lambda g: g.hypergeometric(20, 30, 15, size),
        "logseries": lambda g: g.logseries(0.6, size),
        "zipf": lambda g: g.zipf(3, size),
        "multinomial": lambda g: g.multinomial(20, shares, size // 3),
        "multivariate_normal": lambda g: g.multivariate_normal([0, 1], [[2, 0.5], [0.5, 1]], size // 2),
        "dirichlet": lambda g: g.dirichlet([1, 2, 3], size // 3),
        "choice": lambda g: g.choice(1000, size),
        "choice with p": lambda g: g.choice(3, size, p=shares),
        "choice without replacement": lambda g: g.choice(size, size // 2, replace=False),
        "permutation": lambda g: g.permutation(size),
        "permutation of rows": lambda g, rows={}: g.permutation(_rows(g, size, rows)),
        "permuted": lambda g, rows={}: g.permuted(_rows(g, size, rows), axis=1),
        "shuffle": lambda g, rows={}: g.shuffle(_rows(g, size, rows, flat=True)),
    }


def _rows(generator, size, kept, flat=False):
    """The array of the generator's library that is shuffled, made once."""
    if generator not in kept:
        module = np if isinstance(generator, np.random.Generator) else st
        array = module.arange(size, dtype=np.float64)
        kept[generator] = array if flat else module.reshape(array, (size // 100, 100))
    return kept[generator]


def timed(call, generator, wait):
    begin = time.perf_counter()
    result = call(generator)
    wait(result)
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default="", help="distributions with this in their name")
    parser.add_argument("--json", help="a file for the rows")
    options = parser.parse_args()
    result = Result()
    with st.connect() as session:
        result.devices = models(session.devices())
        device = next(iter(result.devices))
        ours, theirs = st.random.default_rng(1), np.random.default_rng(1)

        def wait(array):
            if isinstance(array, st.Array):
                session._flush((array._node,))
            session.synchronize()

        where = f"{', '.join(result.devices)}; NumPy {np.__version__}"
        print(f"{options.size} samples; {where}; ms, medians of {options.repeats}")
        print(f"{'':28}{'Stride':>10}{'NumPy':>10}{'ratio':>8}")
        for name, call in distributions(options.size).items():
            if options.only not in name:
                continue
            timed(call, ours, wait)
            turns = [(timed(call, ours, wait), timed(call, theirs, lambda _: None)) for _ in range(options.repeats)]
            mine, numpys = (Times.of(column) for column in zip(*turns))
            ratio = mine.median_s / numpys.median_s
            mark = "  slower" if ratio > 2 else ""
            print(f"{name:28}{mine.median_s * 1e3:10.2f}{numpys.median_s * 1e3:10.2f}{ratio:8.2f}{mark}", flush=True)
            key = "".join(letter if letter.isalnum() else "_" for letter in name)
            title = f"Python, random {name}, {options.size} samples"
            result.rows.append(Row(f"python_random/{key}/{device}", title, mine, "NumPy", numpys))
    if options.json:
        result.write(options.json)


if __name__ == "__main__":
    main()
