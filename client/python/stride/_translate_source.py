"""The text and syntax tree of a Python function."""

import ast
import builtins
import inspect
import textwrap

from stride import _errors


class Source:
    """The text and syntax tree of a Python function, and the values of its names."""

    def __init__(self, function):
        self.function = self.key = function
        self.name = function.__name__
        try:
            lines, first = inspect.getsourcelines(function)
            self.file = inspect.getsourcefile(function) or "?"
        except (OSError, TypeError):
            raise _errors.ExpressionError(
                f"the source of {self.name} is not there to translate: a function made by exec or in a shell needs its "
                f"text in a file, or in linecache.cache under the name that compile() had"
            ) from None
        self._set(
            _lambda(function, lines, first, self.file)
            if self.name == "<lambda>"
            else _definition(lines, first, self.file)
        )
        self.defaults = function.__defaults__ or ()

    @classmethod
    def nested(cls, node: ast.FunctionDef, outer: "Source") -> "Source":
        """A function defined within another."""
        made = cls.__new__(cls)
        made.function, made.key, made.name, made.file = outer.function, (outer.key, node.lineno), node.name, outer.file
        made._set(node)
        try:
            made.defaults = tuple(ast.literal_eval(one) for one in node.args.defaults)
        except ValueError:
            raise _errors.ExpressionError(
                f"{outer.file}:{node.lineno}: {node.name}: a default of a nested function is a literal"
            ) from None
        return made

    def _set(self, definition: ast.FunctionDef) -> None:
        arguments = definition.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            raise _errors.ExpressionError(
                f"{self.file}:{definition.lineno}: {self.name}: *args, **kwargs and keyword-only arguments cannot be "
                f"translated"
            )
        self.definition = definition
        self.parameters = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]

    @property
    def identifier(self) -> str:
        """A name for C++."""
        return self.name if self.name.isidentifier() else "lambda"

    def lookup(self, name: str):
        code = self.function.__code__
        if name in code.co_freevars:
            return self.function.__closure__[code.co_freevars.index(name)].cell_contents
        if name in self.function.__globals__:
            return self.function.__globals__[name]
        return getattr(builtins, name)


def _definition(lines, first: int, file: str) -> ast.FunctionDef:
    tree = ast.parse(textwrap.dedent("".join(lines)))
    ast.increment_lineno(tree, first - 1)
    definition = next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)), None)
    if definition is None:
        raise _errors.ExpressionError(f"{file}:{first}: a function made by def is needed")
    return definition


def _lambda(function, lines, first: int, file: str) -> ast.FunctionDef:
    """As a function of one statement. Its lines may begin or end within a larger statement."""
    text = textwrap.dedent("".join(lines)).strip()
    tree = None
    # The text of a lambda in a call, or after a decorator, is seldom a whole statement.
    for start in (0, text.find("lambda")):
        for end in range(len(text), start, -1):
            try:
                tree = ast.parse(text[start:end])
                break
            except SyntaxError:
                continue
        if tree is not None and any(isinstance(node, ast.Lambda) for node in ast.walk(tree)):
            break
    found = [node for node in ast.walk(tree)] if tree is not None else []
    names = list(function.__code__.co_varnames[: function.__code__.co_argcount])
    lambdas = [node for node in found if isinstance(node, ast.Lambda) and [one.arg for one in node.args.args] == names]
    if len({ast.dump(node) for node in lambdas}) != 1:
        raise _errors.ExpressionError(
            f"{file}:{first}: which of the lambdas on this line is meant cannot be found; use def"
        )
    node = lambdas[0]
    made = ast.parse("def f(): return 0").body[0]
    made.args, made.body = node.args, [ast.Return(value=node.body)]  # type: ignore[attr-defined]
    ast.copy_location(made, node)
    ast.copy_location(made.body[0], node)  # type: ignore[attr-defined]
    ast.increment_lineno(made, first - made.lineno)
    return made  # type: ignore[return-value]
