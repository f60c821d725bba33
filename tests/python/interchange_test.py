"""Arrays of other libraries: by DLPack, ml_dtypes' bfloat16, and memory on a GPU of this machine."""

import array
import contextlib
import gc
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest
import unittest.mock

import numpy as np

import client_case
import stride as st
from stride import _cuda_memory, _dlpack, _interchange, _mapping
from stride.v1 import region_service_pb2

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None
try:
    import torch
except ImportError:
    torch = None
try:
    import jax
except ImportError:
    jax = None
try:
    import cupy
except ImportError:
    cupy = None
try:
    import numba.cuda
except ImportError:
    numba = None

_ON_HOST = client_case.DEVICE_KIND == "cpu"
_PATIENCE = 100  # seconds; enough on an overloaded machine


class _Exporter:
    """An object with only DLPack's methods. `change(tensor)` alters the tensors of its capsules."""

    def __init__(self, values, device=(1, 0), change=None):
        self.values, self.device, self.change = values, device, change
        self.asked = []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        self.asked.append(options)
        version = options.get("max_version")
        capsule = self.values.__dlpack__(**({"max_version": version} if version else {}))
        tensor = _interchange._tensor_in(capsule)
        tensor.device.device_type = self.device[0]
        if self.change is not None:
            self.change(tensor)
        return capsule


class _OldExporter(_Exporter):
    def __dlpack__(self, stream=None):
        return super().__dlpack__()


class _OnDevice:
    """An array on a device, as CuPy and PyTorch export it."""

    def __init__(self, **interface):
        self.__cuda_array_interface__ = {
            "shape": (2, 3),
            "typestr": "<f4",
            "data": (4096, False),
            "version": 3,
            **interface,
        }


class _FakeDriver:
    """Device memory in a bytes object that begins at address 4096."""

    def __init__(self, memory):
        self.memory, self.copies = memory, []

    def copy(self, pointer, num_bytes):
        self.copies.append((pointer, num_bytes))
        return self.memory[pointer - 4096:pointer - 4096 + num_bytes]


