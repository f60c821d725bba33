"""Rules that many of NumPy's functions share: words and numbers of options, types of numbers, negative zeros.
Both libraries evaluate the same text."""

import inspect
import math
import warnings

import numpy as np

import client_case
import stride as st

F4, F8 = np.float32, np.float64

# By function, the values of an option of which some are refused. `{}` is the value.
WORDS = {
    ("left", "Left", "l", "", None, 1): ("np.searchsorted(X([1.0, 2.0]), 1.5, side={})",),
    ("quicksort", "q", "Stable", "m", "x", "", None, 1): (
        "np.sort(X([2.0, 1.0]), kind={})",
        "np.argsort(X([2.0, 1.0]), kind={})",
        "X([2.0, 1.0]).argsort(kind={})",
    ),
    ("introselect", "i", "", None): (
        "np.partition(X([2.0, 1.0]), 0, kind={})",
        "np.argpartition(X([2.0, 1.0]), 0, kind={})",
    ),
    ("raise", "Raise", "r", "wrap", "clip", "", None, 0, 1, 2, True, 1.5): (
        "np.take(X([1.0, 2.0]), 0, mode={})",
        "np.choose(X([0, 1]), [X([1.0, 2.0]), X([3.0, 4.0])], mode={})",
        "X([1.0, 2.0]).take(0, mode={})",
        "np.put(X([1.0, 2.0]), 0, 5.0, mode={})",
    ),
    ("raise", "r", "wrap", None, 0, 1, 2, 3): ("np.ravel_multi_index((X([0, 1]), X([1, 1])), (2, 2), mode={})",),
    ("valid", "v", "V", "VALID", "same", "f", "x", "", 0, 1, 2, 3, -1, True, None, 1.0, b"valid"): (
        "np.correlate(X([1, 2, 3]), X([1, 2]), {})",
        "np.convolve(X([1, 2, 3]), X([1, 2]), mode={})",
    ),
    ("C", "c", "F", "f", "A", "k", "K", "x", "CC", "", None, 1): (
        "np.zeros(2, order={})",
        "np.empty(2, order={})",
        "np.full(2, 1.0, order={})",
        "np.ravel(X([1.0, 2.0]), order={})",
        "np.reshape(X([1.0, 2.0]), (2, 1), order={})",
        "np.array([1.0, 2.0], order={})",
        "np.asarray([1.0, 2.0], order={})",
        "X([1.0, 2.0]).copy(order={})",
        "X([1.0, 2.0]).flatten(order={})",
        "X([1.0, 2.0]).astype(float, order={})",
        "np.ones_like(X([1.0, 2.0]), order={})",
        "np.unravel_index(X([1, 2]), (2, 2), order={})",
        "np.add(X([1.0]), 1.0, order={})",
        "np.sqrt(X([1.0]), order={})",
        "np.divmod(X([1.0]), 1.0, order={})",
        "np.floor_divide(X([1.0]), 1.0, order={})",
        "np.matmul(X([1.0]), X([1.0]), order={})",
    ),
    ("no", "n", "safe", "Safe", "same_kind", "", None, 1): (
        "np.add(X([1.0]), 1.0, casting={})",
        "X([1.0, 2.0]).astype(float, casting={})",
        "np.concatenate([X([1.0]), X([2.0])], casting={})",
        "np.stack([X([1.0]), X([2.0])], casting={})",
    ),
    ("reduced", "r", "complete", "x", None): ("np.linalg.qr(X([[1.0, 2.0], [3.0, 4.0]]), mode={})",),
    ("linear", "Linear", "weibull", "x", None): (
        "np.percentile(X([1.0, 2.0]), 30, method={})",
        "np.nanquantile(X([1.0, 2.0]), 0.3, method={})",
    ),
    ("constant", "Constant", "edge", "c", None): ("np.pad(X([1.0, 2.0]), 1, mode={})",),
    ("xy", "ij", "XY", "x", None): ("np.meshgrid(X([1.0, 2.0]), X([1.0]), indexing={})",),
    ("big", "little", "Big", "x"): ("np.packbits(X([1, 0]).astype(np.uint8), bitorder={})",),
    ("L", "l", "U", "x"): ("np.linalg.eigvalsh(X([[1.0, 2.0], [2.0, 5.0]]), UPLO={})",),
    ("ortho", "Ortho", "forward", "x", None): ("np.fft.fft(X([1.0, 2.0]), norm={})",),
    ("fro", "nuc", "x", 1, 3, None): ("np.linalg.norm(X([[1.0, 2.0], [3.0, 4.0]]), ord={})",),
    ("fb", "f", "B", "x", ""): ("np.trim_zeros(X([0.0, 2.0, 0.0]), trim={})",),
    ("auto", "fd", "Auto", "x"): ("np.histogram(X([1.0, 2.0]), bins={})",),
    ("sort", "table", "x", None): ("np.isin(X([1, 2]), X([1]), kind={})",),
}

