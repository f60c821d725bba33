"""A log file and a line of output for each program; all lines again at the end; the files go to $OUT when it is set."""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import threading
import time

_TAIL_LINES = 40


@dataclasses.dataclass
class Ended:
    """How a program ended. No exit code: it was killed when its time ran out."""

    code: int | None
    output: str
    seconds: float
    limit: float

    def why_bad(self) -> str:
        """Empty when it ended well."""
        if self.code is None:
            return f"killed after {self.limit:.0f} s" if self.limit > 0 else "not started: no time was left"
        return f"exit code {self.code}" if self.code != 0 else ""


class Log:
    """Thread-safe. close() prints the verdicts and writes the files: $OUT/summary.txt, and $OUT/logs.tar.xz with one
    file for each program that ran."""

    def __init__(self, limit: float):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stride-gpu-logs."))
        self._end = time.monotonic() + limit
        self._lock = threading.Lock()
        self._lines: list[str] = []
        self._verdicts: list[str] = []
        self._counts = {"PASS": 0, "FAIL": 0, "SKIPPED": 0}

    def say(self, line: str) -> None:
        with self._lock:
            print(line)
            self._lines.append(line)

    def run(self, name: str, command: list[str], environment: dict[str, str], timeout: float, cwd=None) -> Ended:
        """Runs until the program's end, its timeout or the end of all time. Its process group ends with it."""
        file = self.folder / f"{name}.txt"
        began = time.monotonic()
        limit = max(0.0, min(timeout, self._end - began))
        if limit == 0:
            return Ended(None, "", 0, 0)
        with open(file, "wb") as out:
            out.write(f"$ {' '.join(command)}\n".encode())
            out.flush()
            process = subprocess.Popen(command, env=environment, cwd=cwd, stdout=out, stderr=subprocess.STDOUT,
                                       stdin=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
                code = None
        return Ended(code, file.read_text(errors="replace"), time.monotonic() - began, limit)

    def passed(self, name: str, what: str, seconds: float) -> None:
        self._judge("PASS", f"{name}: {what}, {seconds:.1f} s")

    def skipped(self, name: str, why: str) -> None:
        self._judge("SKIPPED", f"{name}: {why}")

    def failed(self, name: str, why: str, ended: Ended | None = None) -> None:
        self._judge("FAIL", f"{name}: {why}" + (f", {ended.seconds:.1f} s" if ended else ""))
        if ended:
            with self._lock:
                print("".join(f"    {line}\n" for line in _worth_reading(ended.output)), end="")

    def _judge(self, verdict: str, line: str) -> None:
        with self._lock:
            self._counts[verdict] += 1
            self._verdicts.append(f"{verdict:<8}{line}")
            print(self._verdicts[-1])

    def close(self) -> int:
        self.say("--- summary")
        order = sorted(self._verdicts, key=lambda line: not line.startswith("PASS"))
        for line in order:
            self.say(line)
        counts = self._counts
        verdict = "FAIL" if counts["FAIL"] else "PASS"
        self.say(f"gpu: {verdict}: {counts['PASS']} passed, {counts['FAIL']} failed, {counts['SKIPPED']} skipped")
        if out := os.environ.get("OUT"):
            pathlib.Path(out, "summary.txt").write_text("\n".join(self._lines) + "\n")
            with tarfile.open(f"{out}/logs.tar.xz", "w:xz") as archive:
                archive.add(self.folder, "logs")
        shutil.rmtree(self.folder)
        return 1 if counts["FAIL"] else 0


def _worth_reading(output: str) -> list[str]:
    """GoogleTest's failures from their first lines on, or else the end."""
    lines = output.splitlines()
    failures = [i for i, line in enumerate(lines) if "Failure" in line or line.startswith("[  FAILED  ]")]
    if not failures:
        return lines[-_TAIL_LINES:]
    wanted = sorted({j for i in failures for j in range(i, min(i + 6, len(lines)))})
    return [lines[i] for i in wanted[: 2 * _TAIL_LINES]]
