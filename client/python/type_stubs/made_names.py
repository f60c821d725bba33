"""The lines of stubs for names that tables make at import, from the same tables."""

import ast
import pathlib
from typing import List

from type_stubs.exported_names import NUMBA_TYPES, exported, libdevice_names
from type_stubs.sources import literals, loaded

_UFUNC = (
    "where: Any = True, casting: str = 'same_kind', order: Optional[str] = 'K', "
    "dtype: Optional[DTypeLike] = None, subok: bool = True, signature: Any = None"
)
_CLASSES = f"""
class Ufunc1(Protocol):
    __name__: str
    nin: int
    nout: int
    nargs: int
    types: List[str]
    ntypes: int
    identity: Any
    signature: Optional[str]
    resolve_dtypes: Callable[..., Any]
    def __call__(self, x: ArrayLike, /, out: Any = None, *, {_UFUNC}) -> Array: ...
    def at(self, a: Array, indices: Any) -> None: ...
class Ufunc2(Protocol):
    __name__: str
    nin: int
    nout: int
    nargs: int
    types: List[str]
    ntypes: int
    identity: Any
    signature: Optional[str]
    resolve_dtypes: Callable[..., Any]
    def __call__(self, x1: ArrayLike, x2: ArrayLike, /, out: Any = None, *, {_UFUNC}) -> Array: ...
    def reduce(self, x: ArrayLike, axis: Axis = 0, dtype: Optional[DTypeLike] = None, out: Optional[Array] = None, \
keepdims: bool = False, initial: Any = None, where: Any = True) -> Array: ...
    def accumulate(self, x: ArrayLike, axis: int = 0, dtype: Optional[DTypeLike] = None, out: Optional[Array] = None, \
include_initial: bool = False, reverse: bool = False, exclusive: bool = False) -> Array: ...
    def outer(self, a: ArrayLike, b: ArrayLike, **options: Any) -> Array: ...
    def at(self, a: Array, indices: Any, b: Any) -> None: ...
    def reduceat(self, x: ArrayLike, indices: Any, axis: int = 0, dtype: Optional[DTypeLike] = None, \
out: Optional[Array] = None) -> Array: ...
"""


def _documented(name: str, kind: str, text: str) -> List[str]:
    """A variable with a docstring, which editors show."""
    return [f"{name}: {kind}", f'"""{text}"""']


def _elementwise(package: pathlib.Path) -> List[str]:
    tables, text = literals(package, "_elementwise"), loaded(package / "_elementwise_text.py")
    lines = ["from typing import Protocol", *_CLASSES.strip().split("\n")]
    for table, kind in (("UNARY", "Ufunc1"), ("BINARY", "Ufunc2")):
        for name, public in tables[table].items():  # type: ignore[attr-defined]
            for one in (name, public) if public else (name,):
                lines += _documented(one, kind, text.described(name))
    for name, target in (("mod", "remainder"), ("true_divide", "divide"), ("bitwise_not", "invert")):
        kind = "Ufunc1" if target == "invert" else "Ufunc2"
        lines += _documented(name, kind, text.described(target))
    return lines


def _intrinsics(package: pathlib.Path) -> List[str]:
    form, text = (loaded(package / f"cuda/{one}.py") for one in ("_docstring_form", "_intrinsics_text"))
    lines: List[str] = []
    for name in text.INTRINSICS:
        if "." not in name:
            kind = "Any" if name in ("laneid", "warpsize") else "Intrinsic"
            lines += _documented(name, kind, form.docstring(*text.parts(name)))
    for name, summary in text.GROUPS.items():
        if "." not in name:
            lines += [f"class _{name.capitalize()}(Group):"]
            for one in text.INTRINSICS:
                if one.startswith(name + "."):
                    kind = "Any" if name.endswith(("Idx", "Dim")) else "Intrinsic"
                    docstring = form.docstring(*text.parts(one)).replace("\n", "\n    ")
                    documented = _documented(one[len(name) + 1:], kind, docstring)
                    lines += [f"    {line}" for line in documented]
            lines += _documented(name, f"_{name.capitalize()}", summary)
    return lines


