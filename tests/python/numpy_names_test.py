"""NumPy's functions by name: each compared with NumPy's, over types, shapes, axes, NaN and signed zeros, by
position and by keyword. Also checks that no public name of NumPy is missing."""

import doctest
import inspect
import io
import math
import os
import re
import tempfile
import types
import warnings

import numpy as np

import client_case
import numpy_names_cases as cases
import stride as st
import stride.cupy as cp
from stride import _numpy_names, _numpy_protocol

NAN, INF = float("nan"), float("inf")
NUMBERS = {"np": np, "NAN": NAN, "INF": INF}
# Kinds of errors: ours is one of NumPy's.
KINDS = (AttributeError, IndexError, KeyError, OverflowError, RuntimeError, TypeError, ValueError)
TOLERANCE = {np.dtype(np.float16): 2e-3, np.dtype(np.float32): 2e-6, np.dtype(np.complex64): 4e-6}


def kinds_of(error):
    return [kind for kind in KINDS if isinstance(error, kind)]


def run(expression, names):
    """The value, or the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scope = dict(names)
            if ";" in expression:
                *statements, expression = expression.split(";")
                exec(";".join(statements).strip(), scope)  # noqa: S102
            value = eval(expression.strip(), scope)  # noqa: S307
            return read(value)
    except Exception as error:  # noqa: BLE001
        return error


def read(value):
    """Computes deferred values, so that their errors are raised here."""
    if isinstance(value, st.Array):
        value.to_numpy()
    elif isinstance(value, (tuple, list)):
        for one in value:
            read(one)
    return value


class NamesCase(client_case.ClientCase):
    def both(self, expression, exact=False, protocol=True, loose=0.0, **arrays):
        """`m` is the module, and each array is NumPy's or ours. With `protocol` once more NumPy's functions of ours."""
        if NUMPY >= (2, 5) and expression in REMOVED_IN_2_5:
            return
        theirs = run(expression, {"m": np, **NUMBERS, **{name: np.array(one) for name, one in arrays.items()}})
        for module in (st, np)[:1 + protocol]:
            # Once with elements that the host has, once with ones that it does not.
            given = {
                name: st.asarray(one) if module is st else st.copy(st.asarray(one)) for name, one in arrays.items()
            }
            ours = run(expression, {"m": module, **NUMBERS, **given})
            with self.subTest(expression=expression, module=module.__name__, **{
                    name: f"{np.asarray(one).dtype}{np.shape(one)}" for name, one in arrays.items()}):
                self.equal(ours, theirs, exact, loose, not OF_ORDER.search(expression))

    def equal(self, ours, theirs, exact=False, loose=0.0, signs=True):
        if isinstance(theirs, Exception) or isinstance(ours, Exception):
            if not (isinstance(theirs, Exception) and isinstance(ours, Exception)):
                raise AssertionError(f"ours {ours!r}, NumPy's {theirs!r}")
            self.assertTrue(set(kinds_of(ours)) & set(kinds_of(theirs)), f"ours {ours!r}, NumPy's {theirs!r}")
            return
        if isinstance(theirs, (tuple, list)):
            self.assertIsInstance(ours, (tuple, list))
            self.assertEqual(len(ours), len(theirs))
            for one, other in zip(ours, theirs):
                self.equal(one, other, exact, loose, signs)
            return
        if isinstance(theirs, (np.ndarray, np.generic)):
            if isinstance(theirs, np.generic) and not isinstance(ours, st.Array):
                self.assertIsInstance(ours, (np.generic, bool, int))  # a number of the host
            values = np.asarray(ours)
            self.assertEqual((values.dtype, values.shape), (theirs.dtype, theirs.shape))
            self.elements(values, np.asarray(theirs), exact, loose, signs)
            return
        if isinstance(ours, st.Array):
            ours = ours.item()  # NumPy's own is a number of Python's
        self.assertEqual(type(ours), type(theirs), f"{ours!r} {theirs!r}")
        if ours == ours or theirs == theirs:  # not both NaN
            self.assertEqual(ours, theirs)

    def elements(self, ours, theirs, exact, loose, signs=True):
        if exact or theirs.dtype.kind not in "fc":
            np.testing.assert_array_equal(ours, theirs)
        else:
            rtol = max(loose, TOLERANCE.get(theirs.dtype, 4e-15))
            scale = np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0)
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=float(scale) * rtol)
        if exact and signs and theirs.dtype.kind == "f":
            numbers = ~np.isnan(theirs)
            np.testing.assert_array_equal(np.signbit(ours[numbers]), np.signbit(theirs[numbers]), "signs")


def sample(dtype, shape, seed=0):
    """Small numbers, some of them equal."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    low = 0 if dtype.kind == "u" else -4
    values = rng.integers(low, 9, shape).astype(dtype)
    if dtype.kind == "f":
        values = values / dtype.type(2)
    if dtype.kind == "c":
        values = (values + 1j * rng.integers(-3, 4, shape)).astype(dtype)
    return np.asarray(values, dtype)


