"""einsum, einsum_path and products of arrays, compared with NumPy's."""

import itertools
import unittest

import numpy as np

import client_case
import stride as st
from stride import _einsum, _linear_algebra

# Subscripts and the shapes of operands.
SUBSCRIPTS = (
    ("i", (4,)),
    ("i->", (4,)),
    ("ij", (3, 4)),
    ("ji", (3, 4)),
    ("ij->ji", (3, 4)),
    ("ij->i", (3, 4)),
    ("ij->", (3, 4)),
    ("kij->jk", (2, 3, 4)),
    ("ii", (4, 4)),
    ("ii->i", (4, 4)),
    ("ii->", (4, 4)),
    ("iij->ij", (3, 3, 2)),
    ("iji->ij", (3, 2, 3)),
    ("ijij->ij", (2, 3, 2, 3)),
    ("iii->i", (3, 3, 3)),
    ("ijij->ji", (2, 3, 2, 3)),
    ("iiii", (2, 2, 2, 2)),
    ("jii->j", (2, 3, 3)),
    ("->", ()),
    ("", ()),
    ("...", (2, 3)),
    ("...i->...", (2, 3)),
    ("...ii->...i", (2, 3, 3)),
    ("i...->...", (2, 3)),
    ("...->...", ()),
    ("i...i", (3, 2, 3)),
    ("i...j->j...i", (2, 3, 4)),
    (" i j -> j i ", (2, 3)),
    ("i,i", (4,), (4,)),
    ("i,i->i", (4,), (4,)),
    ("i,j->ij", (3,), (4,)),
    ("i,j->ji", (3,), (4,)),
    ("i,j->", (3,), (4,)),
    ("i,->i", (3,), ()),
    (",", (), ()),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk->ki", (2, 3), (3, 4)),
    ("ij,kj->ik", (2, 3), (4, 3)),
    ("ji,jk->ik", (3, 2), (3, 4)),
    ("ij,ij->i", (2, 3), (2, 3)),
    ("ij,ij", (2, 3), (2, 3)),
    ("ij,ji", (2, 3), (3, 2)),
    ("ij,j->i", (2, 3), (3,)),
    ("i,ij->j", (2,), (2, 3)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("bij,bkj->kbi", (2, 3, 4), (2, 5, 4)),
    ("ijk,jil->kl", (2, 3, 4), (3, 2, 5)),
    ("ijk,ikl->ij", (2, 3, 4), (2, 4, 5)),
    ("ii,ij->j", (3, 3), (3, 2)),
    ("iij,jk->ik", (2, 2, 3), (3, 4)),
    ("ij,kl->ijkl", (2, 3), (1, 2)),
    ("ij,kl->", (2, 3), (1, 2)),
    ("...ij,...jk->...ik", (2, 3, 4), (4, 5)),
    ("...ij,...jk", (3, 4), (2, 4, 5)),
    ("...i,...i->...", (2, 3), (3,)),
    ("i...,i...", (2, 3), (2,)),
    ("...,...", (2, 3), (3,)),
    ("...ij,ik->...jk", (5, 3, 4), (3, 2)),
    ("...a,...b->...ab", (2, 1, 3), (4, 2)),
    ("...a,b...->ab...", (2, 3), (4, 2)),
    ("ij,jk", (2, 1), (3, 4)),
    ("ij,ij->ij", (1, 3), (2, 3)),
    ("ij,jk->ik", (2, 3), (1, 4)),
    ("i,i->i", (1,), (4,)),
    ("i,i->", (1,), (4,)),
    ("ij,jk", (2, 0), (0, 4)),
    ("ij,jk", (0, 3), (3, 4)),
    ("ij->i", (3, 0)),
    ("ii->i", (0, 0)),
    ("i,j->ij", (0,), (3,)),
    ("ij,j->i", (1, 1), (1,)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ij,jk,kl", (2, 3), (3, 4), (4, 5)),
    ("i,i,i->i", (3,), (3,), (3,)),
    ("i,j,k->kji", (2,), (3,), (4,)),
    ("ea,fb,abcd,gc,hd->efgh", (2, 2), (2, 2), (2, 2, 2, 2), (2, 2), (2, 2)),
    ("ij,ij,jk->ik", (2, 3), (2, 3), (3, 4)),
    ("ab,bc,ca->", (2, 3), (3, 4), (4, 2)),
    ("a,ab,abc->abc", (2,), (2, 3), (2, 3, 4)),
    ("...ij,jk,k->...i", (2, 3, 4), (4, 5), (5,)),
    ("ijk,ilm,njm,nlk,abc->", (2, 2, 2), (2, 2, 2), (2, 2, 2), (2, 2, 2), (1, 2, 1)),
    ("bqd,bkd,bk->bq", (2, 3, 4), (2, 5, 4), (2, 5)),
    ("i,i,i,i->", (3,), (3,), (1,), (3,)),
)
WRONG = (
    ("ij", (3,)),
    ("i", (3, 4)),
    ("i,j", (3,)),
    ("i", (3,), (3,)),
    ("i->j", (3,)),
    ("i->ii", (3,)),
    ("ij,jk", (2, 3), (4, 5)),
    ("ii", (2, 3)),
    ("i.j", (2, 3)),
    ("i..j", (2, 3)),
    ("i...j...", (2, 3)),
    ("i->i->i", (3,)),
    ("i>i", (3,)),
    ("i-i", (3,)),
    ("1", (3,)),
    ("i->i,i", (3,)),
    ("...i->i", (2, 3)),
    ("...,...", (2,), (3,)),
)


class EinsumTest(client_case.ClientCase):
    def setUp(self):
        self.random = np.random.default_rng(12)

    def values(self, shape, dtype):
        dtype = np.dtype(dtype)
        x = self.random.integers(0, 5, shape)
        if dtype.kind == "f":
            x = x - 2.5
        elif dtype.kind == "c":
            x = x + 1j * self.random.integers(-3, 3, shape)
        return np.asarray(x).astype(dtype) if dtype.kind != "b" else np.asarray(x > 2)

    def test_subscripts(self):
        """Small whole numbers and halves, so that any order of summation is exact."""
        for dtype in (np.float64, np.int32):
            for subscripts, *shapes in SUBSCRIPTS:
                host = [self.values(shape, dtype) for shape in shapes]
                arrays = [st.asarray(one) for one in host]
                with self.subTest(subscripts=subscripts, shapes=shapes, dtype=dtype):
                    expected = np.einsum(subscripts, *host)
                    self.same(st.einsum(subscripts, *arrays), expected)
                    self.same(np.einsum(subscripts, *arrays), expected)
                    for optimize in (True, "greedy", "optimal"):
                        self.same(st.einsum(subscripts, *arrays, optimize=optimize), expected)

    def test_types(self):
        for dtype in client_case.DTYPES:
            for subscripts, *shapes in (
                ("ij->ji", (3, 4)),
                ("ij->i", (3, 4)),
                ("ii", (4, 4)),
                ("ij,jk", (2, 3), (3, 4)),
                ("ij,ij->ij", (2, 3), (2, 3)),
                ("i,i,i->", (3,), (3,), (3,)),
            ):
                host = [self.values(shape, dtype) for shape in shapes]
                with self.subTest(subscripts=subscripts, dtype=dtype):
                    self.same(st.einsum(subscripts, *map(st.asarray, host)), np.einsum(subscripts, *host))
        for first, second in itertools.product((np.bool_, np.int8, np.uint16, np.float32, np.complex64), repeat=2):
            a, b = self.values((2, 3), first), self.values((3, 2), second)
            self.same(st.einsum("ij,jk", st.asarray(a), st.asarray(b)), np.einsum("ij,jk", a, b))

    def test_values_that_are_no_numbers(self):
        x = np.array([[np.nan, 1.0], [np.inf, -0.0]])
        for subscripts in ("ij->ji", "ij->i", "ij->j", "ii", "ij,ij->i", "ij,jk"):
            host = [x] * (1 + subscripts.count(","))
            self.same(st.einsum(subscripts, *map(st.asarray, host)), np.einsum(subscripts, *host))

    def test_sublists(self):
        x, y = self.values((2, 3), float), self.values((3, 4), float)
        a, b = st.asarray(x), st.asarray(y)
        for arguments in (
            (x, [0, 1], y, [1, 2]),
            (x, [0, 1], y, [1, 2], [2, 0]),
            (x, [5, 3]),
            (x, [Ellipsis, 1]),
            (x, [Ellipsis, 1], [1, Ellipsis]),
            (x, [0, 51], y, [51, 2]),
        ):
            ours = [a if one is x else b if one is y else one for one in arguments]
            self.same(st.einsum(*ours), np.einsum(*arguments))
            self.same(np.einsum(*ours), np.einsum(*arguments))
        for wrong in ((a, [0, 52]), (a, [-1, 0]), (a,), ()):
            with self.assertRaises(ValueError):
                st.einsum(*wrong)
        with self.assertRaises(TypeError):
            st.einsum(a, ["i", 1.5])

    def test_out_and_types_of_computation(self):
        x, y = self.values((2, 3), np.float32), self.values((3, 4), np.float32)
        a, b = st.asarray(x), st.asarray(y)
        out = st.zeros((2, 4))
        self.assertIs(st.einsum("ij,jk", a, b, out=out), out)
        self.same(out, np.einsum("ij,jk", x, y).astype(float))
        self.same(st.einsum("ij,jk", a, b, dtype=np.float64), np.einsum("ij,jk", x, y, dtype=np.float64))
        self.same(st.einsum("ij,jk", a, b, dtype=np.complex64), np.einsum("ij,jk", x, y, dtype=np.complex64))
        self.same(
            st.einsum("ij->j", a, dtype=np.int64, casting="unsafe"),
            np.einsum("ij->j", x, dtype=np.int64, casting="unsafe"),
        )
        for wrong in ({"dtype": np.int64}, {"out": st.zeros((2, 4), dtype=st.int32)}):
            with self.assertRaises(TypeError):
                st.einsum("ij,jk", a, b, **wrong)
        for wrong in ({"out": st.zeros((4, 2))}, {"out": st.zeros((1, 2, 4))}, {"order": "X"}):
            with self.assertRaises(ValueError):
                st.einsum("ij,jk", a, b, **wrong)
        for order in "CFAK":
            self.same(st.einsum("ij->ji", a, order=order), x.T)

    def test_views(self):
        x = st.zeros((3, 3))
        st.einsum("ij->ji", x)[0, 1] = 5
        self.assertEqual(float(x[1, 0]), 5)
        st.einsum("ii->i", x)[:] = 1
        self.same(x, np.array([[1.0, 0, 0], [5, 1, 0], [0, 0, 1]]))
        view = st.einsum("ij", x)
        self.assertIs(view.base, x)
        view[2, 0] = 7
        self.assertEqual(float(x[2, 0]), 7)
        # Nothing is computed: the type is the operand's, as NumPy has it.
        for subscripts in ("ij->ji", "ij", "ii->i", "..."):
            self.same(
                st.einsum(subscripts, x, dtype=np.float32), np.einsum(subscripts, np.asarray(x), dtype=np.float32)
            )
        with self.assertRaises(ValueError):
            st.einsum("ii->i", st.zeros((6, 3))[::2])[:] = 1  # a copy here: a write would be lost

    def test_errors_are_numpys(self):
        for subscripts, *shapes in WRONG:
            host = [np.ones(shape) for shape in shapes]
            with self.subTest(subscripts=subscripts, shapes=shapes):
                with self.assertRaises(ValueError):
                    np.einsum(subscripts, *host)
                with self.assertRaises(ValueError):
                    st.einsum(subscripts, *map(st.asarray, host))
                with self.assertRaises(ValueError):
                    st.einsum_path(subscripts, *map(st.asarray, host))

    def test_path(self):
        shapes = ((20, 30), (30, 4), (4, 50), (50, 2))
        host = [self.values(shape, float) for shape in shapes]
        arrays = [st.asarray(one) for one in host]
        for optimize in (
            "greedy",
            "optimal",
            True,
            False,
            ("greedy", 100),
            ("optimal", 10**6),
            ["einsum_path", (0, 1), (0, 1), (0, 1)],
        ):
            ours, theirs = (st.einsum_path("ab,bc,cd,de->ae", *them, optimize=optimize) for them in (arrays, host))
            self.assertEqual(ours[0], theirs[0])
            self.assertEqual(ours[1], np.einsum_path("ab,bc,cd,de->ae", *host, optimize=optimize)[1])
            expected = np.einsum("ab,bc,cd,de->ae", *host)
            self.same(st.einsum("ab,bc,cd,de->ae", *arrays, optimize=ours[0]), expected)
            self.same(st.einsum("ab,bc,cd,de->ae", *arrays, optimize=optimize), expected)
            self.assertEqual(np.einsum_path("ab,bc,cd,de->ae", *arrays, optimize=optimize)[0], theirs[0])
        with self.assertRaises((TypeError, KeyError, ValueError)):
            st.einsum_path("ab,bc,cd,de->ae", *arrays, optimize="fastest")

    def test_products_are_matrix_products(self):
        """Contractions become one product each, not a product of all elements and a sum."""
        a, b = st.ones((8, 9)), st.ones((9, 10))
        with client_case.Sent(self.session) as sent:
            st.einsum("ij,jk->ki", a, b).to_numpy()
        self.assertEqual(sent.kinds.count("matmul"), 1)
        self.assertNotIn("reduction", sent.kinds)

    def test_products_of_integers_are_summed_in_the_type_asked_for(self):
        rng = np.random.default_rng(3)

        def values(dtype, *shape):
            info = np.iinfo(dtype)
            return rng.integers(info.min, info.max, shape, dtype, endpoint=True)

        for left, right in (("i1", "i1"), ("u1", "u1"), ("i1", "u1"), ("i2", "i1"), ("i4", "i4"), ("u8", "u8")):
            for dtype in (None, "i1", "u1", "i2", "i4", "u4", "i8", "f8"):
                a, b = values(left, 2, 33, 70), values(right, 70, 45)
                with self.subTest(left=left, right=right, dtype=dtype):
                    keywords = {} if dtype is None else {"dtype": dtype, "casting": "unsafe"}
                    x, y = ((st.asarray(one) + one.dtype.type(0)).block_until_ready() for one in (a, b))
                    with client_case.Sent(self.session) as sent:
                        self.same(st.matmul(x, y, **keywords), np.matmul(a, b, **keywords))
                    if {left, right} <= {"i1", "u1"} and dtype in (None, "i4", "u4"):
                        self.assertNotIn("copy", sent.kinds)  # the factors are read as they are
        with self.assertRaises(TypeError):
            st.matmul(st.ones((2, 2), st.int8), st.ones((2, 2), st.int8), dtype=st.uint32)
        small = st.matmul(st.full((2, 2), 100, dtype=st.int8), st.full((2, 2), 100, dtype=st.int8), dtype=st.int32)
        self.assertEqual(small.tolist(), [[20_000] * 2] * 2)
        traced = st.jit(lambda a, b: st.matmul(a, b, dtype=np.int32))
        a, b = values("i1", 9, 20), values("u1", 20, 7)
        self.same(traced(st.asarray(a), st.asarray(b)), np.matmul(a, b, dtype=np.int32))

    def test_examples(self):
        self.run_examples(_einsum, _linear_algebra)

    def test_of_traced_arrays(self):
        x, y = self.values((2, 3), float), self.values((3, 4), float)
        function = st.jit(lambda a, b: st.einsum("ij,jk->ki", a, b))
        self.same(function(st.asarray(x), st.asarray(y)), np.einsum("ij,jk->ki", x, y))

    def test_other_products(self):
        for dtype in (np.float64, np.int64, np.complex128):
            x, y, v, square = (self.values(shape, dtype) for shape in ((2, 3), (4, 3), (3,), (3, 3)))
            a, b, u, s = map(st.asarray, (x, y, v, square))
            for function, ours, theirs in (
                (np.inner, (a, b), (x, y)),
                (np.inner, (u, u), (v, v)),
                (np.inner, (a, 2), (x, 2)),
                (np.vdot, (a, a), (x, x)),
                (np.vdot, (u, u), (v, v)),
                (np.tensordot, (a, b, ((1,), (1,))), (x, y, ((1,), (1,)))),
                (np.tensordot, (a, b, 0), (x, y, 0)),
                (np.tensordot, (a, b, (1, 1)), (x, y, (1, 1))),
                (np.tensordot, (a, a), (x, x)),
                (np.tensordot, (s, s, ((0, 1), (1, 0))), (square, square, ((0, 1), (1, 0)))),
            ):
                self.same(function(*ours), function(*theirs))
                self.same(getattr(st, function.__name__)(*ours), function(*theirs))
            for name, ours, theirs in (
                ("vecdot", (a, u), (x, v)),
                ("matvec", (a, u), (x, v)),
                ("vecmat", (u, s), (v, square)),
                ("matmul", (a, s), (x, square)),
            ):
                expected = getattr(np, name)(*theirs)
                self.same(getattr(st, name)(*ours), expected)
                self.same(getattr(st.linalg, name)(*ours), expected)
                out = st.zeros(expected.shape, dtype=np.complex128)
                self.assertIs(getattr(st, name)(*ours, out=out), out)
                self.same(out, expected.astype(np.complex128))
                self.same(
                    getattr(st, name)(*ours, dtype=np.complex128), getattr(np, name)(*theirs, dtype=np.complex128)
                )
        for shapes in (((2, 0), (0, 3)), ((0, 2), (2, 3)), ((1, 1), (1, 1))):
            x, y = (np.ones(shape) for shape in shapes)
            self.same(st.tensordot(st.asarray(x), st.asarray(y), 1), np.tensordot(x, y, 1))
        for wrong in (
            lambda: st.inner(st.ones(3), st.ones(4)),
            lambda: st.vdot(st.ones(3), st.ones(4)),
            lambda: st.matvec(st.ones((2, 3)), st.ones(4)),
            lambda: st.vecmat(st.ones(3), st.ones((4, 2))),
            lambda: st.matvec(st.ones(3), st.ones(3)),
            lambda: st.tensordot(st.ones((2, 3)), st.ones((3, 2))),
            lambda: st.tensordot(st.ones(3), st.ones(3), 2),
            lambda: st.tensordot(st.ones((3, 3)), st.ones(3), ((0, 1), (0,))),
        ):
            with self.assertRaises(ValueError):
                wrong()


if __name__ == "__main__":
    client_case.main()
