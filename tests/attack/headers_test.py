"""Endless header blocks at full speed (CVE-2023-33953), and large uploads, which must not be mistaken for them."""

import pathlib
import ssl
import subprocess
import tempfile
import threading
import time

import attack_case
import grpc
import stubs
from attack_case import EVIL, AttackCase
from http2 import CONTINUATION, HEADERS, Connection, field, frame, integer, request_headers

MIB = 1 << 20
LIST = "/stride.v1.DeviceService/ListDevices"
WHOLE_BYTES = 300 * MIB
# Largest growth of the daemon's memory by one such connection, or by many in a row.
MOST_GROWTH = 32 * MIB
UPLOADS = 4
UPLOAD_BYTES = 128 * MIB

OPENING = frame(HEADERS, 0, 1, request_headers(LIST))
LONG_OPENING = frame(HEADERS, 0, 1, request_headers(LIST) + b"\0" + integer(4, 7) + b"long" + integer(1 << 29, 7))


class HeadersTest(AttackCase):
    tls = None

    def targets(self):
        return self.daemon.port, self.daemon.unix_path

    def send_whole(self, target, opening, data):
        """How many bytes the daemon took before it hung up."""
        with Connection(target, tls=self.tls) as connection:
            sent = 0
            while sent < WHOLE_BYTES and connection.send(data if sent else opening + data):
                sent += len(data)
            return sent

    def assert_ended(self, opening, frames):
        data = frames * (MIB // len(frames))

        def work(deadline):
            before, peak, connections = self.daemon.rss_bytes(), 0, 0
            while time.monotonic() < deadline:
                for target in self.targets():
                    # Bytes in flight when the daemon closes the connection count as sent.
                    self.assertLess(self.send_whole(target, opening, data), 16 * MIB, "nobody hung up")
                    peak = max(peak, self.daemon.rss_bytes() - before)
                    connections += 1
            print(f"{connections} connections, {peak / MIB:.1f} MiB more at most", flush=True)
            self.assertLess(peak, MOST_GROWTH)
        self.attack(work)
        self.assertIn("connection ended: headers without end", self.daemon.log())

    def test_one_header(self):
        self.assert_ended(LONG_OPENING, frame(CONTINUATION, 0, 1, b"z" * 16384))

    def test_one_header_in_small_pieces(self):
        self.assert_ended(LONG_OPENING, frame(CONTINUATION, 0, 1, b"z"))

    def test_many_headers(self):
        self.assert_ended(OPENING, frame(CONTINUATION, 0, 1, b"".join(field(f"x-{i}", "y" * 40) for i in range(300))))

    def test_empty_continuations(self):
        self.assert_ended(OPENING, frame(CONTINUATION, 0, 1))

    def test_headers_begun_again(self):
        self.assert_ended(OPENING, OPENING)

    def test_large_uploads_are_accepted(self):
        """Over one connection, with calls in between."""
        array, put = stubs.module("array_pb2"), stubs.module("array_service_pb2")
        sessions = stubs.module("session_service_pb2")
        spec = array.ArraySpec(data_type=array.DATA_TYPE_INT8, shape=[UPLOAD_BYTES])

        def work(deadline):
            with self.new_channel() as channel:
                service = self.stub("SessionService", channel)
                session = service.CreateSession(sessions.CreateSessionRequest(), metadata=EVIL).session.name
                codes = []

                def messages(number):
                    yield put.PutArrayRequest(
                        header=put.PutArrayRequest.Header(parent=session, array_id=str(number), spec=spec)
                    )
                    for _ in range(UPLOAD_BYTES // MIB):
                        yield put.PutArrayRequest(data=bytes(MIB))

                def upload(number):
                    stub = self.stub("ArrayService", channel)
                    codes.append(self.code_of(lambda: stub.PutArray(messages(number), metadata=EVIL, timeout=120)))

                threads = [threading.Thread(target=upload, args=(n + 1,)) for n in range(UPLOADS)]
                for thread in threads:
                    thread.start()
                while any(thread.is_alive() for thread in threads):
                    request = sessions.RenewSessionRequest(name=session)
                    self.assertEqual(
                        self.code_of(lambda: service.RenewSession(request, metadata=EVIL, timeout=20)), "OK"
                    )
                self.assertEqual(codes, ["OK"] * UPLOADS)
                request = sessions.DeleteSessionRequest(name=session)
                self.assertEqual(self.code_of(lambda: service.DeleteSession(request, metadata=EVIL, timeout=30)), "OK")
        self.attack(work)


class TlsHeadersTest(HeadersTest):
    @classmethod
    def setUpClass(cls):
        cls._folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls._folder.cleanup)
        folder = pathlib.Path(cls._folder.name)
        subprocess.run(
            [
                "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", folder / "key", "-out",
                folder / "certificate",
            ],
            check=True,
            capture_output=True,
        )
        cls.flags = [*attack_case.FLAGS, f"--tls-cert={folder}/certificate", f"--tls-key={folder}/key"]
        cls.certificate = (folder / "certificate").read_bytes()
        cls.tls = ssl.create_default_context(cadata=cls.certificate.decode())
        cls.tls.set_alpn_protocols(["h2"])
        super().setUpClass()

    @classmethod
    def new_channel(cls):
        credentials = grpc.ssl_channel_credentials(cls.certificate)
        return grpc.secure_channel(cls.daemon.tcp, credentials, options=[("grpc.use_local_subchannel_pool", 1)])

    def targets(self):
        return (self.daemon.port,)


if __name__ == "__main__":
    attack_case.main()
