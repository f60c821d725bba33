"""Mapped functions, compared with the same functions applied to one item after another."""

import unittest

import numpy as np

import client_case
import stride as st


class VmapTest(client_case.ClientCase):
    def setUp(self):
        self.rng = np.random.default_rng(8)

    def check(self, function, *arguments, in_axes=0, **tolerance):
        axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(arguments)
        arrays = [st.asarray(one) for one in arguments]
        size = next(one.shape[axis] for one, axis in zip(arguments, axes) if axis is not None)
        items = [
            function(
                *(st.asarray(one if axis is None else np.take(one, i, axis)) for one, axis in zip(arguments, axes))
            )
            for i in range(size)
        ]
        for _ in range(2):
            ours = st.vmap(function, in_axes)(*arrays)
            if not isinstance(ours, tuple):
                ours, expected = (ours,), [np.stack([one.to_numpy() for one in items])]
            else:
                expected = [np.stack([one[k].to_numpy() for one in items]) for k in range(len(ours))]
            for one, other in zip(ours, expected):
                self.same(one, other, **(tolerance or {"rtol": 1e-13, "atol": 1e-13}))

    def test_elementwise(self):
        x, y, z = self.rng.random((5, 3, 4)), self.rng.random((5, 4)), self.rng.random((4,))
        self.check(lambda x: st.cos(x) ** 2 + st.sin(x), x)
        self.check(lambda x, y: x * y + x, x, y)
        self.check(lambda x, y: y - x / 2, x, z, in_axes=(0, None))
        self.check(lambda x, y: st.where(x > 0.5, x, y), x, self.rng.random((5,)))
        self.check(lambda x, y: st.add(y, 1, where=x > 0.5), x, y)
        self.check(lambda x: st.divmod(x, 0.3), x)
        self.check(lambda x: st.modf(x * 3)[1], x)
        self.check(lambda x: x.astype(st.float32), x)
        self.check(lambda x: st.ones(3), x)
        self.check(lambda x: (st.arange(4) + x, x), y)
        self.check(lambda x: x, np.arange(6.0))

    def test_reductions(self):
        x = self.rng.random((5, 3, 4))
        for axis in (None, 0, 1, -1, (0, 1)):
            for keepdims in (False, True):
                self.check(
                    lambda x: (
                        st.sum(x, axis=axis, keepdims=keepdims),
                        st.max(x, axis=axis, keepdims=keepdims),
                        st.mean(x, axis=axis, keepdims=keepdims),
                        st.std(x, axis=axis, keepdims=keepdims),
                    ),
                    x,
                )
                if not isinstance(axis, tuple):
                    self.check(lambda x: st.argmax(x, axis=axis, keepdims=keepdims), x)
        self.check(lambda x: (st.sum(x), st.argmin(x)), np.arange(6.0))
        self.check(
            lambda x: (
                st.softmax(x) if hasattr(st, "softmax") else st.exp(x - st.max(x)) / st.sum(st.exp(x - st.max(x)))
            ),
            x,
        )

    def test_products(self):
        for left, right, axes in (
            ((5, 2, 3), (5, 3, 4), 0), ((5, 2, 3), (3, 4), (0, None)), ((2, 3), (5, 3, 4), (None, 0)),
            ((5, 3), (5, 3), 0), ((5, 3), (3,), (0, None)), ((3,), (5, 3), (None, 0)),
            ((2, 3), (5, 3), (None, 0)), ((5, 3), (3, 2), (0, None)), ((5, 2, 3), (7, 3, 4), (0, None)),
            ((7, 2, 3), (5, 3, 4), (None, 0)), ((5, 7, 2, 3), (5, 3, 4), 0), ((5, 3), (5, 7, 3, 4), 0),
        ):
            with self.subTest(left=left, right=right):
                self.check(lambda a, b: a @ b, self.rng.random(left), self.rng.random(right), in_axes=axes)
        self.check(
            lambda a, b: st.tensordot(a, b, axes=1),
            self.rng.random((5, 2, 3)),
            self.rng.random((3, 2)),
            in_axes=(0, None),
        )
        # The workload of the JAX documentation.
        matrix, batch = self.rng.random((150, 100)), self.rng.random((10, 100))
        self.same(st.vmap(lambda v: st.asarray(matrix) @ v)(st.asarray(batch)), batch @ matrix.T, rtol=1e-12)

    def test_linear_algebra(self):
        a = self.rng.random((5, 3, 3)) + 3 * np.eye(3)
        stacks = self.rng.random((5, 2, 3, 3)) + 3 * np.eye(3)
        symmetric = a + a.transpose(0, 2, 1)
        tolerance = {"rtol": 1e-9, "atol": 1e-9}
        for function, values in ((st.linalg.inv, a), (st.linalg.det, a), (st.linalg.eigvalsh, symmetric),
                                 (st.linalg.cholesky, symmetric), (st.linalg.svdvals, a),
                                 (lambda x: st.abs(st.linalg.qr(x)[1]), a), (st.linalg.inv, stacks)):
            self.check(function, values, **tolerance)
        self.check(lambda x: st.linalg.inv(x[0]) @ x[1], stacks[:, :, :2, :2], **tolerance)
        matrices, vectors = self.rng.random((5, 3, 2)), self.rng.random((5, 3))
        for left, right, axes in (
            (a, matrices, 0),
            (a, vectors, 0),
            (a[0], matrices, (None, 0)),
            (a[0], vectors, (None, 0)),
            (a, matrices[0], (0, None)),
            (a, vectors[0], (0, None)),
            (stacks, matrices, 0),
            (stacks[0], matrices, (None, 0)),
            (a, self.rng.random((5, 4, 3, 2)), 0),
        ):
            with self.subTest(left=left.shape, right=right.shape, axes=axes):
                self.check(st.linalg.solve, left, right, in_axes=axes, **tolerance)
        self.same(st.vmap(st.linalg.inv)(st.asarray(a)), np.linalg.inv(a), rtol=1e-9)

    def test_transforms(self):
        x = self.rng.random((5, 4, 6))
        for function in (st.fft.fft, lambda x: st.fft.fft(x, axis=0), st.fft.fft2, st.fft.rfft,
                         lambda x: st.fft.irfft(st.fft.rfft(x, axis=0), axis=0), st.fft.fftn,
                         lambda x: st.fft.fft(x, n=3, axis=-2)):
            self.check(function, x)

    def test_outer(self):
        x, y = self.rng.random((5, 3)), self.rng.random((5, 2, 4))
        self.check(lambda x, y: st.subtract.outer(x, y), x, y)
        self.check(lambda x, y: st.multiply.outer(x, y), x[0], y, in_axes=(None, 0))
        self.check(lambda x, y: st.multiply.outer(x, y), x, y[0], in_axes=(0, None))
        self.check(lambda x, y: st.power.outer(x, y), np.arange(5.0), y)
        self.check(st.outer, x, y[:, 0])

    def test_views(self):
        x = self.rng.random((5, 3, 4))
        for function in (
            lambda x: x.T,
            lambda x: x[1],
            lambda x: x[:, ::-2],
            lambda x: x[..., -1],
            lambda x: x.reshape(12),
            lambda x: x.T.reshape(2, 6),
            lambda x: st.broadcast_to(x, (2, 3, 4)),
            lambda x: st.broadcast_to(x[0], (3, 4)),
            lambda x: st.expand_dims(x, axis=1),
            lambda x: st.flip(x),
            lambda x: st.concat([x, x[:1] + 1]),
            lambda x: st.stack([x, x * 2], axis=1),
            lambda x: st.roll(x, 1, axis=0),
            lambda x: st.tile(x, (2, 1)),
            lambda x: st.concat([st.zeros((1, 4)), x]),
            lambda x: st.tril(x),
        ):
            self.check(function, x)
        self.check(lambda x: x * 1, x, in_axes=1)
        self.check(lambda x, y: x + y, x, self.rng.random((3, 4, 5)), in_axes=(0, -1))

    def test_indices(self):
        x, m = self.rng.random((5, 6, 4)), self.rng.random((3, 6, 4))
        i, j = self.rng.integers(0, 4, (5, 3)), self.rng.integers(0, 4, (5, 2, 1))
        self.check(lambda x: x[st.asarray([2, 0])], x)
        self.check(lambda x: x[:, st.asarray([[2, 0]])], x)
        self.check(lambda x, i: x[i], x, i)
        self.check(lambda x, i: x[:, i], x, i)
        self.check(lambda x, i: x[:, i], m, i, in_axes=(None, 0))
        self.check(lambda x, i: x[i], m[0], i, in_axes=(None, 0))
        self.check(lambda x, i, j: x[i, j], x, i, j)
        self.check(lambda x, i: x[i, st.asarray([1, 2, 3])], x, i)
        self.check(lambda x: st.take_along_axis(x, st.argsort(x, axis=1), axis=1), x)
        self.check(lambda x, i: st.take_along_axis(x, i, axis=0), x, self.rng.integers(0, 6, (2, 4)), in_axes=(0, None))
        self.check(
            lambda x, i: st.take_along_axis(x, i, axis=0), m[0], self.rng.integers(0, 6, (5, 2, 4)), in_axes=(None, 0)
        )

    def test_order(self):
        x = self.rng.random((5, 3, 4))
        self.check(lambda x: (st.sort(x), st.sort(x, axis=0, descending=True), st.argsort(x, axis=0)), x)
        self.check(lambda x: (st.cumulative_sum(x, axis=0), st.cumulative_prod(x, axis=1, include_initial=True)), x)
        self.check(lambda x: st.searchsorted(st.asarray([0.2, 0.5, 0.9]), x), x)
        self.check(lambda x: st.top_k(x, 2), x)
        self.check(lambda x: (st.median(x), st.median(x, axis=0), st.quantile(x, [0.2, 0.7], axis=1)), x)
        self.check(lambda x: (st.nanmedian(x, axis=1), st.nanmean(x, axis=0), st.nanargmax(x, axis=1)), x)
        self.check(lambda x: (st.nanmedian(x), st.nanmedian(x, axis=(0, 1)), st.nanquantile(x, 0.3, axis=0)), x)
        self.check(lambda x: st.partition(x, 1, axis=0)[1], x)
        self.check(lambda x: st.interp(x, st.asarray([0.2, 0.5, 0.9]), st.asarray([1.0, 3.0, 2.0])), x)
        keys = self.rng.integers(0, 2, (3, 4))
        self.check(lambda x, k: st.lexsort((x, k), axis=0), x, keys, in_axes=(0, None))
        self.check(lambda x: st.top_k(x, 2, axis=0, largest=False), x)
        self.check(lambda x: st.cumulative_sum(x, axis=1, reverse=True), x)
        self.check(lambda x: st.group_reduce("add", x, st.asarray([1, 0, 1]), 2), x)
        self.check(lambda x: st.add.reduceat(x, st.asarray([0, 2, 1]), axis=1), x)

    def test_masked_reductions(self):
        x, mask = self.rng.random((5, 3, 4)), self.rng.random((5, 3, 4)) > 0.4
        self.check(lambda x, m: st.sum(x, axis=0, where=m, initial=2.0), x, mask)
        self.check(lambda x, m: st.max(x, axis=1, where=m, initial=-1.0), x, mask[0], in_axes=(0, None))
        self.check(lambda x, m: st.mean(x, where=m), x[0], mask, in_axes=(None, 0))

    def test_at(self):
        x, i, values = self.rng.random((5, 3, 4)), self.rng.integers(0, 3, (5, 6)), self.rng.random((5, 6, 4))

        def added(x, i, values):
            y = x * 1
            st.add.at(y, i, values)
            st.subtract.at(y, i, 0.25)
            st.negative.at(y, i)
            return y

        self.check(added, x, i, values, rtol=1e-13)
        self.check(lambda x, values: added(x, st.asarray([2, 0, 2, 2, 1, 0]), values), x, values, rtol=1e-13)

    def test_assignment(self):
        x, i = self.rng.random((5, 3, 4)), self.rng.integers(0, 3, (5, 2))
        values = self.rng.random((5, 2, 4))

        def assigned(x):
            y = x * 1
            y[1] = 7
            y[:, ::2] += x[:, :2]
            return y

        def into_shared(x):
            y = st.zeros((2, 3, 4))
            y[1] = x
            return y

        def by_indices(x, i, values):
            y = x * 1
            y[i] = values
            return y

        def behind(x, i):
            y = st.zeros((3, 4))
            y[:, i] = x[:, :2]
            return y

        self.check(assigned, x)
        self.check(into_shared, x)
        self.check(by_indices, x, i, values)
        self.check(by_indices, x, np.array([0, 2]), values, in_axes=(0, None, 0))
        self.check(by_indices, x, i, values[0], in_axes=(0, 0, None))
        self.check(behind, x, i)
        self.check(behind, x[0], i, in_axes=(None, 0))

        def along(x, i):
            y = x * 1
            st.put_along_axis(y, i, 0.5, axis=0)
            return y

        self.check(along, x, self.rng.integers(0, 3, (5, 1, 4)))

    def test_axes_and_structures(self):
        x = self.rng.random((3, 5))
        ours = st.vmap(lambda x: (x * 2, x.sum()), in_axes=1, out_axes=(1, 0))(st.asarray(x))
        self.same(ours[0], x * 2)
        self.same(ours[1], x.sum(0), rtol=1e-15)
        result = st.vmap(lambda d, s: {"a": d["x"] + d["y"] * s})({"x": st.asarray(x), "y": st.ones(3)}, st.ones(3))
        self.same(result["a"], x + 1)
        self.same(st.vmap(lambda x, n: x * n, in_axes=(0, None))(st.asarray(x), 3), x * 3)
        self.same(st.vmap(lambda x: x + 1)(np.arange(3.0)), np.arange(3.0) + 1)
        for wrong, arguments in (((0, 0), (st.ones(3),)), ((None,), (st.ones(3),))):
            with self.assertRaises(ValueError):
                st.vmap(lambda x: x, wrong)(*arguments)
        with self.assertRaises(st.ShapeMismatch):
            st.vmap(lambda x, y: x)(st.ones(3), st.ones(4))

    def test_axes_of_pytrees(self):
        a, x = self.rng.random((4, 3)), self.rng.random((3, 4))
        function = lambda d, x: (d["a"] * x, {"k": d["b"], "s": x.sum()})  # noqa: E731
        for in_axes, out_axes in (
                (({"a": 0, "b": None}, 1), (1, {"k": None, "s": 0})),
                ([{"a": 0, "b": None}, -1], (-1, {"k": None, "s": -1}))):
            product, rest = st.vmap(function, in_axes, out_axes)({"a": st.asarray(a), "b": st.ones(2)}, st.asarray(x))
            self.same(product, (a * x.T).T)
            self.same(rest["k"], np.ones(2))
            self.same(rest["s"], x.sum(0), rtol=1e-14)
        # Keyword arguments are mapped over their first axis; numbers are shared, and those of results are each item's.
        scaled = st.vmap(lambda x, y, n=2: x * y.sum() * n)
        self.same(scaled(st.arange(3.0), y=st.ones((3, 2)), n=3), np.arange(3.0) * 6)
        self.same(st.vmap(lambda x: 1.5)(st.ones(3)), np.full(3, 1.5))
        shared = st.vmap(lambda x: x * 2, in_axes=None, axis_size=3)
        self.same(shared(st.arange(2.0)), np.tile(np.arange(2.0) * 2, (3, 1)))
        self.same(st.vmap(lambda: st.ones(2), axis_size=3)(), np.ones((3, 2)))
        self.same(st.vmap(lambda x: x, in_axes=-1, out_axes=-1)(st.asarray(a)), a)
        inner = st.vmap(lambda p, x: p["w"] * x, in_axes=({"w": None}, 0), out_axes=1)
        self.same(st.vmap(inner, in_axes=({"w": 0}, None))({"w": st.asarray(a)}, st.arange(2.0)),
                  np.einsum("ij,k->ijk", a, np.arange(2.0)))

    def test_wrong_axes(self):
        x, y = st.ones((5, 2)), st.ones((4, 2))
        keep = lambda x: x  # noqa: E731
        for options, error, pattern in (
                ({"in_axes": "a"}, TypeError, "in_axes"),
                ({"in_axes": True}, TypeError, "in_axes"),
                ({"in_axes": (1.5,)}, TypeError, "in_axes\\[0\\]"),
                ({"out_axes": "a"}, TypeError, "out_axes"),
                ({"in_axes": ((0, 0),)}, ValueError, "prefix.*in_axes\\[0\\]"),
                ({"in_axes": (0, 0)}, ValueError, "2 axes for 1"),
                ({"in_axes": 2}, ValueError, "argument x along axis 2.*\\(5, 2\\)"),
                ({"in_axes": -3}, ValueError, "3 axes at least"),
                ({"in_axes": None}, ValueError, "axis_size"),
                ({"out_axes": (0, 0)}, ValueError, "out_axes"),
                ({"out_axes": None}, ValueError, "out_axes is None"),
                ({"out_axes": 5}, ValueError, "5"),
                ({"axis_size": 3}, ValueError, "3 of axis_size, 5 of x")):
            with self.subTest(options=options), self.assertRaisesRegex(error, pattern):
                st.vmap(keep, **options)(x)
        with self.assertRaisesRegex(ValueError, "5 of a\\['k'\\]\\[0\\], 4 of b"):
            st.vmap(lambda a, b: b)({"k": [x]}, y)
        with self.assertRaisesRegex(ValueError, "axis_size"):
            st.vmap(lambda: 1)()
        with self.assertRaisesRegex(TypeError, "takes a function"):
            st.vmap(3)
        with self.assertRaisesRegex(TypeError, "argument s\\[0\\] .* is of type set"):
            st.vmap(lambda x, s: x)(x, [{1}])

    def test_arrays_written_before_they_are_known_to_differ(self):
        def assigned(x, i):
            y = st.concat([x, x[:1] * 0])  # is created whole, then written in parts
            st.add.at(y, i, 1.0)
            y[i] = y[i] * 2
            return y

        self.check(assigned, self.rng.random((4, 3)), np.array([0, 3, 1, 2]))

    def test_nested(self):
        a, b = self.rng.random((4, 3)), self.rng.random((5, 3))
        distances = st.vmap(st.vmap(lambda x, y: st.sqrt(st.sum((x - y) ** 2)), in_axes=(None, 0)), in_axes=(0, None))
        self.same(distances(st.asarray(a), st.asarray(b)), np.sqrt(((a[:, None] - b) ** 2).sum(-1)), rtol=1e-14)
        self.same(st.jit(distances)(st.asarray(a), st.asarray(b)), np.sqrt(((a[:, None] - b) ** 2).sum(-1)), rtol=1e-14)
        self.same(st.vmap(st.jit(lambda x: x @ x))(st.asarray(a)), (a * a).sum(1), rtol=1e-14)
        self.same(
            st.vmap(st.vmap(lambda x: st.sort(x)[::-1]))(
                st.asarray(self.rng.permutation(24.0 * np.ones(24) - np.arange(24)).reshape(2, 3, 4))
            ).sum(),
            np.asarray(300.0),
        )

    def test_one_round_trip(self):
        mapped = st.vmap(lambda x, y: st.exp(x) + y.sum())
        x = st.asarray(self.rng.random((5, 4)))
        with client_case.Sent(self.session) as sent:
            mapped(x, x).to_numpy()
        self.assertEqual(sent.num_messages, 1)

    def test_operations_without_a_batching_rule_raise(self):
        @st.vectorize
        def steps(x):
            while x > 1:
                x = x / 2
            return x

        with self.assertRaisesRegex(st.Unimplemented, "kernel py_steps"):
            st.vmap(steps)(st.ones(3))
        with self.assertRaisesRegex(st.Unimplemented, "searchsorted"):
            st.vmap(lambda x: st.searchsorted(x, st.ones(2)))(st.ones((3, 2)))
        with self.assertRaises(st.TracingError):
            st.vmap(lambda x: x if x > 0 else -x)(st.ones(3))


if __name__ == "__main__":
    client_case.main()
