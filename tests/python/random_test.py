"""Random numbers: published known answers, streams, and moments of every distribution."""

import hashlib
import unittest

import numpy as np

import client_case
import stride as st

DIGESTS = (
    ("random", (), "f23d59bc32908850"), ("uniform", (-3.0, 5.0), "f4032fa90457e356"), ("standard_normal", (), "2b60a2a74e0c9380"),
    ("normal", (2.0, 3.0), "7e04d7a2ac14b30e"), ("standard_exponential", (), "b0699853f5a9156d"), ("laplace", (1.0, 2.0), "3297a73476e7d80e"),
    ("logistic", (1.0, 2.0), "0ffe939569efc73e"), ("gumbel", (1.0, 2.0), "014ab961062fa41b"), ("standard_cauchy", (), "55fdaee743bdc5ec"),
    ("lognormal", (1.0, 2.0), "3b617459082e467f"), ("rayleigh", (2.0,), "9c33357e2fbb7f57"), ("weibull", (1.5,), "78dafa8340e70b07"),
    ("pareto", (3.0,), "2a164d192201f47a"), ("power", (3.0,), "d4ab3d87d9bdb279"), ("geometric", (0.01,), "367d316bcfb53a8d"),
    ("triangular", (0.0, 1.0, 4.0), "fd23e372e08e93ca"), ("gamma", (0.3, 2.0), "dab932a5c7dfd5ea"), ("gamma", (30.0, 2.0), "cb65f17c6addf8ba"),
    ("chisquare", (3.0,), "d6f9cd51b53ad390"), ("beta", (0.5, 2.0), "4a2d50641d259420"), ("f", (3.0, 4.0), "1b3e32f7a9184e56"),
    ("standard_t", (3.0,), "4ec5f427c468c9e5"), ("dirichlet", ([1.0, 2.0, 0.5, 3.0, 1.5],), "8809dd6a936cd9ca"), ("poisson", (3.0,), "11e7fcf32cfe2c5f"),
    ("poisson", (3000.0,), "e01277d75c8a92c7"), ("binomial", (20, 0.3), "cdd93fedaa98c90d"), ("binomial", (20000, 0.7), "3795e71130d9a0ba"),
    ("negative_binomial", (4, 0.25), "bdc7ce3bebbfef34"))


