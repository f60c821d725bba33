"""CuPy's `testing`: comparisons of arrays of the service and of NumPy, and the decorators that run one test with both.

class Test:
    @testing.for_all_dtypes()
    @testing.numpy_cupy_allclose(rtol=1e-6)
    def test_sum(self, xp, dtype):
        return testing.shaped_arange((2, 3), xp, dtype).sum()"""

import functools
import inspect
import itertools
import os
import random as _random
import sys
import traceback
import unittest
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence

import numpy as np

import stride.cupy as cp
from stride._array import Array

# --- comparisons ---


def __getattr__(name: str):
    """`slow` is pytest's mark: pytest is imported with it alone."""
    if name == "slow":
        import pytest

        return pytest.mark.slow
    raise AttributeError(f"stride.cupy.testing has no {name}")


def _host(values: Any):
    return values.to_numpy() if isinstance(values, Array) else values


def assert_allclose(
    actual, desired, rtol: float = 1e-7, atol: float = 0, err_msg: str = "", verbose: bool = True
) -> None:
    """As NumPy's, of arrays of either kind."""
    np.testing.assert_allclose(_host(actual), _host(desired), rtol=rtol, atol=atol, err_msg=err_msg, verbose=verbose)


def assert_array_almost_equal(x, y, decimal: int = 6, err_msg: str = "", verbose: bool = True) -> None:
    """As NumPy's, of arrays of either kind."""
    np.testing.assert_array_almost_equal(_host(x), _host(y), decimal=decimal, err_msg=err_msg, verbose=verbose)


def assert_array_almost_equal_nulp(x, y, nulp: int = 1) -> None:
    """As NumPy's, of arrays of either kind."""
    np.testing.assert_array_almost_equal_nulp(_host(x), _host(y), nulp=nulp)


def assert_array_max_ulp(a, b, maxulp: int = 1, dtype=None) -> None:
    """As NumPy's, of arrays of either kind."""
    np.testing.assert_array_max_ulp(_host(a), _host(b), maxulp=maxulp, dtype=dtype)


def assert_array_equal(
    x, y, err_msg: str = "", verbose: bool = True, strides_check: bool = False, **options: Any
) -> None:
    """As NumPy's, of arrays of either kind. Distances between elements are not compared."""
    np.testing.assert_array_equal(_host(x), _host(y), err_msg=err_msg, verbose=verbose, **options)


def assert_array_list_equal(xlist, ylist, err_msg: str = "", verbose: bool = True) -> None:
    """Compares lists of arrays, pair by pair."""
    if len(xlist) != len(ylist):
        raise AssertionError(f"List size is different: {len(xlist)} and {len(ylist)}")
    for x, y in zip(xlist, ylist):
        assert_array_equal(x, y, err_msg=err_msg, verbose=verbose)


def assert_array_less(x, y, err_msg: str = "", verbose: bool = True) -> None:
    """As NumPy's, of arrays of either kind."""
    np.testing.assert_array_less(_host(x), _host(y), err_msg=err_msg, verbose=verbose)


assert_warns = getattr(np.testing, "assert_warns", None)

# --- one test with NumPy and with this module ---


class _Scipy:
    """Refused: SciPy's functions are not there."""

    def __getattr__(self, name: str):
        raise AttributeError(f"cupyx.scipy.{name} is not there")


def _call(function: Callable, arguments: tuple, kwargs: dict, name: str, module: Any, scipy_name: Optional[str]):
    """(result, error) of a test with one of the modules."""
    kwargs = {**kwargs, name: module}
    if scipy_name:
        if module is np:
            import scipy

            kwargs[scipy_name] = scipy
        else:
            kwargs[scipy_name] = _Scipy()
    try:
        return function(*arguments, **kwargs), None
    except Exception as error:
        if type(error).__name__ in ("Skipped", "SkipTest"):
            raise
        return None, error


