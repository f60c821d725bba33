"""Names that only kernels give a meaning."""

from stride.cuda import _intrinsics_text as _text


class Intrinsic:
    """Something that only a kernel has."""

    def __init__(self, name: str, parameters: str = "", doc: str = ""):
        self.name = name
        self.__name__ = self.__qualname__ = name.split(".")[-1]
        self._parameters = parameters or (_text.INTRINSICS[name][0] if name in _text.INTRINSICS else "")
        self.__doc__ = doc or (_text.described(name) if name in _text.INTRINSICS else "")

    @property
    def __signature__(self):
        import inspect

        def parameter(one: str) -> inspect.Parameter:
            name, _, default = one.strip().partition("=")
            return inspect.Parameter(
                name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=int(default) if default else inspect.Parameter.empty
            )

        return inspect.Signature([parameter(one) for one in self._parameters.split(",") if one])

    def __repr__(self) -> str:
        return f"<stride.cuda.{self.name}>"

    def __call__(self, *_, **__):
        raise TypeError(f"cuda.{self.name} has a meaning only inside a kernel made by cuda.jit or stride.kernel")


class Group:
    """Names with a dot: `threadIdx.x`, `atomic.add`."""

    def __init__(self, name: str, members):
        self._name, self.__doc__ = name, _text.GROUPS[name]
        for member in members:
            setattr(self, member, Intrinsic(f"{name}.{member}"))

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
