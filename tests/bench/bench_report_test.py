"""The report of `make bench`: reading and joining rows, judging them by targets and references, and parts that fail."""

import json
import os
import pathlib
import stat
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from unittest import mock

from bench.peers import libraries, workloads
from bench.peers.sizes import Sizes
from bench.report import __main__ as report
from bench.report import reference, show
from bench.report.devices import labels, models
from bench.report.parts import Part
from bench.report.rounds import measure
from bench.report.row import Result, Row, Times
from bench.report.table import duration, summary, table
from bench.report.targets import TARGETS, target_of


def times(median, p99=None):
    return Times(median, p99 or median, median, 7)


def row(id, ours, baseline=None, **fields):
    return Row(
        id,
        f"what {id} is",
        times(ours),
        "the other" if baseline else "",
        times(baseline) if baseline else None,
        **fields,
    )


class RowTest(unittest.TestCase):
    def test_times_of_samples(self):
        got = Times.of([5.0, 1.0, 3.0])
        self.assertEqual(got, Times(median_s=3, p99_s=5, min_s=1, count=3))
        self.assertEqual(Times.of(range(1, 1001)).p99_s, 991)

    def test_ratios_of_the_least_times_and_without_the_call(self):
        one = Row(
            "peer/x/numpy/cpu:0", "x", Times(5e-4, 9e-4, 4e-4, 7), "NumPy", Times(2e-4, 3e-4, 1e-4, 7), call_s=3e-4
        )
        self.assertAlmostEqual(one.ratio, 2.5)
        self.assertAlmostEqual(one.least_ratio, 4)
        self.assertAlmostEqual(one.loop_ratio, 1)
        self.assertEqual(row("x/cpu:0", 1e-4, 1e-4, call_s=2e-4).loop_ratio, 0)
        self.assertIsNone(row("alone/cpu:0", 1e-4).loop_ratio)

    def test_rows_survive_the_file(self):
        rows = [
            row("run/unix/cpu:0", 2e-4, 1e-4, bytes=12, limit_s=1e-5, limit_name="a copy"),
            row("alone/cpu:0", 1e-3),
        ]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rows.json"
            Result(rows, {"cpu:0": "some processor"}, ["CuPy: not here"]).write(path)
            back = Result.read(path)
            self.assertEqual(json.loads(path.read_text())["rows"][0]["ratio"], 2)
        self.assertEqual(
            (back.rows, back.devices, back.missing), (rows, {"cpu:0": "some processor"}, ["CuPy: not here"])
        )

    def test_google_benchmark_is_read_without_its_aggregates(self):
        turns = [
            {"run_type": "iteration", "run_name": "BM_Spawn/real_time", "real_time": one, "time_unit": "us"}
            for one in (3.0, 1.0, 2.0)
        ]
        turns.append({"run_type": "aggregate", "run_name": "BM_Spawn/real_time", "real_time": 99.0, "time_unit": "us"})
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rows.json"
            path.write_text(json.dumps({"context": {}, "benchmarks": turns}))
            (got,) = Result.read(path).rows
        self.assertEqual(got.id, "worker/BM_Spawn")
        self.assertAlmostEqual(got.ours.median_s, 2e-6)
        self.assertEqual(got.ours.count, 3)

    def test_joining_refuses_an_id_of_two_benchmarks(self):
        whole = Result([row("a/cpu:0", 1)], {}, ["x"])
        whole.add(Result([row("b/cpu:0", 1)], {"cpu:0": "p"}, ["x", "y"]))
        self.assertEqual([one.id for one in whole.rows], ["a/cpu:0", "b/cpu:0"])
        self.assertEqual((whole.devices, whole.missing), ({"cpu:0": "p"}, ["x", "y"]))
        with self.assertRaisesRegex(ValueError, "b/cpu:0"):
            whole.add(Result([row("b/cpu:0", 2)]))


class Device:
    def __init__(self, name, kind, model="m"):
        self.name, self.kind, self.model = name, kind, model


class DeviceTest(unittest.TestCase):
    def test_devices_are_called_by_kind_and_place(self):
        devices = [
            Device("devices/GPU-1f", "cuda", "H200"),
            Device("devices/cpu:0", "cpu"),
            Device("devices/GPU-0a", "cuda"),
            Device("devices/cpu:1", "cpu"),
        ]
        self.assertEqual(list(labels(devices).values()), ["cuda:0", "cpu:0", "cuda:1", "cpu:1"])
        self.assertEqual(labels(devices)["devices/GPU-0a"], "cuda:1")
        self.assertEqual(next(iter(models(devices).items())), ("cuda:0", "H200"))
        self.assertIsNotNone(target_of(row(f"peer/sum/cupy/{labels(devices)['devices/GPU-1f']}", 1, 1)))


