"""The Python example, which has nothing but the .proto files, against a real daemon.

Usage: python_client_test.py STRIDED EXAMPLE
"""

import pathlib
import subprocess
import sys
import tempfile
import time
import unittest


class PythonClientTest(unittest.TestCase):
    def test_quickstart(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log"
            address = f"unix:{folder}/s"
            with open(log, "w") as stderr:
                daemon = subprocess.Popen(
                    [_STRIDED, f"--listen={address}", "--no-cuda", "--cpu-devices=2x1"], stderr=stderr)
            try:
                end = time.monotonic() + 30
                while "ready pid=" not in log.read_text():
                    self.assertIsNone(daemon.poll(), log.read_text())
                    self.assertLess(time.monotonic(), end, log.read_text())
                    time.sleep(0.01)
                done = subprocess.run([sys.executable, _EXAMPLE, address], capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr + log.read_text())
                self.assertIn("quickstart: all right", done.stdout)
            finally:
                daemon.terminate()
                self.assertEqual(daemon.wait(timeout=30), 0, log.read_text())


if __name__ == "__main__":
    _STRIDED, _EXAMPLE = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
