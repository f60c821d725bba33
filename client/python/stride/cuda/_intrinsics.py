"""Names that only kernels give a meaning."""

import importlib

_LIBDEVICE = "libdevice."


def _module(name: str):
    """A module of docstrings, loaded at the first request."""
    return importlib.import_module(f"stride.cuda.{name}")


def _parts(name: str):
    """The parts of a name's docstring."""
    if name.startswith(_LIBDEVICE):
        return _module("_libdevice_text").parts(name[len(_LIBDEVICE):])
    return _module("_intrinsics_text").parts(name)


class Intrinsic:
    # Something that only a kernel has. Its docstring and its signature are made at their first use.

    def __init__(self, name: str):
        self.name = name
        self.__name__ = self.__qualname__ = name.rpartition(".")[2]

    @property
    def __doc__(self):
        return _module("_docstring_form").docstring(*_parts(self.name))

    @property
    def __signature__(self):
        return _module("_docstring_form").signature(_parts(self.name)[1])

    def __repr__(self) -> str:
        return f"<stride.cuda.{self.name}>"

    def __call__(self, *_, **__):
        raise TypeError(f"cuda.{self.name} has a meaning only inside a kernel made by cuda.jit or stride.kernel")


class Group:
    # Names with a dot: `threadIdx.x`, `atomic.add`.

    def __init__(self, name: str, members):
        self._name = name
        for member in members:
            setattr(self, member, Intrinsic(f"{name}.{member}"))

    @property
    def __doc__(self):
        return _module("_intrinsics_text").GROUPS[self._name]

    def __repr__(self) -> str:
        return f"<stride.cuda.{self._name}>"


threadIdx, blockIdx, blockDim, gridDim = (
    Group(name, "xyz") for name in ("threadIdx", "blockIdx", "blockDim", "gridDim")
)  # noqa: N816
shared, local, const = Group("shared", ["array"]), Group("local", ["array"]), Group("const", ["array_like"])
atomic = Group(
    "atomic",
    [
        "add",
        "sub",
        "min",
        "max",
        "nanmin",
        "nanmax",
        "and_",
        "or_",
        "xor",
        "inc",
        "dec",
        "exch",
        "cas",
        "compare_and_swap",
    ],
)
_NAMES = (
    "grid",
    "gridsize",
    "syncthreads",
    "syncthreads_count",
    "syncthreads_and",
    "syncthreads_or",
    "syncwarp",
    "threadfence",
    "threadfence_block",
    "threadfence_system",
    "laneid",
    "warpsize",
    "shfl_sync",
    "shfl_up_sync",
    "shfl_down_sync",
    "shfl_xor_sync",
    "all_sync",
    "any_sync",
    "eq_sync",
    "ballot_sync",
    "match_any_sync",
    "match_all_sync",
    "activemask",
    "lanemask_lt",
    "popc",
    "brev",
    "clz",
    "ffs",
    "fma",
    "cbrt",
    "selp",
    "nanosleep",
)
(
    grid,
    gridsize,
    syncthreads,
    syncthreads_count,
    syncthreads_and,
    syncthreads_or,
    syncwarp,
    threadfence,
    threadfence_block,
    threadfence_system,
    laneid,
    warpsize,
    shfl_sync,
    shfl_up_sync,
    shfl_down_sync,
    shfl_xor_sync,
    all_sync,
    any_sync,
    eq_sync,
    ballot_sync,
    match_any_sync,
    match_all_sync,
    activemask,
    lanemask_lt,
    popc,
    brev,
    clz,
    ffs,
    fma,
    cbrt,
    selp,
    nanosleep,
) = map(Intrinsic, _NAMES)
grid_group = Group("cg.this_grid()", ["sync"])
this_grid = Intrinsic("cg.this_grid")
shared_memory = Intrinsic("shared_memory")  # CuPy's: a type, then a number of elements
