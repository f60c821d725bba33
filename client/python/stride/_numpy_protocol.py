"""NumPy's functions applied to our arrays: `np.cos(x)`, `np.sum(x)`, `np.concatenate([x, y])`."""

import functools

import numpy as np

from stride import (
    _creation,
    _einsum,
    _elementwise,
    _errors,
    _functions,
    _inference,
    _linear_algebra,
    _manipulation,
    _reductions,
    _routines,
    _ufunc,
    fft,
    linalg,
)
from stride._array import Array

_NAMES = {*_elementwise.UNARY, *_elementwise.BINARY, "divmod", "frexp", "modf"}


def _unimplemented(what: str) -> _errors.Unimplemented:
    return _errors.Unimplemented(f"{what} is not there for stride arrays; np.asarray(x) downloads one", reason="NOT_IMPLEMENTED",
                                 metadata={"feature": what})


def apply_ufunc(ufunc, method: str, inputs, kwargs):
    name = ufunc.__name__
    if name in _functions.BUILT_IN_GUFUNCS and method == "__call__":
        return _gufunc(name, inputs, kwargs)
    if name not in _NAMES:
        raise _unimplemented(f"numpy.{name}")
    if method == "__call__":
        return _call(name, inputs, kwargs)
    if method == "at" and ufunc.nin == 1 and ufunc.nout == 1:
        if not isinstance(inputs[0], Array):
            raise _unimplemented(f"numpy.{name}.at on an array of the host")
        return _ufunc.unary_at(name, *inputs)
    if method not in ("reduce", "accumulate", "outer", "at", "reduceat") or ufunc.nin != 2 or ufunc.nout != 1:
        raise _unimplemented(f"numpy.{name}.{method}")
    kwargs = {key: value for key, value in kwargs.items() if value is not np._NoValue}
    if method == "at" and not isinstance(inputs[0], Array):
        raise _unimplemented(f"numpy.{name}.at on an array of the host")
    apply = functools.partial(getattr(_ufunc, method), name, *inputs)
    return apply(**kwargs) if method in ("at", "outer") else _with_host_outs(lambda out: apply(out=out, **kwargs), kwargs)


def _gufunc(name: str, inputs, kwargs):
    placed = {key: kwargs.pop(key) for key in ("axes", "axis", "keepdims") if kwargs.get(key) is not None}
    if set(kwargs) - {"out"}:
        raise _unimplemented(f"numpy.{name} with {', '.join(sorted(set(kwargs) - {'out'}))}")
    inputs = tuple(_ufunc._array_of(one) for one in inputs)
    if name == "matmul" and not placed:
        return _with_host_outs(lambda out: _ufunc._give(_linear_algebra.matmul(*inputs), out, None, "same_kind"), kwargs)
    return _with_host_outs(lambda out: _ufunc._give(_functions.BUILT_IN_GUFUNCS[name](*inputs, **placed), out, None, "same_kind"), kwargs)


