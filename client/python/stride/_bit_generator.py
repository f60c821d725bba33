"""Sources of random words: a key and the number of the next block, with NumPy's names."""

import threading
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from stride import _errors
from stride.v1 import operation_pb2 as pb

__all__ = ["MT19937", "PCG64", "PCG64DXSM", "SFC64", "BitGenerator", "Philox", "Threefry"]

_Random = pb.Creation.Random
# By the name of a generator: its number in the contract, words in a block.
GENERATORS = {"philox": (_Random.GENERATOR_PHILOX_4X32, 4), "threefry": (_Random.GENERATOR_THREEFRY_2X32, 2)}
MASK = 2**64 - 1


class BitGenerator:
    """A stream of random words, which depend on a key, a stream's number and a counter alone.

    Parameters: `seed`, what numpy.random.SeedSequence takes (an integer, integers, or a SeedSequence), is hashed
    into the key; by default it is taken from the system. `key`, `stream` and `counter` are numbers of 64 bits; a
    seed and a key exclude each other. Several threads may read from one. Raises ValueError for a number out of
    range.

    Parameters
        seed: an integer, integers or a SeedSequence, hashed into the key; None takes one from the system.
        key: the key itself, 64 bits.
        stream: the stream's number, 64 bits.
        counter: the number of the first block, 64 bits.
    Example
        >>> stride.random.Philox(7).state["bit_generator"]
        'Philox'
    """

    generator = "philox"

    def __init__(self, seed=None, *, key: Optional[int] = None, stream: int = 0, counter: int = 0):
        if seed is not None and key is not None:
            raise ValueError("a seed or a key, not both")
        if stream and self.generator != "philox":
            raise ValueError("only philox has streams; give threefry another key")
        for name, value in (("key", key), ("stream", stream), ("counter", counter)):
            if value is not None and not 0 <= value <= MASK:
                raise ValueError(f"{name} is a number of 64 bits: {value}")
        self.stream = stream
        self.counter = counter  # number of the next block
        self._key = key
        self._sequence: Any = None if seed is None else _sequence(seed)
        self._lock = threading.Lock()
        if self._sequence is not None:
            self.key  # noqa: B018, a seed that is none is an error here

    def __repr__(self) -> str:
        return f"<stride.random.{type(self).__name__} key={self.key:#x} counter={self.counter}>"

    @property
    def key(self) -> int:
        """The key, 64 bits: with the counter it determines the numbers.

        Example
            >>> st.random.Philox(key=5).key
            5
        """
        if self._key is None:
            self._key = int(self.seed_seq.generate_state(1, np.uint64)[0])
        return self._key

    @property
    def seed_seq(self):
        """The numpy.random.SeedSequence of the seed; where a key was given, one of the key.

        Example
            >>> st.random.Philox(7).seed_seq.entropy
            7
        """
        if self._sequence is None:
            self._sequence = np.random.SeedSequence(self._key)
        return self._sequence

    @property
    def lock(self):
        """Held while blocks are taken.

        Example
            >>> with st.random.Philox(7).lock:
            ...     pass
            ...
        """
        return self._lock

    @property
    def state(self) -> Dict[str, Any]:
        """A dictionary of the name, key, stream and counter. After an assignment the numbers continue from
        that state. Raises ValueError for another generator's.

        >>> rng = stride.random.Philox(7)
        >>> rng.state = rng.state
        """
        with self._lock:
            return {
                "bit_generator": type(self).__name__,
                "state": {"key": self.key, "stream": self.stream, "counter": self.counter},
            }

    @state.setter
    def state(self, value: Dict[str, Any]) -> None:
        if not isinstance(value, dict):
            raise TypeError(f"a state is a dictionary, not {type(value).__name__}")
        if value.get("bit_generator") != type(self).__name__:
            raise ValueError(f"the state is of {value.get('bit_generator')!r}, not of {type(self).__name__!r}")
        numbers = value.get("state")
        if not isinstance(numbers, dict) or not {"key", "stream", "counter"} <= set(numbers):
            raise ValueError("a state has a key, a stream and a counter; NumPy's generators have another one")
        self.restore(int(numbers["key"]), int(numbers["stream"]), int(numbers["counter"]))

    def restore(self, key: int, stream: int, counter: int) -> None:
        """Sets the state that determines the words.

        Parameters
            key: the key.
            stream: the stream's number.
            counter: the number of the next block.
        Returns
            None.
        Raises
            ValueError for a number out of range.
        Example
            >>> generator = st.random.Philox(7)
            >>> generator.restore(key=5, stream=0, counter=3)
            >>> generator.key
            5
        """
        for name, value in (("key", key), ("stream", stream), ("counter", counter)):
            if not 0 <= value <= MASK:
                raise ValueError(f"{name} is a number of 64 bits: {value}")
        with self._lock:
            if key != self._key:
                self._sequence = None
            self._key, self.stream, self.counter = key, stream, counter

    def take(self, num_blocks: int) -> Tuple[int, int, int]:
        """Key, counter and stream of blocks that nothing else reads.

        Parameters
            num_blocks: how many blocks.
        Returns
            A tuple of three int.
        Raises
            ValueError where the counter has no such number of blocks left.
        Example
            >>> st.random.Philox(key=5).take(3)
            (5, 0, 0)
        """
        with self._lock:
            counter = self.counter
            self.counter = (counter + num_blocks) & MASK
            return self.key, counter, self.stream

    def spawn(self, n_children: int) -> List["BitGenerator"]:
        """Generators independent of this one and of each other.

        Parameters
            n_children: how many.
        Returns
            A list of generators of the same class.
        Raises
            TypeError for a generator that was made of a key.
        Example
            >>> len(stride.random.Philox(7).spawn(2))
            2
        """
        return [type(self)(one) for one in self.seed_seq.spawn(n_children)]

    def jumped(self, jumps: int = 1) -> "BitGenerator":
        """A generator of the same key that begins so many streams later. Raises ValueError where the generator has no
        streams.

        Parameters
            jumps: how many streams later.
        Returns
            A generator of the same class.
        Example
            >>> stride.random.Philox(7).jumped().stream
            1
        """
        return type(self)(key=self.key, stream=(self.stream + jumps) & MASK)

    def random_raw(self, size=None):
        """The next words, uint64, as an array of the shape `size`.

        Parameters
            size: the shape, an integer or a tuple; None for one word.
        Returns
            An array of uint64.
        Raises
            ValueError for a negative extent.
        Example
            >>> stride.random.Philox(7).random_raw(3).shape
            (3,)
        """
        from stride._generator import Generator

        return Generator(self).bits(size)

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state):
        vars(self).update(state)
        self._lock = threading.Lock()


