"""Helper threads that move bytes: distribution of work, and the state after errors and interrupts."""

import random
import signal
import threading
import time
import unittest
from unittest import mock

import numpy as np

import client_case
import stride as st
from stride import _callers, _shared
from stride._callers import Crew, GrpcCaller, LocalCaller, cut_into, share_of
from stride._helpers import Helpers

MIB = 1 << 20


class HelpersTest(unittest.TestCase):
    def setUp(self):
        self.helpers = Helpers()
        self.addCleanup(self.helpers.close)
        self.taken = []
        self.busy = []  # threads that process a part

    def work(self, caller, parts):
        for part in parts:
            self.busy.append(caller)
            time.sleep(0.0005)
            self.taken.append((part, caller, threading.get_ident()))
            self.busy.remove(caller)

    def test_every_part_is_taken_once(self):
        for num_callers in (1, 2, 8):
            for num_parts in (0, 1, 2, 7, 50):
                self.taken.clear()
                self.helpers.run(self.work, list(range(num_callers)), list(range(num_parts)))
                self.assertEqual(sorted(part for part, _, _ in self.taken), list(range(num_parts)))
                # Each caller belongs to one thread, the first to this one.
                self.assertEqual(
                    len({(caller, thread) for _, caller, thread in self.taken}),
                    len({caller for _, caller, _ in self.taken}),
                )
                self.assertTrue(
                    all((thread == threading.get_ident()) == (caller == 0) for _, caller, thread in self.taken)
                )

    def test_all_take_part(self):
        together = threading.Barrier(4)

        def work(caller, parts):
            for _ in parts:
                together.wait(60)

        self.helpers.run(work, list("abcd"), [1, 2, 3, 4])

    def test_busy_helper_is_not_awaited(self):
        started, go = threading.Event(), threading.Event()

        def hold(caller, parts):
            for _ in parts:
                if caller == "helper":
                    started.set()
                go.wait()

        other = threading.Thread(target=self.helpers.run, args=(hold, ["first", "helper"], [1, 2]))
        other.start()
        started.wait()
        self.helpers.run(self.work, [0, 1], list(range(10)))
        self.assertEqual([(part, caller) for part, caller, _ in self.taken], [(part, 0) for part in range(10)])
        go.set()
        other.join()

    def test_helper_that_fails_during_the_parts(self):
        for kind in (ValueError, KeyboardInterrupt):
            self.taken.clear()

            failed = threading.Event()

            def work(caller, parts):
                for part in parts:
                    if caller != 0:
                        failed.set()
                        raise kind("broken")
                    failed.wait()
                    self.taken.append(part)

            with self.assertRaisesRegex(kind, "broken"):
                self.helpers.run(work, [0, 1, 2, 3], list(range(1_000_000)))
            self.assertLess(len(self.taken), 1_000_000 - 4)
        self.helpers.run(self.work, [0, 1, 2, 3], list(range(10)))  # all are there again
        self.assertEqual(self.busy, [])

    def test_no_thread_works_after_an_error_in_the_caller(self):
        def work(caller, parts):
            if caller == 0:
                while len(self.busy) < 3:
                    time.sleep(0.0001)
                raise ValueError("broken")
            self.work(caller, parts)

        for _ in range(20):
            self.taken.clear()
            with self.assertRaisesRegex(ValueError, "broken"):
                self.helpers.run(work, [0, 1, 2, 3], list(range(100_000)))
            self.assertEqual(self.busy, [])
            num_taken = len(self.taken)
            time.sleep(0.001)
            self.assertEqual(len(self.taken), num_taken)

    def test_no_thread_works_after_an_interrupt(self):
        main = threading.main_thread().ident
        seed = random.Random(1)
        interrupts = 0
        for _ in range(100):
            timer = threading.Timer(seed.random() * 0.008, signal.pthread_kill, (main, signal.SIGINT))
            try:
                timer.start()
                self.helpers.run(self.work, [0, 1, 2, 3], list(range(40)))
                while timer.is_alive():
                    time.sleep(0.001)
                time.sleep(0.01)
            except KeyboardInterrupt:
                interrupts += 1
            self.assertLessEqual(set(self.busy), {0})  # this thread's own
            self.busy.clear()
            timer.join()
        self.assertEqual(interrupts, 100)

    def test_threads_end_with_the_helpers(self):
        before = threading.enumerate()
        self.helpers.run(self.work, [0, 1, 2], [1])
        threads = [one for one in threading.enumerate() if one not in before]
        self.assertEqual(len(threads), 2)
        self.doCleanups()
        del self.helpers
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive())