SHAPES = ((), (1,), (0,), (5,), (3, 4), (2, 0), (1, 3), (2, 3, 2))
SPECIAL = np.array([0.0, -0.0, NAN, INF, -INF, 1.5, -2.5])

# By name in the expressions.
ARRAYS = {
    "a": np.arange(12.0).reshape(3, 4) / 4 - 1,
    "b": np.array([True, False, True, True, False]),
    "e": np.zeros(0),
    "f": np.arange(5, dtype=np.float32),
    "i": np.array([3, 1, 2, 3, 0]),
    "k": np.array([[4.0, 1.0], [2.0, 3.0]]),
    "n": np.array([[1.0, NAN, 3.0], [NAN, NAN, NAN], [4.0, 5.0, -6.0]]),
    "u": np.array([1, 200, 3, 4], np.uint8),
    "v": SPECIAL,
    "z": np.array([1 + 2j, -1 - 0.5j, 0j, 2 - 1j]),
}
METHODS = (
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
)
# Functions that order elements: zeros of both signs are equal, and NumPy's order of them depends on the processor.
OF_ORDER = re.compile(r"\.(sort|unique\w*|partition|setdiff1d|setxor1d|union1d|intersect1d)\(")
# NumPy 2.5 refuses them; ours, as CuPy's, has them with every NumPy.
NUMPY = tuple(int(part) for part in np.__version__.split(".")[:2])
REMOVED_IN_2_5 = {"m.cross([1, 2], [3, 4, 5])"}
# Intended differences: NumPy's error is internal, or its result orders complex numbers in a way that the
# service lacks.
DIFFERENT = {
    ("m.tril(a)", ()), ("m.triu(a, 1)", ()), ("m.polyder(a)", (2, 3)), ("m.polyder(a)", (2, 3, 2)),
}


def expressions(text):
    for line in text.strip().splitlines():
        exact = line.startswith("= ")
        yield (line[2:] if exact else line).strip(), exact


