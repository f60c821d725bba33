"""Connecting, failing, devices, transfers."""

import os
import subprocess
import sys
import threading
import unittest
from unittest import mock

import numpy as np

import client_case
import stride as st


class ConnectionTest(client_case.ClientCase):
    def test_addresses(self):
        for wrong in ("nonsense", "unix:", "host:0", "host:70000", "http://host:1", "::1:7433"):
            with self.assertRaises(st.InvalidArgument):
                st.connect(wrong)
        with self.assertRaises(st.Unavailable) as raised:
            st.connect("unix:/nonexistent/socket")
        self.assertIsInstance(raised.exception, ConnectionError)

    def test_address_from_the_environment(self):
        with mock.patch.dict(os.environ, {"STRIDE_ADDRESS": self.daemon.address}):
            with st.connect() as session:
                self.assertEqual(session.address, self.daemon.address)
                self.assertIs(st.current_session(), session)
                self.assertEqual(int(st.sum(st.arange(4))), 6)
            self.assertTrue(session.closed)
        self.assertIs(st.current_session(), self.session)

    def test_no_daemon_is_told_of(self):
        with mock.patch.dict(os.environ, {"PATH": "/nonexistent", "XDG_RUNTIME_DIR": "/nonexistent"}):
            for name in ("STRIDE_ADDRESS", "STRIDE_DAEMON"):
                os.environ.pop(name, None)
            if os.path.exists("/run/stride/stride.sock"):
                self.skipTest("this machine has a daemon")
            with self.assertRaisesRegex(st.Unavailable, "STRIDE_ADDRESS"):
                st.connect()

    def test_private_daemon_ends_with_its_program(self):
        program = ("import stride as st\nx = st.ones(3)\nprint(float(x.sum()))\n"
                   "print(st.current_session()._daemon._process.pid, st.current_session().address)\n")
        environment = {**os.environ, "STRIDE_DAEMON": client_case.strided(), "XDG_RUNTIME_DIR": "", "STRIDE_ADDRESS": ""}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        total, rest = done.stdout.split("\n")[:2]
        self.assertEqual(total, "3.0")
        pid, address = rest.split()
        self.assertFalse(os.path.exists(address[5:]))
        with self.assertRaises(ProcessLookupError):
            os.kill(int(pid), 0)

    def test_a_token_does_not_travel_unencrypted(self):
        with self.assertRaisesRegex(st.InvalidArgument, "unencrypted"):
            st.connect("gpu.example.org:7433", token="secret")
        with self.assertRaisesRegex(st.InvalidArgument, "belong together"):
            st.connect("gpu.example.org:7433", tls_ca="system", tls_cert="/nonexistent")

    def test_closed(self):
        session = st.connect(self.daemon.address)
        with session:
            array = st.arange(5) * 2
        with self.assertRaises(st.Cancelled):
            array.to_numpy()
        session.close()

    def test_sessions_do_not_mix(self):
        here = st.ones(3)
        with st.connect(self.daemon.address):
            there = st.ones(3)
            with self.assertRaises(ValueError):
                here + there

    def test_devices(self):
        devices = self.session.devices()
        self.assertEqual([device.name for device in devices], ["devices/cpu:0"])
        self.assertTrue(devices[0].serving)
        self.assertEqual(devices[0].num_compute_units, 2)

    def test_metrics(self):
        rounds = list(self.session.watch_devices(0.05, max_samples=3))
        self.assertEqual(len(rounds), 3)
        self.assertEqual(rounds[0][0].device, "devices/cpu:0")
        self.assertIsInstance(rounds[0][0].queue_depth, int)
        self.assertLess(rounds[0][0].time, rounds[2][0].time)
        watch = self.session.watch_devices(0.05)
        next(watch)
        watch.close()

    def test_a_device_that_is_not_there(self):
        with self.assertRaises(st.NotFound) as raised:
            np.asarray(st.ones(3).to_device("cuda:7"))
        self.assertEqual(raised.exception.reason, "DEVICE_NOT_FOUND")
        self.assertIn("connection_test.py", raised.exception.origin)
        self.assertIsInstance(raised.exception, LookupError)

    def test_a_device_asked_for(self):
        with st.connect(self.daemon.address, device="cpu:0"):
            with client_case.Sent(st.current_session()) as sent:
                x = st.ones(3) + 1
                self.same(x[1:], np.full(2, 2.0))
            self.assertEqual(x.device, "cpu:0")
            self.assertEqual({c.operation.device for c in sent.commands if c.operation.WhichOneof("kind") in ("creation", "ufunc")},
                             {"devices/cpu:0"})
        moved = st.ones(3).to_device("cpu:0")
        self.assertEqual((moved.device, moved[0].device, st.asarray([1, 2], device="cpu:0").device), ("cpu:0",) * 3)
        self.same(moved, np.ones(3))

    def test_large_arrays(self):
        host = np.random.default_rng(0).normal(size=(5_000_000,))  # 40 MB: several calls at once
        seen = []
        array = st.asarray(host, progress=lambda done, total: seen.append((done, total)))
        self.assertEqual(max(seen), (host.nbytes, host.nbytes))
        np.testing.assert_array_equal(np.asarray(array), host)
        seen.clear()
        np.testing.assert_array_equal((array * 2).to_numpy(progress=lambda done, total: seen.append((done, total))), host * 2)
        self.assertEqual(max(seen), (host.nbytes, host.nbytes))
        np.testing.assert_array_equal(np.asarray(array[::-1][:2_000_000]), host[::-1][:2_000_000])
        for size in (64 << 10, (64 << 10) + 1, 1 << 20, (1 << 20) + 1):
            bytes_ = np.random.default_rng(size).integers(0, 255, size, dtype=np.uint8)
            np.testing.assert_array_equal(np.asarray(st.asarray(bytes_) + 0), bytes_)

    def test_threads(self):
        failures = []

        def work(seed):
            host = np.random.default_rng(seed).normal(size=1000)
            for _ in range(30):
                array = st.asarray(host)
                for i in range(20):
                    array = array + i
                if not np.allclose(np.asarray(array), host + 190):
                    failures.append(seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_a_late_result(self):
        with st.connect(self.daemon.address, timeout=0.05):
            endless = st.RawKernel('extern "C" __global__ void f(float* x) { for (volatile int i = 0; i < 1 << 29; ++i) x[0] += 1; }', "f")
            out = st.zeros(1, dtype=st.float32)
            endless(1, 1, (out,))
            with self.assertRaises(st.DeadlineExceeded) as raised:
                out.to_numpy()
            self.assertIsInstance(raised.exception, TimeoutError)


if __name__ == "__main__":
    client_case.main()
