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
    """Raises unless two arrays are close, element by element.

    Parameters
        actual: an array of the host or of the service.
        desired: another.
        rtol: the tolerance as a part of `desired`.
        atol: the tolerance as a number.
        err_msg: text in front of the error's.
        verbose: whether the error shows the values.
    Returns
        None.
    Raises
        AssertionError.
    Example
        >>> from stride.cupy import testing
        >>> testing.assert_allclose(st.ones(2), 1.0)
    """
    np.testing.assert_allclose(_host(actual), _host(desired), rtol=rtol, atol=atol, err_msg=err_msg, verbose=verbose)


def assert_array_almost_equal(x, y, decimal: int = 6, err_msg: str = "", verbose: bool = True) -> None:
    """Raises unless two arrays are equal to so many decimals.

    Parameters
        x: an array of the host or of the service.
        y: another.
        decimal: how many decimals.
        err_msg: text in front of the error's.
        verbose: whether the error shows the values.
    Returns
        None.
    Raises
        AssertionError.
    Example
        >>> from stride.cupy import testing
        >>> testing.assert_array_almost_equal(st.ones(2), np.ones(2))
    """
    np.testing.assert_array_almost_equal(_host(x), _host(y), decimal=decimal, err_msg=err_msg, verbose=verbose)


def assert_array_almost_equal_nulp(x, y, nulp: int = 1) -> None:
    """Raises unless two arrays differ by so many units in the last place at most.

    Parameters
        x: an array of the host or of the service.
        y: another.
        nulp: how many units.
    Returns
        None.
    Raises
        AssertionError.
    Example
        >>> from stride.cupy import testing
        >>> testing.assert_array_almost_equal_nulp(st.ones(2), np.ones(2))
    """
    np.testing.assert_array_almost_equal_nulp(_host(x), _host(y), nulp=nulp)


def assert_array_max_ulp(a, b, maxulp: int = 1, dtype=None) -> None:
    """Raises unless two arrays differ by so many units in the last place at most.

    Parameters
        a: an array of the host or of the service.
        b: another.
        maxulp: how many units.
        dtype: the type in which they are compared; None for their own.
    Returns
        None.
    Raises
        AssertionError.
    Example
        >>> from stride.cupy import testing
        >>> testing.assert_array_max_ulp(st.ones(2), np.ones(2))
    """
    np.testing.assert_array_max_ulp(_host(a), _host(b), maxulp=maxulp, dtype=dtype)


def assert_array_equal(
    x, y, err_msg: str = "", verbose: bool = True, strides_check: bool = False, **options: Any
) -> None:
    """Raises unless two arrays are equal, element by element. Distances between elements are not compared.

    Parameters
        x: an array of the host or of the service.
        y: another.
        err_msg: text in front of the error's.
        verbose: whether the error shows the values.
        strides_check: accepted.
        options: `strict` of NumPy's function.
    Returns
        None.
    Raises
        AssertionError.
    Example
        >>> from stride.cupy import testing
        >>> testing.assert_array_equal(st.ones(2), np.ones(2))
    """
    np.testing.assert_array_equal(_host(x), _host(y), err_msg=err_msg, verbose=verbose, **options)


def assert_array_list_equal(xlist, ylist, err_msg: str = "", verbose: bool = True) -> None:
    """Raises unless two lists of arrays are equal, pair by pair.

    Parameters
        xlist: arrays of the host or of the service.
        ylist: others.
        err_msg: text in front of the error's.
        verbose: whether the error shows the values.
    Returns
        None.
    Raises
        AssertionError.
    Example
        >>> from stride.cupy import testing
        >>> testing.assert_array_list_equal([st.ones(2)], [np.ones(2)])
    """
    if len(xlist) != len(ylist):
        raise AssertionError(f"List size is different: {len(xlist)} and {len(ylist)}")
    for x, y in zip(xlist, ylist):
        assert_array_equal(x, y, err_msg=err_msg, verbose=verbose)


