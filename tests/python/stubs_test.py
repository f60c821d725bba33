"""The input of editors and type checkers: docstrings with examples, signatures, lists of names, and stubs."""

import ast
import doctest
import importlib
import inspect
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
import warnings

import numpy as np

import client_case
import public_names
import stride as st

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = pathlib.Path(st.__file__).resolve().parent
# Private names of a module that the translator and the tests read.
INTERNAL = {
    "stride": {"v1"},
    "stride.cuda": {"Group", "Intrinsic", "LibdeviceFunction", "grid_group", "shared_memory", "this_grid"},
    "stride.cuda.libdevice": {"Intrinsic", "LibdeviceFunction"},
    "stride.cupy": {"disable_experimental_feature_warning"},
    "stride.cupy.cuda": {"get_local_runtime_version", "malloc"},
    "stride.cupyx.jit": {"RawKernel"},
    "stride.cupy.fft": {"Config", "PlanCache"},
    "stride.fft": {"FFT_FUNCTIONS"},
    "stride.linalg": {"eig_as_numpy", "eigvals_as_numpy"},
    "stride.tree_util": {"broadcast_prefix", "built"},
}


class DocstringsTest(client_case.ClientCase):
    def test_each_docstring_has_its_sections(self):
        found = public_names.names()
        self.assertGreater(len(found), 1200)
        for name in found:
            with self.subTest(name.path):
                self.assertEqual(public_names.lacks(name), [])

    def test_examples(self):
        """Runs each docstring in a fresh namespace, as a reader would type it."""
        finder = doctest.DocTestParser()
        runner = doctest.DocTestRunner(verbose=False)
        for name in public_names.names():
            text = inspect.cleandoc(name.value.__doc__ or "")
            test = finder.get_doctest(text, {"st": st, "stride": st, "np": np}, name.path, None, 0)
            said: list = []
            with self.subTest(name.path), warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # a private daemon does not keep named arrays
                runner.run(test, out=said.append)
                self.assertEqual(runner.failures, 0, "".join(said))
            runner.failures = 0

    def test_signatures_are_written_out(self):
        """Completion shows parameters: only functions that forward or refuse arguments have `*args` or `**kwargs`."""
        passed_on = {"compile_ptx", "compile_ptx_for_current_device", "compile_for_current_device", "initialize",
                     "compile_with_cache", "set_cufft_callbacks", "get_runtime_info", "inspect_asm"}
        for name in public_names.names():
            if name.kind != "function" or name.path.rpartition(".")[2] in passed_on:
                continue
            with self.subTest(name.path):
                kinds = [one.kind for one in public_names.signature(name).parameters.values()]
                self.assertNotEqual(kinds, [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD])

    def test_help(self):
        import pydoc

        named = ((st.sum, "keepdims"), (st.add, "x1, x2, /"), (st.cuda.shfl_sync, "src_lane"), (st.Array.sum, "axis"))
        for value, text in named:
            self.assertIn(text, pydoc.render_doc(value))


