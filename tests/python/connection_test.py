"""Connecting, failing, devices, transfers."""

import asyncio
import contextlib
import io
import os
import pickle
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

import grpc
import numpy as np

import client_case
import stride as st
from stride import _daemon, _session, aio
from stride._daemon import PrivateDaemon
from stride._local_connection import LocalConnections
from stride.v1 import job_service_pb2, session_service_pb2


def _free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class ConnectionTest(client_case.ClientCase):
    def test_addresses(self):
        for wrong in ("nonsense", "unix:", "host:0", "host:70000", "http://host:1", "::1:7433"):
            with self.assertRaises(st.InvalidArgument):
                st.connect(wrong)
        with self.assertRaises(st.Unavailable) as raised:
            st.connect("unix:/nonexistent/socket")
        self.assertIsInstance(raised.exception, ConnectionError)

    def test_each_connection_failure_has_its_message(self):
        with mock.patch.object(_session, "_CONNECT_SECONDS", 0.2), tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(st.Unavailable, "there is no socket"):
                st.connect(f"unix:{folder}/none")
            with socket.socket(socket.AF_UNIX) as dead:
                dead.bind(folder + "/dead")
            with self.assertRaisesRegex(st.Unavailable, "nothing listens on the socket"):
                st.connect(f"unix:{folder}/dead")
            with self.assertRaisesRegex(st.Unavailable, "nothing listens there"):
                st.connect("127.0.0.1:1")
            with self.assertRaisesRegex(st.Unavailable, "leads to no address"):
                st.connect("nowhere.invalid:7433")

    def test_a_socket_that_this_user_may_not_open(self):
        program = ("import os, sys, stride as st\nif os.geteuid() == 0:\n    os.seteuid(65534)\n"
                   "try:\n    st.connect(sys.argv[1])\nexcept st.PermissionDenied as error:\n    print(error)\n")
        with tempfile.TemporaryDirectory() as folder:
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(folder + "/s")
                listening.listen()
                os.chmod(folder + "/s", 0)
                done = subprocess.run(
                    [sys.executable, "-c", program, f"unix:{folder}/s"], capture_output=True, text=True, timeout=100
                )
        self.assertIn("may not open the daemon's socket", done.stdout, done.stderr)

    def test_tls_and_plain_are_distinguished(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(_session, "_CONNECT_SECONDS", 1.0):
            for name in ("daemon", "stranger"):
                subprocess.run(
                    [
                        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-subj",
                        "/CN=" + name,
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{folder}/{name}.key", "-out",
                        f"{folder}/{name}.pem",
                    ],
                    check=True,
                    capture_output=True,
                )
            port = _free_port()
            address = f"127.0.0.1:{port}"
            tls = PrivateDaemon(
                client_case.strided(),
                [
                    *client_case.FLAGS,
                    f"--listen=tcp:{address}",
                    f"--tls-cert={folder}/daemon.pem",
                    f"--tls-key={folder}/daemon.key",
                ],
            )
            self.addCleanup(tls.stop)
            with self.assertRaisesRegex(st.Unavailable, "speaks TLS there"):
                st.connect(address)
            with self.assertRaisesRegex(st.Unavailable, "not trusted"):
                st.connect(address, tls_ca=folder + "/stranger.pem")
            st.connect(address, tls_ca=folder + "/daemon.pem").close()
            tls.stop()
            plain = PrivateDaemon(client_case.strided(), [*client_case.FLAGS, f"--listen=tcp:{address}"])
            self.addCleanup(plain.stop)
            with self.assertRaisesRegex(st.Unavailable, "speaks no TLS"):
                st.connect(address, tls_ca=folder + "/daemon.pem")

    def test_address_from_the_environment(self):
        with mock.patch.dict(os.environ, {"STRIDE_ADDRESS": self.daemon.address}):
            with st.connect() as session:
                self.assertEqual(session.address, self.daemon.address)
                self.assertIs(st.current_session(), session)
                self.assertEqual(int(st.sum(st.arange(4))), 6)
            self.assertTrue(session.closed)
        self.assertIs(st.current_session(), self.session)

    def test_no_daemon_is_reported(self):
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
        environment = {
            **os.environ,
            "STRIDE_DAEMON": client_case.strided(),
            "XDG_RUNTIME_DIR": "",
            "STRIDE_ADDRESS": "",
        }
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=100
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        total, rest = done.stdout.split("\n")[:2]
        self.assertEqual(total, "3.0")
        pid, address = rest.split()
        self.assertFalse(os.path.exists(address[5:]))
        with self.assertRaises(ProcessLookupError):
            os.kill(int(pid), 0)

    def test_a_private_daemon_keeps_compiled_code_for_the_next_program(self):
        with tempfile.TemporaryDirectory() as folder:
            # The product has no precompiled code of this kernel, so that a compiler runs.
            program = (
                "import stride as st\n"
                "from stride import cupy\n"
                "cube = cupy.ElementwiseKernel('float32 x', 'float32 y', 'y = x * x * x + 7', 'cube')\n"
                "print(float(cube(st.ones(3, 'float32'))[0]))\n"
            )
            environment = {
                **os.environ,
                "STRIDE_DAEMON": client_case.strided(),
                "XDG_RUNTIME_DIR": "",
                "STRIDE_ADDRESS": "",
                "XDG_CACHE_HOME": folder,
            }
            cache = pathlib.Path(folder) / "stride"
            for call in ("first", "second"):
                done = subprocess.run(
                    [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=100
                )
                self.assertEqual(done.returncode, 0, done.stderr)
                kept = {path: path.stat().st_ino for path in (cache / "code-cache").glob("*.module")}
                self.assertTrue(kept)
                if call == "first":
                    first = kept
                    for path in kept:
                        os.utime(path, (1, 1))
            # A read updates a file's time of use; a rewrite would replace the file.
            self.assertEqual(kept, first)
            self.assertTrue(any(path.stat().st_mtime > 1 for path in kept))
            self.assertEqual([(path.stat().st_mode & 0o777) for path in (cache, cache / "code-cache")], [0o700, 0o700])

    def test_a_cache_folder_that_others_may_write_is_not_used(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"XDG_CACHE_HOME": folder}):
            self.assertEqual(_daemon.user_cache(), folder + "/stride")
            os.chmod(folder + "/stride", 0o777)
            self.assertIsNone(_daemon.user_cache())
            os.rename(folder + "/stride", folder + "/other")
            os.chmod(folder + "/other", 0o700)
            os.symlink("other", folder + "/stride")
            self.assertIsNone(_daemon.user_cache())
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": "/proc/nonexistent"}):
            self.assertIsNone(_daemon.user_cache())

    def test_a_token_does_not_travel_unencrypted(self):
        with self.assertRaisesRegex(st.InvalidArgument, "unencrypted"):
            st.connect("gpu.example.org:7433", token="secret")
        with self.assertRaisesRegex(st.InvalidArgument, "belong together"):
            st.connect("gpu.example.org:7433", tls_ca="system", tls_cert="/nonexistent")

    def test_closed(self):
        session = st.connect(self.daemon.address, local=client_case.LOCAL)
        with session:
            array = st.arange(5) * 2
        with self.assertRaises(st.Cancelled):
            array.to_numpy()
        session.close()

    def test_sessions_do_not_mix(self):
        here = st.ones(3)
        with st.connect(self.daemon.address, local=client_case.LOCAL):
            there = st.ones(3)
            with self.assertRaises(ValueError):
                here + there

    def test_devices(self):
        devices = self.session.devices()
        self.assertEqual([device.name for device in devices], ["devices/cpu:0"])
        self.assertTrue(devices[0].serving)
        self.assertEqual(devices[0].num_compute_units, 2)

    def test_devices_of_the_current_session(self):
        self.assertEqual(st.devices(), self.session.devices())

    def test_session_has_only_documented_attributes(self):
        documented = {
            "address", "array", "close", "closed", "device", "devices", "empty_shared", "list_arrays", "name",
            "synchronize", "tenant", "timeout", "transport", "watch_devices",
        }
        self.assertEqual({name for name in dir(self.session) if not name.startswith("_")}, documented)

    def test_show_config(self):
        config = st.show_config(mode="dicts")
        self.assertEqual(
            (config["numpy"], config["address"], config["devices"]),
            (np.__version__, self.daemon.address, "devices/cpu:0"),
        )
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            st.show_config()
        self.assertEqual([line.split()[0] for line in printed.getvalue().splitlines()], list(config))
        with self.assertRaises(ValueError):
            st.show_config(mode="yaml")

    def test_metrics(self):
        rounds = list(self.session.watch_devices(0.05, max_samples=3))
        self.assertEqual(len(rounds), 3)
        self.assertEqual(rounds[0][0].device, "devices/cpu:0")
        self.assertIsInstance(rounds[0][0].queue_depth, int)
        self.assertLess(rounds[0][0].time, rounds[2][0].time)
        watch = self.session.watch_devices(0.05)
        next(watch)
        watch.close()

    def test_unknown_device_is_refused(self):
        with self.assertRaises(st.NotFound) as raised:
            np.asarray(st.ones(3).to_device("cuda:7"))
        self.assertEqual(raised.exception.reason, "DEVICE_NOT_FOUND")
        self.assertIn("connection_test.py", raised.exception.origin)
        self.assertIsInstance(raised.exception, LookupError)

    def test_connect_with_a_device(self):
        with st.connect(self.daemon.address, local=client_case.LOCAL, device="cpu:0"):
            with client_case.Sent(st.current_session()) as sent:
                x = st.ones(3) + 1
                self.same(x[1:], np.full(2, 2.0))
            self.assertEqual(x.device, "cpu:0")
            self.assertEqual(
                {c.operation.device for c in sent.commands if c.operation.WhichOneof("kind") in ("creation", "ufunc")},
                {"devices/cpu:0"},
            )
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
        np.testing.assert_array_equal(
            (array * 2).to_numpy(progress=lambda done, total: seen.append((done, total))), host * 2
        )
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

    def test_both_transports_give_equal_results(self):
        """Also failures, with the same text and line."""
        def program(session):
            yield np.asarray(st.arange(1000.0) * 2 + 1)
            wide = st.asarray(np.arange(300_000.0))  # travels separately
            yield np.asarray(wide[::-1] - 1)
            kernel = st.RawKernel('extern "C" __global__ void f(float* x) { x[threadIdx.x] += threadIdx.x; }', "f")
            out = st.zeros(64, dtype=st.float32)
            for _ in range(5):
                kernel(1, 64, (out,))
            yield out.to_numpy()
            session.synchronize()
            out[10:20] = -1
            yield out.to_numpy()
            yield asyncio.run(aio.fetch(out + 1))
            # More commands than one message may have, of which some are large.
            held = [st.full(100, i) + i for i in range(2500)]
            parts = [st.asarray(np.full(8000, i)) for i in range(100)]
            session.synchronize()
            yield np.asarray(held[-1] + held[0]), np.asarray(sum(parts[:40]))
            for wrong in (
                lambda: st.ones(3).to_device("cuda:7"),
                lambda: st.linalg.inv(st.zeros((2, 2))),
                lambda: launch_wrongly(out),
            ):
                try:
                    wrong().to_numpy()
                except st.StrideError as error:
                    yield type(error), error.reason, error.origin, error.fields, error.message
            yield np.asarray(st.ones(3))

        def launch_wrongly(out):
            st.RawKernel("no C at all", "f")(1, 1, (out,))
            return out

        results = {}
        for local in (True, False):
            with st.connect(self.daemon.address, timeout=120, local=local) as session:
                self.assertEqual(session.transport, "local" if local else "grpc")
                results[local] = list(program(session))
        self.assertEqual(len(results[True]), 10)
        np.testing.assert_equal(results[True], results[False])

    def test_a_daemon_without_local_connections(self):
        with mock.patch.object(LocalConnections, "open", return_value=None):
            with st.connect(self.daemon.address) as session:
                self.assertEqual(float(st.ones(5).sum()), 5)
                self.assertEqual(session.transport, "grpc")

    def test_a_daemon_that_is_replaced(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        address = f"unix:{folder}/s"

        def start():
            daemon = subprocess.Popen(
                [client_case.strided(), "--listen=" + address, f"--state-dir={folder}", *client_case.FLAGS],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            self.addCleanup(daemon.wait)
            self.addCleanup(daemon.kill)
            return daemon

        first = start()
        while True:
            try:
                session = st.connect(address, timeout=120, local=client_case.LOCAL)
                break
            except st.Unavailable:
                self.assertIsNone(first.poll())
        with session:
            x = st.ones(3)
            self.assertEqual(float(x.sum()), 3)
            first.kill()
            first.wait()
            with self.assertRaises(st.Unavailable):
                float(x.sum())
            start()
            error = None
            while not isinstance(error, st.NotFound):  # the session has ended
                try:
                    float(x.sum())
                except st.StrideError as now:
                    error = now
                    self.assertIsInstance(error, (st.Unavailable, st.NotFound))

    def test_a_forked_child_leaves_the_session_to_its_parent(self):
        with st.connect(self.daemon.address, local=client_case.LOCAL) as session:
            x = st.arange(10) + 1
            self.assertEqual(int(x.sum()), 55)
            connection = session._stream._connection
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    for use in (
                        lambda: x.to_numpy(),
                        lambda: session.synchronize(),
                        lambda: session.devices(),
                        lambda: session.transport,
                    ):
                        with self.assertRaisesRegex(st.FailedPrecondition, "forked"):
                            use()
                    self.assertNotIn(session, _session._default)
                    session.close()
                    _session._close_all()
                    status = 0
                finally:
                    os._exit(status)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(int((x + 1).sum()), 65)
            self.assertIs(session._stream._connection, connection)

    def test_a_late_result(self):
        with st.connect(self.daemon.address, local=client_case.LOCAL, timeout=0.05):
            endless = st.RawKernel(
                'extern "C" __global__ void f(float* x) { for (volatile int i = 0; i < 1 << 29; ++i) x[0] += 1; }', "f"
            )
            out = st.zeros(1, dtype=st.float32)
            endless(1, 1, (out,))
            with self.assertRaises(st.DeadlineExceeded) as raised:
                out.to_numpy()
            self.assertIsInstance(raised.exception, TimeoutError)

    def test_a_closed_session_is_not_entered(self):
        with st.connect(self.daemon.address, local=client_case.LOCAL) as session:
            pass
        with self.assertRaises(st.Cancelled):
            session.__enter__()
        self.same(st.ones(1), np.ones(1))
        self.assertIs(st.current_session(), self.session)

    def test_each_thread_has_its_session(self):
        barrier, failures = threading.Barrier(2, timeout=120), []

        def work():
            try:
                with st.connect(self.daemon.address, local=client_case.LOCAL) as session:
                    barrier.wait()  # both are open, whichever was entered last
                    x = st.arange(3)
                    self.assertIs(x.session, session)
                    self.same(x + 1, np.arange(1, 4))
                    barrier.wait()
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertIs(st.current_session(), self.session)

    def test_each_task_has_its_session(self):
        async def work(other):
            with st.connect(self.daemon.address, local=client_case.LOCAL) as session:
                other.set()
                await asyncio.sleep(0)
                self.assertIs(st.ones(1).session, session)

        async def both():
            event = asyncio.Event()
            await asyncio.gather(work(event), work(event))

        asyncio.run(both())

    def test_errors_have_no_grpc_context(self):
        """Pickles include an error's context, and calls cannot be pickled."""
        def failing(use):
            with self.assertRaises(st.StrideError) as raised:
                use()
            return raised.exception

        with st.connect(self.daemon.address, local=client_case.LOCAL) as session:
            large = st.asarray(np.zeros(1 << 20)) + 0
            large[st.asarray([1 << 30]) + 0] = 1.0
            errors = [
                failing(lambda: st.load("none")),
                failing(lambda: st.job("none")),
                failing(lambda: list(session.watch_devices(names=["devices/none"]))),
                failing(large.to_numpy),
                failing(lambda: st.Module("no code")),
                failing(lambda: (st.ones(2)[st.asarray([4]) + 0]).tolist()),
                failing(lambda: st.sum(st.ones(2), axis=3)),
                failing(lambda: list(st.Job(session, job_service_pb2.Job(name="tenants/default/jobs/x")).watch())),
            ]
        errors.append(failing(lambda: session.devices()))
        for error in errors:
            with self.subTest(error=error):
                again = pickle.loads(pickle.dumps(error))
                self.assertEqual(
                    (type(again), str(again), again.reason, again.fields),
                    (type(error), str(error), error.reason, error.fields),
                )
                seen = error
                while seen is not None:
                    self.assertNotIsInstance(seen, grpc.RpcError)
                    seen = seen.__context__

    def test_errors_of_a_lost_daemon(self):
        daemon = PrivateDaemon(client_case.strided(), client_case.FLAGS)
        self.addCleanup(daemon.stop)
        with st.connect(daemon.address, local=client_case.LOCAL) as session:
            x = st.asarray(np.ones(3)) + 0
            self.assertEqual(float(st.sum(x)), 3.0)
            # As a restarted daemon, which does not have the session.
            session._sessions.DeleteSession(session_service_pb2.DeleteSessionRequest(name=session.name))
            with self.assertRaisesRegex(st.NotFound, r"arrays are lost.*stride\.connect"):
                session._describe(x._node)
            daemon.stop()
            for use in (session.devices, lambda: float(st.sum(st.ones(3) + 1))):
                with self.assertRaisesRegex(st.Unavailable, r"connection to the daemon is lost.*stride\.connect"):
                    use()

    def test_an_array_that_never_fits(self):
        """The error has no retry delay."""
        with st.connect(self.daemon.address, local=client_case.LOCAL), self.assertRaises(
            st.ResourceExhausted
        ) as raised:
            x = st.zeros(1 << 40)
            x[0] = 1.0
            x[1].item()
        self.assertIsNone(raised.exception.retry_delay)


if __name__ == "__main__":
    client_case.main()
