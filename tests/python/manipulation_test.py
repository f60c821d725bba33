"""Creation, shapes and indexing, compared with NumPy."""

import warnings

import numpy as np

import client_case
import stride as st



class ManipulationTest(client_case.ClientCase):
    def setUp(self):
        self.host = np.arange(24.0).reshape(2, 3, 4)
        self.array = st.asarray(self.host)

    def test_creation(self):
        for dtype in client_case.DTYPES:
            self.same(st.zeros((2, 3), dtype=dtype), np.zeros((2, 3), dtype))
            self.same(st.ones(4, dtype=dtype), np.ones(4, dtype))
            self.same(st.full((2,), 3 if dtype.kind != "b" else True, dtype=dtype), np.full((2,), 3, dtype))
            self.same(st.zeros_like(st.ones(2, dtype=dtype)), np.zeros(2, dtype))
            self.same(st.eye(3, 4, k=1, dtype=dtype), np.eye(3, 4, k=1, dtype=dtype))
        self.same(st.empty(()), np.zeros(()))
        self.same(st.full(3, 7), np.full(3, 7))
        self.same(st.full(3, -0.0), np.full(3, -0.0))
        self.assertTrue(np.signbit(np.asarray(st.full(3, -0.0))).all())
        self.same(st.full_like(self.array, 2), np.full_like(self.host, 2))
        for arguments in ((5,), (2, 9), (2, 9, 3), (9, 2, -2), (0.0, 1.0, 0.25), (5, 5), (0, -3)):
            self.same(st.arange(*arguments), np.arange(*arguments))
        self.same(st.arange(100000, dtype=st.float32), np.arange(100000, dtype=np.float32))
        self.same(st.linspace(0, 1, 7), np.linspace(0, 1, 7), rtol=1e-15)
        self.same(
            st.linspace(0, 1, 7, endpoint=False, dtype=st.float32),
            np.linspace(0, 1, 7, endpoint=False, dtype=np.float32),
            rtol=1e-6,
        )
        self.same(st.tril(self.array, k=-1), np.tril(self.host, k=-1))
        self.same(st.triu(self.array), np.triu(self.host))
        for indexing in ("xy", "ij"):
            for ours, theirs in zip(st.meshgrid(st.arange(3), st.arange(4), indexing=indexing),
                                    np.meshgrid(np.arange(3), np.arange(4), indexing=indexing)):
                self.same(ours, theirs)

    def test_casts_that_drop_imaginary_parts_warn_at_the_users_line(self):
        x = st.asarray([1j, 2])
        real = st.zeros(2)
        casts = {
            "astype": lambda: x.astype(float),
            "astype of the namespace": lambda: st.astype(x, st.float32),
            "concat": lambda: st.concat([x, x], dtype=float, casting="unsafe"),
            "out=": lambda: st.add(x, x, out=real, casting="unsafe"),
            "copyto": lambda: st.copyto(real, x, casting="unsafe"),
            "assignment": lambda: real.__setitem__(slice(None), x),
            "array": lambda: st.array(x, float),
        }
        for name, cast in casts.items():
            with self.subTest(name), self.assertWarns(np.exceptions.ComplexWarning) as warned:
                cast()
            self.assertEqual(warned.filename, __file__)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for kept in (x.astype(bool), x.astype(np.complex64), x.real, abs(x), st.var(x), st.linalg.norm(x), x + 1):
                np.asarray(kept)

    def test_flags_cannot_be_set(self):
        for name in ("c_contiguous", "f_contiguous", "owndata"):
            for x in (self.array, self.host):
                with self.assertRaises(AttributeError):
                    setattr(x.flags, name, True)

    def test_asarray(self):
        self.same(st.asarray([[1, 2], [3, 4]]), [[1, 2], [3, 4]])
        self.same(st.asarray(2.5), np.asarray(2.5))
        self.same(st.asarray([st.asarray(1), 2]), [1, 2])
        self.same(st.asarray(self.host.T), self.host.T)
        self.same(st.asarray(self.host.astype(">f8")), self.host)
        self.same(st.asarray([1, 2], dtype=st.float32), np.array([1, 2], np.float32))
        self.assertIs(st.asarray(self.array), self.array)
        self.assertIsNot(st.asarray(self.array, copy=True), self.array)
        with self.assertRaises(ValueError):
            st.asarray(self.host, copy=False)
        source = np.zeros(3)
        array = st.asarray(source)
        source[:] = 1
        self.same(array, np.zeros(3))

    def test_slices(self):
        keys = [
            0, -1, (1, 2), (1, 2, 3), slice(None), slice(1, None), (slice(None), slice(None, None, -1)),
            (Ellipsis, 2), (Ellipsis, None), (None, 1), (slice(None, None, 2), 1, None, slice(3, 0, -2)),
            slice(5, 2), (slice(-2, None), slice(-1, -3, -1)), (), Ellipsis, (slice(None), np.int64(1)),
            (slice(10, None, -1), 0), (0, None, Ellipsis, None, 1),
        ]
        on_device = self.array + 0
        for key in keys:
            with self.subTest(key=key):
                self.same(on_device[key], self.host[key])
                self.same(on_device[key] + 1, self.host[key] + 1)
        self.same(on_device[st.asarray(1)], self.host[1])
        for bad in (2, (0, 3), (0, 0, 0, 0), (Ellipsis, Ellipsis), "a", 1.0):
            with self.assertRaises(IndexError):
                self.array[bad]

    def test_views_of_views(self):
        on_device = self.array + 0
        ours, theirs = on_device, self.host
        for step in (
            lambda x: x[:, ::-1],
            lambda x: x.transpose(2, 0, 1) if isinstance(x, np.ndarray) else st.permute_dims(x, (2, 0, 1)),
            lambda x: x[1:],
            lambda x: x.reshape(3, 6),
            lambda x: x[:, ::2],
        ):
            ours, theirs = step(ours), step(theirs)
            self.same(ours, theirs)

    def test_assignment(self):
        for key, value in (
            (0, 7),
            ((slice(None), 1), 2.5),
            (Ellipsis, 3),
            ((1, slice(None, None, -1)), np.arange(12).reshape(3, 4)),
            ((slice(None), slice(None), slice(None, None, 2)), np.arange(2.0)),
            ((0, 0, 0), -1),
            ((0, 0), np.ones((1, 1, 4))),
        ):
            array, host = self.array + 0, self.host + 0
            array[key] = value
            host[key] = value
            self.same(array, host)
        integers = st.zeros(3, dtype=st.int32)
        integers[0] = 2.75
        integers[1:] = st.asarray([3.5, -4.5])
        self.same(integers, np.array([2, 3, -4], np.int32))
        with self.assertRaises(ValueError):
            integers[0] = np.arange(2)
        with self.assertRaises(TypeError):
            integers[0] = 1j

    def test_writes_are_seen_by_views_and_not_by_older_results(self):
        array = st.arange(6.0)
        view, older = array[::2], array * 2
        np.asarray(array)  # is now on the host too
        array[0] = 100
        self.same(view, [100.0, 2.0, 4.0])
        self.same(older, np.arange(6.0) * 2)
        view += 1
        self.same(array, [101.0, 1.0, 3.0, 3.0, 5.0, 5.0])
        reshaped = array.reshape(2, 3)
        array *= 2
        self.same(reshaped, [[202.0, 2.0, 6.0], [6.0, 10.0, 10.0]])
        lone = st.arange(3)
        same = lone
        lone += 1
        self.assertIs(same, lone)
        self.same(same, [1, 2, 3])
        with self.assertRaises(TypeError):
            lone += 0.5
        with self.assertRaises(ValueError):
            lone += st.ones((2, 3), dtype=st.int64)

    def test_shapes(self):
        x, a = self.host, self.array
        self.same(st.reshape(a, (4, -1)), x.reshape(4, -1))
        self.same(st.reshape(a[:, ::2], (-1,)), x[:, ::2].reshape(-1))
        self.same(st.permute_dims(a, (2, 0, 1)), x.transpose(2, 0, 1))
        self.same(st.reshape(st.permute_dims(a, (2, 0, 1)), (24,)), x.transpose(2, 0, 1).reshape(24))
        self.same(a.mT, x.mT)
        self.same(st.moveaxis(a, 0, -1), np.moveaxis(x, 0, -1))
        self.same(st.expand_dims(a, axis=-1), np.expand_dims(x, -1))
        self.same(st.squeeze(a[:1], axis=0), x[0])
        self.same(st.flip(a), np.flip(x))
        self.same(st.flip(a, axis=1), np.flip(x, 1))
        self.same(st.broadcast_to(a[0], (5, 3, 4)), np.broadcast_to(x[0], (5, 3, 4)))
        self.same(st.concat([a, a[:, :1] * 2], axis=1), np.concatenate([x, x[:, :1] * 2], axis=1))
        self.same(st.concat([a, st.asarray([1])], axis=None), np.concatenate([x, [1]], axis=None))
        self.same(st.stack([a, a + 1], axis=2), np.stack([x, x + 1], axis=2))
        self.same(st.tile(a, (2, 1, 2)), np.tile(x, (2, 1, 2)))
        self.same(st.tile(a[0, 0], (3, 2)), np.tile(x[0, 0], (3, 2)))
        self.same(st.repeat(a, 3, axis=1), np.repeat(x, 3, axis=1))
        self.same(st.repeat(a, 2), np.repeat(x, 2))
        self.same(st.repeat(a, st.asarray([1, 0, 3]), axis=1), np.repeat(x, [1, 0, 3], axis=1))
        self.same(st.roll(a, 2), np.roll(x, 2))
        self.same(st.roll(a, (1, -1), axis=(0, 2)), np.roll(x, (1, -1), axis=(0, 2)))
        self.same(st.diff(a), np.diff(x))
        for ours, theirs in zip(st.unstack(a, axis=1), np.moveaxis(x, 1, 0)):
            self.same(ours, theirs)
        for ours, theirs in zip(st.broadcast_arrays(a, a[:, :1]), np.broadcast_arrays(x, x[:, :1])):
            self.same(ours, theirs)
        for wrong in (
            lambda: st.reshape(a, (5, 5)),
            lambda: st.concat([a, a[:, :, :1]]),
            lambda: st.permute_dims(a, (0, 0, 1)),
            lambda: st.squeeze(a, axis=0),
            lambda: st.broadcast_to(a, (3, 4)),
        ):
            with self.assertRaises(ValueError):
                wrong()

    def test_empty(self):
        empty = st.zeros((0, 3))
        self.same(empty, np.zeros((0, 3)))
        self.same(empty + 1, np.zeros((0, 3)))
        self.same(st.concat([empty, st.ones((1, 3))]), np.ones((1, 3)))
        self.same(st.reshape(empty, (3, 0)), np.zeros((3, 0)))
        self.same(st.sum(empty, axis=0), np.zeros(3))

    def test_astype(self):
        values = np.array([0, 1, 2, 100])
        for source in client_case.DTYPES:
            for target in client_case.DTYPES:
                if source.kind == "c" and target.kind != "c" and target.kind != "b":
                    continue  # NumPy warns
                host = values.astype(source)
                self.same(st.asarray(host).astype(target), host.astype(target))
        self.assertIs(self.array.astype(st.float64, copy=False), self.array)

    def test_types(self):
        self.assertEqual(st.result_type(st.int8, st.asarray([1.5], dtype=st.float32)), st.float32)
        self.assertTrue(st.can_cast(st.int8, st.int16))
        self.assertTrue(st.isdtype(st.float32, "real floating"))
        self.assertTrue(st.isdtype(st.uint8, ("bool", "integral")))
        self.assertFalse(st.isdtype(st.complex64, "real floating"))
        self.assertEqual(st.finfo(st.float32).eps, float(np.finfo(np.float32).eps))
        self.assertEqual(st.iinfo(st.int16).max, 32767)
        info = st.__array_namespace_info__()
        self.assertIn(self.device.removeprefix("devices/"), info.devices())
        self.assertEqual(info.default_dtypes()["integral"], st.int64)

    def test_ravel_shares_elements_where_numpys_does(self):
        views = {
            "whole": lambda x: x, "steps": lambda x: x[::2], "a column": lambda x: x[:, 0],
            "backwards": lambda x: x[::-1],
            "reversed elements": lambda x: x[0, 0, ::-1], "transposed": lambda x: x.T, "a plane": lambda x: x[:, :, 1],
            "a row": lambda x: x[1, 2], "a part": lambda x: x[1:], "turned": lambda x: x[0].T,
            "axes": lambda x: x[None],
        }  # fmt: skip
        for name, view in views.items():
            for order in "CFAK":
                with self.subTest(view=name, order=order):
                    host, array = self.host.copy(), st.asarray(self.host)
                    theirs, ours = view(host).ravel(order), view(array).ravel(order)
                    theirs[0], ours[0] = 99, 99
                    host[0, 1], array[0, 1] = 55, 55
                    self.same(ours, theirs)
                    self.same(array, host)

    def test_results_that_are_tuples(self):
        x = st.arange(3)
        for result in (
            st.meshgrid(x, x),
            st.meshgrid(),
            st.broadcast_arrays(x, st.ones(())),
            st.unstack(x),
            st.nonzero(x),
            st.__array_namespace_info__().devices(),
            np.meshgrid(x, x),
            np.broadcast_arrays(x, 1),
            st.broadcast_shapes((1,), (2,)),
            st.histogram(x),
            st.top_k(x, 1),
        ):
            self.assertIsInstance(result, tuple)

    def test_results_that_numpy_once_returned_as_lists(self):
        """Versions of the array API before 2025.12 have lists of arrays and devices."""
        x = st.arange(3)
        for version in ("2021.12", "2022.12", "2023.12", "2024.12"):
            earlier = x.__array_namespace__(api_version=version)
            for result in (
                earlier.meshgrid(x, x, indexing="ij"),
                earlier.broadcast_arrays(x, st.ones(())),
                earlier.__array_namespace_info__().devices(),
            ):
                self.assertIs(type(result), list)
            self.assertIs(earlier.add, st.add)
            self.assertIs(earlier.linalg.inv, st.linalg.inv)
            self.assertEqual(dir(earlier), dir(st))
            self.assertEqual(earlier.meshgrid(x, x, indexing="ij")[0].tolist(), [[0] * 3, [1] * 3, [2] * 3])
        self.assertIs(x.__array_namespace__(api_version="2025.12").meshgrid, st.meshgrid)

    def test_memory_order(self):
        """Copies and new arrays lie as NumPy's do: flags, strides, and what reads the elements as they lie."""

        def seen(array):
            return (array.shape, array.dtype, array.strides, array.flags.c_contiguous, array.flags.f_contiguous,
                    array.flags.fnc, np.asarray(array).tolist(), array.ravel("A").tolist(), array.ravel("K").tolist(),
                    array.tobytes("A"))  # fmt: skip

        uses = {
            "copy": lambda m, x, order: x.copy(order), "m.copy": lambda m, x, order: m.copy(x, order),
            "array": lambda m, x, order: m.array(x, order=order),
            "asarray": lambda m, x, order: m.asarray(x, order=order),
            "asarray of a type": lambda m, x, order: m.asarray(x, np.int32, order=order),
            "astype": lambda m, x, order: x.astype(np.float64, order, copy=False),
            "zeros_like": lambda m, x, order: m.zeros_like(x, order=order),
            "full_like": lambda m, x, order: m.full_like(x, 3, order=order),
            "full_like of an array": lambda m, x, order: m.full_like(x, x, order=order),
        }  # fmt: skip
        new = {
            "zeros": lambda m, order: m.zeros((2, 3), order=order),
            "ones": lambda m, order: m.ones((2, 3), order=order),
            "full": lambda m, order: m.full((4, 2, 3), 2, order=order),
            "number": lambda m, order: m.zeros((), order=order),
            "eye": lambda m, order: m.eye(3, 4, order=order), "vector": lambda m, order: m.ones(3, order=order),
            "list": lambda m, order: m.array([[1.0, 2, 3], [4, 5, 6]], order=order),
            "host": lambda m, order: m.asarray(np.arange(6.0).reshape(2, 3), order=order),
        }  # fmt: skip
        for shape in ((3, 4), (2, 3, 4), (5,), ()):
            host = np.arange(float(np.prod(shape, dtype=int))).reshape(shape)
            sources = {
                "C": lambda m: m.asarray(host),
                "F": lambda m: m.asarray(host, order="F"),
                "T": lambda m: m.asarray(host).T,
                "turned": lambda m: m.moveaxis(m.asarray(host), 0, -1) if host.ndim else m.asarray(host),
            }
            for source, make in sources.items():
                for order in "CFAKf":
                    for name, use in uses.items():
                        with self.subTest(name=name, shape=shape, source=source, order=order):
                            self.assertEqual(seen(use(st, make(st), order)), seen(use(np, make(np), order)))
        for order in "CF":
            for name, use in new.items():
                with self.subTest(name=name, order=order):
                    self.assertEqual(seen(use(st, order)), seen(use(np, order)))
        for source in (np.zeros((2, 3)), np.zeros((2, 3), order="F")):
            for flags in (np.zeros(2).flags, np.zeros((2, 3)).flags, np.zeros((2, 3), order="F").flags):
                ours = st.asarray(source, order="F" if source.flags.fnc else "C")
                self.assertEqual(ours.flags == flags, source.flags == flags)
        self.assertEqual(st.moveaxis(st.zeros((2, 3, 4)), range(2), range(1, 3)).shape, (4, 2, 3))
        x = st.zeros((2, 3), order="F")
        x[0, 1] = 5
        x += 1
        self.assertEqual((x.tolist(), x.flags.fnc), ([[1, 6, 1], [1, 1, 1]], True))
        with self.assertRaises(ValueError):
            st.asarray(st.ones((2, 3)), order="F", copy=False)


if __name__ == "__main__":
    client_case.main()
