"""cpu_kernels_bench runs, checks its own results and reports every row, with sane numbers."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

_NAMES = (
    "add expression elu saxpy_grid_stride block_reduce block_reduce_in_order shuffle_reduce grid_reduce histogram_shared "
    "histogram_global tiled_product tiled_product_by_rows naive_product matmul_float32 matmul_float64"
).split()


class CpuKernelsBenchTest(unittest.TestCase):
    def test_every_row_is_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rows.json"
            command = [PROGRAM, "--elements=20000", "--matrix=64", "--rounds=2", f"--json={path}"]
            run = subprocess.run(command, capture_output=True, text=True, timeout=280)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            rows = {row["id"]: row for row in json.loads(path.read_text())["rows"]}
        threads = ["one"] + (["all"] if os.cpu_count() > 1 else [])
        self.assertEqual(set(rows), {f"{name}/{kind}/cpu:0" for name in _NAMES for kind in threads})
        for id, row in rows.items():
            with self.subTest(id):
                for times in (row["ours"], row["baseline"]):
                    self.assertGreater(times["min_s"], 0)
                    self.assertGreaterEqual(times["median_s"], times["min_s"])
                self.assertGreater(row["ratio"], 0)
                self.assertTrue(row["baseline_name"])

    def test_wrong_arguments_are_refused(self):
        for arguments in (["--rounds=0"], ["--matrix=17"], ["--unknown=1"], ["word"]):
            run = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=30)
            self.assertEqual(run.returncode, 2, arguments)
            self.assertIn("Usage:", run.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
