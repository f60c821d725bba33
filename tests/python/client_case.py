"""The base of all tests of the Python client: a private daemon and a session on it.

Each test file is run as `name_test.py STRIDED`, with the built package on PYTHONPATH."""

import contextlib
import doctest
import os
import sys
import unittest
import unittest.mock

import numpy as np

import stride as st
from stride import _dtypes, _local, _session
from stride._daemon import PrivateDaemon
from stride.v1 import compute_service_pb2

# Types that NumPy has, so that its results are the reference.
DTYPES = [dtype for dtype in _dtypes.NUMBERS if dtype is not _dtypes.bfloat16]
# The kind of device that the suites run on, as in the integration tests.
DEVICE_KIND = os.environ.get("STRIDE_TEST_DEVICE_KIND", "cpu")
# Whether commands travel by local connections.
LOCAL = os.environ.get("STRIDE_TEST_TRANSPORT", "local") == "local"
# Flags of a daemon with such devices.
FLAGS = {"cpu": ["--no-cuda", "--cpu-devices=1x2"], "cuda": []}[DEVICE_KIND]


class ClientCase(unittest.TestCase):
    daemon = None
    # Whether loops of a test become the host's as those of a program do. Otherwise the service computes each
    # iteration.
    learns_loops = False

    @classmethod
    def setUpClass(cls):
        if not cls.learns_loops:
            for name, value in (("is_host_place", lambda session: False), ("FREQUENT", 1 << 60)):
                patch = unittest.mock.patch.object(_local, name, value)
                patch.start()
                cls.addClassCleanup(patch.stop)
        cls.daemon = PrivateDaemon(strided(), FLAGS)
        cls.addClassCleanup(cls.daemon.stop)
        cls.session = st.connect(cls.daemon.address, timeout=120, local=LOCAL)
        cls.session.__enter__()
        cls.addClassCleanup(cls.session.close)
        assert cls.session.transport == ("local" if LOCAL else "grpc")
        cls.device = next((device.name for device in cls.session.devices() if device.kind == DEVICE_KIND), None)
        if cls.device is None:
            print(f"no device of kind {DEVICE_KIND} here")  # ctest and ci/gpu search for this text
            raise unittest.SkipTest(f"no device of kind {DEVICE_KIND} here")

    def run_examples(self, *modules):
        """The examples in their docstrings, of which there is at least one."""
        for module in modules:
            with self.subTest(module=module.__name__):
                result = doctest.testmod(module, extraglobs={"stride": st, "st": st, "np": np})
                self.assertGreater(result.attempted, 0)
                self.assertEqual(result.failed, 0)

    def same(self, ours, numpys, **tolerance):
        """Type, shape and elements; exact unless a tolerance is given."""
        numpys = np.asarray(numpys)
        self.assertIsInstance(ours, st.Array)
        self.assertEqual((ours.dtype, ours.shape), (numpys.dtype, numpys.shape))
        values = np.asarray(ours)
        self.assertEqual((values.dtype, values.shape), (numpys.dtype, numpys.shape))
        if tolerance:
            np.testing.assert_allclose(values, numpys, **tolerance)
        else:
            np.testing.assert_array_equal(values, numpys)


@contextlib.contextmanager
def current(session):
    """Within, creation functions use this session, which stays open."""
    token = _session._entered.set((session,))
    try:
        yield session
    finally:
        _session._entered.reset(token)


class Sent:
    """Counts what a session sends while it is entered."""

    def __init__(self, session):
        self._stream = session._stream

    def __enter__(self):
        self.commands = []
        self.num_messages = 0
        self.sizes = []  # commands of each message
        send = self._stream.send

        def counted(request, notes, pieces=()):
            self.sizes.append(sum(num for _, num in pieces) + len(request.commands))
            for piece, _ in pieces:
                self.commands += compute_service_pb2.ExecuteRequest.FromString(piece).commands
            self.commands += request.commands
            self.num_messages += 1
            send(request, notes, pieces)

        self._stream.send = counted
        return self

    def __exit__(self, *_):
        del self._stream.send

    @property
    def kinds(self):
        return [command.operation.WhichOneof("kind") for command in self.commands if command.HasField("operation")]


_STRIDED = sys.argv[1] if len(sys.argv) > 1 else ""


def strided():
    return _STRIDED


def main():
    unittest.main(module="__main__", argv=sys.argv[:1] + sys.argv[2:])
