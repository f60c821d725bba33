"""Expressions inside translated functions."""

import ast
import math
from typing import Iterator

import numpy as np

from stride import _dtypes, cuda
from stride._array import Array
from stride._translate_types import (
    BOOL, C_TYPES, FLOAT, INT, ArrayOf, Object, Scalar, Several, TupleOf, Value, c_type, calls_a_function, leaves,
)

_PLACES = {
    getattr(getattr(cuda, group), axis): f"{group}.{axis}"
    for group in ("threadIdx", "blockIdx", "blockDim", "gridDim")
    for axis in "xyz"
}


class Expressions:
    """The part of Function that translates expressions. `visit` gives a Value, a list of them (a tuple), an Object, or
    None for a call that gives nothing."""

    def visit(self, node):
        """A Value, a list of them (a tuple), an Object, or None for a call that gives nothing."""
        method = getattr(self, f"of_{type(node).__name__}", None)
        if method is None:
            self.fail(
                node,
                f"{type(node).__name__} cannot be translated; there are arithmetic, comparisons, and/or/not, if-else, "
                f"indices, and calls "
                "of math's functions and of other functions",
            )
        return method(node)

    def number(self, node) -> Value:
        return self.scalar(self.visit(node), node)

    def scalar(self, value, node) -> Value:
        if isinstance(value, Value) and isinstance(value.type, ArrayOf) and value.type.ndim == 0:
            return self.element(value, [], node)
        if not isinstance(value, Value) or not isinstance(value.type, Scalar):
            self.fail(node, "a number is needed here")
        return value

    def integer(self, node) -> Value:
        value = self.number(node)
        if value.type.definite().dtype.kind not in "biu":
            self.fail(node, f"an integer is needed here, not {value.type.definite().dtype}")
        return value

    def truth(self, node) -> str:
        value = self.visit(node)
        if isinstance(value, list):
            return "true" if value else "false"
        value = self.scalar(value, node)
        dtype = value.type.definite().dtype
        return (
            value.text
            if dtype == BOOL
            else f"({value.text}) != {c_type(dtype)}(0)" if dtype.kind == "c" else f"({value.text}) != 0"
        )

    def dtype(self, node) -> np.dtype:
        value = self.visit(node)
        try:
            return _dtypes.dtype_of(value.value if isinstance(value, Object) else value.literal)
        except (TypeError, AttributeError):
            self.fail(node, "a dtype is needed here")

    def cast(self, value: Value, to: Scalar) -> str:
        to = to.definite()
        if value.type.definite().dtype.kind == "c" and to.dtype.kind != "c":
            self.fail(self.source.definition, f"a complex number cannot become {to.dtype}; take its real or imag")
        self.unit.needs_complex |= to.dtype.kind == "c"
        if value.type.dtype is None and value.literal is not None:
            try:
                return self.literal(value.literal, to.dtype)
            except OverflowError as error:
                self.fail(self.source.definition, str(error))
        return value.text if value.type.definite().dtype == to.dtype else self.converted(value, to.dtype)

    def converted(self, value: Value, dtype: np.dtype) -> str:
        if dtype != _dtypes.float16:
            return f"({c_type(dtype)})({value.text})"
        # It is computed with in float32, and rounded once where a program makes it of another type.
        self.unit.needs_half = True
        wide = "float" if value.type.definite().dtype == _dtypes.float32 else "double"
        return f"(float)(__half)({wide})({value.text})"

    @staticmethod
    def literal(value, dtype: np.dtype) -> str:
        if dtype.kind == "b":
            return "true" if value else "false"
        if dtype.kind == "c":
            part = _dtypes.float32 if dtype.itemsize == 8 else FLOAT
            value = complex(value)
            return f"{c_type(dtype)}({Expressions.literal(value.real, part)}, {Expressions.literal(value.imag, part)})"
        if dtype.kind == "f":
            if dtype == _dtypes.float16:
                with np.errstate(over="ignore"):
                    value = np.float16(value)
            value = float(value)
            suffix = "" if dtype == FLOAT else "f"
            if math.isnan(value):
                return f"(({c_type(dtype)})__longlong_as_double(0x7ff8000000000000LL))"
            if math.isinf(value):
                return f"(({c_type(dtype)}){'-' if value < 0 else ''}__longlong_as_double(0x7ff0000000000000LL))"
            return f"({value!r}{suffix})" if "e" in repr(value) or "." in repr(value) else f"({value!r}.0{suffix})"
        value = int(value)
        if not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            raise OverflowError(f"Python integer {value} out of bounds for {dtype}")
        if value == -(2**63):
            return "(-9223372036854775807LL - 1)"
        suffix = (
            {4: "", 8: "LL"}.get(dtype.itemsize, "")
            if dtype.kind == "i"
            else {4: "U", 8: "ULL"}.get(dtype.itemsize, "")
        )
        return f"({value}{suffix})" if dtype.itemsize >= 4 else f"(({c_type(dtype)}){value})"

    def constant(self, node, value):
        if isinstance(value, np.generic) and value.dtype in C_TYPES:
            dtype = _dtypes.dtype_of(value.dtype)
            self.unit.needs_complex |= dtype.kind == "c"
            return Value(
                self.literal(value.item(), dtype),
                Scalar(dtype, None, dtype.kind != "c" and bool(value >= 0)),
                value.item(),
            )
        if isinstance(value, (bool, int, float, complex)):
            weak = next(one for one in (bool, int, float, complex) if isinstance(value, one))
            kind = Scalar(None, weak, weak is not complex and bool(value >= 0))
            self.unit.needs_complex |= weak is complex
            if weak is int and not -(2**63) <= value < 2**63:
                if not 0 <= value < 2**64:
                    self.fail(node, f"{value} has more than 64 bits")
                kind = Scalar(_dtypes.uint64, None, True)
            return Value(self.literal(value, kind.definite().dtype), kind, weak(value))
        if isinstance(value, (tuple, list)) and not isinstance(value, str):
            return [self.constant(node, one) for one in value]
        if isinstance(value, np.ndarray):
            return self.constant_array(node, value)
        if isinstance(value, cuda.Intrinsic):
            if value in _PLACES:
                return Value(f"(long long){_PLACES[value]}", Scalar(INT, None, True))
            if value is cuda.laneid:
                return Value(
                    "(long long)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32)",
                    Scalar(INT, None, True),
                )
            return self.constant(node, 32) if value is cuda.warpsize else Object(value)
        if isinstance(value, (dict, Array)):
            self.fail(
                node,
                f"{'an array of the service' if not isinstance(value, dict) else 'a dict'} from outside cannot be "
                f"used; pass it as an argument",
            )
        return Object(value)

    def constant_array(self, node, values: np.ndarray) -> Value:
        """An array of the host from outside the kernel: its elements now, as a constant."""
        if values.dtype not in C_TYPES or not values.size:
            self.fail(
                node,
                f"an array of {values.dtype} and shape {values.shape} from outside cannot be used; pass it as an "
                f"argument",
            )
        if values.nbytes > self.unit.max_constant_bytes:
            self.fail(
                node,
                f"an array of {values.nbytes} bytes from outside is too large for a constant; pass it as an argument",
            )
        self.memory(values.dtype, node)
        return Value(
            self.unit.constant_array(values),
            ArrayOf(values.dtype, values.ndim, "=" + ast.unparse(node)[:40], tuple(map(str, values.shape))),
        )

    def of_Constant(self, node):  # noqa: N802
        if node.value is None:
            return Object(None)
        if not isinstance(node.value, (bool, int, float, complex, str)):
            self.fail(node, f"{node.value!r} cannot be used in a kernel")
        return self.constant(node, node.value)

    def of_Tuple(self, node):  # noqa: N802
        return [self.visit(one) for one in node.elts]

    def of_Name(self, node):  # noqa: N802
        kind = self.variables.get(node.id)
        if isinstance(kind, Object):
            return self.constant(node, kind.value)
        if node.id in self.aliases:
            return self.aliases[node.id]
        if isinstance(kind, TupleOf):
            return self.values_of(kind, iter([text for text, _ in leaves(node.id, kind)]), iter(kind.literals))
        if kind is not None:
            return Value(f"v_{node.id}", kind, self.known.get(node.id))
        try:
            value = self.source.lookup(node.id)
        except (AttributeError, ValueError):
            self.fail(node, f"{node.id} has no value here")
        return self.constant(node, value)

    def values_of(self, kind: TupleOf, texts: Iterator[str], literals: Iterator) -> Several:
        """The values of a tuple, whose numbers and arrays have these texts."""
        return Several(
            [
                self.values_of(one, texts, literals)
                if isinstance(one, TupleOf)
                else Value(next(texts), one, next(literals, None))
                for one in kind.parts
            ],
            kind.fields,
        )

    def of_Attribute(self, node):  # noqa: N802
        value = self.visit(node.value)
        if isinstance(value, Value) and isinstance(value.type, ArrayOf):
            kind = value.type
            if node.attr == "shape":
                return [
                    Value(one, Scalar(INT, None, True), int(one) if one.isdigit() else None) for one in kind.extents
                ]
            if node.attr == "size":
                return Value("(" + " * ".join(kind.extents or ("1LL",)) + ")", Scalar(INT, None, True))
            if node.attr == "ndim":
                return self.constant(node, kind.ndim)
            if node.attr == "dtype":
                return Object(kind.dtype)
            if node.attr == "T":
                steps = kind.steps()
                return Value(
                    value.text,
                    ArrayOf(
                        kind.dtype,
                        kind.ndim,
                        kind.root,
                        kind.extents[::-1],
                        kind.ndim > 1,
                        steps[::-1] if kind.ndim > 1 else (),
                    ),
                )
            if node.attr in ("real", "imag"):
                return self.parts_of_array(value, node.attr == "imag", node)
            self.fail(node, f"an array has shape, size, ndim, dtype, T, real and imag here, not {node.attr}")
        if isinstance(value, Value) and isinstance(value.type, Scalar):
            return self.part_of(node, value)
        if isinstance(value, Several) and node.attr in value.fields:
            return value[value.fields.index(node.attr)]
        if not isinstance(value, Object):
            self.fail(node, f"a tuple has no {node.attr} here")
        try:
            found = getattr(value.value, node.attr)
        except AttributeError:
            self.fail(node, f"{value.value!r} has no {node.attr}")
        return self.constant(node, found)

    def parts_of_array(self, value: Value, is_imaginary: bool, node) -> Value:
        """The real or the imaginary parts, as a view."""
        kind = value.type
        if kind.dtype.kind != "c":
            if is_imaginary:
                self.fail(node, f"an array of {kind.dtype} has no imaginary parts")
            return value
        part = np.dtype(_dtypes.float32 if kind.dtype.itemsize == 8 else FLOAT)
        strides = tuple(f"2 * ({one})" for one in kind.steps())
        return Value(
            f"(({c_type(part)}*){value.text} + {int(is_imaginary)})",
            ArrayOf(part, kind.ndim, kind.root, kind.extents, True, strides),
        )

    def part_of(self, node, value: Value):
        """Attributes of a number."""
        dtype = value.type.definite().dtype
        if node.attr in ("real", "imag"):
            if dtype.kind != "c":
                return value if node.attr == "real" else Value(self.literal(0, dtype), Scalar(dtype), 0)
            part = Scalar(_dtypes.float32 if dtype.itemsize == 8 else FLOAT)
            return Value(f"({self.cast(value, Scalar(dtype))}).{node.attr[:2]}", part)
        if node.attr == "dtype":
            return Object(dtype)
        self.fail(node, f"a number has no {node.attr} here")

    def of_Subscript(self, node):  # noqa: N802
        base = self.visit(node.value)
        if isinstance(base, list):
            return self.item_of(base, node)
        if not isinstance(base, Value) or not isinstance(base.type, ArrayOf):
            self.fail(node, "only arrays and tuples have elements")
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        parts = [self.slice_of(one) if isinstance(one, ast.Slice) else one for one in parts]
        if any(isinstance(one, ast.Constant) and one.value is Ellipsis for one in parts):
            place = next(i for i, one in enumerate(parts) if isinstance(one, ast.Constant) and one.value is Ellipsis)
            parts[place : place + 1] = [(None, None, None)] * (base.type.ndim - len(parts) + 1)
        indices: list = []
        for one in parts:
            if isinstance(one, tuple):
                indices.append(one)
                continue
            value = self.visit(one)
            indices += [
                self.checked_index(part, one)
                for part in (value if isinstance(value, list) else [self.scalar(value, one)])
            ]
        if len(indices) > base.type.ndim:
            self.fail(node, f"{len(indices)} indices for an array of {base.type.ndim} axes")
        if all(isinstance(one, Value) for one in indices):
            return self.element(base, indices, node)
        return self.sliced(base, indices, node)

    def item_of(self, base: list, node):
        """A number of a tuple, or a shorter tuple."""
        if isinstance(node.slice, ast.Slice):
            bounds = [
                None if one is None else self.integer(one).literal
                for one in (node.slice.lower, node.slice.upper, node.slice.step)
            ]
            if any(
                given is not None and known is None
                for given, known in zip((node.slice.lower, node.slice.upper, node.slice.step), bounds)
            ):
                self.fail(node, "the bounds of a tuple's slice must be known")
            return base[slice(*bounds)]
        index = self.number(node.slice)
        if index.literal is None and base:
            return self.element(self.tuple_as_array(base, node), [self.checked_index(index, node)], node)
        if not isinstance(index.literal, int) or not -len(base) <= index.literal < len(base):
            self.fail(node, "the place in a tuple must be within it")
        return base[index.literal]

    def slice_of(self, node: ast.Slice) -> tuple:
        """Texts of start, stop and step, None where they are absent."""
        return tuple(
            None if one is None or isinstance(one, ast.Constant) and one.value is None else self.bound(one)
            for one in (node.lower, node.upper, node.step)
        )

    def bound(self, node) -> Value:
        """A bound of a slice, which its place and its extent are computed from."""
        value = self.integer(node)
        if not calls_a_function(node) or self.conditional or value.literal is not None:
            return value
        c = c_type(value.type.definite().dtype)
        return Value(self.temporary(f"const {c} {{}} = {value.text};", node), value.type)

    def place(self, index: Value, extent: str) -> str:
        """The text of an index, which counts from the end where it is negative."""
        text = self.cast(index, Scalar(INT)) if index.type.definite().dtype != _dtypes.uint64 else index.text
        if isinstance(index.literal, int) and index.literal < 0:
            return f"({extent} + {text})"
        if not index.type.never_negative and index.type.definite().dtype.kind != "u":
            return f"st_wrap({text}, {extent})"
        return text

    def element(self, base: Value, indices: list, node) -> Value:
        """An element, or the row that fewer indices than axes name."""
        kind = base.type
        text = ""
        for i, (index, extent) in enumerate(zip(indices, kind.extents)):
            place = self.place(index, extent)
            if kind.strided:
                text = f"{text} + {place} * {kind.strides[i]}" if text else f"{place} * {kind.strides[i]}"
            else:
                text = f"({text} * {extent} + {place})" if text else place
        count = len(indices)
        rest = kind.extents[count:]
        if rest:
            if kind.strided:
                return Value(
                    f"({base.text} + {text or '0'})",
                    ArrayOf(kind.dtype, len(rest), kind.root, rest, True, kind.strides[count:]),
                )
            return Value(
                f"({base.text} + {' * '.join((text or '0', *rest))})", ArrayOf(kind.dtype, len(rest), kind.root, rest)
            )
        if kind.dtype == _dtypes.float16:
            # Half precision is for memory; arithmetic is float32's.
            place = f"{base.text}[{text or '0'}]"
            return Value(f"(float){place}", Scalar(_dtypes.float32), None, place)
        return Value(f"{base.text}[{text or '0'}]", Scalar(kind.dtype, None, kind.dtype.kind == "u"))

    def sliced(self, base: Value, indices: list, node) -> Value:
        """A view."""
        kind, steps = base.type, base.type.steps()
        self.unit.needs_slices = True
        offset, extents, strides = [], [], []
        contiguous = not kind.strided
        for i, (extent, step) in enumerate(zip(kind.extents, steps)):
            one = indices[i] if i < len(indices) else (None, None, None)
            if isinstance(one, Value):
                offset.append(f"{self.place(one, extent)} * ({step})")
                contiguous &= not extents
                continue
            if all(part is None for part in one):
                extents.append(extent)
                strides.append(step)
                continue
            start, stop, by = (
                self.cast(part, Scalar(INT)) if part is not None else none
                for part, none in zip(one, ("ST_NONE", "ST_NONE", "1LL"))
            )
            if one[2] is not None and one[2].literal == 0:
                self.fail(node, "a slice's step is not 0")
            offset.append(f"st_begin({start}, {by}, {extent}) * ({step})")
            # Rows that lie one after another stay so when only the first axis is cut, by a step of 1.
            contiguous &= not extents and (one[2] is None or one[2].literal == 1)
            extents.append(f"st_count({start}, {stop}, {by}, {extent})")
            strides.append(f"{by} * ({step})" if one[2] is not None else step)
        text = f"({base.text} + ({' + '.join(offset) or '0'}))"
        return Value(
            text,
            ArrayOf(
                kind.dtype,
                len(extents),
                kind.root,
                tuple(extents),
                not contiguous,
                () if contiguous else tuple(strides),
            ),
        )

    def checked_index(self, value, node) -> Value:
        if (
            not isinstance(value, Value)
            or not isinstance(value.type, Scalar)
            or value.type.definite().dtype.kind not in "biu"
        ):
            self.fail(node, "an index is made of integers")
        return value
