"""The calls of large transfers over local connections, against a simulated daemon and a real one."""

import os
import signal
import socket
import struct
import threading
import time
import unittest
from unittest import mock

import numpy as np

import client_case
import stride as st
from stride import _callers, _shared, _transfer
from stride._callers import Callers, GrpcCaller, LocalCaller
from stride._daemon import PrivateDaemon
from stride._rpc import status_pb2
from stride.v1 import array_service_pb2 as pb, local_service_pb2 as local_pb, region_service_pb2

MIB = 1 << 20
HEADER = struct.Struct("<IIQ")
PUT, PUT_END, FETCH, STATUS = (
    local_pb.LOCAL_FRAME_PUT,
    local_pb.LOCAL_FRAME_PUT_END,
    local_pb.LOCAL_FRAME_FETCH,
    local_pb.LOCAL_FRAME_STATUS,
)


def frame(kind, message) -> bytes:
    body = message.SerializeToString()
    return HEADER.pack(len(body), kind, 0) + body


def status(code=0, message="") -> bytes:
    return frame(STATUS, status_pb2.Status(code=code, message=message))


def chunk(offset, size) -> pb.FetchArrayResponse:
    return pb.FetchArrayResponse(chunk=region_service_pb2.RegionRange(offset=offset, size=size))


