"""Large results in memory that the daemon shares: its owner, lifetime and reuse."""

import gc
import os
import signal
import unittest
from unittest import mock

import numpy as np

import client_case
import stride as st
from stride import _region_pool, _shared, _transfer
from stride._daemon import PrivateDaemon
from stride._region import address_of
from stride.v1 import session_service_pb2

MIB = 1 << 20


class ResultTest(client_case.ClientCase):
    def setUp(self):
        self.own = self.connect(self.daemon)
        pays = mock.patch.object(
            _region_pool.RegionPool, "_pays", lambda pool, size: len(pool._lent) < _region_pool.MAX_REGIONS
        )
        pays.start()
        self.addCleanup(pays.stop)

    def connect(self, daemon):
        session = st.connect(daemon.address, timeout=120, local=client_case.LOCAL)
        self.addCleanup(session.close)
        return session

    def array(self, values, **options):
        with client_case.current(self.own):
            return st.asarray(values, **options)

    def place(self, values):
        """The region that contains the values, and their offset."""
        return self.own._shared.arrays.find(address_of(values), values.nbytes)

    def filled(self, value, size=3 * MIB):
        return self.array(np.full(size, value, np.uint8))

    def idle(self):
        return [region.name for region in self.own._shared.arrays._idle]

    def test_large_result_is_in_a_region_and_writable(self):
        values = np.random.default_rng(1).random((600, 1000))
        array = self.array(values)
        # np.array copies what the array interface gives into memory of its own.
        for in_region, read in (
            (True, array.to_numpy),
            (True, lambda: np.asarray(array)),
            (False, lambda: np.array(array)),
            (True, lambda: np.from_dlpack(array)),
        ):
            got = read()
            np.testing.assert_array_equal(got, values)
            self.assertEqual(self.place(got) is not None, in_region)
            self.assertTrue(got.flags.writeable and got.flags.c_contiguous)
            got += 1
        np.testing.assert_array_equal(array.to_numpy(), values)

    def test_types_and_shapes(self):
        for dtype in (np.int8, np.float16, np.complex128, bool):
            values = (np.arange(2 * MIB) % 100).astype(dtype).reshape(2, 1, MIB)
            got = self.array(values).to_numpy()
            self.assertIsNotNone(self.place(got), dtype)
            self.assertEqual(got.dtype, values.dtype)
            np.testing.assert_array_equal(got, values)
        got = np.asarray(self.array(values), dtype=np.float64)
        np.testing.assert_array_equal(got, values.astype(np.float64))

    def test_accepted_array_is_read_without_commands(self):
        array = self.filled(1)
        with client_case.Sent(self.own) as sent:
            self.assertTrue((array.to_numpy() == 1).all())
        self.assertEqual(sent.num_messages, 0)
        more = array + 1
        with client_case.Sent(self.own) as sent:
            self.assertTrue((more.to_numpy() == 2).all())
            self.assertEqual(sent.num_messages, 1)
            self.assertTrue((more.to_numpy() == 2).all())
            self.assertEqual(sent.num_messages, 1)
        wrong = more.to_device("cuda:7")
        for _ in range(2):
            with self.assertRaises(st.NotFound) as raised:
                wrong.to_numpy()
            self.assertIn("result_test.py", raised.exception.origin)

    def test_read_without_a_copy_uses_no_helper_threads(self):
        self.own._shared._callers._num_threads = 4
        values = np.random.default_rng(4).integers(0, 256, 40 * MIB, np.uint8)
        array = self.array(values)
        with mock.patch.object(self.own._helpers, "run", side_effect=AssertionError("handed over")):
            got = array.to_numpy()
            np.testing.assert_array_equal(got, values)
            np.testing.assert_array_equal(self.array(got).to_numpy(), values)

    def test_small_result_is_in_ordinary_memory(self):
        got = self.filled(1, _shared.MIN_RESULT_BYTES).to_numpy()
        self.assertIsNone(self.place(got))
        self.assertTrue(got.flags.writeable)

    def test_memory_is_reused_once_unreferenced(self):
        first, second = self.filled(1), self.filled(2)
        got = first.to_numpy()
        name, _ = self.place(got)
        del got
        self.assertEqual(self.idle(), [name])
        got = second.to_numpy()
        self.assertEqual(self.place(got), (name, 0))
        self.assertTrue((got == 2).all())

    def test_region_of_another_size_is_not_reused(self):
        got = self.filled(1).to_numpy()
        name, _ = self.place(got)
        del got
        for size in (2 * MIB, 4 * MIB, 30 * MIB):
            self.assertNotEqual(self.place(self.filled(2, size).to_numpy())[0], name)
        self.assertEqual(self.place(self.filled(2, 3 * MIB - 100).to_numpy())[0], name)

    def test_view_holds_the_region(self):
        got = self.filled(1).to_numpy()
        name, _ = self.place(got)
        for make in (lambda a: a[5:9], lambda a: a.reshape(3, MIB)[1].view(np.int32)[::7], memoryview, np.from_dlpack):
            view = make(got)
            other = self.filled(2).to_numpy()
            del got
            gc.collect()
            self.assertEqual(self.idle(), [])
            another = self.filled(3).to_numpy()
            self.assertNotEqual(self.place(another)[0], name)
            self.assertTrue((np.asarray(view).view(np.uint8) == 1).all() if np.asarray(view).flags.c_contiguous else
                            (np.asarray(view) == 0x01010101).all())
            del other, another, view
            self.own._shared.arrays.drop_idle()
            got = self.filled(1).to_numpy()
            name, _ = self.place(got)

    def test_concurrent_results_use_separate_regions(self):
        first, second = self.filled(1).to_numpy(), self.filled(2).to_numpy()
        self.assertFalse(np.shares_memory(first, second))
        self.assertNotEqual(self.place(first)[0], self.place(second)[0])
        self.assertTrue((first == 1).all() and (second == 2).all())

    def test_idle_memory_is_bounded(self):
        with mock.patch.object(_region_pool, "MAX_IDLE_BYTES", 7 * MIB):
            results = [self.filled(i).to_numpy() for i in range(4)]
            names = [self.place(one)[0] for one in results]
            while results:
                del results[0]
        self.assertEqual(self.idle(), names[2:])
        self.own._shared.arrays.rest()
        self.assertEqual(self.idle(), names[2:])
        self.own._shared.arrays.rest()
        self.assertEqual(self.idle(), [])

    def test_regions_are_created_for_programs_that_release_results(self):
        mock.patch.stopall()
        array, other = self.filled(1), self.filled(2, 5 * MIB)
        kept = [array.to_numpy() for _ in range(10)]
        # The first read may be the only one; results that are not released get fewer and fewer regions.
        self.assertEqual([i for i, one in enumerate(kept) if self.place(one) is not None], [1, 2, 4, 8])
        self.assertIsNone(self.place(other.to_numpy()))
        names = {self.place(kept[i])[0] for i in (1, 2, 4, 8)}
        del kept
        self.assertEqual(set(self.idle()), names)
        self.assertIn(self.place(array.to_numpy())[0], names)
        self.own._shared.arrays.drop_idle()
        got = array.to_numpy()
        names = set()
        for _ in range(6):
            names.add(self.place(got)[0])
            got = array.to_numpy()  # the last lives until this is there
        self.assertEqual(len(names), 2)

    def test_many_results_do_not_take_all_regions(self):
        with mock.patch.object(_region_pool, "MAX_REGIONS", 3):
            results = [self.filled(i).to_numpy() for i in range(5)]
            self.assertEqual([self.place(one) is not None for one in results], [True] * 3 + [False] * 2)
            for i, one in enumerate(results):
                self.assertTrue((one == i).all())

    def test_upload_from_a_region_is_not_copied(self):
        values = np.random.default_rng(3).random(MIB)
        got = self.array(values).to_numpy()
        in_place = []
        put = _transfer._put_shared
        with mock.patch.object(
            _transfer, "_put_shared", lambda *arguments: (in_place.append(arguments[-2:]), put(*arguments))
        ):
            up = self.array(got)
            part = self.array(got[1000:500_000])
            small = self.array(got[5:200_000])
        self.assertEqual(in_place, [(0, None), (8000, None), (40, None)])
        np.testing.assert_array_equal(up.to_numpy(), values)
        np.testing.assert_array_equal(part.to_numpy(), values[1000:500_000])
        np.testing.assert_array_equal(small.to_numpy(), values[5:200_000])
        got[:] = 0
        np.testing.assert_array_equal(up.to_numpy(), values)

    def test_without_quota_results_are_ordinary_memory(self):
        daemon = PrivateDaemon(client_case.strided(), [*client_case.FLAGS, f"--region-bytes={24 * MIB}"])
        self.addCleanup(daemon.stop)
        self.own = self.connect(daemon)
        source = self.filled(5)
        results = [source.to_numpy() for _ in range(4)]
        self.assertEqual([self.place(one) is not None for one in results], [True, True, False, False])
        for one in results:
            self.assertTrue((one == 5).all())
        name, _ = self.place(results[0])
        del results[0], one
        self.assertEqual(self.place(source.to_numpy()), None)  # not asked again so soon
        with mock.patch.object(self.own._shared, "_next_result", 0.0):
            self.assertEqual(self.place(source.to_numpy())[0], name)
        # Idle regions are released for a new one.
        self.own.empty_shared(5 * MIB, np.uint8)
        self.assertEqual(self.idle(), [])

    def test_a_daemon_without_regions(self):
        daemon = PrivateDaemon(client_case.strided(), [*client_case.FLAGS, "--region-bytes=0"])
        self.addCleanup(daemon.stop)
        self.own = self.connect(daemon)
        self.assertTrue((self.filled(5).to_numpy() == 5).all())

    def test_an_interrupted_read_leaves_its_region_alone(self):
        def stop(done, total):
            raise KeyboardInterrupt

        source = self.filled(1, 64 * MIB)
        with self.assertRaises(KeyboardInterrupt):
            source.to_numpy(progress=stop)
        self.assertEqual((self.idle(), self.own._shared.arrays._lent), ([], {}))
        self.assertTrue((source.to_numpy() == 1).all())

    def test_regions_that_the_daemon_does_not_know(self):
        source = self.filled(1)
        kept, dropped = source.to_numpy(), source.to_numpy()
        del dropped
        for name in [self.place(kept)[0], *self.idle()]:
            self.own._shared._delete(name, wait=True)
        got = source.to_numpy()
        self.assertTrue((got == 1).all())
        self.assertEqual(self.idle(), [])
        kept[:] = 7
        self.assertTrue((self.array(kept).to_numpy() == 7).all())
        self.assertIsNone(self.place(kept))

    def test_result_outlives_the_session(self):
        got, asked_for = self.filled(1).to_numpy(), self.own.empty_shared(MIB)
        asked_for[:] = 4
        self.own.close()
        self.assertTrue((got == 1).all() and (asked_for == 4).all())
        got[:] = 2
        self.assertEqual(int(got[-1]), 2)

    def test_result_outlives_a_session_that_the_daemon_ends(self):
        got = self.filled(1).to_numpy()
        self.own._sessions.DeleteSession(session_service_pb2.DeleteSessionRequest(name=self.own.name))
        # Another thread of the daemon ends it; later work of the same threads follows it.
        self.assertTrue((self.connect(self.daemon) and got == 1).all())

    def test_result_outlives_the_daemon(self):
        for end in (signal.SIGTERM, signal.SIGKILL):
            daemon = PrivateDaemon(client_case.strided(), client_case.FLAGS)
            self.addCleanup(daemon.stop)
            self.own = self.connect(daemon)
            got = self.filled(1).to_numpy()
            self.assertIsNotNone(self.place(got))
            daemon._process.send_signal(end)
            daemon._process.wait()
            self.assertTrue((got == 1).all())
            got[:] = 2

    def test_a_forked_child_has_a_copy(self):
        got, source = self.filled(1).to_numpy(), self.filled(3)
        child = os.fork()
        if child == 0:
            sound = bool((got == 1).all())
            got[:] = 2
            os._exit(0 if sound else 1)
        _, status = os.waitpid(child, 0)
        self.assertEqual(status, 0)
        self.assertTrue((got == 1).all())
        self.assertIsNone(self.place(got))
        self.assertTrue((source.to_numpy() == 3).all())


if __name__ == "__main__":
    client_case.main()
