"""A user's program over the module's functions: it is checked by mypy and pyright and never runs."""

from typing import List, Optional, Tuple

import numpy as np

import stride as st
from stride import Array, Session


def added(i: Array, j: Array) -> Array:
    return i + j


def created() -> List[Array]:
    shape: Tuple[int, int] = (3, 4)
    grid = st.meshgrid(st.arange(3), st.arange(4))
    return [
        st.zeros(shape, np.float32), st.ones((2, 3)), st.full(shape, 7), st.empty(5, dtype=st.int32), st.eye(3),
        st.identity(3), st.array([[1, 2], [3, 4]]), st.asarray([1.0, 2.0], dtype="float32"), st.arange(10),
        st.linspace(0, 1, 5), st.logspace(0, 2, 3), st.geomspace(1, 8, 4), st.zeros_like(st.ones(3)),
        st.ones_like(st.ones(3)), st.full_like(st.ones(3), 2), st.empty_like(st.ones(3)), st.tri(3),
        st.tril(st.ones((3, 3))), st.triu(st.ones((3, 3)), 1), st.diag(st.arange(3)), st.diagflat([1, 2]),
        st.frombuffer(b"\x01\x02", st.uint8), st.fromiter((i * i for i in range(3)), int), st.vander([1, 2, 3]),
        st.copy(grid[0]), st.ascontiguousarray(st.ones(3)), st.fromfunction(added, (2, 2)), st.hanning(8),
        st.kaiser(8, 14.0),
    ]  # fmt: skip


def computed(x: Array, y: Array) -> Array:
    z: Array = x + 1 - 2 * y / 3.0 // 2 % 5 ** x
    z += 1
    z = -z @ x.T
    mask = (x > 0) & (y <= 1) | ~(x == y)
    z = st.where(mask, x, y)
    for one in (
        st.abs(x), st.sqrt(x), st.exp(x), st.log(x), st.log1p(x), st.expm1(x), st.sin(x), st.cos(x), st.tan(x),
        st.arcsin(x), st.arctan2(x, y), st.hypot(x, y), st.sinh(x), st.tanh(x), st.floor(x), st.ceil(x), st.trunc(x),
        st.rint(x), st.round(x, 2), st.sign(x), st.square(x), st.reciprocal(x), st.maximum(x, y), st.minimum(x, 0),
        st.clip(x, 0, 1), st.isnan(x), st.isfinite(x), st.logical_and(x, y), st.logical_not(x), st.bitwise_and(x, 3),
        st.left_shift(x, 2), st.greater(x, y), st.equal(x, y), st.add(x, y, out=z, where=mask),
        st.multiply(x, y, dtype=np.float64), st.power(x, 2), st.remainder(x, y), st.gcd(x, y),
        st.add.reduce(x, axis=0), st.multiply.accumulate(x), st.subtract.outer(x, y), st.heaviside(x, 0.5),
        st.nan_to_num(x), st.sinc(x), st.real(x), st.imag(x), st.conj(x), st.angle(x), st.deg2rad(x), st.cbrt(x),
        st.fabs(x), st.copysign(x, y), st.nextafter(x, y),
    ):  # fmt: skip
        z = z + one
    quotient, remainder = st.divmod(x, y)
    st.add.at(z, [0, 1], 1.0)
    return z + quotient + remainder


def reduced(x: Array) -> Tuple[float, int, bool]:
    total: Array = st.sum(x, axis=(0, 1), keepdims=True, dtype=np.float64)
    for one in (
        st.prod(x), st.mean(x, axis=0), st.std(x, ddof=1), st.var(x), st.min(x), st.max(x, axis=-1), st.ptp(x),
        st.median(x), st.any(x), st.all(x, axis=0), st.argmin(x), st.argmax(x, axis=1), st.cumsum(x),
        st.cumprod(x, axis=0), st.nansum(x), st.nanmean(x), st.nanmax(x), st.nanstd(x), st.count_nonzero(x),
        st.quantile(x, 0.5), st.percentile(x, [25, 75]), st.diff(x), st.trapezoid(x),
        st.bincount(st.array([0, 1, 1])), st.corrcoef(x), st.cov(x), st.convolve(x, [1, 2]),
        st.interp(x, [0, 1], [2, 3]), st.digitize(x, [0, 1]), st.searchsorted([1, 2, 3], x), st.trace(x),
        st.linalg.norm(x), st.vecdot(x, x),
    ):  # fmt: skip
        total = total + one
    return float(total), int(st.argmax(x)), bool(st.allclose(x, x))


