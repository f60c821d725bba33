"""NumPy's floating-point warnings and errors.

Warnings that depend on shapes alone (the mean of an empty slice, no degrees of freedom) are always given;
warnings of slices of NaN are given where the host has the elements. An explicit `raise`, `call`, `print` or
`log` of `errstate` and `seterr` is honoured: while one is set, NumPy on the host also computes each function
of elements, reduction, product and cast, which reads the inputs and raises as NumPy does. Without them
nothing is read, and recording checks one module variable (`_graph.check_floats`)."""

import contextlib
import functools
import math
import threading
import warnings
from typing import Any, Callable, Dict, Optional

import numpy as np

from stride import _casts, _graph
from stride._array import Array
from stride._graph import Node
from stride._numbers import Number

__all__ = ["errstate", "seterr"]

_ASKED = frozenset(("raise", "call", "print", "log"))
_MAX_KNOWN = 1 << 16  # largest number of elements to search for NaN on the host
_lock = threading.Lock()
_num_entered, _is_set = 0, False
_inside = threading.local()


# --- warnings that need no read ---


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=_casts.warning_level())


def of_mean(shape: tuple, axes: Any) -> None:
    """NumPy's warning of a mean over axes of which one has no element."""
    if 0 in shape and any(shape[i] == 0 for i in axes):
        _warn("Mean of empty slice")


def of_variance(count: float, correction: float) -> None:
    if correction >= count:
        _warn("Degrees of freedom <= 0 for slice")


def _counts(array: Array, axes: Any, most: float) -> Optional[np.ndarray]:
    """How many elements of each slice are not NaN, where the host has the elements or there are at most `most`."""
    count = math.prod(array.shape[i] for i in axes)
    if count <= most:
        return np.full(1, count)
    host = array._node.cached()
    if host is None or not 0 < host.size <= _MAX_KNOWN:
        return None
    return np.count_nonzero(~np.isnan(host), axis=tuple(axes))


def of_nan_slices(array: Array, axes: Any, message: str, empty: str = "", most: float = 0) -> None:
    """A warning where a slice has at most `most` elements that are not NaN; `empty` is that of no element at all."""
    counts = _counts(array, axes, most)
    if counts is not None and (np.asarray(counts) <= most).any():
        _warn(empty if empty and any(array.shape[i] == 0 for i in axes) else message)


# --- explicit treatment ---


def _asked() -> bool:
    return not _ASKED.isdisjoint(np.geterr().values())


def _update() -> None:
    checks = _num_entered > 0 or _is_set
    _graph.check_floats = _check if checks else None
    _graph.check_reduction = _check_reduction if checks else None


class errstate:  # noqa: N801, NumPy's name
    """How floating-point errors are treated within a `with` statement, or within a decorated function: as
    `numpy.errstate`. For `raise`, `call`, `print` and `log` each operation reads its inputs, which are computed on the
    host as well; `warn`, NumPy's default, gives no warnings of elements that the host does not have.

    Parameters
        call: the function or object for `call` and `log`.
        kwargs: `all`, `divide`, `over`, `under` and `invalid`: ignore, warn, raise, call, print or log.
    Raises
        FloatingPointError within it, at the operation, for what is to be raised.
    Example
        >>> with st.errstate(divide="raise"):
        ...     st.array([1.0]) / 0
        Traceback (most recent call last):
        FloatingPointError: divide by zero encountered in divide
    """

    def __init__(self, **kwargs: Any):
        self._options: Dict[str, Any] = kwargs
        self._numpys: Any = np.errstate(**kwargs)
        self._is_asked = False

    def __enter__(self) -> None:
        global _num_entered
        self._numpys.__enter__()
        if _asked():
            self._is_asked = True
            with _lock:
                _num_entered += 1
                _update()

    def __exit__(self, *failure: Any) -> None:
        global _num_entered
        self._numpys.__exit__(*failure)
        self._numpys = np.errstate(**self._options)
        if self._is_asked:
            self._is_asked = False
            with _lock:
                _num_entered -= 1
                _update()

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def within(*arguments: Any, **options: Any) -> Any:
            with errstate(**self._options):
                return function(*arguments, **options)

        return within