class NamesTest(NamesCase):
    def family(self, text, loose=0.0, protocol=True):
        for expression, exact in expressions(text):
            names = {name: one for name, one in ARRAYS.items() if re.search(rf"\b{name}\b", expression)}
            self.both(expression, exact, protocol, loose, **names)

    def of_one(self, a, protocol):
        for expression, exact in expressions(cases.OF_ONE):
            if (expression, a.shape) in DIFFERENT or a.dtype.kind == "c" and "histogram" in expression:
                continue
            self.both(expression, exact, protocol=protocol, a=a)

    def test_types(self):
        for dtype in (bool, np.int8, np.uint64, np.float16, np.float32, np.complex128):
            for shape in ((), (0,), (1, 3), (3, 4)):
                self.of_one(sample(dtype, shape), False)

    def test_shapes(self):
        for shape in SHAPES:
            self.of_one(sample(np.float64, shape), True)

    def test_nan_infinities_and_signed_zeros(self):
        for dtype in (np.float64, np.float32):
            self.of_one(SPECIAL.astype(dtype), False)
        self.of_one(np.array([[-0.0, 0.0, -0.0], [NAN, 2.0, 1.0]]), False)

    def test_creation(self):
        self.family(cases.CREATION)

    def test_comparisons(self):
        self.family(cases.COMPARISONS)

    def test_order(self):
        self.family(cases.ORDER)

    def test_histograms(self):
        self.family(cases.HISTOGRAMS)

    def test_joining(self):
        self.family(cases.JOINING)

    def test_padding(self):
        self.family(cases.PADDING)

    def test_shapes_of_views(self):
        self.family(cases.SHAPES)

    def test_selection(self):
        self.family(cases.SELECTION)

    def test_reductions(self):
        self.family(cases.REDUCTIONS)

    def test_statistics(self):
        self.family(cases.STATISTICS)

    def test_quantiles(self):
        self.family("\n".join(cases.QUANTILES.strip().replace("{}", method) for method in METHODS))

    def test_calculus(self):
        self.family(cases.CALCULUS)

    def test_products(self):
        self.family(cases.PRODUCTS)

    def test_polynomials(self):
        self.family(cases.POLYNOMIALS, loose=1e-12)

    def test_rounding_and_bits(self):
        self.family(cases.ROUNDING)

    def test_names(self):
        self.family(cases.NAMES)

    def test_attributes(self):
        self.family(cases.ATTRIBUTES)

    def test_ufuncs(self):
        self.family(cases.UFUNCS)

    def test_modules_and_polynomials(self):
        self.family(cases.MODULES, loose=1e-13)

    def test_iterators(self):
        self.family(cases.ITERATORS, protocol=False)

    def test_strided_layouts_are_copies_for_reading(self):
        values = np.arange(12.0).reshape(3, 4)
        for array, host in ((st.asarray(values), values), (st.asarray(values).T.copy(), values.T.copy())):
            for shape, strides in (
                ((2, 2, 2), (8, 16, 8)),
                ((4,), (24,)),
                ((5, 2), (0, 8)),
                ((0, 3), (8, 8)),
                ((), ()),
            ):
                ours = st.lib.stride_tricks.as_strided(array, shape, strides)
                self.same(ours, np.lib.stride_tricks.as_strided(host, shape, strides))
                self.assertFalse(ours.flags.writeable)
            for shape, strides in (((13,), (8,)), ((2,), (-8,)), ((2,), (4,)), ((2, 2), (8,)), ((-1,), (8,))):
                with self.assertRaises(ValueError):
                    st.lib.stride_tricks.as_strided(array, shape, strides)
        with self.assertRaisesRegex(ValueError, "contiguous in C order"):
            st.lib.stride_tricks.as_strided(st.asarray(values).T, (2,), (8,))
        with self.assertRaisesRegex(st.Unimplemented, "writeable=True"):
            st.lib.stride_tricks.as_strided(array, (2,), (8,), writeable=True)

    def test_modules_are_imported_by_their_names(self):
        import stride.lib.scimath
        import stride.polynomial.chebyshev
        from stride.exceptions import AxisError
        from stride.lib.stride_tricks import sliding_window_view
        from stride.typing import NDArray

        self.assertIs(AxisError, np.exceptions.AxisError)
        self.assertIs(st.ndarray[NDArray[np.float64], np.dtype], st.Array)
        self.assertIs(stride.lib.scimath, st.emath)
        self.assertIs(stride.polynomial.chebyshev, np.polynomial.chebyshev)
        self.assertIs(sliding_window_view, st.lib.stride_tricks.sliding_window_view)
        self.assertEqual(cp.poly1d([1, 2])(2), 4)

    def test_legacy_uniform_between_numbers_in_either_order(self):
        numbers = np.asarray(st.random.uniform(10, 1, 1000))
        self.assertTrue(np.all((numbers > 1) & (numbers <= 10)))
        self.assertLess(abs(numbers.mean() - 5.5), 0.5)
        with self.assertRaises(ValueError):
            st.random.default_rng(0).uniform(10, 1)


