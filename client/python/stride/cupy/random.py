"""CuPy's `random`: stride.random, whatever it has, with CuPy's `dtype=` of the functions of its first generation, its
bit generators' names, and the state that its functions share (`get_random_state`, `set_random_state`,
`reset_states`). The numbers are Philox's, not cuRAND's."""

import functools
import inspect
from typing import Any

import numpy as _numpy

from stride import random as _own
from stride._bit_generator import Philox as _Philox
from stride._bit_generator import _named
from stride._generator import Generator as _Generator
from stride._random_state import RandomState as _RandomState

_WITH_DTYPE = set("""beta binomial chisquare dirichlet exponential f gamma geometric gumbel hypergeometric laplace
logistic lognormal logseries multivariate_normal negative_binomial noncentral_chisquare noncentral_f normal pareto
poisson power rand randn random random_sample ranf rayleigh sample standard_cauchy standard_exponential standard_gamma
standard_normal standard_t triangular uniform vonmises wald weibull zipf""".split())
# CuPy makes floats of these alone: any other type is refused, as CuPy does.
_FLOATS = (_numpy.dtype(_numpy.float32), _numpy.dtype(_numpy.float64))
_INTEGERS = set("binomial geometric hypergeometric logseries negative_binomial poisson zipf".split())


def _with_dtype(function, name: str):
    # Without `self`. CuPy has `dtype` after them, NumPy's own functions have none or have it there.
    parameters = list(inspect.signature(function).parameters.values())[1:]
    count = None if any(one.kind is one.VAR_POSITIONAL for one in parameters) else len(parameters)

    @functools.wraps(function)
    def draw(self, *arguments: Any, **kwargs: Any):
        from stride import _conversion

        if count is not None and len(arguments) == count + 1:
            *arguments, kwargs["dtype"] = arguments  # type: ignore[assignment]
        dtype = kwargs.pop("dtype", None)
        if dtype is not None:
            dtype = _numpy.dtype(dtype)
            if name not in _INTEGERS and dtype not in _FLOATS:
                raise TypeError(f"random.{name} makes float32 and float64, not {dtype}")
        values = function(self, *arguments, **kwargs)
        return values if dtype is None else _conversion.asarray(values).astype(dtype, copy=False)

    return draw


class RandomState(_RandomState):
    """stride.random.RandomState, whose methods take CuPy's `dtype=`. `method`, cuRAND's kind of generator, changes
    nothing: the numbers are Philox's.

    Parameters
        seed: an integer or integers; None for a seed of the system's.
        method: accepted.
    Example
        >>> import stride.cupy as cp
        >>> cp.random.RandomState(7).normal(size=2, dtype=cp.float32).dtype
        dtype('float32')
    """

    def __init__(self, seed=None, method=None):
        super().__init__(_seed(seed))

    def seed(self, seed=None) -> None:
        """Begins again with a seed, as stride.random.RandomState.seed; a seed that is a float raises TypeError.

        Parameters
            seed: an integer or integers; None for a seed of the system's.
        Returns
            None.
        Example
            >>> import stride.cupy as cp
            >>> state = cp.random.RandomState(1)
            >>> state.seed(7)
            >>> bool(state.random() == cp.random.RandomState(7).random())
            True
        """
        super().seed(_seed(seed))


class Generator(_Generator):
    """stride.random.Generator, whose bit generator can be replaced, as CuPy's can.

    Example
        >>> import stride.cupy as cp
        >>> cp.random.Generator(cp.random.XORWOW(7)).random(2).shape
        (2,)
    """

    @property
    def bit_generator(self):
        """The source of the words.

        Example
            >>> import stride.cupy as cp
            >>> type(cp.random.default_rng(7).bit_generator).__name__
            'Philox'
        """
        return self._bits

    @bit_generator.setter
    def bit_generator(self, value) -> None:
        if not isinstance(value, _own.BitGenerator):
            raise TypeError(f"a BitGenerator is needed, not {type(value).__name__}")
        self._bits = value


def default_rng(seed=None) -> Generator:
    """A new generator of a seed, or of a bit generator; a Generator is returned as it is.

    Parameters
        seed: an integer or integers, a bit generator or a Generator; None for a seed of the system's.
    Returns
        A Generator.
    Example
        >>> import stride.cupy as cp
        >>> cp.random.default_rng(7).random(2).shape
        (2,)
    """
    return seed if isinstance(seed, Generator) else Generator(seed)


def _seed(seed):
    if isinstance(seed, (bool, _numpy.bool_)):
        return int(seed)
    if isinstance(seed, (float, complex, _numpy.inexact)):
        raise TypeError(f"a seed is an integer or integers, not {type(seed).__name__}")
    return seed


for _name in _WITH_DTYPE:
    if hasattr(_RandomState, _name):
        setattr(RandomState, _name, _with_dtype(getattr(_RandomState, _name), _name))

XORWOW, MRG32k3a = (_named(one, __name__, __name__) for one in ("XORWOW", "MRG32k3a"))
Philox4x3210 = type("Philox4x3210", (_Philox,), {"__module__": __name__, "__doc__": _Philox.__doc__})

_state = RandomState()


def get_random_state() -> RandomState:
    """The RandomState whose methods the module's functions are.

    Returns
        A RandomState.
    Example
        >>> import stride.cupy as cp
        >>> isinstance(cp.random.get_random_state(), cp.random.RandomState)
        True
    """
    return _state


def set_random_state(rs) -> None:
    """Makes the module's functions methods of another RandomState.

    Parameters
        rs: a RandomState.
    Returns
        None.
    Raises
        TypeError for another object.
    Example
        >>> import stride.cupy as cp
        >>> cp.random.set_random_state(cp.random.RandomState(7))
    """
    global _state
    if not isinstance(rs, RandomState):
        raise TypeError(f"Random state must be an instance of RandomState. Actual: {type(rs)}")
    _state = rs


def reset_states() -> None:
    """Gives the module's functions a new RandomState, whose seed is the system's.

    Returns
        None.
    Example
        >>> import stride.cupy as cp
        >>> cp.random.reset_states()
    """
    global _state
    _state = RandomState()


def __getattr__(name: str):
    if name.startswith("_") or not hasattr(_own, name):
        from stride.cupy import _names

        raise AttributeError(_names.missing_in("random", name))
    if not hasattr(_RandomState, name):
        return {"ranf": _method("random_sample"), "sample": _method("random_sample")}.get(name) or getattr(_own, name)
    return _method(name)


@functools.lru_cache(maxsize=None)
def _method(name: str):
    @functools.wraps(getattr(RandomState, name))
    def call(*arguments: Any, **kwargs: Any):
        return getattr(_state, name)(*arguments, **kwargs)

    return call


__all__ = [
    *_own.__all__, "MRG32k3a", "Philox4x3210", "XORWOW", "get_random_state", "reset_states", "set_random_state",
]  # fmt: skip


def __dir__():
    return list(__all__)