class RoundsTest(unittest.TestCase):
    """A clock that only turns move."""

    def measured(self, seconds, repeats, pause_s=0.0, in_a_row=1):
        turns, now = [], [0.0]

        def turn(name):
            turns.append(name)
            now[0] += seconds[name] * (10 if turns[-2:-1] != [name] else 1)  # the first after another library's

        with mock.patch("time.perf_counter", lambda: now[0]), mock.patch("time.sleep") as sleep:
            times = measure({name: lambda name=name: turn(name) for name in seconds}, repeats, pause_s, in_a_row)
        return "".join(turns), times, sleep

    def test_blocks_of_few_turns_the_first_not_measured(self):
        turns, times, sleep = self.measured({"a": 0.001, "b": 0.02, "c": 0.3}, 2, 0.04)
        self.assertEqual(turns, "aaaaaabbbbcc" * 2)
        self.assertEqual({name: one.count for name, one in times.items()}, {"a": 10, "b": 6, "c": 2})
        self.assertAlmostEqual(times["a"].p99_s, 0.001)
        self.assertAlmostEqual(times["c"].p99_s, 0.3)
        self.assertEqual(sleep.call_args_list, [mock.call(0.04)] * 6)

    def test_times_of_one_of_several_in_a_row(self):
        turns, times, _ = self.measured({"a": 0.032, "b": 0.16}, 1, in_a_row=16)
        self.assertEqual(turns, "aaa" + "bb")
        self.assertAlmostEqual(times["a"].median_s, 0.002)
        self.assertAlmostEqual(times["b"].p99_s, 0.01)

    def test_one_library_alone(self):
        self.assertEqual(self.measured({"a": 1.0}, 1)[1]["a"].count, 1)


class TargetTest(unittest.TestCase):
    def met(self, one):
        return target_of(one).met(one)

    def test_bounds_by_ratio_time_difference_tail_and_limit(self):
        self.assertIs(self.met(row("run/unix/cuda:0", 1.5e-4, 1e-4)), True)
        self.assertIs(self.met(row("run/unix/cuda:0", 1.6e-4, 1e-4)), False)
        self.assertIs(self.met(row("compile_cached/cpu:0", 0.9e-3)), True)
        self.assertIs(self.met(row("compile_cached/cpu:0", 1.1e-3)), False)
        self.assertIs(self.met(row("stream_compute/unix/cpu:0", 1.29e-4, 1e-4)), True)
        self.assertIs(self.met(row("stream_compute/unix/cpu:0", 1.31e-4, 1e-4)), False)
        self.assertIs(self.met(row("device/add/cuda:0", 1.0e-3, 1, limit_s=0.91e-3)), True)
        self.assertIs(self.met(row("device/add/cuda:0", 1.0e-3, 1, limit_s=0.89e-3)), False)
        steady, wild = (Row("peer/sum/numpy/cuda:0", "sum", times(1e-3, p99)) for p99 in (1.2e-3, 1.4e-3))
        self.assertEqual((self.met(steady), self.met(wild)), (True, False))

    def test_rates_of_a_gpu_are_judged_where_no_round_trip_is_in_them(self):
        for id, ours, met in (
            ("device/matmul_1024x2048x512_float32", 1.02, True),
            ("device/matmul_3000_by_its_transpose_float32", 1.03, False),
            ("peer/trigonometric_in_a_row/cupy", 1.0, True),
            ("peer/trigonometric_in_a_row/cupy", 1.01, False),
        ):
            self.assertIs(self.met(row(f"{id}/cuda:0", ours, 1.0)), met, id)
        for id, limit, met in (
            ("choose", 0.9, True),
            ("multiply_add", 0.89, False),
            ("matvec", 0.95, True),
            ("matvec", 0.94, False),
        ):
            self.assertIs(self.met(row(f"device/{id}/cuda:0", 1.0, limit, limit_s=limit)), met, id)
        for id in (
            "peer/matmul_float32/cupy", "peer/add/numpy", "peer/matvec/numpy", "peer/trigonometric/cupy",
            "device/trigonometric", "device/sum",
        ):
            self.assertIsNone(target_of(row(f"{id}/cuda:0", 1, 1)), id)

    def test_a_row_without_the_number_is_not_judged(self):
        self.assertIsNone(self.met(row("compile_cold/cpu:0", 1e-2)))

    def test_kinds_of_devices_have_targets_of_their_own(self):
        self.assertIsNotNone(target_of(row("peer/add/numexpr/cpu:0", 1, 1)))
        self.assertIsNone(target_of(row("peer/add/numexpr/cuda:0", 1, 1)))
        self.assertIsNone(target_of(row("nobody/knows/cpu:0", 1, 1)))

    def test_every_target_reads_as_a_bound(self):
        for target in TARGETS:
            self.assertRegex(target.words(), "[<>]=", target)


