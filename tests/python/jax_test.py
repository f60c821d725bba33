"""stride.jax: values and derivatives against closed forms, NumPy and finite differences, random bits against those that
the Threefry paper and JAX's documentation print."""

import unittest

import numpy as np

import client_case
import stride as st
from stride import jax
from stride.jax import lax, numpy as jnp


class ArraysTest(client_case.ClientCase):
    def test_updates_in_place_make_another_array(self):
        x = jnp.arange(3)
        y = x
        y += 1
        self.assertEqual((x.tolist(), y.tolist()), ([0, 1, 2], [1, 2, 3]))
        with self.assertRaisesRegex(TypeError, "immutable"):
            x[0] = 1
        self.assertEqual(x.at[0].set(7).tolist(), [7, 1, 2])

    def test_defaults_are_32_bits_until_64_are_enabled(self):
        self.assertEqual(jnp.arange(3).dtype, np.int32)
        self.assertEqual((jnp.arange(3) / 2).dtype, np.float32)
        self.assertEqual(jnp.arange(3).mean().dtype, np.float32)
        self.assertEqual(jnp.asarray(np.ones(2)).dtype, np.float32)
        with jax.enable_x64():
            self.assertEqual(jnp.ones(3).dtype, np.float64)

    def test_index_out_of_range_is_the_nearest(self):
        x = jnp.arange(10)
        self.assertEqual(int(x[11]), 9)
        self.assertEqual(x[jnp.array([3, 40])].tolist(), [3, 9])


class RandomTest(client_case.ClientCase):
    def test_bits_and_keys(self):
        # Random123's known answer of threefry2x32-20 for all zeros: 6b200159 99ba4efe.
        from stride.jax import _keys

        zero = np.zeros(1, np.uint32)
        first, second = _keys.threefry(zero[0], zero[0], zero, zero)
        self.assertEqual((int(first[0]), int(second[0])), (0x6B200159, 0x99BA4EFE))
        key = jax.random.key(42)
        self.assertEqual(jax.random.key_data(key).tolist(), [0, 42])
        self.assertEqual(len(jax.random.split(key, 3)), 3)

    def test_known_and_computed_keys_give_the_same(self):
        first, second = (jax.random.bits(jax.random.key(3), (n,)).tolist() for n in (10, 100))
        self.assertEqual(first, second[:10])

    def test_distributions_have_their_moments(self):
        with_key = jax.random.key(5)
        x = np.asarray(jax.random.normal(with_key, (20_000,)))
        self.assertLess(abs(x.mean()), 0.03)
        self.assertLess(abs(x.std() - 1), 0.03)
        u = np.asarray(jax.random.uniform(with_key, (20_000,), minval=2.0, maxval=4.0))
        self.assertTrue(((u >= 2) & (u < 4)).all())
        self.assertLess(abs(u.mean() - 3), 0.03)
        self.assertEqual(sorted(jax.random.permutation(with_key, 50).tolist()), list(range(50)))