def _traceback(error: Any) -> str:
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def _check_errors(ours: Optional[Exception], theirs: Optional[Exception], accept_error: Any) -> bool:
    """Whether both raised what is accepted; AssertionError where only one did."""
    if ours is None and theirs is None:
        return False
    accepted = (
        Exception
        if accept_error is True
        else tuple(accept_error) if isinstance(accept_error, (list, tuple)) else accept_error
    ) or ()
    if ours is None or theirs is None:
        who, error = ("cupy", ours) if ours is not None else ("numpy", theirs)
        raise AssertionError(f"Only {who} raises error\n\n{_traceback(error)}")
    alike = (
        isinstance(ours, type(theirs))
        or isinstance(theirs, type(ours))
        or {type(ours).__mro__[1], type(theirs).__mro__[1]} <= {ValueError, TypeError}
    )
    if accepted and isinstance(theirs, accepted) and (isinstance(ours, accepted) or alike):
        return True
    if accepted:
        raise AssertionError(
            f"Different types of errors occurred: {type(ours).__name__}: {ours}; numpy: {type(theirs).__name__}: "
            f"{theirs}"
        )
    raise AssertionError(
        "Both cupy and numpy raise exceptions\n\n"
        + "".join(traceback.format_exception(type(ours), ours, ours.__traceback__))
    )


def _parts(value: Any) -> list:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _comparison(
    compare: Callable, name: str, type_check: bool, accept_error: Any, scipy_name: Optional[str] = None
) -> Callable:
    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def test(*arguments, **kwargs):
            ours, our_error = _call(function, arguments, kwargs, name, cp, scipy_name)
            theirs, their_error = _call(function, arguments, kwargs, name, np, scipy_name)
            if _check_errors(our_error, their_error, accept_error):
                return
            if ours is NotImplemented and theirs is NotImplemented:
                return
            mine, other = _parts(ours), _parts(theirs)
            assert len(mine) == len(other), f"{len(mine)} and {len(other)} results"
            for a, b in zip(mine, other):
                if type_check:
                    _check_type(a, b)
                compare(a, b)

        return _without(test, function, (name, scipy_name))

    return decorate


def _without(test: Callable, function: Callable, names: Iterable) -> Callable:
    """A test whose signature, which pytest reads, lacks what the decorator gives."""
    signature = inspect.signature(function)
    test.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[one for one in signature.parameters.values() if one.name not in names]
    )
    return test


def _check_type(ours: Any, theirs: Any) -> None:
    a, b = getattr(ours, "dtype", None), getattr(theirs, "dtype", None)
    if a is None:
        a = np.asarray(ours).dtype
    if b is None:
        b = np.asarray(theirs).dtype
    if a != b:
        raise AssertionError(f"ndarrays of different dtypes are returned.\ncupy: {a}\nnumpy: {b}")


def _tolerance(given: Any, dtype: Any) -> float:
    """A number, or that of the type in a dict of types."""
    if not isinstance(given, dict):
        return given
    dtype = np.dtype(dtype)
    for key, value in given.items():
        if key != "default" and np.dtype(key) == dtype:
            return value
    return given.get("default", 1e-7)


def numpy_cupy_allclose(
    rtol: Any = 1e-7,
    atol: Any = 0,
    err_msg: str = "",
    verbose: bool = True,
    name: str = "xp",
    type_check: bool = True,
    accept_error: Any = False,
    sp_name: Optional[str] = None,
    scipy_name: Optional[str] = None,
    contiguous_check: bool = True,
    *,
    _check_sparse_format: bool = True,
) -> Callable:
    """The results of both are close. Tolerances may be dicts by type."""

    def compare(ours, theirs):
        dtype = getattr(theirs, "dtype", np.float64)
        assert_allclose(ours, theirs, _tolerance(rtol, dtype), _tolerance(atol, dtype), err_msg, verbose)

    return _comparison(compare, name, type_check, accept_error, scipy_name)


def numpy_cupy_array_almost_equal(
    decimal: int = 6,
    err_msg: str = "",
    verbose: bool = True,
    name: str = "xp",
    type_check: bool = True,
    accept_error: Any = False,
    sp_name=None,
    scipy_name: Optional[str] = None,
) -> Callable:
    """The results of both are equal to so many decimals."""
    return _comparison(
        lambda a, b: assert_array_almost_equal(a, b, decimal, err_msg, verbose),
        name,
        type_check,
        accept_error,
        scipy_name,
    )


def numpy_cupy_array_almost_equal_nulp(
    nulp: int = 1,
    name: str = "xp",
    type_check: bool = True,
    accept_error: Any = False,
    sp_name=None,
    scipy_name: Optional[str] = None,
) -> Callable:
    """The results of both differ by so many units in the last place."""
    return _comparison(
        lambda a, b: assert_array_almost_equal_nulp(a, b, nulp), name, type_check, accept_error, scipy_name
    )


