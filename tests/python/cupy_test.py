"""Programs written for CuPy with `stride.cupy` in its place, each result compared with NumPy's."""

import contextlib
import io
import itertools
import math
import os
import tempfile
import unittest

import numpy as np

import client_case
import stride as st
import stride.cupy as cp
import stride.cupyx as cupyx
from stride.cupy import testing
from stride.cupyx import jit
from stride.cupyx.profiler import benchmark, time_range

# CuPy's documented functions and classes at the top of its module.
DOCUMENTED = """
ndarray ufunc asarray array asanyarray ascontiguousarray asfortranarray asfarray copy frombuffer fromfile fromfunction
fromiter fromstring loadtxt empty empty_like eye identity ones ones_like zeros zeros_like full full_like arange
linspace logspace geomspace meshgrid mgrid ogrid diag diagflat tri tril triu vander copyto shape reshape ravel
moveaxis rollaxis swapaxes transpose atleast_1d atleast_2d atleast_3d broadcast broadcast_to broadcast_arrays
expand_dims squeeze asarray_chkfinite require concatenate stack vstack hstack dstack column_stack split array_split
dsplit hsplit vsplit tile repeat delete append resize trim_zeros unique flip fliplr flipud roll rot90 bitwise_and
bitwise_or bitwise_xor invert left_shift right_shift packbits unpackbits binary_repr dtype can_cast min_scalar_type
result_type common_type promote_types finfo iinfo issubdtype mintypecode typename where nonzero indices ix_
ravel_multi_index unravel_index diag_indices diag_indices_from mask_indices tril_indices tril_indices_from
triu_indices triu_indices_from take take_along_axis choose compress diagonal select place put put_along_axis putmask
fill_diagonal c_ r_ flatiter load save savez savez_compressed savetxt array_repr array_str array2string
format_float_positional format_float_scientific set_printoptions get_printoptions set_string_function printoptions
base_repr dot vdot inner outer matmul tensordot einsum kron trace all any isfinite isinf isnan isneginf isposinf
iscomplex iscomplexobj isfortran isreal isrealobj isscalar logical_and logical_or logical_not logical_xor allclose
isclose array_equal array_equiv greater greater_equal less less_equal equal not_equal sin cos tan arcsin arccos arctan
hypot arctan2 degrees radians unwrap deg2rad rad2deg sinh cosh tanh arcsinh arccosh arctanh around round rint fix
floor ceil trunc prod sum nanprod nansum cumprod cumsum nancumprod nancumsum diff ediff1d gradient cross trapz exp
expm1 exp2 log log10 log2 log1p logaddexp logaddexp2 i0 sinc signbit copysign frexp ldexp nextafter lcm gcd add
reciprocal positive negative multiply divide power subtract true_divide floor_divide float_power fmod mod modf
remainder divmod angle real imag conj conjugate maximum fmax amax nanmax minimum fmin amin nanmin convolve clip sqrt
cbrt square absolute fabs sign nan_to_num real_if_close interp bartlett blackman hamming hanning kaiser pad poly1d
polyfit polyval polyadd polysub polymul roots apply_along_axis apply_over_axes vectorize piecewise isin in1d
intersect1d setdiff1d setxor1d union1d sort lexsort argsort msort sort_complex partition argpartition argmax nanargmax
argmin nanargmin argwhere flatnonzero searchsorted extract count_nonzero percentile quantile ptp median average mean
std var nanmedian nanmean nanstd nanvar nanpercentile nanquantile corrcoef correlate cov histogram histogram2d
histogramdd bincount digitize get_default_memory_pool get_default_pinned_memory_pool get_array_module asnumpy memoize
clear_memo show_config fuse ElementwiseKernel ReductionKernel RawKernel RawModule from_dlpack is_available random
linalg fft cuda testing float16 float32 float64 complex64 complex128 int8 int16 int32 int64 uint8 uint16 uint32 uint64
bool_ pi e inf nan newaxis euler_gamma object_ str_ void longdouble core create_ufunc fromDlpack nditer ndindex s_
index_exp may_share_memory shares_memory append block broadcast_shapes byte_bounds bitwise_count matrix_transpose
permute_dims concat cumulative_sum astype isdtype
""".split()


def submodules():
    return {
        cp.cuda: """Device Stream Event ExternalStream get_current_stream get_elapsed_time MemoryPool PinnedMemoryPool
            set_allocator alloc_pinned_memory using_allocator runtime nvtx profile profiler memory stream device
            is_available nccl texture Graph MemoryPointer UnownedMemory ManagedMemory driver nvrtc""".split(),
        cp.cuda.runtime: """getDeviceCount getDevice setDevice deviceSynchronize getDeviceProperties memGetInfo
            runtimeGetVersion driverGetVersion deviceGetAttribute CUDARuntimeError malloc memcpyAsync
            streamCreate""".split(),
        cupyx: """scatter_add scatter_max scatter_min rsqrt errstate empty_pinned zeros_pinned empty_like_pinned
            zeros_like_pinned jit profiler time scipy GeneralizedUFunc get_runtime_info allow_synchronize""".split(),
    }


class NamesTest(client_case.ClientCase):
    def test_each_documented_name_exists_or_raises_with_the_reason(self):
        for module, names in ((cp, DOCUMENTED), *submodules().items()):
            for name in names:
                with self.subTest(module=module.__name__, name=name):
                    try:
                        self.assertTrue(hasattr(module, name) or name == "newaxis")
                    except AssertionError:
                        with self.assertRaises(AttributeError) as raised:
                            getattr(module, name)
                        # The reason and the alternative: more than the name.
                        self.assertRegex(str(raised.exception), r"is not there: \w+|has no \w+ yet; numpy\.")

    def test_each_public_name_exists_and_is_documented(self):
        for module in (
            cp,
            cp.cuda,
            cp.cuda.runtime,
            cp.cuda.stream,
            cp.cuda.device,
            cp.cuda.memory,
            cp.cuda.nvtx,
            cp.cuda.profiler,
            cp.cuda.texture,
            cp.testing,
            cupyx,
            cupyx.profiler,
            cupyx.time,
            cupyx.jit,
            cupyx.scipy,
        ):
            self.assertTrue(module.__doc__)
            for name in module.__all__:
                with self.subTest(module=module.__name__, name=name):
                    value = getattr(module, name)
                    if (
                        module is not cp
                        and callable(value)
                        and getattr(value, "__module__", "").startswith("stride.cup")
                    ):
                        self.assertTrue(value.__doc__)
        self.assertLess({"ElementwiseKernel", "sum", "float32", "cuda"}, set(dir(cp)))

    def test_new_names_of_stride_are_available(self):
        st.an_invented_function = lambda: 5
        try:
            self.assertEqual(cp.an_invented_function(), 5)
        finally:
            del st.an_invented_function
        with self.assertRaisesRegex(AttributeError, "stride.cupy has no an_invented_function"):
            cp.an_invented_function  # noqa: B018

    def test_modules_by_import(self):
        from stride.cupy import linalg
        from stride.cupy.cuda import Device, Stream, runtime
        from stride.cupy.linalg import norm
        from stride.cupyx.time import repeat

        self.assertEqual(float(norm(cp.asarray([3.0, 4.0]))), 5)
        self.assertIs(linalg.inv, st.linalg.inv)
        self.assertTrue(callable(repeat) and Device and Stream and runtime)
        self.assertIs(cp.ndarray, st.Array)
        self.assertEqual(cp.fft.config.get_plan_cache().get_curr_size(), 0)
        with self.assertRaises(st.Unimplemented):
            cp.fft.config.set_cufft_callbacks()


