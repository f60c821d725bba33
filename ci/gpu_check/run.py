"""ci/gpu run: everything a GPU is needed for, from what `ci/gpu build` packed."""

import concurrent.futures
import hashlib
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from gpu_check import machine, manifest, sanitizer
from gpu_check.log import Ended, Log
from gpu_check.paths import PACK, ROOT

_KILLS = os.environ.get("STRIDE_TEST_KILLS", "100")
# Programs print what they measure on lines that begin so.
_MEASURED = "measured: "
# For the tests that are Python programs.
_PYTHON_NEEDS = ("numpy", "grpc", "google")
# The text of a suite that skips all of its tests, which GoogleTest counts as passed, and of a benchmark without a
# device.
_NO_DEVICE = "no device of kind"
_FOUND_NONE = "it found no device on a machine with a GPU"


class GpuRun:
    def __init__(self, unpacked: pathlib.Path, log: Log, only: str = ""):
        """`only`: a regular expression for the names of the tests wanted; all, when it is empty."""
        self.unpacked = unpacked
        self.log = log
        self.only = re.compile(only)
        self.environment = machine.environment(unpacked)
        self.environment["STRIDE_TEST_CASES"] = str(ROOT / "tests" / "cases")
        self.environment["STRIDE_TEST_KILLS"] = _KILLS
        self.packed_tests = [
            test.located(ROOT, unpacked, sys.executable) for test in manifest.load(unpacked / "manifest.json")
        ]

    def tests(self) -> None:
        for test in self.packed_tests:
            if not self.only.search(test.name):
                continue
            if test.command[0] == sys.executable and (missing := _missing_modules()):
                self.log.skipped(test.name, f"this machine's Python has no {', '.join(missing)}")
                continue
            environment = {**self.environment, **test.environment}
            if (ours := test.environment.get("PYTHONPATH")) and (already := self.environment.get("PYTHONPATH")):
                environment["PYTHONPATH"] = f"{ours}:{already}"
            self._judge(test.name, self.log.run(test.name, test.command, environment, test.timeout, self.unpacked))

    def _judge(self, name: str, ended: Ended) -> None:
        passed, skipped = _gtest_count("PASSED", ended.output), _gtest_count("SKIPPED", ended.output)
        for line in ended.output.splitlines():
            if line.startswith(_MEASURED):
                self.log.say(f"        {line}")
        if why := ended.why_bad():
            self.log.failed(name, why, ended)
        elif _NO_DEVICE in ended.output:
            self.log.failed(name, _FOUND_NONE, ended)
        elif "[==========]" in ended.output and passed == 0:
            self.log.failed(name, f"{skipped} tests skipped, none ran, on a machine with a GPU", ended)
        else:
            self.log.passed(name, f"{passed} tests, {skipped} skipped" if passed else "ended well", ended.seconds)

    def sanitize(self) -> None:
        tool = machine.compute_sanitizer()
        if tool is None:
            self.log.skipped("SANITIZERS", "NOTHING WAS CHECKED: no compute-sanitizer on this machine")
            return
        # Side by side: each is slow because of one thread of its own.
        with concurrent.futures.ThreadPoolExecutor() as pool:
            under_way = [pool.submit(self._sanitize_device, tool, check) for check in sanitizer.CONFORMANCE]
            under_way.append(pool.submit(self._sanitize_worker, tool))
        for one in under_way:
            one.result()

    def _test(self, name: str) -> manifest.Test:
        return next(test for test in self.packed_tests if test.name == name)

    def _sanitize_device(self, tool: str, check: sanitizer.Check) -> None:
        """The device of stride-worker-cuda, in the process of its conformance suite."""
        test = self._test("cuda_device_conformance")
        environment = {**self.environment, **test.environment, "GTEST_FILTER": check.gtest_filter}
        name = f"{test.name}.{check.tool}"
        command = sanitizer.command(tool, check, test.command)
        ended = self.log.run(name, command, environment, check.limit, self.unpacked)
        if why := ended.why_bad() or sanitizer.why_bad(ended.output):
            self.log.failed(name, why, ended)
        elif (passed := _gtest_count("PASSED", ended.output)) == 0:
            self.log.failed(name, "no test ran", ended)
        else:
            self.log.passed(name, f"{passed} tests, no errors", ended.seconds)

    def _sanitize_worker(self, tool: str) -> None:
        """stride-worker-cuda itself, as a daemon starts it."""
        test = self._test("compute_test_cuda")
        name = "stride-worker-cuda.memcheck"
        with tempfile.TemporaryDirectory(prefix="stride-gpu-workers.") as folder:
            workers = pathlib.Path(folder, "bin")
            sanitizer.wrapped_worker(workers, tool, self.unpacked / "bin" / "stride-worker-cuda", self.log.folder)
            environment = {**self.environment, **test.environment, "STRIDE_TEST_WORKER_DIR": str(workers)}
            ended = self.log.run(name, test.command, environment, 240, self.unpacked)
            whole, bad = sanitizer.worker_reports(self.log.folder, patience=15)
        if why := ended.why_bad() or "; ".join(bad):
            self.log.failed(name, why, ended)
        elif whole == 0:
            self.log.failed(name, "no worker's report is whole", ended)
        else:
            passed = _gtest_count("PASSED", ended.output)
            self.log.passed(name, f"{passed} tests of {test.name}, {whole} workers without errors", ended.seconds)

    def bench(self) -> None:
        benchmarks = sorted((self.unpacked / "bin").glob("*_bench"))
        if not benchmarks:
            self.log.failed("bench", "no benchmarks were packed")
        for benchmark in benchmarks:
            ended = self.log.run(benchmark.name, [str(benchmark)], self.environment, 300, self.unpacked)
            self._show(benchmark.name, ended)

    def demo(self) -> None:
        command = [str(ROOT / "scripts" / "demo"), str(self.unpacked), "--workloads-only"]
        self._show("demo", self.log.run("demo", command, self.environment, 240, ROOT))

    def _show(self, name: str, ended: Ended) -> None:
        if why := ended.why_bad():
            self.log.failed(name, why, ended)
        elif _NO_DEVICE in ended.output:
            self.log.failed(name, _FOUND_NONE, ended)
        else:
            self.log.say(f"=== {name}\n{ended.output}")
            self.log.passed(name, "ended well", ended.seconds)


