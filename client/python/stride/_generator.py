"""The generator of random numbers: NumPy's methods, with the numbers made on the device."""

import functools
import math
from typing import Callable, List, Optional

import numpy as np

from stride import (
    _bit_generator, _choices, _conversion, _creation, _dtypes, _errors, _host_arrays, _local, _multivariate, _parameters
    as _p, _read_ahead, _sampling,
)
from stride._array import Array, host_array, wrap
from stride._bit_generator import GENERATORS, BitGenerator
from stride._distributions import Distributions
from stride._element_numbers import number_of
from stride._graph import record
from stride._numbers import Number
from stride._session import current_session
from stride._ufunc import _give
from stride.v1 import array_pb2, operation_pb2 as pb

_Random = pb.Creation.Random
_NONE = type(None)
_MOST_INTEGER = 2**62  # greatest bound that needs no check


class Generator(Distributions):
    """A stream of random numbers; every call takes the next ones. Same key, same numbers, on every device; they are not
    NumPy's.

    Parameters: `seed` is hashed into a key, as numpy.random.SeedSequence does; without one it is taken from the system.
    A BitGenerator is read from as it is, of NumPy's own the seed is taken. `key` is the key itself (64 bits).
    `generator` is `philox` or `threefry`. Generators with different keys, or of `philox` with different `stream`s, are
    independent of each other. `counter` is the number of the first block.

    `bits`, `random`, `uniform`, `integers` and `normal` read the generator's words in order. Every other
    distribution gives each element a separate stream, always from Philox, and uses only IEEE's basic
    operations.

    In every method `size` is the shape of the result, an integer or a tuple, by default the one that the parameters
    broadcast to; without any the result is an array without axes, where NumPy gives a number. Parameters are numbers or
    arrays of real numbers, of the host or the service. Those that the host has are checked, and ValueError is raised at
    once for one outside its domain; for those that only the device has the element is NaN, or -1 among counts. The
    probabilities of `choice` and `multinomial` are checked in any case. `dtype` is float64 or
    float32.

    >>> stride.random.Generator(7).normal(size=(2, 3), dtype=stride.float32).dtype
    dtype('float32')
    """

    def __init__(
        self,
        seed=None,
        *,
        key: Optional[int] = None,
        generator: Optional[str] = None,
        stream: int = 0,
        counter: int = 0,
    ):
        self._bits = _bit_generator.bit_generator(seed, generator, key, stream, counter)
        self._ahead = _read_ahead.ReadAhead()

    def __repr__(self) -> str:
        return f"<stride.random.{type(self).__name__} {self.generator} key={self.key:#x} counter={self.counter}>"

    # --- the source of words ---

    @property
    def bit_generator(self) -> BitGenerator:
        """The source of the words. Its `state` can be read and assigned.

        >>> stride.random.Generator(7).bit_generator.state["bit_generator"]
        'Philox'
        """
        return self._bits

    @property
    def key(self) -> int:
        """The 64 bits of the key.

        Example
            >>> st.random.Generator(key=5).key
            5
        """
        return self._bits.key

    @property
    def generator(self) -> str:
        """`philox` or `threefry`.

        Example
            >>> st.random.Generator(7).generator
            'philox'
        """
        return self._bits.generator

    @property
    def stream(self) -> int:
        """The number of the stream.

        Example
            >>> st.random.Generator(7, stream=2).stream
            2
        """
        return self._bits.stream

    @property
    def counter(self) -> int:
        """The number of the next block.

        Example
            >>> st.random.Generator(7).counter
            0
        """
        return self._bits.counter

    @counter.setter
    def counter(self, value: int) -> None:
        self._bits.restore(self.key, self.stream, value)

    def spawn(self, n_children: int) -> List["Generator"]:
        """Generators independent of this one and of each other.

        Parameters: `n_children`, how many. Returns a list of them. Raises ValueError for a negative number.

        >>> len(stride.random.Generator(7).spawn(2))
        2
        """
        return [type(self)(one) for one in self._bits.spawn(_p.count_of(n_children, "n_children"))]

    def _create(
        self, shape, dtype: np.dtype, num_words: int, finish: Callable, is_normal: bool = False, **distribution
    ) -> Array:
        """`finish` makes a number of the distribution, on the host, of Python's integer of the words that it reads, or
        of the standard normal number: by operations that give the bits that a device gives."""
        if shape == ():
            return self._number(dtype, num_words, finish, lambda: distribution, is_normal)
        in_block = GENERATORS[self.generator][1] // num_words
        count = math.prod(shape)
        state = self._bits.take(-(-count // in_block))
        if _local.has_places and 0 < count <= _read_ahead.MAX_ELEMENTS and _local.is_host_place(current_session()):
            return self._of_loop(state, shape, count, in_block, dtype, distribution)
        return self._created(state, shape, dtype, **distribution)

    def _of_loop(self, state: tuple, shape: tuple, count: int, in_block: int, dtype: np.dtype, distribution) -> Array:
        """An array that a loop of the host draws (`_local.py`), of elements that are read ahead."""
        session = current_session()
        kind = (dtype, *[(name, one.SerializeToString()) for name, one in distribution.items()])
        elements = self._ahead.elements(
            kind, state, count, in_block,
            lambda state, count: self._created(state, (count,), dtype, **distribution),
        )  # fmt: skip
        array = _host_arrays.array_of(elements.reshape(shape), (session, session.device))
        assert array is not None  # it is small
        return array

    def _number(
        self, dtype: np.dtype, num_words: int, finish: Callable, distribution: Callable, is_normal: bool = False
    ) -> Array:
        """An array without axes. `distribution()` gives what `_create` takes as `distribution`."""
        state = self._bits.take(1)
        kind = ("normal", dtype) if is_normal else ("bits", num_words)
        known = self._ahead.known(kind, state)
        if known is not None:
            return number_of(finish(known), current_session())
        in_block = GENERATORS[self.generator][1] // num_words

        def make(state: tuple, count: int) -> Array:
            # The first number of each block.
            if is_normal:
                return self._created(state, (count * in_block,), dtype, normal=_Random.Normal())[::in_block]
            words = _dtypes.uint64 if num_words == 2 else _dtypes.uint32
            return self._created(state, (count * in_block,), words, bits=_Random.Bits())[::in_block]

        return self._ahead.number(kind, state, lambda: self._created(state, (), dtype, **distribution()), make, finish)

    def _created(self, state: tuple, shape: tuple, dtype: np.dtype, **distribution) -> Array:
        key, counter, stream = state
        message = _Random(
            spec=array_pb2.ArraySpec(data_type=_dtypes.NUMBERS[dtype], shape=shape),
            generator=GENERATORS[self.generator][0],
            key=key,
            counter=counter,
            counter_high=stream,
            **distribution,
        )

        def build(flush, node, operands):
            flush.operation(node.handle, node.origin, creation=pb.Creation(random=message))

        return wrap(record(current_session(), shape, dtype, build, ()))

    def _state(self, shape: tuple) -> tuple:
        """Key, counter and stream for rows of this shape, each of which has a separate stream."""
        return self._bits.take(math.prod(shape))

    def _sample(self, name: str, size, dtype, *parameters) -> Array:
        shape = _p.shape_of(size, *parameters)
        dtype = _dtypes.dtype_of(dtype)
        computed = dtype if dtype.kind == "i" else _dtypes.float64
        dtype = dtype if dtype == computed else _p.real_type(dtype)

        def make(state: tuple, shape: tuple) -> Array:
            return _sampling.sample(name, shape, computed, *state, *parameters).astype(dtype, copy=False)

        if shape == () and _p.are_numbers(*parameters):
            kind, state = (name, dtype, *map(str, parameters)), self._state(shape)
            return self._ahead.number(kind, state, lambda: make(state, ()), lambda at, count: make(at, (count,)))
        return make(self._state(shape), shape)

    # --- words, uniform and normal numbers ---

    def bits(self, size=None, dtype=np.uint64) -> Array:
        """The generator's words.

        Parameters: `size`; `dtype`, uint64 or uint32. Returns an array of it. Raises DataTypeMismatch for another type.

        >>> stride.random.Generator(7).bits(4).dtype
        dtype('uint64')
        """
        dtype = _dtypes.dtype_of(dtype)
        if dtype not in (_dtypes.uint32, _dtypes.uint64):
            raise _errors.DataTypeMismatch(f"bits are uint32 or uint64, not {dtype}")
        return self._create(_p.shape_of(size), dtype, dtype.itemsize // 4, dtype.type, bits=_Random.Bits())

    def bytes(self, length: int) -> bytes:
        """Random bytes on the host.

        Parameters: `length`, how many. Returns Python's bytes: one round trip. Raises ValueError for a negative number.

        >>> len(stride.random.Generator(7).bytes(10))
        10
        """
        length = _p.count_of(length, "length")
        return self.bits(-(-length // 4), np.uint32).to_numpy().astype("<u4", copy=False).tobytes()[:length]

    def random(self, size=None, dtype=np.float64, out: Optional[Array] = None) -> Array:
        """Uniform numbers in [0, 1).

        Parameters: `size`; `dtype`; `out`, an array of this type and shape to be filled. Returns an array of `dtype`,
        or `out`. Raises DataTypeMismatch for a type that is no float.

        >>> stride.random.Generator(7).random((2, 3)).shape
        (2, 3)
        """
        if (size is None or type(size) is tuple and not size) and out is None and dtype is np.float64:  # in a loop
            return self._number(_dtypes.float64, 2, _unit(_dtypes.float64), lambda: {"uniform": _Random.Uniform()})
        dtype = _p.real_type(dtype)
        shape = _p.shape_of(_p.target(size, dtype, out))
        made = self._create(shape, dtype, _words(dtype), _unit(dtype), uniform=_Random.Uniform())
        return made if out is None else _give(made, out, None, "same_kind")

    def uniform(self, low=0.0, high=1.0, size=None, dtype=np.float64) -> Array:
        """Uniform numbers in [low, high).

        Parameters: `low` and `high`; `size`; `dtype`. Returns an array of `dtype`. Raises ValueError where high is
        below low, OverflowError where their difference is not finite.

        >>> stride.random.Generator(7).uniform(-1.0, 1.0, 4).shape
        (4,)
        """
        low, high = _p.parameter(low, "low"), _p.parameter(high, "high")
        if not isinstance(low, Array) and not isinstance(high, Array):
            with np.errstate(over="ignore", invalid="ignore"):
                difference = np.subtract(high, low)
            if not np.isfinite(difference).all():
                raise OverflowError("high - low is not finite")
            if np.any(np.signbit(difference)):
                raise ValueError("high - low < 0")
        dtype = _p.real_type(dtype)
        if _p.are_numbers(low, high):
            unit, real = _unit(dtype), dtype.type
            return self._create(
                _p.shape_of(size),
                dtype,
                _words(dtype),
                lambda word: real(low) + (real(high) - real(low)) * unit(word),
                uniform=_Random.Uniform(low=low, high=high),
            )
        return (low + (high - low) * self.random(_p.shape_of(size, low, high), dtype)).astype(dtype, copy=False)

    def standard_normal(self, size=None, dtype=np.float64, out: Optional[Array] = None) -> Array:
        """Normal numbers of mean 0 and deviation 1.

        Parameters: `size`; `dtype`; `out`, an array of this type and shape to be filled. Returns an array of `dtype`,
        or `out`.

        >>> stride.random.Generator(7).standard_normal(5).shape
        (5,)
        """
        dtype = _p.real_type(dtype)
        shape = _p.shape_of(_p.target(size, dtype, out))
        made = self._create(shape, dtype, _words(dtype), dtype.type, True, normal=_Random.Normal())
        return made if out is None else _give(made, out, None, "same_kind")

    def normal(self, loc=0.0, scale=1.0, size=None, dtype=np.float64) -> Array:
        """Normal numbers.

        Parameters: `loc`, the mean; `scale`, the deviation, not negative; `size`; `dtype`. Returns an array of `dtype`.
        Raises ValueError for a negative scale.

        >>> stride.random.Generator(7).normal(10.0, 2.0, (2, 2)).shape
        (2, 2)
        """
        loc, scale, dtype = _p.parameter(loc, "loc"), _p.non_negative(scale, "scale"), _p.real_type(dtype)
        if _p.are_numbers(loc, scale) and math.isfinite(loc) and 0 < scale < math.inf:
            real = dtype.type
            return self._create(
                _p.shape_of(size),
                dtype,
                _words(dtype),
                lambda z: real(loc) + real(scale) * real(z),
                True,
                normal=_Random.Normal(mean=loc, deviation=scale),
            )
        return (loc + scale * self.standard_normal(_p.shape_of(size, loc, scale), dtype)).astype(dtype, copy=False)

    def integers(self, low, high=None, size=None, dtype=np.int64, endpoint: bool = False) -> Array:
        """Uniform integers in [low, high), or [0, low) where high is not given.

        Parameters: `low` and `high`, integers or arrays of them, of which those of the service are read; `size`;
        `dtype`, any type of integers, or bool; with `endpoint` high itself is included. Returns an array of `dtype`.
        Raises ValueError where there is no integer in between or one does not fit the type.

        >>> stride.random.Generator(7).integers(1, 7, 100).dtype
        dtype('int64')
        """
        if size is None and dtype is np.int64 and type(low) is int and type(high) in (int, _NONE) and not endpoint:
            first, last = (0, low) if high is None else (low, high)
            if -_MOST_INTEGER <= first < last <= _MOST_INTEGER:  # in a loop
                return self._number(_dtypes.int64, 2, _integer(first, last), lambda: {"integers": _bounds(first, last)})
        dtype = _dtypes.dtype_of(dtype)
        if dtype.kind not in "biu":
            raise _errors.DataTypeMismatch(
                f"integers are of a type of integers, not of {dtype}", reason="DATA_TYPE_MISMATCH"
            )
        has_low = high is not None
        low, high = (low, high) if has_low else (0, low)
        low, high = (_bound(one, name) for one, name in ((low, "low"), (high, "high")))
        if np.ndim(low) or np.ndim(high):
            return self._integers_between(low, high, size, dtype, endpoint)
        high = high + 1 if endpoint else high
        if low >= high and size is not None and 0 in _p.shape_of(size):
            return _creation.empty(_p.shape_of(size), dtype)
        if low >= high:
            order = "high < 0" if endpoint else "high <= 0"
            raise ValueError(f"there are no integers from {low} to below {high}" + ("" if has_low else f": {order}"))
        if dtype == _dtypes.bool:
            if low < 0 or high > 2:
                raise ValueError(f"{low} to {high - 1} are not all within {dtype}")
            return self.integers(low, high, size, np.uint8).astype(dtype)
        info = np.iinfo(dtype)
        if low < info.min or high - 1 > info.max:
            raise ValueError(f"{low} to {high - 1} are not all within {dtype}")
        if (low, high) in ((0, 2**64), (-(2**63), 2**63)):
            return self.bits(size).astype(dtype, copy=False)  # all that 64 bits have
        if high == 2**64:  # which is no bound that a request can have
            return self.integers(0, high - low, size, dtype) + dtype.type(low)
        return self._create(
            _p.shape_of(size), dtype, 2, _integer(low, high, dtype.type), integers=_bounds(low, high)
        )

    def _integers_between(self, low, high, size, dtype: np.dtype, endpoint: bool) -> Array:
        """Uniform integers between bounds in arrays of Python's integers."""
        least, greatest = (0, 1) if dtype == _dtypes.bool else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        last = high if endpoint else np.subtract(high, 1, dtype=object)
        if np.any(np.greater(low, last)):
            raise ValueError("there are no integers between some of the bounds: low >= high")
        if np.any(np.less(low, least)) or np.any(np.greater(last, greatest)):
            raise ValueError(f"some bounds are not within {dtype}")
        shape = _p.shape_of(size, *(np.asarray(one) for one in (low, last)))
        if np.size(low) and np.size(last) and len(set(np.ravel(low))) == len(set(np.ravel(last))) == 1:
            # As of numbers, so that a generator gives the same for the same bounds.
            return self.integers(int(np.ravel(low)[0]), int(np.ravel(last)[0]), shape, dtype, endpoint=True)
        first, span = (np.asarray(one % 2**64).astype(np.uint64) for one in (low, last - low + 1))
        both = np.broadcast_shapes(first.shape, span.shape)
        least_of, span_of = (_conversion.asarray(np.broadcast_to(one, both)) for one in (first, span))
        return _sampling.integers(shape, least_of, span_of, self._state(shape)).astype(dtype, copy=False)

    # --- order and choice ---

    def permutation(self, x, axis: int = 0):
        """The numbers below `x`, or a copy of an array, in random order.

        Parameters: `x`, an integer, or an array of any type; `axis`, along which an array is shuffled. Returns an array
        of int64, or of the type and shape of `x`; what the service has no type for, such as strings, stays a NumPy
        array. Raises AxisError for an axis that there is not.

        >>> sorted(stride.random.Generator(7).permutation(4).tolist())
        [0, 1, 2, 3]
        """
        return _choices.permutation(self, x, axis)

    def shuffle(self, x, axis: int = 0) -> None:
        """Puts an array, or a list, in random order, in place.

        Parameters: `x`, an array of the service or the host, or a list; `axis`, along which, of a list 0. Returns
        nothing. Raises TypeError for what cannot be written.

        >>> x = stride.arange(4)
        >>> stride.random.Generator(7).shuffle(x)
        >>> sorted(x.tolist())
        [0, 1, 2, 3]
        """
        _choices.shuffle(self, x, axis)

    def permuted(self, x, axis: Optional[int] = None, out: Optional[Array] = None) -> Array:
        """A copy of an array with each slice along an axis in a separate random order.

        Parameters: `x`, an array; `axis`, by default all elements change places; `out`, an array of this type and shape
        to be filled, which may be `x`. Returns an array of the type and shape of `x`, or `out`. Raises AxisError for an
        axis that there is not.

        >>> stride.random.Generator(7).permuted(stride.ones((3, 4)), axis=1).shape
        (3, 4)
        """
        return _choices.permuted(self, x, axis, out)

    def choice(self, a, size=None, replace: bool = True, p=None, axis: int = 0, shuffle: bool = True):
        """Elements of an array along an axis, or numbers below `a`.

        Parameters: `a`, an integer, or an array of any type; `size`; `replace`, whether one may be chosen several
        times; `p`, a probability for each, by default all are equal; `axis`; `shuffle`, which NumPy has for speed,
        changes nothing. Returns an array of int64, or of the type of `a`; what the service has no type for, such as
        strings, stays a NumPy array. Raises ValueError where there is too little to choose from, or `p` is no
        distribution.

        >>> stride.random.Generator(7).choice(5, 3, replace=False).shape
        (3,)
        """
        return _choices.choice(self, a, size, replace, p, axis)

    # --- multivariate distributions ---

    def dirichlet(self, alpha, size=None, dtype=np.float64) -> Array:
        """Rows of numbers that add up to 1.

        Parameters: `alpha`, a number that is not negative for each of the k columns; `size`, by default (); `dtype`.
        Returns an array of `dtype` and the shape (*size, k). Raises ValueError for a negative alpha.

        >>> stride.random.Generator(7).dirichlet([1.0, 2.0], 3).shape
        (3, 2)
        """
        return _multivariate.dirichlet(self, alpha, size, _p.real_type(dtype))

    def multinomial(self, n, pvals, size=None) -> Array:
        """How often each of k outcomes comes in `n` trials.

        Parameters: `n`, integers; `pvals`, of shape (..., k), the probabilities, the last of which is what the others
        leave; `size`, by default what `n` and the rows of `pvals` broadcast to. Returns an array of int64 and the shape
        (*size, k). Raises ValueError where probabilities are outside [0, 1] or add up to more than 1.

        >>> stride.random.Generator(7).multinomial(20, [0.5, 0.3, 0.2], 3).shape
        (3, 3)
        """
        return _multivariate.multinomial(self, n, pvals, size)

    def multivariate_hypergeometric(self, colors, nsample: int, size=None, method: str = "marginals") -> Array:
        """How many of each color a draw without replacement has.

        Parameters: `colors`, k integers, how many there are of each; `nsample`, how many are drawn; `size`, by default
        (); `method`, NumPy's `marginals` or `count`, changes nothing. Returns an array of int64 and the shape (*size,
        k). Raises ValueError where more are drawn than there are.

        >>> stride.random.Generator(7).multivariate_hypergeometric([10, 20, 30], 12, 3).shape
        (3, 3)
        """
        return _multivariate.hypergeometric(self, colors, nsample, size, method)

    def multivariate_normal(
        self, mean, cov, size=None, check_valid: str = "warn", tol: float = 1e-8, *, method: str = "svd"
    ) -> Array:
        """Rows of normal numbers of a mean and a covariance.

        Parameters: `mean`, of shape (k,); `cov`, of shape (k, k), symmetric and without negative eigenvalues; `size`,
        by default (); `check_valid` says what follows where it is not, within `tol`: `warn`, `raise` or `ignore`, of
        which the first two read one value; `method`, how the covariance is decomposed: `svd`, `eigh` or `cholesky`.
        Returns an array of float64 and the shape (*size, k). Raises ValueError for shapes that do not fit, LinAlgError
        where cholesky meets a covariance that is not positive definite.

        >>> stride.random.Generator(7).multivariate_normal([0.0, 1.0], [[2.0, 1.0], [1.0, 3.0]], 4).shape
        (4, 2)
        """
        return _multivariate.normal(self, mean, cov, size, check_valid, tol, method)


def _bound(value, name: str):
    """A bound of integers: Python's integer, or a host array of them."""
    host = host_array(value)
    if host.dtype.kind not in "biuf" or host.dtype.kind == "f" and not np.all(host == np.floor(host)):
        if host.dtype != object or not all(isinstance(one, int) for one in host.ravel().tolist()):
            raise _errors.DataTypeMismatch(f"{name} is of integers, not of {host.dtype}", reason="DATA_TYPE_MISMATCH")
    return (
        np.array([int(one) for one in host.ravel().tolist()], dtype=object).reshape(host.shape)
        if host.ndim
        else int(host[()])
    )


def _words(dtype: np.dtype) -> int:
    return 2 if dtype.itemsize == 8 else 1


def _integer(low: int, high: int, real: type = np.int64) -> Callable:
    """A function of Python's integer of two words: the integer in [low, high) (`Creation.Random.Integers`)."""
    span = high - low
    return lambda words: real(low + (span * words >> 64))


def _bounds(low: int, high: int) -> _Random.Integers:
    return _Random.Integers(low=Number(low).to_proto(), high=Number(high).to_proto())


# By type: bits of the word, and those that a number in [0, 1) is made of.
_UNIT_BITS = {_dtypes.float64: (64, 53), _dtypes.float32: (32, 24)}


@functools.lru_cache(maxsize=None)
def _unit(dtype: np.dtype) -> Callable:
    """A function of Python's integer of the words: the uniform number in [0, 1) (`Creation.Random.Uniform`)."""
    (width, bits), real = _UNIT_BITS[dtype], dtype.type
    return lambda word: real((word >> (width - bits)) * 2.0**-bits)