def assert_array_less(x, y, err_msg: str = "", verbose: bool = True) -> None:
    """Raises unless the elements of one array are less than those of another.

    Parameters
        x: an array of the host or of the service.
        y: another.
        err_msg: text in front of the error's.
        verbose: whether the error shows the values.
    Returns
        None.
    Raises
        AssertionError.
    Example
        >>> from stride.cupy import testing
        >>> testing.assert_array_less(st.zeros(2), np.ones(2))
    """
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
    """A decorator: a test is run with both modules, and its results are close.

    Parameters
        rtol: the tolerance as a part of NumPy's result, or a dict by type.
        atol: the tolerance as a number, or a dict by type.
        err_msg: text in front of the error's.
        verbose: whether the error shows the values.
        name: the test's parameter that gets the module.
        type_check: whether the types must be equal.
        accept_error: whether both may raise, or which errors they may.
        sp_name: accepted.
        scipy_name: the test's parameter that gets SciPy; None for none.
        contiguous_check: accepted.
        _check_sparse_format: accepted.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.numpy_cupy_allclose()
        ... def test(xp):
        ...     return xp.ones(2)
        ...
        >>> test()
    """

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
    """A decorator: a test is run with both modules, and its results are equal to so many decimals.

    Parameters
        decimal: how many decimals.
        err_msg: text in front of the error's.
        verbose: whether the error shows the values.
        name: the test's parameter that gets the module.
        type_check: whether the types must be equal.
        accept_error: whether both may raise, or which errors they may.
        sp_name: accepted.
        scipy_name: the test's parameter that gets SciPy; None for none.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.numpy_cupy_array_almost_equal()
        ... def test(xp):
        ...     return xp.ones(2)
        ...
        >>> test()
    """
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
    """A decorator: a test is run with both modules, and its results differ by so many units in the last place at most.

    Parameters
        nulp: how many units.
        name: the test's parameter that gets the module.
        type_check: whether the types must be equal.
        accept_error: whether both may raise, or which errors they may.
        sp_name: accepted.
        scipy_name: the test's parameter that gets SciPy; None for none.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.numpy_cupy_array_almost_equal_nulp()
        ... def test(xp):
        ...     return xp.ones(2)
        ...
        >>> test()
    """
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
    """A decorator: a test is run with both modules, and its results differ by so many units in the last place at most.

    Parameters
        maxulp: how many units.
        dtype: the type in which they are compared; None for their own.
        name: the test's parameter that gets the module.
        type_check: whether the types must be equal.
        accept_error: whether both may raise, or which errors they may.
        sp_name: accepted.
        scipy_name: the test's parameter that gets SciPy; None for none.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.numpy_cupy_array_max_ulp()
        ... def test(xp):
        ...     return xp.ones(2)
        ...
        >>> test()
    """
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
    """A decorator: a test is run with both modules, and its results are equal.

    Parameters
        err_msg: text in front of the error's.
        verbose: whether the error shows the values.
        name: the test's parameter that gets the module.
        type_check: whether the types must be equal.
        accept_error: whether both may raise, or which errors they may.
        sp_name: accepted.
        scipy_name: the test's parameter that gets SciPy; None for none.
        strides_check: accepted.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.numpy_cupy_array_equal()
        ... def test(xp):
        ...     return xp.ones(2)
        ...
        >>> test()
    """
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
    """A decorator: a test is run with both modules, and this module's results are less than NumPy's.

    Parameters
        err_msg: text in front of the error's.
        verbose: whether the error shows the values.
        name: the test's parameter that gets the module.
        type_check: whether the types must be equal.
        accept_error: whether both may raise, or which errors they may.
        sp_name: accepted.
        scipy_name: the test's parameter that gets SciPy; None for none.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.numpy_cupy_array_less()
        ... def test(xp):
        ...     return xp.zeros(2) if xp is not np else xp.ones(2)
        ...
        >>> test()
    """
    return _comparison(
        lambda a, b: assert_array_less(a, b, err_msg, verbose), name, type_check, accept_error, scipy_name
    )


def numpy_cupy_equal(name: str = "xp", sp_name=None, scipy_name: Optional[str] = None) -> Callable:
    """A decorator: a test is run with both modules, and its results are equal as Python compares them.

    Parameters
        name: the test's parameter that gets the module.
        sp_name: accepted.
        scipy_name: the test's parameter that gets SciPy; None for none.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.numpy_cupy_equal()
        ... def test(xp):
        ...     return xp.ones(2).sum()
        ...
        >>> test()
    """

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
    """A decorator: a test is run for each of some types.

    Parameters
        dtypes: the types.
        name: the test's parameter that gets the type.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.for_dtypes([np.int32])
        ... def test(dtype):
        ...     assert st.ones(2, dtype).dtype == dtype
        ...
        >>> test()
    """
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
    """A decorator: a test is run for each type of the service.

    Parameters
        name: the test's parameter that gets the type.
        no_float16: whether float16 is left out.
        no_bool: whether bool is left out.
        no_complex: whether complex types are left out.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.for_all_dtypes()
        ... def test(dtype):
        ...     assert st.ones(2, dtype).dtype == dtype
        ...
        >>> test()
    """
    return for_dtypes(_all_dtypes(no_float16, no_bool, no_complex), name)