def _sequence(seed):
    if isinstance(seed, np.random.SeedSequence):
        return seed
    from stride._array import Array

    if isinstance(seed, Array):
        seed = seed.to_numpy()[()]  # a number, where it has no axes
    elif isinstance(seed, (list, tuple)):
        seed = [one.to_numpy()[()] if isinstance(one, Array) else one for one in seed]
    return np.random.SeedSequence(seed)


class Philox(BitGenerator):
    """Philox-4x32-10 of Random123: the default.

    Parameters
        seed: an integer, integers or a SeedSequence, hashed into the key; None takes one from the system.
        key: the key itself, 64 bits.
        stream: the stream's number, 64 bits.
        counter: the number of the first block, 64 bits.
    Example
        >>> stride.random.Generator(stride.random.Philox(7)).random(2).shape
        (2,)
    """


class Threefry(BitGenerator):
    """Threefry-2x32-20 of Random123, which has no streams: the distributions beyond uniform and normal numbers read
    from Philox.

    Example
        >>> st.random.Generator(st.random.Threefry(7)).random(2).shape
        (2,)
    """

    generator = "threefry"


_NAMED = """NumPy's name of a generator: takes its seed. The numbers are Philox's, of which devices make many at once;
    NumPy's {name} makes each out of the one before.

    >>> import {public}
    >>> {public}.Generator({public}.{name}(7)).random(2).shape
    (2,)
    """


def _named(name: str, module: str = __name__, public: str = "stride.random"):
    return type(name, (Philox,), {"__module__": module, "__doc__": _NAMED.format(name=name, public=public)})


MT19937, PCG64, PCG64DXSM, SFC64 = map(_named, ("MT19937", "PCG64", "PCG64DXSM", "SFC64"))
_BY_NAME = {"philox": Philox, "threefry": Threefry}


def bit_generator(seed, name: Optional[str], key: Optional[int], stream: int, counter: int) -> BitGenerator:
    """The one given, or of a generator of NumPy's its seed, or a new one."""
    if isinstance(seed, BitGenerator) or hasattr(seed, "capsule"):
        if key is not None or stream or counter or name is not None:
            raise ValueError("a bit generator has its key, stream and counter itself")
        if isinstance(seed, BitGenerator):
            return seed
        if not isinstance(getattr(seed, "seed_seq", None), np.random.SeedSequence):
            raise _errors.InvalidArgument(
                f"{type(seed).__name__} has no SeedSequence that a generator of the service could begin with"
            )
        return Philox(seed.seed_seq)
    name = name or "philox"
    if name not in _BY_NAME:
        raise ValueError(f"generator is one of {', '.join(_BY_NAME)}, not {name!r}")
    return _BY_NAME[name](seed, key=key, stream=stream, counter=counter)