class TableTest(unittest.TestCase):
    def test_units(self):
        self.assertEqual([duration(one) for one in (1.5e-6, 2.5e-3, 3.0)], ["1.5 us", "2.50 ms", "3.00 s"])

    def test_one_line_a_row_with_verdicts(self):
        rows = [row("run/unix/cpu:0", 3e-4, 1e-4), row("run/tcp/cpu:0", 3e-4, 1e-4), row("compile_cached/cpu:0", 1e-5)]
        lines = table(rows).splitlines()
        self.assertEqual(len(lines), 4)
        self.assertRegex(
            lines[1],
            r"what run/unix/cpu:0 is +300\.0 us +300\.0 us +the other: 100\.0 us +100\.0 us +3\.00 +ratio <= 1\.5 +NO$",
        )
        self.assertRegex(lines[2], r"3\.00$")
        self.assertRegex(lines[3], r"<= 1 ms +yes$")
        self.assertEqual(summary(rows), "3 rows, 2 with a target, 1 of them met")
        self.assertNotIn("NO", table(rows, judge=False))


class ShowTest(unittest.TestCase):
    def test_one_line_a_row_in_milliseconds(self):
        rows = [
            row("device/a/cuda:0", 2e-3, 1e-3, limit_s=5e-4), row("device/b/cuda:0", 9e-3, 1e-3),
            row("alone/cuda:0", 1e-3),
        ]
        lines = show.text(Result(rows, {}, ["CuPy"])).splitlines()
        self.assertRegex(lines[1], r"^device/a/cuda:0 +2\.0000 +1\.0000 +2\.00 +0\.5000 +the other$")
        self.assertRegex(lines[3], r"^alone/cuda:0 +1\.0000$")
        self.assertEqual(lines[4], "missing: CuPy")
        self.assertTrue(show.text(Result(rows), by_ratio=True).splitlines()[1].startswith("device/b"))


def part(name, script, **fields):
    """A benchmark that is a shell script: $1 is the file for its rows."""
    return (
        Part(name, lambda bin, rows, quick: [str(bin / name), str(rows), "quick" if quick else "full"], **fields),
        script,
    )