class ArraysTest(client_case.ClientCase):
    def test_a_script_for_either_module(self):
        def softplus(x):
            xp = cp.get_array_module(x)
            return xp.maximum(0, x) + xp.log1p(xp.exp(-abs(x)))

        x = np.linspace(-3, 3, 50)
        self.same(softplus(cp.asarray(x)), softplus(x), rtol=1e-14)
        self.assertIs(cp.get_array_module(x, cp.asarray(x)), cp)
        self.assertIs(cp.get_array_module(x, 3), np)

    def test_between_host_and_device(self):
        x = np.arange(12.0).reshape(3, 4)
        y = cp.asarray(x)
        for back in (y.get(), cp.asnumpy(y), cp.asnumpy(x), y.get(order="F"), y.get(stream=cp.cuda.Stream.null)):
            self.assertIsInstance(back, np.ndarray)
            np.testing.assert_array_equal(back, x)
        self.assertTrue(y.get(order="F").flags.f_contiguous)
        out = np.zeros((3, 4))
        self.assertIs(y.get(out=out), out)
        np.testing.assert_array_equal(out, x)
        np.testing.assert_array_equal(cp.asnumpy(y + 1, out=out), x + 1)
        y.set(x[::-1].copy())
        self.same(y, x[::-1])
        with self.assertRaises(ValueError):
            y.set(np.zeros(3))
        with self.assertRaises(TypeError):
            y.set(np.zeros((3, 4), np.float32))
        with self.assertRaises(ValueError):
            y.get(out=np.zeros(3))
        self.assertIsInstance(cp.asnumpy([1, 2]), np.ndarray)
        with y.device:
            self.same(cp.zeros(3), np.zeros(3))
        self.assertEqual(y.device, str(y.device))
        self.assertIsInstance(y.device.id, int)

    def test_broadcast(self):
        theirs = np.broadcast(np.ones((3, 1)), np.ones(4), 2.0)
        ours = cp.broadcast(cp.ones((3, 1)), cp.asarray(np.arange(4.0)), 2.0)
        self.assertEqual((ours.shape, ours.nd, ours.size), (theirs.shape, theirs.nd, theirs.size))
        self.same(ours.values[1], np.broadcast_to(np.arange(4.0), (3, 4)))
        self.assertEqual(ours.values[2], 2.0)
        with self.assertRaises(st.ShapeMismatch):
            cp.broadcast(cp.ones(3), cp.ones(4))

    def test_scatter(self):
        for name, ufunc in (("add", np.add), ("max", np.maximum), ("min", np.minimum)):
            with self.subTest(name=name):
                theirs = np.array([[1.0, -2.0, 3.0], [0.5, 7.0, -1.0]])
                ours = cp.asarray(theirs)
                rows, values = np.array([0, 1, 0, 0]), np.array([[5.0, 1, -1], [2, 2, 2], [9, -9, 9], [1, 1, 1]])
                ufunc.at(theirs, rows, values)
                getattr(cupyx, f"scatter_{name}")(ours, cp.asarray(rows), cp.asarray(values))
                self.same(ours, theirs)
                ufunc.at(theirs, (slice(None), np.array([0, 0])), 4.0)
                getattr(ours, f"scatter_{name}")((slice(None), cp.asarray([0, 0])), 4.0)
                self.same(ours, theirs)
        counts = cp.zeros(3, dtype=cp.uint32)
        cupyx.scatter_add(counts, cp.asarray([0, 2, 2]), cp.asarray([1, 2, 3]))
        cupyx.scatter_add(counts, 1, 2.5)
        self.same(counts, np.array([1, 2, 5], np.uint32))
        with self.assertRaises(TypeError):
            cupyx.scatter_add(np.zeros(3), 0, 1)

    def test_small_helpers_of_cupyx(self):
        x = np.array([4.0, 16.0, 1.0])
        for dtype in (np.float16, np.float32, np.float64, np.int64):
            wanted = 1 / np.sqrt(x.astype(dtype).astype(dtype if np.dtype(dtype).kind == "f" else np.float64))
            self.same(cupyx.rsqrt(cp.asarray(x.astype(dtype))), wanted, rtol=1e-3 if dtype is np.float16 else 1e-6)
        pinned = cupyx.empty_pinned((3, 2), dtype=np.float32)
        pinned[...] = 5
        self.same(cp.asarray(pinned), pinned)
        self.assertEqual(cupyx.zeros_like_pinned(pinned).sum(), 0)
        with cupyx.errstate(linalg="ignore"), cupyx.allow_synchronize(False):
            self.assertEqual(cupyx.geterr()["linalg"], "ignore")
        self.assertEqual(cupyx.geterr()["linalg"], "raise")
        with self.assertRaises(NotImplementedError):
            cupyx.seterr(divide="raise")
        with self.assertRaisesRegex(AttributeError, "scipy.ndimage"):
            cupyx.scipy.ndimage  # noqa: B018

    def test_special_functions(self):
        special = cupyx.scipy.special
        x = np.array([-2.5, -0.75, 0.0, 0.25, 0.5, 3.0])
        positive = np.array([0.0, 0.125, 0.5, 0.75])
        expected = {
            "erf": np.vectorize(math.erf)(x), "erfc": np.vectorize(math.erfc)(x), "expit": 1 / (1 + np.exp(-x)),
            "ndtr": np.vectorize(math.erfc)(-x / math.sqrt(2)) / 2, "exp10": 10.0**x, "exp2": 2.0**x,
            "expm1": np.expm1(x), "cbrt": np.cbrt(x), "log_expit": -np.log1p(np.exp(-x)),
        }  # fmt: skip
        for name, values in expected.items():
            with self.subTest(name=name):
                self.same(getattr(special, name)(cp.asarray(x)), values, rtol=1e-13, atol=1e-300)
                single = getattr(special, name)(cp.asarray(x.astype(np.float32)))
                self.same(single, values.astype(np.float32), rtol=1e-4, atol=1e-6)
        self.same(special.gamma(cp.asarray([1, 2, 5])), np.array([1.0, 1, 24]), rtol=1e-14)
        self.same(special.gammaln(cp.asarray(positive[1:])), np.vectorize(math.lgamma)(positive[1:]), rtol=1e-13)
        self.same(special.logit(cp.asarray(positive[1:])), np.log(positive[1:] / (1 - positive[1:])), rtol=1e-14)
        entropy = np.array([0.0, *(-positive[1:] * np.log(positive[1:]))])
        self.same(special.entr(cp.asarray(positive)), entropy, rtol=1e-14)
        self.same(special.entr(cp.asarray([-1.0, np.nan])), np.array([-np.inf, np.nan]))
        # The types are SciPy's.
        for dtype in (np.float16, np.int8, np.uint16, bool, np.int32, np.float32, np.float64):
            ones = cp.asarray([0, 1]).astype(dtype)
            wanted = np.float32 if dtype is np.float32 else np.float64
            self.assertEqual((special.erf(ones).dtype, special.xlogy(ones, ones).dtype), (wanted, wanted))
            wanted = np.float32 if np.can_cast(dtype, np.float32) else np.float64
            self.assertEqual((special.entr(ones).dtype, special.rel_entr(ones, ones).dtype), (wanted, wanted))
        for name, count in (("erf", 1), ("rel_entr", 2)):
            with self.assertRaisesRegex(TypeError, "real numbers"):
                getattr(special, name)(*[cp.asarray([1j])] * count)
        self.same(special.exprel(cp.asarray([np.inf, -np.inf])), np.array([np.inf, 0.0]))
        table = np.array([[1.0, 2, -3], [0, 700, 701]])
        for axis in (None, 0, 1, (0, 1)):
            powers = np.exp(table - table.max(axis=axis, keepdims=True))
            share = powers / powers.sum(axis=axis, keepdims=True)
            self.same(special.softmax(cp.asarray(table), axis=axis), share, rtol=1e-13)
            logarithms = table - table.max(axis=axis, keepdims=True) - np.log(powers.sum(axis=axis, keepdims=True))
            self.same(special.log_softmax(cp.asarray(table), axis=axis), logarithms, rtol=1e-13, atol=1e-15)
        self.same(special.exprel(cp.asarray([0.0, 1.0])), np.array([1.0, math.e - 1]), rtol=1e-14)
        self.same(special.xlogy(cp.asarray([0.0, 2, 0]), cp.asarray([0.0, 3, np.nan])),
                  np.array([0.0, 2 * math.log(3), np.nan]), rtol=1e-14)  # fmt: skip
        self.same(special.xlog1py(cp.asarray([0, 2]), 0.5), np.array([0.0, 2 * math.log(1.5)]), rtol=1e-14)
        self.same(
            special.rel_entr(cp.asarray([0.5, 0.0, -1.0]), 0.25), np.array([0.5 * math.log(2), 0.0, np.inf]), rtol=1e-14
        )
        # Values of SciPy 1.17, and identities.
        for name, given, values in (
            ("digamma", [-2.5, -1.0, 0.5, 1.5, 3.0, 20.0, np.inf],
             [1.103156640645243, np.nan, -1.9635100260214235, 0.03648997397857652, 0.9227843350984671,
              2.970523992242149, np.inf]),
            ("loggamma", [-0.5, 0.5, np.inf], [np.nan, math.log(math.pi) / 2, np.inf]),
            ("gammaln", [-np.inf, -0.5, 2.0], [-np.inf, 1.2655121234846454, 0.0]),
            ("gammasgn", [-2.5, -1.5, -1.0, 0.0, -0.0, 3.0], [-1.0, 1.0, np.nan, 1.0, -1.0, 1.0]),
            ("tandg", [-90.0, 0.0, 45.0, 90.0, 135.0, 450.0], [np.inf, 0.0, 1.0, np.inf, -1.0, np.inf]),
            ("cotdg", [-45.0, 0.0, 45.0, 90.0, 180.0], [-1.0, np.inf, 1.0, 0.0, np.inf]),
            ("sindg", [30.0, 270.0], [0.5, -1.0]), ("cosdg", [60.0, 180.0], [0.5, -1.0]),
            ("cosm1", [1e-8, 1.0], [-5e-17, math.cos(1) - 1]), ("sinc", [0.0, 0.5], [1.0, 2 / math.pi]),
            ("round", [0.5, 1.5, -2.5], [0.0, 2.0, -2.0]), ("erfcx", [0.0, 30.0], [1.0, 0.01879588886141675]),
            ("log_ndtr", [-40.0, 0.0, 10.0], [-804.6084420137538, -math.log(2), -7.61985302416052e-24]),
            ("j0", [1.0], [0.7651976865579666]), ("j1", [1.0], [0.44005058574493355]),
            ("y0", [0.0, 1.0, -1.0], [-np.inf, 0.08825696421567697, np.nan]), ("y1", [1.0], [-0.7812128213002887]),
        ):  # fmt: skip
            with self.subTest(name=name):
                self.same(getattr(special, name)(cp.asarray(given)), np.array(values), rtol=1e-12)
        self.assertIs(special.psi, special.digamma)
        z = np.array([0.0, 2 + 1j, -1.5j])
        self.same(special.log1p(cp.asarray(z)), np.log1p(z), rtol=1e-12)
        self.same(special.xlogy(cp.asarray(z), cp.asarray(z)), np.array([0, *(z[1:] * np.log(z[1:]))]), rtol=1e-12)
        self.same(special.xlog1py(cp.asarray(z), 2.0), z * np.log(3), rtol=1e-12)
        shares = np.array([1e-5, 0.25, 0.5, 0.9])
        self.same(special.erf(special.erfinv(cp.asarray(shares))), shares, rtol=1e-13)
        self.same(special.erfc(special.erfcinv(cp.asarray(shares))), shares, rtol=1e-13)
        self.same(special.ndtr(special.ndtri(cp.asarray(shares))), shares, rtol=1e-13)
        for name, inverse in (("boxcox", "inv_boxcox"), ("boxcox1p", "inv_boxcox1p")):
            for power in (-1.5, 0.0, 2.0):
                there = getattr(special, name)(cp.asarray(shares[1:]), power)
                self.same(getattr(special, inverse)(there, power), shares[1:], rtol=1e-12)
        self.same(special.boxcox(cp.asarray([3.0, 0.0]), cp.asarray([2.0, -1.0])), np.array([4.0, -np.inf]), rtol=1e-14)
        self.same(special.huber(2.0, cp.asarray([1.0, -5.0])), np.array([0.5, 8.0]), rtol=1e-14)
        self.same(special.pseudo_huber(cp.asarray([2.0, -1.0]), 1e-5), np.array([5e-11, np.inf]), rtol=1e-10)
        divergences = np.array([1 - math.log(2), 2.0, np.inf])
        self.same(special.kl_div(cp.asarray([1.0, 0.0, -1.0]), 2.0), divergences, rtol=1e-14)
        self.same(special.radian(cp.asarray([90.0]), 30.0, 36.0), np.radians([90.51]), rtol=1e-14)
        table = np.array([[1.0, -np.inf, 800.0], [-3.0, 2.0, 900.0]])
        factors = np.array([1.0, -2.0, 0.0])
        for options in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}):
            found = special.logsumexp(cp.asarray(table[:, 1:]), **options)
            expected = np.logaddexp.reduce(table[:, 1:], **{"axis": None, **options})
            self.same(found, expected, rtol=1e-14)
        value, sign = special.logsumexp(cp.asarray(table), axis=1, b=cp.asarray(factors), return_sign=True)
        self.same(value, np.array([1.0, math.log(2 * math.exp(2) - math.exp(-3))]), rtol=1e-14)
        self.same(sign, np.array([1.0, -1.0]))
        for dtype, wanted in ((np.int8, np.float16), (np.int16, np.float32), (np.int32, np.float64)):
            self.assertEqual(special.softmax(cp.asarray([0, 1], dtype)).dtype, wanted)
            self.assertEqual(special.logsumexp(cp.asarray([0, 1], dtype)).dtype, np.float64)
        half = special.expit(cp.asarray(x.astype(np.float16)))
        self.same(half, 1 / (1 + np.exp(-x)), rtol=1e-2)
        with self.assertRaisesRegex(AttributeError, "scipy.special.zeta"):
            special.zeta  # noqa: B018

    def test_transforms_with_scipys_arguments_and_types(self):
        fft = cupyx.scipy.fft
        x = np.random.default_rng(1).random((4, 6))
        z = x + 1j * x[::-1]
        for name, value in (
            ("fft", z), ("ifft", z), ("rfft", x), ("irfft", z), ("hfft", z), ("ihfft", x), ("fft2", z), ("ifft2", z),
            ("fftn", z), ("ifftn", z), ("rfft2", x), ("irfft2", z), ("rfftn", x), ("irfftn", z),
        ):  # fmt: skip
            for norm in (None, "backward", "ortho", "forward"):
                found = getattr(fft, name)(cp.asarray(value), norm=norm, overwrite_x=True, workers=2)
                self.same(found, getattr(np.fft, name)(value, norm=norm), rtol=1e-12, atol=1e-12)
            half = getattr(fft, name)(cp.asarray(x.astype(np.float16)) if value is x else cp.asarray(x, np.float16))
            self.assertEqual(half.dtype, np.float32 if name in ("irfft", "hfft", "irfft2", "irfftn") else np.complex64)
        for name, inverse in (("hfft2", "irfft2"), ("hfftn", "irfftn")):
            expected = getattr(np.fft, inverse)(np.conj(z), norm="forward")
            self.same(getattr(fft, name)(cp.asarray(z)), expected, rtol=1e-12, atol=1e-12)
            back = getattr(fft, f"i{name}")(getattr(fft, name)(cp.asarray(z)))
            self.same(getattr(fft, name)(back), expected, rtol=1e-12, atol=1e-11)
        self.same(fft.fftn(cp.asarray(x), s=(3,)), np.fft.fftn(x, s=(3,), axes=(1,)), rtol=1e-12, atol=1e-12)
        self.same(fft.fft2(cp.asarray(x), (-1, 5)), np.fft.fft2(x, (4, 5)), rtol=1e-12, atol=1e-12)
        for call in (
            lambda: fft.fftn(x, axes=(0, 0)), lambda: fft.fftn(x, s=(2, 2, 2)), lambda: fft.fft(x, norm=""),
            lambda: fft.hfftn(x, norm=""), lambda: fft.rfftn(x, axes=()), lambda: fft.fftn(x, s=(2,), axes=(0, 1)),
        ):  # fmt: skip
            self.assertRaises(ValueError, call)
        with self.assertRaisesRegex(NotImplementedError, "not yet supported"):
            fft.fft(x, plan="a plan")
        with self.assertRaisesRegex(AttributeError, "scipy.fft.dct"):
            fft.dct  # noqa: B018
        lengths = [fft.next_fast_len(n) for n in (0, 1, 7, 11, 121, 1000)]
        self.assertEqual(lengths, [0, 1, 7, 12, 125, 1000])
        self.same(fft.__ua_function__(fft.fft, (cp.asarray(x),), {}), np.fft.fft(x), rtol=1e-12, atol=1e-12)
        self.assertIs(fft.__ua_function__(math.sin, (1,), {}), NotImplemented)
        self.run_examples(fft)


