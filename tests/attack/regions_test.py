"""Attacks with regions: floods of their socket, tickets guessed or used twice, memory kept, or changed while
the daemon uses it."""

import itertools
import mmap
import os
import random
import socket
import sys
import threading
import time

import attack_case
import grpc
import stubs
from attack_case import EVIL, AttackCase

MIB = 1 << 20
SILENT = 100


class RegionsTest(AttackCase):
    flags = [*attack_case.FLAGS, f"--region-bytes={64 * MIB}"]

    def setUp(self):
        self.array = stubs.module("array_pb2")
        self.array_service = stubs.module("array_service_pb2")
        self.regions = stubs.module("region_service_pb2")
        self.path = self.daemon.unix_path + ".regions"
        self.local = grpc.insecure_channel(self.daemon.unix, options=[("grpc.use_local_subchannel_pool", 1)])
        self.addCleanup(self.local.close)

    def state(self):
        return {**super().state(), "regions": self.region_bytes()}

    @staticmethod
    def excess(before, now):
        more = AttackCase.excess(before, now)
        if now["regions"] > before["regions"]:
            more["regions"] = (before["regions"], now["regions"])
        return more

    # --- short forms ---
    def region_bytes(self):
        """As the daemon's own mappings have it."""
        total = 0
        with open(f"/proc/{self.daemon.pid}/maps") as maps:
            for line in maps:
                if "memfd:stride-region" in line:
                    begin, end = line.split()[0].split("-")
                    total += int(end, 16) - int(begin, 16)
        return total

    def create(self, session, size=MIB):
        request = self.regions.CreateRegionRequest(parent=session, size_bytes=size)
        return self.stub("RegionService").CreateRegion(request, metadata=EVIL, timeout=30)

    def connect(self, seconds=10):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.settimeout(seconds)
        try:
            connection.connect(self.path)
        except OSError:
            connection.close()
            raise
        return connection

    def redeem(self, ticket):
        """The descriptor, or None."""
        with self.connect() as connection:
            connection.send(ticket)
            try:
                descriptors = socket.recv_fds(connection, 1, 1)[1]
            except ConnectionResetError:
                return None
        return descriptors[0] if descriptors else None

    def messages(self, session, region, handle, size, *chunks):
        spec = self.array.ArraySpec(data_type=self.array.DATA_TYPE_UINT8, shape=[size])
        header = self.array_service.PutArrayRequest.Header(
            parent=session, array_id=str(handle), spec=spec, region=region
        )
        yield self.array_service.PutArrayRequest(header=header)
        for offset, length in chunks:
            yield self.array_service.PutArrayRequest(chunk=self.regions.RegionRange(offset=offset, size=length))

    def put(self, *arguments):
        return self.stub("ArrayService").PutArray(self.messages(*arguments), metadata=EVIL, timeout=30)

    def map(self, name, hand_over=False):
        request = self.regions.MapArrayRequest(name=name, hand_over=hand_over)
        return self.stub("RegionService", self.local).MapArray(request, metadata=EVIL, timeout=60)

    def put_inline(self, session, handle, data, overwrite=False):
        spec = self.array.ArraySpec(data_type=self.array.DATA_TYPE_UINT8, shape=[len(data)])
        header = self.array_service.PutArrayRequest.Header(
            parent=session, array_id=str(handle), spec=spec, overwrite=overwrite
        )
        messages = [self.array_service.PutArrayRequest(header=header), self.array_service.PutArrayRequest(data=data)]
        self.stub("ArrayService").PutArray(iter(messages), metadata=EVIL, timeout=30)
        return f"{session}/arrays/{handle}"

    def delete(self, name):
        self.stub("ArrayService").DeleteArray(
            self.array_service.DeleteArrayRequest(name=name), metadata=EVIL, timeout=30
        )

    # --- attacks ---
    def test_map_array_of_another_tenant(self):
        def work(deadline):
            session = self.session()
            gone = self.put_inline(session, 1, bytes(100))
            self.delete(gone)
            ended = self.put_inline(self.session(), 1, bytes(100))
            pb = stubs.module("session_service_pb2")
            self.stub("SessionService").DeleteSession(
                pb.DeleteSessionRequest(name=ended.split("/arrays")[0]), metadata=EVIL
            )
            while time.monotonic() < deadline:
                for name in (gone, ended, f"{session}/arrays/77", "sessions/calm/arrays/1", "tenants/calm/arrays/x"):
                    for hand_over in (False, True):
                        code = self.code_of(lambda: self.map(name, hand_over))
                        self.assertIn(code, ("NOT_FOUND", "INVALID_ARGUMENT"), name)

        self.attack(work)

    def test_loans_without_end(self):
        def work(deadline):
            session = self.session()
            name = self.put_inline(session, 1, bytes(1000))
            held = []
            for _ in range(256):
                reply = self.map(name)
                held.append(self.connect())
                held[-1].send(reply.ticket)
                os.close(socket.recv_fds(held[-1], 1, 1)[1][0])
            while time.monotonic() < deadline:
                for hand_over in (False, True):
                    code = self.code_of(lambda: self.map(name, hand_over))
                    self.assertEqual(code, "FAILED_PRECONDITION" if hand_over else "RESOURCE_EXHAUSTED")
            self.assertEqual(
                self.code_of(lambda: self.put_inline(session, 1, bytes(1000), True)), "FAILED_PRECONDITION"
            )
            for connection in held:
                connection.close()

        self.attack(work)

    def test_mapping_by_tcp(self):
        def work(deadline):
            name = self.put_inline(self.session(), 1, bytes(1000))
            request = self.regions.MapArrayRequest(name=name)
            while time.monotonic() < deadline:
                with self.assertRaises(grpc.RpcError) as raised:
                    self.stub("RegionService").MapArray(request, metadata=EVIL, timeout=60)
                self.assertEqual(raised.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)
                self.assertIn("Unix socket", raised.exception.details())

        self.attack(work)

    def test_mapped_memory_used_after_its_loan(self):
        def work(deadline):
            kept = []
            session = self.session()
            for handle in itertools.count(1):
                if time.monotonic() > deadline:
                    break
                name = self.put_inline(session, handle, b"x" * MIB)
                reply = self.map(name, hand_over=handle % 2 == 1)
                connection = self.connect()
                connection.send(reply.ticket)
                fd = socket.recv_fds(connection, 1, 1)[1][0]
                if handle % 2 == 1:
                    kept.append(mmap.mmap(fd, reply.memory_bytes))
                    with self.assertRaises(OSError):
                        os.ftruncate(fd, 0)
                else:
                    kept.append(mmap.mmap(fd, reply.memory_bytes, prot=mmap.PROT_READ))
                    with self.assertRaises(PermissionError):
                        mmap.mmap(fd, reply.memory_bytes)
                    self.delete(name)
                os.close(fd)
                self.assertEqual(kept[-1][reply.offset], ord("x"))
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)  # the loan has ended
                connection.close()
            # Another array's bytes never come there, and the daemon has the pages back.
            self.put_inline(session, 1 << 40, b"y" * MIB)
            for mapping in kept:
                end = time.monotonic() + 60
                while mapping[0] != 0:
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.001)
                mapping.close()

        self.attack(work)

    def test_floods_of_the_socket(self):
        def work(deadline):
            silent = []
            while time.monotonic() < deadline:
                try:
                    silent.append(self.connect(1))
                    if random.random() < 0.5:
                        silent[-1].send(os.urandom(random.choice((1, 32, 33, 5000))))
                except (BlockingIOError, TimeoutError, BrokenPipeError, ConnectionResetError):
                    pass  # its backlog is full, or it has closed us
                if len(silent) > SILENT:
                    silent.pop(random.randrange(SILENT)).close()
            # A client with a ticket is served during the flood.
            fd = self.redeem(self.create(self.session()).ticket)
            self.assertIsNotNone(fd)
            os.close(fd)
            for connection in silent:
                connection.close()

        self.attack(work)

    def test_tickets_guessed_and_used_twice(self):
        def work(deadline):
            made = self.create(self.session())
            os.close(self.redeem(made.ticket))
            while time.monotonic() < deadline:
                for ticket in (made.ticket, made.ticket[:-1], made.region.name.encode(), os.urandom(32), b"\0" * 32):
                    self.assertIsNone(self.redeem(ticket))

        self.attack(work)

    def test_region_memory_used_after_delete(self):
        def work(deadline):
            kept = []
            session = self.session()
            regions = self.stub("RegionService")
            while time.monotonic() < deadline:
                made = self.create(session, 16 * MIB)
                fd = self.redeem(made.ticket)
                kept.append(mmap.mmap(fd, 16 * MIB))
                os.close(fd)
                kept[-1][0] = 1
                regions.DeleteRegion(self.regions.DeleteRegionRequest(name=made.region.name), metadata=EVIL, timeout=30)
                # The daemon has its pages back.
                self.assertEqual(kept[-1][0], 0)
            for mapping in kept:
                mapping.close()

        self.attack(work)

    def test_memory_that_changes_shrinks_and_has_holes(self):
        def work(deadline):
            session = self.session()
            made = self.create(session, 4 * MIB)
            fd = self.redeem(made.ticket)
            mapping = mmap.mmap(fd, 4 * MIB)
            with self.assertRaises(OSError):
                os.ftruncate(fd, 0)
            stop = threading.Event()

            def scribble():
                for i in itertools.count():
                    if stop.is_set():
                        return
                    mapping[(i * 4099) % (4 * MIB)] = i & 255
                    if i % 1000 == 0:
                        mapping.madvise(mmap.MADV_REMOVE)  # a hole over all of it

            thread = threading.Thread(target=scribble)
            thread.start()
            for handle in itertools.count(1):
                if time.monotonic() > deadline:
                    break
                self.put(session, made.region.name, handle, 4 * MIB, (0, 4 * MIB))
                self.stub("ArrayService").DeleteArray(
                    self.array_service.DeleteArrayRequest(name=f"{session}/arrays/{handle}"), metadata=EVIL)
            stop.set()
            thread.join()
            mapping.close()
            os.close(fd)

        self.attack(work)

    def test_places_outside(self):
        def work(deadline):
            session, other = self.session(), self.session()
            mine = self.create(session, MIB).region.name
            foreign = self.create(other, MIB).region.name
            most = (1 << 63) - 1
            for handle in itertools.count(1):
                if time.monotonic() > deadline:
                    break
                offset = random.choice((-1, 0, 1, MIB - 1, MIB, MIB + 1, most, -most))
                size = random.choice((-1, 1, MIB, MIB + 1, most, -most))
                inside = 0 <= offset <= MIB and 0 <= size <= MIB - offset
                code = self.code_of(lambda: self.put(session, mine, handle, MIB, (offset, size)))
                self.assertEqual(code, "OK" if inside and size == MIB else "INVALID_ARGUMENT", (offset, size))
                self.assertEqual(
                    self.code_of(lambda: self.put(session, foreign, handle + (1 << 40), 16, (0, 16))), "NOT_FOUND"
                )

        self.attack(work)

    def test_regions_larger_than_memory(self):
        def work(deadline):
            session = self.session()
            while time.monotonic() < deadline:
                for size in (33 * MIB, 1 << 40, (1 << 63) - 1, 0, -1):
                    code = self.code_of(lambda: self.create(session, size))
                    self.assertIn(code, ("RESOURCE_EXHAUSTED", "INVALID_ARGUMENT"))
                # As many as it may have, and one more; they go with the session.
                while self.code_of(lambda: self.create(session, 1)) == "OK":
                    pass
                pb = stubs.module("session_service_pb2")
                self.stub("SessionService").DeleteSession(pb.DeleteSessionRequest(name=session), metadata=EVIL)
                session = self.session()

        self.attack(work)

    def test_sessions_deleted_during_calls(self):
        def work(deadline):
            pb = stubs.module("session_service_pb2")
            while time.monotonic() < deadline:
                session = self.session()
                made = self.create(session, 8 * MIB)

                def slow():
                    yield from self.messages(session, made.region.name, 1, 8 * MIB, (0, 4 * MIB))
                    self.stub("SessionService").DeleteSession(pb.DeleteSessionRequest(name=session), metadata=EVIL)
                    yield self.array_service.PutArrayRequest(
                        chunk=self.regions.RegionRange(offset=4 * MIB, size=4 * MIB)
                    )

                code = self.code_of(lambda: self.stub("ArrayService").PutArray(slow(), metadata=EVIL, timeout=30))
                self.assertIn(code, ("OK", "CANCELLED", "NOT_FOUND"))

        self.attack(work)


if __name__ == "__main__":
    if not hasattr(socket, "recv_fds"):
        sys.exit("needs Python 3.9")
    attack_case.main()
