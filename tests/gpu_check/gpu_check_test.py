"""Verdicts of ci/gpu on programs that pass, fail, hang, skip everything or fail a sanitizer."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from gpu_check import machine, manifest, run, sanitizer
from gpu_check.log import Log

_GTEST = "echo '[==========] {total} tests from 1 test suite ran.'; echo '[  PASSED  ] {passed} tests.'; "


class GpuCheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "out"
        self.out.mkdir()
        (self.folder / "bin").mkdir()

    def program(self, name: str, script: str) -> str:
        path = self.folder / "bin" / name
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)
        return str(path)

    def run_tests(self, scripts: dict[str, str], limit=60.0, timeout=20.0, part="tests") -> tuple[int, str]:
        """The exit code and the summary of a run with these tests."""
        tests = [
            manifest.Test(name, [self.program(name, script)], ["gpu"], timeout, {"KIND": "@BUILD@"})
            for name, script in scripts.items()
        ]
        manifest.save(tests, self.folder / "manifest.json")
        with mock.patch.dict(os.environ, {"OUT": str(self.out)}):
            log = Log(limit)
            run.PARTS[part](run.GpuRun(self.folder, log))
            code = log.close()
        return code, (self.out / "summary.txt").read_text()

    def test_good_tests_pass(self):
        code, summary = self.run_tests({"good": 'test -d "$KIND" && ' + _GTEST.format(total=3, passed=3)})
        self.assertEqual(code, 0, summary)
        self.assertIn("PASS    good: 3 tests, 0 skipped", summary)

    def test_goes_on_after_a_failure(self):
        code, summary = self.run_tests({"bad": "exit 3", "later": _GTEST.format(total=1, passed=1)})
        self.assertEqual(code, 1)
        self.assertIn("FAIL    bad: exit code 3", summary)
        self.assertIn("PASS    later", summary)
        self.assertIn("gpu: FAIL: 1 passed, 1 failed, 0 skipped", summary)

    def test_hung_program_is_killed_with_its_process_group(self):
        mark = self.folder / "mark"
        begin = time.monotonic()
        code, summary = self.run_tests({"hung": f"(sleep 3; touch {mark}) & sleep 100"}, timeout=1.0)
        self.assertEqual(code, 1)
        self.assertIn("hung: killed after 1 s", summary)
        self.assertLess(time.monotonic() - begin, 3)
        time.sleep(3)
        self.assertFalse(mark.exists())

    def test_ends_at_its_limit(self):
        code, summary = self.run_tests({"long": "sleep 100", "never": "exit 0"}, limit=1.0)
        self.assertEqual(code, 1)
        self.assertIn("long: killed after 1 s", summary)
        self.assertIn("never: not started: no time was left", summary)

    def test_skipping_everything_is_a_failure(self):
        gtest = _GTEST.format(total=2, passed=0) + "echo '[  SKIPPED ] 2 tests, listed below:'"
        code, summary = self.run_tests({"skips": gtest})
        self.assertEqual(code, 1)
        self.assertIn("2 tests skipped, none ran", summary)

    def test_finding_no_device_is_a_failure(self):
        code, summary = self.run_tests(
            {"blind": "echo 'no device of kind cuda here';" + _GTEST.format(total=2, passed=2)}
        )
        self.assertEqual(code, 1)
        self.assertIn("blind: it found no device", summary)

    def test_a_benchmark_that_finds_no_device_is_a_failure(self):
        self.program("a_bench", "echo 'missing: no device of kind cuda: no driver'")
        self.program("b_bench", "echo 'add 1.0 us'")
        code, summary = self.run_tests({}, part="bench")
        self.assertEqual(code, 1)
        self.assertIn("a_bench: it found no device", summary)
        self.assertIn("PASS    b_bench", summary)

    def test_measurements_are_in_the_summary(self):
        _, summary = self.run_tests({"measures": "echo 'measured: 5 ms'"})
        self.assertIn("measured: 5 ms", summary)

    def test_missing_sanitizer_is_reported_in_the_summary(self):
        with mock.patch.object(machine, "compute_sanitizer", return_value=None):
            code, summary = self.run_tests({}, part="sanitize")
        self.assertEqual(code, 0)
        self.assertIn("SKIPPED SANITIZERS: NOTHING WAS CHECKED", summary)

    def test_sanitizer_reports(self):
        self.assertEqual(sanitizer.why_bad("========= ERROR SUMMARY: 0 errors"), "")
        self.assertIn("found 2", sanitizer.why_bad("========= ERROR SUMMARY: 2 errors"))
        self.assertIn("found 1", sanitizer.why_bad("========= RACECHECK SUMMARY: 1 hazard displayed"))
        self.assertIn("no summary", sanitizer.why_bad("========= COMPUTE-SANITIZER"))

    def sanitized(self, report: str) -> tuple[int, str]:
        """Runs the sanitizer part, with a tool that gives this report, and a compute test that starts a worker."""
        tool = self.program("tool", f"""
            for word; do case $word in --log-file=*) log=$(echo "${{word#*=}}" | sed "s/%p/$$/");; esac; done
            while case $1 in -*) true;; *) false;; esac; do shift; done
            "$@"; echo '{report}' >>"${{log:-/dev/stdout}}" """)  # fmt: skip
        self.program("stride-worker-cuda", "exit 0")
        with mock.patch.object(machine, "compute_sanitizer", return_value=tool):
            passes = _GTEST.format(total=1, passed=1)
            serve = '"$STRIDE_TEST_WORKER_DIR/stride-worker-cuda" --serve --fd=4;'
            tests = {"cuda_device_conformance": passes, "compute_test_cuda": serve + passes}
            return self.run_tests(tests, part="sanitize")

    def test_sanitizer_finds_nothing(self):
        code, summary = self.sanitized("========= ERROR SUMMARY: 0 errors")
        self.assertEqual(code, 0, summary)
        self.assertIn(
            "PASS    stride-worker-cuda.memcheck: 1 tests of compute_test_cuda, 1 workers without errors", summary
        )
        self.assertIn("gpu: PASS: 5 passed", summary)

    def test_sanitizer_finds_something(self):
        code, summary = self.sanitized("========= ERROR SUMMARY: 4 errors")
        self.assertEqual(code, 1)
        self.assertIn("gpu: FAIL: 0 passed, 5 failed", summary)

    def test_killed_worker_had_an_error(self):
        (self.folder / "worker.1.txt").write_text("========= COMPUTE-SANITIZER\n========= Invalid __global__ write\n")
        (self.folder / "worker.2.txt").write_text("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n")
        self.assertEqual(sanitizer.worker_reports(self.folder, 0), (1, ["worker.1.txt: errors"]))

    def test_only_the_serving_mode_runs_under_the_sanitizer(self):
        real = self.program("real", 'echo "real $@"')
        tool = self.program("tool", 'echo "tool $@"')
        sanitizer.wrapped_worker(self.folder / "workers", tool, pathlib.Path(real), self.folder)
        worker = self.folder / "workers" / "stride-worker-cuda"
        said = {
            mode: subprocess.run([worker, mode], check=True, capture_output=True, text=True).stdout
            for mode in ("--list", "--compile", "--serve")
        }
        self.assertEqual(said["--list"], "real --list\n")
        self.assertEqual(said["--compile"], "real --compile\n")
        self.assertRegex(
            said["--serve"], rf"^tool --tool=memcheck .*--log-file={self.folder}/worker.%p.txt {real} --serve\n$"
        )

    def test_manifest_has_no_machine_paths(self):
        test = manifest.Test("t", ["@PYTHON@", "@SOURCE@/a.py", "@BUILD@/bin/b"], ["gpu"], 5, {"A": "@BUILD@"})
        manifest.save([test], self.folder / "manifest.json")
        here = manifest.load(self.folder / "manifest.json")[0].located(
            pathlib.Path("/s"), pathlib.Path("/b"), sys.executable
        )
        self.assertEqual(here.command, [sys.executable, "/s/a.py", "/b/bin/b"])
        self.assertEqual(here.environment, {"A": "/b"})


if __name__ == "__main__":
    unittest.main()
