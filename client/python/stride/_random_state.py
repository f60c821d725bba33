"""NumPy's legacy generator: its names and signatures over a Generator."""

import operator
import warnings
from typing import Optional

import numpy as np

from stride import _dtypes
from stride import _parameters as _p
from stride._array import Array
from stride._bit_generator import MASK, Philox
from stride._generator import Generator


class RandomState(Generator):
    """NumPy's legacy class, whose methods are numpy.random's functions, with all methods of Generator. The
    numbers are not NumPy's.

    Parameters: `seed`, as Generator's. Its methods may be called by several threads.

    Parameters
        seed: an integer, integers or a SeedSequence; None takes one from the system.
        key: the key itself, 64 bits.
        generator: `philox` or `threefry`.
        stream: the stream's number.
        counter: the number of the first block.
    Example
        >>> stride.random.RandomState(7).rand(2, 3).shape
        (2, 3)
    """

    def seed(self, seed=None) -> None:
        """Begins again with a seed: what follows is the same for the same seed.

        Parameters: `seed`, an integer, or integers; by default it is taken from the system. Returns nothing. Raises
        ValueError for a negative integer.

        >>> state = stride.random.RandomState()
        >>> state.seed(7)
        """
        new = Philox(seed)
        self._bits.restore(new.key, 0, 0)
        self._bits._sequence = new.seed_seq

    def rand(self, *dims: int) -> Array:
        """Uniform numbers in [0, 1).

        Parameters: the extents of the result, which has no axes without them. Returns an array of float64. Raises
        ValueError for a negative extent.

        Parameters
            dims: the extents of the result.
        Returns
            An array of float64.
        Raises
            ValueError for a negative extent.
        Example
            >>> stride.random.RandomState(7).rand(2, 3).shape
            (2, 3)
        """
        return self.random(dims)

    def randn(self, *dims: int) -> Array:
        """Normal numbers of mean 0 and deviation 1.

        Parameters: the extents of the result, which has no axes without them. Returns an array of float64. Raises
        ValueError for a negative extent.

        Parameters
            dims: the extents of the result.
        Returns
            An array of float64.
        Raises
            ValueError for a negative extent.
        Example
            >>> stride.random.RandomState(7).randn(2, 3).shape
            (2, 3)
        """
        return self.standard_normal(dims)

    def randint(self, low, high=None, size=None, dtype=np.int64) -> Array:
        """Uniform integers in [low, high), or [0, low) where high is not given.

        Parameters: `low` and `high`, integers or arrays of them; `size`, the result's shape; `dtype`, any type of
        integers, or bool. Returns an array of `dtype`. Raises ValueError where there is no integer in between or one
        does not fit the type.

        >>> stride.random.RandomState(7).randint(0, 10, 5).shape
        (5,)
        """
        return self.integers(low, high, size, dtype)

    def random_integers(self, low: int, high: Optional[int] = None, size=None) -> Array:
        """Uniform integers in [low, high], or [1, low] where high is not given. NumPy's older name: use `randint`.

        Parameters: `low` and `high`, integers; `size`, the result's shape. Returns an array of int64. Raises ValueError
        where there is no integer in between.

        >>> stride.random.RandomState(7).random_integers(6, size=5).shape
        (5,)
        """
        low, high = (1, low) if high is None else (low, high)
        warnings.warn("random_integers is deprecated: use randint(low, high + 1)", DeprecationWarning, stacklevel=2)
        return self.integers(low, high, size, endpoint=True)

    def uniform(self, low=0.0, high=1.0, size=None, dtype=np.float64) -> Array:
        """Uniform numbers between `low` and `high`, whichever is the greater, as NumPy's older functions have it.

        Parameters: `low` and `high`, numbers or arrays; `size`, the result's shape, by default theirs; `dtype`, as
        CuPy's. Returns an array of `dtype`. Raises OverflowError where their difference is not finite.

        >>> stride.random.RandomState(7).uniform(-1.0, 1.0, 4).shape
        (4,)
        """
        low, high = _p.parameter(low, "low"), _p.parameter(high, "high")
        if _p.are_numbers(low, high) and low > high:
            with np.errstate(over="ignore"):
                if not np.isfinite(np.subtract(high, low)):
                    raise OverflowError("Range exceeds valid bounds")
            return (low + (high - low) * self.random(size, dtype)).astype(dtype, copy=False)
        return super().uniform(low, high, size, dtype)

    def random_sample(self, size=None) -> Array:
        """Uniform numbers in [0, 1).

        Parameters: `size`, the result's shape. Returns an array of float64. Raises ValueError for a negative extent.

        >>> stride.random.RandomState(7).random_sample((2, 3)).shape
        (2, 3)
        """
        return self.random(size)

    def tomaxint(self, size=None) -> Array:
        """Uniform integers in [0, 2^63).

        Parameters: `size`, the result's shape. Returns an array of int64. Raises ValueError for a negative extent.

        >>> stride.random.RandomState(7).tomaxint(2).dtype
        dtype('int64')
        """
        return self.integers(0, 2**63, size, _dtypes.int64)

    def get_state(self, legacy: bool = True):
        """The current state, as `set_state` takes it.

        Parameters: `legacy`, whether as a tuple, else as a dictionary. Returns ("Philox", [key, stream], counter, 0,
        0.0), or the state of the bit generator.

        >>> stride.random.RandomState(7).get_state()[0]
        'Philox'
        """
        state = self._bits.state
        if not legacy:
            return state
        numbers = state["state"]
        return (
            state["bit_generator"],
            np.array([numbers["key"], numbers["stream"]], np.uint64),
            numbers["counter"],
            0,
            0.0,
        )

    def set_state(self, state) -> None:
        """Goes on from a state of `get_state`.

        Parameters: `state`, the tuple or the dictionary. Returns nothing. Raises ValueError for a state of another
        generator, as NumPy's are, TypeError for what is none.

        >>> state = stride.random.RandomState(7)
        >>> state.set_state(state.get_state())
        """
        if isinstance(state, (tuple, list)):
            if len(state) < 3 or np.shape(state[1]) != (2,):
                raise ValueError(
                    "the state is not one of stride.random.get_state(), but such as NumPy's Mersenne Twister has; "
                    "seed with a number instead"
                )
            state = {
                "bit_generator": state[0],
                "state": {
                    "key": int(state[1][0]) & MASK,
                    "stream": int(state[1][1]) & MASK,
                    "counter": operator.index(state[2]),
                },
            }
        self._bits.state = state
