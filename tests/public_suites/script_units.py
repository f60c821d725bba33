"""The statements of a program, from a Python file, a notebook, or the code blocks of a text."""

import ast
import doctest
import json
import linecache
import pathlib
import re
import textwrap
from typing import Iterator, List

SUFFIXES = (".py", ".ipynb", ".md", ".rst")
_FENCE = re.compile(r"^```+\s*(\{code-cell\}[^\n]*|python[^\n]*|py)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_MAGIC = re.compile(r"^\s*[%!?]|\?\s*$")
_OPTION = re.compile(r"\A(---\n.*?\n---\n|(:[\w-]+:[^\n]*\n)+)", re.DOTALL)


def sources(path: pathlib.Path) -> Iterator[str]:
    """Texts of code in their order. Lines that only IPython understands are omitted."""
    text = path.read_text(errors="replace")
    if path.suffix == ".ipynb":
        for cell in json.loads(text).get("cells", []):
            if cell.get("cell_type") == "code":
                yield _without_magic("".join(cell["source"]))
    elif path.suffix == ".py":
        yield text
    else:
        found = [_OPTION.sub("", body) for _, body in _FENCE.findall(text)]
        if found:
            for body in found:
                yield doctest.script_from_examples(body) if ">>> " in body else _without_magic(textwrap.dedent(body))
        elif ">>> " in text:
            yield from (example.source for example in doctest.DocTestParser().get_examples(text))


def _without_magic(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not _MAGIC.search(line))


def units(path: pathlib.Path) -> List[ast.Module]:
    """One module for each statement at the top. A text that does not parse is omitted."""
    modules: List[ast.Module] = []
    for index, source in enumerate(sources(path)):
        name = str(path)
        if path.suffix != ".py":  # as IPython does, so that the source of a function is found
            name = f"{path}[{index}]"
            linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        try:
            tree = ast.parse(source, name)
        except (SyntaxError, ValueError):
            continue
        modules.extend(_module(one, name) for node in tree.body for one in _opened(node))
    return modules


def _module(node: ast.stmt, name: str) -> ast.Module:
    module = ast.Module([node], [])
    module.file = name
    return module


def _opened(node: ast.stmt) -> List[ast.stmt]:
    """`if __name__ == "__main__":` is taken apart, so that its statements count as others do."""
    if isinstance(node, ast.If) and not node.orelse and "__name__" in ast.dump(node.test):
        return node.body
    return [node]


def doctests(namespace: dict, name: str) -> List[ast.Module]:
    """The examples in the docstrings of what the program has defined."""
    found: List[ast.Module] = []
    for one in list(namespace.values()):
        text = getattr(one, "__doc__", None)
        if getattr(one, "__module__", None) != name or not isinstance(text, str) or ">>> " not in text:
            continue
        try:
            examples = doctest.DocTestParser().get_examples(text)
            found.extend(_module(node, "<doctest>") for each in examples for node in ast.parse(each.source).body)
        except (SyntaxError, ValueError):
            continue
    return found