class RandomTest(client_case.ClientCase):
    def test_known_answers(self):
        """Random123's: Philox-4x32-10 and Threefry-2x32-20."""
        ones, pi = 2**64 - 1, (0x85A308D3243F6A88, 0x0370734413198A2E, 0x299F31D0A4093822)
        self.same(st.random.Generator(key=0).bits(4, np.uint32), np.array([0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], np.uint32))
        self.same(st.random.Generator(key=ones, counter=ones, stream=ones).bits(4, np.uint32),
                  np.array([0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD], np.uint32))
        self.same(st.random.Generator(key=pi[2], counter=pi[0], stream=pi[1]).bits(4, np.uint32),
                  np.array([0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1], np.uint32))
        threefry = lambda key, counter: st.random.Generator(key=key, counter=counter, generator="threefry").bits(2, np.uint32)
        self.same(threefry(0, 0), np.array([0x6B200159, 0x99BA4EFE], np.uint32))
        self.same(threefry(ones, ones), np.array([0x1CB996FC, 0xBB002BE7], np.uint32))
        self.same(threefry(pi[1], pi[0]), np.array([0xC4923A9C, 0x483DF7A0], np.uint32))

    def test_streams(self):
        for generator in ("philox", "threefry"):
            whole = st.random.Generator(5, generator=generator).bits(64, np.uint32).to_numpy()
            parts = st.random.Generator(5, generator=generator)
            self.same(st.concat([parts.bits(8, np.uint32), parts.bits((4, 4), np.uint32).reshape(16), parts.bits(40, np.uint32)]), whole)
            self.same(st.random.Generator(5, generator=generator).bits(32), whole.view(np.uint64))
            other = st.random.Generator(6, generator=generator).bits(64, np.uint32).to_numpy()
            self.assertLess((whole == other).sum(), 3)
            first, second = st.random.Generator(5, generator=generator).spawn(2)
            self.assertNotEqual(first.key, second.key)
        self.assertNotEqual(st.random.Generator().key, st.random.Generator().key)
        self.assertIsInstance(st.random.default_rng(3), st.random.Generator)
        for wrong in ({"generator": "mt19937"}, {"seed": 1, "key": 2}, {"key": -1}, {"generator": "threefry", "stream": 1}):
            with self.assertRaises(ValueError):
                st.random.Generator(**wrong)

    def test_moments(self):
        rng = st.random.Generator(20)
        euler = 0.5772156649015329
        n = 100_000
        for name, arguments, mean, deviation in (
                ("random", (), 0.5, 12**-0.5), ("uniform", (-1.0, 3.0), 1, 4 * 12**-0.5), ("standard_normal", (), 0, 1), ("normal", (5.0, 0.5), 5, 0.5),
                ("exponential", (2.0,), 2, 2), ("laplace", (1.0, 2.0), 1, 8**0.5), ("logistic", (1.0, 2.0), 1, 2 * np.pi / 3**0.5),
                ("gumbel", (1.0, 2.0), 1 + 2 * euler, 2 * np.pi / 6**0.5), ("lognormal", (0.0, 0.5), np.exp(0.125), 0.6039),
                ("rayleigh", (2.0,), 2 * (np.pi / 2)**0.5, 2 * (2 - np.pi / 2)**0.5), ("weibull", (2.0,), 0.886227, 0.463251),
                ("pareto", (5.0,), 0.25, 0.322749), ("power", (3.0,), 0.75, 0.193649), ("triangular", (0.0, 1.0, 4.0), 5 / 3, 0.849837)):
            for dtype in (np.float32, np.float64):
                with self.subTest(name=name, dtype=dtype):
                    values = getattr(rng, name)(*arguments, size=n, dtype=dtype)
                    self.assertEqual((values.dtype, values.shape), (np.dtype(dtype), (n,)))
                    values = values.to_numpy().astype(float)
                    self.assertTrue(np.isfinite(values).all())
                    self.assertAlmostEqual(values.mean(), mean, delta=6 * deviation / n**0.5)
                    self.assertAlmostEqual(values.std(), deviation, delta=0.03 * deviation)
        geometric = rng.geometric(0.25, n).to_numpy()
        self.assertEqual((geometric.min(), geometric.dtype), (1, np.int64))
        self.assertAlmostEqual(geometric.mean(), 4, delta=0.1)
        self.assertAlmostEqual(float(np.median(rng.standard_cauchy(n).to_numpy())), 0, delta=0.05)

    def test_rejection(self):
        """Mean and variance, and for whole numbers their frequencies beside the distribution's."""
        n = 40_000
        rng = st.random.Generator(11)
        for name, arguments, mean, variance in (
                ("standard_gamma", (0.3,), 0.3, 0.3), ("standard_gamma", (1.0,), 1, 1), ("gamma", (4.5, 2.0), 9, 18), ("standard_gamma", (200.0,), 200, 200),
                ("chisquare", (3.0,), 3, 6), ("beta", (2.0, 3.0), 0.4, 0.04), ("f", (4.0, 12.0), 1.2, 2 * 144 * 14 / (4 * 100 * 8)),
                ("standard_t", (9.0,), 0, 9 / 7), ("poisson", (0.5,), 0.5, 0.5), ("poisson", (9.9,), 9.9, 9.9), ("poisson", (10.1,), 10.1, 10.1),
                ("poisson", (1000.0,), 1000, 1000), ("binomial", (10, 0.3), 3, 2.1), ("binomial", (100, 0.5), 50, 25), ("binomial", (1000, 0.9), 900, 90),
                ("binomial", (5, 1.0), 5, 0), ("binomial", (0, 0.5), 0, 0), ("poisson", (0.0,), 0, 0), ("negative_binomial", (4, 0.25), 12, 48)):
            with self.subTest(name=name, arguments=arguments):
                values = getattr(rng, name)(*arguments, size=n)
                self.assertEqual(values.dtype, np.int64 if "binomial" in name or name == "poisson" else np.float64)
                values = values.to_numpy().astype(float)
                self.assertAlmostEqual(values.mean(), mean, delta=6 * (variance / n) ** 0.5 + 1e-12)
                self.assertAlmostEqual(values.var(), variance, delta=0.2 * variance if name == "f" else 0.07 * variance + 1e-12)
                self.assertGreaterEqual(values.min(), -1e9 if name == "standard_t" else 0)
        counts = np.bincount(rng.poisson(12.0, n).to_numpy(), minlength=40)[:40] / n
        theirs = np.exp(np.arange(40) * np.log(12.0) - 12.0 - np.cumsum(np.log(np.maximum(np.arange(40), 1))))
        self.assertLess(np.abs(counts - theirs).max(), 0.006)
        counts = np.bincount(rng.binomial(60, 0.4, n).to_numpy(), minlength=61) / n
        factorials = np.cumsum(np.log(np.maximum(np.arange(61), 1)))
        theirs = np.exp(factorials[60] - factorials - factorials[::-1] + np.arange(61) * np.log(0.4) + np.arange(60, -1, -1) * np.log(0.6))
        self.assertLess(np.abs(counts - theirs).max(), 0.006)
        weights = rng.dirichlet([1.0, 2.0, 3.0], 1000).to_numpy()
        np.testing.assert_allclose(weights.sum(-1), 1)
        np.testing.assert_allclose(weights.mean(0), [1 / 6, 1 / 3, 1 / 2], atol=0.03)
        means = np.array([[1.0], [100.0]])
        values = rng.poisson(means, (2, 1000)).to_numpy()
        np.testing.assert_allclose(values.mean(1), [1, 100], rtol=0.15)
        self.assertEqual(rng.poisson(st.asarray(means)).shape, (2, 1))
        again = [st.random.Generator(1).gamma(2.0, size=5).to_numpy() for _ in range(2)]
        np.testing.assert_array_equal(*again)
        for wrong in (lambda: rng.poisson(-1.0), lambda: rng.binomial(5, 1.5), lambda: rng.gamma(-2.0)):
            with self.assertRaises(ValueError):
                wrong()

    def test_same_bits(self):
        """Every distribution, on whatever device this runs: a digest of its numbers, as another device gave it."""
        for name, arguments, digest in DIGESTS:
            with self.subTest(name=name, arguments=arguments):
                values = getattr(st.random.Generator(77), name)(*arguments, size=5000).to_numpy()
                self.assertEqual(hashlib.sha256(values.tobytes()).hexdigest()[:16], digest)

    def test_out_of_domain_on_the_device(self):
        rng = st.random.Generator(1)
        bad = st.asarray([-1.0, np.nan, np.inf])
        self.same(rng.poisson(bad), np.array([-1, -1, -1]))
        self.same(rng.geometric(bad), np.array([-1, -1, -1]))
        self.same(rng.binomial(10, bad), np.array([-1, -1, -1]))
        self.assertTrue(np.isnan(rng.standard_gamma(bad).to_numpy()[:2]).all())

    def test_integers(self):
        rng = st.random.Generator(3)
        for dtype in (np.int8, np.uint16, np.int32, np.uint64, np.int64):
            values = rng.integers(3, 9, 3000, dtype).to_numpy()
            self.assertEqual((values.dtype, sorted(set(values.tolist()))), (np.dtype(dtype), [3, 4, 5, 6, 7, 8]))
            self.assertLess(np.abs(np.bincount(values.astype(int))[3:] - 500).max(), 130)
        self.assertEqual(sorted(set(rng.integers(2, size=100, endpoint=True).tolist())), [0, 1, 2])
        self.assertLess(rng.integers(-(2**63), 2**63 - 1, 100, endpoint=True).to_numpy().min(), 0)
        for low, high, dtype in ((5, 5, np.int64), (0, 300, np.uint8), (-1, 3, np.uint32)):
            with self.assertRaises(ValueError):
                rng.integers(low, high, dtype=dtype)

    def test_shapes(self):
        rng = st.random.Generator(3)
        self.assertEqual(rng.random().shape, ())
        self.assertEqual(rng.normal(size=(2, 0, 3)).shape, (2, 0, 3))
        scales = np.array([[0.0], [1.0]])
        self.assertEqual(rng.normal(np.zeros(3), scales).shape, (2, 3))
        self.same(rng.normal(np.zeros(3), scales)[0], np.zeros(3))
        self.same(rng.uniform(np.array([1.0, 2.0]), np.array([1.0, 2.0])), [1.0, 2.0])
        with self.assertRaises(st.DataTypeMismatch):
            rng.random(3, np.int32)

    def test_order_and_choice(self):
        rng = st.random.Generator(9)
        order = rng.permutation(100).to_numpy()
        self.assertEqual(sorted(order.tolist()), list(range(100)))
        self.assertNotEqual(order.tolist(), list(range(100)))
        host = np.arange(12.0).reshape(3, 4)
        self.same(st.sort(rng.permutation(st.asarray(host), axis=1), axis=1), host)
        x = st.asarray(host) + 0
        view = x[0]
        rng.shuffle(x)
        self.same(st.sort(x, axis=0), host)
        self.same(view, x.to_numpy()[0])
        values = rng.choice(5, 1000).to_numpy()
        self.assertEqual(sorted(set(values.tolist())), [0, 1, 2, 3, 4])
        self.assertEqual(sorted(rng.choice(st.asarray([3.0, 5.0, 9.0]), 3, replace=False).tolist()), [3.0, 5.0, 9.0])
        weighted = np.bincount(rng.choice(3, (100, 100), p=[0.5, 0.0, 0.5]).to_numpy().ravel(), minlength=3)
        self.assertEqual(weighted[1], 0)
        self.assertLess(abs(weighted[0] - 5000), 300)
        self.assertEqual(sorted(rng.choice(4, 2, replace=False, p=[0.5, 0.0, 0.5, 0.0]).tolist()), [0, 2])
        for wrong in ({"size": 5, "replace": False}, {"p": [1.0]}, {"p": [0.5, 0.6, 0.0, 0.0]}):
            with self.assertRaises(ValueError):
                rng.choice(4, **wrong)

    def test_rows_shuffled_in_place(self):
        host = np.arange(60).reshape(20, 3)
        x = st.asarray(host) + 0
        view = x[:, 0]
        st.random.shuffle(x)
        rows = x.to_numpy()
        self.assertEqual(sorted(map(tuple, rows.tolist())), sorted(map(tuple, host.tolist())))
        self.same(view, rows[:, 0])
        with self.assertRaises(TypeError):
            st.random.shuffle(host)


if __name__ == "__main__":
    client_case.main()