class InterchangeTest(client_case.ClientCase):
    @unittest.skipIf(_cuda_memory.load_driver() is not None, "this machine has a CUDA driver")
    def test_no_driver(self):
        with self.assertRaisesRegex(st.Unavailable, "CUDA driver"):
            st.asarray(_OnDevice())

    def test_layouts(self):
        host = np.arange(12, dtype=np.float32).reshape(3, 4)
        driver = _FakeDriver(host.tobytes())
        read = lambda **interface: _cuda_memory.read(_OnDevice(**interface).__cuda_array_interface__, driver)
        np.testing.assert_array_equal(read(shape=(3, 4)), host)
        np.testing.assert_array_equal(read(shape=(3, 4), strides=None), host)
        np.testing.assert_array_equal(read(shape=(4, 3), strides=(4, 16)), host.T)
        np.testing.assert_array_equal(read(shape=(3, 2), strides=(16, 8)), host[:, ::2])
        np.testing.assert_array_equal(read(shape=(3, 4), strides=(-16, 4), data=(4096 + 32, True)), host[::-1])
        self.assertEqual(read(shape=(0, 4), data=(0, False)).shape, (0, 4))
        self.assertEqual(driver.copies[0], (4096, 48))
        self.assertEqual(driver.copies[-1], (4096, 48))
        with self.assertRaises(st.DataTypeMismatch):
            read(typestr="|V3")
        with self.assertRaises(st.Unimplemented):
            read(mask=_OnDevice())

    def test_dlpack_in(self):
        base = np.arange(24)
        layouts = [lambda a: a.reshape(4, 6), lambda a: a.reshape(4, 6).T, lambda a: a.reshape(4, 6)[::-1, ::2],
                   lambda a: a[:0], lambda a: a[5:6].reshape(()), lambda a: a.reshape(2, 3, 4)[:, 1]]
        for dtype in client_case.DTYPES:
            for layout in layouts:
                values = layout(base.astype(dtype))
                for source in (values, _Exporter(values), values.__dlpack__(), values.__dlpack__(max_version=(1, 0))):
                    self.same(st.from_dlpack(source), values)
                # As if NumPy did not take it.
                capsule = values.__dlpack__()
                np.testing.assert_array_equal(_interchange._copied(_interchange._tensor_in(capsule), None), values)
        read_only = np.arange(4)
        read_only.setflags(write=False)
        self.same(st.from_dlpack(read_only), np.arange(4))
        self.same(st.asarray(_Exporter(base)), base)
        self.same(st.from_dlpack(st.arange(3), copy=True), np.arange(3))
        with self.assertRaises(BufferError):
            st.from_dlpack(base, copy=False)
        for wrong in (3, [1, 2], "text"):
            with self.assertRaisesRegex(TypeError, "__dlpack__"):
                st.from_dlpack(wrong)

    def test_dlpack_of_a_gpu(self):
        host = np.arange(12, dtype=np.float32).reshape(3, 4)

        def on_device(tensor):
            tensor.data, tensor.byte_offset = 4096, 8

        for kind in (_Exporter, _OldExporter):
            for values, expected in ((host, host), (host[:, ::2], host[:, ::2]), (host.T, host.T)):
                driver = _FakeDriver(bytes(8) + host.tobytes())
                source = kind(values, (2, 0), on_device)
                np.testing.assert_array_equal(_interchange.read(source, driver), expected)
                self.assertEqual(len(driver.copies), 1)
        # The consumer's stream is CUDA's default one.
        source = _Exporter(host, (2, 0), on_device)
        _interchange.read(source, _FakeDriver(bytes(8) + host.tobytes()))
        self.assertEqual(source.asked, [{"stream": 1, "max_version": (1, 0)}])
        if _cuda_memory.load_driver() is None:
            with self.assertRaisesRegex(st.Unavailable, "CUDA driver"):
                st.from_dlpack(_Exporter(host, (2, 0), on_device))
        with self.assertRaisesRegex(BufferError, "device type 10"):
            st.from_dlpack(_Exporter(host, (10, 0)))

    def test_invalid_dlpack_is_refused(self):
        host = np.arange(4, dtype=np.int32)

        def lanes(tensor):
            tensor.dtype.lanes = 2

        def opaque(tensor):
            tensor.dtype.code = 3

        def wide(tensor):
            tensor.dtype.bits = 128

        for change in (lanes, opaque, wide):
            with self.assertRaisesRegex(st.DataTypeMismatch, "DLPack's code"):
                _interchange.read(_Exporter(host, (13, 0), change), _FakeDriver(host.tobytes()))
        taken = host.__dlpack__()

        class Once:
            def __dlpack__(self, **_):
                return taken

            def __dlpack_device__(self):
                return (1, 0)

        np.from_dlpack(Once())
        with self.assertRaisesRegex(BufferError, "taken before"):
            st.from_dlpack(taken)

    def test_dlpack_out(self):
        x = st.asarray(np.arange(6.0).reshape(2, 3))
        for options in ({}, {"copy": True}, {"max_version": (1, 0)}, {"dl_device": (1, 0)}, {"stream": -1},
                        {"max_version": (2, 5), "copy": False}):
            capsule = (x + 1).__dlpack__(**options)
            tensor = _interchange._tensor_in(capsule)
            self.assertEqual((tensor.ndim, tuple(tensor.shape[:2]), tensor.device.device_type), (2, (2, 3), 1))
            self.same(st.from_dlpack(capsule), np.arange(6.0).reshape(2, 3) + 1)
        self.assertIn("versioned", repr(x.__dlpack__(max_version=(1, 0))))
        # A GPU's array is mapped where the consumer asks for its device.
        on_cpu = x.session.devices()[0].kind == "cpu"
        for options in ({"dl_device": (2, 0)}, {"stream": 5}) if on_cpu else ({"stream": 5},):
            with self.assertRaises(BufferError):
                x.__dlpack__(**options)
        given = np.from_dlpack(x)
        if given.flags.writeable:
            given[...] = 7  # is the consumer's own
        self.same(x, np.arange(6.0).reshape(2, 3))

    def test_large_results_are_not_copied_here(self):
        x = st.ones((512, 512)) * 2
        for _ in range(3):  # a single read is not worth a region
            given = np.from_dlpack(x)
        address = given.__array_interface__["data"][0]
        self.assertIsNotNone(self.session._shared.arrays.find(address, given.nbytes))
        self.assertEqual(given.sum(), 2 * 512 * 512)

    def test_buffers(self):
        self.same(st.asarray(memoryview(np.arange(6.0).reshape(2, 3))), np.arange(6.0).reshape(2, 3))
        self.same(st.asarray(array.array("i", [1, 2])), np.array([1, 2], np.int32))
        self.same(st.asarray(bytearray(b"abc")), np.frombuffer(b"abc", np.uint8))
        self.same(st.frombuffer(b"abcd", np.uint16), np.frombuffer(b"abcd", np.uint16))

        class Interface:
            values = np.arange(12.0).reshape(3, 4)[:, ::2]
            __array_interface__ = values.__array_interface__

        self.same(st.asarray(Interface()), Interface.values)
        self.same(st.ones((3, 2)) + st.asarray(Interface()), Interface.values + 1)

    @unittest.skipIf(torch is None, "PyTorch is not installed")
    def test_torch(self):
        values = np.arange(6, dtype=np.float32).reshape(2, 3)
        x = st.asarray(values)
        tensor = x.to_torch()
        np.testing.assert_array_equal(tensor.numpy(), values)
        tensor[...] = 0
        self.same(x, values)
        np.testing.assert_array_equal(torch.from_dlpack(x).numpy(), values)
        for source in (torch.from_numpy(values), torch.from_numpy(values).T):
            self.same(st.asarray(source), source.numpy())
            self.same(st.from_dlpack(source), source.numpy())
        if ml_dtypes is not None:
            half = torch.from_numpy(values).to(torch.bfloat16)
            self.same(st.asarray(half), values.astype(ml_dtypes.bfloat16))
            self.assertTrue(torch.equal(st.from_dlpack(half).to_torch(), half))

    @unittest.skipIf(jax is None, "JAX is not installed")
    def test_jax(self):
        halves = [np.float16, *([ml_dtypes.bfloat16] if ml_dtypes else [])]
        for dtype in (np.float32, np.int8, np.uint32, np.complex64, bool, *halves):
            values = np.arange(6).reshape(2, 3).astype(dtype)
            source = jax.numpy.asarray(values)
            self.same(st.from_dlpack(source), values)
            self.same(st.asarray(source), values)
            x = st.asarray(values)
            np.testing.assert_array_equal(np.asarray(jax.numpy.asarray(x)), values)
            if dtype in (np.float32, np.int8, np.complex64):
                np.testing.assert_array_equal(np.asarray(jax.dlpack.from_dlpack(x)), values)

    @unittest.skipIf(ml_dtypes is None, "ml_dtypes is not installed")
    def test_bfloat16_by_dlpack(self):
        values = np.arange(6, dtype=np.float32).reshape(2, 3).astype(ml_dtypes.bfloat16)

        def renamed(tensor):
            tensor.dtype.code = _dlpack.BFLOAT

        self.same(st.from_dlpack(_Exporter(values.view(np.uint16), change=renamed)), values)
        with self.assertRaisesRegex(BufferError, "to_torch"):
            st.asarray(values).__dlpack__()

    @unittest.skipIf(ml_dtypes is None, "ml_dtypes is not installed")
    def test_bfloat16(self):
        host = np.array([0.5, -1.25, 3.0, 1e30, np.inf], ml_dtypes.bfloat16)
        x = st.asarray(host)
        self.assertEqual(x.dtype, st.bfloat16)
        self.same(x, host)
        self.same(x + x, host + host)
        self.same(x * 2.0 + 1, (host * ml_dtypes.bfloat16(2) + ml_dtypes.bfloat16(1)))
        self.same(x.astype(st.float32), host.astype(np.float32))
        self.same(st.asarray([1.0, 2.5]).astype(st.bfloat16), np.array([1, 2.5], ml_dtypes.bfloat16))
        self.same(x > 0, host > 0)
        self.same(x + st.ones(5, dtype=st.float32), host.astype(np.float32) + np.float32(1))
        self.same(x[:3].astype(st.float16) + x[:3], (host[:3].astype(np.float32) * 2))
        self.same(st.max(x[:4]), np.asarray(host[:4].max()))
        self.same(st.sqrt(st.abs(x)), np.sqrt(np.abs(host.astype(np.float32))).astype(ml_dtypes.bfloat16))
        self.same(st.concat([x, x])[::2], np.concatenate([host, host])[::2])
        self.assertEqual(st.result_type(st.bfloat16, st.int8), st.bfloat16)
        self.assertTrue(st.isdtype(st.bfloat16, "real floating"))


