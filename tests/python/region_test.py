"""Memory shared with the daemon: used automatically where it is available."""

import gc
import threading
import unittest
from unittest import mock

import grpc
import numpy as np

import client_case
import stride as st
from stride import _region, _shared, _transfer

MIB = 1 << 20


def has_region() -> bool:
    with open("/proc/self/maps") as maps:
        return any("memfd:stride-region" in line for line in maps)


class RegionTest(client_case.ClientCase):
    def setUp(self):
        self.own = st.connect(self.daemon.address, timeout=120, local=client_case.LOCAL)
        self.addCleanup(self.own.close)

    def array(self, values):
        with client_case.current(self.own):
            return st.asarray(values)

    def round_trip(self, values):
        back = np.asarray(self.array(values))
        np.testing.assert_array_equal(back, values)

    def test_large_arrays_travel_through_a_region(self):
        random = np.random.default_rng(1)
        for size in (2 * MIB, 2 * MIB + 1, 5 * MIB + 3, 8 * MIB, 9 * MIB, 37 * MIB + 11, 150 * MIB + 77):
            self.round_trip(random.integers(0, 256, size, np.uint8))
        self.assertIsNotNone(self.own._shared._bounce)
        self.assertTrue(has_region())

    def test_many_connections_share_a_region(self):
        self.own = st.connect(self.daemon.address, timeout=120, num_bulk_channels=40, local=client_case.LOCAL)
        self.addCleanup(self.own.close)
        self.round_trip(np.arange(50 * MIB + 1, dtype=np.int64))
        self.assertIsNotNone(self.own._shared._bounce)

    def test_small_arrays_travel_in_messages(self):
        least = _shared.MIN_LOCAL_BYTES if client_case.LOCAL else _shared.MIN_BYTES
        self.round_trip(np.arange(least - 1, dtype=np.uint8))
        self.assertIsNone(self.own._shared._bounce)
        self.round_trip(np.arange(least, dtype=np.uint8))
        region = self.own._shared._bounce
        self.assertLess(region.size, 8 * MIB)
        # Smaller arrays also use an existing region where a call is cheap.
        uploads = []
        put = _transfer._put_shared
        with mock.patch.object(_transfer, "_put_shared", lambda *arguments: (uploads.append(1), put(*arguments))):
            for size in ((64 << 10) + 1, 300_000, MIB - 1):
                self.round_trip(np.arange(size, dtype=np.uint8))
        self.assertEqual(len(uploads), 3 if client_case.LOCAL else 0)
        self.round_trip(np.arange(5 * MIB, dtype=np.uint8))
        self.assertGreater(self.own._shared._bounce.size, region.size)

    def test_views_and_results(self):
        values = np.arange(4 * MIB, dtype=np.float32).reshape(1024, 4096)
        array = self.array(values)
        np.testing.assert_array_equal(np.asarray(-array.T), -values.T)

    def test_several_threads(self):
        errors = []

        def work(seed):
            try:
                for i in range(3):
                    self.round_trip(np.random.default_rng(seed).integers(0, 256, 3 * MIB + seed + i, np.uint8))
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])

    def test_arrays_in_shared_memory(self):
        values = self.own.empty_shared((3, MIB), np.float64)
        self.assertEqual((values.shape, values.dtype, float(values.sum())), ((3, MIB), np.float64, 0.0))
        values[:] = np.arange(3 * MIB).reshape(3, MIB)
        with mock.patch.object(_shared.SharedMemory, "_bounce_region", side_effect=AssertionError("copied")):
            array = self.array(values[1:])
        np.testing.assert_array_equal(np.asarray(array), values[1:])
        self.own.close()
        self.assertEqual(values[2, 5], 2 * MIB + 5)
        values[0, 0] = 7

    def test_unreferenced_region_is_deleted(self):
        values = self.own.empty_shared(MIB, np.uint8)
        name = next(iter(self.own._shared.arrays._lent))
        del values
        gc.collect()
        self.assertEqual(self.own._shared.arrays._lent, {})
        from stride.v1 import region_service_pb2 as pb
        stub = self.own._shared._stub
        with self.assertRaises(grpc.RpcError) as raised:
            for _ in range(1000):  # it was asked for without waiting
                stub.DeleteRegion(pb.DeleteRegionRequest(name=name))
        self.assertEqual(raised.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_sizes(self):
        self.assertEqual(self.own.empty_shared(0).shape, (0,))
        self.assertEqual(self.own.empty_shared((), np.int8).shape, ())
        with self.assertRaises(st.ResourceExhausted):
            self.own.empty_shared(1 << 45, np.uint8)

    def test_lost_region_is_created_again(self):
        values = np.random.default_rng(2).integers(0, 256, 3 * MIB, np.uint8)
        self.round_trip(values)
        shared = self.own._shared
        shared._delete(shared._bounce.name)
        with mock.patch.object(_shared, "_PAUSE_SECONDS", 0):
            for _ in range(50):
                self.round_trip(values)
        self.assertIsNotNone(shared._bounce)

    def test_without_its_socket_bytes_travel_in_messages(self):
        with mock.patch.object(_region, "fetch_descriptor", side_effect=PermissionError("no")):
            self.round_trip(np.arange(5 * MIB, dtype=np.uint8))
        self.assertIsNone(self.own._shared._bounce)
        self.assertGreater(self.own._shared._next_try, 0)

    def test_interrupted_upload_raises_the_interrupt(self):
        for kind in (ValueError, KeyboardInterrupt):
            def stop(done, total):
                raise kind("enough")

            with self.assertRaisesRegex(kind, "enough"), client_case.current(self.own):
                st.asarray(np.zeros(40 * MIB, np.uint8), progress=stop)
            self.assertIsNone(self.own._shared._bounce)
        self.round_trip(np.full(9 * MIB, 3, np.uint8))

    def test_interrupted_transfer_abandons_its_region(self):
        values = np.zeros(64 * MIB, np.uint8)
        array = self.array(values)
        region = self.own._shared._bounce

        def stop(done, total):
            raise KeyboardInterrupt

        with (
            self.assertRaises(KeyboardInterrupt),
            mock.patch.object(_shared.SharedMemory, "receive", return_value=None),
        ):
            self.own._read(array._node, stop)
        self.assertIsNot(self.own._shared._bounce, region)
        self.round_trip(np.full(9 * MIB, 3, np.uint8))


if __name__ == "__main__":
    client_case.main()
