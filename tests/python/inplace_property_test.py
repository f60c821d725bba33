"""Compares random writes in place with NumPy: an accepted write gives the same elements, and a refused write fails with
the same kind of error, at the line or at the next read of the array. No write is lost without an error. Seeds are
fixed.
"""

import copy
import operator
import pickle
import random
import threading
import unittest.mock
import warnings

import numpy as np

import client_case
import stride as st
from stride import _copies, _elements

SHAPES = ((5,), (4, 6), (2, 3, 4), ())
DTYPES = (np.float64, np.int8)
KINDS = (OverflowError, IndexError, TypeError, ValueError)  # the first class of an error of NumPy's


def kind_of(error):
    return next(kind for kind in KINDS if isinstance(error, kind))


class Case:
    """One write, drawn by `rng`: `run(module, array, give)` executes it with arrays that `give` makes of NumPy's."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.dtype = rng.choice(DTYPES)
        self.shape = rng.choice(SHAPES)
        self.view = rng.choice(("whole", "whole", "reversed", "stepped", "transposed", "wide", "part"))
        self.start = np.arange(int(np.prod(self.shape))).reshape(self.shape).astype(self.dtype)
        self.target = self.viewed(self.start)
        # Origins of each part: list, host array, known to the client, on the device.
        self.places = [rng.choice(("list", "host", "known", "device")) for _ in range(6)]
        # At most one error: the order of checks is not tested.
        self.fault = rng.choice((None, None, None, "bounds", "shape", "type", "key"))
        kinds = ["set"] * 6 + ["at", "put", "put_along_axis", "fill", "operator", "out", "where"]
        self.kind = rng.choice(kinds)
        self.text, self.run = getattr(self, self.kind)()

    def __str__(self):
        return f"{self.dtype.__name__}{list(self.shape)} {self.view}: {self.text} ({', '.join(self.places)})"

    def viewed(self, x):
        if self.view == "reversed" and x.ndim:
            return x[::-1]
        if self.view == "stepped" and x.ndim:
            return x[..., ::2]
        if self.view == "transposed" and x.ndim > 1:
            return x.T if x.ndim == 2 else x.transpose(2, 0, 1)
        if self.view == "wide":
            return x[None]
        if self.view == "part" and x.ndim:
            return x[1:]
        return x

    # --- random choices ---

    def index_array(self, extent, shape=None):
        """An array of integers; sometimes one is out of range."""
        rng = self.rng
        shape = shape if shape is not None else rng.choice(((0,), (1,), (2,), (3,), (3,), (2, 2)))
        values = np.array(
            [rng.randrange(-extent, extent) if extent else 0 for _ in range(int(np.prod(shape)))], np.int64
        ).reshape(shape)
        if values.size and self.fault == "bounds" and rng.random() < 0.7:
            values.flat[rng.randrange(values.size)] = extent + rng.randrange(2)
        return values

    def mask(self, shape):
        return np.array([self.rng.random() < 0.5 for _ in range(int(np.prod(shape)))], bool).reshape(shape)

    def slice(self):
        rng = self.rng
        return slice(
            *(rng.choice((None, None, -3, -1, 0, 1, 2, 5)) for _ in range(2)), rng.choice((None, 1, 2, -1, -2))
        )

    def key(self):
        """An index of the target, valid except for bounds and, sometimes, the number of its parts."""
        rng, shape = self.rng, self.target.shape
        wrong = self.fault == "key"
        if rng.random() < 0.15:
            return (self.mask(shape[:-1] + (shape[-1] + 1,) if wrong and shape else shape),)
        parts, axis, arrays = [], 0, rng.random() < 0.6
        common = rng.choice(((3,), (2,), (2, 2), (1,), (0,)))
        while axis < len(shape) and rng.random() < 0.85:
            extent = shape[axis]
            draw = rng.random()
            if arrays and draw < 0.5:
                parts.append(self.index_array(extent, None if wrong else common))
            elif arrays and draw < 0.55 and (wrong or not any(isinstance(one, np.ndarray) for one in parts)):
                mask = self.mask((extent,))
                common = (int(mask.sum()),)
                parts.append(mask)
            elif draw < 0.7 and (extent or self.fault == "bounds"):
                parts.append(extent if self.fault == "bounds" else rng.randrange(-extent, extent))
            else:
                parts.append(self.slice())
            axis += 1
        if rng.random() < 0.15:
            parts.insert(rng.randrange(len(parts) + 1), None)
        if rng.random() < 0.15:
            parts.insert(rng.randrange(len(parts) + 1), Ellipsis)
        if wrong and rng.random() < 0.3:
            parts += [0] * (len(shape) + 1)
        elif wrong and rng.random() < 0.3 and len(parts) < len(shape):
            parts.append(rng.choice((1.5, "x", np.array([0.5]))))
        return tuple(parts)

    def value(self, shape):
        """A value for a target of this shape: a number, or an array that broadcasts or does not."""
        rng = self.rng
        if self.fault == "type" and rng.random() < 0.7:
            return rng.choice((300, 2**70, 1j, None, "x", float("inf"), np.int64(300)))
        if rng.random() < 0.25:
            return rng.choice((3, -2, True, 2.75, np.float32(1.5), np.int8(7)))
        if 0 in shape:
            return 3  # NumPy takes some arrays of nothing for nothing that do not broadcast
        exact, shape = list(shape), list(shape)
        for i in range(len(shape)):
            if rng.random() < 0.2:
                shape[i] = 1
        if rng.random() < 0.2:
            shape = shape[rng.randrange(len(shape) + 1):]
        if rng.random() < 0.2 and self.fault in (None, "shape"):
            shape = [1] * rng.choice((1, 2)) + shape
        if shape and self.fault == "shape" and rng.random() < 0.7:
            shape[rng.randrange(len(shape))] += 1
        dtype = rng.choice((np.float64, np.float64, np.int8, np.int8, np.int64, np.bool_))
        if self.fault == "shape":
            dtype = self.dtype
        elif self.fault in (None, "type") and rng.random() < 0.2:
            dtype, shape = np.complex64, exact
        return np.array([rng.randrange(0, 100) for _ in range(int(np.prod(shape)))]).reshape(shape).astype(dtype)

    def given(self, part, i, give):
        """An array of the drawn origin."""
        return give(part, self.places[i]) if isinstance(part, np.ndarray) else part

    # --- operations ---

    def set(self):
        key = self.key()
        try:
            taken = self.target[key].shape
        except Exception:
            taken = ()
        value = self.value(taken)

        def run(module, array, give):
            ours = tuple(self.given(one, i, give) for i, one in enumerate(key))
            array[ours if len(ours) != 1 or self.places[5] == "host" else ours[0]] = self.given(value, 5, give)

        return f"x[{key!r}] = {value!r}", run

    def at(self):
        rng = self.rng
        name = rng.choice(("add", "maximum"))
        key = tuple(self.index_array(n, (3,)) for n in self.target.shape[:rng.choice((1, 1, 2))])
        if rng.random() < 0.3:
            key = (self.slice(), *key[1:]) if key else (Ellipsis,)
        try:
            taken = self.target[key].shape
        except Exception:
            taken = ()
        value = self.value(taken)
        if isinstance(value, (str, type(None), complex)) or not isinstance(value, np.ndarray) and abs(value) > 100:
            value = 3

        def run(module, array, give):
            getattr(module, name).at(
                array, tuple(self.given(one, i, give) for i, one in enumerate(key)), self.given(value, 5, give)
            )

        return f"{name}.at(x, {key!r}, {value!r})", run

    def put(self):
        indices, value = self.index_array(self.target.size), self.value((3,))

        def run(module, array, give):
            np.put(array, self.given(indices, 0, give), self.given(value, 5, give))

        return f"put(x, {indices!r}, {value!r})", run

    def put_along_axis(self):
        rng, shape = self.rng, list(self.target.shape)
        axis = rng.randrange(-len(shape), len(shape)) if shape and self.fault != "key" else len(shape)
        taken = list(shape)
        if shape and axis < len(shape):
            taken[axis] = 2
            if self.fault == "shape":
                taken[rng.randrange(len(taken))] += 1
        indices = self.index_array(shape[axis] if axis < len(shape) else 1, tuple(taken))
        value = self.value(taken)

        def run(module, array, give):
            ours = give(indices, self.places[0] if self.places[0] != "list" else "host")
            np.put_along_axis(array, ours, self.given(value, 5, give), axis)

        return f"put_along_axis(x, {indices!r}, {value!r}, {axis})", run

    def fill(self):
        value = self.value(self.rng.choice(((), (), (2,))))
        return f"x.fill({value!r})", lambda module, array, give: array.fill(self.given(value, 5, give))

    def operator(self):
        value = self.value(self.target.shape)
        value = 1 if isinstance(value, (str, type(None))) else value
        if np.ndim(value) > self.target.ndim:  # the shape is wrong, so that the type is valid
            value = value.astype(self.dtype)
        name = self.rng.choice(("__iadd__", "__imul__", "__isub__"))

        def run(module, array, give):
            result = getattr(array, name)(self.given(value, 5, give))
            if result is NotImplemented:
                raise TypeError(name)

        return f"x.{name}({value!r})", run

    def out(self):
        value = self.value(self.target.shape)
        value = 1 if isinstance(value, (str, type(None))) else value

        def run(module, array, give):
            module.add(self.given(value, 5, give), 1, out=array)

        return f"add({value!r}, 1, out=x)", run

    def where(self):
        mask = self.mask(self.target.shape)
        value = self.value(self.target.shape)
        value = 1 if isinstance(value, (str, type(None), complex)) else value

        def run(module, array, give):
            module.add(self.given(value, 5, give), 1, out=array, where=self.given(mask, 0, give))

        return f"add({value!r}, 1, out=x, where={mask!r})", run


def by_numpy(part, place):
    return part.tolist() if place == "list" and part.size else part


def by_stride(part, place):
    if place in ("list", "host"):
        return by_numpy(part, place)
    known = st.asarray(part)
    if place == "known":
        return known
    return st.logical_or(known, known) if part.dtype.kind == "b" else known + np.zeros((), part.dtype)[()]


class InplacePropertyTest(client_case.ClientCase):
    def check(self, case):
        theirs = case.start.copy()
        wanted = None
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                case.run(np, case.viewed(theirs), by_numpy)
            except Exception as error:
                wanted = error
            ours = st.asarray(case.start) + np.zeros((), case.dtype)[()]
            if not case.shape:
                ours = st.array(ours)  # an array, as NumPy's is here, not a number
            try:
                case.run(st, case.viewed(ours), by_stride)
                at_line = None
            except Exception as error:
                at_line = error
            try:
                values = ours.to_numpy()
                failed = at_line
            except st.StrideError as error:
                values, failed = None, error
        if wanted is None:
            if failed is not None:
                raise failed
            np.testing.assert_array_equal(values, theirs)
            return
        self.assertIsNotNone(failed, f"NumPy: {wanted!r}; here {values!r}")
        self.assertIsInstance(failed, kind_of(wanted), f"NumPy: {wanted!r}; here {failed!r}")
        if values is not None:
            np.testing.assert_array_equal(values, case.start, "a write that was refused has changed something")

    def run_seed(self, seed, count=500):
        rng = random.Random(seed)
        for i in range(count):
            case = Case(rng)
            with self.subTest(seed=seed, i=i, case=str(case)):
                self.check(case)


for _seed in range(6):
    setattr(InplacePropertyTest, f"test_seed_{_seed}", lambda self, seed=_seed: self.run_seed(seed))


DOUBLE = r"""
extern "C" __global__ void twice(double* x, unsigned n) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] *= 2;
}
"""


class Sequence:
    """Arrays of NumPy and of the service that random steps change alike: elements, views, operations of the device,
    in-place operations, kernels, names, traced functions. Each step compares what it reads."""

    def __init__(self, test, rng: random.Random, seed: str):
        self.test, self.rng, self.log = test, rng, []
        self.name = f"sequence_{seed}"
        self.pairs = []  # (NumPy's, the service's); views share elements on both sides
        self.pending = []  # unread results, and NumPy's values at that time
        self.add(*self.made())

    def made(self):
        rng = self.rng
        shape = rng.choice(((7,), (3, 4), (2, 3, 2), (30, 40), ()))
        host = np.array([rng.randrange(-9, 9) for _ in range(int(np.prod(shape)))], float).reshape(shape)
        draw = rng.random()
        if draw < 0.3:
            return host.copy(), st.asarray(host)
        if draw < 0.6:
            return host.copy(), st.asarray(host) + 0
        if draw < 0.8:
            return np.zeros(shape), st.zeros(shape)
        flat = host.reshape(-1)
        return flat.copy().reshape(shape), (st.asarray(flat) * 1).reshape(shape)

    def add(self, theirs, ours):
        self.pairs.append((theirs, ours))
        if len(self.pairs) > 5:
            del self.pairs[self.rng.randrange(len(self.pairs))]

    def pick(self):
        return self.rng.choice(self.pairs)

    def element(self, shape):
        return tuple(self.rng.randrange(-n, n) for n in shape)

    def key(self, shape):
        rng, parts = self.rng, []
        for n in shape[:rng.randrange(len(shape) + 1)]:
            if n and rng.random() < 0.4:
                parts.append(rng.randrange(-n, n))
            else:
                begin, end = rng.randrange(n + 1), rng.randrange(n + 1)
                parts.append(slice(min(begin, end), max(begin, end), rng.choice((None, None, 1, 2))))
        return tuple(parts)

    def number(self):
        return float(self.rng.randrange(-9, 9))

    # --- steps ---

    def read_element(self):
        theirs, ours = self.pick()
        if theirs.size:
            for _ in range(self.rng.choice((1, 3, 20))):
                key = self.element(theirs.shape)
                self.log.append(f"read {key}")
                self.test.assertEqual(float(ours[key if len(key) != 1 else key[0]]), theirs[key])

    def write_element(self):
        theirs, ours = self.pick()
        if theirs.size:
            for _ in range(self.rng.choice((1, 3, 8))):
                key, value = self.element(theirs.shape), self.number()
                self.log.append(f"write {key} {value}")
                theirs[key] = value
                ours[key] = self.rng.choice((value, int(value), np.float32(value), st.asarray(value) + 0))

    def element_to_element(self):
        theirs, ours = self.pick()
        if theirs.size:
            their_sum, our_sum = 0.0, 0.0
            for _ in range(self.rng.choice((2, 25))):
                key, other = self.element(theirs.shape), self.element(theirs.shape)
                self.log.append(f"{key} = {other}")
                their_sum += theirs[other]
                our_sum += ours[other]
                theirs[key] = their_sum % 16 - 1
                ours[key] = our_sum % 16 - 1
            self.test.assertEqual(float(our_sum), their_sum)

    def write_part(self):
        theirs, ours = self.pick()
        key = self.key(theirs.shape)
        shape = theirs[key].shape
        value = np.array([self.number() for _ in range(int(np.prod(shape)))]).reshape(shape)
        if self.rng.random() < 0.3:
            value = value.reshape(-1)[:1].reshape(()) if value.size else np.zeros(())
        self.log.append(f"write {key} {value.shape}")
        theirs[key] = value
        listed = value.tolist() if value.size else value
        ours[key] = self.rng.choice((value, listed, st.asarray(value), st.asarray(value) + 0))

    def view(self):
        theirs, ours = self.pick()
        draw = self.rng.random()
        self.log.append(f"view {draw:.2f}")
        if draw < 0.5:
            key = self.key(theirs.shape)
            if len(key) == theirs.ndim and all(isinstance(one, int) for one in key):
                return
            self.add(theirs[key], ours[key])
        elif draw < 0.7:
            self.add(theirs.T, ours.T)
        elif draw < 0.8 and theirs.ndim:
            self.add(theirs[::-1], ours[::-1])
        elif theirs.flags.c_contiguous:
            self.add(theirs.reshape(-1), ours.reshape(-1))

    def defer(self):
        theirs, ours = self.pick()
        self.log.append("defer")
        self.pending.append((theirs * 2 + 1, ours * 2 + 1))
        if self.rng.random() < 0.3:
            other = self.number()
            self.pending.append((theirs[...] + other, ours[...] + other))

    def read_pending(self):
        if self.pending:
            self.log.append("read what is pending")
            theirs, ours = self.pending.pop(self.rng.randrange(len(self.pending)))
            np.testing.assert_array_equal(ours.to_numpy(), theirs)

    def reduce(self):
        theirs, ours = self.pick()
        self.log.append("sum")
        self.test.assertEqual(float(st.sum(ours)), theirs.sum())

    def in_place(self):
        i = self.rng.randrange(len(self.pairs))
        theirs, ours = self.pairs[i]
        self.log.append("in place")
        theirs += 1
        ours += 1
        self.pairs[i] = theirs, ours

    def kernel(self):
        theirs, ours = self.pick()
        if theirs.flags.c_contiguous and theirs.size and np.abs(theirs).max() < 1e6:
            self.log.append("kernel")
            theirs *= 2
            self.test.twice((1,), (32,), (ours, np.uint32(theirs.size)))

    def name_it(self):
        theirs, ours = self.pick()
        if not theirs.ndim or not theirs.size:
            return
        self.log.append("name")
        st.save(self.name, ours, overwrite=True)
        loaded, kept = st.load(self.name), theirs.copy()
        key = self.element(kept.shape)
        for _ in range(6):
            kept[key] = loaded[key] = self.number()
        self.test.session.synchronize()  # sessions are not ordered among each other
        with client_case.current(self.test.other):
            np.testing.assert_array_equal(st.load(self.name).to_numpy(), kept)

    def traced(self):
        theirs, ours = self.pick()
        captured_theirs, captured = self.pick()
        if captured_theirs.shape == theirs.shape:
            self.log.append("traced")
            self.pending.append((theirs - captured_theirs, st.jit(lambda x: x - captured)(ours)))

    def whole(self):
        theirs, ours = self.pick()
        self.log.append("whole")
        np.testing.assert_array_equal(self.rng.choice((np.asarray, st.asnumpy))(ours), theirs)

    def drop(self):
        if len(self.pairs) > 1:
            self.log.append("drop")
            del self.pairs[self.rng.randrange(len(self.pairs))]
        elif self.rng.random() < 0.3:
            self.add(*self.made())

    def run(self, count):
        steps = (
            [self.read_element, self.write_element, self.element_to_element] * 3
            + [self.write_part, self.view, self.defer, self.read_pending] * 2
            + [self.reduce, self.in_place, self.kernel, self.whole, self.drop]
        )
        for i in range(count):
            self.rng.choice(steps)()
            if i % 10 == 5:
                self.rng.choice((self.name_it, self.traced))()
        for theirs, ours in self.pairs + self.pending:
            np.testing.assert_array_equal(ours.to_numpy(), theirs)


class ElementSequenceTest(client_case.ClientCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.other = st.connect(cls.daemon.address, timeout=120)
        cls.addClassCleanup(cls.other.close)
        cls.twice = st.RawKernel(DOUBLE, "twice")

    def run_seed(self, seed, count=60, length=40):
        for i in range(count):
            with self.subTest(seed=seed, i=i):
                sequence = Sequence(self, random.Random(f"{seed} {i}"), f"{seed}_{i}")
                try:
                    sequence.run(length)
                except Exception as error:
                    raise AssertionError("; ".join(sequence.log[-30:])) from error


for _seed in range(4):
    setattr(ElementSequenceTest, f"test_seed_{_seed}", lambda self, seed=_seed: self.run_seed(seed))


class ElementTest(client_case.ClientCase):
    """Loops over elements, which stay on the host."""

    def loops(self):
        def running_sum(a, n):
            s = 0.0
            for i in range(n):
                s += a[i]
                a[i] = s
            return s

        def neighbours(a, n):
            for i in range(1, n - 1):
                if a[i] > a[i - 1]:
                    a[i] = (a[i - 1] + a[i + 1]) / 2
                elif i % 3:
                    a[i] = np.sqrt(abs(a[i])) - a[i] ** 2

        def fill(a, n):
            for i in range(n):
                a[i] = i % 7

        return running_sum, neighbours, fill

    def test_loops_over_elements_send_few_messages(self):
        made = {
            "of the host": lambda n: st.asarray(np.linspace(-1, 1, n)),
            "of the device": lambda n: st.asarray(np.linspace(-1, 1, n)) * 1,
            "a view": lambda n: (st.asarray(np.linspace(-1, 1, n + 5)) * 1)[5:] * 1,
        }
        for loop in self.loops():
            for name, make in made.items():
                for n in (300, 30_000):
                    with self.subTest(loop=loop.__name__, array=name, n=n):
                        theirs = make(n).to_numpy()
                        ours = make(n)
                        self.session._settle()
                        with client_case.Sent(self.session) as sent:
                            wanted, result = loop(theirs, n), loop(ours, n)
                        self.assertLess(sent.num_messages, 80)
                        np.testing.assert_array_equal(ours.to_numpy(), theirs)
                        if wanted is not None:
                            self.assertEqual(float(result), wanted)

    def test_loops_over_elements_of_views_send_few_messages(self):
        """`a[i][j]`, rows and `flat`: the elements of the whole array are read once, not those of each view."""
        def chained(x, n):
            for i in range(n):
                for j in range(4):
                    x[i][j] += i * j - (x[i - 1][j] if i else 0)

        def turned(x, n):
            for column in x.T:
                for i in range(1, n):
                    column[i] = column[i - 1] + 1

        def windows(x, n):
            for i in range(1, n - 1):
                part = x[i - 1:i + 2, ::2]
                part[1][0] = part[0][1] - part[2][0]

        def flat(x, n):
            total = 0
            for one in x[:, 1:].flat:
                total += one
            x[0, 0] = total

        n = 40
        for loop in (chained, turned, windows, flat):
            for made in ("of the device", "a part", "reversed"):
                with self.subTest(loop=loop.__name__, array=made):
                    theirs = np.arange(8.0 * n).reshape(2 * n, 4)
                    ours = st.asarray(theirs) + 0
                    arrays = theirs, ours
                    if made == "a part":
                        arrays = theirs[5:n + 5], ours[5:n + 5]
                    elif made == "reversed":
                        arrays = theirs[:n][::-1], ours[:n][::-1]
                    self.session._settle()
                    with client_case.Sent(self.session) as sent:
                        for one in arrays:
                            loop(one, n)
                    self.assertLess(sent.num_messages, 40)
                    self.same(ours, theirs)

    def test_loops_over_rows_write_to_the_open_copy(self):
        """Rows given as lists, tuples, arrays of the host and rows of another array: no write looks at other arrays."""
        def paint(image, source):
            for y in range(12):
                for x in range(12):
                    image[y, x] = (x, y, 3)
                    image[y, x] = [x % 5, 2, image[y, x, 1]] if x == y else [x, y, 7]
                    if x % 2:
                        image[y, x] = source[x, y]
                    image[y, :x] = np.arange(3)
                image[y] = 4

        host = np.arange(432, dtype=np.uint8).reshape(12, 12, 3)
        theirs, ours = np.zeros_like(host), st.zeros((12, 12, 3), np.uint8)
        source = st.asarray(host) + 0
        for i in range(20):
            ours[i % 12, 0, 0], source[0, 0, 0] = 1, 0
        paint(theirs, host)
        with unittest.mock.patch.object(_elements, "write", wraps=_elements.write) as general:
            paint(ours, source)
        self.assertLess(general.call_count, 20)
        self.same(ours, theirs)
        for wrong in ([300, 0, 0], [1, 2], np.ones((2, 3))):
            with self.assertRaises((OverflowError, ValueError)):
                ours[0, 0] = wrong
        self.same(ours, theirs)

    def test_two_threads_write_elements_of_one_array_and_use_it(self):
        array = st.zeros(4000)
        view = array[2000:]
        failures = []

        def write(part, n):
            try:
                for i in range(n):
                    part[i] = i + 1
                    if i % 100 == 99:
                        float(st.sum(array))
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=write, args=one) for one in ((array, 2000), (view, 2000))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(array.tolist(), list(range(1, 2001)) * 2)

    def test_views_see_the_writes_of_their_base_and_it_theirs(self):
        a = st.asarray(np.arange(12.0).reshape(3, 4))
        row, turned, part = a[1], a.T, a[1:3]
        part[0, 1] = 50
        a[1:3][0][2] = 60
        turned[0, 1] = 70
        self.assertEqual(row.tolist(), [70, 50, 60, 7])
        row[3] = 80
        self.assertEqual([float(a[1, 3]), float(turned[3, 1]), float(part[0, 3])], [80] * 3)
        self.assertEqual(float(st.sum(a)), 0 + 1 + 2 + 3 + 70 + 50 + 60 + 80 + 8 + 9 + 10 + 11)

    def test_views_outlive_the_array_with_the_writes(self):
        a = st.zeros(10) + 0
        a.to_numpy()
        view = a[2:5]
        view.session._flush((view._node,))
        for i in range(10):
            a[i] = i
        del a
        self.assertEqual((view + 0).tolist(), [2, 3, 4])
        view[0] = 9
        self.assertEqual((view + 0).tolist(), [9, 3, 4])

    def test_a_failed_operation_of_the_array_fails_reads_not_writes(self):
        for count in (1, 40):
            array = (st.arange(3.0) + 0)[st.asarray([0, 1, 99]) + 0]
            for i in range(count):
                array[i % 3] = float(i)
            for read in (lambda: float(array[0]), array.to_numpy, lambda: [float(one) for one in array]):
                with self.assertRaises(IndexError):
                    read()

    def test_errors_are_those_of_other_assignments(self):
        for make in (lambda: st.zeros(3, np.int8) + 0, lambda: st.zeros(3, np.int8)):
            array = make()
            for i in range(6):
                array[i % 3] = i
            for key, value, kind in (
                (3, 1, IndexError), (-4, 1, IndexError), (0, 300, OverflowError), (0, 1j, TypeError),
                (0, "x", ValueError),
                ((0, 0), 1, IndexError), (slice(0, 2), [1, 2, 3], ValueError),
            ):
                with self.assertRaises(kind, msg=f"{key} {value}"):
                    array[key] = value
            with self.assertRaises(IndexError):
                array[7]
            self.assertEqual(array.tolist(), [3, 4, 5])
            array.setflags(write=False)
            with self.assertRaises(ValueError):
                array[0] = 1
            with self.assertRaises(ValueError):
                array[1:][0] = 1

    def test_a_closed_session_refuses_writes(self):
        with st.connect(self.daemon.address) as session:
            array = st.zeros(5)
            for i in range(20):
                array[i % 5] = i
        self.assertTrue(session.closed)
        with self.assertRaises(st.Cancelled):
            array[0] = 1

    def test_a_named_array_has_no_copy_on_the_host(self):
        st.save("elements", st.zeros(5), overwrite=True)
        first = st.load("elements")
        for i in range(30):
            first[i % 5] = i
        self.assertEqual(st.load("elements").tolist(), [25, 26, 27, 28, 29])

    def test_copies_are_bounded(self):
        arrays = [st.zeros(8000) + i for i in range(40)]
        self.addCleanup(setattr, _copies, "MAX_SESSION_BYTES", _copies.MAX_SESSION_BYTES)
        _copies.MAX_SESSION_BYTES = 10 * 64_000
        for turn in range(3):
            for i, array in enumerate(arrays):
                for k in range(25):
                    array[k] = turn + i + float(array[k + 1])
                self.assertLessEqual(self.session._copies.num_bytes, _copies.MAX_SESSION_BYTES)
        for i, array in enumerate(arrays):
            wanted = np.zeros(8000) + i
            for turn in range(3):
                for k in range(25):
                    wanted[k] = turn + i + wanted[k + 1]
            np.testing.assert_array_equal(array.to_numpy(), wanted)

    def test_arithmetic_of_elements_is_numpys(self):
        operators = (
            "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift lt le gt ge eq ne".split()
        )
        types = (np.bool_, np.int8, np.uint8, np.int32, np.int64, np.float16, np.float32, np.float64, np.complex64)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for left in types:
                theirs = np.array([5, 3], left)
                ours = st.asarray(theirs)
                for name in operators:
                    function = getattr(operator, name)
                    rights = [(2, 2), (2.5, 2.5), (theirs[1], ours[1]), (theirs[1], theirs[1])]
                    rights += [(np.array([3], one)[0], st.asarray(np.array([3], one))[0]) for one in types]
                    for right, our_right in rights:
                        both = ((theirs[0], ours[0]), (right, our_right))
                        for pair, our_pair in (zip(*both), zip(*both[::-1])):
                            with self.subTest(name=name, types=[type(one) for one in pair]):
                                try:
                                    wanted = function(*pair)
                                except Exception as error:
                                    with self.assertRaises(kind_of(error)):
                                        np.asarray(function(*our_pair))
                                    continue
                                result = np.asarray(function(*our_pair))
                                self.assertEqual((result.dtype, result.shape), (np.asarray(wanted).dtype, ()))
                                tolerance = 1e-2 if result.dtype == np.float16 else 1e-6
                                np.testing.assert_allclose(result, wanted, rtol=tolerance)

    def test_an_element_is_an_array_without_axes(self):
        a = st.asarray([3, 1, 2])
        x = a[0]
        self.assertIsInstance(x, st.Array)
        self.assertEqual((x.shape, x.ndim, x.size, x.dtype, x.nbytes, x.itemsize), ((), 0, 1, np.dtype(np.int64), 8, 8))
        self.assertEqual((int(x), float(x), complex(x), bool(x)), (3, 3, 3, True))
        self.assertEqual((x.item(), x.tolist(), hash(x), round(x), f"{x:03d}"), (3, 3, 3, 3, "003"))
        self.assertEqual(([10, 20, 30, 40][x], list(range(a[2])), {a[1]: 5}[1]), (40, [0, 1], 5))
        self.assertEqual((repr(x), str(x)), ("stride.Array(3, dtype=int64)", "3"))
        a[0] = 9
        self.assertEqual(int(x), 3)
        y = x
        y += 1
        self.assertEqual((int(x), int(y), int(a[a[1]])), (3, 4, 1))
        x[...] = 7
        self.assertEqual(int(x + 0), 7)
        self.assertEqual((a * a[1] + st.sqrt(a[1])).tolist(), [10, 2, 3])
        self.assertEqual(st.stack([a[0], a[1]]).tolist(), [9, 1])
        self.assertEqual(st.jit(lambda v: v + a[0])(a).tolist(), [18, 10, 11])
        self.assertEqual(pickle.loads(pickle.dumps(a[0])).tolist(), 9)
        self.assertEqual(copy.deepcopy(a[0]).tolist(), 9)
        self.assertEqual((np.add(a[0], 1).tolist(), np.float64(2) * a[0], st.maximum(a[0], a[1]).tolist()), (10, 18, 9))
        st.add(a[0], 1, out=x)
        self.assertEqual(int(x), 10)

    def test_augmented_assignment_of_numbers_and_of_arrays_without_axes_is_numpys(self):
        # The last line of each program gives what is compared: values, and the types of elements.
        for program in (
            "x = a[1]; y = x; x += 1; (x, y)",
            "x = [a[i % 4] for i in range(20)][-1]; y = x; x *= 3; x -= 1; (x, y)",
            "x = a.sum(); y = x; x += 1; (x, y)",
            "x = np.linalg.norm(a); y = x; x /= 2; (x, y)",
            "x = np.sqrt(2); y = [x]; x -= 1; (x, *y)",
            "x = a[3]; y = x; x **= 2; x %= 5; x //= 2; (x, y)",
            "x = i[3]; y = x; x <<= 2; x |= 1; x ^= 7; x &= 14; x >>= 1; (x, y)",
            "total, seen = a[0], []\nfor one in a: total += one; seen.append(total)\ntuple(seen)",
            "total, seen = 0, []\nfor k in range(40): total += a[k % 4]; seen.append(total)\ntuple(seen)",
            "x = i.max(); x += 0.5; (x,)",
            "x = i[1]; x /= 2; (x,)",
            "i[1] += 0.7; i[2] /= 4; (i,)",
            "for k in range(30): i[k % 4] += a[2] / 4\n(i,)",
            "x = a[1]; x += a; (x, a)",
            "x = np.array(2.0); y = x; x += 1; x += 1; (x, y)",
            "x = np.zeros(()); y = x; x -= 1; (x, y)",
            "x = np.array(2.0); y = x.copy(); z = y; y += 1; (x, y, z)",
            "x = np.array(a.sum()); y = x; x += 1; (x, y)",
            "x = a[2, ...]; y = x; x += 5; (x, y, a)",
            "x = a[1:2].reshape(()); x += 5; (x, a)",
            "x = a.sum(); y = np.array(1.0); y += x; y += x; (x, y)",
            "(np.array([0] * i[3]), np.array(i.max() * (1, 2)), [1, 2] * np.array(2))",
        ):
            with self.subTest(program=program):
                *lines, last = program.replace("\n", ";\n").split(";")
                text = program[:program.rindex(last.strip())].rstrip(" ;")
                results = []
                for module in (np, st):
                    names = {"np": module, "a": module.arange(4.0), "i": module.arange(4)}
                    exec(text, names)
                    results.append([np.asarray(one) for one in eval(last, names)])
                for theirs, ours in zip(*results, strict=True):
                    self.assertEqual((ours.dtype, ours.shape), (theirs.dtype, theirs.shape))
                    np.testing.assert_array_equal(ours, theirs)


if __name__ == "__main__":
    client_case.main()
