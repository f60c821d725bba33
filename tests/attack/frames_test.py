"""Attacks with HTTP/2 frames: headers without end, resets, pings, windows, lengths that lie, methods that are none."""

import re
import time

import attack_case
import grpc
from attack_case import AttackCase
from daemon_process import DaemonProcess
from http2 import (
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PUSH_PROMISE, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, Connection, call, field, frame, integer, message, request_headers,
)

LIST = "/stride.v1.DeviceService/ListDevices"
EXECUTE = "/stride.v1.ComputeService/Execute"
UNIMPLEMENTED = 12


class FramesTest(AttackCase):
    def repeat(self, data, first=b"", pause=0.0, connections=1):
        """Sends `data` over and over, on a new connection whenever the daemon hangs up."""
        def work(deadline):
            open_ones = []
            try:
                while time.monotonic() < deadline:
                    if len(open_ones) < connections:
                        open_ones.append(Connection(self.daemon.port, timeout=0.5))
                        open_ones[-1].send(first)
                    for connection in list(open_ones):
                        if not connection.send(data):
                            connection.close()
                            open_ones.remove(connection)
                    time.sleep(pause)
            finally:
                for connection in open_ones:
                    connection.close()
        return work

    def one_call(self, *arguments, **named):
        """The status of a call on a connection of its own."""
        with Connection(self.daemon.port) as connection:
            connection.send(call(1, *arguments, **named))
            return connection.status()

    def test_handmade_client_completes_a_call(self):
        self.assertEqual(self.one_call(LIST, message(b"")), 0)

    # --- headers ---
    def test_continuations_without_end(self):
        opening = frame(HEADERS, 0, 1, request_headers(LIST))
        piece = frame(CONTINUATION, 0, 1, b"".join(field(f"x-{i}", "y" * 40) for i in range(200)))
        self.attack(self.repeat(piece, opening, pause=0.002))

    def test_empty_continuations(self):
        opening = frame(HEADERS, 0, 1, request_headers(LIST))
        self.attack(self.repeat(frame(CONTINUATION, 0, 1) * 200, opening, pause=0.002))

    def test_endless_header_closes_the_connection(self):
        """Its length is declared as 256 MiB and it comes in small pieces (CVE-2023-33953)."""
        opening = frame(HEADERS, 0, 1, request_headers(LIST) + b"\0" + integer(4, 7) + b"long" + integer(1 << 28, 7))
        self.attack(self.repeat(frame(CONTINUATION, 0, 1, b"z" * 1000) * 4, opening, pause=0.01))

    def test_huge_header(self):
        def work(deadline):
            while time.monotonic() < deadline:
                with Connection(self.daemon.port) as connection:
                    block = request_headers(LIST, [("x-big", "v" * 300000)])
                    pieces = [block[i:i + 16384] for i in range(0, len(block), 16384)]
                    data = frame(HEADERS, END_STREAM, 1, pieces[0])
                    for i, piece in enumerate(pieces[1:]):
                        data += frame(CONTINUATION, END_HEADERS if i + 2 == len(pieces) else 0, 1, piece)
                    connection.send(data)
                    self.assertNotEqual(connection.status(1), 0)
        self.attack(work)

    def test_header_tables(self):
        """Fields of 4,000 bytes that enter the decoder's table, then references to them: small frames, large
        headers."""
        grow = b"\x40" + integer(2, 7) + b"xx" + integer(4000, 7) + b"q" * 4000
        opening = frame(HEADERS, 0, 1, request_headers(LIST) + grow)
        piece = frame(CONTINUATION, 0, 1, b"\xbe" * 1000)
        self.attack(self.repeat(piece, opening, pause=0.002))

    # --- control frames ---
    def test_rapid_resets(self):
        """Streams that are opened and reset at once (CVE-2023-44487)."""
        def work(deadline):
            headers = request_headers(LIST)
            while time.monotonic() < deadline:
                with Connection(self.daemon.port, timeout=0.5) as connection:
                    for base in range(1, 4000, 200):
                        data = b"".join(
                            frame(HEADERS, END_HEADERS, stream, headers) + frame(RST_STREAM, 0, stream, b"\0\0\0\x08")
                            for stream in range(base, base + 200, 2)
                        )
                        if not connection.send(data) or time.monotonic() > deadline:
                            break
                        time.sleep(0.01)
        self.attack(work)

    def test_many_resets_close_the_connection(self):
        headers = request_headers(LIST)
        with Connection(self.daemon.port) as connection:
            connection.send(
                b"".join(
                    frame(HEADERS, END_HEADERS, stream, headers) + frame(RST_STREAM, 0, stream, b"\0\0\0\x08")
                    for stream in range(1, 5001, 2)
                )
            )
            self.assertTrue(connection.closed())
        self.assertIn("connection ended: too many cancelled calls", self.daemon.log())

    def test_five_hundred_calls_cancelled_at_once_are_accepted(self):
        """With the daemon's default number of threads."""
        daemon = DaemonProcess(attack_case.STRIDED, ["--cpu-devices=1x1", "--trust-tenant-header"])
        self.addCleanup(daemon.stop)
        headers = request_headers(LIST)
        with Connection(daemon.port) as connection:
            connection.send(
                b"".join(
                    frame(HEADERS, END_HEADERS, stream, headers) + frame(RST_STREAM, 0, stream, b"\0\0\0\x08")
                    for stream in range(1, 1001, 2)
                )
            )
            connection.send(frame(PING, 0, 0, bytes(8)))
            answer = frame(PING, ACK, 0, bytes(8))
            self.assertIn(answer, connection.read(5, re.escape(answer)), "the connection has ended")
        with Connection(daemon.port) as connection:
            connection.send(call(1, LIST, message(b"")))
            self.assertEqual(connection.status(), 0)

    def test_resets_of_calls_that_run(self):
        def work(deadline):
            headers = request_headers(EXECUTE)
            while time.monotonic() < deadline:
                with Connection(self.daemon.port, timeout=0.5) as connection:
                    for stream in range(1, 200, 2):
                        connection.send(frame(HEADERS, END_HEADERS, stream, headers)
                                        + frame(DATA, 0, stream, message(b""))
                                        + frame(RST_STREAM, 0, stream, b"\0\0\0\x08"))
                        if time.monotonic() > deadline:
                            break
                        time.sleep(0.005)
        self.attack(work)

    def test_control_floods(self):
        floods = {"ping": frame(PING, 0, 0, bytes(8)), "ping answers": frame(PING, ACK, 0, bytes(8)),
                  "settings": frame(SETTINGS, 0, 0, b"\0\x04\0\0\xff\xff"), "empty settings": frame(SETTINGS, 0, 0),
                  "settings answers": frame(SETTINGS, ACK, 0), "windows": frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\1"),
                  "empty data": frame(DATA, 0, 1), "unknown": frame(0xbb, 0, 0, b"x" * 100)}
        for name, data in floods.items():
            with self.subTest(flood=name):
                opening = frame(HEADERS, END_HEADERS, 1, request_headers(EXECUTE)) if name == "empty data" else b""
                self.attack(self.repeat(data * 50, opening, pause=0.003), seconds=0.6)

    def test_invalid_frames_end_the_connection_or_the_call(self):
        """The connection ends, or the call does; never more."""
        headers = frame(HEADERS, END_HEADERS, 1, request_headers(EXECUTE))
        wrong = [
            frame(SETTINGS, 0, 0, b"\0\4\0"), frame(SETTINGS, 0, 3, b""), frame(PING, 0, 0, b"short"),
            frame(PING, 0, 1, bytes(8)), frame(WINDOW_UPDATE, 0, 0, bytes(4)),
            frame(WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff") * 3, frame(RST_STREAM, 0, 0, bytes(4)),
            frame(RST_STREAM, 0, 77, bytes(4)), frame(DATA, 0, 0, b"x"), frame(DATA, 8, 1, b"\xff"),
            frame(CONTINUATION, 4, 1, b""), frame(PUSH_PROMISE, 4, 1, bytes(4)), frame(GOAWAY, 0, 0, bytes(8)),
            frame(HEADERS, END_HEADERS, 2, request_headers(LIST)),
            frame(HEADERS, END_HEADERS, 1, request_headers(LIST)),
            frame(HEADERS, END_HEADERS, 0, request_headers(LIST)), frame(HEADERS, END_HEADERS, 3, b"\xff" * 20),
            frame(HEADERS, END_HEADERS, 3, b"\x3f\xff\xff\xff\xff\x7f"),
            frame(HEADERS, 0x2C, 3, b"\xff\0\0\0\1"), frame(SETTINGS, 0, 0, b"\0\5\xff\xff\xff\xff"),
            frame(SETTINGS, 0, 0, b"\0\4\xff\xff\xff\xff"), frame(DATA, 0, 1, b"", length=(1 << 24) - 1),
            frame(HEADERS, 0, 3, b"") + frame(PING, 0, 0, bytes(8)),
        ]

        def work(deadline):
            for data in wrong:
                with Connection(self.daemon.port) as connection:
                    connection.send(headers + data)
                    connection.read(0.02)
        self.attack(work)

    # --- calls ---
    def test_lengths_that_lie(self):
        def work(deadline):
            self.assertNotIn(self.one_call(LIST, message(b"", length=(1 << 32) - 1)), (0, None))
            self.assertNotIn(self.one_call(LIST, message(b"ab", length=1000)), (0, None))
            self.assertNotIn(self.one_call(LIST, message(b"\x0a\x7fabc")), (0, None))
            self.assertIsNotNone(self.one_call(LIST, b"\7" + message(b"")[1:]))
            self.assertNotIn(self.one_call(LIST, message(b"") + b"\0\0"), (None,))
            self.assertNotIn(self.one_call(LIST, b""), (0, None))
            # More messages than a method takes.
            self.assertIsNotNone(self.one_call(LIST, message(b"") * 1000))
        self.attack(work)

    def test_content_length_and_content_type(self):
        def work(deadline):
            for replaced in (
                {"content_type": "text/html"}, {"content_type": None},
                {"content_type": "application/grpc-web+json"}, {"te": None}, {":method": "GET"},
                {":method": "DELETE"}, {":scheme": "gopher"}, {":path": None}, {":path": ""},
                {":authority": None}, {":authority": "\0"},
            ):
                with Connection(self.daemon.port) as connection:
                    connection.send(call(1, LIST, message(b""), **replaced))
                    connection.read(0.05)
            for extra in (
                [("grpc-timeout", "99999999999999999999H")], [("grpc-timeout", "-1S")], [("grpc-timeout", "x")],
                [("content-length", "-9")], [("grpc-encoding", "rot13")],
                [("grpc-accept-encoding", "," * 4000)], [("x-bin", "!!!!")], [("traceparent", "0" * 4000)],
                [("stride-tenant", "../../root")], [("stride-tenant", "\0\r\n")], [("connection", "close")],
                [(":path", LIST)], [("Upper", "x")], [("", "")],
            ):
                with Connection(self.daemon.port) as connection:
                    connection.send(call(1, LIST, message(b""), extra))
                    connection.read(0.05)
        self.attack(work)

    def test_unknown_methods(self):
        def work(deadline):
            for path in ("/stride.v1.DeviceService/Nothing", "/no.Such/Service", "/", "//", "/stride.v1.DeviceService/",
                         "/" + "x" * 7000, "/stride.v1.DeviceService/ListDevices/../../etc/passwd",
                         "/stride.v1.DeviceService%2FListDevices", "/\0"):
                self.assertNotIn(self.one_call(path, message(b"")), (0,), path)
            self.assertEqual(self.one_call("/stride.v1.DeviceService/Nothing", message(b"")), UNIMPLEMENTED)
        self.attack(work)

    def test_compression_bombs(self):
        """Half a megabyte that becomes 256: refused as it is, never unpacked."""
        bomb = bytes(256 << 20)

        def work(deadline):
            rss = self.daemon.rss_bytes()
            for method in ("ComputeService/Run", "ArrayService/PutArray", "ComputeService/Execute"):
                self.assertEqual(self.raw_code(method, bomb, compression=grpc.Compression.Gzip), "UNIMPLEMENTED")
                self.assertLess(self.daemon.rss_bytes(), rss + (64 << 20))
            for broken in (b"", b"\x1f\x8b", b"\x1f\x8b\x08" + bytes(40), b"not gzip at all"):
                for encoding in ("gzip", "deflate"):
                    self.assertNotIn(self.one_call("/stride.v1.ComputeService/Run", message(broken, compressed=1),
                                                   [("grpc-encoding", encoding)]), (0, None))
        self.attack(work)

    def test_slow_windows(self):
        """A peer whose windows are empty gets no answer, and nothing waits for it but its own calls."""
        def work(deadline):
            connections = []
            for _ in range(20):
                connection = Connection(self.daemon.port, hello=True)
                connection.send(frame(SETTINGS, 0, 0, b"\0\4\0\0\0\0"))
                for stream in range(1, 40, 2):
                    connection.send(call(stream, LIST, message(b"")))
                connections.append(connection)
            time.sleep(max(0, deadline - time.monotonic()))
            for connection in connections:
                connection.close()
        self.attack(work)


if __name__ == "__main__":
    attack_case.main()
