"""Compares random writes in place with NumPy: an accepted write gives the same elements, and a refused write fails with
the same kind of error, at the line or at the next read of the array. No write is lost without an error. Seeds are
fixed.
"""

import random
import warnings

import numpy as np

import client_case
import stride as st

SHAPES = ((5,), (4, 6), (2, 3, 4), ())
DTYPES = (np.float64, np.int8)
KINDS = (OverflowError, IndexError, TypeError, ValueError)  # the first that an error of NumPy's is


def kind_of(error):
    return next(kind for kind in KINDS if isinstance(error, kind))


class Case:
    """One write, drawn by `rng`: `run(module, array, give)` does it with arrays that `give` makes of NumPy's."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.dtype = rng.choice(DTYPES)
        self.shape = rng.choice(SHAPES)
        self.view = rng.choice(("whole", "whole", "reversed", "stepped", "transposed", "wide", "part"))
        self.start = np.arange(int(np.prod(self.shape))).reshape(self.shape).astype(self.dtype)
        self.target = self.viewed(self.start)
        # Each part that may be of the host or of the service: list, host, known to the client, on the device.
        self.places = [rng.choice(("list", "host", "known", "device")) for _ in range(6)]
        # At most one thing is wrong: which of two is found first is no matter.
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

    # --- what is drawn ---

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
        """An index of the target, right but for bounds and, sometimes, the number of its parts."""
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
        """An array in the place that was drawn for it."""
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
        # NumPy casts its results to any type; here casts stay within a kind.
        if isinstance(value, np.ndarray):
            value = value.astype(self.dtype)
        elif isinstance(value, (str, type(None), complex, float, np.generic)) or abs(value) > 100:
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
        if np.ndim(value) > self.target.ndim:  # wrong in shape, and so not in type
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


if __name__ == "__main__":
    client_case.main()
