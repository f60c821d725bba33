"""Random numbers from a key and a counter, made on the device: same key, same numbers, on every device.

    rng = stride.random.default_rng(7)          # as numpy.random.default_rng(7), with other numbers
    x = rng.normal(size=(1000, 1000), dtype=stride.float32)
    stride.random.seed(7)                       # the functions of the module share one generator
    y = stride.random.rand(3, 4)

All of numpy.random's names are here, with NumPy's parameters and distributions; a seed gives other numbers than
NumPy's. A result without axes is an array, where NumPy gives a number. `rng.bytes` and the order of lists and NumPy
arrays are read from the device; nothing is drawn on the host."""

from typing import TYPE_CHECKING, Any

from stride._bit_generator import MT19937, PCG64, PCG64DXSM, SFC64, BitGenerator, Philox, Threefry
from stride._generator import Generator
from stride._random_state import RandomState

if TYPE_CHECKING:
    from numpy.random import SeedSequence

__all__ = [
    "MT19937",
    "PCG64",
    "PCG64DXSM",
    "SFC64",
    "BitGenerator",
    "Generator",
    "Philox",
    "RandomState",
    "SeedSequence",
    "Threefry",
    "beta",
    "binomial",
    "bytes",
    "chisquare",
    "choice",
    "default_rng",
    "dirichlet",
    "exponential",
    "f",
    "gamma",
    "geometric",
    "get_bit_generator",
    "get_state",
    "gumbel",
    "hypergeometric",
    "laplace",
    "logistic",
    "lognormal",
    "logseries",
    "multinomial",
    "multivariate_normal",
    "negative_binomial",
    "noncentral_chisquare",
    "noncentral_f",
    "normal",
    "pareto",
    "permutation",
    "poisson",
    "power",
    "rand",
    "randint",
    "randn",
    "random",
    "random_integers",
    "random_sample",
    "ranf",
    "rayleigh",
    "sample",
    "seed",
    "set_bit_generator",
    "set_state",
    "shuffle",
    "standard_cauchy",
    "standard_exponential",
    "standard_gamma",
    "standard_normal",
    "standard_t",
    "triangular",
    "uniform",
    "vonmises",
    "wald",
    "weibull",
    "zipf",
]


def __getattr__(name: str) -> Any:
    # NumPy's, imported at the first request, since few programs use it.
    if name == "SeedSequence":
        import numpy.random

        return numpy.random.SeedSequence
    from stride import _numpy_names

    return _numpy_names.missing_in("random", name)


def __dir__():
    return sorted({*globals(), "SeedSequence"})


def default_rng(seed=None) -> Generator:
    """A new generator, or the one that is given.

    Parameters: `seed`, an integer, integers, a numpy.random.SeedSequence or a BitGenerator; a Generator is
    returned as it is. Raises ValueError for a negative seed.

    Parameters
        seed: an integer, integers, a numpy.random.SeedSequence, a BitGenerator, or a Generator, which is returned as it
            is.
    Returns
        A Generator.
    Example
        >>> stride.random.default_rng(7).random(3).shape
        (3,)
    """
    return seed if isinstance(seed, Generator) else Generator(seed)


# The generator of the functions below. Its key is drawn at the first use.
_state = RandomState()


def get_bit_generator() -> BitGenerator:
    """The bit generator of the module's functions.

    Returns
        A BitGenerator.
    Example
        >>> stride.random.get_bit_generator().generator
        'philox'
    """
    return _state._bits


def set_bit_generator(bitgen) -> None:
    """Makes the module's functions read from another bit generator.

    Parameters: `bitgen`, a BitGenerator. Returns nothing. Raises TypeError for something else.

    >>> stride.random.set_bit_generator(stride.random.Philox(7))
    """
    if not isinstance(bitgen, BitGenerator):
        raise TypeError(f"a BitGenerator is needed, not {type(bitgen).__name__}")
    _state._bits = bitgen


beta = _state.beta
binomial = _state.binomial
bytes = _state.bytes
chisquare = _state.chisquare
choice = _state.choice
dirichlet = _state.dirichlet
exponential = _state.exponential
f = _state.f
gamma = _state.gamma
geometric = _state.geometric
get_state = _state.get_state
gumbel = _state.gumbel
hypergeometric = _state.hypergeometric
laplace = _state.laplace
logistic = _state.logistic
lognormal = _state.lognormal
logseries = _state.logseries
multinomial = _state.multinomial
multivariate_normal = _state.multivariate_normal
negative_binomial = _state.negative_binomial
noncentral_chisquare = _state.noncentral_chisquare
noncentral_f = _state.noncentral_f
normal = _state.normal
pareto = _state.pareto
permutation = _state.permutation
poisson = _state.poisson
power = _state.power
rand = _state.rand
randint = _state.randint
randn = _state.randn
random = _state.random
random_integers = _state.random_integers
random_sample = ranf = sample = _state.random_sample
rayleigh = _state.rayleigh
seed = _state.seed
set_state = _state.set_state
shuffle = _state.shuffle
standard_cauchy = _state.standard_cauchy
standard_exponential = _state.standard_exponential
standard_gamma = _state.standard_gamma
standard_normal = _state.standard_normal
standard_t = _state.standard_t
triangular = _state.triangular
uniform = _state.uniform
vonmises = _state.vonmises
wald = _state.wald
weibull = _state.weibull
zipf = _state.zipf
