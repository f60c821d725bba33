"""The written types of functions that are made at run time."""

import ast
import inspect
import pathlib
import unittest

import client_case
import stride
from stride import _elementwise


class StubsTest(unittest.TestCase):
    def test_elementwise(self):
        text = pathlib.Path(_elementwise.__file__).with_suffix(".pyi").read_text()
        body = ast.parse(text).body
        functions = [node.name for node in body if isinstance(node, ast.FunctionDef)]
        kinds = {node.target.id: node.annotation.id for node in body if isinstance(node, ast.AnnAssign) and isinstance(node.annotation, ast.Name)}
        self.assertEqual(sorted([*functions, *kinds]), sorted(_elementwise.__all__))
        for table, kind in ((_elementwise.UNARY, "Ufunc1"), (_elementwise.BINARY, "Ufunc2")):
            for name, public in table.items():
                self.assertEqual((kinds[name], kinds[public or name]), (kind, kind))

    def test_their_parameters(self):
        text = pathlib.Path(_elementwise.__file__).with_suffix(".pyi").read_text()
        classes = {node.name: node.body for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}
        for name, kind in (("cos", "Ufunc1"), ("add", "Ufunc2")):
            function = getattr(stride, name)
            for method in classes[kind]:
                actual = function if method.name == "__call__" else getattr(function, method.name)
                parameters = [one for one in inspect.signature(actual).parameters]
                written = [one.arg for one in (*method.args.posonlyargs, *method.args.args, *method.args.kwonlyargs)][1:]
                self.assertEqual([one for one in parameters if one != "options"], written, method.name)

    def test_all_names_are_there(self):
        for name in _elementwise.__all__:
            self.assertTrue(callable(getattr(stride, name)), name)

    def test_exported_names(self):
        """A typed package's imports are private unless they are in a list that type checkers read."""
        public = {name for name in vars(stride) if not name.startswith("_")} - {"v1"}
        self.assertEqual(public - set(stride.__all__), set())
        self.assertEqual([name for name in stride.__all__ if not hasattr(stride, name)], [])
        self.assertEqual(len(set(stride.__all__)), len(stride.__all__))
        for file in (stride, stride._errors):
            for node in ast.walk(ast.parse(pathlib.Path(file.__file__).read_text())):
                written = (
                    node.value
                    if isinstance(node, (ast.Assign, ast.AugAssign)) and "__all__" in ast.unparse(node).split("=")[0]
                    else None
                )
                is_list = isinstance(written, ast.List) and all(isinstance(one, ast.Constant) for one in written.elts)
                self.assertTrue(written is None or is_list or ast.unparse(written).endswith(".__all__"))
        stub = ast.parse(pathlib.Path(_elementwise.__file__).with_suffix(".pyi").read_text())
        names = next(ast.literal_eval(node.value) for node in stub.body if isinstance(node, ast.Assign))
        self.assertEqual(sorted(names), sorted(_elementwise.__all__))


if __name__ == "__main__":
    client_case.main()
