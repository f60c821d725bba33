"""Fourier transforms, compared with numpy.fft."""

import inspect
import unittest

import numpy as np

import client_case
import stride as st

LENGTHS = (1, 2, 3, 4, 5, 7, 8, 11, 12, 16, 17, 30, 53, 59, 64, 97, 100, 127, 210, 256, 331, 1000, 1009)
NORMS = ("backward", "ortho", "forward")


class FftTest(client_case.ClientCase):
    def setUp(self):
        self.random = np.random.default_rng(9)

    def values(self, shape, dtype):
        x = self.random.standard_normal(shape)
        if np.dtype(dtype).kind == "c":
            x = x + 1j * self.random.standard_normal(shape)
        return x.astype(dtype)

    def near(self, ours, numpys):
        """Within a few units of the last place of the largest element."""
        numpys = np.asarray(numpys)
        largest = float(np.max(np.abs(numpys))) if numpys.size else 1.0
        self.same(ours, numpys, rtol=0, atol=30 * np.finfo(numpys.dtype).eps * max(largest, 1e-3))

    def test_every_length(self):
        for n in LENGTHS:
            for single in (False, True):
                with self.subTest(n=n, single=single):
                    x = self.values((2, n), np.complex64 if single else np.complex128)
                    r = self.values((2, n), np.float32 if single else np.float64)
                    half = np.fft.rfft(r).astype(x.dtype)
                    for norm in NORMS:
                        self.near(st.fft.fft(st.asarray(x), norm=norm), np.fft.fft(x, norm=norm))
                        self.near(st.fft.ifft(st.asarray(x), norm=norm), np.fft.ifft(x, norm=norm))
                        self.near(st.fft.rfft(st.asarray(r), norm=norm), np.fft.rfft(r, norm=norm))
                        self.near(st.fft.irfft(st.asarray(half), n=n, norm=norm), np.fft.irfft(half, n=n, norm=norm))
                        self.near(st.fft.hfft(st.asarray(half), n=n, norm=norm), np.fft.hfft(half, n=n, norm=norm))
                        self.near(st.fft.ihfft(st.asarray(r), norm=norm), np.fft.ihfft(r, norm=norm))

    def test_lengths_and_axes(self):
        x, r = self.values((3, 4, 6), np.complex128), self.values((3, 4, 6), np.float64)
        a, b = st.asarray(x), st.asarray(r)
        for axis in (0, 1, 2, -1, -2):
            for n in (None, 1, 2, 3, 5, 9):
                self.near(st.fft.fft(a, n=n, axis=axis), np.fft.fft(x, n=n, axis=axis))
                self.near(st.fft.rfft(b, n=n, axis=axis), np.fft.rfft(r, n=n, axis=axis))
                self.near(st.fft.ihfft(b, n=n, axis=axis), np.fft.ihfft(r, n=n, axis=axis))
                if n != 1 or axis != 2:
                    self.near(st.fft.irfft(a, n=n, axis=axis), np.fft.irfft(x, n=n, axis=axis))
                    self.near(st.fft.hfft(a, n=n, axis=axis), np.fft.hfft(x, n=n, axis=axis))

    def test_several_axes(self):
        x, r = self.values((3, 4, 6), np.complex64), self.values((3, 4, 6), np.float32)
        a, b = st.asarray(x), st.asarray(r)
        half = st.fft.rfftn(b)
        self.near(half, np.fft.rfftn(r))
        for arguments in ({}, {"axes": (0, 1)}, {"axes": (2, 0)}, {"s": (5, 3), "axes": (0, 2)},
                {"s": (2, 8), "axes": (-1, 0)},
                          {"norm": "ortho"}):
            self.near(st.fft.fftn(a, **arguments), np.fft.fftn(x, **arguments))
            self.near(st.fft.ifftn(a, **arguments), np.fft.ifftn(x, **arguments))
            self.near(st.fft.rfftn(b, **arguments), np.fft.rfftn(r, **arguments))
        self.near(st.fft.irfftn(half, s=(3, 4, 6), axes=(0, 1, 2)), r)
        self.near(st.fft.irfftn(half, axes=(1, 2)), np.fft.irfftn(np.asarray(half), axes=(1, 2)))
        self.near(st.fft.fft2(a), np.fft.fft2(x))
        self.near(st.fft.irfft2(st.fft.rfft2(b)), r)

    def test_types_and_views(self):
        for dtype in (np.bool_, np.int8, np.int64, np.uint16, np.float16, np.float32):
            x = (self.random.integers(0, 2, (4, 5))).astype(dtype)
            self.near(st.fft.fft(st.asarray(x)), np.fft.fft(x))
            self.near(st.fft.rfft(st.asarray(x)), np.fft.rfft(x))
        # Real results of half precision have its type where one axis is transformed.
        half = self.random.integers(0, 9, (4, 6)).astype(np.float16)
        for name in ("irfft", "hfft", "irfftn", "irfft2"):
            ours, expected = getattr(st.fft, name)(st.asarray(half)), getattr(np.fft, name)(half)
            self.assertEqual(ours.dtype, expected.dtype, name)
            np.testing.assert_allclose(np.asarray(ours), expected, rtol=2e-3, atol=1e-2)
        x = self.values((6, 8), np.complex128)
        a = st.asarray(x) + 0
        for key in ((slice(None, None, -1),), (slice(None), slice(1, None, 2)), (slice(2, 5), slice(None, None, -2))):
            self.near(st.fft.fft(a[key]), np.fft.fft(x[key]))
            self.near(st.fft.fft(a[key].T, axis=0), np.fft.fft(x[key].T, axis=0))
        self.near(st.fft.fft(st.broadcast_to(a[0], (3, 8)), axis=0), np.fft.fft(np.broadcast_to(x[0], (3, 8)), axis=0))
        # An impulse and a constant are exact.
        self.same(st.fft.fft(st.asarray([1.0, 0, 0, 0, 0, 0])), np.ones(6, complex))
        self.same(st.fft.rfft(st.ones(8)), np.array([8, 0, 0, 0, 0], complex))

    def test_helpers(self):
        for n in (1, 2, 5, 8):
            self.same(st.fft.fftfreq(n, d=0.5), np.fft.fftfreq(n, d=0.5))
            self.same(st.fft.rfftfreq(n, d=0.5), np.fft.rfftfreq(n, d=0.5))
            self.same(st.fft.fftfreq(n, dtype=st.float32), np.fft.fftfreq(n).astype(np.float32))
        x = self.random.standard_normal((4, 5))
        for axes in (None, 0, (1,), (0, 1)):
            self.same(st.fft.fftshift(st.asarray(x), axes=axes), np.fft.fftshift(x, axes=axes))
            self.same(st.fft.ifftshift(st.asarray(x), axes=axes), np.fft.ifftshift(x, axes=axes))

    def test_errors(self):
        x = st.ones((3, 4), dtype=st.complex128)
        with self.assertRaises(ValueError):
            st.fft.fft(x, norm="none")
        with self.assertRaises(ValueError):
            st.fft.fft(x, n=0)
        with self.assertRaises(st.DataTypeMismatch):
            st.fft.rfft(x)
        for transform in (st.fft.rfft2, st.fft.irfftn, np.fft.rfft2, np.fft.irfftn):
            with self.assertRaises(IndexError):
                transform(x.real if transform in (st.fft.rfft2, st.fft.irfftn) else np.ones((3, 4)), axes=())
        with self.assertRaises(ValueError):
            st.fft.fftn(x, s=(3,), axes=(0, 1))
        with self.assertRaises(st.InvalidArgument):
            st.fft.fft(x, axis=2)
        self.near(np.fft.fft(x), np.fft.fft(np.ones((3, 4))))

    def both(self, name, value, *arguments, **options):
        """Compares our result, by the module and by NumPy's function, with NumPy's."""
        expected = getattr(np.fft, name)(value, *arguments, **options)
        for module in (st, np):
            self.near(getattr(module.fft, name)(st.asarray(value), *arguments, **options), expected)

    def test_public_names(self):
        self.assertEqual(set(np.fft.__all__), set(st.fft.__all__))
        for name in np.fft.__all__:
            ours, theirs = (inspect.signature(getattr(module.fft, name)).parameters for module in (st, np))
            names = [one for one in theirs if one != "device"]
            self.assertEqual(list(ours)[:len(names)], names, name)
            self.assertIn(">>>", getattr(st.fft, name).__doc__ or "", name)

    def test_examples(self):
        self.run_examples(st.fft)

    def test_positional_arguments(self):
        x, r = self.values((4, 6), np.complex128), self.values((4, 6), np.float64)
        for name in ("fft", "ifft", "irfft", "hfft"):
            self.both(name, x, 5, 0, "ortho")
        for name in ("rfft", "ihfft"):
            self.both(name, r, 5, 0, "forward")
        for name in ("fftn", "ifftn", "irfftn", "fft2", "ifft2", "irfft2"):
            self.both(name, x, (3, 5), (1, 0), "ortho")
            self.both(name, x, axes=(-1,))
        for name in ("rfftn", "rfft2"):
            self.both(name, r, (3, 5), (1, 0), "forward")

    def test_lengths_of_their_own(self):
        """-1 in `s`, axes that `s` alone implies, and a repeated axis."""
        x, r = self.values((3, 4, 6), np.complex128), self.values((3, 4, 6), np.float64)
        for s, axes in (((-1, 5), (0, 2)), ((2, -1), (1, 2)), ((-1,), (1,))):
            for name in ("fftn", "ifftn", "fft2", "ifft2"):
                self.both(name, x, s, axes)
            self.both("rfftn", r, s, axes)
        for axes in ((0, 0), (1, 2, 1), (2, 2)):
            for name in ("fftn", "ifftn"):
                self.both(name, x, axes=axes)
            self.both("rfftn", r, axes=axes)
        self.both("irfftn", x, axes=(0, 2, 0))
        self.both("irfftn", x, axes=(1, 1, 2), norm="ortho")
        for name in ("fftn", "ifftn", "fft2", "ifft2"):  # NumPy's: the array itself
            given = st.asarray(r)
            self.assertIs(getattr(st.fft, name)(given, axes=()), given)
            self.assertIs(getattr(np.fft, name)(r, axes=()), r)

    def test_out(self):
        x, r = self.values((3, 4), np.complex128), self.values((3, 4), np.float64)
        for name, value in (("fft", x), ("ifft", x), ("rfft", r), ("irfft", x), ("hfft", x), ("ihfft", r), ("fftn", x),
                ("ifftn", x), ("rfftn", r), ("irfftn", x), ("fft2", x), ("ifft2", x),
                            ("rfft2", r), ("irfft2", x)):
            expected = getattr(np.fft, name)(value)
            for function in (getattr(st.fft, name), getattr(np.fft, name)):
                out = st.zeros(expected.shape, dtype=expected.dtype)
                self.assertIs(function(st.asarray(value), out=out), out)
                self.near(out, expected)
            for wrong, error in ((st.zeros((9, 9), dtype=expected.dtype), ValueError),
                    (st.zeros(expected.shape, dtype=st.int32), TypeError), (np.zeros(expected.shape, expected.dtype),
                    TypeError)):
                with self.assertRaises(error):
                    getattr(st.fft, name)(st.asarray(value), out=wrong)
        a = st.asarray(x) + 0
        self.assertIs(st.fft.fft(a, out=a), a)
        self.near(a, np.fft.fft(x))

    def test_shapes_without_elements_and_values_that_are_no_numbers(self):
        for shape, axis in (((0, 4), -1), ((4, 0), 0), ((1, 1), 0), ((1,), 0), ((0, 1, 3), 2)):
            value = np.ones(shape)
            for name in ("fft", "ifft", "rfft", "ihfft"):
                self.both(name, value, axis=axis)
        self.both("irfft", np.ones((0, 3)))
        self.both("fft", np.ones((3, 0)), 4)
        for value in (np.array([np.nan, 1.0, 2.0]), np.array([np.inf, 1.0, 2.0])):
            self.assertFalse(np.isfinite(st.fft.fft(st.asarray(value)).to_numpy()).any())
        for name, arguments in (("fft", (np.ones((3, 0)),)), ("fft", (np.ones(3), 0)), ("fft", (np.ones(3), -1)),
                ("irfft", (np.ones(1),)), ("irfft", (np.ones(3), 0)), ("fftn", (np.ones((3, 3)), (2,), (0, 1))),
                                ("fftn", (np.ones((3, 3)), None, (0, 2))), ("fft", (np.ones(3), None, 1)),
                                ("fft", (np.array(1.0),)), ("fft2", (np.ones(3),)), ("fftshift", (np.ones(3), 1)),
                                ("fft", (np.ones(3), None, -1, "none")), ("rfftn", (np.ones((2, 2)), (0, 2)))):
            with self.subTest(name=name, arguments=arguments):
                for module, convert in ((np, np.asarray), (st, st.asarray)):
                    with self.assertRaises((ValueError, IndexError)):
                        getattr(module.fft, name)(convert(arguments[0]), *arguments[1:])
        with self.assertRaises(TypeError):
            st.fft.rfftn(st.ones((2, 2), dtype=st.complex64))
        for name in ("fftfreq", "rfftfreq"):
            for wrong, error in ((2.5, ValueError), (0, ZeroDivisionError)):
                for module in (np, st):
                    with self.assertRaises(error):
                        getattr(module.fft, name)(wrong)
            self.same(getattr(st.fft, name)(7, 0.1), getattr(np.fft, name)(7, 0.1))

    def test_shifts(self):
        x = self.values((3, 4, 5), np.complex64)
        for axes in (None, 0, -1, (0, 2), [1], (0, 0), ()):
            self.same(st.fft.fftshift(st.asarray(x), axes), np.fft.fftshift(x, axes))
            self.same(np.fft.ifftshift(st.asarray(x), axes=axes), np.fft.ifftshift(x, axes=axes))
        self.same(st.fft.fftshift([1, 2, 3]), np.fft.fftshift([1, 2, 3]))


if __name__ == "__main__":
    client_case.main()
