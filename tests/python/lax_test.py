"""stride.lax, pytrees and functional updates, next to Python's loops and NumPy: eager, in jit and in vmap."""

import collections
import dataclasses
import math
import operator
import unittest
from unittest import mock

import numpy as np

import client_case
import stride as st
from stride import _at, _jit, _program, _program_parts, _transfers, _vmap, lax, tree_util
from stride.lax import _branches, _control, _operators, _scans, _shapes, _slices
from stride.v1 import operation_pb2 as pb

Pair = collections.namedtuple("Pair", "first second")


class LaxCase(client_case.ClientCase):
    def setUp(self):
        self.rng = np.random.default_rng(11)

    def leaves_equal(self, ours, expected, **tolerance):
        found, structure = tree_util.tree_flatten(ours)
        others, other = tree_util.tree_flatten(expected)
        self.assertEqual(structure, other)
        for one, theirs in zip(found, others):
            self.same(one, theirs, **tolerance)

    def check(self, function, expected, *arguments, **tolerance):
        """`function` of arrays gives `expected`: directly, traced, and replayed with the same program."""
        arrays = [st.asarray(one) if isinstance(one, np.ndarray) else one for one in arguments]
        self.leaves_equal(function(*arrays), expected, **tolerance)
        compiled = st.jit(function)
        for _ in range(2):
            self.leaves_equal(compiled(*arrays), expected, **tolerance)

    def refuses(self, error, pattern, function, *arguments):
        with self.assertRaisesRegex(error, pattern):
            function(*arguments)
        with self.assertRaisesRegex(error, pattern):
            st.jit(function)(*arguments)


