"""The package as pip installs it, from the repository, from an sdist and from a copy of its folder alone. Its import
needs nothing of this repository and not googleapis-common-protos."""

import ast
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from google.protobuf import descriptor_pb2

import client_case
import stride

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
sys.modules["google.rpc"] = None  # as where googleapis-common-protos is not installed
import numpy, stride
import stride.cupy.cuda, stride.cupyx.scipy.special, stride.numba.cuda.random
assert stride.numba.cuda is stride.cuda and stride.numba.cuda.random is stride.cuda.random
assert stride.__file__.startswith(sys.argv[1]), stride.__file__
with stride.connect(sys.argv[2]):
    print(stride.asarray([1, 2, 3]) * 2)
    try:
        stride.ones(2).to_device("cuda:9").to_numpy()
    except stride.NotFound as error:
        print(error.reason)
"""


class WheelTest(client_case.ClientCase):
    def install(self, what, site):
        done = subprocess.run(
            [
                sys.executable, "-m", "pip", "-q", "install", "--no-deps", "--no-build-isolation", "--no-index",
                "--target", site, what,
            ],
            capture_output=True,
            text=True,
            timeout=200,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return pathlib.Path(site)

    def run_program(self, site, folder):
        done = subprocess.run([sys.executable, "-c", PROGRAM, str(site), self.daemon.address], cwd=folder,
                              env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "[2 4 6]\nDEVICE_NOT_FOUND\n")

    def test_sdist(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(ROOT / "client/python", folder + "/copy")
            done = subprocess.run(
                [sys.executable, "setup.py", "-q", "sdist", "--dist-dir", folder + "/dist"],
                cwd=folder + "/copy",
                capture_output=True,
                text=True,
                timeout=200,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            archive, = pathlib.Path(folder, "dist").iterdir()
            self.run_program(self.install(str(archive), folder + "/site"), folder)

    def test_messages_are_those_of_the_protos(self):
        """The copy that pip installs is not older than proto/; ci/check-proto --update renews it."""
        site = pathlib.Path(stride.__file__).parent / "v1/contract.binpb"
        built = {file.name: file for file in descriptor_pb2.FileDescriptorSet.FromString(site.read_bytes()).file}
        for file in descriptor_pb2.FileDescriptorSet.FromString(
            (ROOT / "client/python/stride/v1/contract.binpb").read_bytes()
        ).file:
            self.assertEqual(file, built[file.name], file.name)

    def test_all_packages_are_listed(self):
        """Those in pyproject.toml are the folders of the sources, and those only."""
        text = (ROOT / "client/python/pyproject.toml").read_text()
        listed = ast.literal_eval(text.partition("packages = ")[2].partition("]")[0] + "]")
        folders = {one.parent for one in (ROOT / "client/python/stride").rglob("__init__.py")}
        found = sorted(".".join(one.relative_to(ROOT / "client/python").parts) for one in folders)
        self.assertEqual(sorted(listed), found)

    def test_install(self):
        with tempfile.TemporaryDirectory() as folder:
            # A copy, since builds leave files next to their sources, and without proto/.
            shutil.copytree(ROOT / "client/python", folder + "/copy")
            site = self.install(folder + "/copy", folder + "/site")
            self.assertTrue((site / "stride/v1/compute_service_pb2.pyi").exists())
            self.assertTrue((site / "stride/py.typed").exists())
            modules = {one for one in (site / "stride").rglob("*.py") if one.parent.name != "v1"}
            without = {one.name for one in modules if not one.with_suffix(".pyi").exists()}
            self.assertEqual(without, {"_types.py"})
            # Type checkers find these modules here; Python has them from stride.numba.
            aliases = {one.name for one in (site / "stride/numba/cuda").iterdir()}
            self.assertEqual(
                aliases, {f"{one}.pyi" for one in ("__init__", "cg", "devicearray", "fp16", "libdevice", "random")})
            metadata = next(site.glob("stride-*.dist-info/METADATA")).read_text()
            needed = sorted(
                line.split()[1].split(">")[0] for line in metadata.split("\n") if line.startswith("Requires-Dist")
            )
            self.assertEqual(needed, ["grpcio", "numpy", "protobuf"])
            self.run_program(site, folder)


if __name__ == "__main__":
    client_case.main()
