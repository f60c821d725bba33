"""Import statements of a program with modules of `stride` in the place of other libraries' modules."""

import ast
from typing import List, Optional

# A module's longest prefix in this table is replaced.
MODULES = {
    "numpy": "stride",
    "cupy": "stride.cupy",
    "cupyx": "stride.cupyx",
    "numba.cuda": "stride.cuda",
    "jax": "stride.jax",
}


def replacement(module: str) -> Optional[str]:
    """The name of stride's module, or None where the module is not replaced."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        ours = MODULES.get(".".join(parts[:length]))
        if ours is not None:
            return ".".join([ours, *parts[length:]])
    return None


class _Replace(ast.NodeTransformer):
    def __init__(self) -> None:
        self.count = 0

    def visit_Import(self, node: ast.Import) -> List[ast.stmt]:
        statements: List[ast.stmt] = []
        for alias in node.names:
            ours = replacement(alias.name)
            if ours is None:
                statements.append(ast.Import([alias]))
                continue
            self.count += 1
            if alias.asname is not None:
                statements.append(ast.Import([ast.alias(ours, alias.asname)]))
                continue
            # `import a.b` binds `a`, with the submodule `b` loaded.
            top = alias.name.partition(".")[0]
            if "." in ours:
                statements.append(ast.Import([ast.alias(ours, None)]))
            root = replacement(top)
            statements.append(ast.Import([ast.alias(top if root is None else root, top)]))
        return [ast.copy_location(one, node) for one in statements]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> List[ast.stmt]:
        if node.level or node.module is None:
            return [node]
        kept, statements = [], []
        for alias in node.names:
            whole = MODULES.get(f"{node.module}.{alias.name}")
            if whole is not None:  # from numba import cuda
                self.count += 1
                statements.append(ast.Import([ast.alias(whole, alias.asname or alias.name)]))
            else:
                kept.append(alias)
        if kept:
            ours = replacement(node.module)
            self.count += ours is not None
            statements.append(ast.ImportFrom(ours or node.module, kept, 0))
        return [ast.copy_location(one, node) for one in statements]


def replaced(tree: ast.Module) -> int:
    """Replaces the imports in place and returns how many there were."""
    replace = _Replace()
    replace.visit(tree)
    ast.fix_missing_locations(tree)
    return replace.count
