"""NumPy's names, resolved in `stride` first, for the imports of NumPy's test modules.

A module under test gets its own `__import__`. Where it imports NumPy, it receives a `Substitute` of the module: a
name of a public NumPy object gives the object of the same name in `stride`. A name that `stride` refuses (strings,
dates, masks) gives NumPy's own and is recorded, so that a failure can be attributed to it. Names of NumPy's private
modules are NumPy's own. `numpy.testing` is `stride.testing`, whose functions read arrays; error texts are not
compared."""

import builtins
import functools
import types
from typing import Any, Dict, Set

import numpy
import pytest

import stride
import stride.testing
from stride import _graph, _numpy_names

# Modules whose public names `stride` has.
_PAIRS = [(numpy, stride), (numpy.linalg, stride.linalg), (numpy.fft, stride.fft), (numpy.random, stride.random)]


class Uses:
    """Names that the running test has used: a name of `stride`, and NumPy's own where `stride` refuses them."""

    def __init__(self) -> None:
        self.collecting = True
        self.reset()

    def reset(self) -> None:
        self.reached = False
        self.refused: Set[str] = set()


uses = Uses()


def _count_nodes() -> None:
    """Each value of the client is a node, so a test that makes one has reached the client."""
    original = _graph.Node.__init__

    def __init__(self, *arguments, **options):  # noqa: N807
        uses.reached = True
        original(self, *arguments, **options)

    _graph.Node.__init__ = __init__  # type: ignore[method-assign]


_count_nodes()


# Functions whose arrays are parameters of tests.
_CREATION = ("arange", "array", "asarray", "empty", "full", "ones", "zeros")


def _made_while_collecting(theirs, ours):
    """While tests are collected, an array of a type that the service does not have is NumPy's: a rule of parameters
    then excludes the test with it alone."""

    @functools.wraps(ours)
    def create(*arguments, **options):
        try:
            return ours(*arguments, **options)
        except stride.DataTypeMismatch:
            if uses.collecting:
                return theirs(*arguments, **options)
            raise

    return create


def _namesakes() -> Dict[int, Any]:
    """The client's objects by the identity of NumPy's public ones."""
    found: Dict[int, Any] = {}
    for theirs, ours in _PAIRS:
        for name in dir(theirs):
            if name.startswith("_") or isinstance(getattr(theirs, name), types.ModuleType):
                continue
            one = getattr(theirs, name)
            if one is None or isinstance(one, (bool, int, float, str, tuple, dict, list)):
                continue
            try:
                namesake = getattr(ours, name)
            except AttributeError:
                continue
            if namesake is not one:
                is_creation = ours is stride and name in _CREATION
                found[id(one)] = _made_while_collecting(one, namesake) if is_creation else namesake
    return found


_NAMESAKES = _namesakes()


class Substitute(types.ModuleType):
    """A module of NumPy as a test sees it."""

    def __init__(self, theirs: types.ModuleType):
        super().__init__(theirs.__name__)
        self.__dict__["_theirs"] = theirs
        self.__dict__["_ours"] = next((ours for one, ours in _PAIRS if one is theirs), None)
        for name in ("__file__", "__path__", "__spec__", "__all__", "__version__"):
            if hasattr(theirs, name):
                self.__dict__[name] = getattr(theirs, name)

    def __dir__(self):
        return dir(self._theirs)

    def __getattr__(self, name: str) -> Any:
        theirs, ours = self.__dict__["_theirs"], self.__dict__["_ours"]
        try:
            one = getattr(theirs, name)
        except AttributeError:
            if ours is not None and not name.startswith("_"):
                return getattr(ours, name)  # raises with the name to use
            raise
        if isinstance(one, types.ModuleType):
            if ours is stride and name in _numpy_names.REFUSED:
                uses.refused.add(name)
            return substitute(one)
        if id(one) in _NAMESAKES:
            uses.reached = True
            return _NAMESAKES[id(one)]
        if ours is not None and name in _numpy_names.REFUSED:
            uses.refused.add(name)
        elif ours is not None and name in theirs.__all__ and isinstance(one, (types.FunctionType, numpy.ufunc)):
            return getattr(ours, name)
        return one


class _Testing(Substitute):
    """`numpy.testing`, and `numpy.ma.testutils`, with whose functions some tests compare arrays that are not masked."""

    def __getattr__(self, name: str) -> Any:
        one = getattr(self.__dict__["_theirs"], name)
        if isinstance(one, types.ModuleType):
            return substitute(one)
        if name == "assert_raises_regex":
            return _assert_raises_regex
        if one is getattr(numpy.testing, name, None):
            return getattr(stride.testing, name)
        return _reading(one) if name.startswith("assert_") and isinstance(one, types.FunctionType) else one


def _reading(compare):
    @functools.wraps(compare)
    def of_arrays(*arguments, **options):
        return compare(*stride.testing._on_host(arguments), **stride.testing._on_host(options))

    return of_arrays


def _assert_raises_regex(kind, text, *arguments, **options):
    return numpy.testing.assert_raises(kind, *arguments, **options)


_made: Dict[str, types.ModuleType] = {}


def substitute(module: types.ModuleType) -> types.ModuleType:
    """The substitute of one of NumPy's modules; any other module itself."""
    name = module.__name__
    if name != "numpy" and not name.startswith("numpy.") or ".tests" in name:
        return module
    if name not in _made:
        is_testing = name in ("numpy.testing", "numpy.testing._private.utils", "numpy.ma.testutils")
        _made[name] = (_Testing if is_testing else Substitute)(module)
    return _made[name]


class _Pytest(types.ModuleType):
    """pytest, whose `raises` compares kinds of errors and not their texts."""

    def __getattr__(self, name: str) -> Any:
        return getattr(pytest, name)

    @staticmethod
    def raises(*arguments, **options):
        options.pop("match", None)
        return pytest.raises(*arguments, **options)

    @staticmethod
    def warns(*arguments, **options):
        options.pop("match", None)
        return pytest.warns(*arguments, **options)


_PYTEST = _Pytest("pytest")


def import_module(name, globals=None, locals=None, fromlist=(), level=0):  # noqa: A002
    """`__import__` of a module under test."""
    found = builtins.__import__(name, globals, locals, fromlist, level)
    if found.__name__ == "pytest":
        return _PYTEST
    if fromlist:
        # Submodules that are named in the list are imported by now.
        return substitute(found)
    return substitute(found) if level == 0 else found


def namespace() -> Dict[str, Any]:
    """The `__builtins__` of a module under test."""
    return {**vars(builtins), "__import__": import_module}
