"""ci/bench as a user runs it, small and quick: every part succeeds, and all rows are in one table and one file."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest


class BenchRunTest(unittest.TestCase):
    def test_a_quick_run_of_the_small_parts(self):
        parts = "latency,clients,compile,device,peers,chains,replay"
        with tempfile.TemporaryDirectory() as folder:
            command = [ROOT / "ci" / "bench", BUILD, "--quick", f"--only={parts}", "--results", folder]
            run = subprocess.run(command, capture_output=True, text=True, timeout=280)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            content = json.loads((pathlib.Path(folder) / "bench.json").read_text())
            self.assertIn(content["rows"][0]["what"].strip(), (pathlib.Path(folder) / "bench.txt").read_text())
        self.assertEqual(content["failed"], {}, run.stdout)
        device = next(iter(content["devices"]))
        ids = {row["id"] for row in content["rows"]}
        for id in (
            "run/unix", "compile_cached", "kernel_cold", "clients/10", "peer/trigonometric/numpy",
            "python_chain/x___1", "python_program/call",
        ):
            self.assertIn(f"{id}/{device}", ids)
        self.assertTrue(any(id.startswith("peer/trigonometric_in_a_row/") and id.endswith(device) for id in ids), ids)
        if device.startswith("cpu"):
            self.assertRegex(" ".join(content["missing"]), "operations on a GPU|cuda_operations_bench is not built")
        for row in content["rows"]:
            self.assertGreater(row["ours"]["median_s"], 0, row)
            self.assertIn(row["what"].strip(), run.stdout)
            self.assertGreaterEqual(row["ours"]["median_s"], row["ours"]["min_s"], row)

    def test_peers_on_a_cpu_device_with_one_thread(self):
        with tempfile.TemporaryDirectory() as folder:
            rows = pathlib.Path(folder) / "rows.json"
            command = [sys.executable, ROOT / "bench/python/peers.py", "--cpu", "1", "--scale", "0.01", "--rounds", "2"]
            command += ["--seconds", "0.2", "--only", "cos 1e6 f32,max 2.5e7", "--libraries", "stride,NumPy"]
            environment = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(BUILD / "python"), str(ROOT)]),
                "STRIDE_DAEMON": str(BUILD / "bin" / "strided"),
            }
            run = subprocess.run(
                [*command, "--json", rows], capture_output=True, text=True, timeout=120, env=environment
            )
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            content = json.loads(rows.read_text())
        self.assertEqual(set(content["devices"]), {"cpu:0"})
        ids = {row["id"]: row for row in content["rows"]}
        for key in ("call", "call_number", "cos_f32", "max"):
            self.assertIn(f"peer/{key}/numpy/cpu:0", ids)
        self.assertGreater(ids["peer/cos_f32/numpy/cpu:0"]["call_s"], 0)
        self.assertNotIn("call_s", ids["peer/call/numpy/cpu:0"])
        self.assertRegex(run.stdout, r"3 rows without the call, \d of them behind")

    def test_a_build_that_is_none_is_refused(self):
        run = subprocess.run([ROOT / "ci" / "bench", "/nonexistent"], capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 2)
        self.assertIn("no strided", run.stderr)


if __name__ == "__main__":
    BUILD, ROOT = pathlib.Path(sys.argv.pop()), pathlib.Path(sys.argv.pop())
    unittest.main()
