"""Small operations in loops on the host, which NumPy computes: results, types, errors and order equal the service's."""

import math
import random
import threading
import unittest
import warnings

import numpy as np

import client_case
import stride as st
from stride import _host_arrays, _host_functions, _local

TYPES = ("bool", "int8", "uint8", "int32", "uint64", "int64", "float16", "float32", "float64", "complex64",
         "complex128")
EXACT = ("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "maximum", "minimum", "less", "equal",
         "bitwise_and", "bitwise_xor", "logical_or", "copysign", "hypot", "power", "left_shift", "arctan2")


def local(host):
    """An array whose elements a loop reads."""
    array = st.asarray(host)
    if array.size:
        array[(0,) * array.ndim]
    return array


class HostLoopTest(client_case.ClientCase):
    learns_loops = True

    def same(self, ours, numpys, exact=True):
        self.assertEqual((np.shape(ours), ours.dtype), (np.shape(numpys), np.asarray(numpys).dtype))
        if exact:
            np.testing.assert_array_equal(np.asarray(ours), numpys)
        else:
            np.testing.assert_allclose(np.asarray(ours), numpys, rtol=2e-3 if ours.dtype.itemsize < 4 else 1e-5)

    def hosts(self, dtype, shapes):
        rng = np.random.default_rng(5)
        for shape in shapes:
            values = rng.integers(0, 2, shape) if dtype == "bool" else rng.integers(0, 60, shape)
            host = values.astype(dtype)
            if host.dtype.kind == "f" and host.size > 2:
                host.flat[:3] = np.nan, -0.0, np.inf
            yield host

    def test_flat_writes(self):
        """Writes by `flat` stay on the host, and are seen by views, by recorded operations in their order and by the
        service."""
        base, expected = st.asarray(np.arange(24.0).reshape(4, 6)), np.arange(24.0).reshape(4, 6)
        every = slice(None)
        for key in ((every, every), (slice(1, 3), slice(None, None, 2)), (every, slice(None, None, -1))):
            ours, theirs = base[key].flat, expected[key].flat
            reads = []
            for i in range(-len(theirs), len(theirs)):
                value = (i, i + 0.5, np.float32(i), True, base[0, 0])[i % 5]
                if i % 7 == 0:
                    reads.append((base + 0, expected.copy()))
                ours[i], theirs[i] = value, float(value)
            self.same(base, expected)
            for one, other in reads:
                self.same(one, other)
            base += 1
            expected += 1
            ours[0] = theirs[0] = -3
            self.same(base * 1, expected)
            for wrong in (len(theirs), -len(theirs) - 1):
                with self.assertRaises(IndexError):
                    ours[wrong] = 1.0
            with self.assertRaises((TypeError, ValueError)):
                ours[0] = "x"
            ours[1:3] = theirs[1:3] = 7
            self.same(base, expected)

    def test_host_results_of_binary_functions_equal_the_services(self):
        """Local arrays and others give the same bits, types and shapes, or the same error."""
        shapes = ((), (1,), (0,), (5,), (2, 5), (2, 1))
        for name in EXACT:
            for dtype in TYPES:
                for i, first in enumerate(self.hosts(dtype, shapes)):
                    second = list(self.hosts(TYPES[(TYPES.index(dtype) + 3 * i) % len(TYPES)], shapes))[(i + 3) % 6]
                    function, outcomes = getattr(st, name), []
                    with np.errstate(all="ignore"):
                        for make in (local, lambda host: st.asarray(host)):
                            try:
                                outcomes.append(function(make(first), make(second)).to_numpy())
                            except (TypeError, ValueError, st.StrideError) as error:
                                outcomes.append(type(error))
                    with self.subTest(name=name, first=first, second=second):
                        ours, services = outcomes
                        if isinstance(services, type):
                            self.assertEqual(ours, services)
                        else:
                            self.same(ours, services, exact=name not in ("power", "hypot", "arctan2"))

    def test_operators_and_methods_are_numpys(self):
        rng = np.random.default_rng(2)
        for dtype in ("int32", "uint8", "float32", "float64", "complex128", "float16"):
            host = (rng.random((4, 6)) * 9 + 1).astype(dtype)
            for make in (local, lambda host: local(host) + np.zeros((), host.dtype)[()], lambda host: local(host)[0:4]):
                x = make(host)
                with self.subTest(dtype=dtype, kind=type(x)):
                    cases = [lambda a: a + 1, lambda a: 2 - a, lambda a: a * a[0], lambda a: a[1] / 2, lambda a: -a,
                             lambda a: abs(a), lambda a: a == a[0, 0], lambda a: a[:, 1:3], lambda a: a[::-1, -1],
                             lambda a: a[[0, 2]], lambda a: a[a[:, 0] != 1], lambda a: a[1:][::2], lambda a: a[..., 0],
                             lambda a: a[None], lambda a: a.T, lambda a: a.reshape(3, 8), lambda a: a.copy(),
                             lambda a: a @ a.T, lambda a: np.concatenate([a, a]), lambda a: np.where(a != 2, a, 0),
                             lambda a: a.astype(np.float64) if a.dtype.kind != "c" else a, lambda a: np.stack([a, a])]
                    for i, case in enumerate(cases):
                        self.same(case(x), case(host), exact=dtype != "float16")
                    for name in ("sum", "prod", "min", "max", "mean", "any", "all", "argmin", "argmax", "std",
                                 "cumsum"):
                        if dtype == "complex128" and name in ("min", "max", "argmin", "argmax"):
                            continue
                        for axis in (None, 0, 1):
                            with np.errstate(all="ignore"):
                                ours, numpys = getattr(x, name)(axis=axis), getattr(host, name)(axis=axis)
                            with self.subTest(name=name, axis=axis):
                                if name == "prod" and dtype == "float16":
                                    continue  # out of the range on the way, or not
                                self.same(ours, np.asarray(numpys), exact=False)
                    self.same(x[0] @ x[1], np.asarray(host[0] @ host[1]), exact=False)
                    self.same(st.dot(x, x[0]), host @ host[0], exact=False)
                    self.same(st.linalg.norm(x[1]), np.asarray(np.linalg.norm(host[1])), exact=False)
                    for name in ("sum", "min", "mean", "all", "argmax"):
                        if dtype != "complex128" or name not in ("min", "argmax"):
                            self.same(getattr(st, name)(x[1]), np.asarray(getattr(np, name)(host[1])), exact=False)
                    self.assertEqual(x.tolist(), host.tolist())
                    self.assertEqual([one.tolist() for one in x], host.tolist())

    def test_errors_are_the_general_ones(self):
        x = local(np.ones((2, 3)))
        for use in (lambda: x + st.ones(4), lambda: x[5], lambda: x[0, 7], lambda: x[0][9], lambda: x[[0, 4]]):
            with self.assertRaises((IndexError, ValueError)):
                use().to_numpy()
        with self.assertRaises(TypeError):
            x << 1
        with self.assertRaises((TypeError, ValueError)):
            x[0] = [1, 2]
        n = local(np.arange(4))
        with self.assertRaises((TypeError, st.StrideError)):
            n += 0.5
        self.assertEqual(n.tolist(), [0, 1, 2, 3])

    def test_a_loop_makes_no_round_trip(self):
        p, v, total = st.array([1.0, 2.0, 3.0]), st.array([0.1, 0.2, 0.3]), st.zeros((10, 3))
        mine, numpys = np.array([1.0, 2.0, 3.0]), np.zeros((10, 3))
        with client_case.Sent(self.session) as sent:
            for i in range(300):
                p = p + v * 0.01
                mine = mine + np.array([0.1, 0.2, 0.3]) * 0.01
                if p[0] > 1e9:
                    break
                total[i % 10, :] = p * 2
                numpys[i % 10, :] = mine * 2
        self.assertLess(sent.num_messages, 24)
        np.testing.assert_array_equal(p, mine)
        np.testing.assert_array_equal(total, numpys)

    def test_copies_stay_on_the_host(self):
        x = local(np.arange(12.0).reshape(3, 4))
        with client_case.Sent(self.session) as sent:
            for one in (x.copy(), st.copy(x), x.astype(np.float32), x[1:].copy(), (x + 1).copy(), x.flatten()):
                self.assertIsNotNone(_host_arrays.values_of(one + 0))
        self.assertEqual(sent.num_messages, 0)
        self.same(x[:, ::2].copy(), np.arange(12.0).reshape(3, 4)[:, ::2])

    def test_functions_are_numpys(self):
        """Each function that `_host_functions` offers, of local arrays: NumPy's results, and no message."""
        square, row = np.arange(9.0).reshape(3, 3) + 4 * np.eye(3), np.array([3.0, 1, 2, 2])
        pair, indices = (square, row[:3]), np.array([0, 2])
        calls = {
            **dict.fromkeys(("outer", "kron", "convolve", "correlate", "append", "searchsorted", "digitize", "isin",
                             "union1d", "intersect1d", "setdiff1d", "setxor1d", "isclose", "allclose", "array_equal",
                             "polyval"), (row, np.array([1.0, 2, 3, 4]))),
            **dict.fromkeys(("vstack", "hstack", "column_stack", "dstack", "stack", "concatenate"), ([row, row],)),
            **dict.fromkeys(("percentile", "quantile"), (row, 0.4)), **dict.fromkeys(("cross", "solve"), pair),
            **dict.fromkeys(("tile", "repeat", "roll", "pad", "round", "full_like"), (row, 2)),
            "interp": (row, np.arange(3.0), row[:3]), "polyfit": (np.arange(4.0), row, 1), "einsum": ("ij,j->i", *pair),
            "bincount": (row.astype(int),), "take": (row, indices), "take_along_axis": (row, indices, 0),
            "delete": (row, 1), "insert": (row, 1, 5.0), "clip": (row, 1, 2),
            **dict.fromkeys(("trace", "tril", "triu", "cov", "corrcoef", "fft2", "ifft2", "inv", "det", "slogdet",
                             "pinv", "matrix_rank", "cond", "eigvalsh", "eig", "eigvals"), (square,)),
            **dict.fromkeys(("cholesky", "eigh"), (square @ square.T + np.eye(3),)),
        }

        def localised(one):
            if isinstance(one, list):
                return [localised(each) for each in one]
            return local(one) if isinstance(one, np.ndarray) else one

        for table, (ours, numpys) in {"numpy": (st, np), "linalg": (st.linalg, np.linalg),
                                      "fft": (st.fft, np.fft)}.items():
            for name, offered in _host_functions._TABLE[table].items():
                if offered.makes:
                    continue
                arguments = calls.get(name, (row,))
                expected = getattr(numpys, name)(*arguments)
                with self.subTest(name=name):
                    arguments = [localised(one) for one in arguments]
                    with client_case.Sent(self.session) as sent:
                        found = getattr(ours, name)(*arguments)
                        is_tuple = isinstance(expected, tuple)
                        self.assertEqual(isinstance(found, tuple), is_tuple)
                        for one, other in zip(found, expected) if is_tuple else ((found, expected),):
                            if isinstance(other, bool):
                                self.assertIs(one, other)
                            else:
                                self.same(one, other, exact=name not in ("eigh", "cholesky"))
                    self.assertEqual(sent.num_messages, 0)

    def test_norms(self):
        """The host computes norms of zeros; the service those whose squares leave the range."""
        for host, count in (([[0.0, 0], [3, 4]], 0), ([[0.0, 0], [0, 0]], 0), ([[1e-170, 0], [3, 4]], 1)):
            x = local(np.array(host))
            for axis in (0, 1):
                with client_case.Sent(self.session) as sent:
                    ours = st.linalg.norm(x, axis=axis).to_numpy()
                self.assertEqual(sent.num_messages, count if axis else 0)
                np.testing.assert_allclose(ours, np.linalg.norm(np.array(host), axis=axis), rtol=1e-15)

    def test_functions_of_other_arrays_are_sent_to_the_service(self):
        x = local(np.arange(300.0))
        with client_case.Sent(self.session) as sent:
            large = [st.outer(x, x), st.tile(x, 1000), st.repeat(x, 1000), st.pad(x, 100_000), st.diag(x)]
            self.assertTrue(all(one._node.deferred for one in large))
            self.assertTrue(st.convolve(*[x.astype(np.float32)] * 2)._node.deferred)  # sums are rounded otherwise
        self.assertEqual(sent.num_messages, 0)
        out = st.zeros(300)
        self.assertIs(st.cumsum(x, out=out), out)
        self.assertIs(st.cumsum(x, None, None, out), out)
        np.testing.assert_array_equal(out, np.cumsum(np.arange(300.0)))
        host = local(np.array([3.0, np.nan]))
        st.nan_to_num(host, copy=False)
        self.assertEqual(host.tolist(), [3.0, 0.0])
        singular = st.linalg.inv(local(np.zeros((2, 2))))
        with self.assertRaises(st.LinAlgError):
            singular.to_numpy()

    def test_new_arrays_of_a_loop_stay_on_the_host(self):
        """After some waits for values computed from them, arrays made at the same places need no round trip."""
        def run(xp, steps):
            x, p, out = xp.zeros((2, 1)), xp.eye(2), []
            for i in range(steps):
                turn = xp.array([[math.cos(i), -math.sin(i)], [math.sin(i), math.cos(i)]])
                x, p = turn @ x + xp.ones((2, 1)), turn @ p @ turn.T + xp.eye(2) * 0.5
                gain = p @ xp.linalg.inv(p + xp.full((2, 2), 2.0) * xp.eye(2))
                x = x + gain @ (xp.array([[i * 1.0], [2.0]]) - x)
                p = (xp.eye(2) - gain) @ p
                out.append(float(x[0, 0]) + float(xp.sum(xp.linspace(0, 1, 5)) + xp.arange(3)[1]))
            return out

        first = run(st, 40)
        with client_case.Sent(self.session) as sent:
            second = run(st, 60)
        self.assertLess(sent.num_messages, 8)
        np.testing.assert_allclose(first, run(np, 40), rtol=1e-12)
        np.testing.assert_allclose(second, run(np, 60), rtol=1e-12)

    def test_reads_of_small_arrays_in_a_loop(self):
        """Values read at one place of a program, whole or by element, are computed on the host after some
        iterations."""
        def grids(xp, steps):
            return [xp.dstack(xp.mgrid[i:i + 3, 0:2]).reshape(6, 2).tolist() for i in range(steps)]

        def turns(xp, steps):
            p = [1.0, 2.0]
            for i in range(steps):
                q = xp.array([[math.cos(i), -math.sin(i)], [math.sin(i), math.cos(i)]]) @ xp.array(p)
                p = [q[0], q[1]]
            return [float(one) for one in p]

        def points(xp, steps):
            out = []
            for i in range(steps):
                p = xp.empty((3, 2))
                p[:, 0] = i
                p[:, 1] = i + xp.arange(3.0)
                out += [float(q[0] + q[1]) for q in p]
            return out

        for run in (grids, turns, points):
            run(st, 40)
            with client_case.Sent(self.session) as sent:
                ours = run(st, 50)
            self.assertLess(sent.num_messages, 5)
            np.testing.assert_allclose(ours, run(np, 50), rtol=1e-12)

    def test_random_arrays_of_a_loop_are_read_ahead(self):
        """The numbers equal those of single draws by the service, with any draws in between."""
        def run(generator, steps, wait):
            out = []
            for i in range(steps):
                draws = [generator.normal(size=4), generator.random((3, 2)), generator.integers(0, 9, 1 + i % 3)]
                if i % 5 == 0:
                    draws += [generator.random(), generator.standard_normal(7, dtype=np.float32)]
                out.append(draws)
                if wait and draws[0][0] + draws[1][0, 0] > 100:
                    break
                if wait and draws[2][0] > 100:
                    break
            return out

        run(st.random.default_rng(5), 30, True)
        with client_case.Sent(self.session) as sent:
            ours = run(st.random.default_rng(7), 100, True)
        self.assertLess(sent.num_messages, 30)
        expected = run(st.random.default_rng(7), 100, False)
        for one, other in zip(ours, expected):
            for mine, services in zip(one, other):
                self.same(mine, services.to_numpy())

    def test_a_loop_over_a_stencil_makes_no_round_trip(self):
        """Slices that are assigned, of a copy and of an array that the service has computed, with a few numbers."""
        def relax(xp, p, b, steps):
            for _ in range(steps):
                pn = p.copy()
                p[1:-1, 1:-1] = (pn[1:-1, 2:] + pn[1:-1, :-2]) * 0.25 + b[1:-1, 1:-1]
                p[:, -1] = p[:, -2]
                p[0, :] = p[1, :]
                p[-1, :] = 0
            return p

        p, b = st.zeros((41, 41)), st.sqrt(st.zeros((41, 41)) + 4)
        relax(st, p, b, 40)
        with client_case.Sent(self.session) as sent:
            relax(st, p, b, 100)
        self.assertLess(sent.num_messages, 4)
        self.same(p, relax(np, np.zeros((41, 41)), np.full((41, 41), 2.0), 140))

    def test_large_arrays_stay_with_the_service(self):
        x = local(np.ones(100))
        with client_case.Sent(self.session) as sent:
            large = x.reshape(100, 1) * st.ones((1, 1000))
            self.assertEqual(sent.num_messages, 0)
            self.assertTrue(large._node.deferred)
        self.assertEqual(float(large.sum()), 1e5)
        x = local(np.ones(20_000))  # beyond 64 KiB
        self.assertTrue((x + 1)._node.deferred)

    def test_large_arrays_have_copies(self):
        """Elements of arrays that travel in parts."""
        for shape in ((700, 700), (1_500_000,)):
            x, host = st.zeros(shape), np.zeros(shape)
            for _ in range(2):
                with client_case.Sent(self.session) as sent:
                    for i in range(1500):
                        x[(i % 600,) * x.ndim] = host[(i % 600,) * x.ndim] = i
                        self.assertEqual(x[(i // 2,) * x.ndim], host[(i // 2,) * x.ndim]) if i < 1200 else None
                self.assertLess(sent.num_messages, 400)
                self.assertEqual(float(x.sum()), host.sum())
                x += 1
                host += 1
            np.testing.assert_array_equal(x, host)

    def test_views_see_writes(self):
        a = st.zeros((4, 4))
        for i in range(8):
            a[i % 4, 0] = i
        row = a[1]
        self.assertIs(type(row), _host_arrays.LocalView)
        a[1, 2] = 7
        row[3] = 8
        self.assertEqual((row.tolist(), a[1].tolist()), ([5, 0, 7, 8], [5, 0, 7, 8]))
        recorded = st.sort(row) + 0  # computed by the service
        row[0] = 100
        self.assertEqual(recorded.tolist(), [0, 5, 7, 8])
        st.add.at(a, 1, 1)  # the service writes
        self.assertEqual(row.tolist(), [101, 1, 8, 9])
        a += 1
        self.assertEqual((row.tolist(), a[1].tolist()), ([102, 2, 9, 10],) * 2)
        kept, base = a[2], a.base
        self.assertIsNone(base)
        self.assertIs(kept.base, a)
        del a
        kept[0] = 5
        self.assertEqual(kept.tolist()[0], 5)

    def test_a_shape_that_is_assigned(self):
        a = st.zeros((4, 4))
        for i in range(8):
            a[i % 4, 0] = i
        row = a[1]
        a.shape = (16,)
        a[5] = 3
        self.assertEqual(row.tolist(), [5, 3, 0, 0])

    def test_branches_do_not_write(self):
        """Both branches of a condition are traced: neither may write into an outer array."""
        for make in (lambda x: x, lambda x: x + 1, lambda x: x[1]):
            a = st.zeros((4, 4))
            for i in range(8):
                a[i % 4, 0] = i
            x = make(a)

            def assign(y, x=x):
                x[0] = 5
                return y + 1

            def add(y, x=x):
                x += 1
                return y + 1

            for write in (assign, add):
                with self.assertRaises(st.TracingError):
                    st.jit(lambda y, write=write: st.lax.cond(y[0] > 0, write, lambda y: y, y))(st.ones(3))
            self.assertEqual(x.tolist(), make(a).tolist())

    def test_names_and_mappings_see_writes(self):
        a = st.zeros((4, 4))
        for i in range(8):
            a[i % 4, 0] = i
        row = a[2]
        row[1] = 3
        st.save("host_loop", a)
        self.assertEqual(st.load("host_loop")[2].tolist(), [6, 3, 0, 0])
        row[2] = 4
        self.assertEqual(a[2].tolist(), [6, 3, 4, 0])

    def test_deleted(self):
        for make in (lambda: local(np.ones(3)), lambda: local(np.ones(3)) + 1, lambda: local(np.ones((3, 3)))[0]):
            x = make()
            x.delete()
            with self.assertRaises(st.ArrayDeleted):
                x + 1

    def test_warnings_are_numpys(self):
        x = local(np.array([1.0, 0.0]))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            self.assertEqual((x / 0.0).tolist()[0], math.inf)
        self.assertIn("divide by zero", str(seen[0].message))
        with st.errstate(divide="raise"), self.assertRaises(FloatingPointError):
            x / 0.0

    def test_sums_of_halves_are_rounded_once(self):
        for dtype in (np.float16, np.float32):
            host = np.full((4096, 2), 0.1, dtype)
            x = local(host)
            exact = host.astype(np.float64)
            for axis in (None, 0):
                np.testing.assert_array_equal(x.sum(axis), exact.sum(axis).astype(dtype))
                np.testing.assert_array_equal(x.mean(axis), exact.mean(axis).astype(dtype))

    def test_a_writer_and_readers_in_threads(self):
        a, stop, seen = st.zeros((8, 8)), threading.Event(), []

        def read():
            while not stop.is_set():
                seen.append(float(st.sum(a)))

        reader = threading.Thread(target=read)
        reader.start()
        for i in range(2000):
            a[i % 8, :] = i
            a[i % 8][1] = -1
        stop.set()
        reader.join()
        expected = np.zeros((8, 8))
        for i in range(2000):
            expected[i % 8, :] = i
            expected[i % 8, 1] = -1
        np.testing.assert_array_equal(a, expected)

    def test_random_programs(self):
        """Sequences of reads, writes, views and operations of host and service, compared with NumPy's."""
        for seed in range(60):
            self.program(seed)

    def program(self, seed):
        rng = random.Random(seed)
        host = np.arange(24.0).reshape(4, 6)
        pairs, log = [(st.asarray(host) if seed % 2 else st.zeros((4, 6)) + host, host.copy())], []

        def key(shape):
            keys = []
            for extent in shape:
                kind = rng.randrange(4)
                if kind == 0:
                    keys.append(rng.randrange(-extent, extent))
                elif kind == 1:
                    keys.append(slice(rng.randrange(extent), None))
                elif kind == 2:
                    keys.append(slice(None, None, rng.choice((-1, 1, 2))))
                else:
                    break
            return tuple(keys) if len(keys) != 1 else keys[0]

        for step in range(120):
            i = rng.randrange(len(pairs))
            ours, numpys = pairs[i]
            if not numpys.size:
                continue
            kind = rng.randrange(14)
            log.append((step, i, kind))
            k = key(numpys.shape) if numpys.ndim else ()
            if kind == 0:
                is_view = numpys.ndim and isinstance(numpys[k], np.ndarray)
                pairs.append((ours[k], numpys[k]) if is_view else (ours, numpys))
            elif kind == 1 and numpys.ndim:
                ours[k] = numpys[k] = step
            elif kind == 2 and numpys.ndim:
                ours[k] = ours[k] * 2
                numpys[k] = numpys[k] * 2
            elif kind == 3:
                pairs.append((ours + 1, numpys + 1))
            elif kind == 4:
                pairs.append((st.sort(ours, axis=None), np.sort(numpys, axis=None)))
            elif kind == 5 and numpys.ndim:
                ours += 1
                numpys += 1
                pairs[i] = ours, numpys
            elif kind == 6:
                self.assertEqual(float(ours.sum()), float(numpys.sum()), (seed, log))
            elif kind == 7 and numpys.ndim:
                place = tuple(rng.randrange(extent) for extent in numpys.shape)
                for _ in range(rng.randrange(1, 9)):
                    self.assertEqual(float(ours[place]), float(numpys[place]), (seed, log))
            elif kind == 8 and numpys.ndim:
                place = tuple(rng.randrange(extent) for extent in numpys.shape)
                for j in range(rng.randrange(1, 9)):
                    ours[place] = numpys[place] = step + j
            elif kind == 9:
                pairs.append((ours.copy(), numpys.copy()))
            elif kind == 10 and numpys.ndim:
                st.add.at(ours, 0, 1)
                np.add.at(numpys, 0, 1)
            elif kind == 11 and len(pairs) > 2:
                pairs.pop(rng.randrange(len(pairs)))
            elif kind == 12 and numpys.ndim == 2:
                pairs.append((ours.T, numpys.T))
            elif kind == 13 and numpys.ndim:
                ours[...] = ours[::-1] + 0
                numpys[...] = numpys[::-1] + 0
            if len(pairs) > 8:
                pairs.pop(0)
            if step % 10 == 9:
                for ours, numpys in pairs:
                    np.testing.assert_array_equal(ours, numpys, str((seed, log)))


if __name__ == "__main__":
    client_case.main()
