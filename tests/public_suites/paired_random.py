"""`stride.random` with NumPy's numbers, so that programs with random numbers can be compared.

Each function is called, and NumPy's with the same arguments: shapes and types of the results are compared, then the
program receives NumPy's numbers in an array of the service."""

import copy
import functools

import numpy as np

import stride
import stride.random

_OBJECTS = ("Generator", "RandomState")
_IN_PLACE = ("shuffle",)


class Unpaired(Exception):
    """The function returns another shape or type than NumPy's."""


def _host(value):
    if isinstance(value, stride.Array):
        return np.asarray(value)
    if isinstance(value, _Pair):
        return value._theirs
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_host(one) for one in value)
    return value


def _ours(value):
    return value._ours if isinstance(value, _Pair) else value


def _joined(name, ours, theirs):
    if isinstance(theirs, (np.ndarray, np.generic, int, float)) and not isinstance(theirs, bool):
        one, other = np.asarray(theirs), np.asarray(ours)
        if one.shape != other.shape or one.dtype != other.dtype:
            raise Unpaired(f"random.{name} gives {other.dtype}{other.shape}, NumPy {one.dtype}{one.shape}")
        return stride.asarray(one) if isinstance(ours, stride.Array) else theirs
    return ours


def _called(name, ours, theirs, arguments, options):
    if name in _IN_PLACE:
        values = arguments[0]
        ours(copy.copy(values), *map(_ours, arguments[1:]), **options)
        if isinstance(values, stride.Array):
            host = np.array(values)
            theirs(host, *map(_host, arguments[1:]), **options)
            values[...] = host
        else:
            theirs(*arguments, **options)
        return None
    of_numpy = theirs(*map(_host, arguments), **{key: _host(value) for key, value in options.items()})
    of_stride = ours(*map(_ours, arguments), **{key: _ours(value) for key, value in options.items()})
    if type(of_numpy).__name__ in _OBJECTS:
        return _Pair(of_stride, of_numpy)
    return _joined(name, of_stride, of_numpy)


class _Pair:
    """A generator of the service and NumPy's, in step."""

    def __init__(self, ours, theirs):
        self._ours, self._theirs = ours, theirs

    def __getattr__(self, name):
        ours, theirs = getattr(self._ours, name), getattr(self._theirs, name)
        if not callable(ours):
            return ours

        @functools.wraps(ours)
        def call(*arguments, **options):
            return _called(name, ours, theirs, arguments, options)

        return call


def _paired(name):
    ours, theirs = getattr(stride.random, name), getattr(np.random, name)

    @functools.wraps(ours)
    def call(*arguments, **options):
        if name == "default_rng" and not arguments and not options:
            arguments = (0,)
        return _called(name, ours, theirs, arguments, options)

    return call


def fix_seeds():
    """The program's first numbers without a seed of its own, for both runs."""
    import random

    random.seed(0)
    np.random.seed(0)
    unseeded = np.random.default_rng
    np.random.default_rng = lambda seed=0, **options: unseeded(seed, **options)


def install():
    for name in dir(stride.random):
        one = getattr(np.random, name, None)
        if name.startswith("_") or one is None or not callable(one) or isinstance(one, type) and name != "RandomState":
            continue
        try:
            setattr(stride.random, name, _paired(name))
        except AttributeError:
            continue
