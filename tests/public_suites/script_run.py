"""Runs one program, statement by statement, with NumPy or with `stride` in its place; writes the result of each.

    python script_run.py numpy|stride PROGRAM RESULT [RESULT_OF_NUMPY]

With `stride`, only statements that succeeded with NumPy run."""

import ast
import contextlib
import importlib.machinery
import io
import os
import pathlib
import pickle
import sys
import time
import traceback

import import_lines
import script_units

LIMIT = 1 << 20  # elements of a value that are compared
NAME = "__main__"


class _Replacing(importlib.machinery.SourceFileLoader):
    def source_to_code(self, data, path, **_):
        tree = ast.parse(data, path)
        import_lines.replaced(tree)
        return compile(tree, path, "exec", dont_inherit=True)


class _Finder:
    """The program's own modules have their import lines replaced as well."""

    def __init__(self, root):
        self.root = os.path.realpath(root) + os.sep

    def find_spec(self, name, path=None, target=None):
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        origin = spec and spec.origin
        if not origin or not origin.endswith(".py") or not os.path.realpath(origin).startswith(self.root):
            return None
        spec.loader = _Replacing(name, origin)
        return spec


def _key(key):
    return key.item() if hasattr(key, "item") else key


def digest(value, depth=0):
    """The compared parts of a value: arrays and numbers, within containers and attributes of the program's objects."""
    import numpy as np

    if type(value).__module__.startswith("stride") and hasattr(value, "__array__"):
        value = np.asarray(value)
    if isinstance(value, (bool, int, float, complex, np.ndarray, np.generic)):
        try:
            array = np.asarray(value)
        except OverflowError:
            return ("other", type(value).__name__)
        if array.dtype.kind not in "biufc":
            return ("excluded", array.dtype.kind)
        if type(value) in (bool, int, float, complex):
            return ("number", array)
        return ("array", array.copy()) if array.size <= LIMIT else ("shape", array.shape)
    if isinstance(value, (str, bytes)) or value is None:
        return ("text", value)
    if depth < 4 and isinstance(value, (list, tuple, dict)) and len(value) <= 10_000:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return ("items", {repr(_key(key)): digest(one, depth + 1) for key, one in items})
    if depth < 3 and type(value).__module__ == NAME and hasattr(value, "__dict__"):
        return ("items", {key: digest(one, depth + 1) for key, one in vars(value).items()})
    return ("other", "")


class Run:
    def __init__(self, mode, path, reference):
        self.mode, self.path, self.reference = mode, path, reference
        self.namespace = {"__name__": NAME, "__file__": str(path), "__builtins__": __builtins__}
        self.records = []

    def run(self, trees, phase):
        for tree in trees:
            index = len(self.records)
            record = {"phase": phase, "line": tree.body[0].lineno, "source": ast.unparse(tree)[:200_000]}
            self.records.append(record)
            if self.reference is not None and (
                index >= len(self.reference) or self.reference[index].get("error") or "source" not in record
            ):
                record["skipped"] = True
                continue
            self._run_one(tree, record)
            yield record

    def _run_one(self, tree, record):
        text = io.StringIO()
        started = time.monotonic()
        if self.mode == "stride":
            import_lines.replaced(tree)
        value = None
        try:
            with contextlib.redirect_stdout(text):
                if isinstance(tree.body[-1], ast.Expr):
                    code = compile(ast.Expression(tree.body[-1].value), tree.file, "eval")
                    value = eval(code, self.namespace)
                else:
                    exec(compile(tree, tree.file, "exec"), self.namespace)
            record["value"] = digest(value)
        except SystemExit as error:
            if error.code not in (None, 0):
                record["error"] = f"SystemExit: {error.code}"
        except BaseException as error:  # a statement's outcome
            record["error"] = f"{type(error).__name__}: {error}"[:2000]
            record["traceback"] = traceback.format_exc()[-4000:]
        record["seconds"] = time.monotonic() - started
        record["output"] = text.getvalue()[:100_000]
        names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
        record["names"] = {}
        for name in set(names):
            if name in self.namespace and not name.startswith("__"):
                try:
                    record["names"][name] = digest(self.namespace[name])
                except BaseException as error:
                    record.setdefault("error", f"reading {name}: {type(error).__name__}: {error}"[:2000])


def main():
    mode, path, result = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    reference = None
    if mode == "stride":
        with open(sys.argv[4], "rb") as file:
            reference = pickle.load(file)["records"]
    root = os.environ["STRIDE_SCRIPTS_ROOT"]
    sys.path.insert(0, str(path.parent))
    sys.path.append(root)
    sys.argv = [str(path)]
    import paired_random

    paired_random.fix_seeds()
    if mode == "stride":
        paired_random.install()
        sys.meta_path.insert(0, _Finder(root))
    run = Run(mode, path, reference)
    out = open(result, "wb")

    def write(finished):
        out.seek(0)
        pickle.dump({"records": run.records, "finished": finished}, out)
        out.truncate()
        out.flush()

    sys.modules[NAME].__dict__.update(run.namespace)
    run.namespace = sys.modules[NAME].__dict__
    last = time.monotonic()
    for phase in ("script", "doctest"):
        trees = script_units.units(path) if phase == "script" else script_units.doctests(run.namespace, NAME)
        for _ in run.run(trees, phase):
            if time.monotonic() - last > 5:
                write(False)
                last = time.monotonic()
    write(True)
    out.close()
    os._exit(0)  # threads and windows of the program


if __name__ == "__main__":
    main()