class PartsTest(unittest.TestCase):
    def test_parts_cover_all_bytes(self):
        for size in (1, 4095, MIB - 1, MIB, MIB + 1, 40_000_003, 300 * MIB + 5):
            for kind in (LocalCaller, GrpcCaller):
                for num_callers in (1, 3, 8):
                    crew = Crew([kind] * num_callers, [])
                    step = crew.upload_bytes(size)
                    self.assertTrue(kind.upload_bytes[0] <= step <= kind.upload_bytes[1], (size, kind, num_callers))
                    parts = cut_into(0, size, step)
                    self.assertEqual([0] + [end for _, end in parts], [begin for begin, _ in parts] + [size])
                    self.assertTrue(all(begin < end for begin, end in parts))
        self.assertEqual(cut_into(10, 10, 3), [])
        self.assertEqual(cut_into(10, 17, 3), [(10, 13), (13, 16), (16, 17)])

    def test_shares(self):
        self.assertEqual([share_of(size, 3, 10) for size in (1, 30, 31, 60, 61)], [10, 10, 20, 20, 30])


class TransfersTest(client_case.ClientCase):
    """Copies through a region smaller than the arrays, with more threads than processors."""

    def setUp(self):
        self.own = st.connect(self.daemon.address, timeout=120, local=client_case.LOCAL)
        self.own._shared._callers._num_threads = 8
        self.addCleanup(self.own.close)
        patch = mock.patch.object(_shared.SharedMemory, "receive", lambda *_: None)  # results are copied, too
        patch.start()
        self.addCleanup(patch.stop)

    def array(self, values, **options):
        with client_case.current(self.own):
            return st.asarray(values, **options)

    def test_odd_sizes_in_several_rounds(self):
        with mock.patch.object(_shared, "MAX_BOUNCE_BYTES", 9 * MIB + 1):
            for size in (4 * MIB + 3, 9 * MIB, 16 * MIB + 1, 37 * MIB + 4097):
                values = np.random.default_rng(size).integers(0, 256, size, np.uint8)
                np.testing.assert_array_equal(self.array(values).to_numpy(), values)
        self.assertLess(self.own._shared._bounce.size, 37 * MIB)

    def test_progress_reports_every_byte(self):
        values = np.zeros(37 * MIB + 11, np.uint8)
        told = []
        array = self.array(values, progress=lambda *amounts: told.append(amounts))
        self.assertEqual(max(told), (values.size, values.size))
        told.clear()
        array.to_numpy(progress=lambda *amounts: told.append(amounts))
        self.assertEqual(max(told), (values.size, values.size))

    def test_helper_that_fails_during_an_upload(self):
        values = np.zeros(64 * MIB, np.uint8)
        self.array(values)
        put, main = _callers.LocalCaller.put, threading.get_ident()

        def broken(caller, *arguments):
            if threading.get_ident() != main:
                raise st.Unavailable("broken")
            time.sleep(0.002)  # the others have time to wake
            put(caller, *arguments)

        region, idle = self.own._shared._bounce, list(self.own._shared._callers._idle)
        with mock.patch.object(_callers.LocalCaller, "put", broken):
            if client_case.LOCAL:
                with self.assertRaisesRegex(st.Unavailable, "broken"):
                    self.array(values)
                self.assertIsNot(self.own._shared._bounce, region)
                self.assertTrue(all(one._socket.fileno() < 0 for one in idle))
        values[:] = np.arange(values.size) % 251
        np.testing.assert_array_equal(self.array(values).to_numpy(), values)

    @unittest.skipUnless(client_case.LOCAL, "gRPC's own waits do not bear interrupts at any moment")
    def test_interrupts_amid_transfers(self):
        values = np.random.default_rng(5).integers(0, 256, 24 * MIB, np.uint8)
        array = self.array(values)
        main = threading.main_thread().ident
        seed = random.Random(2)
        for i in range(20):
            timer = threading.Timer(seed.random() * 0.03, signal.pthread_kill, (main, signal.SIGINT))
            try:
                timer.start()
                self.array(values) if i % 2 else array.to_numpy()
                timer.join()
                time.sleep(0.01)
            except KeyboardInterrupt:
                pass
            else:
                self.fail("not interrupted")
            timer.join()
            self.assertFalse(self.own._shared._bounce_lock.locked())
            if i % 5 == 4:
                np.testing.assert_array_equal(self.array(values).to_numpy(), values)


if __name__ == "__main__":
    client_case.main()
