"""User-defined functions, compared with NumPy."""

import numpy as np

import client_case
import stride as st

_MIX = """
__device__ float mix(float a, float b) { return a + 2.0f * b; }
"""
_CUMULATED = """
template <class T>
__device__ void cumulated(stride_view<const T, 1> in, stride_view<T, 1> out) {
  T sum = 0;
  for (long long i = 0; i < in.size(0); ++i) { sum += in(i); out(i) = sum; }
}
"""
_SCALED = """
__device__ void scaled(stride_view<const double, 2> a, stride_view<const double, 1> b, stride_view<double, 1> out) {
  for (long long i = 0; i < a.size(0); ++i)
    for (long long k = 0; k < a.size(1); ++k) out(i) += a(i, k) * b(k);
}
"""


class FunctionTest(client_case.ClientCase):
    def test_an_expression_fuses_and_chooses_its_loop(self):
        norm = st.define_ufunc(
            "norm3", ["float32,float32->float32", "float64,float64->float64"], expression="sqrt(a*a + b*b + 3)"
        )
        x, y = np.linspace(-2, 2, 20, dtype=np.float32), np.linspace(0, 1, 20)
        expected = np.sqrt(x * x + np.float32(1.5) ** 2 + np.float32(3))
        self.same(norm(st.asarray(x), 1.5), expected, rtol=1e-6)
        self.same(norm(st.asarray(x), y), np.sqrt(x.astype(float) ** 2 + y * y + 3), rtol=1e-12)
        a = st.asarray(x)
        with client_case.Sent(self.session) as sent:
            fused = np.asarray(st.cos(norm(a, a)) + 1)
        self.assertEqual(sent.kinds.count("expression"), 1)
        np.testing.assert_allclose(fused, np.cos(np.sqrt(2 * x * x + 3)) + 1, rtol=1e-5)
        self.same(
            norm(st.asarray(np.arange(4, dtype=np.int32)), 1, dtype=st.float32),
            np.sqrt(np.arange(4) ** 2 + 4).astype(np.float32),
            rtol=1e-6,
        )
        with self.assertRaises(st.DataTypeMismatch):
            norm(st.asarray(np.ones(3, np.complex64)), 1)

    def test_a_device_function_and_the_methods_of_ufuncs(self):
        mix = st.define_ufunc("mix", "float32,float32->float32", source=_MIX, identity=0)
        x = np.arange(12, dtype=np.float32).reshape(3, 4)
        self.same(mix(st.asarray(x), st.asarray(x[0])), x + 2 * x[0])
        # Not associative: from the first element to the last.
        reference = np.frompyfunc(lambda a, b: a + 2 * b, 2, 1)
        self.same(mix.reduce(st.asarray(x)), reference.reduce(x, axis=0).astype(np.float32))
        self.same(
            mix.reduce(st.asarray(x), axis=1, keepdims=True), reference.reduce(x, axis=1).astype(np.float32)[:, None]
        )
        self.same(mix.accumulate(st.asarray(x), axis=1), reference.accumulate(x, axis=1).astype(np.float32))
        self.same(mix.outer(st.asarray(x[0]), st.asarray(x[1])), x[0][:, None] + 2 * x[1])
        self.same(mix.reduceat(st.asarray(x[1]), np.array([0, 2])), np.array([4 + 2 * 5, 6 + 2 * 7], np.float32))
        target = st.asarray(np.zeros(3, np.float32)) + 0
        mix.at(target, np.array([0, 2, 0]), np.array([1, 2, 3], np.float32))
        self.same(target, np.array([8, 0, 4], np.float32))

    def test_a_reduction_of_several_inputs(self):
        dot = st.define_reduction(
            "weighted", ["float32,float32->float64->float32"], map="a*b", combine="a + b", finish="sqrt(a)", identity=0
        )
        x, y = np.arange(1, 13, dtype=np.float32).reshape(3, 4), np.linspace(1, 2, 4, dtype=np.float32)
        self.same(
            dot(st.asarray(x), st.asarray(y), axis=1),
            np.sqrt((x * y).sum(1, dtype=float)).astype(np.float32),
            rtol=1e-6,
        )
        self.same(
            dot(st.asarray(x), st.asarray(y), keepdims=True),
            np.sqrt((x * y).sum(dtype=float)).astype(np.float32).reshape(1, 1),
            rtol=1e-6,
        )
        self.same(dot(st.asarray(x[:0]), st.asarray(y), axis=0), np.zeros(4, np.float32))
        widest = st.define_reduction(
            "widest",
            "int64->int64",
            source="__device__ long long wide(long long a, long long b) { return a > b ? a : b; }",
            combine="wide",
        )
        self.same(widest(st.asarray(np.array([[3, 9], [4, -5]])), axis=0), np.array([4, 9]))

    def test_several_results(self):
        source = """
__device__ void parts(double x, double* part, int* whole) { *whole = (int)x; *part = x - *whole; }
"""
        parts = st.define_ufunc("parts", "float64->float64,int32", source=source)
        both = st.define_ufunc(
            "sum_and_order", ["int64,int64->int64,bool", "float64,float64->float64,bool"], expression=["a + b", "a > b"]
        )
        x = np.linspace(0, 9, 40).reshape(4, 10)
        fraction, whole = parts(st.asarray(x))
        self.same(fraction, np.modf(x)[0])
        self.same(whole, np.modf(x)[1].astype(np.int32))
        for ours, theirs in zip(both(st.asarray(x), 3), (x + 3, x > 3)):
            self.same(ours, theirs)
        for ours, theirs in zip(
            both(st.arange(5), st.asarray([3, 1, 2, 5, 0])),
            (np.arange(5) + [3, 1, 2, 5, 0], np.arange(5) > [3, 1, 2, 5, 0]),
        ):
            self.same(ours, theirs)
        out, mask = st.ones((4, 10)), x > 4
        fraction, whole = parts(st.asarray(x), out=(out, None), where=mask)
        self.assertIs(fraction, out)
        self.same(out, np.where(mask, np.modf(x)[0], 1))
        self.same(whole, np.where(mask, np.modf(x)[1], 0).astype(np.int32))
        with self.assertRaises(TypeError):
            both.reduce(st.arange(4))
        plain = st.define_ufunc("twice_plus", "float64,float64->float64", expression="2*a + b")
        self.same(plain(st.asarray(x), 1, where=mask), np.where(mask, 2 * x + 1, 0))
        target = st.zeros((4, 10))
        self.assertIs(plain(st.asarray(x), x[0], out=target), target)
        self.same(target, 2 * x + x[0])
        self.same(
            plain.reduce(st.asarray(x), axis=1, initial=1, where=mask),
            np.array(
                [np.frompyfunc(lambda a, b: 2 * a + b, 2, 1).reduce([1.0, *row[kept]]) for row, kept in zip(x, mask)]
            ),
        )

    def test_gufuncs_take_axes_and_numbers(self):
        scaled = st.define_gufunc(
            "scaled_rows", "(m,n),(n)->(m)", "float64,float64->float64", source=_SCALED, entry="scaled"
        )
        a, b = np.arange(60.0).reshape(3, 4, 5), np.arange(12.0).reshape(4, 3)
        # m is axis 2, n axis 0 of a; n axis 1 of b; the loop is 4.
        self.same(scaled(st.asarray(a), st.asarray(b), axes=[(2, 0), 1, 0]), np.einsum("nlm,ln->ml", a, b))
        self.same(scaled(st.asarray(a), st.asarray(b[0]), axes=[(-1, 0), -1, -1]), np.einsum("nlm,n->lm", a, b[0]))
        dot = st.define_gufunc("own_dot", "(n),(n)->()", "float64,float64->float64", source="""
__device__ void own_dot(stride_view<const double, 1> a, stride_view<const double, 1> b, stride_view<double, 0> out) {
  for (long long i = 0; i < a.size(0); ++i) out() += a(i) * b(i);
}
""")
        self.same(dot(st.asarray(a), st.asarray(a), axis=1), np.einsum("ijk,ijk->ik", a, a))
        self.same(dot(st.asarray(a), st.asarray(a), axis=1, keepdims=True), np.einsum("ijk,ijk->ik", a, a)[:, None])
        self.same(
            dot(st.asarray(a), st.asarray(a), keepdims=True, axes=[0, 0, 1]), np.einsum("ijk,ijk->jk", a, a)[:, None]
        )
        with self.assertRaises(ValueError):
            scaled(st.asarray(a), st.asarray(b), axis=0)
        with self.assertRaises(ValueError):
            scaled(st.asarray(a), st.asarray(b), axes=[(2, 0), 1, (0, 1)])
        half = st.define_gufunc("own_scale", "(n),()->(n)", "float16,float16->float16", source="""
__device__ void own_scale(
    stride_view<const stride_float16, 1> x, stride_view<const stride_float16, 0> s, stride_view<stride_float16, 1> y) {
  for (long long i = 0; i < x.size(0); ++i) y(i) = x(i) * s();
}
""")
        self.same(half(st.asarray(a.astype(np.float16)), 0.5), (a / 2).astype(np.float16))

    def test_numpys_gufuncs_take_axes(self):
        rng = np.random.default_rng(2)
        a, b = rng.integers(0, 9, (3, 4, 5)), rng.integers(0, 9, (5, 3, 2)).astype(float)
        self.same(
            np.matmul(st.asarray(a), st.asarray(b), axes=[(1, 2), (0, 2), (0, 2)]),
            np.matmul(a, b, axes=[(1, 2), (0, 2), (0, 2)]),
        )
        self.same(np.matmul(st.asarray(a[0]), st.asarray(b[:, 0, 0])), np.matmul(a[0], b[:, 0, 0]))
        self.same(np.vecdot(st.asarray(a), st.asarray(a[:, :1]), axis=2), np.vecdot(a, a[:, :1], axis=2))
        self.same(
            np.vecdot(st.asarray(a), st.asarray(a), axis=1, keepdims=True), np.vecdot(a, a, axis=1, keepdims=True)
        )
        z = a[0] + 1j * a[1]
        self.same(np.vecdot(st.asarray(z), st.asarray(z), axis=0), np.vecdot(z, z, axis=0))
        for name in ("matvec", "vecmat"):
            if hasattr(np, name):
                function = getattr(np, name)
                vector, matrix = z[0], rng.integers(0, 9, (5, 2, 5)) * 1j
                inputs = (matrix, vector) if name == "matvec" else (vector, matrix)
                axes = [(0, 2), 0, 1] if name == "matvec" else [0, (0, 2), 1]
                self.same(function(*map(st.asarray, inputs), axes=axes), function(*inputs, axes=axes))
        self.same(np.matmul(st.asarray(a), st.asarray(a.mT), dtype=float), np.matmul(a, a.mT, dtype=float))

    def test_a_gufunc_maps_over_the_axes_before(self):
        cumulated = st.define_gufunc("cumulated", "(n)->(n)", ["int64->int64", "float64->float64"], source=_CUMULATED)
        x = np.arange(24.0).reshape(2, 3, 4)
        self.same(cumulated(st.asarray(x)), np.cumsum(x, axis=-1))
        self.same(cumulated(st.asarray(x.astype(np.int64))), np.cumsum(x.astype(np.int64), axis=-1))
        scaled = st.define_gufunc("scaled", "(m, n), (n) -> (m)", "float64,float64->float64", source=_SCALED)
        self.same(
            scaled(st.asarray(x), st.asarray(np.arange(12.0).reshape(3, 1, 4)[:, 0][:2])),
            np.einsum("imk,ik->im", x, np.arange(8.0).reshape(2, 4)),
        )
        with self.assertRaisesRegex(st.ShapeMismatch, "dimension n is 4 and 3"):
            scaled(st.asarray(x), st.asarray(np.ones(3)))

    def test_names_belong_to_the_tenant(self):
        one = st.define_ufunc("twice", "float64->float64", expression="a * 2")
        self.same(one(st.asarray(np.ones(2))), np.full(2, 2.0))
        # Another program repeats the definition.
        with st.connect(self.daemon.address) as other:
            same = st.define_ufunc("twice", "float64->float64", expression="a * 2")
            np.testing.assert_array_equal(np.asarray(same(st.asarray(np.ones(2)))), np.full(2, 2.0))
            other.close()
        self.assertIn("twice", [name.rsplit("/", 1)[1] for name in (one.name for one in st.functions())])
        with self.assertRaises(st.AlreadyExists):
            st.define_ufunc("twice", "float64->float64", expression="a * 3")(st.asarray(np.ones(2)))
        st.delete_function("twice")
        self.assertNotIn("twice", [one.name.rsplit("/", 1)[1] for one in st.functions()])

    def test_invalid_definitions_raise(self):
        wrong = st.define_ufunc(
            "wrong", "float64->float64", source="__device__ double wrong(double a) {\n  return b;\n}"
        )
        with self.assertRaisesRegex(st.CompileError, "function"):
            wrong(st.asarray(np.ones(2)))
        with self.assertRaises(ValueError):
            st.define_ufunc("nothing", "float64->float64")
        with self.assertRaises(st.InvalidArgument):
            st.define_ufunc("add", "float64->float64", expression="a")(st.asarray(np.ones(2)))


if __name__ == "__main__":
    client_case.main()