class RunTest(unittest.TestCase):
    """The whole program, its benchmarks being shell scripts."""

    def run_report(self, parts, *words):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        build = pathlib.Path(folder.name)
        (build / "bin").mkdir()
        for name, script in [("strided", "echo strided 9.9"), *((one.name, script) for one, script in parts if script)]:
            path = build / "bin" / name
            path.write_text(f"#!/bin/sh\n{script}\n")
            os.chmod(path, stat.S_IRWXU)
        output = StringIO()
        with (
            mock.patch.object(report, "PARTS", [one for one, _ in parts]),
            redirect_stdout(output),
            redirect_stderr(output),
        ):
            code = report.main([str(build), *words])
        path = build / "bench" / "bench.json"
        return code, output.getvalue(), json.loads(path.read_text()) if path.exists() else None

    ROW = (
        """printf '{"devices": {"cpu:0": "p"}, "rows": [{"id": "%s/cpu:0", "what": "%s", """
        """"ours": {"median_s": 1e-3, "p99_s": 2e-3, "min_s": 1e-3, "count": 3}}]}' $0 $2 > $1"""
    )

    def test_rows_of_all_parts_come_together(self):
        code, said, content = self.run_report([part("one", self.ROW), part("two", self.ROW)])
        self.assertEqual(code, 0, said)
        self.assertEqual(len(content["rows"]), 2)
        self.assertEqual(content["devices"], {"cpu:0": "p"})
        self.assertEqual(content["machine"]["version"], "strided 9.9")
        self.assertRegex(content["machine"]["date"], r"^\d{4}-\d\d-\d\dT")
        self.assertGreater(content["machine"]["cores"], 0)
        self.assertEqual([one["what"] for one in content["rows"]], ["full", "full"])

    def test_only_and_quick(self):
        code, said, content = self.run_report([part("one", self.ROW), part("two", "exit 3")], "--only=one", "--quick")
        self.assertEqual(code, 0, said)
        self.assertEqual([one["what"] for one in content["rows"]], ["quick"])

    def test_a_part_that_fails_is_named_and_the_others_stay(self):
        parts = [
            part("bad", "echo this went wrong; exit 3"),
            part("silent", "true"),
            part("garbage", "echo '{' > $1"),
            part("good", self.ROW),
        ]
        code, said, content = self.run_report(parts)
        self.assertEqual(code, 1)
        self.assertEqual(len(content["rows"]), 1)
        self.assertEqual(set(content["failed"]), {"bad", "silent", "garbage"})
        self.assertIn("exit 3: this went wrong", said)

    def test_a_part_that_fails_keeps_the_rows_that_it_wrote(self):
        for script, why in ((f"{self.ROW}; exit 1", "exit 1"), (f"{self.ROW}; exec sleep 60", "not done within")):
            code, said, content = self.run_report([part("late", script, limit_s=1)])
            self.assertEqual((code, len(content["rows"])), (1, 1), said)
            self.assertIn(why, content["failed"]["late"])

    def test_a_part_beyond_its_time_is_ended(self):
        code, said, content = self.run_report([part("slow", "exec sleep 60", limit_s=0.2), part("good", self.ROW)])
        self.assertEqual(code, 1)
        self.assertIn("not done within", content["failed"]["slow"])
        self.assertEqual(len(content["rows"]), 1)

    def test_parts_beyond_the_whole_time_are_not_begun(self):
        code, said, content = self.run_report([part("one", self.ROW)], "--limit=0")
        self.assertEqual(code, 1)
        self.assertIn("not begun", content["failed"]["one"])

    def test_an_optional_program_that_is_not_built_is_missing_another_is_a_failure(self):
        code, said, content = self.run_report([part("absent", None, optional=True), part("good", self.ROW)])
        self.assertEqual((code, content["missing"]), (0, ["absent: absent is not built"]))
        code, said, content = self.run_report([part("absent", None), part("good", self.ROW)])
        self.assertEqual((code, content["failed"]), (1, {"absent": "absent is not built"}))

    def test_wrong_arguments_are_refused(self):
        for words in (["--only=nothing"], ["--unknown"]):
            with self.assertRaises(SystemExit) as ended:
                self.run_report([part("one", self.ROW)], *words)
            self.assertEqual(ended.exception.code, 2)

    def test_a_lost_row_fails_the_run_and_is_named(self):
        row = """printf '{"devices": {"cuda:0": "GPU 9"}, "rows": [{"id": "peer/sort/cupy/cuda:0", "what": "sort",
            "ours": {"median_s": %s, "p99_s": 2, "min_s": 1e-3, "count": 3},
            "baseline": {"median_s": 1e-3, "p99_s": 2, "min_s": 1e-3, "count": 3}}]}' > $1"""
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(reference, "FOLDER", pathlib.Path(folder)):
            lost = mock.patch.object(reference, "lost", lambda rows, model: _LOST(rows, model, pathlib.Path(folder)))
            write = mock.patch.object(reference, "write", lambda *args: _WRITE(*args, pathlib.Path(folder)))
            with lost, write:
                code, said, _ = self.run_report([part("peers", row % "1e-3")], "--update-reference")
                self.assertEqual(code, 0, said)
                self.assertEqual(self.run_report([part("peers", row % "1.05e-3")])[0], 0)
                code, said, content = self.run_report([part("peers", row % "1.2e-3")])
        self.assertEqual(code, 1)
        self.assertIn("sort: 1.000 ms to 1.200 ms, ratio 1.00 to 1.20", content["failed"]["reference"])
        self.assertEqual(len(content["rows"]), 1)


    def test_no_reference_is_written_of_a_part_that_failed_or_without_a_gpu(self):
        gpu = self.ROW.replace('"cpu:0": "p"', '"cuda:0": "GPU 9"').replace("%s/cpu:0", "peer/x/alone%.0s/cuda:0")
        for parts, written in (
            ([part("peers", gpu)], True),
            ([part("peers", gpu), part("bad", "exit 3")], False),
            ([part("peers", gpu.replace("peer/", "other/"))], False),
            ([part("peers", self.ROW)], False),
        ):
            with mock.patch.object(reference, "write") as write:
                code, said, content = self.run_report(parts, "--update-reference")
            self.assertEqual(
                (write.called, code == 0, "reference" in content["failed"]), (written, written, not written), said
            )
        with self.assertRaises(SystemExit):
            self.run_report([part("peers", gpu)], "--update-reference", "--quick")