class ControlTest(LaxCase):
    def test_cond(self):
        x = self.rng.random((3, 4))

        def choose(x, y):
            return lax.cond(x.sum() > y, lambda a: {"k": a + 1, "n": None}, lambda a: {"k": -a, "n": None}, x)

        for bound in (0.0, 100.0):
            expected = {"k": x + 1 if x.sum() > bound else -x, "n": None}
            self.check(choose, expected, x, np.asarray(bound))
        for pred in (np.asarray(3), np.asarray(0.0), np.asarray(False)):
            self.check(lambda p: lax.cond(p, lambda: 1.5, lambda: 2.5), np.asarray(1.5 if pred else 2.5), pred)
        nested = lambda p: lax.cond(p > 1, lambda: lax.cond(p > 2, lambda: 1, lambda: 2), lambda: 3)  # noqa: E731
        for value, expected in ((0, 3), (2, 2), (3, 1)):
            self.check(nested, np.asarray(expected), np.asarray(value))
        # A number takes the type of the array in the other branch.
        self.same(
            st.jit(lambda p: lax.cond(p > 1, lambda: 1.0, lambda: p))(st.float32(4) + st.zeros((), np.float32)),
            np.float32(1),
        )
        self.check(lambda p: lax.cond(p, lambda o: p, lambda o: p, operand=None), np.asarray(True), np.asarray(True))
        # A condition that does not depend on arguments is known during the trace: one branch is called.
        self.check(lambda x: lax.cond(x.shape[0] > 2, lambda: x, lambda: 1 / 0), x, x)

    def test_cond_selects_where_values_are_not_finite(self):
        x = np.array([np.nan, np.inf, -0.0, 2.0])
        for pred in (True, False):
            chosen = st.jit(lambda p, x: lax.cond(p, lambda: x, lambda: 1 / x))(st.asarray(pred), st.asarray(x))
            with np.errstate(divide="ignore"):
                expected = x if pred else 1 / x
            self.same(chosen, expected)
            np.testing.assert_array_equal(np.signbit(chosen), np.signbit(expected))

    def test_cond_refuses(self):
        x = st.ones((2,))
        p = st.asarray(True)
        self.refuses(TypeError, "shape \\(2,\\)", lambda x: lax.cond(x > 1, lambda: 1, lambda: 2), x)
        self.refuses(TypeError, "None", lambda x: lax.cond(None, lambda: 1, lambda: 2), x)
        self.refuses(TypeError, "true_fun", lambda x: lax.cond(True, 1, lambda: 2), x)
        for branches, pattern in (
            ((lambda x: x, lambda x: x[:1]), "at the result .*float64\\[2\\].*float64\\[1\\]"),
            ((lambda x: {"a": (x,)}, lambda x: {"a": (x.astype(np.float32),)}), "\\['a'\\]\\[0\\]"),
            ((lambda x: (x,), lambda x: x), "same structure"),
            ((lambda x: 1, lambda x: x[0]), "a number \\(int\\)"),
            ((lambda x: 1, lambda x: 1.0), "a number"),
        ):
            with self.assertRaisesRegex(TypeError, pattern):
                st.jit(lambda p, x: lax.cond(p, *branches, x))(p, x)

    def test_branches_do_not_write_outside(self):
        held = st.zeros(3)
        kept = held[:]  # so that += writes

        def writes(x):
            x[0] = 1
            return x

        def adds(x):
            x += 1
            return x

        for body in (writes, adds, lambda x: st.add.at(x, st.asarray([0]), 1) or x):
            with self.assertRaisesRegex(st.TracingError, "branch"):
                st.jit(lambda p: lax.cond(p, lambda: body(held), lambda: held))(st.asarray(False))

            def inside(p):
                y = st.zeros(3) + 0
                return lax.cond(p, lambda: body(y), lambda: y)

            with self.assertRaisesRegex(st.TracingError, "branch"):
                st.jit(inside)(st.asarray(False))
        self.same(kept, np.zeros(3))
        # A branch may write an array that it made.
        expected = np.array([1.0, 0, 0])
        self.same(
            st.jit(lambda p: lax.cond(p, lambda: writes(st.zeros(3) + 0), lambda: held + 0))(st.asarray(True)), expected
        )
        # An error has no effect on later calls.
        held[0] = 5
        self.same(kept, [5.0, 0, 0])

    def test_switch(self):
        x = self.rng.random(3)
        branches = [lambda a: a, lambda a: a * 2, lambda a: a * 3]
        for index in (-4, 0, 1, 2, 7):
            expected = x * (min(max(index, 0), 2) + 1)
            self.check(lambda i, a: lax.switch(i, branches, a), expected, np.asarray(index), x)
        self.check(lambda i: lax.switch(i, [lambda: 4]), np.asarray(4), np.asarray(9))
        self.refuses(ValueError, "at least one", lambda i: lax.switch(i, []), st.asarray(1))
        self.refuses(TypeError, "integer", lambda i: lax.switch(i, branches[:2]), st.asarray(1.0))
        self.refuses(TypeError, "shape", lambda i: lax.switch(i, branches[:2]), st.asarray([1]))
        with self.assertRaisesRegex(TypeError, "branches\\[0\\] and branches\\[1\\]"):
            st.jit(lambda i, a: lax.switch(i, [lambda a: a, lambda a: a[0]], a))(st.asarray(1), st.ones(3))

    def test_scan(self):
        rows = self.rng.random((70, 3))

        def python(rows, reverse):
            carry, ys = np.zeros(3), []
            for row in rows[::-1] if reverse else rows:
                carry = carry * 0.5 + row
                ys.append((carry.sum(), row * 2))
            ys = ys[::-1] if reverse else ys
            return {"c": carry}, tuple(np.stack(one) for one in zip(*ys))

        def body(carry, row):
            new = carry["c"] * 0.5 + row
            return {"c": new}, (new.sum(), row * 2)

        for reverse in (False, True):
            for count in (1, 31, 32, 33, 70):
                expected = python(rows[:count], reverse)
                self.check(
                    lambda r: lax.scan(body, {"c": st.zeros(3)}, r, reverse=reverse), expected, rows[:count], rtol=1e-14
                )

    def test_scan_of_numbers_and_none(self):
        self.check(lambda: lax.scan(lambda c, _: (c * 2, c), 1, length=5), (np.asarray(32), np.array([1, 2, 4, 8, 16])))
        x = self.rng.random(4)
        # A number to which a float is added is a float from the first step on.
        self.check(
            lambda x: lax.scan(lambda c, v: (c + v, c), 0, x),
            (x.cumsum()[-1], np.array([0, *x.cumsum()[:-1]])),
            x,
            rtol=1e-15,
        )
        self.check(lambda x: lax.scan(lambda c, v: (c + v, None), 0.0, x), (x.cumsum()[-1], None), x, rtol=1e-15)
        self.check(lambda x: lax.scan(lambda c, v: (c, Pair(v, 2)), 0.0, x)[1], Pair(x, np.full(4, 2)), x)
        self.check(
            lambda x: lax.scan(lambda c, v: (c + v, c * st.ones(2)), 0.0, x[:0]), (np.asarray(0.0), np.zeros((0, 2))), x
        )
        # Elements of integers are indices.
        self.check(
            lambda x: lax.scan(lambda c, i: (c + x[i], x[i]), 0.0, st.arange(4)), (x.cumsum()[-1], x), x, rtol=1e-15
        )

    def test_scan_refuses(self):
        x = st.arange(5.0)
        keep = lambda c, v: (c, None)  # noqa: E731
        for error, pattern, function in (
            (ValueError, "length=", lambda x: lax.scan(keep, 0.0, None)),
            (ValueError, "xs\\[1\\] has no axis", lambda x: lax.scan(keep, 0.0, (x, 3.0))),
            (ValueError, "different lengths: 3, 5", lambda x: lax.scan(keep, 0.0, (x, x[:3]))),
            (ValueError, "length=3", lambda x: lax.scan(keep, 0.0, x, length=3)),
            (TypeError, "pair", lambda x: lax.scan(lambda c, v: c, x, x)),
            (TypeError, "pair", lambda x: lax.scan(lambda c, v: (c, c, c), x, x)),
            (TypeError, "structure", lambda x: lax.scan(lambda c, v: ((c, c), None), x, x)),
            (
                TypeError,
                "carry\\['a'\\].*float32\\[\\].*float64\\[\\]",
                lambda x: lax.scan(lambda c, v: ({"a": c["a"] + v}, None), {"a": st.zeros((), np.float32)}, x),
            ),
            (TypeError, "float64\\[5\\].*float64\\[2\\]", lambda x: lax.scan(lambda c, v: (c[:2], None), x, x)),
            (TypeError, "initial value\\['a'\\] is of type str", lambda x: lax.scan(keep, {"a": "s"}, x)),
            (TypeError, "f is a function", lambda x: lax.scan(3, 0.0, x)),
            (TypeError, "y\\[0\\] is of type str", lambda x: lax.scan(lambda c, v: (c, ["s"]), 0.0, x)),
        ):
            self.refuses(error, pattern, function, x)

    def test_results_are_no_views(self):
        x = st.asarray(np.arange(3.0))
        last, _ = lax.scan(lambda c, v: (v, None), st.zeros(()), x)
        row, _ = lax.scan(lambda c, v: (v, None), st.zeros(3), st.reshape(x, (1, 3)))
        row[0] = 9
        self.same(x, [0.0, 1, 2])
        self.same(last, np.asarray(2.0))

    def test_fori_loop(self):
        x = self.rng.random(6).astype(np.float32)
        # The step's number is a Python number: it takes the other operand's type, and slices are views.
        expected = x.copy()
        for i in range(1, 5):
            expected = expected * np.float32(i) + expected[i]
        self.check(lambda x: lax.fori_loop(1, 5, lambda i, v: v * i + v[i], x), expected, x, rtol=1e-6)
        self.check(lambda: lax.fori_loop(0, 4, lambda i, v: v + i, 0), np.asarray(6))
        self.check(lambda: lax.fori_loop(0, 3, lambda i, v: v + 1.5, 0), np.asarray(4.5))
        self.check(lambda x: lax.fori_loop(5, 2, lambda i, v: v * 0, x), x, x)
        even = lambda i, v: st.where(~(i % 2 == 0), v + 1, v * 2)  # noqa: E731
        self.check(lambda x: lax.fori_loop(0, 3, even, x), ((x * 2) + 1) * 2, x, rtol=1e-6)
        self.check(
            lambda x: lax.fori_loop(0, 4, lambda i, v: lax.cond(i > 1, lambda: v + 1, lambda: v), x),
            x + 2,
            x,
            rtol=1e-6,
        )
        self.check(
            lambda x: lax.fori_loop(0, 9, lambda i, v: (v[1], v[0] + v[1]), (x, x)), (x * 55, x * 89), x, rtol=1e-5
        )
        self.same(
            lax.fori_loop(st.asarray(0), st.asarray(np.int32(3)), lambda i, v: v + 1, st.asarray(x)), x + 3, rtol=1e-6
        )

    def test_fori_loop_refuses(self):
        x = st.ones(3)
        self.refuses(TypeError, "lower is an integer", lambda x: lax.fori_loop(0.0, 3, lambda i, v: v, x), x)
        self.refuses(TypeError, "upper", lambda x: lax.fori_loop(0, x, lambda i, v: v, x), x)
        self.refuses(TypeError, "structure", lambda x: lax.fori_loop(0, 3, lambda i, v: (v,), x), x)
        self.refuses(TypeError, "fori_loop: the body's carry", lambda x: lax.fori_loop(0, 3, lambda i, v: v[:1], x), x)

    def test_while_loop(self):
        x = np.array([1.0, 2.0])
        self.leaves_equal(
            lax.while_loop(lambda v: v["a"].sum() < 100, lambda v: {"a": v["a"] * 2}, {"a": st.asarray(x)}),
            {"a": x * 64},
        )
        # A condition of Python's numbers is known while the function is traced.
        self.check(lambda x: lax.while_loop(lambda v: v[0] < 5, lambda v: (v[0] + 1, v[1] * 2), (0, x))[1], x * 32, x)
        for condition, pattern in (
            (lambda v: v < 9, "shape|\\[2\\]"),
            (lambda v: 1, "int"),
            (lambda v: (True,), "PyTreeDef"),
        ):
            self.refuses(TypeError, pattern, lambda x: lax.while_loop(condition, lambda v: v, x), st.asarray(x))
        with self.assertRaisesRegex(TypeError, "while_loop: the body's carry"):
            lax.while_loop(lambda v: v.sum() < 9, lambda v: v[:1], st.asarray(x))

    def test_map_and_associative_scan(self):
        rows = self.rng.random((7, 3))
        for size in (None, 1, 3, 7, 20):
            self.check(
                lambda r: lax.map(lambda row: (row * 2, row.sum()), r, batch_size=size),
                (rows * 2, rows.sum(1)),
                rows,
                rtol=1e-14,
            )
        self.check(lambda r: lax.map(lambda row: row * 2, r[:0]), rows[:0], rows)
        for count in (1, 2, 3, 6, 7):
            part = rows[:count]
            self.check(lambda r: lax.associative_scan(st.add, r), part.cumsum(0), part, rtol=1e-14)
            self.check(
                lambda r: lax.associative_scan(st.add, r, reverse=True), part[::-1].cumsum(0)[::-1], part, rtol=1e-14
            )
            self.check(
                lambda r: lax.associative_scan(lambda a, b: (a[0] * b[0], b[1]), (r, r), axis=1),
                (part.cumprod(1), part),
                part,
                rtol=1e-14,
            )

    def test_vmap(self):
        rows, places = self.rng.random((6, 3)), np.array([0, 1, 2, 0, 1, 9])
        mapped = {
            "cond": (
                lambda r, i: lax.cond(r.sum() > 1.5, lambda: r * 2, lambda: -r),
                np.where(rows.sum(1, keepdims=True) > 1.5, rows * 2, -rows),
            ),
            "switch": (
                lambda r, i: lax.switch(i, [lambda: r, lambda: -r, lambda: r * 2]),
                rows * np.array([1.0, -1, 2])[np.clip(places, 0, 2)][:, None],
            ),
            "scan": (lambda r, i: lax.scan(lambda c, v: (c + v, c * v), 0.0, r)[0], rows.sum(1)),
            "add": (lambda r, i: r.at[i].add(1.0), rows + (places[:, None] == np.arange(3))),
            "slice": (
                lambda r, i: lax.dynamic_slice(r, (i,), (2,)),
                np.stack([row[min(i, 1) : min(i, 1) + 2] for row, i in zip(rows, places)]),
            ),
        }
        for name, (function, expected) in mapped.items():
            with self.subTest(name):
                self.check(st.vmap(function), expected, rows, places, rtol=1e-14)