def numpy_cupy_array_max_ulp(
    maxulp: int = 1,
    dtype=None,
    name: str = "xp",
    type_check: bool = True,
    accept_error: Any = False,
    sp_name=None,
    scipy_name: Optional[str] = None,
) -> Callable:
    """The results of both differ by so many units in the last place."""
    return _comparison(
        lambda a, b: assert_array_max_ulp(a, b, maxulp, dtype), name, type_check, accept_error, scipy_name
    )


def numpy_cupy_array_equal(
    err_msg: str = "",
    verbose: bool = True,
    name: str = "xp",
    type_check: bool = True,
    accept_error: Any = False,
    sp_name=None,
    scipy_name: Optional[str] = None,
    strides_check: bool = False,
) -> Callable:
    """The results of both are equal."""
    return _comparison(
        lambda a, b: assert_array_equal(a, b, err_msg, verbose), name, type_check, accept_error, scipy_name
    )


numpy_cupy_array_list_equal = numpy_cupy_array_equal


def numpy_cupy_array_less(
    err_msg: str = "",
    verbose: bool = True,
    name: str = "xp",
    type_check: bool = True,
    accept_error: Any = False,
    sp_name=None,
    scipy_name: Optional[str] = None,
) -> Callable:
    """The results of this module are less than NumPy's."""
    return _comparison(
        lambda a, b: assert_array_less(a, b, err_msg, verbose), name, type_check, accept_error, scipy_name
    )


def numpy_cupy_equal(name: str = "xp", sp_name=None, scipy_name: Optional[str] = None) -> Callable:
    """The results of both are equal, as Python compares them."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def test(*arguments, **kwargs):
            ours, our_error = _call(function, arguments, kwargs, name, cp, scipy_name)
            theirs, their_error = _call(function, arguments, kwargs, name, np, scipy_name)
            _check_errors(our_error, their_error, False)
            ours, theirs = _host(ours), _host(theirs)
            if not bool(np.all(ours == theirs)):
                raise AssertionError(f"Results are not equal:\ncupy: {ours}\nnumpy: {theirs}")

        return _without(test, function, (name, scipy_name))

    return decorate


# --- loops ---

_FLOATS = (np.float64, np.float32, np.float16)
_SIGNED = tuple(np.dtype(one).type for one in "bhilq")
_UNSIGNED = tuple(np.dtype(one).type for one in "BHILQ")
_COMPLEX = (np.complex64, np.complex128)


def _loop(values: Callable[[], Iterable], name: str) -> Callable:
    """A test for each value of an argument; the failure names the value."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def test(*arguments, **kwargs):
            for value in values():
                try:
                    function(*arguments, **{**kwargs, name: value})
                except Exception as error:
                    if type(error).__name__ in ("Skipped", "SkipTest"):
                        continue
                    print(f"{name} is {getattr(value, '__name__', value)}")
                    raise

        return _without(test, function, (name,))

    return decorate


def for_dtypes(dtypes: Sequence, name: str = "dtype") -> Callable:
    """For each of these types."""
    made = tuple(np.dtype(one).type if not isinstance(one, type) else one for one in dtypes)
    return _loop(lambda: made, name)


def _all_dtypes(no_float16: bool, no_bool: bool, no_complex: bool) -> tuple:
    return (
        (_FLOATS[:2] if no_float16 else _FLOATS)
        + _SIGNED
        + _UNSIGNED
        + (() if no_bool else (np.bool_,))
        + (() if no_complex else _COMPLEX)
    )


def for_all_dtypes(
    name: str = "dtype", no_float16: bool = False, no_bool: bool = False, no_complex: bool = False
) -> Callable:
    """For each type of the service."""
    return for_dtypes(_all_dtypes(no_float16, no_bool, no_complex), name)


def for_float_dtypes(name: str = "dtype", no_float16: bool = False) -> Callable:
    """For each type of floats."""
    return for_dtypes(_FLOATS[:2] if no_float16 else _FLOATS, name)


def for_signed_dtypes(name: str = "dtype") -> Callable:
    """For each type of signed integers."""
    return for_dtypes(_SIGNED, name)


