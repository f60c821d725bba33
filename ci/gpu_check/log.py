"""One log file for each thing that runs; a compact line for each on the screen; all of it under $OUT when that is set."""

import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import time

_TAIL_LINES = 40


class Log:
    """Not thread-safe. close() hands the files over: $OUT/summary.txt, and $OUT/logs.tar.xz with one file for each run."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stride-gpu-logs."))
        self.lines: list[str] = []
        self.failures: list[str] = []

    def say(self, line: str) -> None:
        print(line)
        self.lines.append(line)

    def run(self, name: str, command: list[str], environment: dict[str, str], timeout: float, cwd=None):
        """Runs to the end or the timeout. Returns (exit code, output, seconds); the code is None when time ran out."""
        file = self.folder / f"{name}.txt"
        began = time.monotonic()
        with open(file, "wb") as out:
            out.write(f"$ {' '.join(command)}\n".encode())
            out.flush()
            # A process group of its own, so that a timeout ends what the command started too.
            process = subprocess.Popen(command, env=environment, cwd=cwd, stdout=out, stderr=subprocess.STDOUT,
                                       stdin=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
                code = None
        return code, file.read_text(errors="replace"), time.monotonic() - began

    def fail(self, name: str, why: str, output: str) -> None:
        self.say(f"FAILED  {name}: {why}")
        print("".join(f"    {line}\n" for line in output.splitlines()[-_TAIL_LINES:]), end="")
        self.failures.append(name)

    def close(self) -> int:
        self.say(f"gpu: {len(self.failures)} failed{': ' if self.failures else ''}{', '.join(self.failures)}")
        if out := os.environ.get("OUT"):
            pathlib.Path(out, "summary.txt").write_text("\n".join(self.lines) + "\n")
            with tarfile.open(f"{out}/logs.tar.xz", "w:xz") as archive:
                archive.add(self.folder, "logs")
        shutil.rmtree(self.folder)
        return 1 if self.failures else 0