_LOST, _WRITE = reference.lost, reference.write


class ReferenceTest(unittest.TestCase):
    def lost(self, before, now):
        with tempfile.TemporaryDirectory() as folder:
            reference.write(before, "A 100", {}, pathlib.Path(folder))
            return reference.lost(now, "A 100", pathlib.Path(folder))

    def test_the_fastest_peer_counts(self):
        rows = [row("peer/sort/cupy/cuda:0", 2, 1), row("peer/sort/jax/cuda:0", 2, 4), row("run/unix/cuda:0", 1)]
        self.assertEqual(reference.measured(rows), {"sort": {"ours_s": 2, "ratio": 2}})

    def test_rows_without_a_daemon_have_keys_of_their_own(self):
        rows = [row("peer/sort/cupy/cuda:0", 2, 1), row("device/sort/cuda:0", 1, 0.5)]
        self.assertEqual(set(reference.measured(rows)), {"sort", "device/sort"})
        self.assertEqual(len(self.lost(rows, [row("device/sort/cuda:0", 1.2, 0.5)])), 1)
        self.assertEqual(self.lost(rows, [row("device/sort/cuda:0", 1.05, 0.5)]), [])

    def test_a_reference_of_rows_that_were_measured_elsewhere(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [str(pathlib.Path(folder) / name) for name in ("peers.json", "device.json")]
            for path, id in zip(paths, ("peer/sort/cupy/cuda:0", "device/sort/cuda:0")):
                Result([row(id, 2, 1)], {"cuda:0": "GPU 9"}).write(path)
            with mock.patch.object(reference, "write") as write, redirect_stdout(StringIO()):
                reference.main([*paths, "--commit", "abc"])
            rows, model, about = write.call_args.args
            self.assertEqual((len(rows), model, about["commit"]), (2, "GPU 9", "abc"))
            Result([row("peer/sort/numpy/cpu:0", 2, 1)], {"cpu:0": "p"}).write(paths[0])
            with self.assertRaises(SystemExit), redirect_stderr(StringIO()):
                reference.main([paths[0], "--commit", "abc"])

    def test_every_committed_reference_can_be_read(self):
        files = list(reference.FOLDER.glob("*.json"))
        self.assertTrue(files)
        for path in files:
            content = json.loads(path.read_text())
            self.assertEqual(reference.path_of(content["model"]), path)
            key, one = next(iter(content["rows"].items()))
            slow = one["ours_s"] * 1.2
            worse = Row(
                f"peer/{key}/cupy/cuda:0", key, times(slow), "CuPy", times(slow / (one.get("ratio", 1) * 1.2))
            )
            self.assertEqual(len(reference.lost([worse], content["model"])), 1)

    def test_time_and_ratio_together_are_a_loss(self):
        before = [row("peer/sort/cupy/cuda:0", 2, 1)]
        for ours, peer, count in ((2.1, 1, 0), (3, 1, 1), (3, 1.5, 0), (1.5, 0.5, 0)):
            self.assertEqual(len(self.lost(before, [row("peer/sort/cupy/cuda:0", ours, peer)])), count, (ours, peer))

    def test_a_row_without_a_peer_is_judged_by_its_time(self):
        self.assertEqual(len(self.lost([row("peer/x/alone/cuda:0", 1)], [row("peer/x/alone/cuda:0", 1.2)])), 1)

    def test_rows_and_models_without_a_reference_are_not_judged(self):
        self.assertEqual(self.lost([row("peer/x/alone/cuda:0", 1)], [row("peer/y/alone/cuda:0", 9)]), [])
        self.assertEqual(reference.lost([row("peer/x/alone/cuda:0", 1)], "no such model"), [])


class WorkloadTest(unittest.TestCase):
    def test_every_workload_runs_with_numpy(self):
        library, sizes = libraries.NumPy(), Sizes(1e-4, gpu=False)
        keys = [one.key for one in workloads.ROWS]
        self.assertEqual(len(keys), len(set(keys)))
        for one in workloads.ROWS:
            if any(one.key.endswith(f"_{n}") for n in (512, 1024, 2048, 4096, "batch")) or one.key == "launch":
                continue
            with self.subTest(one.key):
                inputs = one.inputs(sizes)
                self.assertGreaterEqual(one.moved(*inputs), 0)
                self.assertIsNotNone(library.compiled(one.function)(*inputs))


if __name__ == "__main__":
    unittest.main()
