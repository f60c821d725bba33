"""Random numbers in kernels, with the generator and the names of Numba's `cuda.random`: xoroshiro128+, one state for
each thread.

    states = create_xoroshiro128p_states(threads, seed=1)

    @cuda.jit
    def fill(states, out):
        i = cuda.grid(1)
        out[i] = xoroshiro128p_uniform_float32(states, i)

States are an array of uint64 and shape (n, 2). State i begins 2**64 numbers after state i - 1. The numbers are Numba's
own."""

import math

import numpy as np

from stride._python_kernel import device_function

__all__ = [
    "create_xoroshiro128p_states",
    "init_xoroshiro128p_states",
    "xoroshiro128p_dtype",
    "xoroshiro128p_jump",
    "xoroshiro128p_next",
    "xoroshiro128p_normal_float32",
    "xoroshiro128p_normal_float64",
    "xoroshiro128p_uniform_float32",
    "xoroshiro128p_uniform_float64",
]

xoroshiro128p_dtype = np.dtype(np.uint64)
_MASK = (1 << 64) - 1
_JUMP = (0xBEAC0467EBA5FACB, 0xD86B048B86AA9922)
_TWO_PI = 2 * math.pi


def _rotated(x, bits):
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@device_function
def xoroshiro128p_next(states, index):
    """The next 64 bits of a thread's state; for kernels.

    Parameters
        states: the states of all threads, uint64 of shape (n, 2).
        index: the place of the thread's state.
    Returns
        A uint64.
    Example
        >>> from stride import cuda
        >>> @cuda.jit
        ... def fill(states, out):
        ...     out[cuda.grid(1)] = cuda.random.xoroshiro128p_next(states, cuda.grid(1))
        ...
        >>> out = st.zeros(2, st.uint64)
        >>> fill[1, 2](cuda.random.create_xoroshiro128p_states(2, seed=1), out)
        >>> int(out[0]) != int(out[1])
        True
    """
    s0 = states[index, 0]
    s1 = states[index, 1]
    result = s0 + s1
    s1 = s1 ^ s0
    states[index, 0] = _rotated(s0, 55) ^ s1 ^ (s1 << np.uint64(14))
    states[index, 1] = _rotated(s1, 36)
    return result


@device_function
def xoroshiro128p_jump(states, index):
    """Advances a thread's state by 2**64 numbers; for kernels.

    Parameters
        states: the states of all threads, uint64 of shape (n, 2).
        index: the place of the thread's state.
    Returns
        None.
    Example
        >>> from stride import cuda
        >>> @cuda.jit
        ... def advance(states):
        ...     cuda.random.xoroshiro128p_jump(states, cuda.grid(1))
        ...
        >>> advance[1, 2](cuda.random.create_xoroshiro128p_states(2, seed=1))
    """
    a = np.uint64(0)
    b = np.uint64(0)
    for word in _JUMP:
        for bit in range(64):
            if (np.uint64(word) >> np.uint64(bit)) & np.uint64(1) != np.uint64(0):
                a = a ^ states[index, 0]
                b = b ^ states[index, 1]
            xoroshiro128p_next(states, index)
    states[index, 0] = a
    states[index, 1] = b


@device_function
def xoroshiro128p_uniform_float64(states, index):
    """A float64 from 0, included, to 1, excluded; for kernels.

    Parameters
        states: the states of all threads, uint64 of shape (n, 2).
        index: the place of the thread's state.
    Returns
        A float64.
    Example
        >>> from stride import cuda
        >>> @cuda.jit
        ... def fill(states, out):
        ...     out[cuda.grid(1)] = cuda.random.xoroshiro128p_uniform_float64(states, cuda.grid(1))
        ...
        >>> out = st.zeros(2, st.float64)
        >>> fill[1, 2](cuda.random.create_xoroshiro128p_states(2, seed=1), out)
        >>> bool(st.all(st.isfinite(out)))
        True
    """
    return np.float64(xoroshiro128p_next(states, index) >> np.uint64(11)) * (1.0 / (1 << 53))


@device_function
def xoroshiro128p_uniform_float32(states, index):
    """A float32 from 0, included, to 1; for kernels.

    Parameters
        states: the states of all threads, uint64 of shape (n, 2).
        index: the place of the thread's state.
    Returns
        A float32.
    Example
        >>> from stride import cuda
        >>> @cuda.jit
        ... def fill(states, out):
        ...     out[cuda.grid(1)] = cuda.random.xoroshiro128p_uniform_float32(states, cuda.grid(1))
        ...
        >>> out = st.zeros(2, st.float32)
        >>> fill[1, 2](cuda.random.create_xoroshiro128p_states(2, seed=1), out)
        >>> bool(st.all(st.isfinite(out)))
        True
    """
    return np.float32(xoroshiro128p_uniform_float64(states, index))


