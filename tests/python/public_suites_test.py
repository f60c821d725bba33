"""The runners of public programs report differences from NumPy and failures."""

import ast
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import client_case

SUITES = pathlib.Path(__file__).resolve().parents[1] / "public_suites"
PROGRAMS = {
    "works.py": """
        import numpy as np
        from numpy.linalg import norm
        import helper
        np.random.seed(3)
        x = np.random.normal(size=(4, 3))
        class Model:
            def __init__(self, weights):
                self.weights = weights
        model = Model(helper.doubled(x))
        if __name__ == "__main__":
            print("norm", norm(x), model.weights.sum())
        values = {"a": [x, 2], "b": np.random.default_rng().integers(0, 9, 5)}
    """,
    "helper.py": """
        import numpy
        def doubled(x):
            '''Twice x.

            >>> doubled(numpy.ones(2)).tolist()
            [2.0, 2.0]
            '''
            return numpy.add(x, x)
    """,
    "stops.py": "import numpy as np\nx = np.info\ny = np.get_include()\nz = y + 'a'\n",
    "differs.py": "import numpy as np\ny = np.arange(3) + ('stride' in str(np.ndarray))\n",
    "prints.py": "import numpy as np\nprint(1 if 'stride' in str(np.ndarray) else 2)\n",
    "excluded.py": "import numpy as np\nx = np.array([1, 'a'], dtype=object)\ny = x[0]\n",
    "fails_itself.py": "import numpy.nothing\n",
    "without.py": "print('numpy')\n",
    "hangs.py": "import numpy as np\nwhile 'stride' in str(np.ndarray): pass\n",
}
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": ["text"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "import numpy as np\n"]},
        {"cell_type": "code", "source": ["f = np.vectorize(lambda x: x + 1)"]},
        {"cell_type": "code", "source": ["f(np.arange(3.0)).sum()"]},
    ]
}
# Cells of MyST notebooks: options in front are no code.
CELLS = "```{code-cell} ipython3\n:id: a1\n:outputId: b2-c3\n\nimport numpy as np\nx = np.ones(3)\n```\n" \
    "```{code-cell}\n---\ntags: [b]\n---\nx.sum()\n```\n"
TEXT = "```python\nimport numpy as np\nx = np.ones(3)\n```\nand then\n```python\n>>> x.sum()\n3.0\n```\n"
OUTCOMES = {
    "works.py": "works",
    "helper.py": "works",
    "stops.py": "error",
    "differs.py": "value",
    "prints.py": "output",
    "excluded.py": "excluded",
    "fails_itself.py": "skipped",
    "hangs.py": "too slow",
    "notebook.ipynb": "works",
    "text.md": "works",
    "cells.md": "works",
}


def dedented(text):
    lines = text.split("\n")
    return "\n".join(line[8:] if line.startswith("        ") else line for line in lines)


class PublicSuitesTest(client_case.ClientCase):
    def suite(self, name, *arguments):
        process = subprocess.run(
            [sys.executable, str(SUITES / name), client_case.strided(), *map(str, arguments)],
            capture_output=True, text=True, timeout=800,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[1:])},
        )  # fmt: skip
        return process.returncode, process.stdout, process.stderr

    def test_programs_are_compared_statement_by_statement(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder) / "programs"
            root.mkdir()
            for name, text in PROGRAMS.items():
                (root / name).write_text(dedented(text))
            (root / "notebook.ipynb").write_text(json.dumps(NOTEBOOK))
            (root / "text.md").write_text(TEXT)
            (root / "cells.md").write_text(CELLS)
            result = pathlib.Path(folder) / "result.json"
            others = [name for name in OUTCOMES if name != "hangs.py"]
            code, out, err = self.suite("script_suite.py", root, "--seconds=300", f"--json={result}", *others)
            self.assertEqual(err, "")
            found = {one["program"]: one for one in json.loads(result.read_text())}
            code, out, err = self.suite("script_suite.py", root, "--seconds=12", f"--json={result}", "hangs.py")
            found.update({one["program"]: one for one in json.loads(result.read_text())})
        self.assertEqual({name: one["outcome"] for name, one in found.items()}, OUTCOMES)
        self.assertEqual(code, 1)
        stops = found["stops.py"]["problems"]  # consequences of the first failed statement are not counted
        self.assertEqual([kind for kind, *_ in stops], ["error", "error"])
        self.assertIn("y: values differ", found["differs.py"]["problems"][0][1])
        self.assertEqual([found[name]["statements"] for name in ("text.md", "cells.md")], [3, 3])

    def test_import_lines_have_the_modules_of_jaxs_names(self):
        sys.path.insert(0, str(SUITES))
        self.addCleanup(sys.path.remove, str(SUITES))
        import import_lines

        tree = ast.parse("import jax\nimport jax.numpy as jnp\nfrom jax import lax, random\nimport numpy as np\n")
        import_lines.replaced(tree)
        names: dict = {}
        exec(compile(tree, "lines", "exec"), names)
        modules = {name: names[name].__name__ for name in ("jax", "jnp", "lax", "random", "np")}
        self.assertEqual(modules, {"jax": "stride.jax", "jnp": "stride.jax.numpy", "lax": "stride.jax.lax",
                                   "random": "stride.jax.random", "np": "stride"})  # fmt: skip

    def test_npbench_programs_are_compared(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "bench_info").mkdir()
            for name, wrong in (("good", ""), ("bad", "+ (np.__name__ == 'stride')")):
                place = root / "npbench" / "benchmarks" / "group" / name
                place.mkdir(parents=True)
                (root / "bench_info" / f"{name}.json").write_text(json.dumps({"benchmark": {
                    "relative_path": f"group/{name}", "module_name": name, "func_name": "kernel",
                    "parameters": {"S": {"N": 5}},
                    "init": {"func_name": "initialize", "input_args": ["N"], "output_args": ["A"]},
                    "input_args": ["N", "A"], "array_args": ["A"], "output_args": ["A"],
                }}))  # fmt: skip
                (place / f"{name}.py").write_text(
                    "import numpy as np\n\n\ndef initialize(N):\n    return np.fromfunction(lambda i: i / N, (N,))\n"
                )
                body = f"def kernel(N, A):\n    A[:] = np.cumsum(A) {wrong}\n    return A.sum()\n"
                (place / f"{name}_numpy.py").write_text("import numpy as np\n\n\n" + body)
                (place / f"{name}_cupy.py").write_text("import cupy as np\n\n\n" + body)
            result = root / "result.json"
            code, _, err = self.suite("npbench_suite.py", root, f"--json={result}")
            self.assertEqual(err, "")
            found = {(one["program"], one["version"]): one["outcome"] for one in json.loads(result.read_text())}
        self.assertEqual(code, 1)
        self.assertEqual(found, {
            ("good", "numpy"): "passed", ("good", "cupy"): "passed",
            ("bad", "numpy"): "differs", ("bad", "cupy"): "passed",
        })  # fmt: skip


if __name__ == "__main__":
    client_case.main()
