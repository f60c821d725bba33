"""A benchmark's program, whose path is the test's first argument."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest


class ProgramCase(unittest.TestCase):
    program = ""

    def run_program(self, *arguments):
        """Returns the program's output and its JSON."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rows.json"
            run = subprocess.run(
                [self.program, *arguments, f"--json={path}"], capture_output=True, text=True, timeout=280
            )
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            return run.stdout, json.loads(path.read_text())

    def check_refuses(self, *wrong):
        for arguments in wrong:
            run = subprocess.run([self.program, *arguments], capture_output=True, text=True, timeout=30)
            self.assertEqual(run.returncode, 2, arguments)
            self.assertIn("Usage:", run.stderr)


def main():
    ProgramCase.program = sys.argv.pop(1)
    unittest.main()