class ProgramTest(LaxCase):
    """Loops become programs of the service."""

    def parts(self, compiled):
        ((template, _),) = compiled.templates._templates.values()
        return template._program

    def outputs(self, compiled):
        ((template, _),) = compiled.templates._templates.values()
        return template.outputs

    def test_a_loop_is_one_program_call(self):
        x = st.asarray(self.rng.random((5, 3)))
        step = st.jit(lambda x: lax.scan(lambda c, v: (st.sort(c * 0.5 + v), c.sum()), st.zeros(3), x))
        first = step(x)
        self.session.synchronize()
        with client_case.Sent(self.session) as sent:
            second = step(x)
            second[0].to_numpy()
        self.assertEqual(sent.kinds, ["program_call"])
        self.leaves_equal(second, tree_util.tree_map(np.asarray, first))

    def test_long_loops_are_several_programs(self):
        x = self.rng.random(5)
        grow = st.asarray(self.rng.random(5))

        def loop(x):
            turned = x[::-1]  # a view that all parts read
            v = x
            for _ in range(150):
                v = st.sort(v)[::-1] * 0.5 + st.roll(v, 1) * 0.1 + grow + turned
            return v, st.cos(x) + 1

        compiled = st.jit(loop)
        expected = tree_util.tree_map(np.asarray, loop(st.asarray(x)))
        for _ in range(3):
            self.leaves_equal(compiled(st.asarray(x)), expected, rtol=1e-12)
        program = self.parts(compiled)
        self.assertGreater(len(program.names), 2)
        for part in program.parts:
            self.assertLessEqual(len(part.program.operations), 500)
        with client_case.Sent(self.session) as sent:
            compiled(st.asarray(x))[0].to_numpy()
        self.assertEqual(set(sent.kinds) - {"copy"}, {"program_call"})
        # Every array between parts is released, before the parts after its last reader.
        released = [one.release.handles for one in sent.commands if one.HasField("release")]
        results = {one.handle for one in self.outputs(compiled)}
        between = {handle for part in program.parts for handle in part.outputs} - results
        self.assertGreater(len(released), 1)
        self.assertGreaterEqual(sum(map(len, released)), len(between))

    def test_write_and_its_array_stay_in_one_program(self):
        def loop(x):
            y = st.zeros(5) + 0
            for i in range(400):  # each writes the one array
                y[i % 5] = st.sort(x)[i % 5] * i
            return y

        x = self.rng.random(5)
        expected = np.sort(x) * np.arange(395, 400)
        for _ in range(2):
            self.same(st.jit(loop)(st.asarray(x)), expected, rtol=1e-14)

    def test_parts(self):
        """A chain with a view and a write, for many lengths of parts: each passes on the arrays that later
        ones read."""

        def operation(output, *inputs, **kind):
            made = pb.Operation(outputs=[pb.Output(handle=output)], **kind)
            if not kind:
                made.ufunc.function = "add"
                made.ufunc.inputs.extend(pb.Operand(handle=one) for one in inputs)
            return made

        operations = [operation(10, 1, 1)]
        operations.append(operation(11, view=pb.View(input=pb.Operand(handle=10))))
        for i in range(12, 30):
            operations.append(operation(i, i - 1, 11))
        written = pb.Operation(copy=pb.Copy(input=pb.Operand(handle=12)), outputs=[pb.Output(handle=29, existing=True)])
        operations += [written, operation(30, 29, 15)]
        for size in range(3, 23):
            parts = _program_parts.parted(operations, [30, 20], size, 8, 8)
            self.assertIsNotNone(parts, size)
            known, own = {1}, []
            for part, inputs, outputs in parts:
                self.assertLessEqual(len(part), size)
                self.assertLessEqual(set(inputs), known)
                inside = set(inputs)
                for one in part:
                    reads = [*one.ufunc.inputs, one.view.input, one.copy.input]
                    self.assertLessEqual({operand.handle for operand in reads if operand.handle}, inside)
                    if one.outputs[0].existing:
                        self.assertNotIn(one.outputs[0].handle, inputs)
                    inside.add(one.outputs[0].handle)
                self.assertLessEqual(set(outputs), inside)
                known |= set(outputs)
                own += [one for one in part if one in operations and not one.HasField("view")]
            self.assertLessEqual({20, 30}, known)
            self.assertEqual(own, [one for one in operations if not one.HasField("view")])
        self.assertIsNone(_program_parts.parted(operations, [30, 11], 5, 8, 8))
        # Equal parts share one program, whatever the template's handles.
        same = [_program._part([operation(i + 1, i, i)], [i], [i + 1]).id for i in (1, 7)]
        self.assertEqual(*same)
        self.assertNotEqual(same[0], _program._part([operation(3, 1, 2)], [1, 2], [3]).id)

    def test_loop_beyond_the_limit(self):
        with mock.patch.object(_control, "MAX_OPERATIONS", 500):
            with self.assertRaisesRegex(
                st.Unimplemented, "fori_loop of 1000 steps with more than 500 operations.*jit its body"
            ):
                # The body needs the number itself.
                st.jit(lambda x: lax.fori_loop(0, 1000, lambda i, v: st.sort(v) + int(i), x))(st.ones(3))
            self.same(lax.fori_loop(0, 1000, lambda i, v: v + 1, st.zeros(1)), [1000.0])


def doubled(v):
    """Until the sum is 1000 or more, by NumPy."""
    while v.sum() < 1000:
        v = v * 2
    return v


def double(v):
    """The same by the service."""
    return lax.while_loop(lambda v: v.sum() < 1000, lambda v: v * 2, v)

    def test_static_data_without_a_hash(self):
        class Scaled:
            def __init__(self, x, settings):
                self.x, self.settings = x, settings

            def sum(self):
                return Scaled(st.sum(self.x) * self.settings["by"], self.settings)

        traced = []
        tree_util.register_pytree_node(
            Scaled, lambda one: ((one.x,), one.settings), lambda settings, parts: Scaled(*parts, settings)
        )

        @st.jit
        def scaled(one, others=()):
            traced.append(one.settings["by"])
            return one.sum()

        x, settings = st.arange(3.0), {"by": 2}
        self.assertEqual(float(scaled(Scaled(x, settings)).x), 6)
        self.assertEqual(float(scaled(Scaled(x, {"by": 2})).x), 6)
        self.assertEqual(float(scaled(Scaled(x, settings), others=[Scaled(x, {1, 2})]).x), 6)
        # The program changes what it gave; the kept result is that of the data as they were.
        settings["by"] = 3
        self.assertEqual(float(scaled(Scaled(x, settings)).x), 9)
        self.assertEqual(float(scaled(Scaled(x, {"by": 2})).x), 6)
        self.assertEqual(traced, [2, 2, 3])
        self.assertEqual(st.vmap(lambda one: one.sum())(Scaled(st.ones((2, 3)), {"by": 2})).x.tolist(), [6, 6])
        first, second = (tree_util.tree_structure(Scaled(x, {"by": i})) for i in (1, 2))
        self.assertNotEqual(first, second)
        self.assertEqual(hash(first), hash(tree_util.tree_structure(Scaled(1, {"by": 1}))))


