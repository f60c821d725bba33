"""The text and syntax tree of a Python function."""

import ast
import builtins
import inspect
import textwrap

from stride import _errors


class Source:
    """The text and syntax tree of a Python function, and what its names stand for."""

    def __init__(self, function):
        self.function = function
        self.name = function.__name__
        try:
            lines, first = inspect.getsourcelines(function)
            self.file = inspect.getsourcefile(function) or "?"
        except (OSError, TypeError):
            raise _errors.ExpressionError(f"the source of {self.name} is not there to translate") from None
        tree = ast.parse(textwrap.dedent("".join(lines)))
        ast.increment_lineno(tree, first - 1)
        definition = next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)), None)
        if definition is None:
            raise _errors.ExpressionError(f"{self.file}:{first}: a function made by def is needed, not a lambda")
        arguments = definition.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            raise _errors.ExpressionError(f"{self.file}:{definition.lineno}: {self.name}: *args, **kwargs and keyword-only arguments cannot be translated")
        self.definition = definition
        self.parameters = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]

    def lookup(self, name: str):
        code = self.function.__code__
        if name in code.co_freevars:
            return self.function.__closure__[code.co_freevars.index(name)].cell_contents
        if name in self.function.__globals__:
            return self.function.__globals__[name]
        return getattr(builtins, name)