def for_float_dtypes(name: str = "dtype", no_float16: bool = False) -> Callable:
    """A decorator: a test is run for each type of floating-point numbers.

    Parameters
        name: the test's parameter that gets the type.
        no_float16: whether float16 is left out.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.for_float_dtypes()
        ... def test(dtype):
        ...     assert st.ones(2, dtype).dtype == dtype
        ...
        >>> test()
    """
    return for_dtypes(_FLOATS[:2] if no_float16 else _FLOATS, name)


def for_signed_dtypes(name: str = "dtype") -> Callable:
    """A decorator: a test is run for each type of signed integers.

    Parameters
        name: the test's parameter that gets the type.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.for_signed_dtypes()
        ... def test(dtype):
        ...     assert st.ones(2, dtype).dtype == dtype
        ...
        >>> test()
    """
    return for_dtypes(_SIGNED, name)


def for_unsigned_dtypes(name: str = "dtype") -> Callable:
    """A decorator: a test is run for each type of unsigned integers.

    Parameters
        name: the test's parameter that gets the type.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.for_unsigned_dtypes()
        ... def test(dtype):
        ...     assert st.ones(2, dtype).dtype == dtype
        ...
        >>> test()
    """
    return for_dtypes(_UNSIGNED, name)


def for_int_dtypes(name: str = "dtype", no_bool: bool = False) -> Callable:
    """A decorator: a test is run for each type of integers, and bool.

    Parameters
        name: the test's parameter that gets the type.
        no_bool: whether bool is left out.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.for_int_dtypes()
        ... def test(dtype):
        ...     assert st.ones(2, dtype).dtype == dtype
        ...
        >>> test()
    """
    return for_dtypes(_SIGNED + _UNSIGNED + (() if no_bool else (np.bool_,)), name)


def for_complex_dtypes(name: str = "dtype") -> Callable:
    """A decorator: a test is run for each type of complex numbers.

    Parameters
        name: the test's parameter that gets the type.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.for_complex_dtypes()
        ... def test(dtype):
        ...     assert st.ones(2, dtype).dtype == dtype
        ...
        >>> test()
    """
    return for_dtypes(_COMPLEX, name)


def for_dtypes_combination(types: Sequence, names: Sequence[str] = ("dtype",), full: Optional[bool] = None) -> Callable:
    """A decorator: a test is run for combinations of some types: each type with each name, or all combinations.

    Parameters
        types: the types.
        names: the test's parameters that get the types.
        full: whether all combinations are tried; None asks CUPY_TEST_FULL_COMBINATION.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.for_dtypes_combination([np.int32, np.int64], names=("a", "b"))
        ... def test(a, b):
        ...     assert st.add(st.ones(2, a), st.ones(2, b)).shape == (2,)
        ...
        >>> test()
    """
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
    """A decorator: a test is run for combinations of all types: each type with each name, or all combinations.

    Parameters
        names: the test's parameters that get the types.
        no_float16: whether float16 is left out.
        no_bool: whether bool is left out.
        full: whether all combinations are tried; None asks CUPY_TEST_FULL_COMBINATION.
        no_complex: whether complex types are left out.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.for_all_dtypes_combination(names=("a", "b"))
        ... def test(a, b):
        ...     assert st.add(st.ones(2, a), st.ones(2, b)).shape == (2,)
        ...
        >>> test()
    """
    return for_dtypes_combination(_all_dtypes(no_float16, no_bool, no_complex), names, full)


def for_signed_dtypes_combination(names: Sequence[str] = ("dtype",), full: Optional[bool] = None) -> Callable:
    """A decorator: a test is run for combinations of types of signed integers: each type with each name, or all
    combinations.

    Parameters
        names: the test's parameters that get the types.
        full: whether all combinations are tried; None asks CUPY_TEST_FULL_COMBINATION.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.for_signed_dtypes_combination(names=("a", "b"))
        ... def test(a, b):
        ...     assert st.add(st.ones(2, a), st.ones(2, b)).shape == (2,)
        ...
        >>> test()
    """
    return for_dtypes_combination(_SIGNED, names, full)