class LoopTest(LaxCase):
    """Loops and branches as operations of the service."""

    def kinds(self, function, *arguments):
        """The kinds of the operations that a call of the compiled function sends once it is known."""
        compiled = st.jit(function)
        results = [compiled(*arguments)]
        self.session.synchronize()
        with client_case.Sent(self.session) as sent:
            results.append(compiled(*arguments))
            self.session.synchronize()
        del results
        ((template, _),) = compiled.templates._templates.values()
        (part,) = template._program.parts
        return sent.kinds, {one.WhichOneof("kind") for one in part.program.operations}

    def test_while_loop(self):
        for x in (np.array([1.0, 2.0]), np.array([3000.0, 2.0])):  # the second runs no iteration
            self.check(double, doubled(x), x)
        self.assertEqual(
            self.kinds(double, st.asarray(np.array([1.0, 2.0]))),
            (["program_call"], {"reduction", "ufunc", "loop"}),
        )

        def newton(x):
            # A pytree with a number; arrays and constants from outside are inputs of the body.
            scale = st.asarray(np.array([0.5, 0.5]))
            start = {"n": 0, "guess": x, "error": st.ones(2)}

            def step(v):
                new = (v["guess"] + x / v["guess"]) * scale + np.zeros(2)
                return {"n": v["n"] + 1, "guess": new, "error": st.abs(new - v["guess"])}

            return lax.while_loop(lambda v: (v["error"].max() > 1e-12) & (v["n"] < 50), step, start)

        x = np.array([2.0, 9.0])
        result = st.jit(newton)(st.asarray(x))
        self.same(result["guess"], np.sqrt(x), rtol=1e-14)
        self.same(result["n"], np.asarray(newton(st.asarray(x))["n"]))

    def test_while_loop_of_known_condition(self):
        # With Python's numbers alone the iterations are recorded, and many of them become a loop.
        for count in (5, 400):

            def loop(x):
                return lax.while_loop(lambda v: v[0] < count, lambda v: (v[0] + 1, v[1] + 2), (0, x))[1]

            self.check(loop, np.array([1.0, 2.0]) + 2 * count, np.array([1.0, 2.0]))

    def test_numbers_are_weakly_typed_in_loops(self):
        x = np.array([1.0, 2.0], np.float32)
        expected = x + np.float32(sum(range(400))) * x
        self.check(lambda x: lax.fori_loop(0, 400, lambda i, v: v + i * x, x), expected, x)
        bounded = st.jit(lambda n, x: lax.fori_loop(0, n, lambda i, v: v + i * x, x))
        self.same(bounded(st.asarray(400), st.asarray(x)), expected)
        # A number that the body makes an array of another type.
        last, _ = st.jit(lambda x: lax.scan(lambda c, v: (c + v, None), 0, x))(st.ones(500, dtype=np.float32))
        self.same(last, np.float32(500))
        self.same(
            st.jit(lambda x: lax.fori_loop(0, 300, lambda i, c: (c[0] * 1.0, c[1] + c[0]), (2, x)))(st.asarray(x))[1],
            x + np.float32(600),
        )

    def test_fori_loop(self):
        x = self.rng.random(600)
        table = lambda x: lax.fori_loop(0, 600, lambda i, v: v.at[i].set(x[i] * 2 + i), st.zeros(600))  # noqa: E731
        self.check(table, x * 2 + np.arange(600), x, rtol=1e-15)
        for lower, upper in ((0, 5), (-3, 300), (7, 2)):
            total = sum(range(lower, upper))
            self.check(
                lambda a, b: lax.fori_loop(a, b, lambda i, v: v + i, 0.0),
                np.asarray(float(total)),
                np.asarray(lower),
                np.asarray(upper),
            )

        def nested(v):
            return lax.fori_loop(0, 40, lambda i, v: lax.fori_loop(0, 50, lambda j, w: w + i * j, v), v)

        total = sum(i * j for i in range(40) for j in range(50))
        self.check(nested, np.full(2, float(total)), np.zeros(2))

    def test_scan(self):
        xs = {"a": self.rng.random((500, 3)), "b": np.arange(500)}

        def step(carry, x):
            new = carry[0] + x["a"], carry[1] + x["b"]
            return new, {"sum": new[0].sum(), "b": (x["b"], 1.5)}

        for reverse in (False, True):
            order = slice(None, None, -1) if reverse else slice(None)
            sums = (xs["a"].sum(1)[order]).cumsum()[order]
            self.check(
                lambda a, b: lax.scan(step, (st.zeros(3), 0), {"a": a, "b": b}, reverse=reverse),
                ((xs["a"].sum(0), np.asarray(xs["b"].sum())), {"sum": sums, "b": (xs["b"], np.full(500, 1.5))}),
                xs["a"],
                xs["b"],
                rtol=1e-12,
            )
        x = np.array([1.0, 2.0])

        def means(x):
            return lax.scan(lambda c, _: ((c[1], (c[0] + c[1]) * 0.5), c[0]), (x, x + 1), length=300)

        self.leaves_equal(st.jit(means)(st.asarray(x)), means(st.asarray(x)), rtol=1e-13)
        self.check(lambda x: lax.map(lambda row: st.sort(row), x), np.sort(xs["a"], axis=1), xs["a"])
        for length in (0, 1):
            self.check(lambda x: lax.scan(lambda c, _: (c + 1, c), x, length=length)[0], x + length, x)

    def test_carries_that_change_are_refused_with_the_leaf(self):
        x = st.ones(3)
        for pattern, loop in (
            (r"while_loop: the body's carry\[1\].*float64\[3\] and float32\[3\]",
             lambda x: lax.while_loop(lambda v: v[0].sum() < 9, lambda v: (v[0] + 1, v[1].astype(np.float32)), (x, x))),
            (r"while_loop: the body's carry\['k'\]",
             lambda x: lax.while_loop(lambda v: v["k"].sum() < 9, lambda v: {"k": v["k"][:1]}, {"k": x})),
            (r"scan: the body's carry,", lambda x: lax.scan(lambda c, _: (c[:1], None), x, length=1000)),
            (r"fori_loop: the body's carry\[0\]",
             lambda x: lax.fori_loop(0, 1000, lambda i, v: (v[0] > 1, v[1]), (x, x))),
            ("structure", lambda x: lax.fori_loop(0, 1000, lambda i, v: (v,), x)),
            ("cond_fun returns a bool", lambda x: lax.while_loop(lambda v: v, lambda v: v, x)),
            ("pair", lambda x: lax.scan(lambda c, _: c, x, length=1000)),
        ):
            with self.subTest(pattern), self.assertRaisesRegex(TypeError, pattern):
                st.jit(loop)(x)

    def test_one_branch_runs(self):
        # The other one never ends.
        endless = lambda v: lax.while_loop(lambda v: v.sum() > 0, lambda v: v + 1, v)  # noqa: E731
        x = np.array([3.0, 1.0])
        choose = st.jit(lambda p, x: lax.cond(p, endless, lambda v: {"k": st.sort(v)}["k"] * 2, x))
        self.same(choose(st.asarray(False), st.asarray(x)), np.array([2.0, 6.0]))
        switched = lambda i, x: lax.switch(i, [st.sort, double, lambda v: (st.sort(-v), 1)[0]], x)  # noqa: E731
        for index in (-1, 0, 1, 2, 7):
            expected = [np.sort, doubled, lambda v: np.sort(-v)][min(max(index, 0), 2)](x)
            self.check(switched, expected, np.asarray(index), x)
        # Results of several kinds: numbers take an array's type, and what is no array stays.
        pair = st.jit(lambda p, x: lax.cond(p, lambda: (st.sort(x), 1, None), lambda: (x, st.sum(x), None)))
        self.refuses(TypeError, "true_fun", lambda p, x: pair(p, x), st.asarray(True), st.asarray(x))
        pair = st.jit(lambda p, x: lax.cond(p, lambda: (st.sort(x), 1.0, None), lambda: (x, st.sum(x), None)))
        for p, expected in ((True, (np.sort(x), np.asarray(1.0), None)), (False, (x, x.sum(), None))):
            self.leaves_equal(pair(st.asarray(p), st.asarray(x)), expected)

    def test_failing_iteration_fails_the_loop(self):
        def loop(x):
            step = lambda c: (c[0] + 1, c[1] + st.take(x, c[0]))  # noqa: E731
            return lax.while_loop(lambda c: c[0] < 100, step, (st.asarray(0), 0.0))

        with self.assertRaises(st.StrideError):
            st.jit(loop)(st.ones(5))[1].to_numpy()

    def test_invalid_bodies_raise_tracing_error(self):
        outside = st.zeros(3)

        def write(v):
            outside[0] = 1.0
            return v + 1

        with self.assertRaisesRegex(st.TracingError, "cannot write"):
            st.jit(lambda x: lax.while_loop(lambda v: v.sum() < 9, write, x))(st.ones(3))
        with self.assertRaisesRegex(st.TracingError, "elements"):
            st.jit(lambda x: lax.while_loop(lambda v: v.sum() < 9, lambda v: v + 1 if v[0] > 1 else v, x))(st.ones(3))

    def test_vmap(self):
        rows = np.array([[1.0, 2.0], [300.0, 2.0], [2000.0, 3.0]])
        each = np.stack([doubled(one) for one in rows])
        xs, start = self.rng.random((3, 400)), np.array(1.0)
        before = 1 + np.concatenate([np.zeros((3, 1)), xs.cumsum(1)[:, :-1]], 1)
        count = np.array([0, 3, 5])
        chosen = lambda p, v: lax.cond(p, double, lambda v: st.sort(-v), v)  # noqa: E731

        def counted(v):
            return lax.while_loop(lambda t: t[0] < 300, lambda t: (t[0] + 1, t[1] + 1), (st.asarray(0), v))[1]

        cases = {
            "a condition that differs": (st.vmap(double), each, [rows]),
            "along another axis": (st.vmap(double, in_axes=1, out_axes=1), each.T, [rows.T]),
            "twice": (st.vmap(st.vmap(double)), np.stack([each, each]), [np.stack([rows, rows])]),
            "a condition that all share": (
                st.vmap(counted),
                rows + 300,
                [rows],
            ),
            "scan": (
                st.vmap(lambda c, x: lax.scan(lambda c, r: (c + r, c * r), c, x), in_axes=(None, 0)),
                (1 + xs.sum(1), before * xs),
                [start, xs],
            ),
            "bounds that differ": (
                st.vmap(lambda n, v: lax.fori_loop(0, n, lambda i, u: u + i * v, v)),
                np.array([1.0, 2 + 3 * 2.0, 3 + 10 * 3.0]),
                [count, np.array([1.0, 2.0, 3.0])],
            ),
            "a branch that differs": (
                st.vmap(chosen),
                np.stack([each[0], np.sort(-rows[1]), each[2]]),
                [np.array([True, False, True]), rows],
            ),
            "a branch that all share": (
                st.vmap(chosen, in_axes=(None, 0)),
                np.sort(-rows, axis=1),
                [np.asarray(False), rows],
            ),
            "switch": (
                st.vmap(lambda i, v: lax.switch(i, [st.sort, double, lambda v: st.sort(v * 2)], v)),
                np.stack([np.sort(rows[0]), each[1], np.sort(rows[2] * 2)]),
                [np.array([0, 1, 5]), rows],
            ),
            "within a body": (
                lambda m: lax.fori_loop(0, 300, lambda i, m: st.vmap(lambda r: r + i)(m), m),
                rows + sum(range(300)),
                [rows],
            ),
        }
        for name, (function, expected, arguments) in cases.items():
            with self.subTest(name):
                self.check(function, expected, *arguments, rtol=1e-12)