def _libdevice(package: pathlib.Path) -> List[str]:
    form, text = (loaded(package / f"cuda/{one}.py") for one in ("_docstring_form", "_libdevice_text"))
    return [
        line
        for name in libdevice_names(package)
        for line in _documented(name, "Intrinsic", form.docstring(*text.parts(name)))
    ]


def _own_functions(module: str):
    """Those that a module has of the one of the same name without `cupy`."""
    return lambda package: [f"from stride.{module} import *"]


# Functions of stride.lax by what makes them.
_MADE = {
    "_unary": "x: ArrayLike, accuracy: Any = None",
    "_binary": "x: ArrayLike, y: ArrayLike",
    "_reduction": "operand: ArrayLike, axes: Sequence[int]",
    "_scan": "operand: ArrayLike, axis: int = 0, reverse: bool = False",
}


def _lax_operators(package: pathlib.Path) -> List[str]:
    return [
        f"def {ast.unparse(node.targets[0])}({_MADE[ast.unparse(node.value.func)]}) -> Array: ..."
        for node in ast.parse((package / "lax/_operators.py").read_text()).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if ast.unparse(node.value.func) in _MADE
    ]


def _cupy_random(package: pathlib.Path) -> List[str]:
    names = literals(package, "cupy/random")["_WITH_DTYPE"]
    signature = "(*arguments: Any, dtype: Optional[DTypeLike] = None, **kwargs: Any) -> Array: ..."
    # The module has classes of its own by these names.
    own = {*names, "Generator", "RandomState", "default_rng"}  # type: ignore[misc]
    others = sorted(exported(package, "random") - own)
    functions = (f"def {one}{signature}" for one in sorted(names))  # type: ignore[call-overload]
    generators = (f"class {one}(Philox): ..." for one in ("MRG32k3a", "Philox4x3210", "XORWOW"))
    return [f"from stride.random import {', '.join(others)}", *generators, *functions]


def _cupy(package: pathlib.Path) -> List[str]:
    aliases = literals(package, "cupy/_names")["ALIASES"]
    public = exported(package, "__init__")
    others = [one for one, target in aliases.items() if target in public and one not in public]  # type: ignore
    same = sorted(public - set(literals(package, "cupy/__init__")["_OWN"]))  # type: ignore[call-overload]
    return [
        "from numpy import bytes_, exceptions",
        f"from stride import {', '.join(same)}",
        "from stride.cupy import cuda, fft, linalg, random, testing",
        *(f"{one} = {aliases[one]}" for one in others),  # type: ignore[index]
    ]


def _numba_types(package: pathlib.Path) -> List[str]:
    return ["from stride._signatures import ElementType", *(f"{one}: ElementType" for one in NUMBA_TYPES)]


def _special(package: pathlib.Path) -> List[str]:
    tables = literals(package, "cupyx/scipy/special")
    lines = []
    for name, (summary, _) in tables["_UNARY"].items():  # type: ignore[attr-defined]
        lines += [f"def {name}(x: ArrayLike, out: Optional[Array] = None) -> Array:", f"    {summary!r}"]
    for name, (summary, _) in tables["_BINARY"].items():  # type: ignore[attr-defined]
        lines += [f"def {name}(x: ArrayLike, y: ArrayLike, out: Optional[Array] = None) -> Array:", f"    {summary!r}"]
    return [*lines, "loggamma = gammaln"]


EXTRA = {
    "cuda/__init__": lambda package: ["from stride.cuda import devicearray, fp16, libdevice, random"],
    "cupy/__init__": _cupy,
    "cupy/fft": _own_functions("fft"),
    "cupy/linalg": _own_functions("linalg"),
    "cupy/random": _cupy_random,
    "cupyx/__init__": lambda package: ["from stride.cupyx import jit, linalg, profiler, scipy, time"],
    "cupyx/scipy/__init__": lambda package: ["from stride.cupy import fft", "from stride.cupyx.scipy import special"],
    "cupyx/scipy/special": _special,
    "lax/_operators": _lax_operators,
    "numba/__init__": _numba_types,
    "numba/types": lambda package: [*_numba_types(package), "none: ElementType"],
    "testing": lambda package: ["from numpy.testing import *"],
    "_elementwise": _elementwise,
    "cuda/_intrinsics": _intrinsics,
    "cuda/libdevice": _libdevice,
}
