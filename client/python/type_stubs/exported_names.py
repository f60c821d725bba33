"""The names that modules export, also those that tables make at import."""

import ast
import pathlib
from typing import Dict, Iterator, List, Set

from type_stubs.sources import imports_in, literals

# Numba's names of element types, as _signatures.py makes them.
NUMBA_TYPES = """b1 bool8 bool_ boolean byte c16 c8 char complex128 complex64 double f2 f4 f8 float16 float32 float64
float_ i1 i2 i4 i8 int16 int32 int64 int8 int_ intc intp long_ longlong short size_t ssize_t u1 u2 u4 u8 uchar uint
uint16 uint32 uint64 uint8 uintc uintp ulong ushort void""".split()


def exported(package: pathlib.Path, module: str) -> Set[str]:
    """The names in `__all__` of a module, which is not imported."""
    tree = ast.parse((package / f"{module}.py").read_text())
    names: Set[str] = set(_EXTRA_ALL.get(module, lambda package: ())(package))
    modules = {
        one.asname or one.name: ".".join(filter(None, (node.module, one.name)))
        for node in imports_in(tree.body)
        if isinstance(node, ast.ImportFrom)
        for one in node.names
    }
    for node in tree.body:
        for one in node.body if isinstance(node, ast.If) else [node]:
            is_all = isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "__all__"
            if is_all or isinstance(one, ast.AugAssign) and ast.unparse(one.target) == "__all__":
                names |= set(_listed(package, one.value, modules))
    return names


def _listed(package: pathlib.Path, value: ast.expr, modules: Dict[str, str]) -> Iterator[str]:
    """The names of a list that is written out or taken of other modules' lists."""
    if isinstance(value, ast.List):
        for item in value.elts:
            if isinstance(item, ast.Starred):
                yield from _listed(package, item.value, modules)
            elif isinstance(item, ast.Constant):
                yield item.value
    elif isinstance(value, ast.Call) and ast.unparse(value.func) == "list":
        yield from _listed(package, value.args[0], modules)
    elif isinstance(value, ast.Attribute) and value.attr == "__all__":
        path = modules.get(ast.unparse(value.value), "").split(".")
        if path[0] == "stride":
            inside = "/".join(path[1:])
            yield from exported(package, f"{inside}/__init__" if (package / inside).is_dir() else inside)


def _elementwise_all(package: pathlib.Path) -> Set[str]:
    tables = literals(package, "_elementwise")
    both = {**tables["UNARY"], **tables["BINARY"]}  # type: ignore[dict-item]
    return {*both, *(one for one in both.values() if one)}


def libdevice_names(package: pathlib.Path) -> List[str]:
    found = literals(package, "cuda/libdevice")
    names, fast = found["_NAMES"], found["_FAST"]
    return [*names, *(one + "f" for one in names), *("fast_" + one for one in fast)]  # type: ignore


def _cupy_all(package: pathlib.Path) -> Set[str]:
    found, names = literals(package, "cupy/__init__"), literals(package, "cupy/_names")
    public = exported(package, "__init__")
    aliases = {one for one, target in names["ALIASES"].items() if target in public}  # type: ignore[attr-defined]
    return {*public, *found["_OWN"], *aliases, "bytes_", "exceptions"}  # type: ignore[misc]


def _cupy_testing(package: pathlib.Path) -> Set[str]:
    """The functions and classes of the module itself."""
    body = ast.parse((package / "cupy/testing.py").read_text()).body
    defined = {one.name for one in body if isinstance(one, (ast.FunctionDef, ast.ClassDef)) and one.name[0] != "_"}
    aliases = {
        one.targets[0].id
        for one in body
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and isinstance(one.value, ast.Name)
        if one.value.id in defined
    }
    return defined | aliases


_EXTRA_ALL = {
    "_elementwise": _elementwise_all,
    "cuda/libdevice": libdevice_names,
    "cupy/__init__": _cupy_all,
    "cupy/testing": _cupy_testing,
    "numba/__init__": lambda package: NUMBA_TYPES,
    "numba/types": lambda package: [*NUMBA_TYPES, "none"],
}
