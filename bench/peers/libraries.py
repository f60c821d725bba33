"""One class for each library: its arrays, the end of its work, and the operations that libraries name differently.

An object of a class lives in a process of its own (process.py). A method that a library lacks raises Missing, which
becomes a line of the report."""

import math
import os
import sys

import numpy as np


class Missing(Exception):
    """This library has no such operation; the text says why."""


class Library:
    """`xp` has NumPy's names. `queues`: calls return before their work ends, so that several can be in flight."""

    name = ""
    queues = False
    xp = np

    def put(self, host):
        return self.xp.asarray(host)

    def get(self, array):
        return np.asarray(array)

    def sync(self, results):
        """Waits for all work that made `results`, an array or a list of arrays."""

    def compiled(self, function):
        """`function` with this library and arrays as arguments, as a user of this library would compile it."""
        return lambda *arrays: function(self, *arrays)

    def trim(self):
        """Frees the memory that the library keeps for later arrays."""

    def add_at(self, target, places, values):
        self.xp.add.at(target, places, values)
        return target

    def write(self, target, places, values):
        target[places] = values
        return target

    def top_k(self, values, k):
        return self.xp.sort(self.xp.partition(values, values.size - k)[values.size - k :])

    def group_sum(self, keys, values, count):
        return self.xp.bincount(keys, weights=values, minlength=count)

    def generator(self):
        return self.xp.random.default_rng(1)

    def normal(self, count, dtype):
        return self.generator().standard_normal(count, dtype=dtype)

    def uniform(self, count, dtype):
        return self.generator().random(count, dtype=dtype)

    def integers(self, count):
        return self.generator().integers(0, 1000, count, dtype=np.int32)

    def permutation(self, count):
        return self.generator().permutation(count)

    def kernel(self):
        """A function that launches one small CUDA kernel on an array, in place."""
        raise Missing("no CUDA kernels")


CUDA_SOURCE = """
extern "C" __global__ void increment(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1.0f;
}
"""


class Stride(Library):
    name = "stride"
    queues = True

    def __init__(self):
        import stride

        self.xp = stride
        self.session = stride.connect()

    def device(self):
        """The label of the device that runs the work, and the models of all devices."""
        from bench.report.devices import models

        named = models(self.session.devices())
        return next(iter(named)), named

    def put(self, host):
        array = self.xp.asarray(host)
        self.sync(array)
        return array

    def sync(self, results):
        self.xp.current_session().synchronize()

    def trim(self):
        self.sync(None)  # reports the arrays that the client has released

    def top_k(self, values, k):
        return self.xp.top_k(values, k)[0]

    def group_sum(self, keys, values, count):
        return self.xp.group_reduce("add", values, keys, count)

    def kernel(self):
        import stride.cupy

        launch = stride.cupy.RawKernel(CUDA_SOURCE, "increment")

        def turn(x):
            launch((4,), (256,), (x, np.int32(x.size)))
            return x

        return turn


class NumPy(Library):
    name = "NumPy"


class Numexpr(Library):
    """Expressions alone."""

    name = "numexpr"

    def __init__(self):
        threads = int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))
        os.environ.setdefault("NUMEXPR_MAX_THREADS", str(threads))
        import numexpr

        numexpr.set_num_threads(threads)  # as many as the CPU device has
        self.evaluate = numexpr.evaluate

    def compiled(self, function):
        text = getattr(function, "expression", None)
        if text is None:
            raise Missing("no expression")
        return lambda *arrays: self.evaluate(text, dict(zip("xyz", arrays)))


class CuPy(Library):
    name = "CuPy"
    queues = True

    def __init__(self):
        import cupy

        if not cupy.cuda.runtime.getDeviceCount():
            raise ImportError("no GPU")
        self.xp = cupy

    def get(self, array):
        return self.xp.asnumpy(array)

    def sync(self, results):
        self.xp.cuda.get_current_stream().synchronize()

    def trim(self):
        self.xp.get_default_memory_pool().free_all_blocks()

    def compiled(self, function):
        if getattr(function, "expression", None) is None:  # fuse knows few other functions
            return super().compiled(function)
        library = self

        def program(*arrays):
            return function(library, *arrays)

        return self.xp.fuse(kernel_name="program")(program)

    def add_at(self, target, places, values):
        import cupyx

        cupyx.scatter_add(target, places, values)
        return target

    def generator(self):
        return self.xp.random.default_rng(1)

    def integers(self, count):
        return self.xp.random.randint(0, 1000, count, dtype=np.int32)

    def permutation(self, count):
        return self.xp.random.permutation(count)

    def kernel(self):
        launch = self.xp.RawKernel(CUDA_SOURCE, "increment")

        def turn(x):
            launch((4,), (256,), (x, np.int32(x.size)))
            return x

        return turn


