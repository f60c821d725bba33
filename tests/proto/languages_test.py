"""The contract compiles in every language from proto/ alone, by the commands of docs/other_languages.md."""

import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_LINES = [
    line.strip()
    for line in (_ROOT / "docs/other_languages.md").read_text().splitlines()
    if line.startswith("    protoc ")
]
# Generators built into protoc.
_BUILT_IN = {"cpp", "csharp", "java", "objc", "php", "python", "ruby"}


def _missing(line):
    """The generator that a command needs and that is not installed, or None."""
    plugins = dict(re.findall(r"--plugin=protoc-gen-([a-z]+)=(\S+)", line))
    for name in re.findall(r"--([a-z-]+)_out=", line):
        if name not in _BUILT_IN and not shutil.which(plugins.get(name, f"protoc-gen-{name}")):
            return plugins.get(name, f"protoc-gen-{name}")
    return None


class LanguagesTest(unittest.TestCase):
    def generate(self, line):
        # The folder alone: no Python package, no other import path, adds missing files.
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(_ROOT / "proto", folder + "/proto")
            (pathlib.Path(folder) / "gen").mkdir()
            done = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, ""), line)
            made = [path for path in pathlib.Path(folder, "gen").rglob("*") if path.is_file()]
            # Each service has its stub.
            services = len(list((_ROOT / "proto/stride/v1").glob("*_service.proto")))
            self.assertGreaterEqual(len(made), services, line)
            self.assertTrue(any("compute" in path.name.lower() and path.stat().st_size for path in made), line)
            return folder

    def test_every_generator(self):
        self.assertGreaterEqual(len(_LINES), 8)
        ran = 0
        for line in _LINES:
            with self.subTest(shlex.split(line)[3]):
                if missing := _missing(line):
                    self.skipTest(f"{missing} is not installed")
                self.generate(line)
                ran += 1
        self.assertGreater(ran, 0)


if __name__ == "__main__":
    unittest.main()
