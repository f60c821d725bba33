"""The stub of one module, made of its syntax tree."""

import ast
import pathlib
import re
from typing import Dict, Iterable, Iterator, List, Optional, Set

from type_stubs.annotations import Annotations
from type_stubs.exported_names import exported
from type_stubs.made_names import EXTRA
from type_stubs.sources import bound, imports_in, names_asked_for
from type_stubs.usual_types import DECORATORS, DUNDERS, EXCEPTIONS, PARAMETERS, RETURNS, USUAL

_GENERICS = (
    "Any Callable Dict Iterable Iterator List Literal Mapping Optional Sequence Set Tuple Union overload"
).split()
_TYPES = ("ArrayLike", "Axis", "DTypeLike", "Real", "Shape")
_KEPT_DECORATORS = ("property", "staticmethod", "classmethod", "contextlib.contextmanager", "dataclass", "overload")
_CONSTANTS = ("int", "float", "str", "bool", "bytes")

# Operators that loops give to Array.
_OPERATORS = "add sub mul truediv floordiv mod pow and or xor lshift rshift".split()
_COMPARISONS = "lt le gt ge eq ne".split()


class ModuleStub:
    """The stub of one module."""

    def __init__(self, source: pathlib.Path, package: pathlib.Path):
        self._source, self._package = source, package
        self._made: Set[str] = set()
        self._tree = ast.parse(source.read_text())
        self._module = source.relative_to(package).with_suffix("").as_posix()
        self._names = bound(self._tree)
        # By scope: the module's name is the empty one.
        self._hidden: Dict[str, Set[str]] = {"": bound(self._tree)}

    def text(self) -> str:
        extra = EXTRA.get(self._module, lambda package: [])(self._package)
        self._made = bound(ast.parse("\n".join(extra)))
        self._hidden[""] |= self._made
        for node in self._tree.body:
            if isinstance(node, ast.ClassDef):
                self._hidden[node.name] = bound(node) | self._hidden[""]
        body = [*self._statements(self._tree.body), *extra]
        lines = [*self._imports("\n".join(body)), *self._own_imports("\n".join(body)), *body]
        return "\n".join([f"# Made of {self._source.name} by type_stubs.", *lines]) + "\n"

    def _own_imports(self, body: str) -> Iterator[str]:
        """The module's imports that the stub uses."""
        tree = ast.parse(body)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        used |= exported(self._package, self._module)
        asked_for = names_asked_for(self._package).get(self._module, set()) - used
        for node in imports_in(self._tree.body):
            names = [one for one in node.names if one.name == "*" or (one.asname or one.name).split(".")[0] in used]
            # A stub re-exports only imports of this form.
            names += [ast.alias(one.name, one.name) for one in node.names if (one.asname or one.name) in asked_for]
            if names:
                node.names = names
                yield ast.unparse(node)
        if "Kernel" in used and "Kernel" not in self._names:
            yield "from stride._python_kernel import Kernel"

    def _imports(self, body: str) -> Iterator[str]:
        """Imports for the annotations that this module adds."""
        used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
        names = [one for one in _GENERICS if one in used and one not in self._names]
        if names:
            yield f"from typing import {', '.join(names)}"
        if "builtins." in body:
            yield "import builtins"
        types = [one for one in _TYPES if one in used and one not in self._names]
        if types:
            yield f"from stride._types import {', '.join(types)}"
        for name, module in (("Session", "_session"), ("Array", "_array")):
            if name in used and name not in self._names:
                yield f"from stride.{module} import {name}"

    # --- statements of the module ---

    def _statements(self, body: Iterable[ast.stmt]) -> Iterator[str]:
        for node in body:
            if isinstance(node, ast.FunctionDef) and node.name in self._made:
                continue
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") or isinstance(
                node, ast.AsyncFunctionDef
            ):
                yield from self._function(node, "", "")
            elif isinstance(node, ast.FunctionDef) and node.name.startswith("__") and node.name != "__getattr__":
                yield from self._function(node, "", "")
            elif isinstance(node, ast.ClassDef):
                yield from self._class(node)
            elif isinstance(node, ast.AnnAssign):
                yield f"{ast.unparse(node.target)}: {self._annotation(node.annotation)}"
            elif isinstance(node, (ast.Assign, ast.AugAssign)):
                yield from self._assignment(node)
            elif isinstance(node, ast.If):
                yield from self._statements(node.body)
            elif isinstance(node, ast.Try):
                yield from self._statements(node.body)

    def _assignment(self, node) -> Iterator[str]:
        targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
        if ast.unparse(targets[0]) == "__all__":
            yield from self._exported(node)
            return
        for target in targets:
            if isinstance(target, ast.Tuple):
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [None] * len(target.elts)
                for one, value in zip(target.elts, values):
                    if isinstance(one, ast.Name):
                        yield from self._variable(one.id, value)
            elif isinstance(target, ast.Name):
                yield from self._variable(target.id, node.value)

    def _exported(self, node) -> Iterator[str]:
        """`__all__`, once and written out; that of other packages' modules is left to their stubs."""
        if isinstance(node, ast.Assign) and self._module != "testing":
            names = sorted(exported(self._package, self._module))
            yield f"__all__ = [{', '.join(repr(one) for one in names)}]"

    def _variable(self, name: str, value: Optional[ast.expr]) -> Iterator[str]:
        if name in self._made:
            return
        text = "" if value is None else ast.unparse(value)
        if isinstance(value, ast.Call) and text.startswith(("NamedTuple(", "namedtuple(", "TypeVar(")):
            yield f"{name} = {text}"
        elif text.startswith("_math."):
            yield f"{name}: float"
        elif self._module == "random" and text.startswith("_state."):
            yield from self._method_of("_random_state", "RandomState", text[len("_state."):], name)
        elif isinstance(value, ast.Name) and value.id == name:
            yield f"{name} = builtins.{name}"
        elif text.startswith(("Union[", "Optional[", "Tuple[", "Callable[")):
            yield f"{name} = {self._annotation(value)}"  # type: ignore[arg-type]
        elif text.startswith("cuda.") and text[len("cuda."):] not in exported(self._package, "cuda/__init__"):
            yield f"{name}: Any"
        elif isinstance(value, ast.Attribute) or (
            isinstance(value, ast.Name) and value.id in (*self._names, "range") and not value.id.startswith("_")
        ):
            if not name.startswith("_") or text[:1].isupper():
                yield f"{name} = {text}"
        elif name.startswith("_"):
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in self._names:
                yield f"{name}: {value.func.id}" if value.func.id[:1].isupper() else f"{name}: Any"
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id[:1].isupper():
            yield f"{name}: {value.func.id}"
        else:
            kind = type(value.value).__name__ if isinstance(value, ast.Constant) else ""
            yield f"{name}: {kind if kind in _CONSTANTS else 'None' if kind == 'NoneType' else 'Any'}"

    def _method_of(self, module: str, cls: str, method: str, name: str) -> Iterator[str]:
        """A module's function that is a method of an object: with the method's parameters."""
        while True:
            other = ModuleStub(self._package / f"{module}.py", self._package)
            other._hidden = {scope: names | self._names for scope, names in other._hidden.items()}
            node = next(one for one in other._tree.body if isinstance(one, ast.ClassDef) and one.name == cls)
            for one in node.body:
                if isinstance(one, ast.FunctionDef) and one.name == method:
                    yield from other._function(one, "", cls, name=name)
                    return
                if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == method:
                    method = ast.unparse(one.value)
                    break
            else:
                cls = ast.unparse(node.bases[0])
                module = "_generator" if cls == "Generator" else "_distributions"

    # --- classes ---

    def _class(self, node: ast.ClassDef) -> Iterator[str]:
        for one in node.decorator_list:
            text = ast.unparse(one)
            if text.startswith(("dataclass", "dataclasses.dataclass")):
                yield f"@{text}"
        bases = ", ".join(self._annotation(one) for one in node.bases)
        yield f"class {node.name}({bases}):" if bases else f"class {node.name}:"
        lines = list(self._members(node))
        yield from (f"    {line}" for line in (lines or ["..."]))

    def _members(self, node: ast.ClassDef) -> Iterator[str]:
        is_tuple = any("NamedTuple" in ast.unparse(one) for one in node.bases)
        # A setter stands directly after its property, as type checkers want it.
        setters = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef) and _is_setter(one)}
        body = [one for one in node.body if one not in setters.values()]
        for one in [each for one in body for each in (one, setters.get(getattr(one, "name", ""))) if each is not None]:
            if isinstance(one, ast.AnnAssign) and (is_tuple or not ast.unparse(one.target).startswith("_")):
                default = " = ..." if one.value is not None and not one.simple == 0 else ""
                # A tuple has a method of this name.
                is_method = is_tuple and ast.unparse(one.target) in ("count", "index")
                ignored = "  # type: ignore[assignment]" if is_method else ""
                yield f"{ast.unparse(one.target)}: {self._annotation(one.annotation, node.name)}{default}{ignored}"
            elif isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
                name, text = one.targets[0].id, ast.unparse(one.value)
                if any("Enum" in ast.unparse(base) for base in node.bases):
                    yield f"{name} = {text}"
                elif isinstance(one.value, ast.Name) and not text.startswith("_"):
                    yield f"{name} = {text}"
                elif not name.startswith("_"):
                    kind = type(one.value.value).__name__ if isinstance(one.value, ast.Constant) else ""
                    yield f"{name}: {kind if kind in _CONSTANTS else 'Any'}"
            elif isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
                name = one.name
                if name.startswith("_") and not (name.startswith("__") and name.endswith("__")):
                    continue
                if name not in ("__doc__", "__signature__", "__del__", "__reduce__", "__getstate__", "__setstate__"):
                    yield from self._function(one, "self", node.name)
                if name == "__init__":
                    yield from self._attributes(one, node.name)
        if self._module == "_array" and node.name == "Array":
            for name in _OPERATORS:
                for prefix in ("", "r", "i"):
                    yield f"def __{prefix}{name}__(self, other: Any, /) -> Array: ..."
            for name in _COMPARISONS:
                ignored = "  # type: ignore[override]" if name in ("eq", "ne") else ""
                yield f"def __{name}__(self, other: Any, /) -> Array: ...{ignored}"

    def _attributes(self, init: ast.FunctionDef, owner: str) -> Iterator[str]:
        """The public attributes that a constructor sets."""
        types = {one.arg: one.annotation for one in (*init.args.posonlyargs, *init.args.args, *init.args.kwonlyargs)}
        seen = set()
        for node in ast.walk(init):
            pairs: List[tuple] = []
            if isinstance(node, ast.AnnAssign):
                pairs = [(node.target, None, node.annotation)]
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Tuple):
                        values = node.value.elts if isinstance(node.value, ast.Tuple) else [None] * len(target.elts)
                        pairs += [(a, b, None) for a, b in zip(target.elts, values)]
                    else:
                        pairs.append((target, node.value, None))
            for target, value, annotation in pairs:
                if not isinstance(target, ast.Attribute) or ast.unparse(target.value) != "self":
                    continue
                name = target.attr
                if name.startswith("_") or name in seen:
                    continue
                seen.add(name)
                if annotation is None and isinstance(value, ast.Name):
                    annotation = types.get(value.id)
                yield f"{name}: {self._annotation(annotation, owner) if annotation is not None else 'Any'}"

    # --- functions ---

    def _function(self, node, kind: str, owner: str, name: str = "") -> Iterator[str]:
        is_static = False
        for one in node.decorator_list:
            text = ast.unparse(one)
            if text == "staticmethod":
                is_static = True
            if text in _KEPT_DECORATORS or text.endswith(".setter"):
                yield f"@{text}"
            elif text == "functools.cached_property":
                yield "@property"
        arguments = self._arguments(node, owner, bool(owner) and not is_static, bool(kind))
        prefix = "async " if isinstance(node, ast.AsyncFunctionDef) and not _is_generator(node) else ""
        key = f"{self._source.stem}.{node.name}"
        if key in DECORATORS:
            first, _, rest = arguments.partition(", ")
            parameter = first.partition(":")[0]
            yield "@overload"
            yield f"def {node.name}({parameter}: Callable[..., Any], {rest}) -> {DECORATORS[key]}: ..."
            yield "@overload"
            yield f"def {node.name}({arguments}) -> Callable[[Callable[..., Any]], Any]: ..."
            return
        if key in USUAL and not owner:
            types, returned = USUAL[key]
            usual = arguments
            for parameter, kind in types.items():
                found = re.search(rf"\b{parameter}: ([^=,]*?(?:\[[^=]*\])?)( = [^,]*)?(?=,|$)", usual)
                default = "" if kind == "ArrayLike" else found.group(2) or ""  # type: ignore[union-attr]
                usual = usual[: found.start()] + f"{parameter}: {kind}{default}" + usual[found.end():]  # type: ignore
            yield "@overload"
            yield f"def {node.name}({usual}) -> {returned}: ..."
            yield "@overload"
        yield f"{prefix}def {name or node.name}({arguments}) -> {self._returned(node, owner)}: ..."

    def _arguments(self, node, owner: str, has_self: bool, with_self: bool) -> str:
        given = node.args
        path = f"{self._source.stem}.{owner + '.' if owner else ''}{node.name}"
        positional = [*given.posonlyargs, *given.args]
        defaults = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
        parts = []
        for i, (one, default) in enumerate(zip(positional, defaults)):
            if i == 0 and has_self:
                if with_self:
                    parts.append(one.arg)
            else:
                parts.append(self._argument(one, default, owner, path))
            if given.posonlyargs and i == len(given.posonlyargs) - 1 and parts:
                parts.append("/")
        if given.vararg:
            parts.append("*" + self._argument(given.vararg, None, owner, path, several=True))
        elif given.kwonlyargs:
            parts.append("*")
        for one, default in zip(given.kwonlyargs, given.kw_defaults):
            parts.append(self._argument(one, default, owner, path))
        if given.kwarg:
            parts.append("**" + self._argument(given.kwarg, None, owner, path, several=True))
        return ", ".join(parts)

    def _annotation(self, node: ast.expr, owner: str = "") -> str:
        return Annotations(self._hidden.get(owner, self._hidden[""])).of(node)

    def _argument(
        self, one: ast.arg, default: Optional[ast.expr], owner: str, path: str, several: bool = False
    ) -> str:
        if one.annotation is not None:
            kind = self._annotation(one.annotation, owner)
        else:
            kind = "Any" if several else EXCEPTIONS.get(f"{path}.{one.arg}", PARAMETERS.get(one.arg, "Any"))
        if isinstance(default, ast.Constant) and default.value is None:
            if not kind.startswith(("Optional", "Union", "Any", "Axis")):
                kind = f"Optional[{kind}]"
        if default is None:
            return f"{one.arg}: {kind}"
        is_short = isinstance(default, (ast.Constant, ast.UnaryOp)) or ast.unparse(default) in ("()", "(None, None)")
        return f"{one.arg}: {kind} = {ast.unparse(default) if is_short else '...'}"

    def _returned(self, node, owner: str) -> str:
        if node.returns is not None:
            return self._annotation(node.returns, owner)
        key = f"{self._source.stem}.{owner + '.' if owner else ''}{node.name}"
        if key in RETURNS:
            return RETURNS[key]
        if node.name in DUNDERS:
            return DUNDERS[node.name]
        if any(ast.unparse(one) == "contextlib.contextmanager" for one in node.decorator_list):
            return "Iterator[Any]"
        returns = [one for one in ast.walk(node) if isinstance(one, ast.Return) and one.value is not None]
        return "Any" if returns or _is_generator(node) else "None"


def _is_setter(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(one).endswith(".setter") for one in node.decorator_list)


def _is_generator(node) -> bool:
    return any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in ast.walk(node))