class CuPysOwnArgumentsTest(client_case.ClientCase):
    """Arguments of CuPy's functions that NumPy's lack."""

    def test_the_shared_random_state_is_replaced(self):
        first = cp.random.get_random_state()
        try:
            cp.random.set_random_state(cp.random.RandomState(5))
            drawn = cp.random.rand(3)
            cp.random.seed(5)
            self.same(cp.random.rand(3), np.asarray(drawn))
            self.same(cp.random.RandomState(5).rand(3), np.asarray(drawn))
            cp.random.reset_states()
            self.assertIsNot(cp.random.get_random_state(), first)
            with self.assertRaises(TypeError):
                cp.random.set_random_state(np.random.RandomState(5))
        finally:
            cp.random.set_random_state(first)

    def test_random_functions_take_a_type(self):
        state = cp.random.RandomState(5, method=100)
        for owner in (cp.random, state):
            for drawn in (
                owner.normal(1, 2, (2, 3), np.float32),
                owner.normal(size=(2, 3), dtype="f"),
                owner.random_sample((2, 3), np.float32),
                owner.rand(2, 3, dtype=np.float32),
                owner.gamma(2.0, size=(2, 3), dtype=np.float32),
            ):
                self.assertEqual((drawn.dtype, drawn.shape), (np.float32, (2, 3)))
            self.assertEqual(owner.poisson(4, 5, np.int32).dtype, np.int32)
            for dtype in (np.float16, np.int32, complex):
                with self.assertRaises(TypeError):
                    owner.uniform(size=3, dtype=dtype)
        for wrong in (1.5, 1j, np.float32(2)):
            with self.assertRaises(TypeError):
                cp.random.seed(wrong)

    def test_bit_generators_of_curand_are_names(self):
        for kind in (cp.random.XORWOW, cp.random.MRG32k3a, cp.random.Philox4x3210):
            rng = cp.random.Generator(kind(3))
            drawn = np.asarray(rng.random(4))
            rng.bit_generator = kind(3)
            self.same(rng.random(4), drawn)
        with self.assertRaises(TypeError):
            rng.bit_generator = 3
        self.assertIsInstance(cp.random.default_rng(3), cp.random.Generator)

    def test_types_of_places_and_blocking_copies(self):
        x = cp.array([[3, 1], [2, 5]], blocking=True)
        self.assertEqual(cp.argmax(x, dtype=np.int32).dtype, np.int32)
        self.same(cp.argmin(x, 1, np.uint8), np.array([1, 0], np.uint8))
        self.same(cp.argmax(x, axis=0, keepdims=True), np.array([[0, 1]]))
        self.same(cp.asanyarray([1, 2], blocking=True), np.array([1, 2]))
        self.assertIs(cp.asarray(x), x)
        self.assertIsNot(cp.asarray(x, copy=True), x)
        with self.assertRaises(ValueError):
            cp.asarray(x, dtype=float, copy=False)
        with self.assertWarns(DeprecationWarning):
            self.same(cp.row_stack(([1, 2], [3, 4])), np.array([[1, 2], [3, 4]]))

    def test_a_fused_function_leaves_numpys_arrays_to_numpy(self):
        @cp.fuse()
        def doubled(x, y):
            return x * 2 + y

        x = np.arange(3.0)
        self.assertIsInstance(doubled(x, x), np.ndarray)
        self.assertIsInstance(doubled(np.float32(1), 2), np.float32)
        self.same(doubled(cp.asarray(x), x), x * 3)
        self.same(doubled(cp.asarray(x), cp.asarray(x)), x * 3)

    def test_inverse_of_hermitian_matrices(self):
        x = np.array([[3, 1 - 1j], [1 + 1j, 4]])
        self.same(cupyx.linalg.invh(cp.asarray(x)), np.linalg.inv(x), rtol=1e-12)
        self.cho_solve()
        self.assertEqual(cp.cuda.runtime.deviceGetAttribute(cp.cuda.runtime.cudaDevAttrCooperativeLaunch, 0), 1)

    def cho_solve(self):
        rng = np.random.default_rng(5)
        for shape, dtype in itertools.product(((1, 1), (4, 4), (2, 3, 5, 5), (0, 3, 3), (0, 0)), "fdFD"):
            x = (rng.random(shape) + (1j * rng.random(shape) if dtype in "FD" else 0)).astype(dtype)
            x = x @ np.swapaxes(x, -1, -2).conj() + 4 * np.eye(shape[-1], dtype=dtype)
            for lower, columns in ((True, ()), (False, ()), (True, (3,)), (False, (1,))):
                factor = np.linalg.cholesky(x, upper=not lower)
                # The other triangle is not read.
                unread = np.triu_indices(shape[-1], 1) if lower else np.tril_indices(shape[-1], -1)
                factor[(..., *unread)] = np.nan
                b = rng.random((*shape[:-1], *columns)).astype(dtype)
                expected = np.linalg.solve(x, b if columns else b[..., None])
                ours = cupyx.linalg.cho_solve((cp.asarray(factor), lower), cp.asarray(b))
                tolerance = 1e-4 if dtype in "fF" else 1e-11
                self.same(ours, expected if columns else expected[..., 0], rtol=tolerance, atol=tolerance)
        factor = cp.eye(3)
        for wrong, b in ((cp.ones((2, 3)), cp.ones(2)), (factor, cp.ones(2)), (factor, cp.asarray([1, np.nan, 2]))):
            with self.assertRaises(ValueError):
                cupyx.linalg.cho_solve((wrong, True), b)

    def test_deprecated_settings_of_transforms_warn(self):
        with self.assertWarnsRegex(DeprecationWarning, "enable_nd_planning"):
            cp.fft.config.enable_nd_planning = False
        with self.assertWarnsRegex(DeprecationWarning, "enable_nd_planning"):
            self.assertFalse(cp.fft.config.enable_nd_planning)
        with self.assertWarns(DeprecationWarning):
            cp.fft.config.enable_nd_planning = True


