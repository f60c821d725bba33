"""ci/gpu run: everything a GPU is needed for, from what `ci/gpu build` packed."""

import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from gpu_check import machine, manifest
from gpu_check.log import Log
from gpu_check.paths import PACK, ROOT

# Cases that fault or hang on purpose: the sanitizer would report what they are for.
_DELIBERATE = "*Fault*:*Crash*:*Kill*:*Endless*:*OutOfBounds*:*Illegal*"


class GpuRun:
    def __init__(self, unpacked: pathlib.Path, log: Log):
        self.unpacked = unpacked
        self.log = log
        self.environment = machine.environment(unpacked)
        packed, self.built_source, self.built_in = manifest.load(unpacked / "manifest.json")
        self.packed_tests = [test.located(ROOT, unpacked, sys.executable) for test in packed]

    def tests(self) -> None:
        for test in self.packed_tests:
            environment = {**self.environment, **test.environment}
            code, output, seconds = self.log.run(test.name, test.command, environment, test.timeout, self.unpacked)
            self._judge(test, code, output, seconds)

    def _judge(self, test: manifest.Test, code, output: str, seconds: float) -> None:
        passed, skipped = _gtest_count("PASSED", output), _gtest_count("SKIPPED", output)
        if code is None:
            self.log.fail(test.name, f"no end within {test.timeout} s", output)
        elif code != 0:
            self.log.fail(test.name, f"exit code {code}", output)
        elif "gpu" in test.labels and "[==========]" in output and passed == 0:
            self.log.fail(test.name, f"{skipped} tests skipped, none ran, on a machine with a GPU", output)
        else:
            self.log.say(f"passed  {test.name}: {passed} tests, {skipped} skipped, {seconds:.1f} s")

    def sanitize(self) -> None:
        tool = machine.compute_sanitizer()
        suites = [test for test in self.packed_tests if {"gpu", "conformance"} <= set(test.labels)]
        if tool is None or not suites:
            self.log.fail("sanitize", "no compute-sanitizer here" if suites else "no CUDA conformance suite", "")
            return
        for test in suites:
            for check in ("memcheck", "racecheck", "synccheck"):
                self._sanitize_one(test, tool, check)

    def _sanitize_one(self, test: manifest.Test, tool: str, check: str) -> None:
        name = f"{test.name}.{check}"
        command = [tool, f"--tool={check}", "--target-processes=all", "--error-exitcode=99", *test.command]
        environment = {**self.environment, **test.environment, "GTEST_FILTER": f"-{_DELIBERATE}"}
        code, output, seconds = self.log.run(name, command, environment, 10 * test.timeout, self.unpacked)
        clean = re.search(r"ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards", output)
        if code != 0 or not clean:
            why = "no end in time" if code is None else f"exit code {code}" + ("" if clean else ", no clean summary")
            self.log.fail(name, why, output)
        else:
            self.log.say(f"passed  {name}: no errors, {seconds:.1f} s")

    def bench(self) -> None:
        benchmarks = sorted((self.unpacked / "bin").glob("*_bench"))
        if not benchmarks:
            self.log.fail("bench", "no benchmarks were packed", "")
        for benchmark in benchmarks:
            code, output, _ = self.log.run(benchmark.name, [str(benchmark)], self.environment, 300, self.unpacked)
            if code != 0:
                self.log.fail(benchmark.name, f"exit code {code}", output)
            else:
                self.log.say(f"=== {benchmark.name}\n{output}")

    def demo(self) -> None:
        command = [str(ROOT / "scripts" / "demo"), str(self.unpacked), "--workloads-only"]
        code, output, seconds = self.log.run("demo", command, self.environment, 300, ROOT)
        if code != 0:
            self.log.fail("demo", f"exit code {code}", output)
        else:
            self.log.say(f"=== demo, {seconds:.1f} s\n{output}")


_PARTS = {"tests": GpuRun.tests, "sanitize": GpuRun.sanitize, "bench": GpuRun.bench, "demo": GpuRun.demo}


def run(part: str, recreate_paths: bool) -> int:
    log = Log()
    for gpu in machine.gpus() or ["none: nvidia-smi shows no GPU"]:
        log.say(f"GPU: {gpu}")
    if missing := machine.missing_libraries():
        log.say(f"not found on this machine: {', '.join(missing)}")
    if not machine.gpus():
        log.fail("machine", "no GPU", "")
        return log.close()
    gpu_run = GpuRun(_unpack(), log)
    if recreate_paths:
        _recreate_paths(gpu_run)
    for name, method in _PARTS.items():
        if part in (name, "all"):
            log.say(f"--- {name}")
            method(gpu_run)
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


def _recreate_paths(gpu_run: GpuRun) -> None:
    """For tests with paths of the build machine compiled in: links from there to here. Only on a machine made to be thrown away."""
    for there, here in ((gpu_run.built_source, ROOT), (gpu_run.built_in, gpu_run.unpacked)):
        if not there.exists():
            there.parent.mkdir(parents=True, exist_ok=True)
            there.symlink_to(here)


def _gtest_count(verdict: str, output: str) -> int:
    found = re.search(rf"\[  {verdict:<7} \] (\d+) test", output)
    return int(found.group(1)) if found else 0
