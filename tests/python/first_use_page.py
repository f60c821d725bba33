"""Lines whose first use is measured (bench/python/first_use.py) and compiles nothing (first_use_test.py): one operation
or a few on small arrays, each line alone. Their names are those of `variables`."""

import numpy as np

import stride as st

# From NumPy's "absolute basics for beginners" and "quickstart" pages: one operation a line, on small arrays.
NUMPY = """
st.zeros(2)
st.ones(2, dtype=np.int64)
st.arange(4)
st.arange(2, 9, 2)
st.linspace(0, 10, num=5)
st.full((2, 3), 7.5)
st.sort(st.array([2, 1, 5, 3, 7, 4, 6, 8]))
st.concatenate((st.array([1, 2, 3, 4]), st.array([5, 6, 7, 8])))
st.arange(6).reshape(3, 2) + 1
a12[a12 < 5]
a12[a12 >= 5]
a12[a12 % 2 == 0]
a12[(a12 > 2) & (a12 < 11)]
(a12 > 5) | (a12 == 5)
st.nonzero(a12 < 5)[0]
st.vstack((a12, a12))
st.hstack((a12, a12))
data + ones
data - ones
data * data
data / data
data * 1.6
data.sum()
b.sum(axis=0)
b.sum(axis=1)
data.max()
data.min()
b.max(axis=0)
b.min(axis=1)
b.mean()
b.std()
st.unique(st.array([11, 11, 12, 13, 14, 15]))
b.T + b.T
st.flip(st.array([1, 2, 3, 4]))
x ** 2
st.sin(x)
st.cos(x)
10 * st.sin(x)
x < 35
b @ b.T
st.cumsum(x)
x.cumsum()
b.cumsum(axis=1)
st.exp(b)
st.sqrt(b)
st.add(b, c)
st.floor(10 * x)
x.argmax()
x.argmin()
st.where(x > 0.5, x, -x)
st.clip(x, 0.2, 0.8)
st.maximum(x, 0.5)
st.round(x, 2)
st.abs(x - 0.5)
st.log(x + 1)
x.var()
st.median(x)
st.argsort(x)
st.prod(x)
st.any(x > 0.5)
st.all(x > 0.5)
st.diff(x)
st.dot(x, x)
st.outer(x, x)
x[::2] * 2
x[st.array([1, 3, 5])]
st.isnan(x)
x.astype(np.float32)
x.astype(np.int32)
st.tile(x, 2)
st.repeat(x, 2)
st.eye(3)
st.meshgrid(x, x)[0]
(((st.array([1, 1, 1]) - st.array([1, 2, 3])) ** 2).sum()) / 3
st.histogram(x, 4)[0]
st.polyval(st.array([1.0, 2.0, 3.0]), x)
st.random.default_rng(1).random(3)
st.random.default_rng(1).integers(10, size=(2, 4))
st.random.default_rng(1).normal(size=3)
b32 + b32
b32 * 2
st.sin(b32)
b32.sum()
b32.sum(axis=0)
b32.mean()
b32 / b32.max()
i32 + i32
i32 * 2
i32.sum()
i32 // 2
i32 % 3
i32 + b32
st.sqrt(i32)
b - b.mean(axis=0)
(b - b.mean(axis=0)) / b.std(axis=0)
b[:, 0]
b[0] + b[1]
st.exp(-b ** 2 / 2)
1 / (1 + st.exp(-b))
st.cos(x) ** 2 + st.sin(x) ** 2
st.sqrt((x - 1) ** 2 + (x + 1) ** 2)
""".strip().splitlines()

# Reductions of expressions, along rows, columns, both and more axes.
REDUCTIONS = """
((x - 0.5) ** 2).sum()
((b - c) ** 2).sum(axis=0)
((b - c) ** 2).sum(axis=1)
((big32 - 1) * big32).sum(axis=0)
((big32 - 1) * big32).sum(axis=1)
(big32 * 2).sum()
(big32 > 0.5).sum()
(big32 > 0.5).sum(axis=0)
(big32 * big).max(axis=1)
(big32 - big).min(axis=0)
st.abs(big).mean(axis=1)
st.prod(1 + b32 / 64, axis=0)
st.any(big > 1.5, axis=0)
st.all(big < 1.5, axis=1)
st.argmax(big32 * 3, axis=1)
st.argmin(-big, axis=0)
(big + 1j * big).sum(axis=0)
(i32 * i32).sum(axis=1)
st.count_nonzero(big > 0.7)
st.norm(big - 1)
st.sqrt(((big - big.mean(axis=0)) ** 2).mean(axis=0))
st.exp(b).sum() / st.exp(c).sum()
(cube * 2).sum(axis=(0, 2))
(cube - 1).max(axis=1)
(cube.T * cube.T).mean(axis=0)
big.var(axis=0)
big32.std(axis=1)
big.sum(axis=0) / big.sum()
big[::2, ::3].sum(axis=1)
big[:, :5].T.max(axis=0)
st.log(st.exp(b).sum(axis=1))
st.exp(b) / st.exp(b).sum(axis=1, keepdims=True)
""".strip().splitlines()

