"""NumPy's functions applied to our arrays: `np.cos(x)`, `np.sum(x)`, `np.concatenate([x, y])`."""

import functools

import numpy as np

from stride import _array, _creation, _elementwise, _errors, _linear_algebra, _manipulation, _reductions, _routines, fft, linalg
from stride._array import Array

_REDUCTIONS = {"add": _reductions.sum, "multiply": _reductions.prod, "maximum": _reductions.max, "minimum": _reductions.min,
               "logical_and": _reductions.all, "logical_or": _reductions.any}


def _unimplemented(what: str) -> _errors.Unimplemented:
    return _errors.Unimplemented(f"{what} is not there for stride arrays; np.asarray(x) downloads one", reason="NOT_IMPLEMENTED",
                                 metadata={"feature": what})


def apply_ufunc(ufunc, method: str, inputs, kwargs):
    name = ufunc.__name__
    if method == "__call__":
        return _call(ufunc, inputs, kwargs)
    if method == "reduce" and name in _REDUCTIONS:
        return _reduce(_REDUCTIONS[name], *inputs, **kwargs)
    if method == "accumulate" and name in ("add", "multiply"):
        return _accumulate(_routines.cumulative_sum if name == "add" else _routines.cumulative_prod, *inputs, **kwargs)
    if method == "outer" and not kwargs:
        x, y = (one if isinstance(one, Array) else _creation.asarray(one) for one in inputs)
        return _call(ufunc, (_manipulation.reshape(x, x.shape + (1,) * y.ndim), y), {})
    raise _unimplemented(f"numpy.{name}.{method}")


def _call(ufunc, inputs, kwargs):
    out = kwargs.pop("out", (None,))[0]
    dtype = kwargs.pop("dtype", None)
    if kwargs.get("where", True) is True:
        kwargs.pop("where", None)
    if kwargs:
        raise _unimplemented(f"numpy.{ufunc.__name__} with {', '.join(kwargs)}")
    if ufunc is np.matmul:
        result = _linear_algebra.matmul(*inputs)
    elif ufunc is np.divmod:
        return _elementwise.floor_divide(*inputs), _elementwise.remainder(*inputs)
    else:
        function = getattr(_elementwise, ufunc.__name__, None)
        if function is None or ufunc.__name__ not in _elementwise.__all__:
            raise _unimplemented(f"numpy.{ufunc.__name__}")
        if dtype is not None:
            inputs = [one.astype(dtype, copy=False) if isinstance(one, Array) else one for one in inputs]
        result = function(*inputs)
    if out is None:
        return result
    if not isinstance(out, Array):
        out[...] = np.asarray(result)
        return out
    return _array._assign_in_place(out, result)


def _reduce(function, x, axis=0, dtype=None, out=None, keepdims=False, **kwargs):
    if kwargs or out is not None:
        raise _unimplemented("numpy.ufunc.reduce with out, initial or where")
    extra = {} if dtype is None else {"dtype": dtype}
    return function(x, axis=axis, keepdims=keepdims, **extra)


def _accumulate(function, x, axis=0, dtype=None, out=None):
    if out is not None:
        raise _unimplemented("numpy.ufunc.accumulate with out")
    return function(x, axis=axis, dtype=dtype)


def _cumulative(function):
    """NumPy's: of all axes together where none is named."""

    def call(a, axis=None, dtype=None):
        return function(_manipulation.reshape(a, (a.size,)), dtype=dtype) if axis is None else function(a, axis=axis, dtype=dtype)

    return call


def _ordered(function):
    def call(a, axis=-1, **kwargs):
        kwargs = {name: value for name, value in kwargs.items() if value is not None and name not in ("kind", "stable")}
        if kwargs:
            raise _unimplemented(f"numpy's sort with {', '.join(kwargs)}")
        return function(_manipulation.reshape(a, (a.size,)), axis=0) if axis is None else function(a, axis=axis)

    return call


def _plain(function):
    """For NumPy's reductions: without keywords that were not given."""

    @functools.wraps(function)
    def call(a, axis=None, **kwargs):
        kwargs = {name: value for name, value in kwargs.items() if value is not None and value is not np._NoValue}
        if "ddof" in kwargs:
            kwargs["correction"] = kwargs.pop("ddof")
        return function(a, axis=axis, **kwargs)

    return call