class ElementwiseTest(client_case.ClientCase):
    def test_inferred_types_and_broadcasting(self):
        difference = cp.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "difference")
        for dtype in (
            np.int8,
            np.uint16,
            np.int32,
            np.int64,
            np.float16,
            np.float32,
            np.float64,
            np.complex64,
            np.complex128,
        ):
            with self.subTest(dtype=dtype):
                x, y = np.arange(10).reshape(2, 5).astype(dtype), (np.arange(5) * 2).astype(dtype)
                self.same(difference(cp.asarray(x), cp.asarray(y)), (x - y) * (x - y))
                self.same(difference(cp.asarray(x), 3), (x - dtype(3)) * (x - dtype(3)))
        self.same(difference(cp.zeros((0, 3)), 1.0), np.zeros((0, 3)))
        self.same(difference(cp.asarray(2.0), 5.0), np.float64(9))
        mixed = cp.ElementwiseKernel("X x, float32 y, int64 k", "Z z", "z = x * y + k", "mixed")
        out = cp.empty(4, dtype=cp.float64)
        x = np.arange(4, dtype=np.int32)
        self.assertIs(mixed(cp.asarray(x), np.float32(0.5), 7, out), out)
        self.same(out, x * 0.5 + 7)

    def test_outputs(self):
        both = cp.ElementwiseKernel("T x, T y", "T total, T product", "total = x + y; product = x * y", "both")
        x, y = np.arange(6.0).reshape(2, 3), np.array([[2.0], [3.0]])
        total, product = both(cp.asarray(x), cp.asarray(y))
        self.same(total, x + y)
        self.same(product, x * y)
        base = cp.zeros((3, 4))
        older = base + 1
        view = base.T[::2, :2]
        cp.ElementwiseKernel("T x", "T y", "y = x * 2", "doubled")(cp.ones((2, 2)), view)
        wanted = np.zeros((3, 4))
        wanted.T[::2, :2] = 2
        self.same(base, wanted)
        self.same(older, np.ones((3, 4)))
        increment = cp.ElementwiseKernel("", "T x", "x += 1", "increment")
        increment(base)
        self.same(base, wanted + 1)
        self.assertIsNone(
            cp.ElementwiseKernel("T x", "T y", "y = x", "nothing", no_return=True)(base, cp.zeros((3, 4)))
        )
        self.assertIsInstance(cp.ElementwiseKernel("T x", "T y", "y = x", "one", return_tuple=True)(base), tuple)

    def test_raw_arrays_and_indices(self):
        reverse = cp.ElementwiseKernel("T x, raw T y", "T z", "z = x + y[_ind.size() - i - 1]", "reverse")
        x = np.arange(5.0)
        self.same(reverse(cp.asarray(x), cp.asarray(x)), x + x[::-1])
        gathered = cp.ElementwiseKernel("raw T x, raw int32 where", "T y", "y = x[where[i]]", "gathered")
        where = np.array([4, 0, 2, 2], np.int32)
        self.same(gathered(cp.asarray(x), cp.asarray(where), size=4), x[where])
        transposed = cp.ElementwiseKernel(
            "raw T x",
            "T y",
            "ptrdiff_t at[] = {_ind.get()[1], _ind.get()[0]}; y = x[at] + x.shape()[0] * 100 + x.ndim",
            "transposed",
        )
        matrix = np.arange(6.0).reshape(2, 3)
        self.same(transposed(cp.asarray(matrix), cp.zeros((3, 2))), matrix.T + 202)
        self.same(transposed(cp.asarray(matrix.T.copy()).T, cp.zeros((3, 2))), matrix.T + 202)
        histogram = cp.ElementwiseKernel("T x", "raw int32 counts", "atomicAdd(&counts[(int)x], 1)", "histogram")
        values = np.arange(1000) % 7
        counts = cp.zeros(7, dtype=cp.int32)
        histogram(cp.asarray(values), counts)
        self.same(counts, np.bincount(values).astype(np.int32))
        filled = cp.ElementwiseKernel("raw T x", "raw T y", "y[i] = x[0] + i", "filled")
        self.same(filled(cp.asarray([2.0]), size=3), np.array([2.0, 3, 4]))
        with self.assertRaisesRegex(ValueError, "block_size"):
            filled(cp.asarray([2.0]), size=3, block_size=0)
        neighbours = cp.ElementwiseKernel(
            "raw T x", "T y", "y = (i > 0 ? x[i - 1] : T(0)) + (i < n - 1 ? x[i + 1] : T(0))", "neighbours"
        )
        self.same(neighbours(cp.asarray(x), cp.zeros(5)), np.convolve(x, [1, 0, 1], "same"))

    def test_preamble_and_loops(self):
        kernel = cp.ElementwiseKernel(
            "T x",
            "T y",
            "y = twice(x) + offset",
            "with_preamble",
            loop_prep="T offset = 3",
            preamble="template <class T> __device__ T twice(T x) { return 2 * x; }",
            after_loop="offset = 0",
        )
        x = np.arange(1000, dtype=np.float32)
        self.same(kernel(cp.asarray(x)), 2 * x + 3)
        fast = cp.ElementwiseKernel("float32 x", "float32 y", "y = sinf(x)", "fast", options=("--use_fast_math",))
        self.same(fast(cp.asarray(x / 1000)), np.sin(x / 1000), rtol=1e-4, atol=1e-6)

    def test_invalid_arguments_raise_with_the_reason(self):
        kernel = cp.ElementwiseKernel("T x, T y", "T z", "z = x + y", "added")
        with self.assertRaisesRegex(TypeError, "Type is mismatched"):
            kernel(cp.zeros(3), cp.zeros(3, dtype=cp.float32))
        with self.assertRaisesRegex(TypeError, "either 2 or 3"):
            kernel(cp.zeros(3))
        with self.assertRaises(st.ShapeMismatch):
            kernel(cp.zeros(3), cp.zeros(4))
        with self.assertRaisesRegex(ValueError, "Out shape is mismatched"):
            kernel(cp.zeros((2, 3)), 1.0, cp.zeros((1, 3)))
        with self.assertRaisesRegex(ValueError, "no argument says"):
            cp.ElementwiseKernel("T x", "U z", "z = x", "unknown")(cp.zeros(3))
        with self.assertRaisesRegex(ValueError, "undecided"):
            cp.ElementwiseKernel("raw T x", "raw T y", "y[i] = x[i]", "undecided")(cp.zeros(3), cp.zeros(3))
        for wrong in ("T", "raw x", "T i", "T x, T x", "T x y"):
            with self.assertRaises(ValueError):
                cp.ElementwiseKernel(wrong, "T z", "z = 1")
        with self.assertRaisesRegex(st.StrideError, "no_such_function"):
            cp.ElementwiseKernel("T x", "T y", "y = no_such_function(x)", "broken")(cp.zeros(3)).get()

    def test_elementwise_kernel_is_deferred_and_traced(self):
        kernel = cp.ElementwiseKernel("T x", "T y", "y = x * x", "deferred")
        with client_case.Sent(self.session) as sent:
            y = kernel(cp.ones(3)) + 1
            self.assertEqual(sent.commands, [])
            self.same(y, np.full(3, 2.0))

        @st.jit
        def traced(x):
            return kernel(x) + kernel(x + 1)

        for _ in range(2):
            self.same(traced(cp.asarray([1.0, 2.0])), np.array([5.0, 13.0]))


