"""Invariants of every attack: other clients are unaffected, resources are released, the daemon survives.

Usage of each suite: python NAME_test.py STRIDED [unittest's arguments]
"""

import os
import pathlib
import re
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support/python"))
import grpc  # noqa: E402
import stubs  # noqa: E402
from bystander import Bystander  # noqa: E402
from daemon_process import DaemonProcess  # noqa: E402

QUIET_SECONDS = 0.5
# A machine with other things to do delays calls by itself: below this no delay is laid at an attack's door.
FLOOR_MS = 50
ATTEMPTS = 4
# Processors that other programs may use during a valid attempt, and the number of repetitions of an invalid
# one.
BUSY_PROCESSORS = 0.25
MORE_ATTEMPTS = 8
SETTLE_SECONDS = 15
# The allocator keeps up to 256 MiB of freed memory (server/main/process_limits.cc), a sanitizer far more.
RSS_SLACK = 1 << 40 if "STRIDE_TEST_SANITIZED" in os.environ else 300 << 20
# gRPC keeps a few threads and descriptors of its own for a while.
THREAD_SLACK = 12
DESCRIPTOR_SLACK = 8
FLAGS = [
    "--cpu-devices=1x1", "--trust-tenant-header", "--session-ttl=1s", "--max-sessions=200",
    "--max-connections=700", "--max-connections-per-peer=256", "--max-threads=512",
]
# The bystander's call in progress: three blocks of the smallest size.
CALM_BYTES = 768
# Messages above the level of information that the daemon may log while it is attacked.
EXPECTED_LOG = re.compile(
    r"connections refused|connection ended: (headers without end|too many cancelled calls|too many bytes of messages|"
    r"too many calls at once|a message was not complete)|sandbox|warning (grpc|protobuf): |complaints of libraries"
)
MOST_LOG_BYTES = 100000

STRIDED = ""