# Python's numbers are weak, NumPy's have a type, and a float64 is also a Python float.
NUMBERS = (
    "np.isclose(X(F4([1, 1.1])), {}, rtol=0, atol=1e-9)",
    "np.isclose({}, X(F4([1, 1.1])), rtol=0, atol=1e-9)",
    "np.isclose(X(F4([1, 1.1])), X(F4([1, 1.1])), rtol={}, atol=1e-9)",
    "np.asarray(np.allclose(X(F4([1.1])), {}, rtol=0, atol=1e-9))",
    "np.asarray(np.array_equal(X(F4([1.1])), {}))",
    "np.where(X([True, False]), {}, X(F4([1, 2])))",
    "np.clip(X(F4([1, 2])), {}, None)",
    "np.clip(X(F4([1, 2])), None, {})",
    "np.full_like(X(F4([1])), {})",
    "np.pad(X(F4([1])), 1, constant_values={})",
    "np.percentile(X(F4([1, 2, 3])), {})",
    "np.nanpercentile(X(F4([1, 2, 3])), {})",
    "np.linspace({}, X(F4(2)), 3)",
    "np.linspace(F4(1), {}, 3)",
    "np.logspace(F4(1), {}, 3)",
    "np.geomspace(F4(1), {}, 3)",
    "np.geomspace(X(F4([1, 2])), {}, 3)",
    "np.power(X(F4([2])), {})",
    "np.ediff1d(X(F4([1, 9])), to_end={})",
    "np.select([X([True])], [X(F4([1]))], {})",
    "np.heaviside(X(F4([0])), {})",
    "np.gradient(X(F4([1, 2, 4])), {})",
    "np.trapezoid(X(F4([1, 2, 4])), dx={})",
    "np.append(X(F4([1])), {})",
    "np.insert(X(F4([1])), 0, {})",
    "np.polyval(X(F4([1, 2])), {})",
    "np.maximum(X(F4([1, 2])), {})",
    "np.sum(X(F4([1, 2])), initial={})",
    "np.max(X(F4([1, 2])), initial={})",
    "np.searchsorted(X(F4([1.1])), {})",
    "np.choose(X([0]), [{}, X(F4([1.1]))])",
    "np.kron(X(F4([1, 2, 3])), {})",
    "np.outer(X(F4([1, 2, 3])), {})",
    "np.dot(X(F4([1, 2, 3])), {})",
    "np.dot({}, X(F4([1, 2, 3])))",
    "np.inner(X(F4([1, 2, 3])), {})",
    "np.multiply.outer(X(F4([1])), {})",
    "np.diff(X(F4([1, 2])), prepend={})",
    "np.divmod(X(F4([3])), {})[0]",
    "np.convolve(X(F4([1, 2])), {})",
    "np.linalg.norm(X(F4([1, 2, 1])), ord={})",
    "np.nan_to_num(X(F4([1, float('inf')])), posinf={})",
    "np.average(X(F4([1, 2])), weights=[1, 2]) * {}",
)

ZEROS = (
    "np.sum(X([-0.0, -0.0]), initial=-0.0)",
    "np.sum(X([-0.0, -0.0]), initial=0.0)",
    "np.sum(X([-0.0, -0.0]))",
    "np.sum(X([[-0.0, -0.0], [-0.0, 0.0]]), axis=1, initial=-0.0)",
    "np.sum(X([[-0.0, -0.0], [-0.0, 0.0]]), axis=0, initial=-0.0, keepdims=True)",
    "np.sum(X([-0.0, -0.0]).astype(np.float32), initial=-0.0)",
    "np.sum(X([-0.0, 1.0]), initial=-0.0)",
    "np.sum(X([-0.0, -0.0]), where=X([True, False]))",
    "np.sum(X([-0.0, -0.0]), where=X([True, False]), initial=-0.0)",
    "np.sum(X([-0.0, -0.0]), where=X([False, False]))",
    "np.sum(X([-0.0, -0.0]), where=X([False, False]), initial=-0.0)",
    "np.sum(X([]), initial=-0.0)",
    "np.mean(X([-0.0, -0.0]))",
    "np.mean(X([-0.0, -0.0]), where=X([True, False]))",
    "np.add.reduce(X([-0.0, -0.0]), initial=-0.0)",
    "np.nansum(X([-0.0, -0.0]), initial=-0.0)",
    "np.nansum(X([-0.0, float('nan')]), initial=-0.0)",
    "np.nansum(X([-0.0, float('nan')]))",
    "np.nanmean(X([-0.0, float('nan')]))",
    "np.cumsum(X([-0.0, -0.0]))",
    "np.prod(X([-0.0, 1.0]), initial=1.0)",
    "np.sum(X([complex(-0.0, -0.0)]), initial=complex(-0.0, -0.0)).real",
    "np.sum(X([complex(-0.0, -0.0)]), initial=complex(-0.0, -0.0)).imag",
    "np.sum(X([-0.0] * 1000), initial=-0.0)",
    "np.sum(X([[-0.0] * 1000] * 3), axis=0, initial=-0.0)",
)