class ReductionTest(client_case.ClientCase):
    def test_axes_and_types(self):
        norm = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
        rng = np.random.default_rng(1)
        x = rng.random((4, 50, 6))
        for axis in (None, 0, 1, -1, (0, 2), (2, 1), (0, 1, 2)):
            for keepdims in (False, True):
                with self.subTest(axis=axis, keepdims=keepdims):
                    self.same(
                        norm(cp.asarray(x), axis=axis, keepdims=keepdims),
                        np.sqrt((x * x).sum(axis, keepdims=keepdims)),
                        rtol=1e-13,
                    )
        self.same(norm(cp.asarray(x.T), axis=1), np.sqrt((x.T**2).sum(1)), rtol=1e-13)
        for dtype in (np.float16, np.float32):
            self.same(
                norm(cp.asarray(x.astype(dtype)), axis=1),
                np.sqrt((x**2).sum(1)).astype(dtype),
                rtol=1e-2 if dtype is np.float16 else 1e-5,
            )
        self.same(norm(cp.zeros((0, 3)), axis=0), np.zeros(3))

    def test_sizes_of_each_plan(self):
        total = cp.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
        for shape in (
            (1,),
            (31,),
            (33,),
            (255,),
            (257,),
            (5000,),
            (200_003,),
            (1000, 30),
            (300, 40),
            (20, 70_000),
            (65, 20_000),
            (3, 1),
        ):
            with self.subTest(shape=shape):
                x = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
                self.same(total(cp.asarray(x)), x.sum())
                self.same(total(cp.asarray(x), axis=len(shape) - 1), x.sum(-1))
                self.same(total(cp.asarray(x), axis=0), x.sum(0))

    def test_without_identity_and_with_own_types(self):
        greatest = cp.ReductionKernel("T x", "T y", "x", "max(a, b)", "y = a", None, "greatest")
        x = -np.arange(1.0, 2001.0).reshape(2, 1000)
        self.same(greatest(cp.asarray(x), axis=1), x.max(1))
        self.same(greatest(cp.asarray(x)), x.max())
        with self.assertRaisesRegex(ValueError, "no identity"):
            greatest(cp.zeros((0,)))
        place = cp.ReductionKernel(
            "T x",
            "int64 y",
            "pair(x, _J)",
            "a.value > b.value || (a.value == b.value && a.place < b.place) ? a : b",
            "y = a.place",
            None,
            "place",
            reduce_type="pair",
            preamble="struct pair { double value; long long place; __device__ pair() : value(0), place(-1) {}"
            " __device__ pair(double v, long long p) : value(v), place(p) {} };",
        )
        rng = np.random.default_rng(2)
        for shape in ((10,), (4, 2000), (3, 50_000)):
            values = rng.integers(0, 1000, shape).astype(np.float64)
            self.same(place(cp.asarray(values), axis=len(shape) - 1), values.argmax(-1))
        mean = cp.ReductionKernel(
            "T x, float64 scale",
            "float64 y",
            "x * scale",
            "a + b",
            "y = a / (_in_ind.size() / _out_ind.size())",
            "0",
            "mean",
        )
        ints = np.arange(12).reshape(3, 4)
        self.same(mean(cp.asarray(ints), 2.0, axis=1), ints.mean(1) * 2)

    def test_several_inputs_and_outputs(self):
        dot = cp.ReductionKernel("T x, T y", "T z", "x * y", "a + b", "z = a", "0", "dot")
        x, y = np.arange(12.0).reshape(3, 4), np.arange(4.0)
        self.same(dot(cp.asarray(x), cp.asarray(y), axis=1), x @ y)
        weighted = cp.ReductionKernel("T x, raw T w", "T z", "x * w[_J]", "a + b", "z = a", "0", "weighted")
        self.same(weighted(cp.asarray(x), cp.asarray(y), axis=1), x @ y)
        moments = cp.ReductionKernel(
            "T x", "T total, T doubled", "x", "a + b", "total = a; doubled = 2 * a", "0", "moments"
        )
        total, doubled = moments(cp.asarray(x), axis=0)
        self.same(total, x.sum(0))
        self.same(doubled, 2 * x.sum(0))
        out = cp.zeros(3)
        self.assertIs(dot(cp.asarray(x), cp.asarray(y), out=out, axis=1), out)
        self.same(out, x @ y)
        modulus = cp.ReductionKernel("complex128 x", "float64 y", "norm(x)", "a + b", "y = sqrt(a)", "0", "modulus")
        z = x + 1j * x[::-1]
        self.same(modulus(cp.asarray(z)), np.linalg.norm(z), rtol=1e-14)


ADD = r"""
extern "C" __global__ void add(const float* x, const float* y, float* z, int n) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
"""


