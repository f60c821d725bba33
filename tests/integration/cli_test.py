"""The `stride` command without a daemon: it starts its own, does the job, and leaves no process or file.

Usage: cli_test.py STRIDE
"""

import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

_SHIFT = """
#include <cooperative_groups.h>
__constant__ int table[4];
__constant__ int bias;
extern "C" __global__ void shift(int* values, int* out) {
  values[blockIdx.x] = table[blockIdx.x] + bias;
  cooperative_groups::this_grid().sync();
  out[blockIdx.x] = values[(blockIdx.x + 1) % gridDim.x];
}
"""
_ADD = """
extern "C" __global__ void add(const int* a, const int* b, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}
"""
_WAIT = """
extern "C" __global__ void wait(int* out) {
  volatile int go = 1;
  while (go) {
  }
  out[0] = 1;
}
"""
# As for the suites in C++; the command takes what the machine has.
_KIND = os.environ.get("STRIDE_TEST_DEVICE_KIND", "cpu")


def setUpModule():
    if _KIND == "cpu":
        return
    listed = subprocess.run([_STRIDE, "devices", "--json"], capture_output=True, text=True, timeout=60)
    if listed.returncode != 0 or _KIND not in [device["kind"] for device in json.loads(listed.stdout)]:
        print(f"no device of kind {_KIND} here")
        raise unittest.SkipTest("no device")


class CliTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        # No daemon of this machine is found: neither by name nor where one would listen.
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("STRIDE_")}
        self.environment["XDG_RUNTIME_DIR"] = self.environment["XDG_CACHE_HOME"] = str(self.folder)
        (self.folder / "stride").mkdir(mode=0o700)
        random = np.random.default_rng(1)
        self.x = random.standard_normal((300, 40)).astype(np.float32)
        self.a = random.integers(-1000, 1000, 4096, dtype=np.int32)
        self.b = random.integers(-1000, 1000, 4096, dtype=np.int32)
        self.save(x=self.x, a=self.a, b=self.b)

    def save(self, **arrays):
        for name, array in arrays.items():
            np.save(self.folder / f"{name}.npy", array)

    def load(self, name):
        return np.load(self.folder / f"{name}.npy")

    def test_array_operations(self):
        self.stride("sort", "x.npy", "--axis", "0", "-o", "sorted.npy")
        np.testing.assert_array_equal(self.load("sorted"), np.sort(self.x, axis=0))
        self.stride("accumulate", "add", "a.npy", "--reverse", "-o", "sums.npy")
        np.testing.assert_array_equal(self.load("sums"), np.cumsum(self.a[::-1].astype(np.int64))[::-1])
        self.stride("topk", "3", "a.npy", "-o", "values.npy", "-o", "places.npy")
        order = np.argsort(-self.a.astype(np.int64), kind="stable")[:3]
        np.testing.assert_array_equal(self.load("values"), self.a[order])
        np.testing.assert_array_equal(self.load("places"), order)
        self.stride("histogram", "x.npy", "--range", "-2,2", "--bins", "8", "-o", "counts.npy")
        np.testing.assert_array_equal(self.load("counts"), np.histogram(self.x, 8, (-2, 2))[0])
        self.save(i=np.array([3, 0, -1]))
        self.stride("take", "x.npy", "i.npy", "-o", "taken.npy")
        np.testing.assert_array_equal(self.load("taken"), self.x[[3, 0, -1]])
        self.stride("linalg", "svd", "x.npy", "--values-only", "-o", "values.npy")
        np.testing.assert_allclose(self.load("values"), np.linalg.svd(self.x, compute_uv=False), rtol=1e-4)
        self.stride("fft", "x.npy", "--real", "--axis", "0", "-o", "spectrum.npy")
        np.testing.assert_allclose(self.load("spectrum"), np.fft.rfft(self.x, axis=0), atol=1e-3)
        self.stride("random", "uint32[2]", "--bits", "--threefry", "-o", "bits.npy")
        np.testing.assert_array_equal(self.load("bits"), np.array([0x6B200159, 0x99BA4EFE], np.uint32))

    def run_stride(self, *arguments, **more):
        return subprocess.run(
            [_STRIDE, *arguments], cwd=self.folder, env=self.environment, capture_output=True, text=True,
            timeout=60, **more,
        )

    def stride(self, *arguments, code=0):
        done = self.run_stride(*arguments)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def test_expression(self):
        self.stride("ufunc", "cos(x)**2 + sin(x)**2", "x=x.npy", "-o", "y.npy")
        y = self.load("y")
        self.assertEqual((y.dtype, y.shape), (self.x.dtype, self.x.shape))
        np.testing.assert_allclose(y, 1, atol=1e-6)

    def test_ufunc(self):
        self.stride("ufunc", "add", "a.npy", "b.npy", "-o", "c.npy")
        np.testing.assert_array_equal(self.load("c"), self.a + self.b)

    def test_reduce(self):
        self.stride("reduce", "sum", "x.npy", "--axis", "0", "-o", "s.npy")
        s = self.load("s")
        self.assertEqual(s.shape, (40,))
        np.testing.assert_allclose(s, self.x.sum(axis=0, dtype=np.float64), atol=1e-3)

    def test_matmul(self):
        a, b = self.x, self.x.T[:, :70]
        self.save(a=a, b=b)
        self.stride("matmul", "a.npy", "b.npy", "-o", "c.npy")
        np.testing.assert_allclose(self.load("c"), a.astype(np.float64) @ b, atol=1e-3)

    def test_kernel(self):
        (self.folder / "add.cu").write_text(_ADD)
        self.stride("kernel", "add.cu", "--entry", "add", "--grid", "32", "--block", "128", "a.npy", "b.npy",
                    "out:int32[4096]", "4096:int32", "-o", "c.npy")
        np.testing.assert_array_equal(self.load("c"), self.a + self.b)

    def test_kernel_with_globals_and_cooperative_grid(self):
        (self.folder / "shift.cu").write_text(_SHIFT)
        self.save(table=np.arange(4, dtype=np.int32) * 10)
        self.stride(
            "kernel", "shift.cu", "--entry", "shift", "--grid", "4", "--block", "1", "--global",
            "table=table.npy", "--global", "bias=5", "--cooperative", "out:int32[4]", "out:int32[4]", "-o",
            "c.npy", "-o", "d.npy",
        )
        np.testing.assert_array_equal(self.load("d"), [15, 25, 35, 5])
        done = self.stride(
            "kernel", "shift.cu", "--entry", "shift", "--grid", "4", "--block", "1", "--global", "tabel=1",
            "out:int32[4]", "out:int32[4]", "-o", "c.npy", "-o", "d.npy", code=3,
        )
        self.assertIn("tabel", done.stderr)
        self.assertIn(
            "NAME=VALUE",
            self.stride(
                "kernel", "shift.cu", "--entry", "shift", "--grid", "4", "--block", "1", "--global", "table", code=3
            ).stderr,
        )

    def test_devices_as_json(self):
        devices = json.loads(self.stride("devices", "--json").stdout)
        self.assertIn(_KIND, [device["kind"] for device in devices])

    def test_doctor(self):
        self.assertIn("file descriptors open", self.stride("doctor").stdout)

    def test_bench_reports_every_measurement(self):
        options = (
            "--clients", "1,3", "--duration", "150ms", "--rounds", "2", "--calls", "60", "--mib", "1",
            "--streams", "2", "--device",
            f"{_KIND}:0",
        )
        done = self.stride("bench", *options, "-o", "rows.json")
        content = json.loads((self.folder / "rows.json").read_text())
        ids = [row["id"] for row in content["rows"]]
        wanted = ["run", "run_inside", "run_grpc", "put", "get", "add", "program"]
        expected = [f"cli_{name}/{_KIND}:0" + ("/2" if name in ("put", "get") else "") for name in wanted]
        for count in (1, 3):
            expected += [f"{name}/{count}/{_KIND}:0" for name in ("clients", "clients_echo", "clients_latency")]
        self.assertEqual(sorted(ids), sorted([*expected, f"clients_fair/3/{_KIND}:0"]))
        self.assertEqual(list(content["devices"]), [f"{_KIND}:0"])
        for row in content["rows"]:
            self.assertGreater(row["ours"]["median_s"], 0, row)
            self.assertGreaterEqual(row["ours"]["p99_s"], row["ours"]["median_s"], row)
            self.assertEqual("ratio" in row, "baseline" in row, row)
            self.assertIn(row["what"].strip(), done.stdout)
        fair = content["rows"][ids.index(f"clients_fair/3/{_KIND}:0")]
        self.assertGreaterEqual(fair["ratio"], 1)
        self.assertLessEqual(fair["jain_index"], 1.0000001)

    def test_bench_reports_the_limit_that_a_client_reaches(self):
        daemon = pathlib.Path(_STRIDE).parent / "strided"
        socket = f"unix:{self.folder}/s"
        command = [
            daemon,
            f"--listen={socket}",
            f"--state-dir={self.folder}/state",
            "--max-connections-per-peer=6",
            f"--parent-pid={os.getpid()}",
        ]
        with open(self.folder / "log", "w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while self.run_stride("devices", "--address", socket).returncode != 0 and process.poll() is None:
            time.sleep(0.05)
        options = ("--address", socket, "--duration", "100ms", "--rounds", "1")
        done = self.stride("bench", "clients", "--clients", "20", *options, code=14)
        self.assertRegex(done.stderr, r"took \d of 20 clients .*--max-connections-per-peer")
        done = self.run_stride(
            "bench",
            "clients",
            "--clients",
            "500",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400)),
        )
        self.assertEqual(done.returncode, 8, done.stderr)
        self.assertIn("500 clients need 628 open files, and this process may have 400 (ulimit -Hn)", done.stderr)

    def test_bench_refuses_invalid_options(self):
        self.assertIn("Did you mean clients", self.stride("bench", "client", code=3).stderr)
        for option, value in (
            ("--clients", "1,x"),
            ("--clients", "0"),
            ("--duration", "soon"),
            ("--rounds", "0"),
            ("--mib", "-1"),
        ):
            self.assertIn(
                f"{option} {value} is no", self.stride("bench", "clients", f"{option}={value}", code=3).stderr
            )

    def test_mistakes_are_reported(self):
        self.save(b=self.b[:5])
        done = self.stride("ufunc", "add", "a.npy", "b.npy", "-o", "c.npy", code=3)
        self.assertIn("(4096,) (5,)", done.stderr)
        self.assertFalse((self.folder / "c.npy").exists())

    def test_compiled_code_is_kept_for_the_next_command(self):
        (self.folder / "add.cu").write_text(_ADD)
        for call in ("first", "second"):
            self.stride("kernel", "add.cu", "--entry", "add", "--grid", "32", "--block", "128", "a.npy", "b.npy",
                        "out:int32[4096]", "4096:int32", "-o", "c.npy")
            kept = list((self.folder / "stride/code-cache").glob("*.module"))
            self.assertTrue(kept)
            if call == "first":
                first = {path: path.stat().st_ino for path in kept}
                for path in kept:
                    os.utime(path, (1, 1))
        # A file that is read is marked as used; one that is made again is another file.
        self.assertEqual({path: path.stat().st_ino for path in kept}, first)
        self.assertTrue(any(path.stat().st_mtime > 1 for path in kept))
        self.assertEqual((self.folder / "stride/code-cache").stat().st_mode & 0o777, 0o700)

    def test_a_cache_folder_that_others_may_write_is_not_used(self):
        (self.folder / "stride").chmod(0o777)
        self.stride("ufunc", "negative", "a.npy", "-o", "c.npy")
        self.assertEqual(list((self.folder / "stride").iterdir()), [])
        (self.folder / "stride").rmdir()
        (self.folder / "elsewhere").mkdir(mode=0o700)
        (self.folder / "stride").symlink_to("elsewhere")
        self.stride("ufunc", "negative", "a.npy", "-o", "c.npy")
        self.assertEqual(list((self.folder / "elsewhere").iterdir()), [])

    def test_an_error_is_raised_once(self):
        self.save(b=self.b[:5])
        lines = self.stride("ufunc", "add", "a.npy", "b.npy", "-o", "c.npy", code=3).stderr.strip().splitlines()
        self.assertEqual(len(lines), len(set(lines)), lines)
        self.assertEqual(sum("(4096,) (5,)" in line for line in lines), 1, lines)

    def test_ctrl_c_is_one_line(self):
        (self.folder / "wait.cu").write_text(_WAIT)
        command = [
            _STRIDE, "kernel", "wait.cu", "--entry", "wait", "--grid", "1", "--block", "1", "out:int32[1]", "-o",
            "c.npy",
        ]
        process = subprocess.Popen(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(process.kill)
        # A private daemon's socket: the command is past its start.
        while not list(self.folder.glob("stride.*/s")) and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=120)
        self.assertEqual((process.returncode, stdout, stderr), (130, "", "stride: interrupted\n"))

    def serve(self):
        """Starts a daemon on the state folder of this test. Its process and its address."""
        daemon = pathlib.Path(_STRIDE).parent / "strided"
        address = f"unix:{self.folder}/s"
        flags = [f"--listen={address}", f"--state-dir={self.folder}/state", f"--parent-pid={os.getpid()}"]
        with open(self.folder / "log", "a") as log:
            process = subprocess.Popen([daemon, *flags], stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        while not (self.folder / "s").exists() and process.poll() is None:
            time.sleep(0.05)
        return process, address

    def test_usage_continues_after_a_restart(self):
        process, address = self.serve()
        self.stride("put", "a.npy", "a", "--address", address)
        self.stride("jobs", "submit", "ufunc", "a + 1", "a=@a", "--to", "b", "--wait", "--address", address)
        before = json.loads(self.stride("usage", "--json", "--address", address).stdout)
        self.assertGreaterEqual(before["upload_bytes"], self.a.nbytes)
        self.assertEqual(before["jobs"], 1)
        process.terminate()
        self.assertEqual(process.wait(120), 0)
        _, address = self.serve()
        after = json.loads(self.stride("usage", "--json", "--address", address).stdout)
        for count in ("start_time", "upload_bytes", "download_bytes", "operations", "jobs"):
            self.assertEqual(after[count], before[count], count)
        self.assertGreater(after["time"], before["time"])

    def test_jobs_report_compiling(self):
        _, socket = self.serve()
        # Right after the start no device is called broken: it is waited for.
        self.assertNotIn("NOT_SERVING", self.stride("devices", "--address", socket).stdout)
        self.stride("put", "a.npy", "a", "--address", socket)
        # No code of this operation comes with the product.
        done = self.stride("jobs", "submit", "topk", "5", "@a", "--to", "b", "--to", "c", "--wait", "--address", socket)
        self.assertRegex(done.stdout, r"queue \S+ \S+ \(compiling \S+ \S+\)")

    def test_nothing_is_left(self):
        before = set(self.folder.iterdir())
        self.stride("ufunc", "negative", "a.npy", "-o", "c.npy")
        self.assertEqual({p.name for p in set(self.folder.iterdir()) - before}, {"c.npy"})
        for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                command = process.read_bytes()
            except OSError:
                continue  # it has ended
            self.assertNotIn(str(self.folder).encode(), command)


if __name__ == "__main__":
    _STRIDE = sys.argv[1]
    unittest.main(argv=sys.argv[:1])