# Calls with keywords that few functions have.
KEYWORDS = (
    "np.matmul(X(A), X(A), axes=[(-2, -1), (-1, -2), (-1, -2)])",
    "np.matmul(X(A), X(V), axes=[(1, 2), (0,), (0,)])",
    "np.matmul(X(A), X(V), axes=[(1, 2), 0, 0])",
    "np.matmul(X(A), X(V), axes=((1, 2), 0, 0))",
    "np.matmul(X(A), X(V), axes=[(1, 2), 0])",
    "np.matmul(X(A), X(V), axes=[(1, 1), 0, 0])",
    "np.matmul(X(A), X(V), axis=0)",
    "np.matmul(X(A), X(V), keepdims=True)",
    "np.matmul(X(A), X(V), signature='dd->d')",
    "np.matmul(X(A), X(V), signature=(F4, F4, F4), casting='same_kind')",
    "np.vecdot(X(A), X(A), axis=1, keepdims=True)",
    "np.vecdot(X(A), X(A), axis=0, keepdims=True)",
    "np.vecdot(X(A), X(A), axes=[0, 0])",
    "np.vecdot(X(A), X(A), axes=[(0,), (0,), ()])",
    "np.vecdot(X(A), X(A), axes=[0, 0], keepdims=True)",
    "np.vecdot(X(A), X(A), axes=[0, 0], axis=1)",
    "np.matvec(X(A), X(V), axes=[(1, 2), 0, 0])",
    "np.vecmat(X(V), X(A), axes=[0, (2, 1), 1])",
    "np.add(X(A), 1, signature='ff->f')",
    "np.add(X(A), 1, signature='dd->d', dtype=float)",
    "np.add(X(A), 1, signature=(None, None, F4))",
    "np.add(X(A), 1, signature=F4)",
    "np.add(X(A), 1, signature='dd')",
    "np.less(X(A), 1, signature='dd->?')",
    "np.sqrt(X(A), signature='f->f')",
    "np.sqrt(X(A), signature='q->d')",
    "np.divmod(X(A), 1, signature='dd->dd')[1]",
    "np.frexp(X(A), signature='d->di')[1]",
    "np.floor_divide(X(A), 0.3, signature='ff->f')",
    "np.ldexp(X(A), 2, signature='di->d')",
    "np.sqrt(X(A), order='F', subok=False)",
    "np.asarray(a=X(A))",
)

# Expressions that raise where a kind of floating-point error is set to raise.
FLOAT_ERRORS = (
    "1 / z", "np.log(z)", "np.sqrt(z - 1)", "np.exp(z * 1000)", "np.exp(z * -1000 - 1000)", "z * 1e308 * 10",
    "np.sum(z * 1e308 + 1.7e308)", "np.divmod(z, 0)[0]", "np.power(z, -1.0)", "(z / 1).astype('i4')",
    "X([1e20]).astype('i4')", "X([1, 2]) // 0", "np.multiply(z, 1e308, out=np.zeros(2))", "np.arccos(z + 2)",
    "np.add(X([1e308]), X([1e308]))", "np.matmul(X([[1e308, 1e308]]), X([1.0, 10.0]))", "X([1.0])[0] / 0",
    "np.mean(X([1e308, 1e308]))", "np.reciprocal(z)", "X([1j]) / 0", "np.prod(X([1e200, 1e200]))",
    "np.true_divide(z, z, where=X([False, True]), out=np.zeros(2))", "np.true_divide(z, z, where=X([True, True]))",
)

