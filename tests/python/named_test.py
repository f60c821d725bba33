"""Resources that outlive a session: named arrays, jobs and modules."""

import io
import os
import pathlib
import tempfile
import unittest
import warnings
from unittest import mock

import numpy as np

import client_case
import stride as st

STEPS = r"""
extern "C" __global__ void step(int* x) { x[threadIdx.x] += STEP; }
template <class T> __global__ void scale(T* x, T by) { x[threadIdx.x] *= by; }
"""


class NamedTest(client_case.ClientCase):
    def test_private_daemon_warns_that_named_arrays_end_with_it(self):
        environment = {
            "STRIDE_DAEMON": client_case.strided(),
            "STRIDE_ADDRESS": "",
            "XDG_RUNTIME_DIR": "",
            "HOME": "/nonexistent",
        }
        with mock.patch.dict(os.environ, environment), mock.patch("stride._address.default_address", return_value=None):
            with st.connect():
                with self.assertWarnsRegex(UserWarning, "gone when this session ends.*STRIDE_ADDRESS"):
                    st.save("short", st.ones(3))
                with self.assertWarnsRegex(UserWarning, "gone when this session ends"):
                    st.submit(lambda x: x + 1, "short", results=["next"]).wait()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            st.delete_array(st.save("kept", st.ones(3)))

    def test_arrays(self):
        x = np.arange(6.0).reshape(2, 3)
        full = st.save("weights", st.asarray(x) * 2)
        self.assertEqual(full, "tenants/default/arrays/weights")
        with st.connect(self.daemon.address) as other:
            loaded = other.array("weights")
            self.same(loaded, 2 * x)
            loaded[0] = 7
            self.same(st.load(full)[0], np.full(3, 7.0))
            # Reads are not cached: another session, and another array of the name, writes the elements.
            ours, twin = st.load(full), st.load(full)
            self.same(ours[0], np.full(3, 7.0))
            self.same(twin, np.array([[7, 7, 7], [6, 8, 10.0]]))
            loaded[0, 1] = 8
            other.synchronize()
            self.same(ours, np.array([[7, 8, 7], [6, 8, 10.0]]))
            self.assertEqual(float(ours[0, 1]), 8)
            ours[0, 1] = 7
            self.same(twin, np.array([[7, 7, 7], [6, 8, 10.0]]))
            self.assertEqual(float(twin[0, 1]), 7)
            self.same(st.load(full).T, np.array([[7, 7, 7], [6, 8, 10]]).T.astype(float))
        self.same(self.session.array("weights") + 1, np.array([[8, 8, 8], [7, 9, 11.0]]))
        with self.assertRaises(st.AlreadyExists):
            st.save("weights", np.zeros(3))
        st.save("weights", np.zeros((2, 3)), overwrite=True)
        self.same(st.load("weights"), np.zeros((2, 3)))
        st.save("weights", np.ones(3, np.int32), overwrite=True)
        self.same(st.load("weights"), np.ones(3, np.int32))
        self.assertIn(
            ("tenants/default/arrays/weights", np.dtype(np.int32), (3,)),
            [(a["name"], a["dtype"], a["shape"]) for a in st.named_arrays()],
        )
        st.delete_array("weights")
        with self.assertRaises(st.NotFound):
            st.load("weights")
        st.save("passing", st.ones(3), ttl=60)
        self.same(st.load("passing"), np.ones(3))
        st.delete_array("passing")
        with self.assertRaises(st.InvalidArgument):
            st.save("no good name!", st.ones(3))
        with self.assertRaises(st.OutOfRange):
            st.save("failed", st.take(st.ones(3), st.asarray([5])))

    def test_jobs(self):
        left, right = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
        st.save("left", left)
        st.save("right", right)
        job = st.submit(
            lambda a, b, c: (a @ b * c, st.sum(a)),
            "left", "right", 2, results=["product", "total"], label="a product", timeout=60,
        )
        self.assertIs(job.wait(60), job)
        self.assertEqual((job.state, job.label, job.error), ("SUCCEEDED", "a product", None))
        self.assertEqual(sorted(job.results), ["tenants/default/arrays/product", "tenants/default/arrays/total"])
        self.same(st.load("product"), left @ right * 2)
        self.same(st.load("total"), np.asarray(15.0))
        self.assertEqual(st.job(job.name).state, "SUCCEEDED")
        self.assertIn(job.name, [one.name for one in st.jobs()])
        self.assertEqual(list(job.watch())[-1], "SUCCEEDED")
        job.cancel()  # too late, and no error
        job.delete()
        with self.assertRaises(st.NotFound):
            st.job(job.name)

        def with_writes(a):
            b = a * 1
            b[0] = -1
            return b

        st.submit(with_writes, "left", results=["written"]).wait(60)
        self.same(st.load("written"), [[-1, -1, -1], [3, 4, 5.0]])
        failing = st.submit(lambda a: st.take(a, st.asarray([9]) + 0, axis=0), "left", results=["nothing"])
        with self.assertRaises(IndexError):
            failing.wait(60)
        self.assertEqual(failing.state, "FAILED")
        x = st.ones(3)
        for wrong in (
            lambda: st.submit(lambda a: a, x, results=["r"]),
            lambda: st.submit(lambda a: a + x[0], "left", results=["r"]),
        ):
            with self.assertRaises(TypeError):
                wrong()
        with self.assertRaises(ValueError):
            st.submit(lambda a: (a, a), "left", results=["r"])
        with self.assertRaises(st.NotFound):
            st.submit(lambda a: a, "nobody", results=["r"])
        for name in ("left", "right", "product", "total", "written"):
            st.delete_array(name)

    def test_modules(self):
        module = st.Module(STEPS, options=["-DSTEP=5"], entries=["step", "scale<float>"], name="steps")
        self.assertEqual(module.name, "tenants/default/modules/steps")
        self.assertEqual(sorted(module.kernels), ["scale<float>", "step"])
        self.assertIn("int", module.kernels["step"].parameters[0].type)
        x, y = st.arange(4, dtype=st.int32), st.ones(4, dtype=st.float32)
        module["step"](1, 4, (x,))
        module["scale<float>"](1, 4, (y, 2.5))
        self.same(x, np.arange(4, dtype=np.int32) + 5)
        self.same(y, np.full(4, 2.5, np.float32))
        self.assertIn(module.name, [one.name for one in st.modules()])
        module.delete()
        self.assertEqual(st.modules(), [])
        with self.assertRaises(st.CompileError):
            st.Module("not C++")
        with self.assertRaises(ValueError):
            st.Module()

    def test_files(self):
        x = st.asarray(np.arange(6.0).reshape(2, 3)) + 0
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "result.npy")
            self.assertEqual(st.save(path, x), path)
            np.testing.assert_array_equal(np.load(path), x.to_numpy())
            self.same(st.load(path), x.to_numpy())
            st.save(pathlib.Path(folder) / "other", x * 2)  # NumPy adds the suffix
            self.same(st.load(pathlib.Path(folder) / "other.npy"), 2 * x.to_numpy())
            st.save(path, x + 1)
            self.same(st.load(path), x.to_numpy() + 1)
            file = io.BytesIO()
            st.save(file, x)
            file.seek(0)
            self.same(st.load(file), x.to_numpy())
            with self.assertRaises(FileNotFoundError):
                st.load(os.path.join(folder, "none.npy"))
            np.savez(os.path.join(folder, "two.npz"), a=np.ones(2))
            self.same(st.load(os.path.join(folder, "two.npz"))["a"], np.ones(2))
            with st.load(os.path.join(folder, "two.npz")) as archive:
                self.same(archive.f.a, np.ones(2))
                self.assertFalse(hasattr(archive.f, "b"))
                self.assertEqual(archive.zip.namelist(), ["a.npy"])
                self.assertIsNotNone(archive.fid)
            with self.assertRaises(NotImplementedError):
                st.save(os.path.join(folder, "two.npz"), x)
            # A write into the array would be lost.
            for mode in ("r+", "w+"):
                with self.assertRaises(st.Unimplemented):
                    st.load(path, mmap_mode=mode)
            self.same(st.load(path, mmap_mode="r"), x.to_numpy() + 1)
        self.assertNotIn("result.npy", [one["name"].rsplit("/", 1)[1] for one in st.named_arrays()])


if __name__ == "__main__":
    client_case.main()
