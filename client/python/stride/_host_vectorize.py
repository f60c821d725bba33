"""`vectorize` with NumPy's keywords: functions of Python that run on the host."""

import functools
from typing import Any, Callable, Optional

import numpy as np

from stride import _conversion, _errors, _kernel, _origin
from stride._array import Array, array_of


def vectorize(
    function: Any, otypes: Any, doc: Optional[str], excluded: Any, cache: bool, signature: Optional[str]
) -> Callable:
    """As `numpy.vectorize`; without a function a decorator."""
    if function is None:
        return functools.partial(
            vectorize, otypes=otypes, doc=doc, excluded=excluded, cache=cache, signature=signature
        )
    return HostFunction(function, otypes, doc, excluded, cache, signature)


def function(function: Callable) -> Callable:
    """As `numpy.vectorize` without keywords; a function, which a class may have as a method."""
    one = HostFunction(function, None, None, None, False, None)
    one._takes_lists = True

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        return one(*arguments, **options)

    call.__name__ = getattr(function, "__name__", "expression").replace("<lambda>", "expression")
    return call


class HostFunction:
    """NumPy's `vectorize` of a function. One that can be translated and needs no more than the type of one result is
    compiled; every other is called for one element after another, on the host."""

    def __init__(self, function, otypes, doc, excluded, cache, signature):
        self.pyfunc = function
        self._on_host = np.vectorize(function, otypes, doc, excluded, cache, signature)
        self.__name__ = getattr(function, "__name__", "vectorize")
        self.__doc__ = self._on_host.__doc__
        self._dtype, self._compiled = None, None
        self._reason = ""  # that it is not compiled
        self._takes_lists = False  # whether the service computes what is on the host as well
        types = [None] if otypes is None else list(otypes)
        if len(types) == 1 and not (excluded or signature or cache):
            try:
                self._compiled = _kernel.compiled(function)
                self._dtype = None if types[0] is None else np.dtype(types[0])
            except (_errors.ExpressionError, AttributeError, TypeError) as error:
                # Its source is not there, or has no plain parameters.
                self._compiled, self._reason = None, _text(error)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._on_host, name)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        given = [one for one in (*arguments, *options.values()) if isinstance(one, Array)]
        if self._compiled is not None and (given or self._takes_lists):
            try:
                result = self._compiled(*arguments, **options)
                return result if self._dtype is None else result.astype(self._dtype, copy=False)
            except (_errors.ExpressionError, _errors.DataTypeMismatch, KeyError) as error:
                if any(one.session._is_trace for one in given):
                    raise  # nothing can be read there
                self._compiled, self._reason = None, _text(error)
        if given:
            _origin.warn(
                f"vectorize of {self.__name__} is not compiled{self._reason}: its arguments are downloaded and it runs "
                "on the host",
                _errors.DownloadWarning,
            )
        result = self._on_host(
            *map(_downloaded, arguments), **{name: _downloaded(one) for name, one in options.items()}
        )
        session = given[0].session if given else None
        if isinstance(result, tuple):
            return tuple(_uploaded(one, session) for one in result)
        return _uploaded(result, session)


def _text(error: Exception) -> str:
    return f" ({error})" if isinstance(error, _errors.ExpressionError) else ""


def _downloaded(one: Any) -> Any:
    if isinstance(one, Array):
        return one.to_numpy()
    return type(one)(map(_downloaded, one)) if type(one) in (list, tuple) else one


def _uploaded(one: Any, session: Any) -> Any:
    """An array of the service, and what it has no type for as it is."""
    try:
        return _conversion.asarray(one) if session is None else array_of(one, session)
    except _errors.DataTypeMismatch:
        return one
