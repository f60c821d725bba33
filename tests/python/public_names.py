"""The public names of the package, and what each has to have: a docstring with its parts, and a signature."""

import importlib
import inspect
import re
import types
from typing import Any, Iterator, List, NamedTuple

MODULES = (
    "stride", "stride.abi", "stride.aio", "stride.cuda", "stride.cuda.cg", "stride.cuda.devicearray",
    "stride.cuda.fp16", "stride.cuda.libdevice", "stride.cuda.random", "stride.cupy", "stride.cupy.cuda",
    "stride.cupy.cuda.device", "stride.cupy.cuda.memory", "stride.cupy.cuda.nvtx", "stride.cupy.cuda.profiler",
    "stride.cupy.cuda.runtime", "stride.cupy.cuda.stream", "stride.cupy.cuda.texture",
    "stride.cupy.fft", "stride.cupy.linalg",
    "stride.cupy.random", "stride.cupy.testing", "stride.cupyx", "stride.cupyx.jit", "stride.cupyx.linalg",
    "stride.cupyx.profiler", "stride.cupyx.scipy", "stride.cupyx.scipy.fft",
    "stride.cupyx.scipy.special", "stride.cupyx.time", "stride.dtypes",
    "stride.emath", "stride.exceptions", "stride.fft", "stride.lax", "stride.lib", "stride.lib.stride_tricks",
    "stride.linalg", "stride.numba", "stride.numba.core", "stride.numba.core.config",
    "stride.numba.core.errors", "stride.numba.types", "stride.polynomial", "stride.random", "stride.testing",
    "stride.tree", "stride.tree_util", "stride.typing",
)
# Modules of JAX's names, whose texts have no examples yet; `names` leaves them out.
JAX_MODULES = (
    "stride.jax", "stride.jax.ad_checkpoint", "stride.jax.debug", "stride.jax.dtypes", "stride.jax.example_libraries",
    "stride.jax.example_libraries.optimizers", "stride.jax.example_libraries.stax", "stride.jax.lax", "stride.jax.nn",
    "stride.jax.nn.initializers", "stride.jax.numpy", "stride.jax.numpy.fft", "stride.jax.numpy.linalg",
    "stride.jax.random", "stride.jax.scipy", "stride.jax.scipy.linalg", "stride.jax.scipy.special",
    "stride.jax.scipy.stats", "stride.jax.sharding", "stride.jax.test_util", "stride.jax.typing",
)
# Modules that are others': stride.numba enters them in sys.modules.
ALIASES = {
    "stride.numba.cuda": "stride.cuda",
    **{
        f"stride.numba.cuda.{one}": f"stride.cuda.{one}"
        for one in ("cg", "devicearray", "fp16", "libdevice", "random")
    },
}


class Name(NamedTuple):
    path: str
    value: Any
    kind: str  # function, class, property or group


def _is_own(value: Any) -> bool:
    """Whether the package defines it: NumPy's types and functions that are passed on have NumPy's texts."""
    return (getattr(value, "__module__", None) or "").split(".")[0] == "stride"


def _members(path: str, kind: type) -> Iterator[Name]:
    for owner in kind.__mro__:
        if not _is_own(owner):
            continue
        for name, value in vars(owner).items():
            if name.startswith("_"):
                continue
            if isinstance(value, (staticmethod, classmethod)):
                value = value.__func__
            if isinstance(value, property) or type(value).__name__ == "cached_property":
                yield Name(f"{path}.{name}", value, "property")
            elif inspect.isfunction(value):
                yield Name(f"{path}.{name}", value, "function")


def names() -> List[Name]:
    """Every public function, class, method and property that the package defines, once."""
    seen: dict = {}
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            value = getattr(module, name)
            path = f"{module_name}.{name}"
            if isinstance(value, types.ModuleType) or not _is_own(value) and not _is_own(type(value)):
                continue
            if not inspect.isclass(value) and value.__doc__ is type(value).__doc__:
                value = type(value)  # an object without a text of its own, such as an element type
            if inspect.isclass(value):
                seen.setdefault(id(value), Name(path, value, "class"))
                for one in _members(path, value):
                    seen.setdefault(id(one.value), one)
            elif type(value).__name__ == "Group":
                for member, one in vars(value).items():
                    if not member.startswith("_"):
                        seen.setdefault(id(one), Name(f"{path}.{member}", one, "function"))
            elif callable(value):
                seen.setdefault(id(value), Name(path, value, "function"))
                for method in ("reduce", "accumulate", "outer", "at", "reduceat"):
                    if hasattr(value, method) and name == "add":
                        bound = getattr(value, method)
                        seen.setdefault(id(bound), Name(f"{path}.{method}", bound, "function"))
    return list(seen.values())


def signature(name: Name) -> inspect.Signature:
    return inspect.signature(name.value)


def lacks(name: Name) -> List[str]:
    """The parts that a docstring does not have."""
    text = inspect.cleandoc(name.value.__doc__ or "")
    found = [] if re.match(r"\S.*[.:?)]", text, re.S) else ["a summary"]
    if name.kind != "property":
        parameters = signature(name).parameters if name.kind == "function" or "__init__" in vars(name.value) else {}
        listed = text.partition("Parameters")[2]
        found += [
            f"the parameter {one}"
            for one in parameters
            if one not in ("self", "cls", "_", "__") and not re.search(rf"(?<![\w.]){re.escape(one)}\b", listed)
        ]
        if name.kind == "function" and not re.search(r"\b(Returns|Yields)\b", text):
            found.append("what it returns")
    if ">>> " not in text:
        found.append("an example")
    if re.search(r"^(As NumPy's|See numpy|As of NumPy)", text):
        found.append("a text of its own")
    return found
