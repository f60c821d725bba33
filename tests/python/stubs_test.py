"""The written types of functions that are made at run time."""

import ast
import pathlib
import unittest

import client_case
import stride
from stride import _elementwise


class StubsTest(unittest.TestCase):
    def test_elementwise(self):
        text = pathlib.Path(_elementwise.__file__).with_suffix(".pyi").read_text()
        stubs = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
        self.assertEqual(sorted(stubs), sorted(_elementwise.__all__))
        for name in _elementwise.UNARY:
            self.assertEqual(len(stubs[name].args.posonlyargs), 1, name)
        for name in _elementwise.BINARY:
            self.assertEqual(len(stubs[name].args.posonlyargs), 2, name)

    def test_all_names_are_there(self):
        for name in _elementwise.__all__:
            self.assertTrue(callable(getattr(stride, name)), name)


if __name__ == "__main__":
    client_case.main()