class OperatorTest(LaxCase):
    def test_names(self):
        for name in lax.__all__:
            self.assertTrue(callable(getattr(lax, name)), name)
            self.assertTrue(getattr(lax, name).__doc__, name)
        with self.assertRaisesRegex(AttributeError, "psum.*named axes"):
            lax.psum
        with self.assertRaisesRegex(AttributeError, "conv"):
            lax.conv

    def test_nothing_is_promoted(self):
        f, i = st.ones((2, 3), dtype=np.float32), st.ones((2, 3), dtype=np.int32)
        for wrong in ((f, i), (f, f.astype(np.float64)), (f, 1), (i, 1.5), (f, f[0]), (f, [1])):
            with self.assertRaisesRegex(TypeError, "lax.add"):
                lax.add(*wrong)
        self.same(lax.add(f, 1.5), np.full((2, 3), 2.5, np.float32))
        self.same(lax.add(i, 2), np.full((2, 3), 3, np.int32))
        self.same(lax.mul(f, f[:1]), np.ones((2, 3), np.float32))
        for name in ("sqrt", "exp", "sin", "floor", "logistic", "rsqrt", "round"):
            with self.assertRaisesRegex(TypeError, f"lax.{name} takes arrays of"):
                getattr(lax, name)(i)

    def test_integer_division(self):
        for dtype in (np.int8, np.int32, np.int64, np.uint8, np.uint32):
            least = np.iinfo(dtype).min
            x = np.array([-7, 7, -7, 7, 0, 5, least], np.int64).astype(dtype)
            y = np.array([2, -2, -2, 2, 0, 0, 3], np.int64).astype(dtype)
            quotients = [
                math.trunc(int(a) / int(b)) if b else (np.iinfo(dtype).max if dtype().dtype.kind == "u" else -1)
                for a, b in zip(x, y)
            ]
            remainders = [int(math.fmod(int(a), int(b))) if b else int(a) for a, b in zip(x, y)]
            if dtype is np.int64:
                quotients[-1], remainders[-1] = -(2**63 // 3), -(2**63 % 3)
            self.check(lax.div, np.array(quotients, dtype), x, y)
            self.check(lax.rem, np.array(remainders, dtype), x, y)

    def test_rounding_and_signs(self):
        x = np.array([-2.5, -0.5, -0.4, -0.0, 0.0, 0.49999999999999994, 0.5, 2.5, 4503599627370497.0, np.inf, np.nan])
        away = np.array([-3, -1, -0.0, -0.0, 0, 0, 1, 3, 4503599627370497.0, np.inf, np.nan])
        for function, expected in (
            (lax.round, away),
            (lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), np.rint(x)),
            (lax.sign, np.array([-1, -1, -1, -0.0, 0, 1, 1, 1, 1, 1, np.nan])),
        ):
            self.check(function, expected, x)
            np.testing.assert_array_equal(np.signbit(function(st.asarray(x)))[:-1], np.signbit(expected)[:-1])

    def test_bits(self):
        x = np.array([-8, 7, 0, -128], np.int8)
        self.check(lambda x: lax.shift_right_logical(x, st.int8(1)), (x.view(np.uint8) >> 1).view(np.int8), x)
        self.check(lax.population_count, np.array([5, 3, 0, 1], np.int8), x)
        self.check(lax.bitwise_not, ~x, x)

    def test_clamp_and_select(self):
        x = self.rng.normal(size=6)
        self.check(lambda x: lax.clamp(-0.5, x, 0.5), x.clip(-0.5, 0.5), x)
        self.check(lambda x: lax.clamp(x - 1, x, x - 0.5), x - 0.5, x)
        self.refuses(TypeError, "min", lambda x: lax.clamp(x[:2], x, 1.0), st.asarray(x))
        which = np.array([0, 1, 2, 1, 0, 7])
        self.check(lambda w, x: lax.select_n(w, x, x * 2, x * 3), x * np.array([1, 2, 3, 2, 1, 3]), which, x)
        self.check(lambda x: lax.select(x > 0, x, -x), abs(x), x)
        self.check(lambda x: lax.select(x[0] > 9, x, -x), -x, x)
        for wrong in (
            lambda x: lax.select(x > 0, x, 0.0),
            lambda x: lax.select(x[:2] > 0, x, x),
            lambda x: lax.select_n(x > 0, x, x, x),
        ):
            self.refuses(TypeError, "lax.select", wrong, st.asarray(x))

    def test_reductions_and_scans(self):
        x = self.rng.integers(-9, 9, (3, 4)).astype(np.int8)
        f = self.rng.random((3, 4)).astype(np.float32)
        for axes in ((0,), (1,), (0, 1), ()):
            for name, numpys in (
                ("reduce_sum", np.sum),
                ("reduce_prod", np.prod),
                ("reduce_max", np.max),
                ("reduce_min", np.min),
            ):
                self.check(
                    lambda x: getattr(lax, name)(x, axes),
                    numpys(x, axis=axes, **({"dtype": np.int8} if numpys in (np.sum, np.prod) else {})),
                    x,
                )
            self.check(lambda x: lax.reduce_xor(x, axes), np.bitwise_xor.reduce(x, axis=axes), x)
            self.check(lambda x: lax.reduce_or(x > 0, axes), np.any(x > 0, axis=axes), x)
        for axis in (0, 1):
            for name, ufunc in (
                ("cumsum", np.add),
                ("cumprod", np.multiply),
                ("cummax", np.maximum),
                ("cummin", np.minimum),
            ):
                self.check(lambda x: getattr(lax, name)(x, axis), ufunc.accumulate(x, axis, dtype=np.int8), x)
                self.check(
                    lambda x: getattr(lax, name)(x, axis, reverse=True),
                    np.flip(ufunc.accumulate(np.flip(x, axis), axis, dtype=np.int8), axis),
                    x,
                )
            self.check(lambda f: lax.cumlogsumexp(f, axis), np.logaddexp.accumulate(f, axis), f, rtol=1e-5)
            self.check(lambda f: lax.argmax(f, axis, np.int32), np.argmax(f, axis).astype(np.int32), f)
        self.refuses(ValueError, "axes", lambda x: lax.reduce_sum(x, (-1,)), st.asarray(x))
        self.refuses(ValueError, "axis", lambda x: lax.cumsum(x, -1), st.asarray(x))

    def test_order(self):
        x = np.array([1.0, np.nan, 3.0, np.inf, 3.0, -np.inf, -0.0])
        values, places = lax.top_k(st.asarray(x), 4)
        self.same(values, [np.nan, np.inf, 3.0, 3.0])
        self.same(places, np.array([1, 3, 2, 4], np.int32))
        matrix = self.rng.integers(0, 4, (5, 6))
        order = np.argsort(-matrix, axis=0, kind="stable")[:2]
        self.check(
            lambda m: tuple(lax.top_k(m, 2, axis=0)),
            (np.take_along_axis(matrix, order, 0), order.astype(np.int32)),
            matrix,
        )
        self.check(
            lambda m: tuple(lax.top_k(m.astype(float), 2, axis=0)),
            (np.take_along_axis(matrix, order, 0).astype(float), order.astype(np.int32)),
            matrix,
        )
        self.refuses(ValueError, "k is from 0 to", lambda m: lax.top_k(m, 7), st.asarray(matrix))
        a, b = self.rng.integers(0, 3, 20), self.rng.integers(0, 3, 20)
        order = np.lexsort((b, a))
        self.check(
            lambda a, b, c: lax.sort((a, b, c), num_keys=2),
            tuple(one[order] for one in (a, b, np.arange(20))),
            a,
            b,
            np.arange(20),
        )
        self.check(lambda a, b: lax.sort_key_val(a, b), (np.sort(a), b[np.argsort(a, kind="stable")]), a, b)

    def test_products(self):
        a, b = self.rng.random((2, 3, 4)), self.rng.random((2, 4, 5))
        for numbers, subscripts in (
            ((((2,), (1,)), ((0,), (0,))), "bij,bjk->bik"),
            ((((2,), (1,)), ((), ())), "aij,bjk->aibk"),
            ((((), ()), ((0,), (0,))), "aij,akl->aijkl"),
        ):
            self.check(lambda a, b: lax.dot_general(a, b, numbers), np.einsum(subscripts, a, b), a, b, rtol=1e-13)
        self.check(
            lambda a: lax.dot_general(a, a, (((0, 2), (0, 2)), ((), ()))), np.einsum("aij,akj->ik", a, a), a, rtol=1e-13
        )
        self.check(lambda a: lax.dot(a[0], a[0][0]), a[0] @ a[0][0], a, rtol=1e-13)
        bytes_ = self.rng.integers(-128, 128, (3, 40, 40)).astype(np.int8)
        products = np.matmul(bytes_.astype(np.int32), bytes_.astype(np.int32))
        numbers = (((2,), (1,)), ((0,), (0,)))
        self.check(lambda a: lax.dot_general(a, a, numbers, preferred_element_type=np.int32), products, bytes_)
        self.check(lambda a: lax.dot(a[0], a[0], preferred_element_type=np.int32), products[0], bytes_)
        self.refuses(TypeError, "do not fit", lambda a: lax.dot_general(a, a, (((0,), (1,)), ((), ()))), st.asarray(a))
        self.refuses(ValueError, "lax.dot", lambda a: lax.dot(a, a), st.asarray(a))


