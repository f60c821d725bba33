"""Notifications of strided to its supervisor: READY once it serves, WATCHDOG while it does, STOPPING when it
drains, then exit 0.

Usage: notify_test.py STRIDED WORKER_DIR
"""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

_WATCHDOG_SECONDS = 2


class NotifyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.supervisor = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.supervisor.close)
        self.supervisor.bind(str(self.folder / "notify"))
        self.address = f"unix:{self.folder}/strided.sock"
        environment = {
            **os.environ,
            "NOTIFY_SOCKET": str(self.folder / "notify"),
            "WATCHDOG_USEC": str(_WATCHDOG_SECONDS * 1_000_000),
        }
        environment.pop("WATCHDOG_PID", None)
        self.log = open(self.folder / "log", "w+")
        self.addCleanup(self.log.close)
        self.daemon = subprocess.Popen(
            [_STRIDED, f"--listen={self.address}", f"--state-dir={self.folder}/state"],
            env=environment,
            stderr=self.log,
            stdout=self.log,
        )
        self.addCleanup(self.kill)

    def kill(self):
        if self.daemon.poll() is None:
            self.daemon.kill()
        self.daemon.wait()

    def wait_for(self, word: str, seconds: float):
        """Reads what the daemon says until a message holds word."""
        end = time.monotonic() + seconds
        self.supervisor.settimeout(0.2)
        while time.monotonic() < end and self.daemon.poll() in (None, 0):
            try:
                if word in self.supervisor.recv(4096).decode().split("\n"):
                    return
            except TimeoutError:
                if self.daemon.poll() is not None:
                    break
        self.log.seek(0)
        self.fail(f"no {word} within {seconds} s; exit code {self.daemon.poll()}; log:\n{self.log.read()}")

    def test_ready_watchdog_stopping(self):
        self.wait_for("READY=1", 30)
        with grpc.insecure_channel(self.address) as channel:
            health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=10)
        self.assertEqual(health.status, health_pb2.HealthCheckResponse.SERVING)
        self.wait_for("WATCHDOG=1", 2 * _WATCHDOG_SECONDS)
        self.wait_for("WATCHDOG=1", 2 * _WATCHDOG_SECONDS)
        self.daemon.send_signal(signal.SIGTERM)
        self.wait_for("STOPPING=1", 10)
        self.assertEqual(self.daemon.wait(timeout=30), 0)


if __name__ == "__main__":
    _STRIDED = sys.argv[1]
    unittest.main(argv=sys.argv[:1])