class GradientTest(client_case.ClientCase):
    def check(self, function, *arguments):
        """Against central differences in float64."""
        with jax.enable_x64():
            arguments = [np.asarray(one, float) for one in arguments]
            places = tuple(range(len(arguments)))
            found = jax.grad(function, argnums=places)(*map(jnp.asarray, arguments))
            for i, ours in enumerate(found):
                theirs = np.zeros_like(arguments[i])
                for place in np.ndindex(*theirs.shape):
                    ends = []
                    for step in (1e-5, -1e-5):
                        moved = [one.copy() for one in arguments]
                        moved[i][place] += step
                        ends.append(float(function(*map(jnp.asarray, moved))))
                    theirs[place] = (ends[0] - ends[1]) / 2e-5
                np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-6, atol=1e-7)

    def test_elementwise(self):
        x, y = np.array([0.3, 0.7]), np.array([0.5, 1.3])
        self.check(lambda x: (jnp.sin(x) * jnp.exp(x) + jnp.log(x) ** 2 + jnp.tanh(x) / jnp.sqrt(x)).sum(), x)
        self.check(lambda x: (jnp.arcsin(x) + jnp.arctan(x) + jnp.log1p(x) + jnp.expm1(x) + jnp.abs(-x)).sum(), x)
        self.check(lambda x, y: (x**y + jnp.arctan2(x, y) + jnp.hypot(x, y) + jnp.logaddexp(x, y)).sum(), x, y)
        self.check(lambda x, y: (jnp.maximum(x, y) * jnp.minimum(x, y) + jnp.where(x > 0.5, x, y * y)).sum(), x, y)

    def test_reductions_and_shapes(self):
        x = np.array([[1.0, 2.5, 4.0], [0.5, 3.0, 2.0]])
        self.check(lambda x: x.mean() + jnp.var(x) + jnp.max(x, axis=0).sum() + jnp.prod(x, axis=1).sum(), x)
        mask = np.array([[True, False, True], [True, True, True]])
        self.check(lambda x: (jnp.var(x, axis=1, ddof=1) * jnp.std(x)).sum() + jnp.nanstd(x, axis=1).sum(), x)
        self.check(lambda x: jnp.std(x, axis=0, where=mask).sum() * jnp.nanvar(x) + jnp.var(x, axis=0).prod(), x)
        self.check(lambda x: (x.T.reshape(2, 3)[1:, ::2] ** 2).sum() + jnp.cumsum(x, axis=1)[0, 2] * x[1, 1], x)
        self.check(lambda x: (jnp.concatenate([x, x * 2])[3] * jnp.stack([x, x])[1, 0]).sum(), x)
        self.check(lambda x: (jnp.sort(x, axis=1)[:, 0] * x[:, 2]).sum() + (x @ x.T).sum(), x)
        self.check(lambda x: x.at[0].set(x[1] ** 2).sum() + x.at[jnp.array([0, 0])].add(x).prod(), x)

    def test_linear_algebra(self):
        a = np.array([[3.0, 1.0], [0.5, 2.0]])
        self.check(lambda a: jnp.linalg.inv(a).sum() + jnp.linalg.det(a) + jnp.linalg.solve(a, jnp.ones(2))[0], a)

    def test_products_have_the_type_asked_for(self):
        a = np.full((3, 40), 100, np.int8)
        for product in (
            lambda a, **o: jnp.matmul(a, a.T, **o), lambda a, **o: jnp.dot(a, a.T, **o),
            lambda a, **o: jnp.einsum("ij,kj->ik", a, a, **o), lambda a, **o: jax.lax.dot(a, a.T, **o),
        ):
            found = product(jnp.asarray(a), preferred_element_type=jnp.int32)
            self.assertEqual(found.dtype, np.int32)
            self.assertEqual(found.tolist(), [[400_000] * 3] * 3)
        self.assertEqual(jnp.matmul(jnp.asarray(a), jnp.asarray(a.T)).dtype, np.int8)

    def check_along(self, function, x):
        """Along two directions, against central differences: the change of JAX's gradient is Re(sum(gradient * step)),
        without a conjugate."""
        rng = np.random.default_rng(5)
        with jax.enable_x64():
            found = np.asarray(jax.grad(function)(jnp.asarray(x)))
            for _ in range(2):
                step = rng.normal(size=x.shape)
                step = step + 1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else step
                ends = [float(function(jnp.asarray(x + size * step))) for size in (1e-5, -1e-5)]
                np.testing.assert_allclose((found * step).sum().real, (ends[0] - ends[1]) / 2e-5, rtol=1e-6, atol=1e-6)

    def matrices(self, *shape):
        rng = np.random.default_rng(7)
        return rng.normal(size=shape), rng.normal(size=shape) + 1j * rng.normal(size=shape)

    def test_decompositions(self):
        linalg, w = jnp.linalg, np.random.default_rng(3).normal(size=(6, 6))

        def squares(x):
            return jnp.real(x * jnp.conj(x))

        def of_qr(a):
            q, r = linalg.qr(a)
            weights = w[: q.shape[-2], : q.shape[-1]], w[: r.shape[-2], : r.shape[-1]]
            return (jnp.real(q) * weights[0]).sum() + (jnp.real(r) * weights[1]).sum()

        def of_svd(a):
            u, s, vh = linalg.svd(a, full_matrices=False)
            vectors = (squares(u) * w[: u.shape[-2], : u.shape[-1]]).sum() + (squares(vh) * w[0, : vh.shape[-1]]).sum()
            return vectors + (s**3).sum()

        def of_eigh(a):
            values, vectors = linalg.eigh((a + jnp.conj(a.T)) / 2)
            return (values**3).sum() + (squares(vectors) * w[: a.shape[0], : a.shape[0]]).sum()

        def of_cholesky(a):
            lower = linalg.cholesky(a @ jnp.conj(a.T) + jnp.eye(a.shape[0]))
            return (jnp.real(lower) * w[: a.shape[0], : a.shape[0]]).sum()

        for shape in ((3, 3), (4, 2), (2, 4)):
            for a in self.matrices(*shape):
                self.check_along(of_qr, a)
                self.check_along(of_svd, a)
                self.check_along(lambda a: (linalg.svd(a, compute_uv=False) ** 3).sum(), a)
                if shape[0] == shape[1]:
                    self.check_along(of_eigh, a)
                    self.check_along(lambda a: (linalg.eigvalsh((a + jnp.conj(a.T)) / 2) ** 3).sum(), a)
                    self.check_along(of_cholesky, a)
                    self.check_along(lambda a: linalg.slogdet(a)[1], a)
        a = self.matrices(3, 2)[0]
        self.check_along(lambda a: (linalg.qr(a, mode="r") * w[:2, :2]).sum(), a)
        self.check_along(lambda a: (linalg.pinv(a) ** 2).sum() + (linalg.lstsq(a, jnp.ones(3))[0] ** 2).sum(), a)
        self.check_along(lambda a: (linalg.qr(a)[0] * w[:3, :2]).sum(), self.matrices(2, 3, 2)[0])

    def test_transforms(self):
        fft, (x, z) = jnp.fft, self.matrices(2, 6)
        for n in (None, 5, 8):
            for norm in ("backward", "ortho", "forward"):
                options = {"n": n, "norm": norm}
                self.check_along(lambda x, o=options: (jnp.abs(fft.rfft(x, **o)[:, 1:]) ** 3).sum(), x)
                self.check_along(lambda x, o=options: (jnp.abs(fft.fft(x, **o)) ** 2).sum(), x)
                self.check_along(lambda x, o=options: (jnp.real(fft.ifft(x, **o)) ** 3).sum(), x)
                self.check_along(lambda z, o=options: (fft.irfft(z, **o) ** 3).sum(), z)
                self.check_along(lambda z, o=options: (jnp.real(fft.ifft(z, **o)) ** 3).sum(), z)
        self.check_along(lambda x: (jnp.real(fft.rfft2(x)) ** 3).sum() + (jnp.imag(fft.rfft(x, axis=0)) ** 2).sum(), x)
        self.check_along(lambda z: (fft.irfft2(z) ** 3).sum() + (fft.hfft(z, axis=0) ** 3).sum(), z)

    def test_accumulations(self):
        x = np.array([[1.5, -2.0, 0.5, 3.0, 1.25], [2.0, 0.0, 3.0, 0.0, 4.0]])
        w = np.arange(1.0, 6.0)
        self.check_along(lambda x: (jnp.cumprod(x, axis=1) * w).sum() + jnp.cumprod(x, axis=0)[1].sum(), x)
        self.check_along(lambda x: (lax.cumprod(x, axis=1, reverse=True) * w).sum(), x)
        self.check_along(lambda x: (lax.cummax(x, axis=1) * w).sum(), x[:1])
        self.check_along(lambda x: (lax.cummin(x, axis=1, reverse=True) * w).sum(), x[:1])

    def test_grad_follows_branches_on_values(self):
        def function(x):
            return x * x if x > 0 else -x

        self.assertEqual([float(jax.grad(function)(one)) for one in (3.0, -3.0)], [6.0, -1.0])

    def test_the_branch_not_taken_gives_no_nan(self):
        function = jax.jit(jax.grad(lambda x: lax.cond(x > 1, lambda x: x * x, lambda x: jnp.sqrt(1 - x), x)))
        self.assertEqual(float(function(jnp.array(3.0))), 6.0)

    def test_jit_of_grad_is_the_gradient(self):
        def loss(p, x):
            return jnp.sum(jnp.tanh(x @ p["w"] + p["b"]) ** 2)

        p = {"w": jnp.ones((3, 2)) * 0.1, "b": jnp.zeros(2)}
        x = jnp.arange(6.0).reshape(2, 3)
        once, compiled = jax.grad(loss)(p, x), jax.jit(jax.grad(loss))(p, x)
        for name in p:
            np.testing.assert_allclose(np.asarray(once[name]), np.asarray(compiled[name]), rtol=1e-6)

    def test_second_derivatives_and_forward_mode(self):
        x = jnp.array([1.0, 2.0])
        np.testing.assert_allclose(np.asarray(jax.hessian(lambda x: (x**3).sum())(x)), [[6, 0], [0, 12]])
        np.testing.assert_allclose(np.asarray(jax.jacfwd(lambda x: x * x[0])(x)), [[2, 0], [2, 1]])
        value, change = jax.jvp(jnp.sin, (1.0,), (2.0,))
        self.assertAlmostEqual(float(change), 2 * np.cos(1), places=6)

    def test_gradient_of_scan(self):
        found = jax.grad(lambda x: lax.scan(lambda c, a: (c * a, c + a), 1.0, x)[1].sum())(jnp.array([1.0, 2.0, 3.0]))
        self.assertEqual(found.tolist(), [4.0, 2.0, 1.0])

    def test_custom_derivatives(self):
        @jax.custom_vjp
        def clipped(x):
            return x

        clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -1, 1),))
        self.assertEqual(float(jax.grad(lambda x: clipped(x) * 5)(2.0)), 1.0)

        @jax.custom_jvp
        def log1pexp(x):
            return jnp.log(1 + jnp.exp(x))

        @log1pexp.defjvp
        def _(primals, tangents):
            return log1pexp(*primals), (1 - 1 / (1 + jnp.exp(primals[0]))) * tangents[0]

        self.assertEqual(float(jax.grad(log1pexp)(100.0)), 1.0)
        self.assertEqual(float(jax.grad(lambda x: x * lax.stop_gradient(x))(3.0)), 3.0)

    def test_errors_name_the_missing_rule(self):
        with self.assertRaisesRegex(TypeError, "scalar-output"):
            jax.grad(lambda x: x)(jnp.ones(2))
        with self.assertRaisesRegex(TypeError, "sub-dtype of np.inexact"):
            jax.grad(lambda x: x)(3)
        with self.assertRaisesRegex(st.Unimplemented, "no rule for linalg svd with full matrices"):
            jax.grad(lambda x: jnp.linalg.svd(x)[0].sum())(jnp.ones((2, 3)))


