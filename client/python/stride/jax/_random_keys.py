"""Keys of random numbers: made, split and folded, with JAX's bits."""

import math
import operator
from typing import Any, Sequence, Union

import numpy as np

import stride as _st
from stride import tree_util
from stride.jax import _config, _keys, numpy as jnp
from stride.jax._array import Array, as_jax

__all__ = [
    "KeyArray", "PRNGKey", "clone", "fold_in", "key", "key_data", "key_impl", "split", "wrap_key_data",
]


@tree_util.register_pytree_node_class
class KeyArray:
    """Keys, of two words of 32 bits each.

    Example
        >>> from stride import jax
        >>> jax.random.key(0).shape
        ()
    """

    def __init__(self, words: Any):
        self._words = words

    @property
    def shape(self) -> tuple:
        return self._words.shape[:-1]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self) -> str:
        return "key<fry>"

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> "KeyArray":
        return KeyArray(as_jax(self._words)[index])

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))])

    def reshape(self, *shape: Any) -> "KeyArray":
        """The keys in another shape.

        Example
            >>> from stride import jax
            >>> jax.random.split(jax.random.key(0), 4).reshape(2, 2).shape
            (2, 2)
        """
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return KeyArray(jnp.reshape(self._words, (*shape, 2)))

    def tree_flatten(self) -> tuple:
        return (self._words,), None

    @classmethod
    def tree_unflatten(cls, _: Any, children: Any) -> "KeyArray":
        return cls(*children)

    def __repr__(self) -> str:
        return f"Array({self.shape}, dtype=key<fry>) overlaying:\n{self._words}"


def _words_of(key: Any) -> Any:
    words = key._words if isinstance(key, KeyArray) else key
    if not isinstance(words, (_st.Array, np.ndarray)) or np.dtype(words.dtype) != np.uint32 or words.shape[-1:] != (2,):
        raise TypeError(f"unexpected PRNG key type {type(key).__name__}: jax.random.key(seed) makes one")
    return words


def _single(key: Any) -> Any:
    words = _words_of(key)
    if words.shape != (2,):
        raise ValueError(
            f"jax.random accepts a single key, but was given a key array of shape {words.shape[:-1]} != (). Use "
            f"jax.vmap for batching."
        )
    return words


def _array(words: Any) -> Array:
    return as_jax(words if isinstance(words, _st.Array) else _known(words))


def _known(values: np.ndarray) -> Any:
    """An array whose elements the host keeps, so that what follows from a key follows without a round trip."""
    array = _st.asarray(values)
    if not array.session._is_trace:
        array._node.keep(np.array(values))
    return array


def _seeded(seed: Any) -> Array:
    if isinstance(seed, _st.Array):
        value = seed.astype(np.uint32)
        return as_jax(_st.stack([_st.zeros_like(value), value]))
    seed = operator.index(seed)
    if not -(2**63) <= seed < 2**64:
        raise OverflowError(f"a seed has 64 bits at most, not {seed}")
    high = (seed >> 32) & 0xFFFFFFFF if _config.config.jax_enable_x64 or not -(2**31) <= seed < 2**32 else 0
    return _array(np.array([high, seed & 0xFFFFFFFF], np.uint32))


def key(seed: Any, *, impl: Any = None) -> KeyArray:
    """A key.

    Parameters
        seed: an integer.
        impl: None or threefry2x32.
    Returns
        A key.
    Raises
        ValueError for another generator.
    Example
        >>> from stride import jax
        >>> jax.random.key_data(jax.random.key(7)).tolist()
        [0, 7]
    """
    if impl not in (None, "threefry2x32", "fry"):
        raise ValueError(f"stride.jax.random has keys of threefry2x32 alone, not of {impl}")
    return KeyArray(_seeded(seed))


def PRNGKey(seed: Any, *, impl: Any = None) -> Array:  # noqa: N802, JAX's name
    """A key as an array of two words.

    Parameters
        seed: an integer.
        impl: None or threefry2x32.
    Returns
        An array of uint32, of shape (2,).
    Example
        >>> from stride import jax
        >>> jax.random.PRNGKey(7).tolist()
        [0, 7]
    """
    return key(seed, impl=impl)._words


def key_data(keys: Any) -> Array:
    """The words of keys.

    Parameters
        keys: keys.
    Returns
        An array of uint32 with one axis more, of 2.
    Example
        >>> from stride import jax
        >>> jax.random.key_data(jax.random.key(7)).tolist()
        [0, 7]
    """
    return _words_of(keys)


def wrap_key_data(key_bits_array: Any, *, impl: Any = None) -> KeyArray:
    """Keys of words.

    Parameters
        key_bits_array: an array of uint32 whose last axis has 2.
        impl: None or threefry2x32.
    Returns
        Keys.
    Example
        >>> from stride import jax
        >>> jax.random.wrap_key_data(jax.random.PRNGKey(7)).shape
        ()
    """
    return KeyArray(_words_of(key_bits_array))


def key_impl(keys: Any) -> str:
    """The name of the generator of keys.

    Parameters
        keys: keys.
    Returns
        A string.
    Example
        >>> from stride import jax
        >>> jax.random.key_impl(jax.random.key(0))
        'fry'
    """
    return "fry"


def clone(key: Any) -> Any:
    """The key itself: keys are not checked for being used twice.

    Parameters
        key: a key.
    Returns
        `key`.
    Example
        >>> from stride import jax
        >>> jax.random.clone(jax.random.key(0)).shape
        ()
    """
    return key


def _like(key: Any, words: Any) -> Any:
    return KeyArray(words) if isinstance(key, KeyArray) else words


def _shape(shape: Any) -> tuple:
    return (operator.index(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)


def split(key: Any, num: Union[int, Sequence[int]] = 2) -> Any:
    """New keys from one.

    Parameters
        key: a key.
        num: how many, or a shape of them.
    Returns
        Keys.
    Example
        >>> from stride import jax
        >>> jax.random.split(jax.random.PRNGKey(0)).tolist()
        [[1797259609, 2579123966], [928981903, 3453687069]]
    """
    shape = _shape(num)
    first, second = _keys.words(_single(key), math.prod(shape))
    if isinstance(first, np.ndarray):
        return _like(key, _array(np.stack([first, second], -1).reshape(*shape, 2)))
    return _like(key, as_jax(_st.reshape(_st.stack([first, second], axis=-1), (*shape, 2))))


def fold_in(key: Any, data: Any) -> Any:
    """A key from a key and a number.

    Parameters
        key: a key.
        data: an integer.
    Returns
        A key.
    Example
        >>> from stride import jax
        >>> jax.random.fold_in(jax.random.PRNGKey(0), 1).tolist()
        [928981903, 3453687069]
    """
    words = _single(key)
    host = words if isinstance(words, np.ndarray) else words._node.cached() if not words.session._is_trace else None
    if host is not None and not isinstance(data, _st.Array):
        number = np.array([operator.index(data) & 0xFFFFFFFF], np.uint32)
        with np.errstate(over="ignore"):
            pair = _keys.threefry(host[0], host[1], np.zeros(1, np.uint32), number)
        return _like(key, _array(np.concatenate(pair)))
    number = data.astype(np.uint32) if isinstance(data, _st.Array) else _st.asarray(np.uint32(int(data) & 0xFFFFFFFF))
    pair = _keys.threefry(words[0], words[1], _st.zeros_like(number), number)
    return _like(key, as_jax(_st.stack(list(pair))))


for _name in __all__:
    globals()[_name].__module__ = "stride.jax.random"  # the public name, which pickles have