def arranged(x: Array) -> Array:
    parts: List[Array] = [*st.split(x, 2), *st.array_split(x, 3, axis=0), *st.hsplit(x, 2), *st.vsplit(x, 2)]
    parts += [
        st.reshape(x, (2, -1)), st.ravel(x), st.transpose(x), st.swapaxes(x, 0, 1), st.moveaxis(x, 0, -1),
        st.squeeze(x), st.flip(x), st.expand_dims(x, 0), st.broadcast_to(x, (2, 3, 4)), st.concatenate([x, x]),
        st.stack([x, x], axis=1), st.vstack([x, x]), st.hstack((x, x)), st.dstack([x]), st.column_stack([x, x]),
        st.tile(x, 2), st.repeat(x, 3, axis=0), st.roll(x, 1), st.rot90(x), st.pad(x, 1), st.append(x, [1, 2]),
        st.insert(x, 0, 5), st.delete(x, 0), st.take(x, [0, 1]), st.sort(x), st.argsort(x, axis=0), st.flipud(x),
        st.fliplr(x), st.diagonal(x), st.choose([0, 1], [x, x]), st.compress([True, False], x), st.extract(x > 0, x),
        st.union1d(x, x), st.setdiff1d(x, x), st.isin(x, [1, 2]), st.partition(x, 1), st.argpartition(x, 1),
        st.flatnonzero(x), st.take_along_axis(x, st.argsort(x), axis=-1), st.permute_dims(x, (1, 0)),
        st.matrix_transpose(x), st.trim_zeros(x), st.resize(x, 5),
    ]  # fmt: skip
    rows, columns = st.nonzero(x)[0], st.tril_indices(3)[1]
    x[0] = 1
    x[rows, columns] = 5
    return x[0, ..., None] + parts[0] + x[x > 0].sum()


def methods(x: Array) -> str:
    y = x.astype(st.float32).reshape(2, -1).sum(axis=0, keepdims=True).mean().copy()
    y = y.T + x.flatten() + x.ravel() + x.transpose(1, 0) + x.cumsum() + x.clip(0, 1) + x.round(2)
    y = y + x.conj() + x.dot(x) + x.squeeze()
    y.fill(3)
    x.sort()
    host: np.ndarray = x.to_numpy()
    shape: Tuple[int, ...] = x.shape
    size: int = x.size + x.ndim + x.nbytes + x.itemsize
    name: str = x.device
    kind: np.dtype = x.dtype
    numbers = [float(one) for one in x]
    return f"{host} {shape} {size} {name} {kind} {x.item(0)} {x.tolist()} {len(x)} {numbers}"


def algebra(a: Array, b: Array) -> Array:
    c: Array = st.matmul(a, b) + st.dot(a, b) + st.inner(a, b) + st.outer(a, b) + st.tensordot(a, b, axes=1)
    c = c + st.einsum("ij,jk->ik", a, b)
    c = c + st.kron(a, b) + st.cross(a, b) + st.linalg.solve(a, b) + st.linalg.inv(a)
    c = c + st.linalg.det(a) + st.linalg.pinv(a)
    values, vectors = st.linalg.eigh(a)
    sign, logarithm = st.linalg.slogdet(a)
    c = c + values + vectors + sign + logarithm + st.linalg.cholesky(a) + st.linalg.matrix_power(a, 3)
    c = c + st.linalg.eigvalsh(a)
    c = c + st.fft.fft(a) + st.fft.ifft(a, norm="ortho") + st.fft.rfft2(a) + st.fft.fftshift(a) + st.fft.fftfreq(8, 0.1)
    return c + st.polyval([1, 2], a) + st.polyfit(a, b, 2) + st.polyadd([1], [2]) + st.i0(a)


def drawn(seed: Optional[int] = None) -> Array:
    generator = st.random.default_rng(seed)
    x: Array = generator.normal(0.0, 1.0, size=(2, 3))
    x = x + generator.random(3) + generator.integers(0, 10, size=3)
    x = x + generator.uniform(size=3)
    x = x + generator.exponential(2.0, 3) + generator.poisson(4.0, 3) + generator.permutation(5)
    x = x + generator.gamma(2.0, size=3)
    st.random.seed(7)
    return x + st.random.rand(2, 3) + st.random.randn(3) + st.random.randint(0, 5, 3) + st.random.normal(size=3)


def used(address: Optional[str] = None) -> None:
    with st.connect(address, timeout=10.0) as session:
        own: Session = session
        names: List[str] = [one.name for one in own.devices()]
        try:
            full: str = st.save("x", st.arange(3), overwrite=True)
            print(st.load(full), names, st.named_arrays(), own.tenant, own.transport)
            job = st.submit(st.negative, "x", results=["y"])
            print(job.wait().state, job.name, job.results)
        except st.NotFound as error:
            print(error.reason, error.message, error.field)
        except (st.ShapeMismatch, st.CompileError):
            own.synchronize()
