"""Random numbers from a key and a counter, made on the device: same key, same numbers, on every device.

    rng = stride.random.Generator(7)            # as numpy.random.default_rng(7), with other numbers
    x = rng.normal(size=(1000, 1000), dtype=stride.float32)

`bits`, `random`, `uniform`, `integers` and `normal` read the generator's words in order. Every other distribution gives each element a stream of its own, from
Philox whatever the generator is, and computes in IEEE's basic operations alone."""

import math
from typing import List, Optional

import numpy as np

from stride import _dtypes, _elementwise as _e, _errors, _inference, _manipulation, _routines, _sampling
from stride._array import Array, host_array, node_of, wrap
from stride._creation import _shape, number_of
from stride._graph import Number, record
from stride._session import current_session
from stride.v1 import array_pb2, operation_pb2 as pb

__all__ = ["Generator", "default_rng", "shuffle"]

_Random = pb.Creation.Random
# Number in the contract, words in a block.
_GENERATORS = {"philox": (_Random.GENERATOR_PHILOX_4X32, 4), "threefry": (_Random.GENERATOR_THREEFRY_2X32, 2)}
_MASK = 2**64 - 1


class Generator:
    """A stream of random numbers; every call takes the next ones. Not to be used by several threads at once.

    `seed` is hashed into a key, as numpy.random.SeedSequence does; without one it is taken from the system. `key` is the key itself (64 bits).
    Generators with different keys, or of `philox` with different `stream`s, are independent of each other."""

    def __init__(self, seed=None, *, key: Optional[int] = None, generator: str = "philox", stream: int = 0, counter: int = 0):
        if generator not in _GENERATORS:
            raise ValueError(f"generator is one of {', '.join(_GENERATORS)}, not {generator!r}")
        if seed is not None and key is not None:
            raise ValueError("a seed or a key, not both")
        if stream and generator != "philox":
            raise ValueError("only philox has streams; give threefry another key")
        for name, value in (("key", key), ("stream", stream), ("counter", counter)):
            if value is not None and not 0 <= value <= _MASK:
                raise ValueError(f"{name} is a number of 64 bits: {value}")
        self._sequence = np.random.SeedSequence(seed) if key is None else None
        self.key = int(self._sequence.generate_state(1, np.uint64)[0]) if key is None else key
        self.generator = generator
        self.stream = stream
        self.counter = counter  # of the next block

    def __repr__(self) -> str:
        return f"<stride.random.Generator {self.generator} key={self.key:#x} counter={self.counter}>"

    def spawn(self, count: int) -> List["Generator"]:
        """Generators independent of this one and of each other."""
        sequence = self._sequence or np.random.SeedSequence(self.key)
        self._sequence = sequence
        return [Generator(key=int(one.generate_state(1, np.uint64)[0]), generator=self.generator) for one in sequence.spawn(count)]

    # --- with the same bits everywhere ---

    def _create(self, shape, dtype: np.dtype, num_words: int, **distribution) -> Array:
        number, words_in_block = _GENERATORS[self.generator]
        message = _Random(spec=array_pb2.ArraySpec(data_type=_dtypes.NUMBERS[dtype], shape=shape), generator=number, key=self.key,
                          counter=self.counter, counter_high=self.stream, **distribution)
        self.counter = (self.counter + -(-math.prod(shape) * num_words // words_in_block)) & _MASK

        def build(flush, node, operands):
            flush.operation(node.handle, node.origin, creation=pb.Creation(random=message))

        return wrap(record(current_session(), shape, dtype, build, ()))

    def bits(self, size=None, dtype=np.uint64) -> Array:
        """The generator's words, as uint32 or uint64."""
        dtype = _dtypes.dtype_of(dtype)
        if dtype not in (_dtypes.uint32, _dtypes.uint64):
            raise _errors.DataTypeMismatch(f"bits are uint32 or uint64, not {dtype}")
        return self._create(_size(size), dtype, dtype.itemsize // 4, bits=_Random.Bits())

    def random(self, size=None, dtype=np.float64) -> Array:
        """Uniform in [0, 1)."""
        dtype = _float(dtype)
        return self._create(_size(size), dtype, _words(dtype), uniform=_Random.Uniform())

    def uniform(self, low=0.0, high=1.0, size=None, dtype=np.float64) -> Array:
        if _are_numbers(low, high):
            dtype = _float(dtype)
            return self._create(_size(size), dtype, _words(dtype), uniform=_Random.Uniform(low=low, high=high))
        return low + (_array(high) - low) * self.random(_size(size, low, high), dtype)

    def standard_normal(self, size=None, dtype=np.float64) -> Array:
        dtype = _float(dtype)
        return self._create(_size(size), dtype, _words(dtype), normal=_Random.Normal())

    def normal(self, loc=0.0, scale=1.0, size=None, dtype=np.float64) -> Array:
        if _are_numbers(loc, scale):
            if scale < 0:
                raise ValueError("scale must not be negative")
            dtype = _float(dtype)
            return self._create(_size(size), dtype, _words(dtype), normal=_Random.Normal(mean=loc, deviation=scale))
        return loc + scale * self.standard_normal(_size(size, loc, scale), dtype)

    def integers(self, low: int, high: Optional[int] = None, size=None, dtype=np.int64, endpoint: bool = False) -> Array:
        """In [low, high), or [0, low) where high is not given; with `endpoint` high itself too."""
        low, high = (0, low) if high is None else (low, high)
        low, high = (number_of(one, "a bound of integers") for one in (low, high))
        high = high + 1 if endpoint else high
        dtype = _dtypes.dtype_of(dtype)
        if low >= high:
            raise ValueError(f"there are no integers from {low} to below {high}")
        if dtype == _dtypes.bool:
            return self.integers(low, high, size, np.uint8).astype(dtype)
        info = np.iinfo(dtype)
        if low < info.min or high - 1 > info.max:
            raise ValueError(f"{low} to {high - 1} are not all within {dtype}")
        if (low, high) in ((0, 2**64), (-(2**63), 2**63)):
            words = self.bits(size)  # all that 64 bits have
            return words.astype(dtype, copy=False)
        integers = _Random.Integers()
        integers.low.CopyFrom(Number(int(low)).to_proto())
        integers.high.CopyFrom(Number(int(high)).to_proto())
        return self._create(_size(size), dtype, 2, integers=integers)

    # --- made of these ---

    def permutation(self, x, axis: int = 0) -> Array:
        """A number's range, or a copy of an array, in random order along an axis."""
        if isinstance(x, (int, np.integer)):
            return _routines.argsort(self.bits(int(x)))
        x = _array(x)
        axis = _inference.normal_axis(axis, x.ndim)
        return _routines.take(x, _routines.argsort(self.bits(x.shape[axis])), axis=axis)

    def shuffle(self, x: Array, axis: int = 0) -> None:
        """In place, along an axis."""
        if not isinstance(x, Array):
            raise TypeError(f"shuffle changes a stride array, not {type(x).__name__}; numpy.random shuffles NumPy's")
        x[...] = self.permutation(x, axis)

    def choice(self, a, size=None, replace: bool = True, p=None, axis: int = 0) -> Array:
        """Of the elements of `a` along an axis, or of a number's range; `p` are their probabilities."""
        is_range = isinstance(a, (int, np.integer))
        a = int(a) if is_range else _array(a)
        count = a if is_range else a.shape[_inference.normal_axis(axis, a.ndim)]
        shape = _size(size)
        wanted = math.prod(shape)
        if count == 0 and wanted:
            raise ValueError("there is nothing to choose from")
        if not replace and wanted > count:
            raise ValueError(f"{wanted} of {count} cannot be chosen without replacement")
        if p is None:
            places = self.integers(0, count, shape) if replace else self.permutation(count)[:wanted].reshape(shape)
        else:
            p = _array(p).astype(_dtypes.float64, copy=False)
            if p.shape != (count,):
                raise ValueError(f"{count} probabilities are needed, not {p.shape}")
            values = p.to_numpy()
            if not (values >= 0).all() or abs(values.sum() - 1) > 1e-8:
                raise ValueError("probabilities are not negative and add up to 1")
            if replace:
                running = values.cumsum()
                places = _routines.searchsorted(_array(running / running[-1]), self.random(shape), side="right")
                places = _e.minimum(places, count - 1)
            else:
                if wanted > (values > 0).sum():
                    raise ValueError("fewer probabilities are above 0 than are to be chosen")
                # The smallest of exponential variables with these rates (Efraimidis and Spirakis, 2006).
                keys = _e.where(p > 0, self.standard_exponential(count) / p, math.inf)
                places = _routines.argsort(keys)[:wanted].reshape(shape)
        return _manipulation.copy(places) if is_range else _routines.take(a, places, axis=axis)

    def standard_exponential(self, size=None, dtype=np.float64) -> Array:
        return self._sample("exponential", size, dtype)

    def exponential(self, scale=1.0, size=None, dtype=np.float64) -> Array:
        return self.standard_exponential(_size(size, scale), dtype) * scale

    def laplace(self, loc=0.0, scale=1.0, size=None, dtype=np.float64) -> Array:
        return loc + scale * self._sample("laplace", _size(size, loc, scale), dtype)

    def logistic(self, loc=0.0, scale=1.0, size=None, dtype=np.float64) -> Array:
        return loc + scale * self._sample("logistic", _size(size, loc, scale), dtype)

    def gumbel(self, loc=0.0, scale=1.0, size=None, dtype=np.float64) -> Array:
        return loc + scale * self._sample("gumbel", _size(size, loc, scale), dtype)

    def standard_cauchy(self, size=None, dtype=np.float64) -> Array:
        return self._sample("cauchy", size, dtype)

    def lognormal(self, mean=0.0, sigma=1.0, size=None, dtype=np.float64) -> Array:
        return self._sample("lognormal", size, dtype, mean, _checked(sigma, "sigma"))

    def rayleigh(self, scale=1.0, size=None, dtype=np.float64) -> Array:
        return scale * _e.sqrt(2 * self.standard_exponential(_size(size, scale), dtype))

    def weibull(self, a, size=None, dtype=np.float64) -> Array:
        return self._sample("weibull", size, dtype, _checked(a, "a"))

    def pareto(self, a, size=None, dtype=np.float64) -> Array:
        return self._sample("pareto", size, dtype, _checked(a, "a"))

    def power(self, a, size=None, dtype=np.float64) -> Array:
        return self._sample("power", size, dtype, _checked(a, "a"))

    def geometric(self, p, size=None) -> Array:
        """The number of trials up to the first success, int64."""
        return self._sample("geometric", size, _dtypes.int64, _checked(p, "p", 1.0))

    def triangular(self, left, mode, right, size=None, dtype=np.float64) -> Array:
        u = self.random(_size(size, left, mode, right), dtype)
        rising = left + _e.sqrt(u * ((right - left) * (mode - left)))
        falling = right - _e.sqrt((1 - u) * ((right - left) * (right - mode)))
        return _e.where(u * (right - left) < mode - left, rising, falling)

    # --- from a stream for each element ---

    def _sample(self, name: str, size, dtype, *parameters) -> Array:
        shape = _size(size, *parameters)
        dtype = _dtypes.dtype_of(dtype)
        computed = dtype if dtype.kind == "i" else _dtypes.float64
        counter, self.counter = self.counter, (self.counter + math.prod(shape)) & _MASK
        values = _sampling.sample(name, shape, computed, self.key, counter, self.stream, *parameters)
        return values if computed == dtype else values.astype(_float(dtype), copy=False)

    def standard_gamma(self, shape, size=None, dtype=np.float64) -> Array:
        return self._sample("gamma", size, dtype, _checked(shape, "shape"))

    def gamma(self, shape, scale=1.0, size=None, dtype=np.float64) -> Array:
        return self.standard_gamma(shape, _size(size, shape, scale), dtype) * scale

    def chisquare(self, df, size=None, dtype=np.float64) -> Array:
        return self.standard_gamma(df / 2, size, dtype) * 2

    def beta(self, a, b, size=None, dtype=np.float64) -> Array:
        shape = _size(size, a, b)
        first, second = self.standard_gamma(a, shape), self.standard_gamma(b, shape)
        return (first / (first + second)).astype(_float(dtype), copy=False)

    def f(self, dfnum, dfden, size=None, dtype=np.float64) -> Array:
        shape = _size(size, dfnum, dfden)
        return (self.chisquare(dfnum, shape) * dfden / (self.chisquare(dfden, shape) * dfnum)).astype(_float(dtype), copy=False)

    def standard_t(self, df, size=None, dtype=np.float64) -> Array:
        shape = _size(size, df)
        return self.standard_normal(shape, dtype) / _e.sqrt(self.chisquare(df, shape, dtype) / df)

    def dirichlet(self, alpha, size=None, dtype=np.float64) -> Array:
        """The last axis is alpha's, and adds up to 1."""
        alpha = host_array(alpha).astype(float)
        parts = self.standard_gamma(alpha, (*(_size(size) if size is not None else ()), *alpha.shape), dtype)
        total = parts
        while total.shape[-1] > 1:  # by halves: a reduction's order is a device's own
            half = (total.shape[-1] + 1) // 2
            total = _manipulation.concat([total[..., : total.shape[-1] - half] + total[..., half:], total[..., total.shape[-1] - half : half]], axis=-1)
        return parts / total

    def poisson(self, lam=1.0, size=None) -> Array:
        """int64."""
        return self._sample("poisson", size, _dtypes.int64, _checked(lam, "lam"))

    def binomial(self, n, p, size=None) -> Array:
        """int64."""
        return self._sample("binomial", size, _dtypes.int64, _checked(n, "n"), _checked(p, "p", 1.0))

    def negative_binomial(self, n, p, size=None) -> Array:
        """Failures before the n-th success, int64."""
        shape = _size(size, n, p)
        return self.poisson(self.standard_gamma(n, shape) * ((1 - p) / p), shape)


def default_rng(seed=None) -> Generator:
    """NumPy's name of it."""
    return seed if isinstance(seed, Generator) else Generator(seed)


_shuffler: Optional[Generator] = None


def shuffle(x: Array) -> None:
    """Puts the rows of an array in random order, in place. `numpy.random.shuffle` cannot: it swaps rows by assignment.
    The rows of these arrays are views, so some rows would be lost."""
    global _shuffler
    if _shuffler is None:
        _shuffler = Generator()
    _shuffler.shuffle(x)


def _array(x) -> Array:
    return x if isinstance(x, Array) else wrap(node_of(x))


def _are_numbers(*values) -> bool:
    return all(isinstance(one, (int, float, np.integer, np.floating)) for one in values)


def _checked(value, name: str, most: float = math.inf):
    """Numbers and arrays of the host within 0 and `most`; those of the service are not looked at."""
    if not isinstance(value, Array) and not ((host_array(value) >= 0) & (host_array(value) <= most)).all():
        raise ValueError(f"{name} is not negative" + (f" and at most {most:g}" if most < math.inf else "") + f": {value}")
    return value


def _size(size, *parameters) -> tuple:
    """`size`, or the shape that the parameters broadcast to."""
    for one in parameters:
        if isinstance(one, np.ndarray):
            host_array(one)  # refuses masked ones
    if size is not None:
        return _shape(size)
    return _inference.broadcast((), *(one.shape for one in parameters if isinstance(one, (Array, np.ndarray))))


def _float(dtype) -> np.dtype:
    dtype = _dtypes.dtype_of(dtype)
    if dtype.kind != "f":
        raise _errors.DataTypeMismatch(f"such numbers are floats, not {dtype}")
    return dtype


def _words(dtype: np.dtype) -> int:
    return 2 if dtype.itemsize == 8 else 1
