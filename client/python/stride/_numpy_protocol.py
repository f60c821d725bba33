"""NumPy's functions applied to our arrays: `np.cos(x)`, `np.sum(x)`, `np.concatenate([x, y])`.

A function is the namespace's of the same name, whose parameters are NumPy's. One that the namespace lacks downloads its
arguments and runs on the host, with a warning that names the caller's line."""

import functools
from typing import Any, Callable, Dict

import numpy as np

from stride import _elementwise, _errors, _functions, _linear_algebra, _origin, _ufunc, _ufunc_methods, fft, linalg
from stride._array import Array

_NAMES = {*_elementwise.UNARY, *_elementwise.BINARY, "divmod", "frexp", "modf"}


def _unimplemented(what: str) -> _errors.Unimplemented:
    return _errors.Unimplemented(
        f"{what} is not there for stride arrays; np.asarray(x) downloads one",
        reason="NOT_IMPLEMENTED",
        metadata={"feature": what},
    )


def apply_ufunc(ufunc, method: str, inputs, kwargs):
    name = ufunc.__name__
    if name in _functions.BUILT_IN_GUFUNCS and method == "__call__":
        return _gufunc(name, inputs, kwargs)
    if name not in _NAMES or getattr(np, name) is not ufunc:
        return _downloaded(getattr(ufunc, method), f"{_module_of(ufunc)}.{name}", inputs, kwargs)
    if method == "__call__":
        return _call(name, inputs, kwargs)
    if method == "at" and ufunc.nin == 1 and ufunc.nout == 1:
        if not isinstance(inputs[0], Array):
            raise _unimplemented(f"numpy.{name}.at on an array of the host")
        return _ufunc_methods.unary_at(name, *inputs)
    if method not in ("reduce", "accumulate", "outer", "at", "reduceat") or ufunc.nin != 2 or ufunc.nout != 1:
        raise _unimplemented(f"numpy.{name}.{method}")
    kwargs = {key: value for key, value in kwargs.items() if value is not np._NoValue}
    if method == "at" and not isinstance(inputs[0], Array):
        raise _unimplemented(f"numpy.{name}.at on an array of the host")
    apply = functools.partial(getattr(_ufunc_methods, method), name, *inputs)
    if method in ("at", "outer"):
        return apply(**kwargs)
    out = kwargs.pop("out", None)
    return _with_host_outs(lambda out: apply(out=out, **kwargs), {"out": out, "casting": "unsafe"})


def _gufunc(name: str, inputs, kwargs):
    kwargs.pop("order", None)  # there is one
    if kwargs.get("subok", True):
        kwargs.pop("subok", None)  # there are no subclasses to keep
    placed = {key: kwargs.pop(key) for key in ("axes", "axis", "keepdims") if kwargs.get(key) is not None}
    if not placed:
        casting, dtype = kwargs.pop("casting", "same_kind"), kwargs.pop("dtype", None)
    if set(kwargs) - {"out"}:
        raise _unimplemented(f"numpy.{name} with {', '.join(sorted(set(kwargs) - {'out'}))}")
    if not placed:
        function = getattr(_linear_algebra, name)
        return _with_host_outs(
            lambda out: function(*inputs, out, casting=casting, dtype=dtype), {**kwargs, "casting": casting}
        )
    inputs = tuple(_ufunc_methods._array_of(one) for one in inputs)
    return _with_host_outs(
        lambda out: _ufunc._give(_functions.BUILT_IN_GUFUNCS[name](*inputs, **placed), out, None, "same_kind"), kwargs
    )


def _module_of(function: Any) -> str:
    return getattr(function, "__module__", None) or "numpy"


def _call(name: str, inputs, kwargs):
    kwargs.pop("order", None)  # there is one
    if kwargs.get("subok", True):
        kwargs.pop("subok", None)  # there are no subclasses to keep
    unknown = set(kwargs) - {"out", "where", "casting", "dtype"}
    if unknown:
        raise _unimplemented(f"numpy.{name} with {', '.join(sorted(unknown))}")
    out = kwargs.get("out")
    if out is not None and len(out) > 1:
        if not all(one is None or isinstance(one, Array) for one in out):
            raise _unimplemented(f"numpy.{name} with out= on the host")
        return _ufunc.call(name, inputs, **kwargs)
    return _with_host_outs(lambda out: _ufunc.call(name, inputs, out=out, **kwargs), kwargs)


def _with_host_outs(apply, kwargs):
    """`out` of NumPy's own kind takes the elements."""
    out = (kwargs.pop("out", None) or (None,))[0]
    if out is None or isinstance(out, Array):
        return apply(out)
    where = on_host(kwargs.get("where", True))
    np.copyto(out, np.asarray(apply(None)), casting=kwargs.get("casting", "same_kind"), where=where)
    return out


# NumPy's functions whose namesakes here do something else.
def _save(file, arr, allow_pickle=True):
    np.save(file, np.asarray(arr), allow_pickle=allow_pickle)


@functools.lru_cache(maxsize=1)
def _table() -> Dict[Callable, Callable]:
    """NumPy's functions and their implementations here."""
    import stride
    from stride import emath
    from stride.lib import stride_tricks

    table: Dict[Callable, Callable] = {}
    for name in stride.__all__:
        theirs, ours = getattr(np, name, None), getattr(stride, name)
        if callable(theirs) and callable(ours) and theirs is not ours and not isinstance(theirs, (type, np.ufunc)):
            table[theirs] = ours
    table[np.save] = _save
    for name in linalg.__all__:
        theirs = getattr(np.linalg, name, None)
        if callable(theirs) and not isinstance(theirs, type):
            table[theirs] = getattr(linalg, name)
    for name in emath.__all__:
        table[getattr(np.emath, name)] = getattr(emath, name)
    table[np.lib.stride_tricks.sliding_window_view] = stride_tricks.sliding_window_view
    for name in fft.__all__:
        if name not in ("fftfreq", "rfftfreq"):  # which take no arrays
            table[getattr(np.fft, name)] = getattr(fft, name)
    return table


def apply_function(function, arguments, kwargs):
    ours = _table().get(function)
    if ours is None:
        return _downloaded(function, f"{_module_of(function)}.{function.__name__}", arguments, kwargs)
    if kwargs:
        kwargs = {name: one for name, one in kwargs.items() if one is not np._NoValue}
    return ours(*arguments, **kwargs)


def _downloaded(function: Callable, name: str, arguments, kwargs):
    """Runs NumPy's own function on the host, on read-only copies: a write would raise and is not lost."""
    if any(isinstance(one, Array) for one in _flat(kwargs.get("out"))):
        raise _unimplemented(f"{name} with out=")
    _origin.warn(
        f"{name} is not there for stride arrays: its arguments are downloaded and it runs on the host",
        _errors.DownloadWarning,
    )
    return function(*on_host(arguments), **on_host(kwargs))


def _flat(out) -> tuple:
    return out if isinstance(out, tuple) else (out,)


def on_host(one):
    """Read-only copies on the host in place of arrays, also within lists, tuples and dicts."""
    if isinstance(one, Array):
        host = one.to_numpy()
        host.setflags(write=False)
        return host
    if type(one) in (list, tuple):
        return type(one)(map(on_host, one))
    return {key: on_host(value) for key, value in one.items()} if type(one) is dict else one