class ClosedTest(NamesCase):
    """Every public name of NumPy is present or refused, and those present are documented."""

    def test_every_name_exists_or_is_refused(self):
        public = {name for name in dir(np) if not name.startswith("_")}
        there = {name for name in public if name in _numpy_names._MODULES or hasattr(st, name)}
        forgotten = public - there - set(_numpy_names.REFUSED)
        self.assertEqual(forgotten, set())
        self.assertEqual(there & set(_numpy_names.REFUSED), set())
        for name, reason in _numpy_names.REFUSED.items():
            with self.assertRaisesRegex(AttributeError, re.escape(reason.format(name=name))):
                getattr(st, name)
        with self.assertRaisesRegex(AttributeError, "use stride.trapezoid"):
            st.trapz
        with self.assertRaisesRegex(AttributeError, "has no attribute 'nothing'"):
            st.nothing

    def test_methods_and_attributes_of_arrays(self):
        missing = {name for name in dir(np.ndarray) if not name.startswith("_")} - set(dir(st.Array))
        self.assertEqual(missing, {"ctypes", "data", "getfield", "setfield"})
        for name in missing:
            with self.assertRaisesRegex(AttributeError, rf"np.asarray\(x\).{name}"):
                getattr(st.ones(2), name)

    def test_parameters_are_numpys(self):
        """Each of NumPy's parameters by its name or place."""
        # `where` and `clip` say it otherwise; these read files and text of the host by NumPy's own function.
        others = {
            "array2string",
            "clip",
            "fromfunction",
            "load",
            "loadtxt",
            "genfromtxt",
            "fromfile",
            "frombuffer",
            "fromiter",
            "fromstring",
            "save",
            "savetxt",
            "savez",
            "savez_compressed",
            "show_config",
            "vectorize",
            "asarray",
            "apply_along_axis",
            "apply_over_axes",
            "broadcast_arrays",
            "histogram2d",
            "concat",
            "concatenate",
            "einsum_path",
        }
        for name in st.__all__:
            theirs, ours = getattr(np, name, None), getattr(st, name)
            if (
                name in others
                or theirs is ours
                or not isinstance(ours, types.FunctionType)
                or isinstance(theirs, (type, np.ufunc))
            ):
                continue
            try:
                wanted = inspect.signature(theirs).parameters
            except (TypeError, ValueError):
                continue
            got = inspect.signature(ours).parameters
            for place, (key, one) in enumerate(wanted.items()):
                with self.subTest(function=name, parameter=key):
                    if one.kind is one.POSITIONAL_ONLY:
                        self.assertLess(place, len(got))
                        continue
                    if key in ("kwargs", "kw") or one.kind is one.VAR_POSITIONAL:
                        continue
                    self.assertIn(key, got)
                    if one.kind is one.POSITIONAL_OR_KEYWORD:
                        self.assertEqual(list(got).index(key), place)
                        self.assertNotEqual(got[key].kind, one.KEYWORD_ONLY)

    def test_examples_and_docstrings(self):
        runner = doctest.DocTestRunner(verbose=False)
        seen = set()
        for name in sorted(st.__all__):
            one = getattr(st, name)
            if not callable(one) or id(one) in seen or not (getattr(one, "__module__", "") or "").startswith("stride"):
                continue
            seen.add(id(one))
            if isinstance(one, types.FunctionType):
                self.assertTrue(one.__doc__, name)
            # NumPy reads a CPU device's memory alone.
            if one is st.MappedArray and client_case.DEVICE_KIND == "cuda":
                continue
            test = doctest.DocTestParser().get_doctest(
                one.__doc__ or "", {"st": st, "stride": st, "np": np}, name, None, None
            )
            output = io.StringIO()
            runner.run(test, out=output.write)
            self.assertEqual(output.getvalue(), "", name)
        self.assertGreater(runner.summarize(verbose=False).attempted, 250)

    def test_a_missing_function_downloads_with_one_warning(self):
        table = _numpy_protocol._table()
        ours = table.pop(np.kron)
        self.addCleanup(table.__setitem__, np.kron, ours)
        x = st.ones(2) + 1
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = np.kron(x, [1, 2])
        np.testing.assert_array_equal(result, [2, 4, 2, 4])
        self.assertEqual([(one.category, os.path.basename(one.filename)) for one in caught],
                         [(st.DownloadWarning, "numpy_names_test.py")])
        self.assertIn("numpy.kron", str(caught[0].message))

    def test_missing_functions_of_submodules_name_the_line(self):
        x = st.ones(3) + 1
        cases = {
            "numpy.lib.scimath.sqrt": lambda: np.emath.sqrt(x - 3),
            "numpy.lib.scimath.logn": lambda: np.emath.logn(2, x),
            "numpy.lib.stride_tricks.sliding_window_view": lambda: np.lib.stride_tricks.sliding_window_view(x, 2),
            "numpy.isnat": lambda: np.isnat(x.astype(st.int64), dtype=None),
            "numpy.dstack": lambda: np.dstack([x, [1, 2, 3]]),
        }
        table = _numpy_protocol._table()
        for theirs in (np.dstack, np.emath.sqrt, np.emath.logn, np.lib.stride_tricks.sliding_window_view):
            self.addCleanup(table.__setitem__, theirs, table.pop(theirs))
        for name, call in cases.items():
            with self.subTest(name), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    call()
                except TypeError:
                    self.assertEqual(name, "numpy.isnat")  # NumPy's result for numbers
                self.assertEqual([one.category for one in caught], [st.DownloadWarning])
                self.assertEqual((caught[0].filename, caught[0].lineno), (__file__, call.__code__.co_firstlineno))
                self.assertIn(name.rpartition(".")[2], str(caught[0].message))

    def test_missing_names_raise_with_the_alternative(self):
        for name in _numpy_names.REFUSED:
            with self.assertRaisesRegex(AttributeError, rf"stride has no '{name}'.*(\buse\b|write|x\.flat|numpy\.)"):
                getattr(st, name)
        for module in ("linalg", "fft", "random"):
            theirs = getattr(np, module)
            both = ((getattr(st, module), f"stride.{module} has"), (getattr(cp, module), f"stride.cupy.{module} has"))
            for ours, text in both:
                for name in dir(theirs):
                    if not name.startswith("_") and not hasattr(ours, name):
                        with self.assertRaisesRegex(AttributeError, rf"{text} no .*; use numpy.{module}.{name}"):
                            getattr(ours, name)
            with self.assertRaisesRegex(AttributeError, f"{module} has no 'concatenate'; use stride.concatenate"):
                getattr(st, module).concatenate
            with self.assertRaisesRegex(AttributeError, f"module 'stride.{module}' has no attribute 'invented'"):
                getattr(st, module).invented

    def test_write_to_a_downloaded_array_is_refused(self):
        table = _numpy_protocol._table()
        ours = table.pop(np.fill_diagonal)
        self.addCleanup(table.__setitem__, np.fill_diagonal, ours)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.assertRaises(ValueError):
                np.fill_diagonal(st.ones((2, 2)), 5)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.npy")
            np.save(path, st.arange(3))
            self.same(st.load(path), np.arange(3))
            np.savetxt(os.path.join(folder, "x.txt"), st.ones((2, 2)))
            self.same(st.loadtxt(os.path.join(folder, "x.txt")), np.ones((2, 2)))
            st.savez(os.path.join(folder, "x.npz"), st.arange(3), y=st.ones(2))
            with st.load(os.path.join(folder, "x.npz")) as archive:
                self.assertEqual(sorted(archive), ["arr_0", "y"])
                self.same(archive["arr_0"], np.arange(3))
            (st.arange(4) * 2).tofile(os.path.join(folder, "x.bin"))
            self.same(st.fromfile(os.path.join(folder, "x.bin"), np.int64), np.arange(4) * 2)
        with self.assertRaises(st.DataTypeMismatch):
            st.genfromtxt(["a 1"], dtype=None, encoding="utf-8")

    def test_unsupported_arguments_are_refused(self):
        x = st.ones(2)
        for call in (
            lambda: st.array(x, subok=True),
            lambda: st.copy(x, subok=True),
            lambda: st.broadcast_to(x, (2, 2), subok=True),
        ):
            with self.assertRaisesRegex(st.Unimplemented, "subclasses"):
                call()
        with self.assertRaises(st.Unimplemented):
            st.r_["r", [1, 2]]
        with self.assertRaises(st.Unimplemented):
            x.view(np.recarray)

    def test_numbers_in_place_of_nan_do_not_make_the_array_larger(self):
        for m in (np, st):
            for name in ("nan", "posinf", "neginf"):
                for x in (m.asarray([0.0, 1, m.nan, 4]), 0.0):
                    with self.assertRaisesRegex(ValueError, "could not broadcast"):
                        m.nan_to_num(x, **{name: m.zeros((2, 4))})

    def test_indices_that_the_service_alone_has_fail_at_the_read(self):
        places = st.array([1, 12]) + 0
        rows, _ = st.unravel_index(places, (3, 4))
        with self.assertRaises(IndexError):
            rows.to_numpy()
        place = st.ravel_multi_index((st.array([-1, 0]) + 0, st.array([0, 0]) + 0), (3, 4))
        with self.assertRaises(IndexError):
            place.to_numpy()

    def test_functions_record_without_reading(self):
        x = st.ones((3, 4)) + 1
        with client_case.Sent(self.session) as sent:
            kept = [
                st.median(x, 0),
                st.percentile(x, [10, 20]),
                st.nanmean(x),
                st.interp(x, [0.0, 1.0], [1.0, 2.0]),
                st.cov(x),
                st.select([x > 1], [x], 0),
                st.pad(x, 1, "reflect"),
                st.convolve(x[0], x[1]),
                st.isclose(x, 2),
                st.gradient(x, axis=0),
                st.array([x, x]),
                st.average(x, weights=x),
                st.unravel_index(st.arange(3) + 0, (3, 4)),
                st.lexsort((x, x)),
                st.nanquantile(x, 0.5),
                st.trapezoid(x),
                st.unwrap(x),
                st.choose(st.arange(3) + 0, [1, 2, 3]),
            ]
        # Long chains are sent as they are recorded, without a read.
        read = [
            one
            for one in sent.commands
            if one.HasField("fetch") or any(out.inline_result for out in one.operation.outputs)
        ]
        self.assertEqual(read, [])
        self.assertEqual(len(kept), 18)

    def test_attributes_of_ufuncs(self):
        for name in st.__all__:
            theirs = getattr(np, name, None)
            if not isinstance(theirs, np.ufunc):
                continue
            ours = getattr(st, name)
            with self.subTest(name=name):
                for attribute in ("nin", "nout", "nargs", "identity", "signature"):
                    self.assertEqual(getattr(ours, attribute), getattr(theirs, attribute), attribute)
                self.assertEqual(ours.ntypes, len(ours.types))
                self.assertTrue(set(ours.types) <= set(theirs.types))
                self.assertFalse(any(set(one) & set("OgGmMSUV") for one in ours.types))
        types = (np.dtype("i4"), np.dtype("f4"), None)
        self.assertEqual(st.add.resolve_dtypes(types), np.add.resolve_dtypes(types))

    def test_a_cast_of_complex_numbers_to_real_ones_warns(self):
        x = st.array([1 + 2j, 3j])
        for dtype in (float, np.float32, np.int8):
            with self.subTest(dtype=dtype), self.assertWarns(np.exceptions.ComplexWarning):
                x.astype(dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            x.astype(bool)
            x.astype(np.complex64)
            x.real.astype(np.float32)

    def test_a_buffer_of_an_array(self):
        np.testing.assert_array_equal(st.ndarray((2,), buffer=st.array([1, 2, 3]), offset=8, dtype=int), [2, 3])

    def test_vectorize_of_an_untranslatable_function(self):
        values = {0.1: 5, 0.5: 6, 1.0: 7}
        calls = []

        def counted(x):
            calls.append(x)
            return x * 2

        def power(x, by=2, **_):
            return x**by

        class Scale:
            @st.vectorize
            def times(self, x):
                return f"{x * self.by:g}"

            by = 3

        host = np.array([0.1, 0.5, 1.0])
        x = st.asarray(host)
        for function, named in (
            (math.cos, {}), (values.get, {}), (int, {}), (counted, {}), (power, {"by": 3}), (lambda *v: v[0] + 1, {}),
            (lambda v: values[float(v)], {}), (lambda v: f"{v:g}", {}),
        ):  # fmt: skip
            with self.assertWarnsRegex(st.DownloadWarning, "is not compiled") as caught:
                ours = st.vectorize(function)(x, **named)
            self.assertIn("numpy_names_test.py", caught.filename)
            np.testing.assert_array_equal(np.asarray(ours), np.vectorize(function)(host, **named), strict=True)
        self.assertEqual([float(one) for one in calls], [0.1, *host] * 2)
        with self.assertWarnsRegex(st.DownloadWarning, r"\(.*the source of cos is not there"):
            st.vectorize(math.cos)(x)
        with self.assertWarns(st.DownloadWarning):
            self.assertEqual(Scale().times(x).tolist(), ["0.3", "1.5", "3"])
        # Translated functions stay with the service, in a trace and with Numba's target alone.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.same(st.vectorize(lambda v: v + 1)([1, 2]), [2, 3])
            self.same(st.vectorize(lambda v: v * v)(x), host**2)
        for call in (
            lambda: st.vectorize(math.cos, target="cuda")(x),
            lambda: st.jit(lambda x: st.vectorize(counted)(x))(x),
        ):
            with self.assertRaises(st.ExpressionError):
                call()

    def test_vectorize_with_keywords_of_numpy(self):
        def larger(a, b):
            return a + b if a > b else a - b

        def several(*all_of_them):
            return sum(all_of_them)

        def polynomial(p, x):
            result = 0
            for one in p:
                result = result * x + one
            return result

        x = st.arange(4)
        cases = [
            (larger, {"otypes": [float]}, (x, 1), {}),
            (larger, {"otypes": ["float32"], "doc": "text"}, (x, 1), {}),
            (several, {"otypes": [int]}, (x, 1, 2), {}),
            (several, {"cache": True}, (x, 1), {}),
            (math.cos, {"otypes": "d"}, (x,), {}),
            (lambda a: (a, 2.5 * a), {"otypes": ["f", "d"]}, (x,), {}),
            (polynomial, {"excluded": ["p"]}, (), {"p": [1, 2, 3], "x": x}),
            (np.convolve, {"signature": "(n),(m)->(k)"}, (st.eye(4), [1, 2, 1]), {}),
            (lambda a: a + 1, {"otypes": [float]}, (3,), {}),
            (lambda a: a + 1, {"otypes": [float]}, ([],), {}),
        ]
        for function, options, arguments, named in cases:
            with self.subTest(function=function, options=options), warnings.catch_warnings():
                warnings.simplefilter("ignore", st.DownloadWarning)
                ours = st.vectorize(function, **options)(*arguments, **named)
                host = [np.asarray(one) if isinstance(one, st.Array) else one for one in arguments]
                theirs = np.vectorize(function, **options)(
                    *host,
                    **{name: np.asarray(one) if isinstance(one, st.Array) else one for name, one in named.items()},
                )
                for one, other in zip(ours, theirs) if isinstance(theirs, tuple) else [(ours, theirs)]:
                    self.assertIsInstance(one, st.Array)
                    self.assertEqual(one.dtype, other.dtype)
                    np.testing.assert_array_equal(one, other)
        self.assertEqual(st.vectorize(larger, doc="text").__doc__, "text")
        with self.assertWarns(st.DownloadWarning) as caught:
            st.vectorize(several, otypes=[int])(x, 1)
        self.assertEqual(caught.filename, __file__)

    def test_base(self):
        x = st.ones(6)
        view = x.reshape(2, 3)[1]
        self.assertIs(view.base, x)
        self.assertFalse(view.flags.owndata)
        del x
        self.assertIsNone(view.base)
        self.assertTrue(view.flags.owndata)


if __name__ == "__main__":
    client_case.main()
