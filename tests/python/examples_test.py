"""The examples, each as a user runs it."""

import os
import pathlib
import subprocess
import sys
import unittest

import client_case

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "client/python/examples"


class ExamplesTest(client_case.ClientCase):
    def run_example(self, name, *arguments):
        environment = {**os.environ, "STRIDE_ADDRESS": self.daemon.address}
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / name), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=250,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_cupy(self):
        output = self.run_example("cupy_workloads.py")
        self.assertIn("4999950000", output)
        self.assertIn("refused, as it should be", output)

    def test_numba(self):
        self.assertIn("10,000,000 elements", self.run_example("numba_workloads.py"))

    def test_jax(self):
        self.assertIn("batched product: right", self.run_example("jax_workloads.py"))

    def test_julia(self):
        self.assertIn("slices: right", self.run_example("julia_workloads.py"))

    def test_ptx(self):
        # The CPU device takes no PTX, and says so.
        wanted = "kernel: right" if client_case.DEVICE_KIND == "cuda" else "it needs one of kind: cuda"
        for name in ("ptx_numba.py", "ptx_julia.py", "ptx_triton.py"):
            self.assertIn(wanted, self.run_example(name))

    def test_matmul(self):
        self.assertIn("512x512 float32", self.run_example("matmul_workloads.py", "512"))

    def test_metrics(self):
        self.assertIn(self.device, self.run_example("metrics.py", "2"))


if __name__ == "__main__":
    client_case.main()