def read_back(mapping):
    """The elements, by whatever library reads memory of that device."""
    if _ON_HOST:
        return np.asarray(mapping)
    return _interchange.read(mapping)


def workers_of(daemon):
    """Process ids."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        try:
            parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
            if int(parent) == daemon._process.pid and b"stride-worker" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except (OSError, IndexError, ValueError):
            continue
    return found


_MAPS_AND_WAITS = """
import sys
import stride as st
session = st.connect(sys.argv[1], timeout=100).__enter__()
mapping = st.load(sys.argv[2]).map_memory()
print("mapped", flush=True)
sys.stdin.read()
"""


class MappedMemoryTest(client_case.ClientCase):
    def test_elements_and_layouts(self):
        base = np.arange(24)
        for dtype in client_case.DTYPES:
            x = st.asarray(base.astype(dtype).reshape(4, 6))
            for view in (x, x.T, x[::-1, ::2], x[1], x[2, 3], st.broadcast_to(x[0], (3, 6))):
                with view.map_memory() as mapping:
                    self.assertEqual((mapping.shape, mapping.dtype), (view.shape, view.dtype))
                    self.assertTrue(mapping.read_only)
                    np.testing.assert_array_equal(read_back(mapping), view.to_numpy())
        with self.assertRaisesRegex(st.FailedPrecondition, "without elements"):
            st.zeros((0, 3)).map_memory()

    def test_pending_result_is_mapped_when_ready(self):
        x = st.arange(1000, dtype=st.float64)
        for _ in range(20):
            x = x * 1.5 - 1
        np.testing.assert_array_equal(read_back(x.map_memory()), x.to_numpy())
        large = st.ones((3000, 2000)) * 3
        mapping = large.map_memory()
        self.assertEqual(read_back(mapping).sum(), 18e6)
        self.same(large[0, :3] + 1, np.full(3, 4.0))  # the service reads it as before

    def test_memory_shows_no_other_array(self):
        pattern = np.full(4096, 0x5A, np.uint8)
        others = [st.asarray(pattern) + 0 for _ in range(5)]
        x = st.asarray(np.arange(100, dtype=np.uint8)) + 0
        st.current_session().synchronize()
        reply, memory = [], _mapping._HostMemory
        if not _ON_HOST:
            self.skipTest("looks at the bytes of host memory")
        with unittest.mock.patch.object(_mapping, "_HostMemory", lambda *a: reply.append(memory(*a)) or reply[-1]):
            mapping = x.map_memory()
        others += [st.asarray(pattern) + 0 for _ in range(5)]
        st.current_session().synchronize()
        everything = reply[0]._bytes
        self.assertNotIn(pattern[:64].tobytes(), everything.tobytes())
        np.testing.assert_array_equal(np.asarray(mapping), np.arange(100, dtype=np.uint8))

    def test_write_is_refused_while_mapped_and_done_afterwards(self):
        x = st.asarray(np.arange(6.0)) + 0
        mapping = x.map_memory()
        values = read_back(mapping)
        for write in (lambda: x.__setitem__(0, 7), lambda: x.__iadd__(1), lambda: x[1:].fill(2)):
            with self.assertRaisesRegex(st.FailedPrecondition, "mapped"):
                write()
        self.same(x, np.arange(6.0))
        again = x.map_memory()
        mapping.close()
        if _ON_HOST:
            with self.assertRaises(st.FailedPrecondition):  # `values` is left
                x[0] = 7
        del values, mapping
        with self.assertRaises(st.FailedPrecondition):
            x[0] = 7
        again.close()
        gc.collect()
        x[0] = 7
        self.same(x, np.array([7, 1, 2, 3, 4, 5.0]))

    def test_service_refuses_writes_to_mapped_memory(self):
        x = st.asarray(np.arange(6.0)) + 0
        mapping = x.map_memory()
        loans, x._node.buffer.loans = x._node.buffer.loans, None
        x[0] = 7
        with self.assertRaisesRegex(st.FailedPrecondition, "mapped"):
            x.to_numpy()
        self.assertEqual(read_back(mapping)[0], 0)
        x._node.buffer.loans = loans

    def test_element_writes_precede_the_mapping(self):
        x = st.zeros(8)
        for _ in range(3):
            for i in range(8):
                x[i] = float(x[i]) + i
        mapping = x.map_memory()
        np.testing.assert_array_equal(read_back(mapping), 3.0 * np.arange(8))
        with self.assertRaises(st.FailedPrecondition):
            for i in range(40):
                x[i % 8] = 1

    @unittest.skipUnless(_ON_HOST, "only a CPU device's memory can be protected")
    def test_reading_only(self):
        x = st.asarray(np.arange(6.0)) + 0
        mapping = x.map_memory()
        values = np.asarray(mapping)
        self.assertFalse(values.flags.writeable)
        with self.assertRaises(ValueError):
            values[0] = 7
        # A library without DLPack's flag may write: it writes its own.
        capsule = mapping.__dlpack__()
        tensor = _interchange._tensor_in(capsule)
        (_dlpack.ctypes.c_double * 6).from_address(tensor.data)[0] = 7
        self.assertEqual(values[0], 7)
        self.same(x, np.arange(6.0))
        np.testing.assert_array_equal(np.asarray(x.map_memory()), np.arange(6.0))
        self.assertIn("versioned", repr(mapping.__dlpack__(max_version=(1, 1))))
        with self.assertRaises(BufferError):
            mapping.__dlpack__(copy=True)
        with self.assertRaises(BufferError):
            mapping.__dlpack__(stream=5)
        with self.assertRaises(BufferError):
            mapping.__dlpack__(dl_device=(2, 0))
        mapping.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            mapping.__dlpack__()

    def test_capsules_hold_and_release_the_memory(self):
        x = st.asarray(np.arange(6.0)) + 0
        before = len(_dlpack._given)
        capsules = [x.map_memory().__dlpack__(max_version=version) for version in (None, (1, 0), (0, 8))]
        self.assertEqual(len(_dlpack._given), before + 3)
        if _ON_HOST:
            taken = np.from_dlpack(x.map_memory())
            np.testing.assert_array_equal(taken, np.arange(6.0))
            gc.collect()
            self.assertEqual(len(_dlpack._given), before + 4)
            del taken
        del capsules
        gc.collect()
        self.assertEqual(len(_dlpack._given), before)
        x[0] = 7
        self.same(x, np.array([7, 1, 2, 3, 4, 5.0]))

    def test_hand_over(self):
        x = st.asarray(np.arange(6.0)) * 2
        later = x + 1
        mapping = x.map_memory(hand_over=True)
        self.assertFalse(mapping.read_only)
        with self.assertRaises(st.ArrayDeleted):
            x + 1
        self.same(later, np.arange(6.0) * 2 + 1)
        if _ON_HOST:
            values = np.asarray(mapping)
            values[...] = 5
            self.assertEqual(np.asarray(mapping).sum(), 30)
        y = st.asarray(np.arange(6.0)) * 2
        view = y[1:]
        st.current_session().synchronize()
        view.to_numpy()
        view.map_memory().close()
        with self.assertRaisesRegex(st.FailedPrecondition, "share"):
            y.map_memory(hand_over=True)
        self.same(view, np.arange(1, 6.0) * 2)
        del view
        gc.collect()
        y.map_memory(hand_over=True).close()

    def test_memory_outlives_the_session(self):
        with st.connect(self.daemon.address, timeout=120, local=client_case.LOCAL):
            x = st.asarray(np.arange(6.0)) * 2
            mapping = x.map_memory()
            moved = (x + 1).map_memory(hand_over=True)
        np.testing.assert_array_equal(read_back(mapping), np.arange(6.0) * 2)
        np.testing.assert_array_equal(read_back(moved), np.arange(6.0) * 2 + 1)

    def test_mapped_memory_survives_the_worker(self):
        x = st.asarray(np.arange(1 << 16, dtype=np.float64)) * 2
        mapping = x.map_memory()
        workers = workers_of(self.daemon)
        self.assertTrue(workers)
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        np.testing.assert_array_equal(read_back(mapping), np.arange(1 << 16) * 2.0)
        self.same(x, np.arange(1 << 16) * 2.0)
        self.same(x + 1, np.arange(1 << 16) * 2.0 + 1)
        np.testing.assert_array_equal(read_back(mapping), np.arange(1 << 16) * 2.0)

    def test_memory_is_released_when_the_client_dies(self):
        name = st.save("mapped_elsewhere", st.zeros(1000))
        command = [sys.executable, "-c", _MAPS_AND_WAITS, self.daemon.address, name]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            try:
                self.assertEqual(other.stdout.readline(), "mapped\n")
                self.assertFalse(self._can_write(name))
            finally:
                other.kill()
        end = time.monotonic() + _PATIENCE
        while not self._can_write(name):
            self.assertLess(time.monotonic(), end)
        self.same(st.load(name), np.ones(1000))
        st.delete_array(name)

    def _can_write(self, name):
        with st.connect(self.daemon.address, timeout=120, local=client_case.LOCAL):
            x = st.load(name)
            x[...] = 1
            try:
                x.to_numpy()
            except st.FailedPrecondition as error:
                self.assertIn("mapped", str(error))
                return False
        return True

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_forked_child_does_not_release_the_memory(self):
        x, other = st.zeros(8) + 0, st.zeros(8) + 0
        mapping = x.map_memory()
        child = os.fork()
        if child == 0:
            mapping.close()
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        other.map_memory().close()
        other[0] = 1  # the daemon has processed the end of that loan and all earlier ones
        loans, x._node.buffer.loans = x._node.buffer.loans, None
        x[0] = 7
        with self.assertRaisesRegex(st.FailedPrecondition, "mapped"):
            x.to_numpy()
        x._node.buffer.loans = loans
        mapping.close()

    def test_loans_are_bounded(self):
        x = (st.ones(4) + 0).block_until_ready()
        mappings = []
        with self.assertRaisesRegex(st.ResourceExhausted, "too many arrays mapped"):
            for _ in range(10000):
                mappings.append(x.map_memory())
        self.assertEqual(len(mappings), 256)
        for mapping in mappings:
            mapping.close()
        del mapping, mappings
        gc.collect()
        x[0] = 3  # once the daemon has processed all ends
        x.map_memory().close()

    def test_map_of_another_tenants_array_is_refused(self):
        stub = self.session._shared.stub
        x = (st.ones(4) + 0).block_until_ready()
        name = f"{self.session.name}/arrays/{x._node.handle}"
        for wrong in (name + "9", "sessions/none/arrays/1", "tenants/other/arrays/x"):
            with self.assertRaises(st.NotFound):
                self.session._call(stub.MapArray, region_service_pb2.MapArrayRequest(name=wrong))
        for wrong in ("", "sessions/none", "nonsense"):
            with self.assertRaises(st.InvalidArgument) as raised:
                self.session._call(stub.MapArray, region_service_pb2.MapArrayRequest(name=wrong))
            self.assertEqual(raised.exception.fields[0][0], "name")
        del x
        self.session.synchronize()
        with self.assertRaises(st.NotFound):
            self.session._call(stub.MapArray, region_service_pb2.MapArrayRequest(name=name))

    def test_ticket_is_valid_once(self):
        x = (st.ones(4) + 0).block_until_ready()
        stub = self.session._shared.stub
        request = region_service_pb2.MapArrayRequest(name=f"{self.session.name}/arrays/{x._node.handle}")
        reply = self.session._call(stub.MapArray, request)
        target = self.session._channels.target
        descriptor, connection = _mapping.fetch_descriptor(target, reply.socket_path, reply.ticket)
        os.close(descriptor)
        with self.assertRaises(OSError):
            _mapping.fetch_descriptor(target, reply.socket_path, reply.ticket)
        connection.close()

    def test_dlpack_without_a_copy(self):
        x = st.ones((512, 512)) * 2
        if _ON_HOST:
            capsule = x.__dlpack__(copy=False, max_version=(1, 0))
            self.assertEqual(_interchange.read(capsule).sum(), 2 * 512 * 512)
            with self.assertRaises(BufferError):
                x.__dlpack__(dl_device=(2, 0))
        else:
            with self.assertRaises(BufferError):
                x.__dlpack__(copy=False)

    def test_examples(self):
        if not _ON_HOST:
            self.skipTest("the examples read host memory")
        self.run_examples(_mapping)

    @unittest.skipIf(torch is None, "PyTorch is not installed")
    def test_torch(self):
        values = np.arange(1 << 16, dtype=np.float32).reshape(256, 256)
        x = st.asarray(values) * 2
        if _ON_HOST:
            tensor = x.to_torch(copy=False)
            np.testing.assert_array_equal(tensor.numpy(), values * 2)
            tensor[0, 0] = 7  # is this process's own
            self.same(x, values * 2)
        else:
            tensor = x.to_torch(device="cuda")
            self.assertEqual(tensor.device.type, "cuda")
            np.testing.assert_array_equal(tensor.cpu().numpy(), values * 2)
            self.assertEqual(float((tensor + 1).sum()), float((values * 2 + 1).sum(dtype=np.float64)))
        for read_only in (torch.from_dlpack(x.map_memory()), torch.from_dlpack(x.T.map_memory()).T):
            np.testing.assert_array_equal(read_only.cpu().numpy()[1:], (values * 2)[1:])
        handed = torch.from_dlpack((x + 1).map_memory(hand_over=True))
        handed += 1
        np.testing.assert_array_equal(handed.cpu().numpy(), values * 2 + 2)
        if ml_dtypes is not None:
            half = st.asarray(values.astype(ml_dtypes.bfloat16)) + 0
            tensor = torch.from_dlpack(half.map_memory())
            self.assertEqual(tensor.dtype, torch.bfloat16)
            np.testing.assert_array_equal(tensor.float().cpu().numpy(), half.to_numpy().astype(np.float32))
        del tensor, read_only
        gc.collect()
        x[0, 0] = 1

    @unittest.skipIf(jax is None, "JAX is not installed")
    def test_jax(self):
        values = np.arange(1024, dtype=np.float32).reshape(32, 32)
        x = st.asarray(values) * 2
        np.testing.assert_array_equal(np.asarray(jax.dlpack.from_dlpack(x.map_memory())), values * 2)

    @unittest.skipIf(_ON_HOST or cupy is None, "CuPy is not installed, or no GPU is asked for")
    def test_cupy(self):
        values = np.arange(1024, dtype=np.float32).reshape(32, 32)
        x = st.asarray(values) * 2
        for view, expected in ((x, values * 2), (x.T, values.T * 2), (x[::2, 1:], values[::2, 1:] * 2)):
            array = cupy.from_dlpack(view.map_memory())
            np.testing.assert_array_equal(cupy.asnumpy(array + 1), expected + 1)
            np.testing.assert_array_equal(cupy.asnumpy(cupy.asarray(view.map_memory())), expected)
        del array
        gc.collect()
        x[0] = 1

    @unittest.skipIf(_ON_HOST or numba is None, "Numba is not installed, or no GPU is asked for")
    def test_numba(self):
        values = np.arange(1024, dtype=np.float32)
        x = st.asarray(values) * 2
        array = numba.cuda.as_cuda_array(x.map_memory())
        np.testing.assert_array_equal(array.copy_to_host(), values * 2)

    @unittest.skipIf(_cuda_memory.load_driver() is not None, "this machine has a CUDA driver")
    def test_without_a_driver(self):
        reply = region_service_pb2.MapArrayResponse(device="devices/GPU-0", device_kind="cuda", memory_bytes=1 << 21)
        with self.assertRaisesRegex(st.Unavailable, "CUDA driver"):
            _mapping._DeviceMemory(0, reply, None)


class FakeCuda:
    """libcuda as `Driver` calls it: records the calls, and fails at the requested one."""

    def __init__(self, fails=""):
        self.calls, self.fails = [], fails

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append(name)
            if name == self.fails:
                return 999
            if name == "cuDeviceGetCount":
                arguments[0]._obj.value = 2
            elif name == "cuDeviceGet":
                arguments[0]._obj.value = arguments[1]
            elif name == "cuDeviceGetUuid":
                arguments[0]._obj[:] = [arguments[1].value] * 16
            elif name == "cuMemAddressReserve":
                arguments[0]._obj.value = 1 << 30
            return 0

        return call


class MapSharedTest(unittest.TestCase):
    """The part that needs no GPU: the order of driver calls, and the release of resources when one fails."""

    UUID = "GPU-01010101-0101-0101-0101-010101010101"

    def test_calls(self):
        cuda = FakeCuda()
        mapped = _cuda_memory.Driver(cuda).map_shared(5, 1 << 21, self.UUID)
        self.assertEqual((mapped.ordinal, mapped.address), (1, 1 << 30))
        self.assertEqual(
            cuda.calls[-7:],
            [
                "cuCtxPushCurrent_v2", "cuMemImportFromShareableHandle", "cuMemAddressReserve", "cuMemMap",
                "cuMemSetAccess", "cuMemRelease", "cuCtxPopCurrent_v2",
            ],
        )
        cuda.calls.clear()
        mapped.close()
        mapped.close()
        self.assertEqual(cuda.calls, ["cuCtxPushCurrent_v2", "cuCtxSynchronize", "cuMemUnmap", "cuMemAddressFree",
                                      "cuCtxPopCurrent_v2"])

    def test_failures(self):
        for fails in (
            "cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetUuid", "cuDevicePrimaryCtxRetain",
            "cuCtxPushCurrent_v2", "cuMemImportFromShareableHandle", "cuMemAddressReserve", "cuMemMap",
            "cuMemSetAccess",
        ):
            cuda = FakeCuda(fails)
            with self.assertRaises(st.FailedPrecondition):
                _cuda_memory.Driver(cuda).map_shared(5, 1 << 21, self.UUID)
            pushed = cuda.calls.count("cuCtxPushCurrent_v2") - (fails == "cuCtxPushCurrent_v2")
            self.assertEqual(cuda.calls.count("cuCtxPopCurrent_v2"), pushed, fails)
            imported = "cuMemImportFromShareableHandle" in cuda.calls and fails != "cuMemImportFromShareableHandle"
            self.assertEqual(cuda.calls.count("cuMemRelease"), imported, fails)
            self.assertEqual(cuda.calls.count("cuMemAddressFree"), fails in ("cuMemMap", "cuMemSetAccess"), fails)
            self.assertEqual(cuda.calls.count("cuMemUnmap"), fails == "cuMemSetAccess", fails)
        with self.assertRaisesRegex(st.FailedPrecondition, "CUDA_VISIBLE_DEVICES"):
            _cuda_memory.Driver(FakeCuda()).map_shared(5, 1 << 21, "GPU-none")


if __name__ == "__main__":
    client_case.main()