def for_unsigned_dtypes(name: str = "dtype") -> Callable:
    """For each type of unsigned integers."""
    return for_dtypes(_UNSIGNED, name)


def for_int_dtypes(name: str = "dtype", no_bool: bool = False) -> Callable:
    """For each type of integers, and bool."""
    return for_dtypes(_SIGNED + _UNSIGNED + (() if no_bool else (np.bool_,)), name)


def for_complex_dtypes(name: str = "dtype") -> Callable:
    """For each type of complex numbers."""
    return for_dtypes(_COMPLEX, name)


def for_dtypes_combination(types: Sequence, names: Sequence[str] = ("dtype",), full: Optional[bool] = None) -> Callable:
    """For combinations of types: with `full` all of them, else each type with each name."""
    types = list(types)
    if full is None:
        full = int(os.environ.get("CUPY_TEST_FULL_COMBINATION", "0")) != 0
    if full:
        combinations: List[Dict[str, Any]] = [
            dict(zip(names, one)) for one in itertools.product(types, repeat=len(names))
        ]
    else:
        generator = _random.Random(0)
        columns = []
        for _ in names:
            column = list(types)
            generator.shuffle(column)
            columns.append(column)
        combinations = [dict(zip(names, row)) for row in zip(*columns)]

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def test(*arguments, **kwargs):
            for one in combinations:
                try:
                    function(*arguments, **{**kwargs, **one})
                except Exception as error:
                    if type(error).__name__ in ("Skipped", "SkipTest"):
                        continue
                    print(one)
                    raise

        return _without(test, function, names)

    return decorate


def for_all_dtypes_combination(
    names: Sequence[str] = ("dtyes",),
    no_float16: bool = False,
    no_bool: bool = False,
    full: Optional[bool] = None,
    no_complex: bool = False,
) -> Callable:
    """For combinations of all types."""
    return for_dtypes_combination(_all_dtypes(no_float16, no_bool, no_complex), names, full)


def for_signed_dtypes_combination(names: Sequence[str] = ("dtype",), full: Optional[bool] = None) -> Callable:
    """For combinations of types of signed integers."""
    return for_dtypes_combination(_SIGNED, names, full)


def for_unsigned_dtypes_combination(names: Sequence[str] = ("dtype",), full: Optional[bool] = None) -> Callable:
    """For combinations of types of unsigned integers."""
    return for_dtypes_combination(_UNSIGNED, names, full)


def for_int_dtypes_combination(
    names: Sequence[str] = ("dtype",), no_bool: bool = False, full: Optional[bool] = None
) -> Callable:
    """For combinations of types of integers."""
    return for_dtypes_combination(_SIGNED + _UNSIGNED + (() if no_bool else (np.bool_,)), names, full)


def for_orders(orders: Sequence, name: str = "order") -> Callable:
    """For each memory order."""
    return _loop(lambda: orders, name)


def for_CF_orders(name: str = "order") -> Callable:  # noqa: N802, CuPy's name
    """For the orders None, C, F, c and f."""
    return for_orders([None, "C", "F", "c", "f"], name)


def for_castings(castings: Optional[Sequence] = None, name: str = "casting") -> Callable:
    """For each of NumPy's casting rules."""
    return _loop(lambda: castings or ["no", "equiv", "safe", "same_kind", "unsafe"], name)


for_contiguous_axes = for_orders

# --- parameters ---


def product(parameter: Dict[str, Sequence]) -> List[Dict[str, Any]]:
    """Every combination of the values of several names."""
    keys = sorted(parameter)
    return [dict(zip(keys, one)) for one in itertools.product(*(parameter[key] for key in keys))]


