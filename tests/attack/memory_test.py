"""Attacks on the daemon's memory: small messages that become large objects, and messages that never end. They come from
callers without credentials and from a tenant, over TCP, TLS, a Unix socket and local connections. Calls of other
clients succeed all the while.

STRIDE_ATTACK_BYTES is how much each flood sends; 10737418240 for a long one.
"""

import hashlib
import os
import pathlib
import select
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time

import attack_case
import grpc
import stubs
from attack_case import AttackCase
from http2 import DATA, END_HEADERS, HEADERS, SETTINGS, WINDOW_UPDATE, Connection, frame, request_headers
from local_test import frame as local_frame

MIB = 1 << 20
BYTES = int(os.environ.get("STRIDE_ATTACK_BYTES", 256 * MIB))
MOST_GROWTH = (1 << 40) if "STRIDE_TEST_SANITIZED" in os.environ else 256 * MIB
MESSAGE = 4 * MIB
STREAMS = 200
CONNECTIONS = 4
# After this time without a change, no peer takes more bytes.
QUIET_SECONDS = 0.5
TOKENS = {"calm": "c" * 43, "evil": "e" * 43}
AUTHORIZATION = ("authorization", f"Bearer {TOKENS['evil']}")
CREATE_JOB = "/stride.v1.JobService/CreateJob"
RUN = "/stride.v1.ComputeService/Run"
EXECUTE = "/stride.v1.ComputeService/Execute"
HEALTH = "/grpc.health.v1.Health/Check"
EXECUTE_FRAME = 2


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def within(number, message):
    return varint(number << 3 | 2) + varint(len(message)) + message