_FUNCTIONS = {
    np.sum: _plain(_reductions.sum), np.prod: _plain(_reductions.prod), np.min: _plain(_reductions.min), np.max: _plain(_reductions.max),
    np.mean: _plain(_reductions.mean), np.var: _plain(_reductions.var), np.std: _plain(_reductions.std), np.any: _plain(_reductions.any),
    np.all: _plain(_reductions.all), np.argmin: _plain(_reductions.argmin), np.argmax: _plain(_reductions.argmax),
    np.count_nonzero: _plain(_reductions.count_nonzero),
    np.concatenate: lambda arrays, axis=0: _manipulation.concat(arrays, axis=axis),
    np.stack: lambda arrays, axis=0: _manipulation.stack(arrays, axis=axis),
    np.where: _elementwise.where,
    np.clip: lambda a, a_min=None, a_max=None: _elementwise.clip(a, a_min, a_max),
    np.real: _elementwise.real, np.imag: _elementwise.imag,
    np.round: lambda a, decimals=0: _elementwise.round(a) if decimals == 0 else _no_decimals(),
    np.reshape: lambda a, shape, **kwargs: _manipulation.reshape(a, shape, **kwargs),
    np.transpose: lambda a, axes=None: _manipulation.permute_dims(a, range(a.ndim - 1, -1, -1) if axes is None else axes),
    np.moveaxis: _manipulation.moveaxis, np.broadcast_to: _manipulation.broadcast_to,
    np.expand_dims: lambda a, axis: _manipulation.expand_dims(a, axis=axis),
    np.squeeze: lambda a, axis=None: _manipulation.squeeze(a, axis=axis),
    np.flip: lambda m, axis=None: _manipulation.flip(m, axis=axis),
    np.roll: lambda a, shift, axis=None: _manipulation.roll(a, shift, axis=axis),
    np.tile: _manipulation.tile, np.repeat: lambda a, repeats, axis=None: _manipulation.repeat(a, repeats, axis=axis),
    np.diff: lambda a, n=1, axis=-1, **kwargs: _manipulation.diff(a, n=n, axis=axis, **kwargs),
    np.zeros_like: lambda a, dtype=None: _creation.zeros_like(a, dtype=dtype),
    np.ones_like: lambda a, dtype=None: _creation.ones_like(a, dtype=dtype),
    np.empty_like: lambda a, dtype=None: _creation.empty_like(a, dtype=dtype),
    np.full_like: lambda a, fill_value, dtype=None: _creation.full_like(a, fill_value, dtype=dtype),
    np.tril: lambda m, k=0: _creation.tril(m, k=k), np.triu: lambda m, k=0: _creation.triu(m, k=k),
    np.dot: lambda a, b: _linear_algebra.matmul(a, b) if a.ndim and b.ndim <= 2 else _elementwise.multiply(a, b),
    np.tensordot: lambda a, b, axes=2: _linear_algebra.tensordot(a, b, axes=axes),
    np.outer: lambda a, b: linalg.outer(_manipulation.reshape(a, (a.size,)), _manipulation.reshape(b, (b.size,))),
    np.trace: lambda a, offset=0, dtype=None: linalg.trace(a, offset=offset, dtype=dtype),
    np.diagonal: lambda a, offset=0: linalg.diagonal(a, offset=offset),
    np.sort: _ordered(_routines.sort), np.argsort: _ordered(_routines.argsort),
    np.cumsum: _cumulative(_routines.cumulative_sum), np.cumprod: _cumulative(_routines.cumulative_prod),
    np.take: lambda a, indices, axis=None: _routines.take(_manipulation.reshape(a, (a.size,)) if axis is None else a, indices, axis=axis or 0),
    np.take_along_axis: lambda arr, indices, axis=-1: _routines.take_along_axis(arr, indices, axis=axis),
    np.nonzero: _routines.nonzero,
    np.searchsorted: lambda a, v, side="left", sorter=None: _routines.searchsorted(a, v, side=side, sorter=sorter),
    np.result_type: _manipulation.result_type, np.can_cast: _manipulation.can_cast,
    np.shape: lambda a: a.shape, np.ndim: lambda a: a.ndim, np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
    np.array_repr: lambda arr, *_: repr(arr), np.array_str: lambda a, *_: str(a),
    np.allclose: lambda a, b, **kwargs: bool(np.allclose(np.asarray(a), np.asarray(b), **kwargs)),
    np.array_equal: lambda a, b, **kwargs: bool(np.array_equal(np.asarray(a), np.asarray(b), **kwargs)),
}


# What has NumPy's own signature; keywords that we lack are told by Python.
for _name in ("cholesky", "cond", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "lstsq", "matmul", "matrix_norm", "matrix_power",
              "matrix_rank", "matrix_transpose", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace",
              "vecdot", "vector_norm"):
    if hasattr(np.linalg, _name):
        _FUNCTIONS[getattr(np.linalg, _name)] = getattr(linalg, _name)


def _fourier(function, several: bool):
    """NumPy's arguments may be given by position."""
    if several:
        return lambda a, s=None, axes=None, norm=None: function(a, s=s, norm=norm, **({} if axes is None else {"axes": axes}))
    return lambda a, n=None, axis=-1, norm=None: function(a, n=n, axis=axis, norm=norm)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _FUNCTIONS[getattr(np.fft, _name)] = _fourier(getattr(fft, _name), False)
for _name in ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"):
    _FUNCTIONS[getattr(np.fft, _name)] = _fourier(getattr(fft, _name), True)
_FUNCTIONS[np.fft.fftshift] = lambda x, axes=None: fft.fftshift(x, axes=axes)
_FUNCTIONS[np.fft.ifftshift] = lambda x, axes=None: fft.ifftshift(x, axes=axes)


def _no_decimals():
    raise _unimplemented("numpy.round with decimals")


def apply_function(function, arguments, kwargs):
    ours = _FUNCTIONS.get(function)
    if ours is None:
        raise _unimplemented(f"{getattr(function, '__module__', 'numpy')}.{function.__name__}")
    return ours(*arguments, **kwargs)
