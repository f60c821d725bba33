"""The package as pip installs it: nothing of this repository, nor googleapis-common-protos, is needed to import it."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import client_case

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
sys.modules["google.rpc"] = None  # as where googleapis-common-protos is not installed
import numpy, stride
assert stride.__file__.startswith(sys.argv[1]), stride.__file__
with stride.connect(sys.argv[2]):
    print(stride.asarray([1, 2, 3]) * 2)
    try:
        stride.ones(2).to_device("cuda:9").to_numpy()
    except stride.NotFound as error:
        print(error.reason)
"""


class WheelTest(client_case.ClientCase):
    def test_install(self):
        with tempfile.TemporaryDirectory() as folder:
            # A copy, since builds leave files beside their sources.
            for part in ("client/python", "proto"):
                shutil.copytree(ROOT / part, pathlib.Path(folder) / "repository" / part)
            subprocess.run([sys.executable, "-m", "pip", "-q", "install", "--no-deps", "--no-build-isolation", "--no-index", "--target", folder + "/site",
                            folder + "/repository/client/python"], check=True, timeout=200, capture_output=True)
            site = pathlib.Path(folder) / "site"
            self.assertTrue((site / "stride/v1/compute_service_pb2.pyi").exists())
            self.assertTrue((site / "stride/py.typed").exists())
            metadata = next(site.glob("stride-*.dist-info/METADATA")).read_text()
            needed = sorted(line.split()[1].split(">")[0] for line in metadata.split("\n") if line.startswith("Requires-Dist"))
            self.assertEqual(needed, ["grpcio", "numpy", "protobuf"])
            done = subprocess.run([sys.executable, "-c", PROGRAM, str(site), self.daemon.address], cwd=folder,
                                  env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True, timeout=100)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, "[2 4 6]\nDEVICE_NOT_FOUND\n")


if __name__ == "__main__":
    client_case.main()