class LocalCallerTest(unittest.TestCase):
    def setUp(self):
        here, self.daemon = socket.socketpair()
        self.caller = LocalCaller(here)
        self.addCleanup(self.caller.close)
        self.addCleanup(self.daemon.close)

    def frames(self, count):
        """The frames that the caller sent: (kind, timeout, message)."""
        def exactly(size):
            bytes_ = self.daemon.recv(size, socket.MSG_WAITALL) if size else b""
            self.assertEqual(len(bytes_), size)
            return bytes_

        found = []
        for _ in range(count):
            size, kind, timeout = HEADER.unpack(exactly(HEADER.size))
            found.append((kind, timeout, exactly(size)))
        return found

    def fetch(self, name="a", timeout=None):
        return self.caller.fetch(pb.FetchArrayRequest(name=name), timeout)

    def upload(self, timeout=None):
        return LocalCaller.upload(pb.PutArrayRequest(data=b"x"), pb.PutArrayRequest(data=b"yz"), timeout)

    def test_an_upload(self):
        self.caller.put(self.upload(2.5), None)
        self.assertEqual(
            self.frames(3),
            [
                (PUT, 2_500_000_000, pb.PutArrayRequest(data=b"x").SerializeToString()),
                (PUT, 0, pb.PutArrayRequest(data=b"yz").SerializeToString()),
                (PUT_END, 0, b""),
            ],
        )
        self.daemon.sendall(frame(PUT, pb.PutArrayResponse()))
        self.caller.finish(None)
        self.assertTrue(self.caller.is_quiet())

    def test_several_uploads(self):
        for count in (0, 1, 5, 1000):
            for _ in range(count):
                self.caller.put(self.upload(), None)
                self.frames(3)
            sender = threading.Thread(target=self.daemon.sendall, args=(frame(PUT, pb.PutArrayResponse()) * count,))
            sender.start()
            self.caller.finish(None)
            sender.join()
            self.assertTrue(self.caller.is_quiet())

    def test_refused_upload_raises_the_status(self):
        for _ in range(2):
            self.caller.put(self.upload(), None)
        self.daemon.sendall(frame(PUT, pb.PutArrayResponse()) + status(8, "no room"))
        with self.assertRaisesRegex(st.ResourceExhausted, "no room"):
            self.caller.finish(None)

    def test_invalid_answer_to_an_upload_is_an_error(self):
        self.caller.put(self.upload(), None)
        self.daemon.sendall(frame(FETCH, chunk(0, 5)))
        with self.assertRaises(st.Internal):
            self.caller.finish(None)

    def test_upload_without_an_answer_raises_deadline_exceeded(self):
        self.caller.put(self.upload(), None)
        with self.assertRaises(st.DeadlineExceeded):
            self.caller.finish(time.monotonic() + 0.01)

    def test_upload_raises_the_status_sent_before_the_daemon_closed(self):
        self.caller.put(self.upload(), None)
        self.daemon.sendall(frame(PUT, pb.PutArrayResponse()) + status(5, "no such session"))
        self.daemon.shutdown(socket.SHUT_RDWR)
        with self.assertRaisesRegex(st.NotFound, "no such session"):
            self.caller.put(self.upload(), None)

    def test_upload_raises_unavailable_when_the_daemon_closes(self):
        self.caller.put(self.upload(), None)
        self.daemon.close()
        with self.assertRaises(st.Unavailable):
            self.caller.put(self.upload(), None)

    def test_frames_split_anywhere(self):
        answers = [chunk(0, 5), chunk(5, 1 << 40), pb.FetchArrayResponse()]
        bytes_ = b"".join(frame(FETCH, one) for one in answers) + status()
        for split in range(1, len(bytes_)):
            replies = self.fetch()
            go = threading.Event()

            def send():
                self.daemon.sendall(bytes_[:split])
                go.wait()
                self.daemon.sendall(bytes_[split:])

            sender = threading.Thread(target=send)
            sender.start()
            if split > len(frame(FETCH, answers[0])):
                self.assertEqual(next(replies), answers[0])
                go.set()
                self.assertEqual(list(replies), answers[1:])
            else:
                go.set()
                self.assertEqual(list(replies), answers)
            sender.join()
        self.assertTrue(self.caller.is_quiet())

    def test_many_frames_in_one_read(self):
        answers = [chunk(i, i + 1) for i in range(5000)]
        bytes_ = b"".join(frame(FETCH, one) for one in answers) + status()
        self.assertGreater(len(bytes_), 4 * _callers._BUFFER_BYTES)
        replies = self.fetch()
        sender = threading.Thread(target=self.daemon.sendall, args=(bytes_,))
        sender.start()
        self.assertEqual(list(replies), answers)
        sender.join()

    def test_long_words(self):
        for size in (_callers._BUFFER_BYTES - 40, _callers._BUFFER_BYTES, 300_000):
            replies = self.fetch()
            bytes_ = frame(FETCH, chunk(0, 1)) + status(3, "w" * size)
            sender = threading.Thread(target=self.daemon.sendall, args=(bytes_,))
            sender.start()
            self.assertEqual(next(replies), chunk(0, 1))
            with self.assertRaises(st.InvalidArgument) as raised:
                next(replies)
            self.assertEqual(raised.exception.message, "w" * size)
            sender.join()

    def test_an_end_anywhere(self):
        bytes_ = frame(FETCH, chunk(0, 5)) + status()
        for split in (0, 1, HEADER.size, HEADER.size + 1, len(bytes_) - 17, len(bytes_) - 1):
            here, there = socket.socketpair()
            caller = LocalCaller(here)
            replies = caller.fetch(pb.FetchArrayRequest(name="a"), None)
            there.sendall(bytes_[:split])
            there.shutdown(socket.SHUT_RDWR)
            with self.assertRaises(st.Unavailable):
                list(replies)
            caller.close()
            there.close()

    def test_invalid_answers_raise(self):
        for bytes_ in (
            HEADER.pack(0, 77, 0),
            HEADER.pack(3, FETCH, 0) + b"\xff\xff\xff",
            frame(PUT, pb.PutArrayResponse()),
            HEADER.pack(1 << 31, STATUS, 0),
        ):
            here, there = socket.socketpair()
            caller = LocalCaller(here)
            there.sendall(bytes_)
            with self.assertRaises(st.Internal):
                list(caller.fetch(pb.FetchArrayRequest(name="a"), None))
            caller.close()
            there.close()

    def test_late_answers_raise_deadline_exceeded(self):
        replies = self.fetch(timeout=0.02)
        self.assertEqual(self.frames(1)[0][:2], (FETCH, 20_000_000))
        self.daemon.sendall(frame(FETCH, chunk(0, 5)) + b"1234")
        self.assertEqual(next(replies), chunk(0, 5))
        with self.assertRaises(st.DeadlineExceeded):
            next(replies)

    def test_unread_requests_raise_deadline_exceeded(self):
        for timeout in (0.02, 0, -1.0):
            with self.assertRaises(st.DeadlineExceeded):
                large = pb.PutArrayRequest(data=bytes(1_000_000))
                self.caller.put(LocalCaller.upload(large, large, timeout), time.monotonic() + timeout)

    def test_calls_in_sequence_on_one_connection(self):
        first, second = self.fetch("a"), self.fetch("b")
        self.assertEqual(
            [pb.FetchArrayRequest.FromString(message).name for _, _, message in self.frames(2)], ["a", "b"]
        )
        self.daemon.sendall(frame(FETCH, chunk(0, 1)) + status() + frame(FETCH, chunk(7, 1)) + status(13, "broken"))
        self.assertEqual(list(first), [chunk(0, 1)])
        self.assertEqual(next(second), chunk(7, 1))
        with self.assertRaisesRegex(st.Internal, "broken"):
            next(second)

    def test_the_first_of_two_fails(self):
        first, _ = self.fetch("a"), self.fetch("b")
        self.daemon.sendall(status(5, "gone") + frame(FETCH, chunk(7, 1)) + status())
        with self.assertRaisesRegex(st.NotFound, "gone"):
            list(first)
        self.assertFalse(self.caller.is_quiet())