def seterr(
    all: Optional[str] = None,  # noqa: A002, NumPy's names
    divide: Optional[str] = None,
    over: Optional[str] = None,
    under: Optional[str] = None,
    invalid: Optional[str] = None,
) -> Dict[str, str]:
    """Sets how floating-point errors are treated from here on: as `numpy.seterr`, with what `errstate` says.

    Parameters
        all: the treatment of all kinds: ignore, warn, raise, call, print or log.
        divide: of divisions by zero.
        over: of results beyond the range.
        under: of results too small.
        invalid: of operations without a result.
    Returns
        A dict of the treatments before.
    Raises
        ValueError for another treatment.
    Example
        >>> before = st.seterr(over="ignore")
        >>> st.seterr(**before)["over"]
        'ignore'
    """
    global _is_set
    before = np.seterr(all=all, divide=divide, over=over, under=under, invalid=invalid)  # type: ignore[arg-type]
    with _lock:
        _is_set = _asked()
        _update()
    return before


# --- the check of an operation ---


@contextlib.contextmanager
def _alone() -> Any:
    """Disables checks for the reads that a check makes."""
    _inside.busy = True
    try:
        yield
    finally:
        _inside.busy = False


def _is_due(inputs: tuple) -> bool:
    if getattr(_inside, "busy", False) or not _asked():
        return False
    return not any(type(one) is Node and one.session._is_trace for one in inputs)


def _host(one: Any) -> Any:
    if type(one) is Number:
        return one.value
    host = one.session._read(one)
    return host if host.ndim else host[()]


def _check(name: str, inputs: tuple) -> None:
    """Checks a function of elements, or a function of the host."""
    function = getattr(np, name, None)
    if not isinstance(function, np.ufunc) or not _is_due(inputs):
        return
    with _alone():
        values = [_host(one) for one in inputs]
        if all(np.asarray(one).dtype.kind in "biufc" for one in values):
            function(*values)


@contextlib.contextmanager
def masked(name: str, inputs: tuple, mask: Node) -> Any:
    """Checks a function with a mask: only the elements that the mask selects."""
    if getattr(_inside, "busy", False):
        yield
        return
    function = getattr(np, name, None)
    is_due = _is_due((*inputs, mask)) and isinstance(function, np.ufunc)
    with _alone():
        if is_due:
            function(*(_host(one) for one in inputs), where=np.asarray(_host(mask)), out=None)
        yield


# By the number of the service's reduction.
_REDUCTIONS: Dict[Any, Callable] = {}


def _check_reduction(function: Any, node: Node, axes: tuple, dtype: Any) -> None:
    if not _is_due((node,)):
        return
    if not _REDUCTIONS:
        from stride._reductions import _F

        _REDUCTIONS.update({
            _F.FUNCTION_SUM: np.sum, _F.FUNCTION_PROD: np.prod, _F.FUNCTION_MEAN: np.mean, _F.FUNCTION_VAR: np.var,
            _F.FUNCTION_STD: np.std,
        })
    ufunc = getattr(np, function, None) if isinstance(function, str) else None
    reduce = ufunc.reduce if isinstance(ufunc, np.ufunc) else _REDUCTIONS.get(function)
    if reduce is None or not math.prod(node.shape):
        return
    with _alone():
        values = np.asarray(_host(node))
        if values.dtype.kind in "biufc":
            reduce(values, axis=axes, dtype=dtype)


def of_cast(node: Node, dtype: np.dtype) -> None:
    """Checks a cast, while an explicit treatment is set."""
    if _graph.check_floats is None or not _is_due((node,)):
        return
    with _alone():
        values = np.asarray(_host(node))
        if values.dtype.kind in "biufc" and dtype.kind in "biufc":
            values.astype(dtype)


def of_product(left: Any, right: Any) -> None:
    if _graph.check_floats is not None and _is_due((left, right)):
        with _alone():
            np.matmul(_host(left), _host(right))