class NamesTest(unittest.TestCase):
    def test_every_public_module_is_listed(self):
        files = [one.relative_to(PACKAGE) for one in PACKAGE.rglob("*.py")]
        parts = [one.parts[:-1] if one.stem == "__init__" else one.with_suffix("").parts for one in files]
        public = [one for one in parts if one[:1] != ("v1",) and not any(part.startswith("_") for part in one)]
        found = {".".join(("stride", *one)) for one in public}
        self.assertEqual({*public_names.MODULES, *public_names.JAX_MODULES}, found)

    def test_aliases_are_the_modules_themselves(self):
        for alias, name in public_names.ALIASES.items():
            self.assertIs(importlib.import_module(alias), importlib.import_module(name))

    def test_lists_are_exact(self):
        for name in public_names.MODULES:
            with self.subTest(name):
                module = importlib.import_module(name)
                listed = list(module.__all__)
                self.assertEqual(len(listed), len(set(listed)))
                self.assertEqual([one for one in listed if not hasattr(module, one)], [])
                if name.startswith(("stride.numba", "stride.testing")):
                    continue  # most of their names are another module's
                own = {
                    one
                    for one, value in vars(module).items()
                    if not one.startswith("_") and not isinstance(value, types.ModuleType)
                    if name in ("stride", "stride.cuda") or getattr(value, "__module__", "") == name
                    if (getattr(value, "__module__", None) or "").startswith("stride")
                }
                self.assertEqual(own - set(listed) - INTERNAL.get(name, set()), set())

    def test_completion(self):
        for name in public_names.MODULES:
            module = importlib.import_module(name)
            self.assertEqual(set(module.__all__) - set(dir(module)), set(), name)
        self.assertLessEqual({"dtypes", "exceptions", "testing", "typing"}, set(dir(st)))

    def test_exported_names(self):
        """A typed package's imports are private unless they are in a list that type checkers read."""
        for file in (st, st._errors):
            for node in ast.walk(ast.parse(pathlib.Path(file.__file__).read_text())):
                written = (
                    node.value
                    if isinstance(node, (ast.Assign, ast.AugAssign)) and "__all__" in ast.unparse(node).split("=")[0]
                    else None
                )
                is_list = isinstance(written, ast.List) and all(isinstance(one, ast.Constant) for one in written.elts)
                self.assertTrue(written is None or is_list or ast.unparse(written).endswith(".__all__"))