# In this order: what says most comes first.
PARTS = {"tests": GpuRun.tests, "demo": GpuRun.demo, "sanitize": GpuRun.sanitize, "bench": GpuRun.bench}


def run(parts: set[str], limit: float, only: str = "") -> int:
    log = Log(limit)
    gpus = machine.gpus()
    for gpu in gpus or ["none: nvidia-smi shows no GPU"]:
        log.say(f"GPU: {gpu}")
    if missing := machine.missing_libraries():
        log.say(f"not found on this machine: {', '.join(missing)}")
    if not gpus:
        log.failed("machine", "no GPU")
        return log.close()
    gpu_run = GpuRun(_unpack(), log, only)
    for name, part in PARTS.items():
        if name in parts:
            log.say(f"--- {name}")
            try:
                part(gpu_run)
            except Exception as error:  # the other parts still run
                log.failed(name, f"{type(error).__name__}: {error}")
    return log.close()


def _unpack() -> pathlib.Path:
    """A folder named for the pack's content, so that a second run finds it ready."""
    digest = hashlib.sha256(PACK.read_bytes()).hexdigest()[:16]
    folder = pathlib.Path(tempfile.gettempdir(), f"stride-gpu-{digest}")
    if not (folder / "manifest.json").exists():
        folder.mkdir(mode=0o755, exist_ok=True)
        subprocess.run(["tar", "-C", str(folder), "-xJf", str(PACK)], check=True)
        os.chmod(folder, 0o755)
    return folder


def _missing_modules() -> list[str]:
    return [name for name in _PYTHON_NEEDS if importlib.util.find_spec(name) is None]


def _gtest_count(verdict: str, output: str) -> int:
    found = re.search(rf"\[  {verdict:<7} \] (\d+) test", output)
    return int(found.group(1)) if found else 0