class FakeConnections:
    """Gives Callers up to this many connections; the other sides are in `daemons`."""

    def __init__(self, count):
        self.left, self.daemons = count, []

    def connect(self):
        if not self.left:
            return None
        self.left -= 1
        here, there = socket.socketpair()
        self.daemons.append(there)
        return here


def is_open(daemon) -> bool:
    """Whether a connection is open, seen from the daemon's side."""
    try:
        return daemon.recv(1, socket.MSG_DONTWAIT) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


class CallersTest(unittest.TestCase):
    def callers(self, count=100, num_threads=4):
        self.connections = FakeConnections(count)
        self.addCleanup(lambda: [daemon.close() for daemon in self.connections.daemons])
        channels = mock.Mock(num_bulk=8)
        channels.bulk.side_effect = lambda i: mock.MagicMock()
        made = Callers(channels, self.connections)
        made._num_threads = num_threads
        self.addCleanup(made.rest)
        return made

    def check(self, crew, size, count, kind=LocalCaller):
        self.assertEqual([type(one) for one in crew.callers], [kind] * count)
        self.assertEqual(len(crew.ranges), count)
        self.assertEqual([begin for begin, _ in crew.ranges], [0] + [end for _, end in crew.ranges[:-1]])
        self.assertEqual(crew.ranges[-1][1], size)

    def test_sizes(self):
        callers = self.callers()
        for size, count in ((MIB, 1), (7 * MIB, 1), (8 * MIB, 2), (40 * MIB + 1, 4), (500 * MIB, 4)):
            with callers.crew(size) as crew:
                self.check(crew, size, count)
        self.assertEqual(len(self.connections.daemons), 4)

    def test_fewer_connections_than_wanted(self):
        callers = self.callers(2)
        with callers.crew(40 * MIB) as crew:
            self.check(crew, 40 * MIB, 2)

    def test_none_at_all(self):
        callers = self.callers(0)
        for size, count in ((40 * MIB, 2), (500 * MIB, 4)):
            with callers.crew(size) as crew:
                self.check(crew, size, count, GrpcCaller)
        with Callers(callers._channels, None).crew(40 * MIB) as crew:
            self.check(crew, 40 * MIB, 2, GrpcCaller)

    def test_connections_are_limited_per_session(self):
        callers = self.callers(num_threads=8)
        with callers.crew(100 * MIB) as one, callers.crew(100 * MIB) as two:
            with callers.crew(100 * MIB) as three:
                self.check(one, 100 * MIB, 8)
                self.check(two, 100 * MIB, 8)
                self.check(three, 100 * MIB, 4, GrpcCaller)
        with callers.crew(100 * MIB) as crew:
            self.check(crew, 100 * MIB, 8)
        callers.rest()
        with callers.crew(100 * MIB) as crew:
            self.check(crew, 100 * MIB, 8)
        self.assertEqual(len(self.connections.daemons), 24)

    def test_idle_connections_are_reused(self):
        callers = self.callers()
        with callers.crew(40 * MIB) as first, callers.crew(4 * MIB) as other:
            self.assertEqual(len({*first.callers, *other.callers}), 5)
        for _ in range(3):
            with callers.crew(20 * MIB) as again:
                self.assertLessEqual({*again.callers}, {*first.callers, *other.callers})
        self.assertEqual(len(self.connections.daemons), 5)

    def test_closed_or_unexpectedly_readable_connections_are_not_reused(self):
        callers = self.callers()
        with callers.crew(12 * MIB):
            pass
        dead, loud, sound = self.connections.daemons
        dead.shutdown(socket.SHUT_RDWR)
        loud.sendall(b"?")
        with callers.crew(12 * MIB) as crew:
            self.check(crew, 12 * MIB, 3)
            self.assertEqual([is_open(one) for one in self.connections.daemons], [False, False, True, True, True])
        with callers.crew(12 * MIB):
            self.assertEqual(len(self.connections.daemons), 5)

    def test_connection_is_not_reused_after_an_exception(self):
        callers = self.callers()
        for kind in (ValueError, KeyboardInterrupt):
            with callers.crew(4 * MIB):  # another transfer's
                with self.assertRaises(kind), callers.crew(12 * MIB):
                    raise kind
        self.assertEqual([is_open(one) for one in self.connections.daemons], [True] + [False] * 6)

    def test_rest(self):
        callers = self.callers()
        with callers.crew(4 * MIB) as busy:
            with callers.crew(12 * MIB):
                pass
            callers.rest()
            self.assertEqual([is_open(one) for one in self.connections.daemons], [True] + [False] * 3)
            self.assertTrue(busy.callers[0].is_quiet())

    def test_connection_in_use_at_close_is_closed_after_use(self):
        callers = self.callers()
        with callers.crew(4 * MIB) as busy:
            with callers.crew(8 * MIB):
                pass
            callers.close()
            self.assertEqual([is_open(one) for one in self.connections.daemons], [True, False, False])
            self.assertTrue(busy.callers[0].is_quiet())
        self.assertFalse(is_open(self.connections.daemons[0]))

    def test_a_forked_child_closes_its_copies_only(self):
        callers = self.callers()
        with callers.crew(4 * MIB) as busy:
            with callers.crew(8 * MIB) as idle:
                pass
            child = os.fork()
            if child == 0:
                with callers._lock:  # as if another thread had it
                    callers.leave_to_parent()
                closed = all(one._socket.fileno() < 0 for one in (*busy.callers, *idle.callers))
                os._exit(0 if closed and callers._idle == [] else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual([is_open(one) for one in self.connections.daemons], [True] * 3)
            self.assertTrue(all(one.is_quiet() for one in (*busy.callers, *idle.callers)))


class TransferTest(client_case.ClientCase):
    def setUp(self):
        self.own = self.connect(self.daemon)

    def connect(self, daemon):
        session = st.connect(daemon.address, timeout=120, local=client_case.LOCAL)
        session._shared._callers._num_threads = 4  # however few processors there are
        self.addCleanup(session.close)
        return session

    def array(self, values, **options):
        with client_case.current(self.own):
            return st.asarray(values, **options)

    def idle(self):
        return list(self.own._shared._callers._idle)

    def test_bytes_arrive(self):
        connects = []
        if client_case.LOCAL:
            connect = self.own._shared._callers._local.connect
            self.own._shared._callers._local.connect = lambda: connects.append(1) or connect()
        for size in (2 * MIB, 8 * MIB + 1, 40 * MIB + 13, 300 * MIB + 5):
            values = np.random.default_rng(size).integers(0, 256, size, np.uint8)
            array = self.array(values)
            for _ in range(2):  # through the bounce region, and in a separate region
                np.testing.assert_array_equal(array.to_numpy(), values)
            np.testing.assert_array_equal(self.array(values[:size // 2]).to_numpy(), values[:size // 2])
        if client_case.LOCAL:
            self.assertEqual(len(connects), 5)  # the stream's, and four
            self.assertEqual(len(self.idle()), 4)

    def test_interrupted_transfer_closes_its_connections(self):
        def stop(done, total):
            raise KeyboardInterrupt

        values = np.random.default_rng(1).integers(0, 256, 70 * MIB, np.uint8)
        array = self.array(values)
        before = self.idle()
        self.assertEqual(len(before), 4 if client_case.LOCAL else 0)
        for bounce in (True, False):
            region = self.own._shared._bounce
            with (
                mock.patch.object(
                    _shared.SharedMemory, "receive", (lambda *_: None) if bounce else _shared.SharedMemory.receive
                ),
                mock.patch.object(_transfer, "_FETCHES_OF_THREAD", 100),
            ):  # further calls follow
                with self.assertRaises(KeyboardInterrupt):
                    self.own._read(array._node, stop)
            self.assertEqual(self.idle(), [])
            self.assertTrue(all(one._socket.fileno() < 0 for one in before))
            if bounce:
                self.assertIsNot(self.own._shared._bounce, region)
            np.testing.assert_array_equal(array.to_numpy(), values)
            before = self.idle()
        with self.assertRaises(KeyboardInterrupt):
            self.array(values, progress=stop)
        self.assertEqual(self.idle(), [])
        np.testing.assert_array_equal(self.array(values).to_numpy(), values)

    def test_daemon_killed_during_a_transfer(self):
        values = np.zeros(100 * MIB, np.uint8)
        for up in (True, False):
            daemon = PrivateDaemon(client_case.strided(), client_case.FLAGS)
            self.addCleanup(daemon.stop)
            self.own = self.connect(daemon)
            array = self.array(values)

            def kill(done, total):
                daemon._process.send_signal(signal.SIGKILL)
                daemon._process.wait()

            # Some calls have not started when the daemon is killed.
            with (
                mock.patch.object(_shared.SharedMemory, "receive", return_value=None),
                mock.patch.object(_transfer, "_FETCHES_OF_THREAD", 100),
            ):
                with self.assertRaises(st.Unavailable):
                    self.array(values, progress=kill) if up else array.to_numpy(progress=kill)
            self.assertEqual(self.idle(), [])

    def test_a_refused_transfer(self):
        array = self.array(np.zeros(40 * MIB, np.uint8))
        array._node.handle, handle = 999_999, array._node.handle
        try:
            with self.assertRaises(st.NotFound):
                array.to_numpy()
        finally:
            array._node.handle = handle
        self.assertTrue((array.to_numpy() == 0).all())

    def test_transfer_past_its_deadline(self):
        endless = st.RawKernel(
            'extern "C" __global__ void f(float* x) { for (volatile int i = 0; i < 1 << 27; ++i) x[0] += 1; }', "f"
        )
        with client_case.current(self.own):
            out = st.zeros(MIB, dtype=st.float32)
            out.to_numpy()
            st.RawKernel('extern "C" __global__ void f(float* x) {}', "f")(1, 1, (out,))
            self.own.synchronize()
            endless(1, 1, (out,))
        with mock.patch.object(self.own, "timeout", 0.05), self.assertRaises(st.DeadlineExceeded):
            out.to_numpy()
        self.assertEqual(out.to_numpy().shape, (MIB,))

    def test_forked_child_leaves_connections_to_its_parent(self):
        values = np.random.default_rng(2).integers(0, 256, 40 * MIB, np.uint8)
        array = self.array(values)
        before = self.idle()
        child = os.fork()
        if child == 0:
            os._exit(0 if self.idle() == [] and all(one._socket.fileno() < 0 for one in before) else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        np.testing.assert_array_equal(array.to_numpy(), values)
        self.assertEqual(set(self.idle()), set(before))

    def test_uploads_release_the_memory_of_deleted_arrays(self):
        values = np.zeros(3 * MIB, np.uint8)
        for _ in range(30):
            self.array(values)
        for _ in range(1000):  # releases are asynchronous
            held = sum(one["nbytes"] for one in self.own.list_arrays())
            if held <= 2 * values.nbytes:
                break
        self.assertLessEqual(held, 2 * values.nbytes)


if __name__ == "__main__":
    client_case.main()