def for_unsigned_dtypes_combination(names: Sequence[str] = ("dtype",), full: Optional[bool] = None) -> Callable:
    """A decorator: a test is run for combinations of types of unsigned integers: each type with each name, or all
    combinations.

    Parameters
        names: the test's parameters that get the types.
        full: whether all combinations are tried; None asks CUPY_TEST_FULL_COMBINATION.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.for_unsigned_dtypes_combination(names=("a", "b"))
        ... def test(a, b):
        ...     assert st.add(st.ones(2, a), st.ones(2, b)).shape == (2,)
        ...
        >>> test()
    """
    return for_dtypes_combination(_UNSIGNED, names, full)


def for_int_dtypes_combination(
    names: Sequence[str] = ("dtype",), no_bool: bool = False, full: Optional[bool] = None
) -> Callable:
    """A decorator: a test is run for combinations of types of integers: each type with each name, or all combinations.

    Parameters
        names: the test's parameters that get the types.
        no_bool: whether bool is left out.
        full: whether all combinations are tried; None asks CUPY_TEST_FULL_COMBINATION.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.for_int_dtypes_combination(names=("a", "b"))
        ... def test(a, b):
        ...     assert st.add(st.ones(2, a), st.ones(2, b)).shape == (2,)
        ...
        >>> test()
    """
    return for_dtypes_combination(_SIGNED + _UNSIGNED + (() if no_bool else (np.bool_,)), names, full)


def for_orders(orders: Sequence, name: str = "order") -> Callable:
    """A decorator: a test is run for each of some orders of memory.

    Parameters
        orders: the orders.
        name: the test's parameter that gets the order.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.for_orders("CF")
        ... def test(order):
        ...     assert st.ones(2, order=order).shape == (2,)
        ...
        >>> test()
    """
    return _loop(lambda: orders, name)


def for_CF_orders(name: str = "order") -> Callable:  # noqa: N802, CuPy's name
    """A decorator: a test is run for the orders None, C, F, c and f.

    Parameters
        name: the test's parameter that gets the order.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.for_CF_orders()
        ... def test(order):
        ...     assert st.ones(2, order=order).shape == (2,)
        ...
        >>> test()
    """
    return for_orders([None, "C", "F", "c", "f"], name)


def for_castings(castings: Optional[Sequence] = None, name: str = "casting") -> Callable:
    """A decorator: a test is run for each of NumPy's casting rules.

    Parameters
        castings: the rules; None for all.
        name: the test's parameter that gets the rule.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> @testing.for_castings()
        ... def test(casting):
        ...     assert st.can_cast(st.int8, st.int8, casting)
        ...
        >>> test()
    """
    return _loop(lambda: castings or ["no", "equiv", "safe", "same_kind", "unsafe"], name)


for_contiguous_axes = for_orders

# --- parameters ---


def product(parameter: Dict[str, Sequence]) -> List[Dict[str, Any]]:
    """Every combination of the values of several names.

    Parameters
        parameter: a dict of names and values.
    Returns
        A list of dicts.
    Example
        >>> from stride.cupy import testing
        >>> testing.product({"a": [1, 2], "b": [3]})
        [{'a': 1, 'b': 3}, {'a': 2, 'b': 3}]
    """
    keys = sorted(parameter)
    return [dict(zip(keys, one)) for one in itertools.product(*(parameter[key] for key in keys))]


def product_dict(*parameters: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Every combination of dicts, merged.

    Parameters
        parameters: lists of dicts.
    Returns
        A list of dicts.
    Example
        >>> from stride.cupy import testing
        >>> testing.product_dict([{"a": 1}], [{"b": 2}, {"b": 3}])
        [{'a': 1, 'b': 2}, {'a': 1, 'b': 3}]
    """
    return [{key: value for one in parts for key, value in one.items()} for parts in itertools.product(*parameters)]


def parameterize(*params: Dict[str, Any], _ids: bool = True) -> Callable:
    """A decorator that makes a class of tests for each dict, whose items are attributes of the test: for a class of
    unittest subclasses in its module, for others by pytest.

    Parameters
        params: the dicts.
        _ids: accepted.
    Returns
        A decorator.
    Example
        >>> from stride.cupy import testing
        >>> callable(testing.parameterize({"shape": (2, 3)}))
        True
    """

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
    name
    for name, one in list(globals().items())
    if not name.startswith("_") and getattr(one, "__module__", "") == __name__
]
