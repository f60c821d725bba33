"""Random bits by key: Threefry-2x32 with 20 rounds, of Salmon and others, "Parallel random numbers: as
easy as 1, 2, 3", 2011, with JAX's counters
(jax_threefry_partitionable): element i of an array is of the block (i >> 32, i)."""

from typing import Any, Tuple

import numpy as np

import stride as _st
from stride import _jit
from stride._array import Array

# Rotations and the constant of the key schedule, of the paper's section 3.3.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry(first_key: Any, second_key: Any, high: Any, low: Any) -> Tuple[Any, Any]:
    """Two words of 32 bits for each counter; of NumPy's arrays or of Stride's, all of uint32."""
    uint = np.uint32
    keys = (first_key, second_key, first_key ^ second_key ^ uint(_PARITY))
    x, y = high + keys[0], low + keys[1]
    for i in range(5):
        for distance in _ROTATIONS[i % 2]:
            x = x + y
            y = ((y << uint(distance)) | (y >> uint(32 - distance))) ^ x
        x, y = x + keys[(i + 1) % 3], y + keys[(i + 2) % 3] + uint(i + 1)
    return x, y


def _blocks(first_key: Any, second_key: Any, size: int) -> Tuple[Any, Any]:
    counters = _st.arange(size, dtype=np.uint32)
    return threefry(first_key, second_key, _st.zeros(size, dtype=np.uint32), counters)


_compiled = _jit.jit(_blocks, static_argnums=2)


def words(key: Any, size: int) -> Tuple[Any, Any]:
    """Both words of the first `size` blocks of a key: (2,) words of uint32."""
    if size >= 2**32:
        raise ValueError("an array of random numbers has at most 2**32 - 1 elements")
    if isinstance(key, Array):
        host = key._node.cached() if not key.session._is_trace else None
        if host is None or size > 64:
            return _compiled(key[0], key[1], size)
        key = host
    with np.errstate(over="ignore"):
        counters = np.arange(size, dtype=np.uint32)
        return threefry(key[0], key[1], np.zeros_like(counters), counters)