class ShapeTest(LaxCase):
    def test_dynamic_slices(self):
        x = self.rng.random((4, 5))
        for start in (-9, -2, 0, 2, 9):
            for size in (0, 1, 3, 5):
                for axis in (0, 1):
                    extent = x.shape[axis]
                    if size > extent:
                        continue
                    first = min(max(start + extent if start < 0 else start, 0), extent - size)
                    part = (slice(None),) * axis + (slice(first, first + size),)
                    for dtype in (np.int8, np.int64, np.uint64):
                        if start < 0 and dtype is np.uint64:
                            continue
                        self.check(
                            lambda x, i: lax.dynamic_slice_in_dim(x, i, size, axis),
                            x[part],
                            x,
                            np.asarray(start, dtype),
                        )
                    expected = x.copy()
                    expected[part] = -1
                    shape = tuple(size if i == axis else n for i, n in enumerate(x.shape))
                    self.check(
                        lambda x, i: lax.dynamic_update_slice_in_dim(x, -st.ones(shape), i, axis),
                        expected,
                        x,
                        np.asarray(start),
                    )
                    self.check(lambda x: lax.dynamic_update_slice_in_dim(x, -st.ones(shape), start, axis), expected, x)
        self.check(lambda x, i: lax.dynamic_slice(x, (1, i), (2, 2)), x[1:3, 2:4], x, np.asarray(2))
        self.check(lambda x, i: lax.dynamic_slice(x, i, (2, 2)), x[1:3, 2:4], x, np.asarray([1, 2]))
        self.check(lambda x, i: lax.dynamic_index_in_dim(x, i, 1, keepdims=False), x[:, 4], x, np.asarray(8))
        self.check(
            lambda x, i: lax.dynamic_update_index_in_dim(x, st.zeros(4), i, 1),
            np.where(np.arange(5) == 3, 0, x),
            x,
            np.asarray(3),
        )
        array = st.asarray(x)
        self.refuses(TypeError, "within", lambda x: lax.dynamic_slice(x, (0, 0), (5, 5)), array)
        self.refuses(ValueError, "start for each axis", lambda x: lax.dynamic_slice(x, (0,), (1, 1)), array)
        self.refuses(TypeError, "start of axis 1", lambda x: lax.dynamic_slice(x, (0, 1.5), (1, 1)), array)
        self.refuses(
            TypeError, "one type", lambda x: lax.dynamic_update_slice(x, st.ones((1, 1), np.float32), (0, 0)), array
        )

    def test_pad(self):
        x = self.rng.random((3, 4))
        for config in (
            [(1, 2, 1), (0, 0, 0)],
            [(-1, 1, 0), (0, -1, 2)],
            [(0, 0, 3), (-2, -1, 1)],
            [(0, 0, 0), (0, 0, 0)],
        ):
            expected = x
            for axis, (low, high, between) in enumerate(config):
                n = expected.shape[axis]
                moved = np.moveaxis(expected, axis, 0)
                wide = np.full((max(0, low) + n + (n - 1) * between + max(0, high), *moved.shape[1:]), 7.0)
                wide[max(0, low) : max(0, low) + n + (n - 1) * between : between + 1] = moved
                wide = wide[max(0, -low) : len(wide) - max(0, -high)]
                expected = np.moveaxis(wide, 0, axis)
            self.check(lambda x: lax.pad(x, 7.0, config), expected, x)
        self.refuses(ValueError, "before, after, between", lambda x: lax.pad(x, 7.0, [(1, 1, 0)]), st.asarray(x))

    def test_shapes(self):
        x = self.rng.random((3, 4))
        for function, expected in (
            (lambda x: lax.broadcast_in_dim(x, (2, 3, 4), (1, 2)), np.broadcast_to(x, (2, 3, 4))),
            (lambda x: lax.broadcast(x, (2,)), np.broadcast_to(x, (2, 3, 4))),
            (lambda x: lax.rev(x, (0, 1)), x[::-1, ::-1]),
            (lambda x: lax.slice(x, (0, 1), (3, 4), (2, 2)), x[0:3:2, 1:4:2]),
            (lambda x: lax.slice_in_dim(x, -3, -1, axis=1), x[:, -3:-1]),
            (lambda x: lax.index_in_dim(x, -1, axis=1), x[:, 3:]),
            (lambda x: lax.concatenate([x, x], 1), np.concatenate([x, x], 1)),
            (lambda x: lax.transpose(x, (1, 0)), x.T),
            (lambda x: lax.expand_dims(x, (0, -1)), x[None, :, :, None]),
            (lambda x: lax.squeeze(x[:1], (0,)), x[0]),
            (lambda x: lax.collapse(x, 0), x.reshape(12)),
            (lambda x: lax.reshape(x, (12,), (1, 0)), x.T.reshape(12)),
            (lambda x: lax.split(x, (1, 3), 1), [x[:, :1], x[:, 1:]]),
            (lambda x: lax.broadcasted_iota(np.int32, (2, 3), 1), np.array([[0, 1, 2]] * 2, np.int32)),
            (lambda x: lax.full_like(x, 2), np.full_like(x, 2)),
            (lambda x: lax.tile(x, (2, 1)), np.tile(x, (2, 1))),
        ):
            self.check(function, expected, x)


