"""CuPy's `testing`: comparisons of arrays of the service and of NumPy, and the decorators that run one test with both.

class Test:
    @testing.for_all_dtypes()
    @testing.numpy_cupy_allclose(rtol=1e-6)
    def test_sum(self, xp, dtype):
        return testing.shaped_arange((2, 3), xp, dtype).sum()"""

import functools
import random as _random
import unittest
from typing import Callable

import numpy as np

import stride.cupy as cp
from stride.cupy import _testing_arrays, _testing_comparisons, _testing_parameters
from stride.cupy._testing_arrays import *  # noqa: F401,F403
from stride.cupy._testing_comparisons import *  # noqa: F401,F403
from stride.cupy._testing_comparisons import assert_warns  # noqa: F401
from stride.cupy._testing_parameters import *  # noqa: F401,F403


def __getattr__(name: str):
    """`slow` is pytest's mark: pytest is imported with it alone."""
    if name == "slow":
        import pytest

        return pytest.mark.slow
    raise AttributeError(f"stride.cupy.testing has no {name}")


# --- bases of tests ---


class NumpyAliasTestBase(unittest.TestCase):
    """A test of a function that is NumPy's own by another name: `func` is its name.

    Parameters
        methodName: the method that runs.
    Example
        >>> from stride.cupy import testing
        >>> class Test(testing.NumpyAliasTestBase):
        ...     func = "sum"
        ...
        >>> Test().cupy_func is st.sum
        True
    """

    __test__ = False

    @property
    def func(self) -> str:
        """The function's name, which a subclass gives.

        Example
            >>> from stride.cupy import testing
            >>> class Test(testing.NumpyAliasTestBase):
            ...     func = "sum"
            ...
            >>> Test().func
            'sum'
        """
        raise NotImplementedError

    @property
    def cupy_func(self):
        """This module's function.

        Example
            >>> from stride.cupy import testing
            >>> class Test(testing.NumpyAliasTestBase):
            ...     func = "sum"
            ...
            >>> Test().cupy_func is st.sum
            True
        """
        return getattr(cp, self.func)

    @property
    def numpy_func(self):
        """NumPy's function.

        Example
            >>> from stride.cupy import testing
            >>> class Test(testing.NumpyAliasTestBase):
            ...     func = "sum"
            ...
            >>> Test().numpy_func is np.sum
            True
        """
        return getattr(np, self.func)


class NumpyAliasBasicTestBase(NumpyAliasTestBase):
    """A test that a function is there and documented.

    Parameters
        methodName: the method that runs.
    Example
        >>> from stride.cupy import testing
        >>> class Test(testing.NumpyAliasBasicTestBase):
        ...     func = "sum"
        ...
        >>> Test().test_docstring()
    """

    def test_docstring(self) -> None:
        """Checks that the function has a docstring.

        Returns
            None.
        Raises
            AssertionError.
        Example
            >>> from stride.cupy import testing
            >>> class Test(testing.NumpyAliasBasicTestBase):
            ...     func = "sum"
            ...
            >>> Test().test_docstring()
        """
        assert self.cupy_func.__doc__

    test_argspec = test_docstring


class NumpyAliasValuesTestBase(NumpyAliasTestBase):
    """A test that a function gives NumPy's value for `args`.

    Parameters
        methodName: the method that runs.
    Example
        >>> from stride.cupy import testing
        >>> class Test(testing.NumpyAliasValuesTestBase):
        ...     func, args = "isscalar", (3,)
        ...
        >>> Test().test_values()
    """

    def test_values(self) -> None:
        """Checks that the values are equal.

        Returns
            None.
        Raises
            AssertionError.
        Example
            >>> from stride.cupy import testing
            >>> class Test(testing.NumpyAliasValuesTestBase):
            ...     func, args = "isscalar", (3,)
            ...
            >>> Test().test_values()
        """
        assert self.cupy_func(*self.args) == self.numpy_func(*self.args)  # type: ignore[attr-defined]


# --- conditions ---


def numpy_satisfies(version_range: str) -> bool:
    """Whether NumPy's version is in a range such as ">=1.20".

    Parameters
        version_range: the range.
    Returns
        A bool.
    Example
        >>> from stride.cupy import testing
        >>> testing.numpy_satisfies(">=99")
        False
    """
    return installed("numpy" + version_range)


def installed(*specifiers: str) -> bool:
    """Whether packages are installed, such as "scipy>=1.8".

    Parameters
        specifiers: packages and their versions.
    Returns
        A bool.
    Example
        >>> from stride.cupy import testing
        >>> testing.installed("no-such-package")
        False
    """
    try:
        from packaging.requirements import Requirement
    except ImportError:
        return False
    from importlib import metadata

    for one in specifiers:
        wanted = Requirement(one)
        try:
            if not wanted.specifier.contains(metadata.version(wanted.name), prereleases=True):
                return False
        except metadata.PackageNotFoundError:
            return False
    return True


def with_requires(*requirements: str) -> Callable:
    """A decorator that skips a test, by pytest, unless packages are installed.

    Parameters
        requirements: packages and their versions.
    Returns
        A decorator.
    Raises
        ImportError where pytest is not installed.
    Example
        >>> from stride.cupy import testing
        >>> callable(testing.with_requires)
        True
    """
    import pytest

    return pytest.mark.skipif(not installed(*requirements), reason=f"requires: {', '.join(requirements)}")


def multi_gpu(num: int) -> Callable:
    """A decorator that skips a test, by pytest, where there are fewer devices.

    Parameters
        num: how many devices the test needs.
    Returns
        A decorator.
    Raises
        ImportError where pytest is not installed.
    Example
        >>> from stride.cupy import testing
        >>> callable(testing.multi_gpu)
        True
    """
    import pytest

    return pytest.mark.skipif(cp.cuda.runtime.getDeviceCount() < num, reason=f"{num} devices are needed")


def fix_random() -> Callable:
    """A decorator: random numbers of NumPy and of Python are the same at each run of a test.

    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.fix_random()
        ... def test():
        ...     return np.random.rand()
        ...
        >>> test() == test()
        True
    """

    def decorate(function):
        if isinstance(function, type):
            return function

        @functools.wraps(function)
        def test(*arguments, **kwargs):
            _random.seed(0)
            np.random.seed(0)
            return function(*arguments, **kwargs)

        return test

    return decorate


__all__ = [
    "NumpyAliasBasicTestBase", "NumpyAliasTestBase", "NumpyAliasValuesTestBase", "fix_random", "installed", "multi_gpu",
    "numpy_satisfies", "with_requires",
    *_testing_arrays.__all__, *_testing_comparisons.__all__, *_testing_parameters.__all__,
]
