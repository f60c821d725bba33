"""Attacks with local connections: invalid frames, silence, unread answers, abandoned calls."""

import os
import random
import time

import attack_case
import local_frames
import stubs
from attack_case import EVIL, AttackCase
from local_frames import EXECUTE, OPEN, RUN, STATUS, frame, receive

MIB = 1 << 20
# A tenant's: an eighth of attack_case's --max-threads.
MOST = 64


class LocalTest(AttackCase):
    def setUp(self):
        self.array = stubs.module("array_pb2")
        self.compute = stubs.module("compute_service_pb2")
        self.local = stubs.module("local_service_pb2")
        self.operation = stubs.module("operation_pb2")

    # --- short forms ---
    def connect(self):
        return local_frames.open_local(self.stub("LocalService"), EVIL)

    def zeros(self, handle, count):
        spec = self.array.ArraySpec(data_type=self.array.DATA_TYPE_INT8, shape=[count])
        return self.operation.Operation(creation=self.operation.Creation(fill=self.operation.Creation.Fill(spec=spec)),
                                        outputs=[self.operation.Output(handle=handle)])

    def run_request(self):
        operation = self.zeros(0, 100)
        operation.outputs[0].Clear()
        operation.outputs[0].inline_result = True
        return self.compute.RunRequest(operation=operation).SerializeToString()

    def execute(self, session, *commands):
        return frame(EXECUTE, self.compute.ExecuteRequest(session=session, commands=commands).SerializeToString())

    @staticmethod
    def send(connection, data):
        try:
            connection.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has closed us: shows in what comes back

    # --- attacks ---
    def test_invalid_frames(self):
        run = self.run_request()
        bad = [
            frame(0), frame(OPEN), frame(99), frame(STATUS), frame(RUN, size=(16 << 20) + 1),
            frame(RUN, size=0xFFFFFFFF), b"\xff" * 64,
            frame(EXECUTE, run) + frame(RUN, run), frame(EXECUTE, b"\xff" * 100),
        ]

        def work(deadline):
            while time.monotonic() < deadline:
                for data in bad:
                    with self.connect() as connection:
                        self.send(connection, data)
                        answers = []
                        while (answer := receive(connection)) is not None:
                            answers.append(answer)
                        self.assertEqual(answers[-1][0], STATUS)

        self.attack(work)

    def test_messages_of_noise(self):
        def work(deadline):
            with self.connect() as connection:
                while time.monotonic() < deadline:
                    self.send(connection, frame(RUN, os.urandom(random.randrange(1, 5000))))
                    kind, message = receive(connection)
                    self.assertEqual(kind, STATUS)
                    # In between it serves what is right.
                    self.send(connection, frame(RUN, self.run_request()))
                    kind, message = receive(connection)
                    self.assertEqual(kind, RUN, message)

        self.attack(work)

    def test_silence_and_halves(self):
        """A tenant's places are its own; half a large message holds no memory for the other half."""
        def work(deadline):
            held = []
            for i in range(MOST):
                held.append(self.connect())
                self.send(
                    held[-1],
                    (b"", frame(RUN)[:9], frame(RUN, size=16 << 20) + b"x" * 1000, frame(EXECUTE, size=100))[i % 4],
                )
            self.assertEqual(self.code_of(self.connect), "RESOURCE_EXHAUSTED")
            time.sleep(max(0, deadline - time.monotonic()))
            for connection in held:
                connection.close()

        self.attack(work)

    def test_unread_answers(self):
        def work(deadline):
            session = self.session()
            connections = [self.connect() for _ in range(8)]
            for connection in connections:
                connection.setblocking(False)
                commands = [self.compute.Command(id=1, operation=self.zeros(1, 4 * MIB - 4096))]
                commands += [self.compute.Command(id=i, fetch=self.compute.Fetch(handle=1)) for i in range(2, 500)]
                try:
                    connection.send(self.execute(session, *commands))
                except BlockingIOError:
                    pass
            time.sleep(max(0, deadline - time.monotonic()))
            for connection in connections:
                connection.close()

        self.attack(work)

    def test_abandoned_calls(self):
        def work(deadline):
            session = self.session()
            while time.monotonic() < deadline:
                connection = self.connect()
                commands = [self.compute.Command(id=i, operation=self.zeros(i, 1000), wait=True) for i in range(1, 50)]
                self.send(connection, random.choice((frame(RUN, self.run_request()), self.execute(session, *commands))))
                if random.random() < 0.5:
                    time.sleep(random.random() * 0.002)
                connection.close()

        self.attack(work)

    def test_unused_tickets(self):
        def work(deadline):
            codes = set()
            while time.monotonic() < deadline:
                codes.add(
                    self.code_of(
                        lambda: self.stub("LocalService").Connect(
                            self.local.ConnectRequest(), metadata=EVIL, timeout=30
                        )
                    )
                )
            self.assertEqual(codes, {"OK", "RESOURCE_EXHAUSTED"})

        self.attack(work)


if __name__ == "__main__":
    attack_case.main()
