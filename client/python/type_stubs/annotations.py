"""Annotations of the source as stubs have them."""

import ast
from typing import Set

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
_BUILTINS = ("bool", "bytes", "complex", "float", "int", "object", "str")


class Annotations(ast.NodeTransformer):
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
