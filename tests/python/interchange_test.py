"""Arrays of other libraries: by DLPack, ml_dtypes' bfloat16, and memory on a GPU of this machine."""

import array
import unittest

import numpy as np

import client_case
import stride as st
from stride import _cuda_memory, _interchange

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


class _Exporter:
    """An object with DLPack's methods alone. `change(tensor)` alters what its capsules hold."""

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
    """What CuPy and PyTorch give."""

    def __init__(self, **interface):
        self.__cuda_array_interface__ = {"shape": (2, 3), "typestr": "<f4", "data": (4096, False), "version": 3, **interface}


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

    def test_dlpack_that_is_refused(self):
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
        for options in ({"dl_device": (2, 0)}, {"stream": 5}):
            with self.assertRaises(BufferError):
                x.__dlpack__(**options)
        given = np.from_dlpack(x)
        if given.flags.writeable:
            given[...] = 7  # is the consumer's own
        self.same(x, np.arange(6.0).reshape(2, 3))

    def test_large_results_are_not_copied_here(self):
        x = st.ones((512, 512)) * 2
        for _ in range(3):  # one that is read once is not worth a region
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
            tensor.dtype.code = _interchange._BFLOAT

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


if __name__ == "__main__":
    client_case.main()