def _call(name: str, inputs, kwargs):
    kwargs.pop("order", None)  # there is one
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
    if kwargs.get("where", True) is not True:
        raise _unimplemented("where= with out= on the host")
    np.copyto(out, np.asarray(apply(None)), casting=kwargs.get("casting", "same_kind"))
    return out


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
    np.sum: _plain(_reductions.sum),
    np.prod: _plain(_reductions.prod),
    np.min: _plain(_reductions.min),
    np.max: _plain(_reductions.max),
    np.mean: _plain(_reductions.mean),
    np.var: _plain(_reductions.var),
    np.std: _plain(_reductions.std),
    np.any: _plain(_reductions.any),
    np.all: _plain(_reductions.all),
    np.argmin: _plain(_reductions.argmin),
    np.argmax: _plain(_reductions.argmax),
    np.count_nonzero: _plain(_reductions.count_nonzero),
    np.concatenate: lambda arrays, axis=0: _manipulation.concat(arrays, axis=axis),
    np.stack: lambda arrays, axis=0: _manipulation.stack(arrays, axis=axis),
    np.where: _elementwise.where,
    np.clip: lambda a, a_min=None, a_max=None, out=None, *, min=None, max=None, **kwargs: _clip(
        a, a_min, a_max, out, min, max, **kwargs
    ),
    np.real: _elementwise.real,
    np.imag: _elementwise.imag,
    np.round: lambda a, decimals=0: _elementwise.round(a) if decimals == 0 else _no_decimals(),
    np.reshape: lambda a, shape, **kwargs: _manipulation.reshape(a, shape, **kwargs),
    np.transpose: lambda a, axes=None: _manipulation.permute_dims(
        a, range(a.ndim - 1, -1, -1) if axes is None else axes
    ),
    np.moveaxis: _manipulation.moveaxis,
    np.broadcast_to: _manipulation.broadcast_to,
    np.expand_dims: lambda a, axis: _manipulation.expand_dims(a, axis=axis),
    np.squeeze: lambda a, axis=None: _manipulation.squeeze(a, axis=axis),
    np.flip: lambda m, axis=None: _manipulation.flip(m, axis=axis),
    np.roll: lambda a, shift, axis=None: _manipulation.roll(a, shift, axis=axis),
    np.tile: _manipulation.tile,
    np.repeat: lambda a, repeats, axis=None: _manipulation.repeat(a, repeats, axis=axis),
    np.diff: lambda a, n=1, axis=-1, **kwargs: _manipulation.diff(a, n=n, axis=axis, **kwargs),
    np.zeros_like: lambda a, dtype=None: _creation.zeros_like(a, dtype=dtype),
    np.ones_like: lambda a, dtype=None: _creation.ones_like(a, dtype=dtype),
    np.empty_like: lambda a, dtype=None: _creation.empty_like(a, dtype=dtype),
    np.full_like: lambda a, fill_value, dtype=None: _creation.full_like(a, fill_value, dtype=dtype),
    np.tril: lambda m, k=0: _creation.tril(m, k=k),
    np.triu: lambda m, k=0: _creation.triu(m, k=k),
    np.dot: _linear_algebra.dot,
    np.tensordot: lambda a, b, axes=2: _linear_algebra.tensordot(a, b, axes=axes),
    np.inner: _linear_algebra.inner,
    np.vdot: _linear_algebra.vdot,
    np.einsum: _einsum.einsum,
    np.einsum_path: _einsum.einsum_path,
    np.outer: lambda a, b: linalg.outer(_manipulation.reshape(a, (a.size,)), _manipulation.reshape(b, (b.size,))),
    # NumPy's are of the first two axes, the standard's, in linalg, of the last two.
    np.trace: lambda a, offset=0, axis1=0, axis2=1, dtype=None: linalg.trace(
        _matrices_last(a, axis1, axis2), offset=offset, dtype=dtype
    ),
    np.diagonal: lambda a, offset=0, axis1=0, axis2=1: linalg.diagonal(_matrices_last(a, axis1, axis2), offset=offset),
    np.sort: _ordered(_routines.sort),
    np.argsort: _ordered(_routines.argsort),
    np.cumsum: _cumulative(_routines.cumulative_sum),
    np.cumprod: _cumulative(_routines.cumulative_prod),
    np.take: lambda a, indices, axis=None, mode="raise": _routines.take(
        _manipulation.reshape(a, (a.size,)) if axis is None else a, indices, axis=axis or 0, mode=mode
    ),
    np.take_along_axis: lambda arr, indices, axis=-1: _routines.take_along_axis(arr, indices, axis=axis),
    np.nonzero: _routines.nonzero,
    np.put: lambda a, ind, v, mode="raise": _routines.put(a, ind, v, mode=mode),
    np.isin: _routines.isin,
    np.meshgrid: lambda *xi, indexing="xy": _creation.meshgrid(*xi, indexing=indexing),
    np.broadcast_arrays: lambda *args: _manipulation.broadcast_arrays(*args),
    np.put_along_axis: lambda arr, indices, values, axis: _routines.put_along_axis(arr, indices, values, axis=axis),
    np.bincount: _routines.bincount,
    np.histogram: lambda a, bins=10, range=None, density=None, weights=None: _histogram(
        a, bins, range, density, weights
    ),
    np.unique: lambda ar, return_index=False, return_inverse=False, return_counts=False, **kwargs: _unique(
        ar, return_index, return_inverse, return_counts, **kwargs
    ),
    np.searchsorted: lambda a, v, side="left", sorter=None: _routines.searchsorted(a, v, side=side, sorter=sorter),
    np.result_type: _manipulation.result_type,
    np.can_cast: _manipulation.can_cast,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
    np.array_repr: lambda arr, *_: repr(arr),
    np.array_str: lambda a, *_: str(a),
    np.allclose: lambda a, b, **kwargs: bool(np.allclose(np.asarray(a), np.asarray(b), **kwargs)),
    np.array_equal: lambda a, b, **kwargs: bool(np.array_equal(np.asarray(a), np.asarray(b), **kwargs)),
}