class RawTest(client_case.ClientCase):
    def test_raw_kernel(self):
        add = cp.RawKernel(
            ADD, "add", options=("--std=c++11", "-default-device", "-lineinfo", "--gpu-architecture=sm_70")
        )
        x = np.arange(100, dtype=np.float32)
        z = cp.zeros(100, dtype=cp.float32)
        add((4,), (32,), (cp.asarray(x), cp.asarray(2 * x), z, 100))
        self.same(z, 3 * x)
        add((4, 1, 1), (32, 1, 1), (z, z, z, np.int32(50)), shared_mem=0, stream=cp.cuda.Stream.null)
        self.same(z, np.where(np.arange(100) < 50, 6 * x, 3 * x))
        add.compile()
        self.assertGreaterEqual(add.attributes["max_threads_per_block"], 256)
        self.assertEqual(add.max_threads_per_block, add.attributes["max_threads_per_block"])
        with self.assertRaises(st.StrideError):
            cp.RawKernel("not C++", "add").compile()
        with self.assertRaisesRegex(st.StrideError, "option"):
            add = cp.RawKernel(ADD, "add", options=("--no-such-option",))
            add((1,), (1,), (z, z, z, 1))
            cp.cuda.runtime.deviceSynchronize()

    def test_shared_memory_structs_and_cooperation(self):
        reverse = cp.RawKernel(
            r"""
struct Limits { double low; int count; };
extern "C" __global__ void reverse(double* x, Limits limits) {
  extern __shared__ double room[];
  room[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < limits.count) x[threadIdx.x] = max(limits.low, room[blockDim.x - 1 - threadIdx.x]);
}""",
            "reverse",
        )
        limits = np.array([(5.0, 12)], np.dtype([("low", np.float64), ("count", np.int32)], align=True))[0]
        x = cp.arange(16.0)
        reverse((1,), (16,), (x, limits), shared_mem=128)
        self.same(x, np.where(np.arange(16) < 12, np.maximum(5.0, np.arange(16.0)[::-1]), np.arange(16.0)))
        meeting = cp.RawKernel(
            r"""
#include <cooperative_groups.h>
extern "C" __global__ void meeting(int* x, int* out) {
  atomicAdd(x, 1);
  cooperative_groups::this_grid().sync();
  out[blockIdx.x * blockDim.x + threadIdx.x] = *x;
}""",
            "meeting",
            enable_cooperative_groups=True,
        )
        out = cp.zeros(64, dtype=cp.int32)
        meeting((2,), (32,), (cp.zeros(1, dtype=cp.int32), out))
        self.same(out, np.full(64, 64, np.int32))

    def test_complex_header(self):
        code = r"""
#include <cupy/complex.cuh>
extern "C" __global__ void turned(const complex<float>* x, complex<float>* y, complex<float> by) {
  y[threadIdx.x] = x[threadIdx.x] * by + complex<float>(0, abs(x[threadIdx.x]));
}"""
        x = np.array([1 + 1j, 2 - 3j, 0.5j], np.complex64)
        y = cp.zeros(3, dtype=cp.complex64)
        cp.RawKernel(code, "turned")((1,), (3,), (cp.asarray(x), y, np.complex64(1j)))
        self.same(y, (x * 1j + 1j * abs(x)).astype(np.complex64), rtol=1e-6)

    def test_raw_module(self):
        code = r"""
template <typename T> __global__ void square(const T* x, T* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x] * x[threadIdx.x];
}
__constant__ float table[4];
extern "C" __global__ void looked_up(float* y) { y[threadIdx.x] = table[threadIdx.x]; }
"""
        module = cp.RawModule(code=code, options=("-std=c++11",), name_expressions=["square<float>", "square<double>"])
        for dtype, name in ((np.float32, "square<float>"), (np.float64, "square<double>")):
            x = np.arange(4, dtype=dtype)
            y = cp.zeros(4, dtype=dtype)
            module.get_function(name)((1,), (4,), (cp.asarray(x), y, 4))
            self.same(y, x * x)
        table = module.get_global("table")
        self.assertEqual(table.nbytes, 16)
        looked_up = module.get_function("looked_up")
        for values in (np.arange(4, dtype=np.float32), np.ones(4, np.float32)):
            table.set(values)
            y = cp.zeros(4, dtype=cp.float32)
            looked_up((1,), (4,), (y,))
            self.same(y, values)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kernel.ptx")
            with open(path, "w", encoding="utf-8") as file:
                file.write("// no PTX\n")
            with self.assertRaises(st.StrideError):
                cp.RawModule(path=path).compile()
        with self.assertRaises(TypeError):
            cp.RawModule()
        log = io.StringIO()
        cp.RawModule(code=ADD).compile(log_stream=log)
        self.assertIsInstance(log.getvalue(), str)


TEXTURES = """
extern "C" {
__global__ void fetch(float* y, cudaTextureObject_t t, int n) {
  const int i = threadIdx.x;
  if (i < n) y[i] = tex1Dfetch<float>(t, i);
}
__global__ void doubles(double* y, cudaTextureObject_t t) {
  const int2 halves = tex1Dfetch<int2>(t, threadIdx.x);
  y[threadIdx.x] = __hiloint2double(halves.y, halves.x);
}
__global__ void image(float* y, cudaTextureObject_t t, int width) {
  y[threadIdx.y * width + threadIdx.x] = tex2D<float>(t, threadIdx.x + 0.5f, threadIdx.y + 0.5f);
}
__global__ void channels(float* y, cudaTextureObject_t t) {
  const float4 texel = tex3D<float4>(t, threadIdx.x, threadIdx.y, threadIdx.z);
  const int i = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  y[i] = texel.x + 10 * texel.y + 100 * texel.z + 1000 * texel.w;
}
__global__ void sample(float* y, const float* x, cudaTextureObject_t t) {
  y[threadIdx.x] = tex1D<float>(t, x[threadIdx.x]);
}
}
"""