# Warnings that NumPy gives of shapes, or of NaN that the host has.
SLICES = (
    "np.mean(X([]))", "np.mean(Z((0, 3)), axis=0)", "np.mean(Z((0, 3)), axis=1)", "np.mean(Z((2, 0)), keepdims=True)",
    "np.mean(Z((2, 0, 3)), axis=(0, 1))", "X([]).mean()", "np.var(X([]))", "np.std(X([1.0]), ddof=1)",
    "np.var(Z((2, 3)), axis=0, ddof=2)", "np.var(Z((0, 3)), axis=1)", "X([1.0]).std(ddof=1)", "np.average(X([]))",
    "np.median(X([]))", "np.median(Z((3, 0)), axis=1)", "np.nanmean(X([]))", "np.nanmean(X([float('nan')]))",
    "np.nanmean(Z((0, 3)), axis=1)", "np.nanvar(X([1.0]), ddof=1)", "np.nanvar(Z((1, 3)), axis=0, ddof=1)",
    "np.nanstd(X([]))", "np.nanmedian(X([]))", "np.nanmedian(X([float('nan')]))", "np.nanmax(X([float('nan')]))",
    "np.nanmin(X([[1.0, float('nan')]]), axis=0)", "np.nanpercentile(X([float('nan')]), 50)",
    "np.nanquantile(X([]), 0.5)", "np.cov(X([1.0]))", "np.mean(X([1.0]))", "np.var(X([1.0, 2.0]), ddof=1)",
)