class Jax(Library):
    name = "JAX"
    queues = True

    def __init__(self):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        import jax

        jax.config.update("jax_enable_x64", True)
        # JAX multiplies float32 matrices in TF32 by default, with 10 bits; all others have 23.
        jax.config.update("jax_default_matmul_precision", "highest")
        self.jax, self.xp = jax, jax.numpy
        self.key = jax.random.key(1)

    def put(self, host):
        return self.jax.device_put(host)

    def sync(self, results):
        self.jax.block_until_ready(results)

    def compiled(self, function):
        plain = super().compiled(function)
        return plain if getattr(function, "eager", False) else self.jax.jit(plain)

    def add_at(self, target, places, values):
        return target.at[places].add(values)

    def write(self, target, places, values):
        return target.at[places].set(values)

    def top_k(self, values, k):
        return self.jax.lax.top_k(values, k)[0]

    def group_sum(self, keys, values, count):
        return self.jax.ops.segment_sum(values, keys, count)

    def normal(self, count, dtype):
        return self.jax.random.normal(self.key, (count,), dtype)

    def uniform(self, count, dtype):
        return self.jax.random.uniform(self.key, (count,), dtype)

    def integers(self, count):
        return self.jax.random.randint(self.key, (count,), 0, 1000, np.int32)

    def permutation(self, count):
        return self.jax.random.permutation(self.key, count)


class Torch(Library):
    """The workloads whose names PyTorch shares with NumPy."""

    name = "PyTorch"

    def __init__(self):
        import torch

        self.xp, self.place = torch, "cuda" if torch.cuda.is_available() else "cpu"
        self.queues = self.place == "cuda"

    def put(self, host):
        return self.xp.from_numpy(host).to(self.place)

    def get(self, array):
        return array.cpu().numpy()

    def sync(self, results):
        if self.queues:
            self.xp.cuda.synchronize()

    def trim(self):
        if self.queues:
            self.xp.cuda.empty_cache()

    def compiled(self, function):
        if not getattr(function, "torch", False):
            raise Missing("PyTorch has other names")
        return super().compiled(function)


class Numba(Library):
    """One ufunc on the GPU where there is one, else on all cores, and one kernel."""

    name = "Numba"

    def __init__(self):
        if not hasattr(np, "row_stack"):
            np.row_stack = np.vstack  # NumPy 2.5 has only this name; older Numba reads both during its import
        import numba
        from numba import cuda

        self.queues, self.cuda = cuda.is_available(), cuda

        def cos2_sin2(x):
            return math.cos(x) ** 2 + math.sin(x) ** 2

        def add(x, y):
            return x + y

        target = "cuda" if self.queues else "parallel"
        self.ufuncs = {
            "cos2_sin2": numba.vectorize(["float32(float32)"], target=target)(cos2_sin2),
            "add": numba.vectorize(["float32(float32, float32)"], target=target)(add),
        }

    def put(self, host):
        return self.cuda.to_device(host) if self.queues else host

    def get(self, array):
        return array.copy_to_host() if hasattr(array, "copy_to_host") else array

    def sync(self, results):
        if self.queues:
            self.cuda.synchronize()

    def compiled(self, function):
        if function.__name__ == "launch" and self.queues:
            return super().compiled(function)
        if function.__name__ not in self.ufuncs:
            raise Missing("Numba has kernels and ufuncs only")
        return self.ufuncs[function.__name__]

    def kernel(self):
        cuda = self.cuda

        @cuda.jit
        def increment(x):
            i = cuda.grid(1)
            if i < x.size:
                x[i] += np.float32(1)

        def turn(x):
            increment[4, 256](x)
            return x

        return turn


LIBRARIES = {kind.name: kind for kind in (Stride, NumPy, Numexpr, CuPy, Numba, Jax, Torch)}


def open_library(name):
    if name not in LIBRARIES:
        sys.exit(f"no library {name}; there are {', '.join(LIBRARIES)}")
    return LIBRARIES[name]()