class AtTest(LaxCase):
    def test_updates(self):
        x = self.rng.random((4, 5))
        before = x.copy()
        array = st.asarray(x)
        keys = [
            1,
            -1,
            (2, 3),
            slice(1, 3),
            (slice(None), 2),
            (Ellipsis, slice(None, None, 2)),
            None,
            (None, 1),
            np.array([2, 0]),
            (slice(None), np.array([1, 1, 3])),
            (np.array([0, 0]), np.array([1, 1])),
            x > 0.5,
            (np.array([True, False, True, False]),),
        ]
        for key in keys:
            ours = tree_util.tree_map(lambda one: st.asarray(one) if isinstance(one, np.ndarray) else one, key)
            has_mask = any(isinstance(one, np.ndarray) and one.dtype == bool for one in tree_util.tree_leaves(key))
            for name, ufunc in (
                ("add", np.add),
                ("subtract", np.subtract),
                ("multiply", np.multiply),
                ("mul", np.multiply),
                ("min", np.minimum),
                ("max", np.maximum),
                ("set", None),
            ):
                expected = x.copy()
                if ufunc is None:
                    expected[key] = 0.25
                else:
                    ufunc.at(expected, key, 0.25)
                with self.subTest(key=str(key), name=name):
                    update = lambda x: getattr(x.at[ours], name)(0.25)  # noqa: E731
                    self.same(update(array), expected, rtol=1e-14)
                    if not has_mask:
                        self.same(st.jit(update)(array), expected, rtol=1e-14)
            factor = x.copy() * 0 + 1
            np.multiply.at(factor, key, 2.0)
            self.same(array.at[ours].divide(2.0), x / factor, rtol=1e-14)
            self.same(array.at[ours].power(2.0), x**factor, rtol=1e-14)
            self.same(array.at[ours].get(), x[key])
        self.same(array, before)
        self.same(st.jit(lambda x: x.at[x > 0.5].add(1))(array), np.where(x > 0.5, x + 1, x))

    def test_out_of_range(self):
        """As JAX: updates are dropped and reads clipped, or as `mode` says; whether or not the host knows the index."""
        x = np.arange(5.0)
        for dtype in (np.int64, np.int8):
            for places in ([1, 1, 10], [-1, -9, 0], [7], [-6], [4, 5]):
                places = np.array(places, dtype)
                wrapped = np.where(places < 0, places.astype(int) + 5, places)
                kept = wrapped[(wrapped >= 0) & (wrapped < 5)]
                clipped = wrapped.clip(0, 4)
                for mode, inside in ((None, kept), ("drop", kept), ("fill", kept), ("clip", clipped)):
                    expected = x.copy()
                    np.add.at(expected, inside, 2.5)
                    self.check(lambda x, i: x.at[i].add(2.5, mode=mode), expected, x, places)
                    expected = x.copy()
                    expected[inside] = -1
                    self.check(lambda x, i: x.at[i].set(-1, mode=mode), expected, x, places)
                    if places.size == 1:
                        self.check(lambda x, i: x.at[i[0]].set(-1, mode=mode), expected, x, places)
                        self.same(st.asarray(x).at[int(places[0])].set(-1, mode=mode), expected)
                for mode in (None, "clip"):
                    self.check(lambda x, i: x.at[i].get(mode=mode), x[clipped], x, places)
                filled = np.where((wrapped >= 0) & (wrapped < 5), x[clipped], -7.0)
                self.check(lambda x, i: x.at[i].get(mode="fill", fill_value=-7), filled, x, places)
        matrix = self.rng.random((3, 4))
        rows, columns = np.array([0, 2, 3, 1]), np.array([1, 9, 0, -1])
        expected = matrix.copy()
        expected[[0, 1], [1, 3]] += 1
        self.check(lambda m, i, j: m.at[i, j].add(1), expected, matrix, rows, columns)
        expected = matrix.copy()
        expected[:, 1] = 0
        self.check(lambda m, j: m.at[:, j[:2]].set(0), expected, matrix, columns)
        self.check(lambda m: m.at[5].get(mode="fill"), np.full(4, np.nan), matrix)
        self.same(st.arange(3).at[5].get(mode="fill"), np.asarray(np.iinfo(np.int64).min))
        self.refuses(ValueError, "mode is one of", lambda m: m.at[0].set(1, mode="wrap"), st.asarray(matrix))

    def test_types_and_shapes(self):
        ints = st.arange(4)
        self.same(ints.at[1].add(1.7), [0, 2, 2, 3])
        self.same(ints.at[st.asarray([1, 1])].set(st.asarray([9.5, 9.5])), [0, 9, 2, 3])
        self.same(ints.at[1].divide(2), [0, 0.5, 2, 3])
        self.same(st.ones(3, dtype=np.float32).at[0].set(2), np.array([2, 1, 1], np.float32))
        self.refuses(ValueError, "shape", lambda x: x.at[1:3].set(st.ones(5)), st.ones(4))
        self.refuses(IndexError, "too many indices", lambda x: x.at[1, 2].set(1), st.ones(4))
        negative = st.asarray([-0.0, 1.0])
        np.testing.assert_array_equal(np.signbit(negative.at[:].get()), [True, False])
        self.same(st.ones(4).at[1:3].apply(lambda v: v * 3), [1.0, 3, 3, 1])
        with self.assertRaisesRegex(st.Unimplemented, "unique_indices"):
            st.ones(4).at[st.asarray([1, 1])].apply(st.sqrt)
        self.same((st.ones(4) * 4).at[st.asarray([1, 2])].apply(st.sqrt, unique_indices=True), [4.0, 2, 2, 4])

    def test_indices_that_are_computed(self):
        x, i = self.rng.random((4, 5)), np.asarray(2)
        self.check(lambda x, i: x[i], x[2], x, i)
        self.check(lambda x, i: x[:, i] + x[i, 0], x[:, 2] + x[2, 0], x, i)
        self.check(lambda x, i: x[i, 1:], x[2, 1:], x, i)
        self.check(lambda x, i: x[i, i], x[2, 2], x, i)

        def assigned(x, i):
            y = x * 1
            y[i, 1:] = 0
            return y

        expected = x.copy()
        expected[2, 1:] = 0
        self.check(assigned, expected, x, i)
        with self.assertRaises(IndexError):
            st.jit(lambda x, i: x[i])(st.asarray(x), st.asarray(9)).to_numpy()


