"""Functions traced once and replayed, compared with the same functions run directly."""

import collections
import functools
import operator
import threading
import unittest

import numpy as np

import client_case
import stride as st
from stride.v1 import program_service_pb2, program_service_pb2_grpc

Pair = collections.namedtuple("Pair", "first second")


class JitTest(client_case.ClientCase):
    def setUp(self):
        self.rng = np.random.default_rng(5)

    def check(self, function, *arguments, **tolerance):
        """Results equal those of a direct call, at the first call and at a replay with other values."""
        compiled = st.jit(function)
        for _ in range(2):
            arguments = [self.rng.permuted(one, axis=None) if isinstance(one, np.ndarray) else one for one in arguments]
            ours = compiled(*(st.asarray(one) if isinstance(one, np.ndarray) else one for one in arguments))
            theirs = function(*(st.asarray(one) if isinstance(one, np.ndarray) else one for one in arguments))
            ours, theirs = (one if isinstance(one, tuple) else (one,) for one in (ours, theirs))
            self.assertEqual(len(ours), len(theirs))
            for one, other in zip(ours, theirs):
                self.same(one, other.to_numpy(), **tolerance)
        self.assertEqual(len(compiled.templates), 1)

    def test_kinds_of_operations(self):
        x, m = self.rng.random((4, 6)), self.rng.random((6, 3))
        weights = st.asarray(self.rng.random((6, 3)))

        def assigned(x):
            y = x * 1
            y[1] = 0
            y[:, ::2] += 1
            return y

        def chained(x):
            for i in range(200):
                x = x * 0.5 + i
            return x

        for function, arguments in (
            (lambda x: st.cos(x) ** 2 + st.sin(x) ** 2, (x,)), (lambda x: (x.sum(axis=0), st.argmax(x)), (x,)),
            (lambda x, m: x @ m + 1, (x, m)), (lambda x: x @ weights, (x,)), (lambda x: x, (x,)),
            (lambda x: (x, x, x.T, x[1:]), (x,)), (lambda x: st.ones(3) + x[0, 0], (x,)),
            (lambda x: st.concat([x, x[::-1]]), (x,)), (assigned, (x,)), (chained, (x,)),
            (lambda x: st.sort(x, axis=0)[st.argsort(x[:, 0])], (x,)), (lambda x: st.divmod(x, 0.3), (x,)),
            (lambda x: st.cumulative_sum(x, axis=1).reshape(24), (x,)), (lambda x, n: x[n] * n, (x, 2)),
            (lambda x: weights, (x,)), (lambda x: st.asarray(np.arange(3.0)), (x,)),
            (lambda x: st.add(x, 1, where=x > 0.5), (x,)),
            (lambda x: st.random.Generator(key=3).normal(size=(4, 6)) + x, (x,)),
        ):
            self.check(function, *arguments)

    def test_signatures(self):
        calls = []

        @st.jit
        def scaled(x, factor=2, *, shift=0):
            calls.append(x.shape)
            return x * factor + shift

        for _ in range(2):
            self.same(scaled(st.ones(3)), np.full(3, 2.0))
            self.same(scaled(np.ones(3)), np.full(3, 2.0))
            self.same(scaled(st.ones((2, 2))), np.full((2, 2), 2.0))
            self.same(scaled(st.ones(3, dtype=st.int32)), np.full(3, 2, np.int32))
            self.same(scaled(st.ones(3), 5), np.full(3, 5.0))
            self.same(scaled(st.ones(3), 5.0, shift=1), np.full(3, 6.0))
            self.same(scaled(st.ones((6,))[::2]), np.full(3, 2.0))
        self.assertEqual(len(calls), 5)
        self.assertEqual(scaled.__name__, "scaled")

    def test_structures(self):
        @st.jit
        def step(state, names):
            return {"sum": state["a"] + state["b"][0], "parts": [state["a"], (names, None, 3)]}

        result = step({"a": st.ones(2), "b": (st.zeros(2), 7)}, "xy")
        self.same(result["sum"], [1.0, 1.0])
        self.same(result["parts"][0], [1.0, 1.0])
        self.assertEqual(result["parts"][1], ("xy", None, 3))

    def test_replays_are_sent_as_one(self):
        step = st.jit(lambda x: st.sqrt(x * x + 1))
        x = st.asarray(self.rng.random(4))
        for _ in range(3):
            x = step(x)
        with client_case.Sent(self.session) as sent:
            x.to_numpy()
        self.assertEqual(sent.num_messages, 1)
        self.assertEqual(len(sent.kinds), 4)  # the upload, and one expression each

    def programs(self, session):
        stub = program_service_pb2_grpc.ProgramServiceStub(session._channels.control)
        return [
            one.name for one in session._call(stub.ListPrograms, program_service_pb2.ListProgramsRequest()).programs
        ]

    def test_reductions_compute_their_elements(self):
        """The bits of a replay are those of single operations, in every layout."""
        numbers = np.random.default_rng(3)
        x, y = (st.array(numbers.normal(size=(300, 70)).astype(np.float32)) for _ in range(2))
        row, column = st.array(numbers.normal(size=70)), st.array(numbers.normal(size=(300, 1)).astype(np.float16))
        for axis in (None, 0, 1):
            def spread(x, y, row, column):
                return (
                    ((x - y) ** 2).sum(axis), (x * row).mean(axis), abs(x - column).max(axis),
                    (x.T[:, ::-1] + 1).sum(axis), st.argmin(y * column - row, axis), st.any(x > row, axis),
                    st.var(x, axis), st.norm(x - y, axis=axis),
                )

            single = []
            for make, reduce in (
                (lambda: (x - y) ** 2, st.sum), (lambda: x * row, st.mean), (lambda: abs(x - column), st.max),
                (lambda: x.T[:, ::-1] + 1, st.sum), (lambda: y * column - row, st.argmin),
                (lambda: x > row, st.any), (lambda: x + 0, st.var), (lambda: x - y, st.norm),
            ):
                elements = make()
                single.append(reduce(elements, axis=axis).to_numpy())
            for replay in range(2):
                for i, (one, other) in enumerate(zip(st.jit(spread)(x, y, row, column), single)):
                    self.assertEqual(one.to_numpy().tobytes(), other.tobytes(), f"{i} {axis}")

    def test_replays_are_program_calls(self):
        host, shift = self.rng.random(8), self.rng.random(8)
        with st.connect(self.daemon.address, local=client_case.LOCAL) as session:
            before = self.programs(session)
            weights = st.asarray(self.rng.random((8, 3)))
            step = st.jit(lambda x: (st.cumulative_sum(x + shift) @ weights, x.sum(), x * st.asarray(np.arange(8.0))))
            x = st.asarray(host)
            expected = np.cumsum(host + shift) @ weights.to_numpy(), host.sum(), host * np.arange(8.0)
            for _ in range(2):
                for one, other in zip(step(x), expected):
                    self.same(one, other, rtol=1e-12)
            session.synchronize()
            with client_case.Sent(session) as sent:
                results = [step(x) for _ in range(3)]
                session.synchronize()
            self.assertEqual(sent.kinds, ["program_call"] * 3)
            for result in results:
                self.same(result[1], expected[1], rtol=1e-12)
            self.assertEqual(len(self.programs(session)), len(before) + 1)
            # Programs of deleted functions are deleted in batches.
            for i in range(101):
                st.jit(lambda x: st.sort(x + i)[::2] * i)(x)
            self.assertLess(len(self.programs(session)), len(before) + 60)
        with st.connect(self.daemon.address, local=client_case.LOCAL) as session:
            self.assertEqual(self.programs(session), before)

    def test_a_failing_step_fails_every_result(self):
        pick = st.jit(lambda x, i: (st.take(st.sort(x), i), x + 1))
        x = st.asarray(np.arange(4.0))
        self.same(pick(x, st.asarray([3]))[0], [3.0])
        for one in pick(x, st.asarray([4])):
            with self.assertRaises(IndexError) as raised:
                one.to_numpy()
            self.assertIn("jit_test.py", raised.exception.origin)
        self.same(pick(x, st.asarray([0]))[1], np.arange(1.0, 5.0))

    def test_results_are_no_views(self):
        x = st.asarray(np.arange(4.0)) + 0
        y = st.jit(lambda x: x[1:])(x)
        y[0] = 9
        self.same(x, np.arange(4.0))

    def test_memory_is_released(self):
        step = st.jit(lambda x: st.cumulative_sum(x) @ x)
        x = st.ones(100)
        step(x).to_numpy()
        self.session.synchronize()
        before = len(self.session.list_arrays())
        for _ in range(5):
            step(x).to_numpy()
        st.ones(1).to_numpy()  # releases go with the next commands
        self.session.synchronize()
        self.assertLessEqual(len(self.session.list_arrays()), before + 3)

    def test_nested(self):
        inner = st.jit(lambda x, y: (x * y, x.sum()))

        @st.jit
        def outer(x):
            product, total = inner(x, x + 1)
            return inner(product, x)[0] + total

        host = np.arange(4.0)
        for _ in range(2):
            self.same(outer(st.asarray(host)), host * (host + 1) * host + host.sum())

    def test_kernels(self):
        @st.kernel
        def double(x, out):
            i = st.grid(1)
            if i < x.size:
                out[i] = 2 * x[i]

        def through_kernel(x):
            out = st.zeros_like(x)
            double[1, 32](x, out)
            return out + 1

        self.check(through_kernel, np.arange(5.0))

        @st.vectorize
        def steps(x):
            n = 0
            while x > 1:
                x = x / 2
                n += 1
            return n

        self.check(lambda x: steps(x * 100) + 1, np.arange(5.0))

    def test_untraceable_functions_raise_tracing_error(self):
        x = st.ones(3)
        for function in (
            lambda x: x if x[0] > 0 else -x,
            lambda x: float(x.sum()),
            lambda x: x[x > 0],
            lambda x: st.nonzero(x),
            lambda x: np.asarray(x),
            lambda x: st.unique_values(x),
        ):
            with self.assertRaises(st.TracingError) as raised:
                st.jit(function)(x)
            self.assertIn("jit_test.py", raised.exception.origin)

        @st.jit
        def writes(x):
            x[0] = 5
            return x

        with self.assertRaisesRegex(st.TracingError, "write"):
            writes(x)
        self.same(x, np.ones(3))
        escaped = []
        st.jit(lambda x: escaped.append(x * 2) or x)(x)
        with self.assertRaises(st.TracingError):
            (escaped[0] + 1).to_numpy()
        with self.assertRaises(st.TracingError):
            (x + escaped[0]).to_numpy()
        with self.assertRaises(st.TracingError):
            st.jit(lambda x, y: x)(x, {1, 2})
        # An error leaves no trace active.
        self.assertIs(st.current_session(), self.session)
        self.same(st.jit(lambda x: x + 1)(x), np.full(3, 2.0))

    def test_static_arguments(self):
        x = st.arange(4.0)
        calls = []

        def scaled(x, n, how="up", *, shift=0):
            calls.append((n, how))
            return (x * n if how == "up" else x / n) + shift

        for options in ({"static_argnums": (1, 2)}, {"static_argnums": (1, -1)}, {"static_argnames": ("n", "how")},
                        {"static_argnums": 1, "static_argnames": "how"}):
            compiled = st.jit(scaled, **options)
            calls.clear()
            for _ in range(2):
                self.same(compiled(x, 2), np.arange(4.0) * 2)
                self.same(compiled(x, n=2), np.arange(4.0) * 2)
                self.same(compiled(x, 2, "down", shift=st.asarray(1.0)), np.arange(4.0) / 2 + 1)
            self.assertEqual(set(calls), {(2, "up"), (2, "down")})
            self.assertLessEqual(len(calls), 3)
            compiled.clear_cache()
            self.assertEqual(len(compiled.templates), 0)
        # A static argument has no inputs in it.
        self.same(st.jit(lambda x, shape: x.reshape(shape), static_argnums=1)(x, (2, 2)), np.arange(4.0).reshape(2, 2))
        decorated = st.jit(static_argnums=(1,))(lambda x, n: x * n)
        self.same(decorated(x, 3), np.arange(4.0) * 3)

        class Model:
            factor = 3

            @functools.partial(st.jit, static_argnums=0)
            def run(self, x):
                return x * self.factor

        self.same(Model().run(x), np.arange(4.0) * 3)
        signed = st.jit(lambda x, z: st.copysign(x, z))  # zeros are equal, but not the same
        self.same(signed(x + 1, 0.0), np.arange(4.0) + 1)
        self.same(signed(x + 1, -0.0), -np.arange(4.0) - 1)

    def test_wrong_options(self):
        def function(x, n):
            return x

        for options, error, pattern in (
                ({"static_argnums": 3}, ValueError, "static_argnums=\\(3,\\).*2 positional"),
                ({"donate_argnums": (0, -4)}, ValueError, "donate_argnums"),
                ({"static_argnames": "y"}, ValueError, "static_argnames has 'y'"),
                ({"donate_argnames": ["x", "z"]}, ValueError, "donate_argnames has 'z'"),
                ({"static_argnums": 0, "donate_argnums": 0}, ValueError, "both"),
                ({"static_argnums": 0, "donate_argnames": "x"}, ValueError, "both"),
                ({"static_argnums": "a"}, TypeError, "integer"),
                ({"static_argnames": [1]}, TypeError, "static_argnames"),
                ({"device": "cuda:0"}, st.Unimplemented, "device="),
                ({"out_shardings": 1}, st.Unimplemented, "out_shardings")):
            with self.subTest(options=options), self.assertRaisesRegex(error, pattern):
                st.jit(function, **options)
        with self.assertRaisesRegex(TypeError, "takes a function"):
            st.jit(3)
        for value in ([1], np.ones(2), st.ones(2), {1: 2}):
            with self.assertRaisesRegex(ValueError, "static argument 1 of type"):
                st.jit(function, static_argnums=1)(st.ones(2), value)
        for arguments, path in (((st.ones(1), {1, 2}), "n"), ((st.ones(1), {"k": [1, {2}]}), "n\\['k'\\]\\[1\\]")):
            with self.assertRaisesRegex(TypeError, f"argument {path} of function is of type set"):
                st.jit(function)(*arguments)

    def test_donation(self):
        def step(state, x):
            return {"w": state["w"] + x}, x.sum()

        for options in ({"donate_argnums": 0}, {"donate_argnames": "state"}):
            compiled = st.jit(step, **options)
            w, x = st.ones((3,)), st.arange(3.0)
            view, computed = w[1:], w * 2
            result, total = compiled({"w": w}, x)
            self.assertTrue(w.is_deleted())
            self.assertFalse(x.is_deleted())
            self.assertFalse(view.is_deleted())
            for use in (lambda: w + 1, lambda: np.asarray(w), lambda: w.shape, lambda: compiled({"w": w}, x),
                        lambda: w[0]):
                with self.assertRaisesRegex(RuntimeError, "deleted"):
                    use()
            with self.assertRaises(st.ArrayDeleted):
                w.to_numpy()
            self.same(result["w"], [1.0, 2, 3])
            self.same(total, np.asarray(3.0))
            self.same(view, np.ones(2))
            self.same(computed, np.full(3, 2.0))
        # An array that no result could take the place of stays, as do NumPy's, and those of a function that is traced.
        x = st.arange(3.0)
        self.same(st.jit(lambda x: x.sum(), donate_argnums=0)(x), np.asarray(3.0))
        self.same(x, np.arange(3.0))
        inner = st.jit(lambda x: x + 1, donate_argnums=0)
        self.same(st.jit(lambda x: inner(x) + x)(x), np.arange(3.0) * 2 + 1)
        self.same(inner(np.arange(3.0)), np.arange(3.0) + 1)
        pair = st.jit(lambda a, b: a + b, donate_argnums=(0, 1))
        kept = st.ones(3)
        self.same(pair(kept + 0, kept), np.full(3, 2.0))
        self.assertFalse(kept.is_deleted())  # there is one result for two
        self.same(pair(kept, kept), np.full(3, 2.0))
        self.assertTrue(kept.is_deleted())
        kept.delete()

    def test_donated_memory_is_released(self):
        step = st.jit(lambda x: x * 2 + 1, donate_argnums=0)
        x = st.ones((256, 256)) + 0
        x.block_until_ready()
        self.session.synchronize()
        before = len(self.session.list_arrays())
        held = [x]
        for _ in range(4):
            held.append(step(held[-1]))
        held[-1].block_until_ready()
        st.ones(1).to_numpy()  # releases go with the next commands
        self.session.synchronize()
        self.assertLessEqual(len(self.session.list_arrays()), before + 2)
        self.assertEqual([one.is_deleted() for one in held], [True] * 4 + [False])

    def test_pytrees(self):
        @st.jit
        def step(state):
            return {"b": state["p"].first * 2, "a": [state["n"], state["p"]._replace(first=state["p"].second)]}

        x, y = st.ones(2), st.zeros(3)
        result = step({"p": Pair(x, y), "n": None})
        self.same(result["b"], np.full(2, 2.0))
        self.assertIsNone(result["a"][0])
        self.assertIsInstance(result["a"][1], Pair)
        self.same(result["a"][1].first, np.zeros(3))
        step({"n": None, "p": Pair(x, y)})
        self.assertEqual(len(step.templates), 1)
        step({"p": Pair(x, y), "n": 3})
        self.assertEqual(len(step.templates), 2)

    def test_waiting(self):
        x = st.ones(3) * 2
        self.assertIs(x.block_until_ready(), x)
        tree = st.block_until_ready({"a": x + 1, "b": [3, st.zeros((0, 2))]})
        self.same(tree["a"], np.full(3, 3.0))
        wrong = st.take(st.arange(3), st.asarray([7]) + 0)
        with self.assertRaises(IndexError):
            wrong.block_until_ready()
        self.same(st.jit(lambda x: (x + 1).block_until_ready())(x), np.full(3, 3.0))
        put = st.device_put({"a": [1, np.ones(2)], "b": (x, None)})
        self.assertIsInstance(put["a"][0], st.Array)
        self.same(put["a"][1], np.ones(2))
        self.assertIs(put["b"][0], x)
        self.same(st.device_put(np.ones(2), self.session.devices()[0]), np.ones(2))
        got = st.device_get((x, "s"))
        self.assertIsInstance(got[0], np.ndarray)
        self.assertEqual(got[1], "s")
        with self.assertRaises(TypeError):
            st.device_put(x, donated=True)

    def test_threads_and_sessions(self):
        traced, go_on = threading.Event(), threading.Event()

        @st.jit
        def slow(x):
            traced.set()
            go_on.wait(20)
            return x + st.ones(3)

        results = []
        thread = threading.Thread(target=lambda: results.append(slow(st.zeros(3)).to_numpy()))
        thread.start()
        traced.wait(20)
        self.assertIs(st.current_session(), self.session)  # another thread's trace does not affect this thread
        self.same(st.ones(2) + 1, [2.0, 2.0])
        go_on.set()
        thread.join()
        np.testing.assert_array_equal(results, [[1, 1, 1]])
        held = st.ones(3) * 2
        scaled = st.jit(lambda x: x * held)
        self.same(scaled(st.ones(3)), np.full(3, 2.0))
        with st.connect(self.daemon.address, local=client_case.LOCAL):
            held = st.ones(3) * 5
            self.same(scaled(st.ones(3)), np.full(3, 5.0))

    def test_more_arrays_than_a_kernel_may_read(self):
        for count in (64, 100, 300):  # with more than 256 inputs it is not a program
            arrays = [st.asarray(self.rng.normal(size=1000)) for _ in range(count)]
            self.check(lambda *arrays: functools.reduce(operator.add, arrays), *arrays)
            total = functools.reduce(operator.add, map(np.asarray, arrays))
            self.same(st.jit(lambda x: functools.reduce(operator.add, [x, *arrays[1:]]))(arrays[0]), total)

    def test_errors_name_the_line(self):
        @st.jit
        def wrong(x):
            return st.take(x, st.asarray([7]))

        with self.assertRaises(IndexError) as raised:
            wrong(st.ones(3)).to_numpy()
        self.assertIn("jit_test.py", raised.exception.origin)


if __name__ == "__main__":
    client_case.main()
