"""Inputs of rows. Sizes are those of a GPU; `scale` multiplies the number of elements, and on a CPU device the rows
above 1e7 elements have 1e7. Inputs are the same in every process."""

import numpy as np


class Sizes:
    """Inputs by count of elements."""

    def __init__(self, scale, gpu):
        self.scale, self.gpu = scale, gpu
        self.random = np.random.default_rng(1)

    def count(self, n):
        return max(int((n if self.gpu else min(n, 1e7)) * self.scale), 2)

    def side(self, n):
        """Rows of a square matrix whose number of elements scales as the others."""
        return max(int(n * min(self.scale, 1) ** 0.5), 2)

    def floats(self, *shape, dtype=np.float32):
        """Numbers in [0, 1). Beyond 2^22 elements a block is repeated, since drawing takes longer than the row."""
        count = int(np.prod(shape, dtype=np.int64))
        block = self.random.random(min(count, (1 << 22) + 7), dtype)
        return np.resize(block, count).reshape(shape)

    def normals(self, *shape, dtype=np.float32):
        return self.random.standard_normal(shape, dtype)

    def places(self, count, end, dtype=np.int64):
        return self.random.integers(0, end, count, dtype=dtype)


def keys(s):
    return [s.normals(s.count(1e7))]


def square(s):
    return [s.floats(s.side(4096), s.side(4096))]
