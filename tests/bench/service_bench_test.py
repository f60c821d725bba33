"""service_bench runs against a daemon of its own and reports every row, with sane numbers."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

_COMPARED = (
    [
        f"{name}/{transport}/{{device}}"
        for name in ("run", "chain", "program", "program_call", "stream_compute", "stream_fetch")
        for transport in ("unix", "tcp")
    ]
    + [
        f"{name}/{transport}/{{device}}/{streams}"
        for name in ("upload", "download", "upload_memcpy", "download_memcpy")
        for transport in ("unix", "tcp")
        for streams in (1, 4)
    ]
    + ["run_grpc/unix/{device}", "chain_grpc/unix/{device}", "upload_first/unix/{device}/1"]
    + [
        f"{name}_{way}{against}/{{device}}"
        for name, againsts in (("shared", ("", "_messages", "_memcpy")), ("in_place", ("", "_memcpy1", "_memcpy")))
        for way in ("up", "down")
        for against in againsts
    ]
    + [
        f"fair_{name}/{{device}}"
        for name in ("throughput", "part", "quiet", "quiet_two", "cost", "quiet_rush", "quiet_uploads", "quiet_jobs")
    ]
    + [f"{name}/{{device}}{suffix}" for name in ("expression", "sum") for suffix in ("", "/device")]
    + [f"{name}_cold/{{device}}" for name in ("compile", "kernel")]
)  # fmt: skip
_ALONE = [
    f"{name}/{{device}}"
    for name in (
        "compile_cached",
        "kernel_cached",
        *(f"run_{part}/{transport}" for part in ("before", "inside", "after") for transport in ("unix", "tcp")),
    )
]


class ServiceBenchTest(unittest.TestCase):
    def test_every_row_is_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rows.json"
            command = [PROGRAM, "--mib=1", "--calls=100", "--rounds=2", "--elements=1000", f"--json={path}"]
            run = subprocess.run(command, capture_output=True, text=True, timeout=850)
            self.assertEqual(run.returncode, 0, run.stderr or run.stdout[-2000:])
            rows = {row["id"]: row for row in json.loads(path.read_text())["rows"]}
        # Whatever the machine has; one device of each kind is measured.
        devices = sorted({id.split("/")[1] for id in rows if id.startswith("compile_cold/")})
        self.assertTrue(devices, run.stdout)
        expected = {id.format(device=device) for id in _COMPARED + _ALONE for device in devices}
        # Two devices of one kind: this machine's, or CPU devices made for it.
        expected |= {
            f"tenants/{who}/{device}"
            for who in ("one", "two")
            for device in ("cuda:0", "cpu:0")
            if f"tenants/two/{device}" in rows
        }
        self.assertTrue(any(id.startswith("tenants/two/") for id in rows))
        if any(id.startswith("shared_up_dma/") for id in rows):  # a GPU is here
            expected |= {id for id in rows if "_dma/" in id}
        self.assertEqual(set(rows), expected)
        for id, row in rows.items():
            with self.subTest(id):
                self.assertGreater(row["ours"]["count"], 0)
                self.assertGreater(row["ours"]["median_s"], 0)
                self.assertGreaterEqual(row["ours"]["p99_s"], row["ours"]["median_s"])
                alone = ("compile_cached", "kernel_cached", "run_before/", "run_inside/", "run_after/")
                # A new expression is compared with a compiler's process only where it waits for one (decision 0041).
                if not id.startswith("compile_cold"):
                    self.assertEqual("baseline" in row, not id.startswith(alone))
                if "baseline" in row:
                    self.assertGreater(row["baseline"]["median_s"], 0)
                    self.assertGreater(row["ratio"], 0)
                    self.assertTrue(row["baseline_name"])

    def test_wrong_arguments_are_refused(self):
        for arguments in (["--mib=0"], ["--unknown=1"], ["word"]):
            run = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=30)
            self.assertEqual(run.returncode, 2, arguments)
            self.assertIn("Usage:", run.stderr)

    def test_a_daemon_that_is_not_there_is_an_error(self):
        command = [PROGRAM, "--address=unix:/nonexistent/socket", "--mib=1"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 1)
        self.assertIn("service_bench:", run.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
