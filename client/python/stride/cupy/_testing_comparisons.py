"""CuPy's comparisons of arrays, and of results of NumPy and of the service."""

import functools
import inspect
import traceback
from typing import Any, Callable, Iterable, Optional

import numpy as np

import stride.cupy as cp
from stride._array import Array

__all__ = [
    "assert_allclose", "assert_array_almost_equal", "assert_array_almost_equal_nulp", "assert_array_equal",
    "assert_array_less", "assert_array_list_equal", "assert_array_max_ulp", "numpy_cupy_allclose",
    "numpy_cupy_array_almost_equal", "numpy_cupy_array_almost_equal_nulp", "numpy_cupy_array_equal",
    "numpy_cupy_array_less", "numpy_cupy_array_list_equal", "numpy_cupy_array_max_ulp", "numpy_cupy_equal",
]


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


for _name in __all__:
    globals()[_name].__module__ = "stride.cupy.testing"  # the public name
