"""Distributions of several numbers each."""

import warnings

import numpy as np

from stride import _assembly, _conversion, _dtypes, _elementwise as _e, _errors, _manipulation, _reductions, _sampling
from stride._array import Array, host_array
from stride._linear_algebra import matmul
from stride._parameters import count_of, shape_of, whole

# NumPy's, of the sum of probabilities and of how many there may be of all colors.
_TOLERANCE, _MOST_COLORS = 1e-12, 10**9


def dirichlet(rng, alpha, size, dtype: np.dtype) -> Array:
    alpha = host_array(alpha).astype(float)
    if alpha.ndim != 1:
        raise ValueError(f"alpha has one axis, not {alpha.ndim}")
    if not np.all(alpha >= 0):
        raise ValueError("alpha < 0")
    if alpha.size and alpha.max() < 1e-280:
        alpha = alpha * 2.0**300  # the same distribution, by logarithms that are within the range
    shape = (*shape_of(() if size is None else size), alpha.size)
    # By logarithms: small alphas give numbers below the range.
    logs = _sampling.sample("log_gammas", shape, _dtypes.float64, *rng._state(shape), alpha)
    return _sampling.shares(logs).astype(dtype, copy=False)


def multinomial(rng, n, pvals, size) -> Array:
    n, pvals = whole(n, "n"), pvals if isinstance(pvals, Array) else host_array(pvals).astype(float)
    if not pvals.ndim:
        raise ValueError("pvals has an axis of outcomes")
    are_shares, is_whole = _judged(pvals)
    if not are_shares:
        raise ValueError("pvals < 0, pvals > 1 or pvals contains NaNs")
    if not is_whole:
        raise ValueError("sum(pvals[:-1]) > 1")
    rows = np.empty(pvals.shape[:-1])
    shape = shape_of(size, n, rows)
    return _sampling.multinomial(shape, n, pvals, rng._state(shape))


def _judged(pvals) -> tuple:
    """Whether all are within [0, 1], and whether all but the last of each row add up to 1 at most. For those on the
    device, one round trip."""
    known = pvals._node.cached() if isinstance(pvals, Array) else pvals
    if known is not None:
        sums = np.asarray(known, float)[..., :-1].sum(axis=-1)
        return bool(np.all((known >= 0) & (known <= 1))), bool(sums.max(initial=0) <= 1 + _TOLERANCE)
    if pvals._node.session._is_trace:
        return True, True  # nothing is read while a function is recorded
    pvals = pvals.astype(_dtypes.float64, copy=False)
    sums = _reductions.sum(pvals[..., :-1], axis=-1)
    both = (_reductions.all((pvals >= 0) & (pvals <= 1)), _reductions.all(sums <= 1 + _TOLERANCE))
    return tuple(_assembly.stack(both).tolist())


def hypergeometric(rng, colors, nsample, size, method: str) -> Array:
    if method not in ("count", "marginals"):
        raise ValueError(f"method is count or marginals, not {method!r}")
    colors = host_array(colors)
    if colors.ndim != 1 or colors.size and colors.dtype.kind not in "iu" or np.any(colors < 0):
        raise ValueError("colors is a sequence of integers that are not negative")
    draws, total = count_of(nsample, "nsample"), sum(colors.tolist())
    if total >= _MOST_COLORS:
        raise ValueError(f"the sum of colors is below {_MOST_COLORS}")
    if draws > total:
        raise ValueError("nsample > sum(colors)")
    shape = shape_of(() if size is None else size)
    return _sampling.colors(shape, colors, draws, rng._state(shape))


def _real(x, name: str) -> Array:
    x = x if isinstance(x, Array) else _conversion.asarray(host_array(x))
    if x.dtype.kind == "c":
        raise _errors.DataTypeMismatch(f"{name} is of real numbers, not of {x.dtype}", reason="DATA_TYPE_MISMATCH")
    return x.astype(_dtypes.float64, copy=False)


def normal(rng, mean, cov, size, check_valid: str, tol: float, method: str) -> Array:
    from stride import linalg

    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError(f"method is svd, eigh or cholesky, not {method!r}")
    if check_valid not in ("warn", "raise", "ignore"):
        raise ValueError(f"check_valid is warn, raise or ignore, not {check_valid!r}")
    mean, cov = _real(mean, "mean"), _real(cov, "cov")
    if mean.ndim != 1:
        raise ValueError("mean must be 1 dimensional")
    if cov.ndim != 2 or cov.shape[0] != cov.shape[1]:
        raise ValueError("cov must be 2 dimensional and square")
    if mean.shape[0] != cov.shape[0]:
        raise ValueError("mean and cov must have same length")
    shape = (*shape_of(() if size is None else size), mean.shape[0])
    valid = None
    if method == "cholesky":
        factor = _manipulation.matrix_transpose(linalg.cholesky(cov))
    elif method == "eigh":
        values, vectors = linalg.eigh(cov)
        factor = _manipulation.matrix_transpose(vectors * _e.sqrt(_e.absolute(values)))
        valid = _reductions.all(values >= -tol * (1 + _reductions.max(_e.absolute(values), initial=0)))
    else:
        _, values, rows = linalg.svd(cov)
        factor = _e.sqrt(_manipulation.expand_dims(values, axis=1)) * rows
        # Without negative eigenvalues left and right vectors are the same.
        again = matmul(_manipulation.matrix_transpose(rows) * values, rows)
        valid = _reductions.all(_e.absolute(again - cov) <= tol + tol * _e.absolute(cov))
    if valid is not None and check_valid != "ignore" and not bool(valid):
        if check_valid == "raise":
            raise ValueError("covariance is not symmetric positive-semidefinite.")
        warnings.warn("covariance is not symmetric positive-semidefinite.", RuntimeWarning, stacklevel=3)
    return mean + matmul(rng.standard_normal(shape), factor)
