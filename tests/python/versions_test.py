"""The client on every installed Python from 3.9 on, with protobuf 5, 6 and 7 and the oldest grpcio that the package
allows.

Usage: versions_test.py STRIDED FOLDER. FOLDER keeps the environments for the next run; packages come from PyPI. Exit
77: skipped."""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import client_case
from stride._daemon import PrivateDaemon

# The first that the package takes, and the newest of each major version.
_PROTOBUFS = ("protobuf==5.26.1", "protobuf>=5,<6", "protobuf>=6,<7", "protobuf>=7,<8")
_OLDEST_GRPC = "grpcio==1.62.3"  # spring of 2024, as protobuf 5
_PROGRAM = """
import os, sys, warnings
warnings.simplefilter("error", UserWarning)  # protobuf's own, of generated code
import google.protobuf, grpc, numpy
import stride as st
assert st.__file__.startswith(sys.argv[2]), st.__file__
with st.connect(sys.argv[1], local=sys.argv[3] == "local"):
    x = st.arange(1_000_000, dtype=st.float32)
    print(float(st.sum(st.cos(x) ** 2 + st.sin(x) ** 2)))
    numpy.testing.assert_array_equal(numpy.asarray(x[:5] * 2), [0, 2, 4, 6, 8])
    name = f"versions-{os.getpid()}"
    st.save(name, x[:3])
    assert st.load(name).shape == (3,)
    try:
        st.ones(2).to_device("cuda:9").to_numpy()
    except st.NotFound as error:
        assert error.reason == "DEVICE_NOT_FOUND", error
print(google.protobuf.__version__, grpc.__version__)
"""


def _pythons():
    """(major, minor) -> program, for every installed Python from 3.9 on."""
    folders = os.environ.get("PATH", "").split(":")
    root = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv")
    folders += [str(path) for path in root.glob("versions/3.*/bin")]
    found = {}
    for folder in folders:
        for path in pathlib.Path(folder or ".").glob("python3.*"):
            match = re.fullmatch(r"python3\.(\d+)", path.name)
            version = (3, int(match[1])) if match else (0, 0)
            if version < (3, 9) or version in found:
                continue
            # A name in PATH may refer to a version that is not installed.
            works = subprocess.run([str(path), "-c", "import ensurepip, venv"], capture_output=True, timeout=60)
            if works.returncode == 0:
                found[version] = str(path)
    return dict(sorted(found.items()))


def _run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=500, **more)


def _install(python, target, *packages):
    """Installs into a separate folder, kept once it is complete."""
    if target.exists():
        return ""
    part = target.with_name(target.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    done = _run(
        python, "-m", "pip", "-q", "--disable-pip-version-check", "install", "--only-binary=:all:", "--no-deps",
        "--target",
        str(part),
        *packages,
    )
    if done.returncode == 0:
        part.rename(target)
    return done.stderr if done.returncode else ""


class VersionsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reached = _run(
            sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-q", "--no-deps",
            "--only-binary=:all:", "-d",
            str(_FOLDER / "reach"),
            "--retries",
            "1",
            "protobuf>=7,<8",
        )
        if reached.returncode != 0:
            print(f"SKIPPED: PyPI cannot be reached: {reached.stderr.strip()[-300:]}")
            sys.exit(77)
        cls.daemon = PrivateDaemon(client_case.strided(), client_case.FLAGS)
        cls.addClassCleanup(cls.daemon.stop)

    def environment(self, version, program):
        """This version's Python, NumPy and newest gRPC, and a folder for each protobuf and for the oldest gRPC if that
        has a wheel for this Python."""
        name = "{}.{}".format(*version)
        folder = _FOLDER / name
        if not (folder / "bin/python").exists():
            done = _run(program, "-m", "venv", str(folder))
            self.assertEqual(done.returncode, 0, done.stderr)
        python = str(folder / "bin/python")
        self.assertEqual(_install(python, folder / "base", "numpy>=2.0", "grpcio", "typing_extensions"), "")
        protobufs = []
        for i, one in enumerate(_PROTOBUFS):
            target = folder / f"protobuf{i}"
            failed = _install(python, target, one)
            # protobuf 7 has no wheel for the oldest Python; its users have 6.
            if failed and "No matching distribution" in failed:
                continue
            self.assertEqual(failed, "")
            protobufs.append(target)
        old = folder / "old-grpc"
        failed = _install(python, old, _OLDEST_GRPC)
        self.assertTrue(not failed or "No matching distribution" in failed, failed)
        return python, protobufs, old if not failed else None

    def check(self, version, program):
        """The versions that ran, as protobuf and gRPC report them."""
        python, protobufs, old_grpc = self.environment(version, program)
        ran = []
        for protobuf in protobufs:
            for grpc in [None, old_grpc] if old_grpc else [None]:
                for transport in ("local", "grpc"):
                    path = [str(_SITE), *([str(grpc)] if grpc else []), str(protobuf), str(protobuf.parent / "base")]
                    done = _run(python, "-c", _PROGRAM, self.daemon.address, str(_SITE), transport, cwd=_FOLDER,
                                env={**os.environ, "PYTHONPATH": ":".join(path), "PYTHONDONTWRITEBYTECODE": "1"})
                    self.assertEqual(done.returncode, 0, f"Python {version}, {path}\n{done.stderr}")
                    lines = done.stdout.split("\n")
                    self.assertAlmostEqual(float(lines[0]), 1e6, delta=1)
                ran.append(lines[1])
        return ran

    def test_every_python(self):
        pythons = _pythons()
        self.assertTrue(pythons)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = dict(zip(pythons, pool.map(lambda item: self.check(*item), pythons.items())))
        majors = set()
        for version, ran in results.items():
            print("Python {}.{}: protobuf and gRPC".format(*version), ", ".join(ran))
            majors.update(one.split(".")[0] for one in ran)
            self.assertGreaterEqual(len({one.split(".")[0] for one in ran}), 2, version)
        self.assertEqual(majors, {"5", "6", "7"})


if __name__ == "__main__":
    _FOLDER = pathlib.Path(sys.argv.pop(2)).resolve()
    _FOLDER.mkdir(parents=True, exist_ok=True)
    # The package as pip installs it.
    _SITE = _FOLDER / "site"
    shutil.rmtree(_SITE, ignore_errors=True)
    shutil.copytree(pathlib.Path(__import__("stride").__file__).parent, _SITE / "stride")
    client_case.main()
