"""Modules of the package as files: their syntax trees, and the tables that are written out in them."""

import ast
import functools
import importlib.util
import pathlib
from typing import Dict, Iterable, Iterator, Set


@functools.lru_cache(maxsize=None)
def names_asked_for(package: pathlib.Path) -> Dict[str, Set[str]]:
    """By module, the names that other modules import from it."""
    found: Dict[str, Set[str]] = {}
    for source in package.rglob("*.py"):
        for node in imports_in(ast.parse(source.read_text()).body):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stride."):
                module = "/".join(node.module.split(".")[1:])  # type: ignore[union-attr]
                found.setdefault(module, set()).update(one.name for one in node.names)
    return found


def imports_in(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, (ast.If, ast.Try)):
            yield from imports_in(node.body)


def bound(scope) -> Set[str]:
    """The names that a scope defines or imports."""
    names: Set[str] = {one.asname or one.name for node in imports_in(scope.body) for one in node.names}
    for node in scope.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names |= {one.id for one in node.targets if isinstance(one, ast.Name)}
    return names


def literals(package: pathlib.Path, module: str) -> Dict[str, object]:
    """The variables of a module whose values are written out."""
    found: Dict[str, object] = {}
    for node in ast.parse((package / f"{module}.py").read_text()).body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            value = node.value
            text = ast.unparse(value)
            try:
                if text.endswith(".split()"):
                    found[ast.unparse(target)] = ast.literal_eval(value.func.value).split()  # type: ignore
                elif text.startswith("set("):
                    found[ast.unparse(target)] = ast.literal_eval(value.args[0].func.value).split()  # type: ignore
                else:
                    found[ast.unparse(target)] = ast.literal_eval(value)
            except (ValueError, AttributeError, TypeError):
                continue
    return found


def loaded(path: pathlib.Path):
    """A module of docstrings alone, which imports nothing of the package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module
