"""The stream of commands over local connections, against a simulated daemon."""

import os
import signal
import socket
import struct
import threading
import time
import unittest
from unittest import mock

import grpc

import client_case
import stride as st
from stride import _local_connection
from stride._local_connection import LocalConnection, LocalConnections
from stride._rpc import status_pb2
from stride._stream import Answer, CommandStream, Note
from stride.v1 import compute_service_pb2 as pb, local_service_pb2

HEADER = struct.Struct("<IIQ")
EXECUTE, STATUS = local_service_pb2.LOCAL_FRAME_EXECUTE, local_service_pb2.LOCAL_FRAME_STATUS


def frame(message, kind=EXECUTE) -> bytes:
    body = message.SerializeToString()
    return HEADER.pack(len(body), kind, 0) + body


def response(*ids, data=b"") -> pb.ExecuteResponse:
    made = pb.ExecuteResponse(results=[pb.CommandResult(id=one) for one in ids])
    if data:
        made.results[0].results.add().inline_array.data = data
    return made


def ids_of(message) -> list:
    return [one.id for one in message.results]


class ReceivingTest(unittest.TestCase):
    def setUp(self):
        here, self.daemon = socket.socketpair()
        self.connection = LocalConnection(here, watch=False)
        self.addCleanup(self.connection.close)
        self.addCleanup(self.daemon.close)

    def take(self, deadline=None):
        message = self.connection.receive(deadline)
        if message is not None:
            self.connection.advance()
        return message

    def take_all(self):
        taken = []
        while (message := self.take(0.0)) is not None:
            taken.append(ids_of(message))
        return taken

    def test_frames_split_anywhere(self):
        frames = [frame(response(i, i + 1, data=b"x" * i)) for i in range(3)]
        bytes_ = b"".join(frames)
        ends = [sum(map(len, frames[:i + 1])) for i in range(3)]
        for split in range(len(bytes_)):
            self.daemon.sendall(bytes_[:split])
            first = self.take_all()
            self.assertEqual(len(first), sum(end <= split for end in ends))
            self.daemon.sendall(bytes_[split:])
            self.assertEqual(first + self.take_all(), [[0, 1], [1, 2], [2, 3]])

    def test_one_byte_at_a_time(self):
        bytes_ = frame(response(7, data=b"y" * 300))
        for i, byte in enumerate(bytes_):
            self.assertIsNone(self.take(0.0))
            self.daemon.sendall(bytes([byte]))
        self.assertEqual(ids_of(self.take(0.0)), [7])

    def test_many_frames_in_one_read(self):
        # More than the buffer holds, so that one lies across its end.
        bytes_ = b"".join(frame(response(i, data=bytes(i % 50))) for i in range(5000))
        self.assertGreater(len(bytes_), 2 * _local_connection._BUFFER_BYTES)
        sender = threading.Thread(target=self.daemon.sendall, args=(bytes_,))
        sender.start()
        self.assertEqual([ids_of(self.take()) for _ in range(5000)], [[i] for i in range(5000)])
        sender.join()

    def test_large_frames_between_small_ones(self):
        sizes = [1, 70_000, 3, 17 << 20, 0, 65_536 - 16, 65_536, 5]
        messages = [response(i + 1, data=os.urandom(size)) for i, size in enumerate(sizes)]
        sender = threading.Thread(target=self.daemon.sendall, args=(b"".join(map(frame, messages)),))
        sender.start()
        for message in messages:
            self.assertEqual(self.take(), message)
        sender.join()

    def test_a_deadline_in_the_middle_of_a_frame(self):
        bytes_ = frame(response(1, data=b"z" * 100_000))
        self.daemon.sendall(bytes_[:50_000])
        self.assertIsNone(self.take(time.monotonic() + 0.01))
        self.assertIsNone(self.take(time.monotonic() - 1))
        self.daemon.sendall(bytes_[50_000:])
        self.assertEqual(self.take(time.monotonic() + 60).results[0].results[0].inline_array.data, b"z" * 100_000)

    def test_answer_repeats_until_advance(self):
        self.daemon.sendall(frame(response(1)) + frame(response(2)))
        self.assertEqual(ids_of(self.connection.receive()), [1])
        self.assertEqual(ids_of(self.take()), [1])
        self.assertEqual(ids_of(self.take()), [2])

    def test_interrupts_lose_no_bytes(self):
        main = threading.main_thread().ident
        go = threading.Semaphore(0)
        rounds = 300

        def play():
            for i in range(rounds):
                go.acquire()
                bytes_ = frame(response(i, data=b"w" * 1000))
                for begin in range(0, len(bytes_), 200):
                    self.daemon.sendall(bytes_[begin:begin + 200])
                    if begin == 200 * (i % 5):
                        signal.pthread_kill(main, signal.SIGINT)

        player = threading.Thread(target=play)
        player.start()
        interrupts = 0
        for i in range(rounds):
            message = None
            go.release()
            while message is None or interrupts <= i:
                try:
                    while message is None:
                        message = self.connection.receive()
                    time.sleep(0.001)  # the interrupt may not have arrived yet
                except KeyboardInterrupt:
                    interrupts += 1
            self.connection.advance()
            self.assertEqual(message, response(i, data=b"w" * 1000))
        player.join()
        self.assertEqual(interrupts, rounds)

    def test_sent_bytes_are_not_sent_again(self):
        # The state after an interrupt between the system call and the end of `flush`.
        sent = [pb.ExecuteRequest(session=name).SerializeToString() for name in ("first", "second")]
        self.connection.put(sent[0])
        message, counts = self.connection._unsent[0]
        counts.append(self.connection._socket.send(message))
        self.connection.put(sent[1])
        self.assertTrue(self.connection.flush())
        self.assertEqual(self.daemon.recv(1000), b"".join(HEADER.pack(len(one), EXECUTE, 0) + one for one in sent))

    def test_watching(self):
        here, there = socket.socketpair()
        watching = LocalConnection(here, watch=True)
        there.sendall(frame(response(4)))
        self.assertEqual(ids_of(watching.receive()), [4])
        watching.advance()
        self.assertIsNone(watching.receive(time.monotonic() + 0.001))
        self.assertIsNone(watching.receive(0.0))
        # In two pieces, the second while it watches or sleeps.
        sent = frame(response(5, data=b"x" * 1000))
        for split, seconds in ((7, 0), (HEADER.size, 0.0001), (500, 0.002)):
            there.sendall(sent[:split])
            timer = threading.Timer(seconds, there.sendall, (sent[split:],))
            timer.start()
            self.assertEqual(ids_of(watching.receive()), [5])
            watching.advance()
            timer.join()
        there.close()
        with self.assertRaises(st.Unavailable):
            watching.receive()
        watching.close()

    def test_has_news_while_another_thread_waits(self):
        waiting = threading.Thread(target=lambda: self.assertIsNone(self.take(time.monotonic() + 0.05)))
        waiting.start()
        while waiting.is_alive():
            self.assertFalse(self.connection.has_news())  # threads must not share a poll object
        self.daemon.sendall(b"x")
        self.assertTrue(self.connection.has_news())

    def test_the_status_at_the_end(self):
        self.daemon.sendall(frame(response(1)) + frame(status_pb2.Status(code=5, message="no such session"), STATUS))
        self.assertEqual(ids_of(self.take()), [1])
        for _ in range(2):  # every call reports it
            with self.assertRaisesRegex(st.NotFound, "no such session"):
                self.take()

    def test_a_status_without_an_error(self):
        self.daemon.sendall(frame(status_pb2.Status(), STATUS))
        with self.assertRaisesRegex(st.Unavailable, "ended the command stream"):
            self.take()

    def test_the_end_without_a_status(self):
        self.daemon.sendall(frame(response(1)) + frame(response(2))[:-1])
        self.daemon.close()
        self.assertEqual(ids_of(self.take()), [1])
        with self.assertRaisesRegex(st.Unavailable, "ended the command stream"):
            self.take()

    def test_the_end_with_unread_requests(self):
        self.connection.put(pb.ExecuteRequest(session="sessions/s").SerializeToString())
        self.assertTrue(self.connection.flush())
        self.daemon.sendall(frame(response(1)))
        self.daemon.close()  # which resets the connection
        self.assertEqual(ids_of(self.take()), [1])
        with self.assertRaisesRegex(st.Unavailable, "ended the command stream"):
            self.take()

    def test_invalid_frames_raise(self):
        for bytes_ in (
            HEADER.pack(0, 77, 0),
            HEADER.pack(3, EXECUTE, 0) + b"\xff\xff\xff",
            HEADER.pack(1 << 31, EXECUTE, 0),
        ):
            here, there = socket.socketpair()
            there.sendall(bytes_)
            connection = LocalConnection(here)
            with self.assertRaises(st.StrideError) as raised:
                connection.receive()
            self.assertEqual(raised.exception.code, "INTERNAL")
            connection.close()
            there.close()


