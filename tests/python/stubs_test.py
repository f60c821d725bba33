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


if __name__ == "__main__":
    client_case.main()
