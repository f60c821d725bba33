"""Makes the stubs of the package, which type checkers and editors read: one `.pyi` for each module.

A stub has the module's functions and classes with the annotations of the source. A parameter without an annotation gets
the type that its name has throughout the package (`_PARAMETERS`); a function without one its row of `_RETURNS`. Names
that tables make at import come from the same tables. Nothing of the package is imported: wheels are built where NumPy
is not installed."""

import ast
import functools
import importlib.util
import pathlib
import re
from typing import Dict, Iterable, Iterator, List, Optional, Set

_GENERICS = (
    "Any Callable Dict Iterable Iterator List Literal Mapping Optional Sequence Set Tuple Union overload"
).split()
_TYPES = ("ArrayLike", "Axis", "DTypeLike", "Real", "Shape")

# The types that parameters have by their names, where the source does not say.
_PARAMETERS: Dict[str, str] = {
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
_EXCEPTIONS = {
    "_distributions.Distributions.gamma.shape": "Real",
    "_distributions.Distributions.standard_gamma.shape": "Real",
    "_array.Array.__init__.shape": "Shape",
    "_conversion.from_dlpack.x": "Any",
}

# The results of functions, by module and name, where the source does not say.
_RETURNS: Dict[str, str] = {
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
_USUAL = {
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
_DECORATORS = {"_compiled.jit": "Kernel", "_compiled.vectorize": "UFunc", "__init__.jit": "Callable[..., Any]"}
_DUNDERS = {"__bool__": "bool", "__exit__": "None", "__init__": "None", "__len__": "int", "__repr__": "str"}
# The meaning of a generic type without its arguments.
_BARE = {
    "Callable": "Callable[..., Any]",
    "Dict": "Dict[Any, Any]",
    "Iterable": "Iterable[Any]",
    "Iterator": "Iterator[Any]",
    "List": "List[Any]",
    "Mapping": "Mapping[Any, Any]",
    "Sequence": "Sequence[Any]",
    "Set": "Set[Any]",
    "Future": "Future[Any]",
    "Tuple": "Tuple[Any, ...]",
    "asyncio.Future": "asyncio.Future[Any]",
    "concurrent.futures.Future": "concurrent.futures.Future[Any]",
    "deque": "deque[Any]",
    "dict": "Dict[Any, Any]",
    "functools.partial": "functools.partial[Any]",
    "list": "List[Any]",
    "os.PathLike": "os.PathLike[Any]",
    "set": "Set[Any]",
    "tuple": "Tuple[Any, ...]",
    "type": "type[Any]",
    "weakref.WeakSet": "weakref.WeakSet[Any]",
    "weakref.ref": "weakref.ref[Any]",
}
_KEPT_DECORATORS = ("property", "staticmethod", "classmethod", "contextlib.contextmanager", "dataclass", "overload")
_BUILTINS = ("bool", "bytes", "complex", "float", "int", "object", "str")
_CONSTANTS = ("int", "float", "str", "bool", "bytes")
# Operators that loops give to Array.
_OPERATORS = "add sub mul truediv floordiv mod pow and or xor lshift rshift".split()
_COMPARISONS = "lt le gt ge eq ne".split()


def write(package: pathlib.Path) -> None:
    """Writes the stubs into the folder of a package."""
    for source in sorted(package.rglob("*.py")):
        if source.parent.name != "v1" and source.name != "_types.py":
            source.with_suffix(".pyi").write_text(_Stub(source, package).text())
    _write_aliases(package)


def _write_aliases(package: pathlib.Path) -> None:
    """stride.numba enters the modules of stride.cuda by its own names; type checkers look for files."""
    folder = package / "numba/cuda"
    folder.mkdir(exist_ok=True)
    for source in sorted((package / "cuda").glob("*.py")):
        if source.stem == "__init__" or not source.stem.startswith("_"):
            module = "stride.cuda" if source.stem == "__init__" else f"stride.cuda.{source.stem}"
            names = ", ".join(repr(one) for one in sorted(exported(package, f"cuda/{source.stem}")))
            text = f"# Made by type_stubs.py.\nfrom {module} import *\n__all__ = [{names}]\n"
            (folder / source.name).with_suffix(".pyi").write_text(text)


class _Annotations(ast.NodeTransformer):
    """Completes annotations: arguments of generic types, forward references as names, and builtins by their module
    where a name of the scope hides them."""

    def __init__(self, hidden: Set[str]):
        self._hidden = hidden

    def of(self, node: ast.expr) -> str:
        return ast.unparse(self.visit(ast.parse(ast.unparse(node), mode="eval").body))

    def visit_Constant(self, node):  # noqa: N802, the base's name
        return self.visit(ast.parse(node.value, mode="eval").body) if isinstance(node.value, str) else node

    def visit_Subscript(self, node):  # noqa: N802, the base's name
        if ast.unparse(node.value) in ("Literal", "Annotated"):
            return node
        node.slice = self.visit(node.slice)
        return node

    def visit_Attribute(self, node):  # noqa: N802, the base's name
        text = ast.unparse(node)
        return ast.parse(_BARE[text], mode="eval").body if text in _BARE else node

    def visit_Name(self, node):  # noqa: N802, the base's name
        if node.id in _BARE:
            return ast.parse(_BARE[node.id], mode="eval").body
        if node.id in self._hidden and node.id in _BUILTINS:
            return ast.parse(f"builtins.{node.id}", mode="eval").body
        return node


class _Stub:
    """The stub of one module."""

    def __init__(self, source: pathlib.Path, package: pathlib.Path):
        self._source, self._package = source, package
        self._made: Set[str] = set()
        self._tree = ast.parse(source.read_text())
        self._module = source.relative_to(package).with_suffix("").as_posix()
        self._names = _bound(self._tree)
        # By scope: the module's name is the empty one.
        self._hidden: Dict[str, Set[str]] = {"": _bound(self._tree)}

    def text(self) -> str:
        extra = _EXTRA.get(self._module, lambda package: [])(self._package)
        self._made = _bound(ast.parse("\n".join(extra)))
        self._hidden[""] |= self._made
        for node in self._tree.body:
            if isinstance(node, ast.ClassDef):
                self._hidden[node.name] = _bound(node) | self._hidden[""]
        body = [*self._statements(self._tree.body), *extra]
        lines = [*self._imports("\n".join(body)), *self._own_imports("\n".join(body)), *body]
        return "\n".join([f"# Made of {self._source.name} by type_stubs.py.", *lines]) + "\n"

    def _own_imports(self, body: str) -> Iterator[str]:
        """The module's imports that the stub uses."""
        tree = ast.parse(body)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        used |= exported(self._package, self._module)
        asked_for = _asked_for(self._package).get(self._module, set()) - used
        for node in _imports_in(self._tree.body):
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
            other = _Stub(self._package / f"{module}.py", self._package)
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
        if key in _DECORATORS:
            first, _, rest = arguments.partition(", ")
            parameter = first.partition(":")[0]
            yield "@overload"
            yield f"def {node.name}({parameter}: Callable[..., Any], {rest}) -> {_DECORATORS[key]}: ..."
            yield "@overload"
            yield f"def {node.name}({arguments}) -> Callable[[Callable[..., Any]], Any]: ..."
            return
        if key in _USUAL and not owner:
            types, returned = _USUAL[key]
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
        return _Annotations(self._hidden.get(owner, self._hidden[""])).of(node)

    def _argument(
        self, one: ast.arg, default: Optional[ast.expr], owner: str, path: str, several: bool = False
    ) -> str:
        if one.annotation is not None:
            kind = self._annotation(one.annotation, owner)
        else:
            kind = "Any" if several else _EXCEPTIONS.get(f"{path}.{one.arg}", _PARAMETERS.get(one.arg, "Any"))
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
        if key in _RETURNS:
            return _RETURNS[key]
        if node.name in _DUNDERS:
            return _DUNDERS[node.name]
        if any(ast.unparse(one) == "contextlib.contextmanager" for one in node.decorator_list):
            return "Iterator[Any]"
        returns = [one for one in ast.walk(node) if isinstance(one, ast.Return) and one.value is not None]
        return "Any" if returns or _is_generator(node) else "None"


@functools.lru_cache(maxsize=None)
def _asked_for(package: pathlib.Path) -> Dict[str, Set[str]]:
    """By module, the names that other modules import from it."""
    found: Dict[str, Set[str]] = {}
    for source in package.rglob("*.py"):
        for node in _imports_in(ast.parse(source.read_text()).body):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stride."):
                module = "/".join(node.module.split(".")[1:])  # type: ignore[union-attr]
                found.setdefault(module, set()).update(one.name for one in node.names)
    return found


def _is_setter(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(one).endswith(".setter") for one in node.decorator_list)


def _imports_in(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, (ast.If, ast.Try)):
            yield from _imports_in(node.body)


def _bound(scope) -> Set[str]:
    """The names that a scope defines or imports."""
    names: Set[str] = {one.asname or one.name for node in _imports_in(scope.body) for one in node.names}
    for node in scope.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names |= {one.id for one in node.targets if isinstance(one, ast.Name)}
    return names


def _is_generator(node) -> bool:
    return any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in ast.walk(node))


# --- exported names ---


def exported(package: pathlib.Path, module: str) -> Set[str]:
    """The names in `__all__` of a module, which is not imported."""
    tree = ast.parse((package / f"{module}.py").read_text())
    names: Set[str] = set(_EXTRA_ALL.get(module, lambda package: ())(package))
    modules = {
        one.asname or one.name: ".".join(filter(None, (node.module, one.name)))
        for node in _imports_in(tree.body)
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


def _literals(package: pathlib.Path, module: str) -> Dict[str, object]:
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


def _loaded(path: pathlib.Path):
    """A module of docstrings alone, which imports nothing of the package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


def _documented(name: str, kind: str, text: str) -> List[str]:
    """A variable with a docstring, which editors show."""
    return [f"{name}: {kind}", f'"""{text}"""']


# --- names that tables make ---

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


def _elementwise(package: pathlib.Path) -> List[str]:
    tables, text = _literals(package, "_elementwise"), _loaded(package / "_elementwise_text.py")
    lines = ["from typing import Protocol", *_CLASSES.strip().split("\n")]
    for table, kind in (("UNARY", "Ufunc1"), ("BINARY", "Ufunc2")):
        for name, public in tables[table].items():  # type: ignore[attr-defined]
            for one in (name, public) if public else (name,):
                lines += _documented(one, kind, text.described(name))
    for name, target in (("mod", "remainder"), ("true_divide", "divide"), ("bitwise_not", "invert")):
        kind = "Ufunc1" if target == "invert" else "Ufunc2"
        lines += _documented(name, kind, text.described(target))
    return lines


def _elementwise_all(package: pathlib.Path) -> Set[str]:
    tables = _literals(package, "_elementwise")
    both = {**tables["UNARY"], **tables["BINARY"]}  # type: ignore[dict-item]
    return {*both, *(one for one in both.values() if one)}


def _intrinsics(package: pathlib.Path) -> List[str]:
    text = _loaded(package / "cuda/_intrinsics_text.py")
    lines: List[str] = []
    for name in text.INTRINSICS:
        if "." not in name:
            lines += _documented(name, "Any" if name in ("laneid", "warpsize") else "Intrinsic", text.described(name))
    for name, summary in text.GROUPS.items():
        if "." not in name:
            lines += [f"class _{name.capitalize()}(Group):"]
            for one in text.INTRINSICS:
                if one.startswith(name + "."):
                    kind = "Any" if name.endswith(("Idx", "Dim")) else "Intrinsic"
                    documented = _documented(one[len(name) + 1:], kind, text.described(one).replace("\n", "\n    "))
                    lines += [f"    {line}" for line in documented]
            lines += _documented(name, f"_{name.capitalize()}", summary)
    return lines


def _libdevice_names(package: pathlib.Path) -> List[str]:
    found = _literals(package, "cuda/libdevice")
    names, fast = found["_NAMES"], found["_FAST"]
    return [*names, *(one + "f" for one in names), *("fast_" + one for one in fast)]  # type: ignore


def _libdevice(package: pathlib.Path) -> List[str]:
    text = _loaded(package / "cuda/_intrinsics_text.py")
    return [
        line
        for name in _libdevice_names(package)
        for line in _documented(name, "Intrinsic", text.described(f"libdevice.{name}"))
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
    names = _literals(package, "cupy/random")["_WITH_DTYPE"]
    signature = "(*arguments: Any, dtype: Optional[DTypeLike] = None, **kwargs: Any) -> Array: ..."
    # The module has classes of its own by these names.
    own = {*names, "Generator", "RandomState", "default_rng"}  # type: ignore[misc]
    others = sorted(exported(package, "random") - own)
    functions = (f"def {one}{signature}" for one in sorted(names))  # type: ignore[call-overload]
    generators = (f"class {one}(Philox): ..." for one in ("MRG32k3a", "Philox4x3210", "XORWOW"))
    return [f"from stride.random import {', '.join(others)}", *generators, *functions]


def _cupy(package: pathlib.Path) -> List[str]:
    aliases = _literals(package, "cupy/_names")["ALIASES"]
    public = exported(package, "__init__")
    others = [one for one, target in aliases.items() if target in public and one not in public]  # type: ignore
    same = sorted(public - set(_literals(package, "cupy/__init__")["_OWN"]))  # type: ignore[call-overload]
    return [
        "from numpy import bytes_, exceptions",
        f"from stride import {', '.join(same)}",
        "from stride.cupy import cuda, fft, linalg, random, testing",
        *(f"{one} = {aliases[one]}" for one in others),  # type: ignore[index]
    ]


def _cupy_all(package: pathlib.Path) -> Set[str]:
    found, names = _literals(package, "cupy/__init__"), _literals(package, "cupy/_names")
    public = exported(package, "__init__")
    aliases = {one for one, target in names["ALIASES"].items() if target in public}  # type: ignore[attr-defined]
    return {*public, *found["_OWN"], *aliases, "bytes_", "exceptions"}  # type: ignore[misc]


# Numba's names of element types, as _signatures.py makes them.
_NUMBA_TYPES = """b1 bool8 bool_ boolean byte c16 c8 char complex128 complex64 double f2 f4 f8 float16 float32 float64
float_ i1 i2 i4 i8 int16 int32 int64 int8 int_ intc intp long_ longlong short size_t ssize_t u1 u2 u4 u8 uchar uint
uint16 uint32 uint64 uint8 uintc uintp ulong ushort void""".split()


def _numba_types(package: pathlib.Path) -> List[str]:
    return ["from stride._signatures import ElementType", *(f"{one}: ElementType" for one in _NUMBA_TYPES)]


def _special(package: pathlib.Path) -> List[str]:
    tables = _literals(package, "cupyx/scipy/special")
    lines = []
    for name, (summary, _) in tables["_UNARY"].items():  # type: ignore[attr-defined]
        lines += [f"def {name}(x: ArrayLike, out: Optional[Array] = None) -> Array:", f"    {summary!r}"]
    for name, (summary, _) in tables["_BINARY"].items():  # type: ignore[attr-defined]
        lines += [f"def {name}(x: ArrayLike, y: ArrayLike, out: Optional[Array] = None) -> Array:", f"    {summary!r}"]
    return [*lines, "loggamma = gammaln"]


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


_EXTRA = {
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
_EXTRA_ALL = {
    "_elementwise": _elementwise_all,
    "cuda/libdevice": _libdevice_names,
    "cupy/__init__": _cupy_all,
    "cupy/testing": _cupy_testing,
    "numba/__init__": lambda package: _NUMBA_TYPES,
    "numba/types": lambda package: [*_NUMBA_TYPES, "none"],
}
