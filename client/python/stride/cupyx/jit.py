"""cupyx.jit: kernels in Python, translated to CUDA C++ as stride.kernel's are.

from stride.cupyx import jit

@jit.rawkernel()
def copy(x, y, size):
    i = jit.blockIdx.x * jit.blockDim.x + jit.threadIdx.x
    if i < size:
        y[i] = x[i]

copy((8,), (128,), (x, y, cp.uint32(1000)))      # or copy[8, 128](x, y, cp.uint32(1000))"""

from typing import Any, Callable

from stride import cuda
from stride._python_kernel import DeviceFunction, Kernel
from stride.cuda import (
    all_sync,
    any_sync,
    atomic,
    ballot_sync,
    blockDim,
    blockIdx,
    grid,
    gridDim,
    gridsize,
    laneid,
    shfl_down_sync,
    shfl_sync,
    shfl_up_sync,
    shfl_xor_sync,
    syncthreads,
    syncwarp,
    threadIdx,
    warpsize,
)

__all__ = [
    "all_sync",
    "any_sync",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_dec",
    "atomic_exch",
    "atomic_inc",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_sub",
    "atomic_xor",
    "ballot_sync",
    "blockDim",
    "blockIdx",
    "grid",
    "gridDim",
    "gridsize",
    "laneid",
    "range",
    "rawkernel",
    "shared_memory",
    "shfl_down_sync",
    "shfl_sync",
    "shfl_up_sync",
    "shfl_xor_sync",
    "syncthreads",
    "syncwarp",
    "threadIdx",
    "warpsize",
]

(
    atomic_add,
    atomic_sub,
    atomic_max,
    atomic_min,
    atomic_and,
    atomic_or,
    atomic_xor,
    atomic_inc,
    atomic_dec,
    atomic_exch,
    atomic_cas,
) = (
    atomic.add,
    atomic.sub,
    atomic.max,
    atomic.min,
    atomic.and_,
    atomic.or_,
    atomic.xor,
    atomic.inc,
    atomic.dec,
    atomic.exch,
    atomic.cas,
)
shared_memory = cuda.shared_memory
range = range  # noqa: A001, PLW0127: CuPy's name for Python's own
cg = cuda.cg


def __getattr__(name: str):
    if name in ("cub", "thrust"):
        raise AttributeError(
            f"cupyx.jit.{name} is not there: use cp.sort, cp.cumsum and the like before or after the kernel, or "
            f"RawKernel"
        )
    raise AttributeError(f"stride.cupyx.jit has no {name}")


class RawKernel(Kernel):
    """A kernel that is called as `kernel(grid, block, args, shared_mem=0)` or `kernel[grid, block](args...)`."""

    def __call__(self, grid, block, args, shared_mem: int = 0, stream: Any = None) -> None:
        """Launches it."""
        self.configure(grid, block, stream, shared_mem)(*args)

    def __getitem__(self, configuration) -> Callable:
        grid, block = configuration[:2]
        return self.configure(grid, block)


def rawkernel(*, mode: str = "cuda", device: bool = False):
    """A decorator that makes a kernel of a Python function; with `device`, a function for kernels to call.

    Parameters
        mode: accepted: the daemon compiles.
        device: whether the function is one that kernels call.
    Returns
        A decorator.
    Raises
        ExpressionError at the first launch for Python outside the subset.
    Example
        >>> from stride.cupyx import jit
        >>> @jit.rawkernel()
        ... def copy(x, y, size):
        ...     i = jit.blockIdx.x * jit.blockDim.x + jit.threadIdx.x
        ...     if i < size:
        ...         y[i] = x[i]
        ...
        >>> y = st.zeros(3)
        >>> copy((1,), (32,), (st.arange(3.0), y, 3))
        >>> y.tolist()
        [0.0, 1.0, 2.0]
    """
    return lambda function: DeviceFunction(function) if device else RawKernel(function)