# `small` is an array of each of the less common types.
NARROW = """
small.sum()
small.sum(axis=0)
small.min()
small.max(axis=1)
small.argmax()
st.any(small, axis=0)
(small + small).max(axis=1)
st.sort(small, axis=1)
st.argsort(small, axis=1)
st.cumsum(small, axis=1)
small[st.array([1, 0])]
small[small > 2]
st.nonzero(small)[0]
st.unique(small)
st.where(small > 2, small, small * 2)
small ** 2
small // 2
st.searchsorted(st.sort(small[0]), small[1])
""".strip().splitlines()

INDEXING = """
x[-1]
x[2:40:3]
b[1, 2]
b[[0, 2]]
b[[0, 2], [1, 3]]
b[:, st.array([3, 0])]
b[b > 4]
b[..., None].shape
st.take(x, st.array([4, 2]))
st.take_along_axis(b, st.argsort(b, axis=1), axis=1)
st.compress(st.array([True, False, True]), b, axis=0)
st.argwhere(b > 6)
st.flatnonzero(x > 0.5)
st.diag(b)
st.triu(b)
st.roll(x, 3)
x.copy().__setitem__(st.array([1, 2]), 3.0)
x.copy().__setitem__(x > 0.5, 3.0)
b.copy().__setitem__((slice(None), st.array([1, 2])), 3.0)
st.add.at(x.copy(), st.array([1, 1, 3]), 2.0)
st.put_along_axis(b.copy(), st.array([[0], [1], [2]]), 9.0, axis=1)
""".strip().splitlines()

SORTING = """
st.sort(x)
st.sort(b, axis=0)
st.sort(-x)
st.argsort(-b, axis=1)
st.median(b, axis=0)
st.percentile(x, 30)
st.quantile(x, st.array([0.1, 0.9]))
st.partition(x, 10)
st.unique(i32)
st.searchsorted(x, x[::7])
st.bincount(a12.ravel())
st.histogram(x, 5)[0]
st.cumprod(b, axis=1)
st.maximum.accumulate(x)
st.digitize(x, x[::10])
st.group_reduce("add", x, st.array(np.arange(50) % 7), 7)
st.bincount(a12.ravel(), weights=x[:12])
""".strip().splitlines()

RANDOM = """
generator.random((3, 4))
generator.normal(2.0, 0.5, size=7)
generator.standard_normal(5, dtype=np.float32)
generator.integers(3, 9, size=6)
generator.uniform(-1, 1, size=5)
generator.permutation(10)
generator.permutation(x)
generator.choice(x, 4)
""".strip().splitlines()

LINEAR_ALGEBRA = """
b @ b.T
b32 @ b32.T
x @ x
b @ st.ones(4)
st.matmul(stack, stack)
st.linalg.solve(square, st.ones(3))
st.linalg.inv(square)
st.linalg.det(square)
st.linalg.cholesky(square)
st.linalg.qr(square)[1]
st.linalg.eigh(square)[0]
st.linalg.svd(square)[1]
st.linalg.norm(b)
st.linalg.norm(b, axis=1)
st.trace(square)
st.outer(x, x)
st.inner(b, c)
st.tensordot(b, c.T, 1)
st.einsum("ij,kj->ik", b, c)
st.fft.fft(x)
""".strip().splitlines()

# Compiled functions: the steps of a program also run before their code is compiled.
PROGRAMS = """
st.jit(lambda v: v * 2 + 1)(x)
st.jit(lambda v: st.sin(v) ** 2 + st.cos(v) ** 2)(x)
st.jit(lambda v: ((v - v.mean()) ** 2).sum())(x)
st.jit(lambda m: (m - m.mean(axis=0)) / m.std(axis=0))(big)
st.jit(lambda m: (m * 2).sum(axis=1) + st.max(m, axis=1))(big32)
st.jit(lambda m, n: st.exp(m @ n.T).sum(axis=0))(b, c)
st.jit(lambda v: st.where(v > 0.5, v, 0).cumsum())(x)
st.jit(lambda v: st.sort(v * -1)[:3])(x)
""".strip().splitlines()

GROUPS = {"numpy": NUMPY, "reductions": REDUCTIONS, "indexing": INDEXING, "sorting": SORTING, "random": RANDOM,
          "linear algebra": LINEAR_ALGEBRA, "programs": PROGRAMS}
PAGE = [line for lines in GROUPS.values() for line in lines]
NARROW_TYPES = [np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.float16]


def variables():
    x = np.linspace(0.01, 0.99, 50)
    b = np.arange(1.0, 13.0).reshape(3, 4)
    big = np.linspace(0, 2, 2000).reshape(40, 50)
    square = np.array([[4.0, 1, 0], [1, 5, 2], [0, 2, 6]])
    return {
        "big": st.array(big), "big32": st.array(big.astype(np.float32)), "square": st.array(square),
        "cube": st.array(np.linspace(-1, 1, 3 * 20 * 17).reshape(3, 20, 17)), "stack": st.array(np.stack([square] * 2)),
        "generator": st.random.default_rng(7),
        "np": np, "st": st, "a12": st.array(np.arange(1, 13).reshape(3, 4)), "data": st.array(np.array([1, 2])),
        "ones": st.array(np.ones(2, np.int64)), "x": st.array(x), "b": st.array(b), "c": st.array(b[::-1].copy()),
        "b32": st.array(b.astype(np.float32)), "i32": st.array(b.astype(np.int32)),
    }


def narrow_variables(dtype):
    return {"np": np, "st": st, "small": st.array(np.array([[3, 1, 2], [5, 4, 4]], dtype))}