class NumpyRules(client_case.ClientCase):
    def _asked(self, text: str, library, **names):
        """The value of the text, or its error."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return eval(text, {"np": library, "X": library.asarray, "F4": F4, "F8": F8, **names})  # noqa: S307
            except Exception as error:
                return error

    def _alike(self, text: str, tolerance: float = 0, **names):
        ours, theirs = self._asked(text, st, **names), self._asked(text, np, **names)
        with self.subTest(text=text):
            if isinstance(theirs, Exception):
                self.assertIsInstance(ours, type(theirs), ours)
            elif isinstance(ours, Exception):
                self.fail(f"{ours!r}, NumPy: {theirs!r}")
            elif theirs is None or isinstance(theirs, (tuple, list)):
                self.assertEqual(ours is None, theirs is None)
            else:
                values, wanted = np.asarray(ours), np.asarray(theirs)
                self.assertEqual((values.dtype, values.shape), (wanted.dtype, wanted.shape))
                np.testing.assert_allclose(values, wanted, rtol=tolerance, atol=tolerance)
                if wanted.dtype.kind == "f":
                    zero = wanted == 0
                    np.testing.assert_array_equal(np.signbit(values[zero]), np.signbit(wanted[zero]))

    def test_words_of_options(self):
        for words, texts in WORDS.items():
            for text in texts:
                for word in words:
                    self._alike(text.format(repr(word)), 1e-12)

    def test_numbers_with_and_without_types(self):
        for text in NUMBERS:
            for number in ("1.1", "F8(1.1)", "F4(1.1)", "2", "True"):
                if number == "True" and ("percentile" in text or "ord=" in text or "diff(" in text):
                    continue  # bools are no such numbers
                self._alike(text.format(number), 1e-6)

    def test_signs_of_sums_of_zeros(self):
        for text in ZEROS:
            self._alike(text)

    def test_keywords_of_few_functions(self):
        rng = np.random.default_rng(1)
        for text in KEYWORDS:
            self._alike(text, 1e-6, A=rng.random((2, 3, 4)), V=rng.random(4))

    def test_every_keyword_of_numpy_is_accepted(self):
        elementwise = {"out", "where", "casting", "order", "dtype", "subok", "signature"}
        products = elementwise - {"where"} | {"axes", "axis", "keepdims"}
        spaces = ((np, st), (np.linalg, st.linalg), (np.fft, st.fft), (np.random, st.random))
        spaces += ((np.ndarray, st.Array), (np.random.Generator, st.random.Generator))
        num_checked = 0
        for theirs, ours in spaces:
            for name in getattr(theirs, "__all__", dir(theirs)):
                function, mine = getattr(theirs, name), getattr(ours, name, None)
                if name.startswith("_") or mine is None or not callable(function) or isinstance(function, type):
                    continue
                if isinstance(function, np.ufunc):
                    wanted = elementwise if function.signature is None else products
                else:
                    try:
                        parameters = inspect.signature(function).parameters.values()
                    except ValueError:
                        continue  # a built-in function without one
                    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
                    wanted = {one.name for one in parameters if one.kind in named} - {"einsum_call"}
                got = inspect.signature(mine).parameters
                if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in got.values()):
                    continue
                with self.subTest(name=name, of=theirs.__name__):
                    self.assertLessEqual(wanted, set(got))
                num_checked += 1
        self.assertGreater(num_checked, 450)

    def test_floating_point_errors_that_are_set_to_raise(self):
        z = {library: library.asarray([0.0, 1.0]) for library in (np, st)}
        for modes in (
            "all='raise'", "divide='raise'", "over='raise'", "invalid='raise'", "under='raise'", "all='ignore'",
        ):
            for text in FLOAT_ERRORS:
                with self.subTest(modes=modes, text=text):
                    found = []
                    for library in (st, np):
                        with eval(f"np.errstate({modes})", {"np": library}):  # noqa: S307
                            found.append(self._asked(text, library, z=z[library]))
                    if isinstance(found[1], FloatingPointError):
                        self.assertEqual(repr(found[0]), repr(found[1]))
                    else:
                        self.assertNotIsInstance(found[0], Exception)
        calls = []
        before = st.seterrcall(lambda kind, flag: calls.append(kind))
        with st.errstate(all="call"):
            st.log(z[st])
        st.seterrcall(before)
        self.assertEqual(calls, ["divide by zero"])

        @st.errstate(divide="raise")
        def divided():
            return 1 / z[st]

        for _ in range(2):
            with self.assertRaises(FloatingPointError):
                divided()
        before = st.seterr(divide="raise")
        with self.assertRaises(FloatingPointError):
            1 / z[st]  # noqa: B018
        st.seterr(**before)
        with client_case.Sent(self.session) as sent:
            1 / (z[st] + 1)  # noqa: B018
        self.assertEqual(sent.num_messages, 0)  # without explicit treatment nothing is read

    def test_warnings_of_slices(self):
        for text in SLICES:
            found = []
            for library in (st, np):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    eval(text, {"np": library, "X": library.array, "Z": library.zeros})  # noqa: S307
                # Those of an element's value are NumPy's alone.
                found.append([str(one.message) for one in caught if "encountered in" not in str(one.message)])
                if library is st and caught:
                    self.assertIn(caught[0].filename, ("<string>", __file__))
            with self.subTest(text=text):
                self.assertEqual(found[0], found[1])
        with self.assertRaises(ZeroDivisionError):
            st.average(st.array([1.0, 2.0]), weights=[0, 0])

    def test_parts_of_elements_are_views(self):
        """`.real`, `.imag` and `.view(dtype)`: each write is seen by the whole and by all parts."""
        seen = {library: _writes_to_parts(library) for library in (np, st)}
        self.assertEqual(len(seen[st]), len(seen[np]))
        for place, (ours, theirs) in enumerate(zip(seen[st], seen[np])):
            self.assertEqual(ours, theirs, f"after write {place}")

    def test_write_into_a_part_of_a_service_result(self):
        z = st.array([1 + 2j, 3 + 4j]) * 1
        z.real[...] = st.arange(2.0) * 1
        self.same(z, np.array([2j, 1 + 4j]))
        words = (st.array([1.0, 2.0]) * 1).view(np.uint64)
        words |= np.uint64(1 << 63)
        self.same(words.view(np.float64), np.array([-1.0, -2.0]))
        z.setflags(write=False)
        with self.assertRaisesRegex(ValueError, "read-only"):
            z.imag[0] = 1

    def test_numbers_without_axes_behave_as_scalars(self):
        for value in ("np.sum(X([1.0, 2.5]))", "np.sum(X([1, 2]))", "X([1.5, 3.0])[1]", "np.max(X(F4([1, 4])))",
                      "np.any(X([True]))", "np.sum(X([1 + 2j]))"):
            for use in (
                "{}.is_integer()", "{}.as_integer_ratio()", "{}.hex()", "{}.bit_count()", "{}.numerator",
                "{}.denominator", "bytes({})", "hash({})", "'%d' % {}", "'%.2f' % {}", "f'{{{}:.3f}}'", "str({})",
                "list(range({}))", "[10, 11, 12, 13, 14][{}]", "round({})", "int({})", "float({})", "complex({})",
                "bool({})", "{{{}: 1}}[3]", "{}.item()", "{}.conjugate().item()", "divmod({}, 2)[1].item()",
                "math.floor({})", "math.sqrt({})", "'ab' * {}", "bool(sorted([{}, 2])[0] == 2)", "np.isscalar({})",
                "slice({}).indices(5)", "hex({})", "({} + 1).item()",
            ):
                if "any" in value and "round" in use:
                    continue  # NumPy's bools do not round
                with self.subTest(value=value, use=use):
                    text = use.format(value)
                    ours, theirs = self._asked(text, st, math=math), self._asked(text, np, math=math)
                    if isinstance(theirs, Exception):
                        self.assertIsInstance(ours, type(theirs))
                    else:
                        self.assertEqual((type(ours), ours), (type(theirs), theirs))
        for text in ("np.array(3.0)", "np.zeros(())", "np.ones(2)[:1].reshape(())", "np.ones(())[...]"):
            self.assertFalse(self._asked(f"np.isscalar({text})", st))
            self.assertFalse(self._asked(f"np.isscalar({text})", np))
        self.assertEqual(math.trunc(st.sum(st.array([1.5, 2.0]))), 3)
        with self.assertRaises(AttributeError):
            st.arange(3).is_integer  # noqa: B018


def _writes_to_parts(np):  # noqa: N803, the library
    """The elements of arrays and of parts of them, after each of many writes."""
    seen = []

    def note(*arrays):
        seen.append([_host(one).tolist() for one in arrays])

    z = np.array([1 + 2j, 3 + 4j, 5 + 6j])
    z.real[...] = 9
    note(z)
    z.imag[0] = -1
    z.real[1:] = [7, 8]
    note(z)
    z.imag[[0, 2]] = [5, 6]
    z.real[np.array([True, False, True])] = 0
    note(z)
    real, imag = z.real, z.imag
    z[0] = 100 + 200j
    note(real, imag)
    z[:] = 1j
    note(real, imag)
    real[0] = 3
    note(z, real, imag)
    imag += 1
    note(z, imag)
    z.real += 2
    note(z, real)
    z.imag *= 2
    note(z, imag)
    rest = real[1:]
    rest[0] = 44
    note(z, real, rest)
    z *= 2
    note(z, real, rest)
    real.sort()
    note(z, real, rest)
    real.fill(2)
    note(z, rest)
    np.put(real, [0], [5])
    note(z, real)
    np.add.at(real, np.array([0, 0]), 1.0)
    note(z, real, rest)
    del z
    real[1] = 77
    note(real, rest)

    matrix = np.arange(6.0).reshape(2, 3) + 1j
    row = matrix[1:]
    row.real[...] = 0
    note(matrix)
    matrix.T.imag[0] = 9
    note(matrix)
    matrix.real.T[...] = np.arange(6).reshape(3, 2)
    note(matrix, row)

    floats = np.array([1.0, 2.0], dtype="f4")
    words = floats.view("i4")
    words[0] = 0
    note(floats, words)
    floats[1] = -1
    note(words)
    octets = floats.view("u1")
    octets[3] = 63
    octets[2] = 128
    note(floats, words, octets)
    floats += 1
    note(words, octets)
    numbers = np.array([1 + 2j])
    pairs = numbers.view("f8")
    pairs[1] = 7
    note(numbers)
    pairs[...] = [3, 4]
    note(numbers, numbers.real)
    again = pairs.view("c16")
    again[0] = 9
    note(numbers, pairs)
    signed = np.arange(4, dtype="i4")
    unsigned = signed.view("u4")
    unsigned[1] = 2**32 - 1
    note(signed)

    out = np.zeros((2, 2), dtype=complex)
    note(np.add(np.ones((2, 2)), 1.0, out=out.real), out)
    np.copyto(out.imag, 5.0)
    np.copyto(out.imag, 6.0, where=np.array([[True, False], [False, True]]))
    note(out)
    first = out[0].real
    out[0, 0] = 50
    note(first)
    out[0] = 60
    out.real[0, 0] = 1
    note(out, first)
    for n in range(12):
        out.real[0, 1] = n
        out[1, 1] = n
    note(out, first)
    one_by_one = np.zeros(3, dtype=complex)
    for n in range(12):
        one_by_one[0] = n
    part = one_by_one.real
    for n in range(12):
        one_by_one[1] = n
    note(one_by_one, part)
    for n in range(12):
        part[2] = n
        one_by_one[0] = one_by_one[0] + part[2]
    note(one_by_one, part)
    number = np.array(1 + 2j)
    number.real[...] = 4
    np.imag(number)[...] = 8
    note(number)
    return seen


def _host(array) -> np.ndarray:
    return np.asarray(array)
