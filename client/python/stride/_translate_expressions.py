"""Expressions inside translated functions."""

import ast
import math
from typing import Iterator

import numpy as np

from stride import _dtypes, cuda
from stride._array import Array
from stride._translate_types import (
    BOOL,
    C_TYPES,
    FLOAT,
    INT,
    ArrayOf,
    Object,
    Scalar,
    Several,
    TupleOf,
    Value,
    c_type,
    calls_a_function,
    leaves,
    promote,
)

_PLACES = {
    getattr(getattr(cuda, group), axis): f"{group}.{axis}"
    for group in ("threadIdx", "blockIdx", "blockDim", "gridDim")
    for axis in "xyz"
}
_OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_COMPARED = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_KEEPS_SIGN = (ast.Add, ast.Mult, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.LShift, ast.RShift)


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

    def of_BinOp(self, node):  # noqa: N802
        return self.binary(node, node.op, self.number(node.left), self.number(node.right))

    def binary(self, node, op, left: Value, right: Value) -> Value:
        if (
            left.literal is not None
            and right.literal is not None
            and left.type.dtype is None
            and right.type.dtype is None
        ):
            return self.folded(node, op, left, right)
        kind = promote(left.type, right.type).definite()
        if kind.dtype.kind == "c":
            return self.complex_binary(node, op, left, right, kind)
        never_negative = left.type.never_negative and right.type.never_negative and isinstance(op, _KEEPS_SIGN)
        if kind.dtype == BOOL and not isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
            kind = Scalar(INT)
        if isinstance(op, ast.Div):
            kind = kind if kind.dtype.kind == "f" else Scalar(FLOAT)
            return Value(f"({self.cast(left, kind)} / {self.cast(right, kind)})", kind)
        if isinstance(op, ast.Pow):
            return self.power_of(node, left, right)
        a, b = self.cast(left, kind), self.cast(right, kind)
        if isinstance(op, (ast.FloorDiv, ast.Mod)):
            divides = isinstance(op, ast.FloorDiv)
            if kind.dtype.kind == "f":
                return Value(f"st_float_{'floor_divide' if divides else 'modulo'}({a}, {b})", kind)
            if never_negative or kind.dtype.kind == "u":
                text = f"({a} {'/' if divides else '%'} {b})"
            else:
                text = f"st_{'floor_divide' if divides else 'modulo'}({a}, {b})"
        elif type(op) in _OPERATORS:
            if kind.dtype.kind == "f" and not isinstance(op, (ast.Add, ast.Sub, ast.Mult)):
                self.fail(node, f"{_OPERATORS[type(op)]} takes integers, not {kind.dtype}")
            text = f"({a} {_OPERATORS[type(op)]} {b})"
        else:
            self.fail(node, f"the operator {type(op).__name__} cannot be translated")
        if kind.dtype.itemsize < 4 and kind.dtype != BOOL:
            text = f"({c_type(kind.dtype)}){text}"
        return Value(text, Scalar(kind.dtype, None, never_negative or kind.dtype.kind == "u"))

    def complex_binary(self, node, op, left: Value, right: Value, kind: Scalar) -> Value:
        a, b = self.cast(left, kind), self.cast(right, kind)
        if isinstance(op, ast.Pow):
            if isinstance(right.literal, int) and 0 <= right.literal <= 64:
                return Value(f"st_power({a}, {right.literal}LL)", kind)
            return Value(f"pow({a}, {b})", kind)
        symbol = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}.get(type(op))
        if symbol is None:
            self.fail(node, f"the operator {type(op).__name__} does not take complex numbers")
        return Value(f"({a} {symbol} {b})", kind)

    def folded(self, node, op, left: Value, right: Value) -> Value:
        try:
            value = eval(
                compile(
                    ast.Expression(
                        ast.fix_missing_locations(
                            ast.BinOp(  # noqa: S307, two literals
                                ast.Constant(left.literal), op, ast.Constant(right.literal)
                            )
                        )
                    ),
                    "",
                    "eval",
                )
            )
        except (ArithmeticError, TypeError, ValueError) as error:
            self.fail(node, str(error))
        return self.constant(node, value)

    def power_of(self, node, left: Value, right: Value) -> Value:
        kind = promote(left.type, right.type).definite()
        if kind.dtype.kind == "c":
            return self.complex_binary(node, ast.Pow(), left, right, kind)
        if kind.dtype == BOOL:
            kind = Scalar(INT)
        exponent = right.type.definite().dtype
        if isinstance(right.literal, int) and right.literal < 0 and kind.dtype.kind != "f":
            kind = Scalar(FLOAT)
        if exponent.kind in "biu" and (
            kind.dtype.kind != "f" or isinstance(right.literal, int) and abs(right.literal) <= 64
        ):
            return Value(f"st_power({self.cast(left, kind)}, {self.cast(right, Scalar(INT))})", kind)
        if right.literal == 0.5:
            return Value(f"sqrt({self.cast(left, kind)})", kind)
        return Value(f"pow({self.cast(left, kind)}, {self.cast(right, kind)})", kind)

    def of_UnaryOp(self, node):  # noqa: N802
        value = self.number(node.operand)
        if isinstance(node.op, ast.Not):
            return Value(f"!({self.truth(node.operand)})", Scalar(BOOL))
        if value.literal is not None and value.type.dtype is None:
            return self.constant(
                node,
                {ast.USub: lambda x: -x, ast.UAdd: lambda x: +x, ast.Invert: lambda x: ~x}[type(node.op)](
                    value.literal
                ),
            )
        kind = value.type.definite()
        kind = Scalar(INT) if kind.dtype == BOOL else Scalar(kind.dtype)
        if isinstance(node.op, ast.Invert) and kind.dtype.kind in "fc":
            self.fail(node, f"~ takes integers, not {kind.dtype}")
        symbol = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}[type(node.op)]
        return Value(f"({c_type(kind.dtype)})({symbol}{self.cast(value, kind)})", kind)

    def of_BoolOp(self, node):  # noqa: N802
        self.conditional += 1
        values = [self.number(one) for one in node.values]
        self.conditional -= 1
        is_and = isinstance(node.op, ast.And)
        if all(one.type.definite().dtype == BOOL for one in values):
            return Value("(" + (" && " if is_and else " || ").join(one.text for one in values) + ")", Scalar(BOOL))
        kind = promote(*(one.type for one in values)).definite()
        text = self.cast(values[-1], kind)
        for part, one in zip(reversed(node.values[:-1]), reversed(values[:-1])):
            first = self.cast(one, kind)
            is_called = calls_a_function(part)
            name = "first" if is_called else first
            text = f"(({name}) != 0 ? {text} : {name})" if is_and else f"(({name}) != 0 ? {name} : {text})"
            if is_called:  # it is computed once
                c = c_type(kind.dtype)
                text = f"([&]() -> {c} {{ const {c} first = {first}; return {text}; }}())"
        return Value(text, kind)

    def of_Compare(self, node):  # noqa: N802
        values = [self.visit(one) for one in (node.left, *node.comparators)]
        held = []
        for i, one in enumerate(node.comparators[:-1], 1):  # each is compared twice, and computed once
            if calls_a_function(one) and isinstance(values[i], Value) and isinstance(values[i].type, Scalar):
                name = f"m{len(held)}"
                held.append(f"const {c_type(values[i].type.definite().dtype)} {name} = {values[i].text}; ")
                values[i] = Value(name, values[i].type)
        parts = [self.compared(node, op, left, right) for op, left, right in zip(node.ops, values, values[1:])]
        text = "(" + " && ".join(parts) + ")"
        return Value(f"([&] {{ {''.join(held)}return {text}; }}())" if held else text, Scalar(BOOL))

    def compared(self, node, op, left, right) -> str:
        if isinstance(op, (ast.In, ast.NotIn)):
            if not isinstance(right, list):
                self.fail(node, "in takes a tuple")
            text = " || ".join(self.compared(node, ast.Eq(), left, one) for one in right) or "false"
            return f"({text})" if isinstance(op, ast.In) else f"!({text})"
        if isinstance(left, list) and isinstance(right, list) and isinstance(op, (ast.Eq, ast.NotEq)):
            same = len(left) == len(right)
            text = " && ".join(self.compared(node, ast.Eq(), a, b) for a, b in zip(left, right)) if same else "false"
            return f"({text or 'true'})" if isinstance(op, ast.Eq) else f"!({text or 'true'})"
        if isinstance(op, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)) and (
            isinstance(left, Object) or isinstance(right, Object)
        ):
            same = (
                isinstance(left, Object)
                and isinstance(right, Object)
                and (left.value is right.value or left.value == right.value)
            )
            return "true" if same == isinstance(op, (ast.Is, ast.Eq)) else "false"
        left, right = self.scalar(left, node), self.scalar(right, node)
        if type(op) not in _COMPARED:
            self.fail(node, f"the comparison {type(op).__name__} cannot be translated")
        kind = promote(left.type, right.type).definite()
        if kind.dtype.kind == "c" and not isinstance(op, (ast.Eq, ast.NotEq)):
            self.fail(node, "complex numbers have no order")
        return f"{self.cast(left, kind)} {_COMPARED[type(op)]} {self.cast(right, kind)}"

    def of_NamedExpr(self, node):  # noqa: N802
        if self.conditional:
            self.fail(node, ":= within a condition that may not be evaluated cannot be translated")
        self.store(node.target, node.value, node)
        return self.visit(ast.copy_location(ast.Name(node.target.id, ast.Load()), node))

    def of_IfExp(self, node):  # noqa: N802
        self.conditional += 1
        body, other = self.number(node.body), self.number(node.orelse)
        self.conditional -= 1
        kind = promote(body.type, other.type)
        never_negative = body.type.never_negative and other.type.never_negative
        definite = kind.definite()
        return Value(
            f"({self.truth(node.test)} ? {self.cast(body, definite)} : {self.cast(other, definite)})",
            Scalar(kind.dtype, kind.weak, never_negative),
        )
