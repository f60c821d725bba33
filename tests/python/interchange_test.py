"""Arrays of other libraries: ml_dtypes' bfloat16, and memory on a GPU of this machine."""

import unittest

import numpy as np

import client_case
import stride as st
from stride import _cuda_memory

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


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