def elements(tag, size=MESSAGE):
    """The elements of a job: two bytes each, which would become objects."""
    return within(3, bytes([tag, 0]) * (size // 2))


# Results, operations and timelines of a job, and unknown fields.
LARGE = {
    "results": elements(0x52),
    "operations": elements(0x12),
    "timelines": elements(0x4A),
    "unknown": b"\x78\x01" * (MESSAGE // 2),
}


class Peak:
    """The most by which the daemon's own memory has grown."""

    def __init__(self, daemon):
        self._daemon = daemon
        self._before = daemon.rss_bytes()
        self._over = threading.Event()
        self.growth = 0
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        print(f"at most {self.growth / MIB:.0f} MiB more", flush=True)

    def _watch(self):
        while not self._over.wait(0.005):
            self.growth = max(self.growth, self._daemon.rss_bytes() - self._before)


class Flood:
    """A connection with many calls. Each sends all but the last byte of its message, as windows allow."""

    def __init__(self, target, path, tls, extra):
        self._connection = Connection(target, tls=tls)
        self._left = {2 * i + 1: MESSAGE + 4 for i in range(STREAMS)}
        self._window, self._initial = 65535, 65535
        self._windows = dict.fromkeys(self._left, 0)
        self._input = b""
        self.sent, self.open = 0, True
        prefix = struct.pack(">BI", 0, MESSAGE)
        for stream in self._left:
            self._send(frame(HEADERS, END_HEADERS, stream, request_headers(path, extra, stride_tenant=None)))
            self._send_data(stream, prefix)

    def close(self):
        self._connection.close()

    def pump(self):
        """Sends as much as possible now; False once nothing is left to send, or the connection is closed."""
        self._read()
        before = self.sent
        for stream, left in list(self._left.items()):
            count = min(16384, left - 5, self._window, self._initial + self._windows[stream])
            if count > 0 and self.open:
                self._send_data(stream, bytes(count))
        return self.open and self.sent > before

    def _send(self, data):
        self.open = self.open and self._connection.send(data)

    def _send_data(self, stream, data):
        self._send(frame(DATA, 0, stream, data))
        self._left[stream] -= len(data)
        self._window -= len(data)
        self._windows[stream] -= len(data)
        self.sent += len(data)

    def _read(self):
        sock = self._connection.socket
        try:
            while self.open and (getattr(sock, "pending", lambda: 0)() or select.select([sock], [], [], 0)[0]):
                sock.settimeout(1)
                data = sock.recv(1 << 16)
                self.open = bool(data)
                self._input += data
        except TimeoutError:
            pass
        except OSError:
            self.open = False
        sock.settimeout(5)
        while len(self._input) >= 9:
            size = int.from_bytes(self._input[:3], "big")
            if len(self._input) < 9 + size:
                break
            kind, stream = self._input[3], int.from_bytes(self._input[5:9], "big")
            self._take(kind, stream, self._input[9:9 + size])
            self._input = self._input[9 + size:]

    def _take(self, kind, stream, payload):
        if kind == SETTINGS:
            for at in range(0, len(payload) - 5, 6):
                if int.from_bytes(payload[at:at + 2], "big") == 4:
                    self._initial = int.from_bytes(payload[at + 2:at + 6], "big")
        elif kind == WINDOW_UPDATE:
            increment = int.from_bytes(payload, "big")
            if stream == 0:
                self._window += increment
            elif stream in self._windows:
                self._windows[stream] += increment
        elif kind in (HEADERS, 3):
            # Answered: the call takes no more bytes.
            self._left.pop(stream, None)


class MemoryTest(AttackCase):
    token = TOKENS["calm"]
    tls = None
    certificate = None
    more_flags = ()

    @classmethod
    def setUpClass(cls):
        cls._tenants = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls._tenants.cleanup)
        path = pathlib.Path(cls._tenants.name) / "tenants.conf"
        path.write_text("".join(f"[tenant {name}]\ntoken = sha256:{hashlib.sha256(token.encode()).hexdigest()}\n"
                                for name, token in TOKENS.items()))
        path.chmod(0o600)
        flags = [flag for flag in attack_case.FLAGS if flag != "--trust-tenant-header"]
        cls.flags = [*flags, f"--tenants={path}", *cls.more_flags]
        super().setUpClass()

    @classmethod
    def new_channel(cls, address=None):
        options = [("grpc.use_local_subchannel_pool", 1)]
        if cls.certificate and not address:
            return grpc.secure_channel(cls.daemon.tcp, grpc.ssl_channel_credentials(cls.certificate), options=options)
        return grpc.insecure_channel(address or cls.daemon.tcp, options=options)

    def targets(self):
        """The daemon's addresses, as gRPC and as sockets name them."""
        return (None, self.daemon.port), (self.daemon.unix, self.daemon.unix_path)

    # --- attacks ---
    def send_messages(self, address, method, message, metadata, codes):
        """Sends BYTES of a message, eight at once on each of four connections."""
        def send():
            with self.new_channel(address) as channel:
                call = channel.unary_unary(method)
                for _ in range(max(1, BYTES // (32 * len(message)))):
                    futures = [call.future(message, metadata=metadata, timeout=100) for _ in range(8)]
                    codes.update(future.code().name for future in futures)
        threads = [threading.Thread(target=send) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def assert_messages_cost_little(self, method, messages, metadata, expected):
        def work(_):
            with Peak(self.daemon) as peak:
                for address, _ in self.targets():
                    for message in messages:
                        codes = set()
                        self.send_messages(address, method, message, metadata, codes)
                        self.assertLessEqual(codes, expected)
            self.assertLess(peak.growth, MOST_GROWTH)
        self.attack(work)

    def assert_unfinished_cost_little(self, path, extra=()):
        def work(deadline):
            with Peak(self.daemon) as peak:
                for _, target in self.targets():
                    floods = [Flood(target, path, self.tls, extra) for _ in range(CONNECTIONS)]
                    try:
                        # Windows grow as fast as the daemon says so.
                        quiet = time.monotonic()
                        while time.monotonic() < quiet + QUIET_SECONDS:
                            if any([flood.pump() for flood in floods]):
                                quiet = time.monotonic()
                            else:
                                time.sleep(0.01)
                        # Held as long as the attack lasts.
                        time.sleep(max(0, deadline - time.monotonic()))
                        print(f"{path}: {sum(flood.sent for flood in floods) / MIB:.0f} MiB sent, "
                              f"{sum(not flood.open for flood in floods)} connections ended", flush=True)
                    finally:
                        for flood in floods:
                            flood.close()
            self.assertLess(peak.growth, MOST_GROWTH)
        self.attack(work)

    def test_large_objects_of_unauthenticated_clients(self):
        self.assert_messages_cost_little(
            CREATE_JOB, LARGE.values(), (), {"UNAUTHENTICATED", "RESOURCE_EXHAUSTED", "UNAVAILABLE"}
        )

    def test_large_objects_for_health_checks(self):
        self.assert_messages_cost_little(
            HEALTH, [LARGE["unknown"]], (), {"INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "UNAVAILABLE"}
        )

    def test_large_objects_of_a_tenant(self):
        expected = {"INVALID_ARGUMENT", "UNIMPLEMENTED", "RESOURCE_EXHAUSTED", "UNAVAILABLE"}
        self.assert_messages_cost_little(CREATE_JOB, LARGE.values(), (AUTHORIZATION,), expected)

    def test_objects_that_are_just_small_enough(self):
        # 30 MiB each: more than a few at once are beyond what a tenant may have.
        message = elements(0x52, 360000)
        expected = {"INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "UNAVAILABLE"}
        self.assert_messages_cost_little(CREATE_JOB, [message], (AUTHORIZATION,), expected)

    def test_unfinished_messages_of_unauthenticated_clients(self):
        for path in (CREATE_JOB, RUN, HEALTH):
            self.assert_unfinished_cost_little(path)

    def test_unfinished_messages_of_a_tenant(self):
        for path in (CREATE_JOB, RUN, EXECUTE):
            self.assert_unfinished_cost_little(path, (AUTHORIZATION,))


class TlsMemoryTest(MemoryTest):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls._folder.cleanup)
        folder = pathlib.Path(cls._folder.name)
        subprocess.run(
            [
                "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", folder / "key", "-out", folder / "certificate",
            ],
            check=True,
            capture_output=True,
        )
        cls.more_flags = (f"--tls-cert={folder}/certificate", f"--tls-key={folder}/key")
        cls.certificate = (folder / "certificate").read_bytes()
        cls.tls = ssl.create_default_context(cadata=cls.certificate.decode())
        cls.tls.set_alpn_protocols(["h2"])
        super().setUpClass()

    def targets(self):
        return ((None, self.daemon.port),)


class LocalMemoryTest(MemoryTest):
    """The tests over local connections, which only a tenant has."""

    # The base class has the tests without credentials.
    test_large_objects_of_unauthenticated_clients = None
    test_large_objects_for_health_checks = None
    test_unfinished_messages_of_unauthenticated_clients = None
    test_objects_that_are_just_small_enough = None

    def connect(self):
        pb = stubs.module("local_service_pb2")
        invited = self.stub("LocalService").Connect(pb.ConnectRequest(), metadata=[AUTHORIZATION], timeout=60)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as tickets:
            tickets.settimeout(60)
            tickets.connect(invited.socket_path)
            tickets.send(invited.ticket)
            connection = socket.socket(fileno=socket.recv_fds(tickets, 1, 1)[1][0])
        connection.settimeout(60)
        return connection

    def test_large_objects_of_a_tenant(self):
        commands = b"\x12\x00" * (MESSAGE // 2)
        messages = [local_frame(1, within(2, b"\x7a\x00" * (MESSAGE // 2))), local_frame(EXECUTE_FRAME, commands),
                    local_frame(EXECUTE_FRAME, b"\x12\x00" * 100000)]

        def send(deadline):
            while time.monotonic() < deadline:
                for message in messages:
                    with self.connect() as connection:
                        try:
                            connection.sendall(message)
                            connection.shutdown(socket.SHUT_WR)
                            while connection.recv(1 << 16):
                                pass
                        except ConnectionError:
                            pass

        def work(deadline):
            with Peak(self.daemon) as peak:
                threads = [threading.Thread(target=send, args=(deadline,)) for _ in range(6)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            self.assertLess(peak.growth, MOST_GROWTH)
        self.attack(work, seconds=3)

    def test_unfinished_messages_of_a_tenant(self):
        def work(deadline):
            with Peak(self.daemon) as peak:
                connections = [self.connect() for _ in range(40)]
                try:
                    for connection in connections:
                        connection.sendall(local_frame(EXECUTE_FRAME, size=16 * MIB) + bytes(16 * MIB - 1))
                    time.sleep(max(0, deadline - time.monotonic()))
                finally:
                    for connection in connections:
                        connection.close()
            self.assertLess(peak.growth, MOST_GROWTH)
        self.attack(work)


if __name__ == "__main__":
    attack_case.main()
