"""CuPy's decorators that run one test with each of several types, orders or parameters."""

import functools
import itertools
import os
import random as _random
import sys
import unittest
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence

import numpy as np

from stride.cupy._testing_comparisons import _without

__all__ = [
    "for_CF_orders", "for_all_dtypes", "for_all_dtypes_combination", "for_castings", "for_complex_dtypes",
    "for_contiguous_axes", "for_dtypes", "for_dtypes_combination", "for_float_dtypes", "for_int_dtypes",
    "for_int_dtypes_combination", "for_orders", "for_signed_dtypes", "for_signed_dtypes_combination",
    "for_unsigned_dtypes", "for_unsigned_dtypes_combination", "parameterize", "product", "product_dict",
]

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


for _name in __all__:
    globals()[_name].__module__ = "stride.cupy.testing"  # the public name