def _clip(a, a_min, a_max, out, min, max, casting="same_kind"):  # noqa: A002
    if (a_min is not None or a_max is not None) and (min is not None or max is not None):
        raise ValueError("the bounds of clip are a_min and a_max or min and max")
    result = _elementwise.clip(a, a_min if min is None else min, a_max if max is None else max)
    return _with_host_outs(
        lambda given: _ufunc._give(result, given, None, casting), {"out": (out,), "casting": casting}
    )


def _histogram(a, bins, range, density, weights):  # noqa: A002
    if density:
        raise _unimplemented("numpy.histogram with density")
    return _routines.histogram(a, bins, range, weights)


def _matrices_last(a, axis1: int, axis2: int) -> Array:
    axes = [_inference.normal_axis(one, a.ndim) for one in (axis1, axis2)] if a.ndim > 1 else []
    if len(axes) < 2:
        raise _errors.ShapeMismatch(
            f"diagonals are of arrays of two axes or more, not of {a.ndim}", reason="SHAPE_MISMATCH"
        )
    if axes[0] == axes[1]:
        raise ValueError("axis1 and axis2 cannot be the same")
    return _manipulation.moveaxis(a, tuple(axes), (-2, -1))


def _unique(x, return_index, return_inverse, return_counts, axis=None, *, equal_nan=True, sorted=True):  # noqa: A002
    if axis is not None:
        raise _unimplemented("numpy.unique with axis")
    if not (return_index or return_inverse or return_counts):
        values = _routines.unique(x, values_only=True, equal_nan=equal_nan)
        return values.values if isinstance(values, _routines.UniqueAll) else values
    all_ = _routines.unique(x, equal_nan=equal_nan)
    results = (all_.values,) + (all_.indices,) * return_index + (all_.inverse_indices,) * return_inverse + (all_.counts,) * return_counts
    return results[0] if len(results) == 1 else results


# What has NumPy's own signature; keywords that we lack are told by Python.
for _name in ("cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul", "matrix_norm", "matrix_power",
              "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv",
              "tensorsolve", "trace", "vecdot", "vector_norm"):
    if hasattr(np.linalg, _name):
        _FUNCTIONS[getattr(np.linalg, _name)] = getattr(linalg, _name)

_FUNCTIONS[np.linalg.eig], _FUNCTIONS[np.linalg.eigvals] = linalg.eig_as_numpy, linalg.eigvals_as_numpy


for _name in fft.__all__:
    if _name not in ("fftfreq", "rfftfreq"):  # which take no arrays
        _FUNCTIONS[getattr(np.fft, _name)] = getattr(fft, _name)


def _no_decimals():
    raise _unimplemented("numpy.round with decimals")


def apply_function(function, arguments, kwargs):
    ours = _FUNCTIONS.get(function)
    if ours is None:
        raise _unimplemented(f"{getattr(function, '__module__', 'numpy')}.{function.__name__}")
    return ours(*arguments, **kwargs)