def _stub_names(path: pathlib.Path) -> set:
    """The names that a stub has."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names |= {one.id for one in node.targets}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for one in node.names:
                if one.name == "*" and node.module.startswith("stride"):
                    names |= set(importlib.import_module(node.module).__all__)
                names.add(one.asname or one.name)
    return names


class StubsTest(unittest.TestCase):
    """The stubs that the build makes (client/python/type_stubs)."""

    @classmethod
    def setUpClass(cls):
        if not (PACKAGE / "__init__.pyi").exists():
            raise unittest.SkipTest("the package is not a built one: wheel_test.py checks that builds have stubs")

    def test_every_public_name_is_in_the_stubs(self):
        for name in (*public_names.MODULES, *public_names.ALIASES):
            if name in ("stride.testing", "stride.dtypes"):
                continue  # NumPy's stubs list the names
            with self.subTest(name):
                module = importlib.import_module(name)
                stub = PACKAGE.joinpath(*name.split(".")[1:])
                stub = stub / "__init__.pyi" if stub.is_dir() else stub.with_suffix(".pyi")
                written = next(
                    (ast.literal_eval(node.value) for node in ast.parse(stub.read_text()).body
                     if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"), None)
                # bfloat16 exists if ml_dtypes is installed.
                self.assertEqual(set(written) ^ set(module.__all__) - {"bfloat16"}, set(written) & {"bfloat16"})
                self.assertEqual(set(module.__all__) - _stub_names(stub), set())

    def test_operators_of_arrays(self):
        tree = ast.parse((PACKAGE / "_array.pyi").read_text())
        array = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Array")
        written = {node.name for node in array.body if isinstance(node, ast.FunctionDef)}
        left_out = {"__del__", "__reduce__", "__getattr__"}
        self.assertEqual(
            {one for one, value in vars(st.Array).items() if inspect.isfunction(value) and not one.startswith("_Array")
             and (one.startswith("__") or not one.startswith("_"))} - written - left_out,
            set(),
        )

    def test_parameters_of_elementwise_functions(self):
        tree = ast.parse((PACKAGE / "_elementwise.pyi").read_text())
        classes = {node.name: node.body for node in tree.body if isinstance(node, ast.ClassDef)}
        for name, kind in (("cos", "Ufunc1"), ("add", "Ufunc2")):
            function = getattr(st, name)
            has = {one.target.id for one in classes[kind] if isinstance(one, ast.AnnAssign)}
            has |= {one.name for one in classes[kind] if isinstance(one, ast.FunctionDef)}
            self.assertEqual({one for one in vars(function) if not one.startswith("_")} - has, set())
            for method in classes[kind]:
                if not isinstance(method, ast.FunctionDef):
                    continue
                actual = function if method.name == "__call__" else getattr(function, method.name)
                arguments = method.args
                written = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)][1:]
                self.assertEqual([one for one in inspect.signature(actual).parameters if one != "options"], written)

    def test_parameters_of_functions(self):
        """Names, kinds and order are those of the function."""
        for name in ("stride", "stride.cuda", "stride.fft", "stride.lax", "stride.linalg", "stride.random",
                     "stride.tree_util"):
            module = importlib.import_module(name)
            for one in module.__all__:
                value = getattr(module, one)
                if not inspect.isfunction(value) or not (value.__module__ or "").startswith("stride"):
                    continue
                stub = PACKAGE.joinpath(*value.__module__.split(".")[1:])
                stub = stub / "__init__.pyi" if stub.is_dir() else stub.with_suffix(".pyi")
                nodes = [
                    node
                    for node in ast.parse(stub.read_text()).body
                    if isinstance(node, ast.FunctionDef) and node.name == value.__name__
                ]
                if not nodes:
                    continue  # an alias, or a table's
                node = nodes[-1]
                with self.subTest(f"{name}.{one}"):
                    arguments = node.args
                    written = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
                    written += [arguments.vararg.arg] if arguments.vararg else []
                    written += [each.arg for each in arguments.kwonlyargs]
                    written += [arguments.kwarg.arg] if arguments.kwarg else []
                    self.assertEqual(list(inspect.signature(value).parameters), written)


SAMPLES = sorted((HERE / "typing_samples").glob("*.py"))
_SETTINGS = """[mypy]
strict = True
disallow_subclassing_any = False
[mypy-google.*,grpc.*,ml_dtypes.*,scipy.*,pytest.*]
ignore_missing_imports = True
[mypy-stride.v1.*]
ignore_errors = True
"""


class CheckersTest(unittest.TestCase):
    """mypy and pyright, where they are installed."""

    setUpClass = StubsTest.setUpClass

    def run_checker(self, arguments, folder):
        return subprocess.run(
            arguments, cwd=folder, env={**os.environ, "MYPYPATH": str(PACKAGE.parent)}, capture_output=True, text=True,
            timeout=600,
        )

    def test_mypy(self):
        if importlib.util.find_spec("mypy") is None:
            raise unittest.SkipTest("mypy is not installed")
        with tempfile.TemporaryDirectory() as folder:
            settings = pathlib.Path(folder, "mypy.ini")
            settings.write_text(_SETTINGS)
            stubs = [str(one) for one in PACKAGE.rglob("*.pyi") if one.parent.name != "v1"]
            done = self.run_checker(
                [sys.executable, "-m", "mypy", "--config-file", settings, *map(str, SAMPLES), *stubs], folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_pyright(self):
        places = os.pathsep.join((str(pathlib.Path(sys.executable).parent), os.environ["PATH"]))
        program = shutil.which("pyright", path=places)
        if program is None:
            raise unittest.SkipTest("pyright is not installed")
        with tempfile.TemporaryDirectory() as folder:
            for one in SAMPLES:
                shutil.copy(one, folder)
            settings = {"typeCheckingMode": "strict", "extraPaths": [str(PACKAGE.parent)]}
            pathlib.Path(folder, "pyrightconfig.json").write_text(json.dumps(settings))
            done = self.run_checker([program, "--pythonpath", sys.executable, "--outputjson"], folder)
            found = json.loads(done.stdout)["generalDiagnostics"]
            self.assertEqual([f"{one['file']}:{one['range']['start']['line']}: {one['message']}" for one in found], [])


if __name__ == "__main__":
    client_case.main()
