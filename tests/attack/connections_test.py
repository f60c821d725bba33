"""Attacks with connections: floods, silence, bytes that are no HTTP/2."""

import os
import random
import resource
import time

import attack_case
import grpc
from attack_case import AttackCase
from http2 import HEADERS, PREFACE, SETTINGS, Connection, frame


def open_sockets(count, target):
    """As many as can be had, none of which says anything."""
    sockets = []
    for _ in range(count):
        try:
            sockets.append(Connection(target, hello=False))
        except OSError:
            break
    return sockets


class ConnectionsTest(AttackCase):
    def flood(self, target, deadline):
        sockets = open_sockets(400, target)
        self.assertGreater(len(sockets), 256)
        # Those over the limit of 256 for one peer were hung up on.
        self.assertTrue(sockets[-1].closed())
        time.sleep(max(0, deadline - time.monotonic()))
        for connection in sockets:
            connection.close()

    def test_flood_by_tcp(self):
        self.attack(lambda deadline: self.flood(self.daemon.port, deadline))

    def test_flood_by_unix_socket(self):
        self.attack(lambda deadline: self.flood(self.daemon.unix_path, deadline))

    def test_flood_by_tcp_leaves_the_unix_socket_available(self):
        sockets = open_sockets(400, self.daemon.port)
        with grpc.insecure_channel(self.daemon.unix) as channel:
            grpc.channel_ready_future(channel).result(timeout=20)
        for connection in sockets:
            connection.close()
        with grpc.insecure_channel(self.daemon.tcp, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            grpc.channel_ready_future(channel).result(timeout=20)

    def test_connect_and_disconnect(self):
        def work(deadline):
            while time.monotonic() < deadline:
                Connection(self.daemon.port, hello=False).close()
                time.sleep(0.0005)
        self.attack(work)

    def test_half_open(self):
        """A connect and silence; a greeting and silence; half a frame."""
        def work(deadline):
            connections = []
            for beginning in (
                b"", PREFACE[:9], PREFACE, PREFACE + frame(SETTINGS, 0, 0), PREFACE + frame(SETTINGS, 0, 0)[:5],
                PREFACE + frame(HEADERS, 4, 1, b"\0\x05", length=9000),
            ):
                for _ in range(30):
                    connection = Connection(self.daemon.port, hello=False)
                    connection.send(beginning)
                    connections.append(connection)
            time.sleep(max(0, deadline - time.monotonic()))
            for connection in connections:
                connection.close()
        self.attack(work)

    def test_connection_without_greeting_is_closed_after_ten_seconds(self):
        """Ten seconds after the connect; who has greeted stays."""
        silent = [Connection(self.daemon.port, hello=False) for _ in range(3)]
        polite = Connection(self.daemon.port)
        for connection, beginning in zip(silent, (b"", PREFACE[:9], PREFACE)):
            connection.send(beginning)
        start = time.monotonic()
        for connection in silent:
            self.assertTrue(connection.closed(start + 20 - time.monotonic()), "it is still open")
        self.assertFalse(polite.closed(0.1))
        polite.close()

    def test_no_http2(self):
        """HTTP/1, TLS and random bytes are hung up on."""
        hello = bytes.fromhex("16030100") + bytes([120]) + b"\x01\0\0t\x03\x03" + os.urandom(114)
        generator = random.Random(1)

        def work(deadline):
            while time.monotonic() < deadline:
                noise = generator.randbytes(generator.randrange(24, 4000))
                for data in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", hello, noise, PREFACE + noise):
                    with Connection(self.daemon.port, hello=False) as connection:
                        connection.send(data)
                        if data[:5] != PREFACE[:5]:
                            self.assertTrue(connection.closed(10), data[:40])
        self.attack(work)

    def test_upload_of_noise_in_frames(self):
        """Well-formed frames of any kind, flags, stream and content."""
        generator = random.Random(2)

        def work(deadline):
            while time.monotonic() < deadline:
                with Connection(self.daemon.port) as connection:
                    for _ in range(50):
                        payload = generator.randbytes(generator.randrange(0, 60))
                        data = frame(
                            generator.randrange(0, 12), generator.randrange(256), generator.randrange(0, 6), payload
                        )
                        if not connection.send(data):
                            break
        self.attack(work)


class DescriptorLimitTest(AttackCase):
    """A daemon with few descriptors, so that they run out before any limit on connections."""

    flags = [*attack_case.FLAGS, "--max-connections=100000", "--max-connections-per-peer=100000"]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        limit = cls.daemon.descriptors() + 60
        resource.prlimit(cls.daemon.pid, resource.RLIMIT_NOFILE, (limit, limit))

    def test_descriptors_run_out(self):
        def work(deadline):
            while time.monotonic() < deadline:
                sockets = open_sockets(400, self.daemon.port)
                time.sleep(0.05)
                for connection in sockets:
                    connection.close()
        self.attack(work)
        # It still accepts, by both sockets.
        for target in (self.daemon.tcp, self.daemon.unix):
            with grpc.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
                grpc.channel_ready_future(channel).result(timeout=20)


if __name__ == "__main__":
    attack_case.main()