class TextureTest(client_case.ClientCase):
    def setUp(self):
        super().setUp()
        from stride.cupy.cuda import runtime, texture

        self.runtime, self.texture = runtime, texture
        self.module = cp.RawModule(code=TEXTURES)

    def channel(self, bits=32, count=1, kind=None):
        kind = self.runtime.cudaChannelFormatKindFloat if kind is None else kind
        return self.texture.ChannelFormatDescriptor(*([bits] * count + [0] * (4 - count)), kind)

    def image(self, values, count=1):
        shape = values.shape[:-1] + (values.shape[-1] // count,)
        made = self.texture.CUDAarray(self.channel(count=count), *shape[::-1])
        made.copy_from(values)
        return self.texture.ResourceDescriptor(self.runtime.cudaResourceTypeArray, cuArr=made)

    def object(self, resource, *modes, **fields):
        return self.texture.TextureObject(resource, self.texture.TextureDescriptor(modes, **fields))

    def test_linear_memory_is_read_by_numbers_of_texels(self):
        x = cp.arange(12, dtype=cp.float32)
        resource = self.texture.ResourceDescriptor(
            self.runtime.cudaResourceTypeLinear, arr=x, chDesc=self.channel(), sizeInBytes=40
        )
        texture = self.object(resource)
        y = cp.full(12, -1, cp.float32)
        self.module.get_function("fetch")((1,), (32,), (y, texture, 12))
        self.assertEqual(y.tolist(), [*range(10), 0, 0], "beyond the texture there are zeros")
        x += 1
        self.module.get_function("fetch")((1,), (32,), (y, texture, 3))
        self.assertEqual(y.tolist()[:3], [1, 2, 3], "a launch reads what the array has become")
        x = cp.array([1.5, -2.25, 1e300])
        channel = self.channel(count=2, kind=self.runtime.cudaChannelFormatKindSigned)
        resource = self.texture.ResourceDescriptor(
            self.runtime.cudaResourceTypeLinear, arr=x, chDesc=channel, sizeInBytes=24
        )
        y = cp.zeros(3)
        self.module.get_function("doubles")((1,), (3,), (y, self.object(resource)))
        self.assertEqual(y.tolist(), [1.5, -2.25, 1e300], "bytes of another type")

    def test_rows_and_images_are_read_by_coordinates(self):
        x = cp.arange(32, dtype=cp.float32).reshape(4, 8)
        rows = self.texture.ResourceDescriptor(
            self.runtime.cudaResourceTypePitch2D, arr=x, chDesc=self.channel(), width=6, height=4, pitchInBytes=32
        )
        for resource in (rows, self.image(x.get()[:, :6]), self.image(x[:, :6])):
            y = cp.zeros((4, 6), cp.float32)
            self.module.get_function("image")((1,), (6, 4), (y, self.object(resource, 1, 1), 6))
            self.assertEqual(y.tolist(), x[:, :6].tolist())
        values = np.arange(2 * 3 * 8, dtype=np.float32).reshape(2, 3, 8)
        y = cp.zeros((2, 3, 2), cp.float32)
        self.module.get_function("channels")((1,), (2, 3, 2), (y, self.object(self.image(values, 4), 1, 1, 1)))
        texels = values.reshape(2, 3, 2, 4)
        self.assertEqual(y.tolist(), (texels @ np.array([1, 10, 100, 1000], np.float32)).tolist())

    def test_modes_are_the_descriptors(self):
        resource = self.image(np.array([0, 1, 2, 3], np.float32))
        at = cp.array([0.25, -0.125, 1.375], cp.float32)
        clamp, border = self.runtime.cudaAddressModeClamp, self.runtime.cudaAddressModeBorder
        wrap, mirror = self.runtime.cudaAddressModeWrap, self.runtime.cudaAddressModeMirror
        for fields, wanted in (
            ({"addressModes": (wrap,), "normalizedCoords": 1}, [1, 3, 1]),
            ({"addressModes": (mirror,), "normalizedCoords": 1}, [1, 0, 2]),
            ({"addressModes": (clamp,), "normalizedCoords": 1}, [1, 0, 3]),
            ({"addressModes": (border,), "normalizedCoords": 1, "borderColors": (9,)}, [1, 9, 9]),
            ({"filterMode": 1, "addressModes": (clamp,), "normalizedCoords": 1}, [0.5, 0, 3]),
            ({}, [0, 0, 1]),
        ):
            described = self.texture.TextureDescriptor(**fields)
            y = cp.zeros(3, cp.float32)
            self.module.get_function("sample")((1,), (3,), (y, at, self.texture.TextureObject(resource, described)))
            self.assertEqual(y.tolist(), wanted, fields)
        image = self.texture.CUDAarray(self.channel(8, 1, self.runtime.cudaChannelFormatKindUnsigned), 2)
        image.copy_from(np.array([0, 255], np.uint8))
        resource = self.texture.ResourceDescriptor(self.runtime.cudaResourceTypeArray, cuArr=image)
        y = cp.zeros(3, cp.float32)
        texture = self.object(resource, 1, readMode=self.runtime.cudaReadModeNormalizedFloat)
        self.module.get_function("sample")((1,), (3,), (y, cp.array([0, 1, 5], cp.float32), texture))
        self.assertEqual(y.tolist(), [0, 1, 1])

    def test_elementwise_kernels_take_textures(self):
        x = np.arange(6, dtype=np.float32)
        kernel = cp.ElementwiseKernel("T x, U t", "T y", "y = x + tex1D<T>(t, float(i))", "added")
        texture = self.object(self.image(x), 1)
        self.assertEqual(kernel(cp.asarray(x), texture).tolist(), (2 * x).tolist())
        y = cp.zeros(6, cp.float32)
        kernel(cp.asarray(x), texture, y)
        self.assertEqual(y.tolist(), (2 * x).tolist())
        with self.assertRaises(TypeError):
            cp.ReductionKernel("T x, U t", "T y", "x", "a + b", "y = a", "0", "summed")(cp.asarray(x), texture)

    def test_names_of_complex_functions_take_both_precisions_where_asked(self):
        code = """#include <cuComplex.h>
        extern "C" __global__ void f(cuFloatComplex* x, cuDoubleComplex* y) {
          const int i = threadIdx.x;
          x[i] = cuCmul(cuCadd(x[i], make_cuComplex(1, 0)), cuConj(x[i]));
          y[i] = cuCmul(cuCadd(y[i], make_cuDoubleComplex(cuCabs(x[i]), cuCreal(x[i]))), cuConj(y[i]));
        }"""
        x, y = np.array([1 + 2j, -3j], np.complex64), np.array([2 - 1j, 4 + 0j])
        a, b = cp.asarray(x), cp.asarray(y)
        cp.RawKernel(code, "f", translate_cucomplex=True)((1,), (2,), (a, b))
        x = (x + 1) * x.conj()
        np.testing.assert_allclose(a.get(), x, rtol=1e-6)
        np.testing.assert_allclose(b.get(), (y + abs(x) + 1j * x.real) * y.conj(), rtol=1e-6)
        module = cp.RawModule(code=code, translate_cucomplex=True)
        module.get_function("f")((1,), (2,), (a, b))
        with self.assertRaises(st.CompileError):
            cp.RawKernel(code, "f").compile()

    def test_printf_goes_to_the_standard_output(self):
        code = r'''extern "C" __global__ void f(float* x, int n) {
            for (int i = 0; i < n; ++i) printf("%d: %.2f\n", i, x[0]);
            x[0] = 2;
        }'''
        x = cp.ones(1, cp.float32)
        kernel = cp.RawKernel(code, "f")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            kernel((1,), (1,), (x, np.int32(2)))
            self.assertEqual(x.tolist(), [2])
        self.assertEqual(printed.getvalue(), "0: 1.00\n1: 1.00\n")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            kernel((1,), (1,), (x, np.int32(1)))
            cp.cuda.Device().synchronize()
            cp.RawModule(code=code).get_function("f")((1,), (1,), (x, np.int32(1)))
            cp.cuda.runtime.deviceSynchronize()
        self.assertEqual(printed.getvalue(), "0: 2.00\n" * 2)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            kernel((1,), (1,), (x, np.int32(200_000)))
            cp.cuda.Device().synchronize()
        lines = printed.getvalue().splitlines()
        self.assertEqual(lines[1000], "1000: 2.00")
        self.assertRegex(lines[-1], r"^\[stride: \d+ lines dropped\]$")
        self.assertEqual(len(lines) - 1 + int(lines[-1].split()[1]), 200_000)

    def test_invalid_textures_raise_with_the_reason(self):
        x = cp.zeros(4, cp.float32)
        y = cp.zeros(4, cp.float32)
        with self.assertRaisesRegex(st.StrideError, "cudaTextureObject_t"):
            self.module.get_function("sample")((1,), (3,), (y, self.object(self.image(x.get())), y))
            y.get()
        signed = self.runtime.cudaChannelFormatKindSigned
        for make in (
            lambda: self.texture.ChannelFormatDescriptor(32, 32, 32, 0, signed),
            lambda: self.texture.ChannelFormatDescriptor(32, 8, 0, 0, signed),
            lambda: self.channel(8),
            lambda: self.texture.CUDAarray(self.channel(), 0),
            lambda: self.texture.CUDAarray(self.channel(), 3).copy_from(np.zeros(4, np.float32)),
            lambda: self.texture.CUDAarray(self.channel(), 4).copy_from(np.zeros(4)),
            lambda: self.texture.TextureDescriptor((7,)),
        ):
            self.assertRaises(ValueError, make)
        self.assertRaises(TypeError, self.texture.ResourceDescriptor, 0)
        self.assertRaises(NotImplementedError, self.texture.ResourceDescriptor, 1)
        self.assertRaises(st.Unimplemented, self.texture.SurfaceObject, None)
        image = self.texture.CUDAarray(self.channel(), 2, 3)
        out = np.ones((3, 2), np.float32)
        image.copy_to(out)
        self.assertEqual(out.sum(), 0, "a new image is zero")


class CubTest(client_case.ClientCase):
    """The names that docs/kernels.md has for CUB's device-wide algorithms give their results."""

    def test_each_algorithm_has_its_operations(self):
        x = np.array([3, 1, 1, 2, 2, 2, 9, 1], np.int32)
        a = cp.asarray(x)
        mask = x > 1
        starts = np.flatnonzero(np.concatenate(([True], x[1:] != x[:-1])))
        for name, got, wanted in (
            ("Sum", cp.sum(a), 21),
            ("ArgMax", cp.argmax(a), 6),
            ("ReduceByKey", cp.bincount(a, weights=a)[cp.unique(a)], [3, 6, 3, 9]),
            ("SegmentedReduce", cp.add.reduceat(a, cp.array([0, 3, 6])), [5, 6, 10]),
            ("InclusiveSum", cp.cumsum(a), np.cumsum(x)),
            ("ExclusiveSum", cp.concatenate([cp.zeros(1, a.dtype), cp.cumsum(a)[:-1]]), np.cumsum(x) - x),
            ("Scan", cp.maximum.accumulate(a), np.maximum.accumulate(x)),
            ("SortKeys", cp.sort(a), np.sort(x)),
            ("SortPairs", cp.take(cp.arange(8), cp.argsort(a)), np.argsort(x, kind="stable")),
            ("SegmentedSort", a[cp.lexsort(cp.array(np.stack([x, np.arange(8) // 4])))], [1, 1, 2, 3, 1, 2, 2, 9]),
            ("Flagged", a[cp.asarray(mask)], x[mask]),
            ("Unique", a[cp.concatenate([cp.array([True]), a[1:] != a[:-1]])], [3, 1, 2, 9, 1]),
            ("HistogramEven", cp.histogram(a, 3, (0, 9))[0], np.histogram(x, 3, (0, 9))[0]),
            ("HistogramRange", cp.histogram(a, cp.array([0, 2, 4, 10]))[0], np.histogram(x, [0, 2, 4, 10])[0]),
            ("RunLengths", cp.diff(cp.concatenate([cp.array(starts), cp.array([8])])), [1, 2, 3, 1, 1]),
            ("AdjacentDifference", cp.diff(a), np.diff(x)),
        ):
            with self.subTest(name):
                np.testing.assert_array_equal(got.get(), wanted)


class FuseTest(client_case.ClientCase):
    def test_fuse(self):
        traces = []

        @cp.fuse()
        def distance(x, y):
            traces.append(1)
            return cp.sqrt((x - y) ** 2 + 1)

        x, y = np.arange(5.0), np.ones(5)
        for _ in range(3):
            self.same(distance(cp.asarray(x), cp.asarray(y)), np.sqrt((x - y) ** 2 + 1), rtol=1e-15)
        self.assertEqual(len(traces), 1)
        self.same(distance(cp.asarray(x), 2.0), np.sqrt((x - 2.0) ** 2 + 1), rtol=1e-15)

        @cp.fuse(kernel_name="scaled")
        def scaled(x, y):
            x += y
            return x

        ours, theirs = cp.asarray(x), x.copy()
        self.same(scaled(ours, cp.asarray(y)), theirs + y)
        self.same(ours, theirs + y)
        self.same(cp.fuse(lambda a: a * 2)(cp.asarray(x)), x * 2)


class CudaTest(client_case.ClientCase):
    def test_devices(self):
        count = cp.cuda.runtime.getDeviceCount()
        self.assertEqual(count, len([one for one in self.session.devices() if one.kind == client_case.DEVICE_KIND]))
        device = cp.cuda.Device()
        self.assertEqual((device.id, int(device), device), (0, 0, cp.cuda.Device(0)))
        with cp.cuda.Device(0) as inner:
            self.assertEqual(inner.id, 0)
            self.same(cp.arange(4) * 2, np.arange(4) * 2)
            self.assertEqual(cp.cuda.runtime.getDevice(), 0)
        device.use()
        device.synchronize()
        free, total = device.mem_info
        self.assertTrue(0 < free <= total)
        self.assertEqual(cp.cuda.runtime.memGetInfo()[1], total)
        self.assertRegex(device.compute_capability, r"^\d\d+$")
        self.assertEqual(device.attributes["WarpSize"], 32)
        properties = cp.cuda.runtime.getDeviceProperties(0)
        self.assertEqual(properties["name"].decode(), self.session.devices()[0].model)
        self.assertGreater(properties["multiProcessorCount"], 0)
        self.assertGreater(cp.cuda.runtime.runtimeGetVersion(), 10000)
        self.assertTrue(cp.cuda.is_available() and cp.is_available())
        with self.assertRaises(st.NotFound):
            cp.cuda.Device(1000).use()

    def test_streams_and_events(self):
        start, end = cp.cuda.Event(), cp.cuda.Event()
        stream = cp.cuda.Stream(non_blocking=True)
        with stream:
            self.assertIs(cp.cuda.get_current_stream(), stream)
            start.record()
            y = cp.arange(100_000, dtype=cp.float32) ** 2
            y.sum().get()
            end.record(stream)
        end.synchronize()
        self.assertIs(cp.cuda.get_current_stream(), cp.cuda.Stream.null)
        self.assertGreater(cp.cuda.get_elapsed_time(start, end), 0)
        called = []
        stream.launch_host_func(called.append, 5)
        stream.add_callback(lambda *arguments: called.append(arguments[1:]), "a")
        self.assertEqual(called, [5, (0, "a")])
        stream.wait_event(end)
        stream.synchronize()
        self.assertTrue(stream.done)
        cp.cuda.Stream.null.synchronize()
        cp.cuda.runtime.deviceSynchronize()
        with self.assertRaises(ValueError):
            cp.cuda.get_elapsed_time(cp.cuda.Event(), end)
        with self.assertRaisesRegex(st.Unimplemented, "stride.jit"):
            stream.begin_capture()
        with self.assertRaisesRegex(st.Unimplemented, "ExternalStream"):
            cp.cuda.ExternalStream(0)

    def test_memory(self):
        pool = cp.get_default_memory_pool()
        x = cp.ones(1_000_000)
        x.sum().get()
        self.assertGreaterEqual(pool.used_bytes(), x.nbytes)
        self.assertGreaterEqual(pool.total_bytes(), pool.used_bytes())
        pool.free_all_blocks()
        pool.set_limit(size=1 << 30)
        cp.get_default_pinned_memory_pool().free_all_blocks()
        cp.cuda.set_allocator(cp.cuda.MemoryPool().malloc)
        with self.assertRaisesRegex(st.Unimplemented, "cp.empty"):
            cp.cuda.alloc(100)
        self.same(x[:3], np.ones(3))

    def test_benchmark(self):
        calls = []

        def work(x, power):
            calls.append(1)
            return x**power

        result = benchmark(work, (cp.arange(1000.0),), {"power": 2}, n_repeat=4, n_warmup=2)
        self.assertEqual((len(calls), result.cpu_times.shape, result.gpu_times.shape), (6, (4,), (1, 4)))
        self.assertTrue((result.gpu_times[0] >= result.cpu_times).all())
        self.assertRegex(str(result), r"work\s*:\s+CPU:.*us.*GPU-0:")
        self.assertEqual(cupyx.time.repeat(work, (cp.ones(3), 2), n_repeat=2).cpu_times.size, 2)
        with time_range("a range"), cp.cuda.profile():
            cp.cuda.nvtx.RangePush("inner")
            cp.cuda.nvtx.RangePop()


class JitTest(client_case.ClientCase):
    def test_rawkernel(self):
        @jit.rawkernel(device=True)
        def doubled(x):
            return x * 2

        @jit.rawkernel()
        def reversed_copy(x, y, size):
            room = jit.shared_memory(cp.float32, 64)
            i = jit.threadIdx.x
            if i < size:
                room[i] = doubled(x[i])
            jit.syncthreads()
            if i < size:
                y[i] = room[size - 1 - i]

        x = np.arange(40, dtype=np.float32)
        for launch in (
            lambda y: reversed_copy((1,), (64,), (cp.asarray(x), y, cp.uint32(40))),
            lambda y: reversed_copy[1, 64](cp.asarray(x), y, 40),
        ):
            y = cp.zeros(40, dtype=cp.float32)
            launch(y)
            self.same(y, 2 * x[::-1])

        @jit.rawkernel()
        def total(x, y, size):
            for j in range(jit.grid(1), size, jit.gridsize(1)):
                jit.atomic_add(y, 0, x[j])

        y = cp.zeros(1)
        total((8,), (32,), (cp.arange(1000.0), y, 1000))
        self.same(y, np.array([499500.0]))


class TestingTest(client_case.ClientCase):
    def test_decorators(self):
        seen = []

        class Suite:
            @testing.for_all_dtypes(no_complex=True)
            @testing.numpy_cupy_allclose(rtol={np.float16: 1e-2, "default": 1e-6})
            def roots(self, xp, dtype):
                seen.append(dtype)
                return xp.sqrt(testing.shaped_arange((2, 3), xp, dtype))

            @testing.for_dtypes_combination([np.int32, np.float64], names=["a", "b"], full=True)
            @testing.numpy_cupy_array_equal()
            def sums(self, xp, a, b):
                return testing.shaped_arange((3,), xp, a) + testing.shaped_reverse_arange((3,), xp, b)

            @testing.numpy_cupy_equal()
            def shape(self, xp):
                return xp.zeros((2, 3)).shape

            @testing.numpy_cupy_array_equal(accept_error=ValueError)
            def refused(self, xp):
                return xp.zeros((2, 3)).reshape(5)

            @testing.numpy_cupy_array_equal()
            def wrong(self, xp):
                return xp.zeros(3) + (xp is np)

            @testing.numpy_cupy_allclose()
            def other_type(self, xp):
                return xp.zeros(3, dtype=np.float32 if xp is np else np.float64)

        suite = Suite()
        suite.roots()
        suite.sums()
        suite.shape()
        suite.refused()
        self.assertEqual(len(set(map(np.dtype, seen))), 12)
        for failing in (suite.wrong, suite.other_type):
            with self.assertRaises(AssertionError):
                failing()
        testing.assert_allclose(cp.ones(3), np.ones(3))
        with self.assertRaises(AssertionError):
            testing.assert_array_equal(cp.ones(3), cp.zeros(3))
        self.assertEqual(len(testing.product({"a": [1, 2], "b": [3, 4]})), 4)
        self.assertEqual(testing.shaped_random((2, 3), cp, np.int32).dtype, np.int32)


if __name__ == "__main__":
    client_case.main()