@device_function
def xoroshiro128p_normal_float32(states, index):
    """A float32 of the standard normal distribution, by the transformation of Box and Muller; for kernels.

    Parameters
        states: the states of all threads, uint64 of shape (n, 2).
        index: the place of the thread's state.
    Returns
        A float32.
    Example
        >>> from stride import cuda
        >>> @cuda.jit
        ... def fill(states, out):
        ...     out[cuda.grid(1)] = cuda.random.xoroshiro128p_normal_float32(states, cuda.grid(1))
        ...
        >>> out = st.zeros(2, st.float32)
        >>> fill[1, 2](cuda.random.create_xoroshiro128p_states(2, seed=1), out)
        >>> bool(st.all(st.isfinite(out)))
        True
    """
    u1 = xoroshiro128p_uniform_float32(states, index)
    u2 = xoroshiro128p_uniform_float32(states, index)
    return math.sqrt(np.float32(-2.0) * math.log(u1)) * math.cos(np.float32(_TWO_PI) * u2)


@device_function
def xoroshiro128p_normal_float64(states, index):
    """A float64 of the standard normal distribution, by the transformation of Box and Muller; for kernels. As in
    Numba two float32 make the number.

    Parameters
        states: the states of all threads, uint64 of shape (n, 2).
        index: the place of the thread's state.
    Returns
        A float64.
    Example
        >>> from stride import cuda
        >>> @cuda.jit
        ... def fill(states, out):
        ...     out[cuda.grid(1)] = cuda.random.xoroshiro128p_normal_float64(states, cuda.grid(1))
        ...
        >>> out = st.zeros(2, st.float64)
        >>> fill[1, 2](cuda.random.create_xoroshiro128p_states(2, seed=1), out)
        >>> bool(st.all(st.isfinite(out)))
        True
    """
    u1 = np.float64(xoroshiro128p_uniform_float32(states, index))
    u2 = np.float64(xoroshiro128p_uniform_float32(states, index))
    return math.sqrt(-2.0 * math.log(u1)) * math.cos(_TWO_PI * u2)


# --- states, on the host ---


def _step(s0: np.ndarray, s1: np.ndarray) -> tuple:
    """Each state's next."""
    s1 = s1 ^ s0
    return _rotated(s0, 55) ^ s1 ^ (s1 << np.uint64(14)), _rotated(s1, 36)


def _jumped(s0: np.ndarray, s1: np.ndarray) -> tuple:
    """Each state, 2**64 numbers on."""
    a, b = np.zeros_like(s0), np.zeros_like(s1)
    for word in _JUMP:
        for bit in range(64):
            if word >> bit & 1:
                a, b = a ^ s0, b ^ s1
            s0, s1 = _step(s0, s1)
    return a, b


def _apply(images: tuple, s0: np.ndarray, s1: np.ndarray) -> tuple:
    """A linear map over bits: `images` are the states to which the 128 single bits go."""
    a, b = np.zeros_like(s0), np.zeros_like(s1)
    for i in range(128):
        words, bit = (s0, i) if i < 64 else (s1, i - 64)
        chosen = np.uint64(0) - ((words >> np.uint64(bit)) & np.uint64(1))  # all ones, or none
        a ^= chosen & images[0][i]
        b ^= chosen & images[1][i]
    return a, b


def _first(seed: int) -> tuple:
    """The two words of the first state: as in Numba both are what splitmix64 makes of the seed."""
    x = (seed + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    word = np.array([x ^ (x >> 31)], np.uint64)
    return word, word


def _states(n: int, seed: int, subsequence_start: int) -> np.ndarray:
    s0, s1 = _first(seed)
    bits = np.uint64(1) << np.arange(64, dtype=np.uint64)
    zeros = np.zeros(64, np.uint64)
    # A jump is a linear map over bits; applied to itself it is a jump of twice as many numbers.
    with np.errstate(over="ignore"):
        images = _jumped(np.concatenate([bits, zeros]), np.concatenate([zeros, bits]))
        skip, power = subsequence_start, images
        while skip:
            if skip & 1:
                s0, s1 = _apply(power, s0, s1)
            power, skip = _apply(power, *power), skip >> 1
        while len(s0) < n:
            more = _apply(images, s0, s1)
            s0, s1 = np.concatenate([s0, more[0]]), np.concatenate([s1, more[1]])
            images = _apply(images, *images)
    return np.stack([s0[:n], s1[:n]], axis=1)


def create_xoroshiro128p_states(n: int, seed: int, subsequence_start: int = 0, stream=0):
    """States for n threads, of which the first begins `subsequence_start` times 2**64 numbers after what the seed
    gives: uint64 of shape (n, 2).

    Parameters
        n: the number of states.
        seed: an integer.
        subsequence_start: where the first state begins.
        stream: accepted: operations run in order whatever the stream.
    Returns
        An array of uint64 of shape (n, 2).
    Example
        >>> from stride import cuda
        >>> cuda.random.create_xoroshiro128p_states(4, seed=1).shape
        (4, 2)
    """
    from stride import _conversion

    return _conversion.asarray(_states(n, seed, subsequence_start))


def init_xoroshiro128p_states(states, seed: int, subsequence_start: int = 0, stream=0) -> None:
    """Sets states that exist, as `create_xoroshiro128p_states` makes new ones.

    Parameters
        states: the states of all threads, uint64 of shape (n, 2).
        seed: an integer.
        subsequence_start: where the first state begins.
        stream: accepted: operations run in order whatever the stream.
    Returns
        None.
    Example
        >>> from stride import cuda
        >>> states = cuda.random.create_xoroshiro128p_states(4, seed=1)
        >>> cuda.random.init_xoroshiro128p_states(states, seed=2)
    """
    states[...] = _states(states.shape[0], seed, subsequence_start)