class LaxTest(client_case.ClientCase):
    def test_convolution_is_the_sum_over_windows(self):
        rng = np.random.default_rng(3)
        x, w = rng.random((2, 3, 5, 6)).astype(np.float32), rng.random((4, 3, 2, 3)).astype(np.float32)
        expected = np.zeros((2, 4, 4, 4), np.float32)
        for i in range(4):
            for j in range(4):
                expected[:, :, i, j] = np.einsum("ncab,ocab->no", x[:, :, i : i + 2, j : j + 3], w)
        found = lax.conv(jnp.asarray(x), jnp.asarray(w), (1, 1), "VALID")
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)

    def test_reduce_window(self):
        x = jnp.arange(6.0)
        found = lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), "VALID")
        self.assertEqual(found.tolist(), [1.0, 3.0, 5.0])


class ProgramsTest(client_case.ClientCase):
    def test_a_network_of_layers_learns(self):
        from stride.jax.example_libraries import optimizers, stax

        init, apply = stax.serial(
            stax.FanOut(2), stax.parallel(stax.Dense(16), stax.serial(stax.Dense(16), stax.Tanh)), stax.FanInSum,
            stax.Relu, stax.Dense(3), stax.LogSoftmax,
        )  # fmt: skip
        rng = np.random.default_rng(1)
        x = rng.normal(size=(60, 4)).astype(np.float32)
        targets = np.eye(3, dtype=np.float32)[np.argmax(x[:, :3], axis=1)]

        def loss(params):
            return -jnp.mean(jnp.sum(apply(params, x) * targets, axis=1))

        for make in (lambda: optimizers.sgd(0.5), lambda: optimizers.momentum(0.1, 0.9), lambda: optimizers.adam(0.05)):
            opt_init, opt_update, get_params = make()
            shape, params = init(jax.random.key(0), (-1, 4))
            self.assertEqual(shape, (-1, 3))
            state = opt_init(params)
            step = jax.jit(lambda i, state, u=opt_update, g=get_params: u(i, jax.grad(loss)(g(state)), state))
            for i in range(20):
                state = step(i, state)
            self.assertLess(float(loss(get_params(state))), 0.6 * float(loss(params)))

    def test_layers_of_images(self):
        from stride.jax.example_libraries import stax

        x = np.random.default_rng(2).random((2, 6, 6, 3)).astype(np.float32)
        init, apply = stax.serial(
            stax.Conv(4, (3, 3), padding="SAME"), stax.BatchNorm(), stax.MaxPool((2, 2), (2, 2)),
            stax.AvgPool((2, 2), padding="SAME"), stax.SumPool((2, 2)), stax.Flatten, stax.Dropout(0.5), stax.Dense(2),
        )  # fmt: skip
        shape, params = init(jax.random.key(3), x.shape)
        found = apply(params, x, rng=jax.random.key(4))
        self.assertEqual((shape, found.shape), ((2, 2), (2, 2)))
        with self.assertRaisesRegex(ValueError, "rng=key"):
            apply(params, x)
        pooled = np.asarray(stax.AvgPool((2, 2), padding="SAME")[1]((), x))
        padded = np.pad(x, ((0, 0), (0, 1), (0, 1), (0, 0)), constant_values=np.nan)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (2, 2), axis=(1, 2))
        np.testing.assert_allclose(pooled, np.nanmean(windows, axis=(-2, -1)), rtol=1e-5)

    def test_schedules(self):
        from stride.jax.example_libraries import optimizers

        sizes = optimizers.piecewise_constant([2, 4], [1.0, 0.5, 0.25])
        self.assertEqual([float(sizes(i)) for i in (0, 2, 3, 4, 5)], [1.0, 1.0, 0.5, 0.5, 0.25])
        self.assertEqual(float(optimizers.inverse_time_decay(1.0, 10, 1.0, staircase=True)(19)), 0.5)
        with self.assertRaisesRegex(TypeError, "gradient tree"):
            init, update, _ = optimizers.sgd(0.1)
            update(0, [1.0], init([1.0, 2.0]))

    def test_traced_arrays_have_a_text(self):
        texts = []

        @jax.jit
        def function(x):
            texts.append((f"{x}", str(x), repr(x)))
            return x

        function(jnp.ones((2, 3)))
        self.assertEqual(texts, [("Tracer(float32[2,3])",) * 3])
        st.jit(lambda x: texts.append(f"{x:.2f}") or x)(st.ones(2))
        self.assertEqual(texts[1], "stride.Array(shape=(2,), dtype=float64, traced)")
        jax.grad(lambda x: texts.append(str(x)) or x)(2.0)
        self.assertEqual(texts[2], "2.0")

    def test_shapes_that_do_not_fit_are_type_errors(self):
        for call in (
            lambda: jnp.dot(jnp.ones((2, 3)), jnp.ones((2, 3))), lambda: jnp.ones(2) + jnp.ones(3),
            lambda: jnp.ones((2, 3)) @ jnp.ones((2, 3)),
        ):  # fmt: skip
            for kind in (TypeError, ValueError, st.ShapeMismatch):
                with self.assertRaises(kind):
                    call()

    def test_derivatives_against_differences(self):
        from stride.jax.test_util import check_grads

        check_grads(lambda x, y: jnp.sin(x) * y["a"] ** 2, (0.5, {"a": jnp.ones(3)}), order=2)
        wrong = jax.custom_vjp(jnp.sin)
        wrong.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x) * 1.5,))
        with self.assertRaises(AssertionError):
            check_grads(wrong, (0.5,), order=1, modes=["rev"])

    def test_stages_and_modules(self):
        import stride.jax.scipy.stats.norm as norm
        from stride.jax.ad_checkpoint import checkpoint_name

        traced = jax.jit(lambda x, y: 2 * x + checkpoint_name(y, "y")).trace(3, 4)
        self.assertEqual(traced.out_info.shape, ())
        self.assertIn("add", str(traced.jaxpr))
        self.assertEqual(int(traced.lower().compile()(3, 4)), 10)
        self.assertAlmostEqual(float(norm.pdf(0.0)), 1 / np.sqrt(2 * np.pi), places=6)
        saved = jax.checkpoint(jnp.sin, policy=jax.checkpoint_policies.save_only_these_names("a"))
        self.assertAlmostEqual(float(jax.grad(saved)(0.0)), 1.0)


class ExamplesTest(client_case.ClientCase):
    def test_docstrings(self):
        from stride.jax import _config, _custom_gradients, _gradients, _runtime, _transforms
        from stride.jax import ad_checkpoint, debug, nn, random, scipy, test_util
        from stride.jax.example_libraries import optimizers, stax

        self.run_examples(
            ad_checkpoint, optimizers, stax, test_util,
            _config, _custom_gradients, _gradients, _runtime, _transforms, debug, nn, nn.initializers,
            random, lax, scipy.special, scipy.linalg, scipy.stats
        )  # fmt: skip


if __name__ == "__main__":
    client_case.main()
