"""cpu_operations_bench runs, checks its own results and reports every row, with sane numbers."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

_NAMES = [
    *(f"{function}{layout}_{type}" for type in ("float32", "float64", "int32") for function in ("sum", "max", "argmax") for layout in ("", "_rows", "_columns")),
    *(f"sum_short_rows_{type}" for type in ("float32", "float64", "int32")),
    *(f"{product}_{type}" for type in ("float32", "float64") for product in ("matvec", "vecmat", "vecdot")),
    *(f"matmul_{side}_{type}" for side in (64, 128, 256, 512) for type in ("float32", "float64")),
]


class CpuOperationsBenchTest(unittest.TestCase):
    def test_every_row_is_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rows.json"
            command = [PROGRAM, "--side=208", "--rounds=1", f"--json={path}"]
            run = subprocess.run(command, capture_output=True, text=True, timeout=280)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            rows = {row["id"]: row for row in json.loads(path.read_text())["rows"]}
        threads = ["one"] + (["all"] if os.cpu_count() > 1 else [])
        self.assertEqual(set(rows), {f"operation/{name}/{kind}/cpu:0" for name in _NAMES for kind in threads})
        for id, row in rows.items():
            with self.subTest(id):
                self.assertGreater(row["ours"]["min_s"], 0)
                self.assertGreater(row["ratio"], 0)
                self.assertTrue(row["baseline_name"])

    def test_wrong_arguments_are_refused(self):
        for arguments in (["--rounds=0"], ["--side=0"], ["--unknown=1"], ["word"]):
            run = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=30)
            self.assertEqual(run.returncode, 2, arguments)
            self.assertIn("Usage:", run.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
