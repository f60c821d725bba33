"""CuPy's arrays for tests: of ranges, and of random numbers."""

import numpy as np

import stride.cupy as cp

__all__ = ["generate_matrix", "shaped_arange", "shaped_linspace", "shaped_random", "shaped_reverse_arange"]


def shaped_arange(shape, xp=cp, dtype=np.float32, order: str = "C"):
    """1, 2, 3 and so on in a shape; of bool, every other one.

    Parameters
        shape: the shape.
        xp: the module that makes the array.
        dtype: the element type.
        order: accepted.
    Returns
        An array of `xp`.
    Example
        >>> from stride.cupy import testing
        >>> testing.shaped_arange((2, 2)).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    dtype = np.dtype(dtype)
    values = np.arange(1, int(np.prod(shape)) + 1)
    if dtype == "?":
        values = values % 2 == 0
    elif dtype.kind == "c":
        values = values + values * 1j
    return xp.asarray(values.astype(dtype).reshape(shape))


def shaped_reverse_arange(shape, xp=cp, dtype=np.float32):
    """The numbers from the number of elements down to 1 in a shape; of bool, every other one.

    Parameters
        shape: the shape.
        xp: the module that makes the array.
        dtype: the element type.
    Returns
        An array of `xp`.
    Example
        >>> from stride.cupy import testing
        >>> testing.shaped_reverse_arange((2, 2)).tolist()
        [[4.0, 3.0], [2.0, 1.0]]
    """
    dtype = np.dtype(dtype)
    size = int(np.prod(shape))
    values = np.arange(size, 0, -1)
    if dtype == "?":
        values = values % 2 == 0
    elif dtype.kind == "c":
        values = values + values * 1j
    return xp.asarray(values.astype(dtype).reshape(shape))


def shaped_linspace(start, stop, shape, xp=cp, dtype=np.float32):
    """Evenly spaced values in a shape.

    Parameters
        start: the first value.
        stop: the last value.
        shape: the shape.
        xp: the module that makes the array.
        dtype: the element type.
    Returns
        An array of `xp`.
    Example
        >>> from stride.cupy import testing
        >>> testing.shaped_linspace(0, 3, (2, 2)).tolist()
        [[0.0, 1.0], [2.0, 3.0]]
    """
    return xp.asarray(np.linspace(start, stop, int(np.prod(shape))).astype(dtype).reshape(shape))


def shaped_random(shape, xp=cp, dtype=np.float32, scale: float = 10, seed: int = 0, order: str = "C"):
    """Random values from 0 to `scale`; of bool, of either kind.

    Parameters
        shape: the shape.
        xp: the module that makes the array.
        dtype: the element type.
        scale: the end of the range.
        seed: the seed.
        order: accepted.
    Returns
        An array of `xp`.
    Example
        >>> from stride.cupy import testing
        >>> testing.shaped_random((2, 2)).shape
        (2, 2)
    """
    generator = np.random.RandomState(seed)
    dtype = np.dtype(dtype)
    if dtype == "?":
        values = generator.randint(2, size=shape)
    elif dtype.kind == "c":
        values = generator.rand(*shape) * scale + 1j * generator.rand(*shape) * scale
    else:
        values = generator.rand(*shape) * scale
    return xp.asarray(np.asarray(values).astype(dtype))


def generate_matrix(shape, xp=cp, dtype=np.float32, *, singular_values=None):
    """A random matrix, or a stack of them, with these singular values (default: within 0.9 and 1.1).

    Parameters
        shape: the shape, of two axes or more.
        xp: the module that makes the array.
        dtype: the element type.
        singular_values: the singular values; None for values from 0.9 to 1.1.
    Returns
        An array of `xp`.
    Example
        >>> from stride.cupy import testing
        >>> testing.generate_matrix((2, 2)).shape
        (2, 2)
    """
    generator = np.random.RandomState(0)
    values = generator.randn(*shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * generator.randn(*shape)
    left, _, right = np.linalg.svd(values, full_matrices=False)
    count = min(shape[-2:])
    singular = np.broadcast_to(
        generator.uniform(0.9, 1.1, count) if singular_values is None else np.asarray(singular_values),
        (*shape[:-2], count),
    )
    return xp.asarray((left * singular[..., None, :] @ right).astype(dtype))


for _name in __all__:
    globals()[_name].__module__ = "stride.cupy.testing"  # the public name
