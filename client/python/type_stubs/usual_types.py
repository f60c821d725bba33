"""The types of parameters and results of the package's functions where the source does not say."""

from typing import Dict

# The types that parameters have by their names, where the source does not say.
PARAMETERS: Dict[str, str] = {
    **dict.fromkeys(
        """a b c x y m v A a1 a2 ar1 ar2 arr ary x1 x2 array condition values val vals choices fill_value indices ind
        repeats sorter element test_elements groups keys weights prepend append mask xp fp tol rtol rcond colors cov
        alpha pvals""".split(),
        "ArrayLike",
    ),
    **dict.fromkeys(
        """low high loc scale p n df dfnum dfden nonc ngood nbad nsample lam mu kappa sigma left right lam""".split(),
        "Real",
    ),
    "arrays": "Sequence[ArrayLike]",
    "axes": "Any",
    "axis": "Axis",
    "casting": "str",
    "correction": "Optional[float]",
    "copy": "Optional[bool]",
    "dtype": "Optional[DTypeLike]",
    "function": "Callable[..., Any]",
    "initial": "Any",
    "kind": "Optional[str]",
    "like": "Any",
    "order": "Optional[str]",
    "other": "Any",
    "out": "Any",
    "progress": "Optional[Callable[[int, int], None]]",
    "session": "Optional[Session]",
    "shape": "Shape",
    "size": "Optional[Shape]",
    "where": "Any",
}

# Parameters that mean something else than their name elsewhere.
EXCEPTIONS = {
    "_distributions.Distributions.gamma.shape": "Real",
    "_distributions.Distributions.standard_gamma.shape": "Real",
    "_array.Array.__init__.shape": "Shape",
    "_conversion.from_dlpack.x": "Any",
}

# The results of functions, by module and name, where the source does not say.
RETURNS: Dict[str, str] = {
    "__init__.asarray": "ndarray",
    "__init__.memoize": "Callable[[Callable[..., Any]], Callable[..., Any]]",
    "_arrays.as_cuda_array": "Array",
    "_arrays.device_array": "Array",
    "_arrays.device_array_like": "Array",
    "_arrays.to_device": "Array",
    "_compiled.guvectorize": "Callable[[Callable[..., Any]], Any]",
    "_fusion.fuse": "Callable[..., Any]",
    "_intrinsics.Intrinsic.__call__": "Any",
    "jit.rawkernel": "Callable[[Callable[..., Any]], Any]",
    "_bit_generator.BitGenerator.random_raw": "Any",
    "_calculus.gradient": "Any",
    "_elementwise.clip": "Array",
    "_elementwise.where": "Any",
    "_execution.Stream.auto_synchronize": "Any",
    "_generator.Generator.choice": "Any",
    "_generator.Generator.permutation": "Array",
    "_grids.indices": "Any",
    "_joining.atleast_1d": "Any",
    "_joining.atleast_2d": "Any",
    "_joining.atleast_3d": "Any",
    "_polynomials.polydiv": "Tuple[Array, Array]",
    "random.create_xoroshiro128p_states": "Array",
    "_session.Session.array": "Array",
    "_sets.intersect1d": "Any",
    "_sets.unique": "Any",
    "_statistics.average": "Any",
    "_testing_arrays.generate_matrix": "Any",
}

# The results of functions where some of their parameters, with the defaults, are of these types.
USUAL = {
    "_creation.linspace": ({"retstep": "Literal[False]"}, "Array"),
    "_decompositions.qr": ({"mode": "Literal['reduced', 'complete']"}, "QRResult"),
    "_decompositions.svd": ({"compute_uv": "Literal[True]"}, "SVDResult"),
    "_elementwise.where": ({"x1": "ArrayLike", "x2": "ArrayLike"}, "Array"),
    "_grids.indices": ({"sparse": "Literal[False]"}, "Array"),
    "_polynomials.polyfit": ({"full": "Literal[False]", "cov": "Literal[False]"}, "Array"),
    "_sets.intersect1d": ({"return_indices": "Literal[False]"}, "Array"),
    "_sets.unique": ({
        "return_index": "Literal[False]", "return_inverse": "Literal[False]", "return_counts": "Literal[False]",
    }, "Array"),  # fmt: skip
    "_statistics.average": ({"returned": "Literal[False]"}, "Array"),
}

# Decorators with and without arguments: their result for a function.
DECORATORS = {"_compiled.jit": "Kernel", "_compiled.vectorize": "UFunc", "__init__.jit": "Callable[..., Any]"}
DUNDERS = {"__bool__": "bool", "__exit__": "None", "__init__": "None", "__len__": "int", "__repr__": "str"}