class TreeTest(unittest.TestCase):
    def test_flatten(self):
        tree = {"b": 1, "a": (2, None, [3, Pair(4, {})])}
        leaves, structure = tree_util.tree_flatten(tree)
        self.assertEqual(leaves, [2, 3, 4, 1])
        self.assertEqual(
            repr(structure), "PyTreeDef({'a': (*, None, [*, CustomNode(Pair[" + repr(Pair) + "], [*, {}])]), 'b': *})"
        )
        self.assertEqual(tree_util.tree_unflatten(structure, leaves), tree)
        self.assertEqual((structure.num_leaves, structure.num_nodes), (4, 10))
        self.assertEqual(structure, tree_util.tree_structure({"a": (0, None, [0, Pair(0, {})]), "b": 0}))
        self.assertEqual(hash(structure), hash(tree_util.tree_structure({"a": (0, None, [0, Pair(0, {})]), "b": 0})))
        for other in ([1, 2], (1,), (1, 2, 3), (1, (2,)), (1, None), {"a": 1, "b": 2}):
            self.assertNotEqual(tree_util.tree_structure((1, 2)), tree_util.tree_structure(other))
        for count in (1, 3):
            with self.assertRaisesRegex(ValueError, f"2 leaves; {count} were given"):
                tree_util.tree_unflatten(tree_util.tree_structure([1, 2]), range(count))
        with self.assertRaisesRegex(ValueError, "cannot be sorted"):
            tree_util.tree_leaves({1: 1, "a": 2})
        self.assertEqual(tree_util.tree_leaves([None, 1], is_leaf=lambda one: one is None), [None, 1])

    def test_containers(self):
        ordered = collections.OrderedDict(b=1, a=2)
        self.assertEqual(tree_util.tree_leaves(ordered), [1, 2])
        self.assertEqual(list(tree_util.tree_map(operator.neg, ordered).items()), [("b", -1), ("a", -2)])
        default = collections.defaultdict(int, b=1, a=2)
        self.assertEqual(tree_util.tree_map(operator.neg, default), {"a": -2, "b": -1})
        self.assertEqual(tree_util.tree_map(operator.neg, default)["c"], 0)
        self.assertEqual(tree_util.tree_map(operator.neg, Pair(1, [2])), Pair(-1, [-2]))
        partial = tree_util.Partial(operator.add, 1)
        self.assertEqual(tree_util.tree_map(lambda one: one * 10, partial)(2), 12)

    def test_map(self):
        self.assertEqual(
            tree_util.tree_map(operator.add, {"a": 1, "b": [2]}, {"a": 10, "b": [20]}), {"a": 11, "b": [22]}
        )
        self.assertEqual(tree_util.tree_map(lambda a, b: b, [1, 2], [[3, 4], 5]), [[3, 4], 5])
        for other, pattern in (
            ({"c": 1}, "'a'.*'c'"),
            ([1], "list"),
            ({"a": [1], "b": 2}, "\\['a'\\].*of 2 in one and of 1"),
            ({"a": (1, 2), "b": 2}, "\\['a'\\].*list.*tuple"),
        ):
            with self.assertRaisesRegex(ValueError, pattern):
                tree_util.tree_map(operator.add, {"a": [1, 2], "b": 2}, other)
        self.assertEqual(tree_util.tree_reduce(operator.add, [1, (2, {"k": 3})]), 6)
        self.assertEqual(tree_util.tree_reduce(operator.add, [], 7), 7)
        self.assertFalse(tree_util.tree_all([True, 0]))
        self.assertEqual(tree_util.tree_broadcast([1, 2], [[0, 0], 0]), [[1, 1], 2])
        outer, inner = tree_util.tree_structure([0, 0]), tree_util.tree_structure({"a": 0, "b": 0})
        self.assertEqual(
            tree_util.tree_transpose(outer, inner, [{"a": 1, "b": 2}, {"a": 3, "b": 4}]), {"a": [1, 3], "b": [2, 4]}
        )
        self.assertEqual(outer.compose(tree_util.tree_structure((0,))), tree_util.tree_structure([(0,), (0,)]))

    def test_paths(self):
        found = tree_util.tree_leaves_with_path({"b": 1, "a": (2, [Pair(3, 4)])})
        self.assertEqual(
            [tree_util.keystr(path) for path, _ in found],
            ["['a'][0]", "['a'][1][0].first", "['a'][1][0].second", "['b']"],
        )
        self.assertEqual(tree_util.keystr(found[1][0], simple=True, separator="/"), "a/1/0/first")
        self.assertEqual(
            tree_util.tree_map_with_path(lambda path, one: (len(path), one), [1, (2,)]), [(1, 1), ((2, 2),)]
        )

    def test_registered_classes(self):
        class Point:
            def __init__(self, x, y, name):
                self.x, self.y, self.name = x, y, name

        tree_util.register_pytree_node(Point, lambda p: ((p.x, p.y), p.name), lambda name, parts: Point(*parts, name))
        moved = tree_util.tree_map(operator.neg, [Point(1, 2, "n")])[0]
        self.assertEqual((moved.x, moved.y, moved.name), (-1, -2, "n"))
        self.assertNotEqual(tree_util.tree_structure(Point(1, 2, "n")), tree_util.tree_structure(Point(1, 2, "m")))
        with self.assertRaisesRegex(ValueError, "registered"):
            tree_util.register_pytree_node(Point, lambda p: ((), None), lambda _, parts: None)

        @tree_util.register_pytree_node_class
        class Box:
            def __init__(self, content):
                self.content = content

            def tree_flatten(self):
                return (self.content,), None

            @classmethod
            def tree_unflatten(cls, _, children):
                return cls(*children)

        self.assertEqual(tree_util.tree_leaves({"k": Box([1, 2])}), [1, 2])

        @tree_util.register_dataclass
        @dataclasses.dataclass
        class State:
            weights: object
            name: str = dataclasses.field(metadata={"static": True}, default="s")

        leaves, structure = tree_util.tree_flatten(State((1, 2), "t"))
        self.assertEqual(leaves, [1, 2])
        self.assertEqual(tree_util.tree_unflatten(structure, [3, 4]), State((3, 4), "t"))
        self.assertEqual(tree_util.keystr(tree_util.tree_leaves_with_path(State((1,)))[0][0]), ".weights[0]")

    def test_short_names(self):
        for name in st.tree.__all__:
            self.assertIs(getattr(st.tree, name), getattr(tree_util, f"tree_{name}"))


class ExamplesTest(client_case.ClientCase):
    def test_examples(self):
        self.run_examples(tree_util, _branches, _control, _scans, _shapes, _slices)
        self.run_examples(_at, _transfers, _jit, _vmap)
        self.assertGreater(len(_operators.__all__), 50)


if __name__ == "__main__":
    client_case.main()