def product_dict(*parameters: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Every combination of dicts, merged."""
    return [{key: value for one in parts for key, value in one.items()} for parts in itertools.product(*parameters)]


def parameterize(*params: Dict[str, Any], _ids: bool = True) -> Callable:
    """A class of tests for each dict, whose items are attributes of the test: of unittest's classes subclasses in their
    module, of others by pytest."""

    def subclassed(cls: type) -> type:
        module = sys.modules[cls.__module__]
        for i, one in enumerate(params):
            name = f"{cls.__name__}_param_{i}"
            setattr(
                module,
                name,
                type(name, (cls,), {**one, "__test__": True, "__module__": cls.__module__, "__doc__": cls.__doc__}),
            )
        cls.__test__ = False  # type: ignore[attr-defined]
        return cls

    def decorate(cls: Any) -> Any:
        if isinstance(cls, type) and issubclass(cls, unittest.TestCase):
            return subclassed(cls)
        import pytest

        if not isinstance(cls, type):
            names = sorted(params[0])
            values = [tuple(one[name] for name in names) for one in params]
            return pytest.mark.parametrize(",".join(names), values)(cls)

        @pytest.fixture(autouse=True)
        def _cupy_testing_attributes(self, _cupy_testing_param):
            for name, value in _cupy_testing_param.items():
                setattr(self, name, value)

        cls._cupy_testing_attributes = _cupy_testing_attributes  # type: ignore[attr-defined]
        return pytest.mark.parametrize("_cupy_testing_param", params, ids=[str(i) for i in range(len(params))])(cls)

    return decorate


# --- arrays ---


def shaped_arange(shape, xp=cp, dtype=np.float32, order: str = "C"):
    """1, 2, 3 and so on in a shape; of bool, every other one."""
    dtype = np.dtype(dtype)
    values = np.arange(1, int(np.prod(shape)) + 1)
    if dtype == "?":
        values = values % 2 == 0
    elif dtype.kind == "c":
        values = values + values * 1j
    return xp.asarray(values.astype(dtype).reshape(shape))


def shaped_reverse_arange(shape, xp=cp, dtype=np.float32):
    """As shaped_arange, from the greatest on."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape))
    values = np.arange(size, 0, -1)
    if dtype == "?":
        values = values % 2 == 0
    elif dtype.kind == "c":
        values = values + values * 1j
    return xp.asarray(values.astype(dtype).reshape(shape))


def shaped_linspace(start, stop, shape, xp=cp, dtype=np.float32):
    """Evenly spaced values in a shape."""
    return xp.asarray(np.linspace(start, stop, int(np.prod(shape))).astype(dtype).reshape(shape))


def shaped_random(shape, xp=cp, dtype=np.float32, scale: float = 10, seed: int = 0, order: str = "C"):
    """Random values from 0 to `scale`; of bool, of either kind."""
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
    """A random matrix, or a stack of them, with these singular values (default: within 0.9 and 1.1)."""
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


# --- bases of tests ---


class NumpyAliasTestBase(unittest.TestCase):
    """A test of a function that is NumPy's own by another name: `func` is its name."""

    __test__ = False

    @property
    def func(self) -> str:
        """The function's name."""
        raise NotImplementedError

    @property
    def cupy_func(self):
        """This module's."""
        return getattr(cp, self.func)

    @property
    def numpy_func(self):
        """NumPy's."""
        return getattr(np, self.func)


class NumpyAliasBasicTestBase(NumpyAliasTestBase):
    """That the function is there and documented."""

    def test_docstring(self) -> None:
        """It has a docstring."""
        assert self.cupy_func.__doc__

    test_argspec = test_docstring


class NumpyAliasValuesTestBase(NumpyAliasTestBase):
    """That the function gives NumPy's value for `args`."""

    def test_values(self) -> None:
        """The values are equal."""
        assert self.cupy_func(*self.args) == self.numpy_func(*self.args)  # type: ignore[attr-defined]


# --- conditions ---


def numpy_satisfies(version_range: str) -> bool:
    """Whether NumPy's version is in a range such as ">=1.20"."""
    return installed("numpy" + version_range)


def installed(*specifiers: str) -> bool:
    """Whether packages are installed, such as "scipy>=1.8"."""
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
    """Skips a test, by pytest, unless packages are installed."""
    import pytest

    return pytest.mark.skipif(not installed(*requirements), reason=f"requires: {', '.join(requirements)}")


def multi_gpu(num: int) -> Callable:
    """Skips a test, by pytest, where there are fewer devices."""
    import pytest

    return pytest.mark.skipif(cp.cuda.runtime.getDeviceCount() < num, reason=f"{num} devices are needed")


def fix_random() -> Callable:
    """A test whose random numbers of NumPy and Python are the same at each run."""

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
    name
    for name, one in list(globals().items())
    if not name.startswith("_") and getattr(one, "__module__", "") == __name__
]