class FakeDaemon:
    """Opens connections for a CommandStream. `serve(socket, requests)` is the daemon's side of each, in a
    separate thread."""

    def __init__(self, serve):
        self._serve = serve
        self.num_opened = 0
        self._threads = []

    def open(self):
        self.num_opened += 1
        here, there = socket.socketpair()
        thread = threading.Thread(target=self._run, args=(there,))
        thread.start()
        self._threads.append(thread)
        return LocalConnection(here, watch=False)

    def _run(self, there):
        with there, there.makefile("rb") as file:
            try:
                self._serve(there, self._requests(file))
            except (BrokenPipeError, ConnectionResetError):
                pass

    @staticmethod
    def _requests(file):
        while len(header := file.read(HEADER.size)) == HEADER.size:
            size, kind, _ = HEADER.unpack(header)
            assert kind == EXECUTE
            yield pb.ExecuteRequest.FromString(file.read(size))

    def join(self):
        for thread in self._threads:
            thread.join()


def answer_all(there, requests):
    for request in requests:
        there.sendall(frame(response(*(one.id for one in request.commands))))


class StreamTest(unittest.TestCase):
    def serve(self, serve=answer_all) -> CommandStream:
        self.daemon = FakeDaemon(serve)
        self.addCleanup(self.daemon.join)
        stream = CommandStream(None, "sessions/s", self.daemon)
        self.addCleanup(stream.close)
        return stream

    def send(self, stream, *ids, data=b""):
        """The answer to the last one."""
        answer = Answer()
        commands = [pb.Command(id=one) for one in ids]
        if data:
            commands[0].operation.copy.input.inline_array.data = data
        notes = {one: Note() for one in ids}
        notes[ids[-1]] = Note(answer)
        stream.send(pb.ExecuteRequest(commands=commands), notes)
        return answer

    def test_round_trips_need_no_thread(self):
        stream = self.serve()
        for i in range(1, 50):
            answer = self.send(stream, i)
            self.assertTrue(stream.wait(answer))
            self.assertEqual((answer.result.id, answer.error), (i, None))
        self.assertEqual(stream.transport, "local")
        self.assertEqual(self.daemon.num_opened, 1)
        self.assertNotIn("stride-answers", [thread.name for thread in threading.enumerate()])

    def test_long_requests_are_cut(self):
        came = []

        def serve(there, requests):
            for request in requests:
                came.append(request)
                there.sendall(frame(response(*(one.id for one in request.commands))))

        stream = self.serve(serve)
        self.assertTrue(stream.wait(self.send(stream, *range(1, 2001)), 60))
        self.assertEqual([len(one.commands) for one in came], [900, 900, 200])
        with mock.patch("stride._stream._MAX_BYTES", 10_000):
            self.assertTrue(stream.wait(self.send(stream, *range(2001, 2011), data=bytes(9_995)), 60))
        self.assertEqual([len(one.commands) for one in came[3:]], [1, 9])
        self.assertEqual([command.id for one in came for command in one.commands], list(range(1, 2011)))
        self.assertEqual({one.session for one in came}, {"sessions/s"})

    def test_many_threads(self):
        def shuffled(there, requests):
            """Answers come out of order, for up to two requests at a time."""
            kept = []
            for request in requests:
                kept.append(request.commands[0].id)
                if len(kept) == 2 or request.commands[0].id % 3 == 0:
                    there.sendall(b"".join(frame(response(one)) for one in reversed(kept)))
                    kept.clear()

        stream = self.serve(shuffled)
        failures = []

        def work(first):
            for i in range(300):
                kept = self.send(stream, first + 3 * i + 1)
                flushing = self.send(stream, first + 3 * i + 3)
                if not (stream.wait(flushing, 60) and stream.wait(kept, 60) and kept.result.id == first + 3 * i + 1):
                    failures.append(first + i)

        threads = [threading.Thread(target=work, args=(3 * 1000 * k,)) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(stream._waiting, {})

    def test_another_thread_reads_after_the_reader_returns(self):
        second = threading.Event()

        def in_two_steps(there, requests):
            for request in requests:
                if request.commands[0].id == 2:
                    there.sendall(frame(response(1)))
                    second.wait()
                    there.sendall(frame(response(2)))

        stream = self.serve(in_two_steps)
        for first_reads in (True, False):
            second.clear()
            answers = [self.send(stream, 1)]
            done = [threading.Event(), threading.Event()]

            def wait(i):
                if stream.wait(answers[i], 60):
                    done[i].set()

            threads = [threading.Thread(target=wait, args=(i,)) for i in range(2)]
            if first_reads:
                threads[0].start()
                while not stream._connection.reading:
                    time.sleep(0.001)
            answers.append(self.send(stream, 2))
            threads[1].start()
            if not first_reads:
                while not stream._connection.reading:
                    time.sleep(0.001)
                threads[0].start()
            self.assertTrue(done[0].wait(60))
            self.assertFalse(done[1].is_set())
            second.set()
            self.assertTrue(done[1].wait(60))
            for thread in threads:
                thread.join()

    def test_another_thread_reads_after_the_reader_times_out(self):
        go = threading.Event()

        def serve(there, requests):
            next(requests), next(requests)
            go.wait()
            there.sendall(frame(response(2)))
            list(requests)

        stream = self.serve(serve)
        answers = [self.send(stream, 1), self.send(stream, 2)]
        late = threading.Thread(target=stream.wait, args=(answers[0], 0.2))
        late.start()
        while not stream._connection.reading:
            time.sleep(0.001)
        other = threading.Thread(target=stream.wait, args=(answers[1], 60))
        other.start()
        late.join()
        go.set()
        other.join()
        self.assertEqual((answers[0].done, answers[1].done), (False, True))

    def test_a_late_answer(self):
        go = threading.Event()

        def late(there, requests):
            for request in requests:
                go.wait()
                there.sendall(frame(response(request.commands[0].id)))

        stream = self.serve(late)
        answer = self.send(stream, 1)
        self.assertFalse(stream.wait(answer, 0.01))
        self.assertFalse(answer.done)
        go.set()
        self.assertTrue(stream.wait(answer, 60))

    def test_neither_side_waits_for_the_other_to_read(self):
        def stubborn(there, requests):
            for request in requests:
                there.sendall(frame(response(*(one.id for one in request.commands), data=bytes(1 << 20))))

        stream = self.serve(stubborn)
        answers = [self.send(stream, i, data=bytes(1 << 20)) for i in range(1, 30)]
        self.assertTrue(stream.wait(answers[-1], 60))
        self.assertTrue(all(answer.done for answer in answers))
        # While another thread reads, and after that.
        answers = [self.send(stream, 100)]
        waiting = threading.Thread(target=stream.wait, args=(answers[0], 60))
        waiting.start()
        answers += [self.send(stream, i, data=bytes(1 << 20)) for i in range(101, 130)]
        waiting.join()
        self.assertTrue(stream.wait(answers[-1], 60))

    def test_answers_without_waiters_are_processed(self):
        answered = threading.Semaphore(0)

        def serve(there, requests):
            for request in requests:
                there.sendall(frame(response(*(one.id for one in request.commands))))
                answered.release()

        stream = self.serve(serve)
        for i in range(1, 500):
            self.send(stream, i)
            answered.acquire()
            self.assertLessEqual(len(stream._waiting), 1)

    def test_whether_all_was_answered(self):
        go_on = threading.Event()

        def serve(there, requests):
            answer_all(there, [next(requests)])
            second = next(requests)
            go_on.wait()
            answer_all(there, [second])
            next(requests)
            there.sendall(frame(status_pb2.Status(code=14, message="over"), STATUS))

        stream = self.serve(serve)
        self.assertTrue(stream.all_answered())
        self.send(stream, 1)
        while not stream.all_answered():  # no other thread reads
            pass
        answer = self.send(stream, 2)
        self.assertFalse(stream.all_answered())
        go_on.set()
        self.assertTrue(stream.wait(answer))
        self.assertTrue(stream.all_answered())
        last = self.send(stream, 3)
        while not stream.all_answered():
            pass
        self.assertIsInstance(last.error, st.Unavailable)

    def test_more_than_may_be_in_flight(self):
        with mock.patch("stride._stream._MAX_IN_FLIGHT", 100), mock.patch("stride._stream._FEW_IN_FLIGHT", 50):
            outstanding = []

            def held_back(there, requests):
                kept = []
                for request in requests:
                    kept.append(request.commands[0].id)
                    if len(kept) == 100:
                        outstanding.append(len(stream._waiting))
                        there.sendall(frame(response(*kept)))
                        kept.clear()

            stream = self.serve(held_back)
            for i in range(1, 1000):
                self.send(stream, i)
            self.assertEqual(outstanding[:9], [100] * 9)

    def test_end_is_reported_to_all_waiters_and_the_next_send_reopens(self):
        def fails(there, requests):
            if self.daemon.num_opened > 1:
                return answer_all(there, requests)
            next(requests), next(requests)
            there.sendall(frame(response(1)) + frame(status_pb2.Status(code=8, message="enough"), STATUS))

        stream = self.serve(fails)
        answers = [self.send(stream, 1, 2), self.send(stream, 3)]
        for answer in answers:
            self.assertTrue(stream.wait(answer, 60))
            self.assertIsInstance(answer.error, st.ResourceExhausted)
        again = self.send(stream, 4)
        self.assertTrue(stream.wait(again, 60))
        self.assertEqual(again.result.id, 4)
        self.assertEqual(self.daemon.num_opened, 2)

    def test_end_while_no_thread_reads(self):
        ended = threading.Event()

        def one_only(there, requests):
            request = next(requests)
            there.sendall(
                frame(response(request.commands[0].id)) + frame(status_pb2.Status(code=4, message="idle"), STATUS)
            )
            ended.set()
            list(requests)  # continues to read, as the contract requires

        stream = self.serve(one_only)
        for i in range(1, 4):
            answer = self.send(stream, i)
            self.assertTrue(stream.wait(answer, 60))
            self.assertEqual(answer.result.id, i)
            ended.wait()
            ended.clear()
        self.assertEqual(self.daemon.num_opened, 3)

    def test_an_end_in_the_middle_of_a_message(self):
        def reads_little(there, requests):
            there.recv(10_000)
            there.sendall(frame(status_pb2.Status(code=3, message="too long"), STATUS))

        stream = self.serve(reads_little)
        answer = self.send(stream, 1, data=bytes(3 << 20))
        self.assertTrue(answer.done)
        self.assertIsInstance(answer.error, st.InvalidArgument)

    def test_close_while_another_thread_waits(self):
        stream = self.serve(lambda there, requests: list(requests))
        answer = self.send(stream, 1)
        waiting = threading.Thread(target=stream.wait, args=(answer,))
        waiting.start()
        while not stream._connection.reading:
            time.sleep(0.001)
        stream.close()
        waiting.join()
        self.assertIsInstance(answer.error, st.Cancelled)
        with self.assertRaises(st.Cancelled):
            self.send(stream, 2)

    def test_interrupted_waiting(self):
        main = threading.main_thread().ident

        def interrupts(there, requests):
            for request in requests:
                bytes_ = frame(response(request.commands[0].id))
                there.sendall(bytes_[:9])
                signal.pthread_kill(main, signal.SIGINT)
                there.sendall(bytes_[9:])

        stream = self.serve(interrupts)
        for i in range(1, 200):
            interrupted = False
            answer = None
            try:
                answer = self.send(stream, i)
                stream.wait(answer)
                while not interrupted:
                    time.sleep(0.001)
            except KeyboardInterrupt:
                interrupted = True
            if answer is not None:  # else it was interrupted in `send`
                self.assertTrue(stream.wait(answer, 60))
                self.assertEqual(answer.result.id, i)

    def test_futures(self):
        go = threading.Event()

        def serve(there, requests):
            for request in requests:
                go.wait()
                if request.commands[0].id == 9:
                    return
                there.sendall(frame(response(request.commands[0].id)))

        stream = self.serve(serve)
        futures = [stream.future_of(self.send(stream, i)) for i in range(1, 6)]
        self.assertTrue(futures[1].cancel())
        self.assertFalse(futures[0].done())
        go.set()
        self.assertEqual([futures[i].result(60).id for i in (0, 2, 3, 4)], [1, 3, 4, 5])
        done = self.send(stream, 6)
        self.assertTrue(stream.wait(done, 60))
        self.assertEqual(stream.future_of(done).result(60).id, 6)
        with self.assertRaises(st.Unavailable):
            stream.future_of(self.send(stream, 9)).result(60)
        self.assertEqual(stream._watched, set())


class _Refused(grpc.RpcError):
    def __init__(self, code):
        self._code = code

    def code(self):
        return self._code


class OpeningTest(unittest.TestCase):
    def test_refused_local_connection_is_not_retried_at_once(self):
        channels = mock.Mock(target="unix:/nowhere/s")
        for code, num_asked in (
            (grpc.StatusCode.UNIMPLEMENTED, 1),
            (grpc.StatusCode.RESOURCE_EXHAUSTED, 1),
            (grpc.StatusCode.UNAVAILABLE, 2),
            (None, 1),
        ):
            connections = LocalConnections(channels)
            connect = mock.Mock(
                return_value=local_service_pb2.ConnectResponse(socket_path="/nowhere/s.regions", ticket=b"x")
            )
            if code is not None:
                connect.side_effect = _Refused(code)
            connections._stub = mock.Mock(Connect=connect)
            for _ in range(2):
                self.assertIsNone(connections.open())
            self.assertEqual(connect.call_count, num_asked)
            with mock.patch.object(time, "monotonic", return_value=time.monotonic() + 11):
                connections.open()
            self.assertEqual(connect.call_count, num_asked + 1)


if __name__ == "__main__":
    client_case.main()