def other_cpu_seconds():
    """Processor time since the start of other programs, and stolen time, without this process and its children."""
    tick = os.sysconf("SC_CLK_TCK")
    fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    times, parents = {}, {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = int(stat.parent.name), stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        # With that of children that have ended.
        times[pid], parents[pid] = sum(map(int, rest[11:15])), int(rest[1])
    ours, frontier = 0, {os.getpid()}
    while frontier:
        ours += sum(times.get(pid, 0) for pid in frontier)
        frontier = {pid for pid, parent in parents.items() if parent in frontier}
    return (user + nice + system + irq + softirq + steal - ours) / tick


class AttackCase(unittest.TestCase):
    """One daemon for the suite. `self.attack(work)` runs work(deadline) and checks everything."""

    flags = FLAGS
    # The token of the clients that are not the attacker, where the daemon authenticates.
    token = ""

    @classmethod
    def setUpClass(cls):
        cls._stubs = tempfile.TemporaryDirectory()
        stubs.make(cls._stubs.name)
        cls.daemon = DaemonProcess(STRIDED, cls.flags)
        cls.calm = Bystander(cls.daemon.unix, cls._stubs.name, cls.token)
        # An attacker has a machine of its own; here it must not take the daemon's turn on a core.
        os.nice(5)
        cls.channel = cls.new_channel()
        cls.calm.measure(0.5)

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        cls.calm.close()
        code = cls.daemon.stop()
        log = cls.daemon.log()
        cls._stubs.cleanup()
        if code != 0:
            raise AssertionError(f"the daemon ended with {code}:\n{log}")

    # --- state ---
    def array_bytes(self):
        pb = stubs.module("device_service_pb2")
        devices = stubs.module("device_service_pb2_grpc").DeviceServiceStub(self.channel)
        metadata = [("authorization", f"Bearer {self.token}")] if self.token else []
        watch = devices.WatchDevices(pb.WatchDevicesRequest(max_samples=1), metadata=metadata, timeout=20)
        return sum(sample.array_bytes for response in watch for sample in response.samples)

    def state(self):
        return {"descriptors": self.daemon.descriptors(), "threads": self.daemon.threads(),
                "rss": self.daemon.rss_bytes(), "array_bytes": self.array_bytes()}

    @staticmethod
    def excess(before, now):
        """The resources that have grown beyond their slack, with both values."""
        slack = {"descriptors": DESCRIPTOR_SLACK, "threads": THREAD_SLACK, "rss": RSS_SLACK, "array_bytes": CALM_BYTES}
        return {key: (before[key], now[key]) for key in slack if now[key] > before[key] + slack[key]}

    def assert_settles(self, before):
        end = time.monotonic() + SETTLE_SECONDS
        while left := self.excess(before, self.state()):
            self.assertLess(time.monotonic(), end, f"left behind (before, now): {left}")
            time.sleep(0.1)

    def assert_unharmed(self):
        self.assertTrue(self.daemon.alive(), self.daemon.log())
        log = self.daemon.log()
        self.assertLess(len(log), MOST_LOG_BYTES, "a client can fill the log")
        self.assertTrue(all(c.isprintable() or c == "\n" for c in log), "a client's bytes are in the log as they came")
        for line in log.splitlines():
            if re.search(r"\b(error|critical|warning)\b", line, re.IGNORECASE) and not EXPECTED_LOG.search(line):
                self.fail(f"in the daemon's log: {line}")

    # --- the attack ---
    def attack(self, work, seconds=1.0):
        before = self.state()
        late, unsure = 0, 0
        while late < ATTEMPTS:
            others = other_cpu_seconds()
            begin = time.monotonic()
            quiet = self.calm.measure(QUIET_SECONDS)
            cpu = self.daemon.cpu_seconds()
            self.calm.begin()
            start = time.monotonic()
            work(start + seconds)
            elapsed = time.monotonic() - start
            loud = self.calm.end()
            cpu = self.daemon.cpu_seconds() - cpu
            bound = max(2 * quiet["p99"], FLOOR_MS)
            print(
                f"{self.id().split('.')[-1]}: quiet p50 {quiet['p50']:.1f} p99 {quiet['p99']:.1f} ms, under attack "
                f"p50 {loud['p50']:.1f} p99 {loud['p99']:.1f} max {loud['max']:.1f} ms of {loud['count']} calls, "
                f"daemon {cpu:.2f} s of processor in {elapsed:.2f} s, {self.daemon.rss_bytes() >> 20} MiB",
                flush=True,
            )
            self.assertEqual(loud["failures"], 0, loud["first_failure"])
            self.assertGreater(loud["count"], 0, "no call ended during the attack")
            if loud["p99"] < bound:
                break
            self.assert_unharmed()
            busy = (other_cpu_seconds() - others) / (time.monotonic() - begin)
            if busy > BUSY_PROCESSORS and unsure < MORE_ATTEMPTS:
                print(f"not counted: other programs took {busy:.2f} processors", flush=True)
                unsure += 1
                continue
            late += 1
        self.assert_settles(before)
        self.assert_unharmed()
        if late == ATTEMPTS:
            self.fail(
                f"p99 {loud['p99']:.1f} ms under attack, {quiet['p99']:.1f} ms before, in each of {ATTEMPTS} attempts"
            )

    # --- short forms ---
    def stub(self, service, channel=None):
        module = stubs.module(re.sub(r"(?<!^)(?=[A-Z])", "_", service).lower() + "_pb2_grpc")
        return getattr(module, service + "Stub")(channel or self.channel)

    @classmethod
    def new_channel(cls):
        """A connection of its own."""
        return grpc.insecure_channel(cls.daemon.tcp, options=[("grpc.use_local_subchannel_pool", 1)])

    def session(self, **more):
        pb = stubs.module("session_service_pb2")
        return self.stub("SessionService").CreateSession(pb.CreateSessionRequest(**more), metadata=EVIL).session.name

    def raw_code(self, method, *messages, **options):
        """The code of a call of `Service/Method` whose messages are these bytes."""
        with grpc.insecure_channel(
            self.daemon.tcp, options=[("grpc.use_local_subchannel_pool", 1)], **options
        ) as channel:
            call = channel.stream_stream("/stride.v1." + method)
            return self.code_of(lambda: list(call(iter(messages), metadata=EVIL, timeout=60)))

    def code_of(self, call):
        """The name of the status code that a call ends with."""
        try:
            call()
        except grpc.RpcError as error:
            return error.code().name
        return "OK"


EVIL = [("stride-tenant", "evil")]


def main():
    global STRIDED
    STRIDED = sys.argv[1]
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
