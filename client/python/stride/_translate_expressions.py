"""Expressions inside translated functions."""

import ast
import math

import numpy as np

from stride import _dtypes, cuda
from stride._translate_types import BOOL, C_TYPES, FLOAT, INT, ArrayOf, Object, Scalar, Value, c_type, promote

_PLACES = {getattr(getattr(cuda, group), axis): f"{group}.{axis}" for group in ("threadIdx", "blockIdx", "blockDim", "gridDim") for axis in "xyz"}
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"}
_COMPARED = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_KEEPS_SIGN = (ast.Add, ast.Mult, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.LShift, ast.RShift)


class Expressions:
    """The part of Function that translates expressions. `visit` gives a Value, a list of them (a tuple), an Object, or None for a call that gives nothing."""

    def visit(self, node):
        """A Value, a list of them (a tuple), an Object, or None for a call that gives nothing."""
        method = getattr(self, f"of_{type(node).__name__}", None)
        if method is None:
            self.fail(node, f"{type(node).__name__} cannot be translated; there are arithmetic, comparisons, and/or/not, if-else, indices, and calls "
                            "of math's functions and of other functions")
        return method(node)

    def number(self, node) -> Value:
        value = self.visit(node)
        if not isinstance(value, Value) or not isinstance(value.type, Scalar):
            self.fail(node, "a number is needed here")
        return value

    def integer(self, node) -> Value:
        value = self.number(node)
        if value.type.definite().dtype.kind not in "biu":
            self.fail(node, f"an integer is needed here, not {value.type.definite().dtype}")
        return value

    def truth(self, node) -> str:
        value = self.number(node)
        return value.text if value.type.definite().dtype == BOOL else f"({value.text}) != 0"

    def dtype(self, node) -> np.dtype:
        value = self.visit(node)
        try:
            return _dtypes.dtype_of(value.value if isinstance(value, Object) else value.literal)
        except (TypeError, AttributeError):
            self.fail(node, "a dtype is needed here")

    def cast(self, value: Value, to: Scalar) -> str:
        to = to.definite()
        if value.type.dtype is None and value.literal is not None:
            return self.literal(value.literal, to.dtype)
        return value.text if value.type.definite().dtype == to.dtype else f"({c_type(to.dtype)})({value.text})"

    @staticmethod
    def literal(value, dtype: np.dtype) -> str:
        if dtype.kind == "b":
            return "true" if value else "false"
        if dtype.kind == "f":
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
        suffix = {4: "", 8: "LL"}.get(dtype.itemsize, "") if dtype.kind == "i" else {4: "U", 8: "ULL"}.get(dtype.itemsize, "")
        return f"({value}{suffix})" if dtype.itemsize >= 4 else f"(({c_type(dtype)}){value})"

    def constant(self, node, value):
        if isinstance(value, np.generic) and value.dtype in C_TYPES:
            dtype = _dtypes.dtype_of(value.dtype)
            return Value(self.literal(value.item(), dtype), Scalar(dtype, None, bool(value >= 0)), value.item())
        if isinstance(value, (bool, int, float)):
            kind = Scalar(None, type(value), value >= 0)
            return Value(self.literal(value, kind.definite().dtype), kind, value)
        if isinstance(value, tuple):
            return [self.constant(node, one) for one in value]
        if isinstance(value, cuda.Intrinsic):
            if value in _PLACES:
                return Value(f"(long long){_PLACES[value]}", Scalar(INT, None, True))
            if value is cuda.laneid:
                return Value("(long long)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32)", Scalar(INT, None, True))
            return self.constant(node, 32) if value is cuda.warpsize else Object(value)
        if isinstance(value, (np.ndarray, list, dict, str)) and not isinstance(value, str):
            self.fail(node, f"a {type(value).__name__} from outside cannot be used; pass it as an argument")
        return Object(value)

    def of_Constant(self, node):  # noqa: N802
        if not isinstance(node.value, (bool, int, float, str)):
            self.fail(node, f"{node.value!r} cannot be used in a kernel")
        return self.constant(node, node.value)

    def of_Tuple(self, node):  # noqa: N802
        return [self.visit(one) for one in node.elts]

    def of_Name(self, node):  # noqa: N802
        kind = self.variables.get(node.id)
        if kind is not None:
            return Value(f"v_{node.id}", kind)
        try:
            value = self.source.lookup(node.id)
        except (AttributeError, ValueError):
            self.fail(node, f"{node.id} has no value here")
        return self.constant(node, value)

    def of_Attribute(self, node):  # noqa: N802
        value = self.visit(node.value)
        if isinstance(value, Value) and isinstance(value.type, ArrayOf):
            kind = value.type
            if node.attr == "shape":
                return [Value(one, Scalar(INT, None, True), int(one) if one.isdigit() else None) for one in kind.extents]
            if node.attr == "size":
                return Value("(" + " * ".join(kind.extents or ("1LL",)) + ")", Scalar(INT, None, True))
            if node.attr == "ndim":
                return self.constant(node, kind.ndim)
            if node.attr == "dtype":
                return Object(kind.dtype)
            self.fail(node, f"an array has shape, size, ndim and dtype here, not {node.attr}")
        if not isinstance(value, Object):
            self.fail(node, f"a number has no {node.attr} here")
        try:
            found = getattr(value.value, node.attr)
        except AttributeError:
            self.fail(node, f"{value.value!r} has no {node.attr}")
        return self.constant(node, found)

    def of_Subscript(self, node):  # noqa: N802
        base = self.visit(node.value)
        if isinstance(base, list):
            index = self.number(node.slice)
            if not isinstance(index.literal, int) or not -len(base) <= index.literal < len(base):
                self.fail(node, "the place in a tuple must be known, and within it")
            return base[index.literal]
        if not isinstance(base, Value) or not isinstance(base.type, ArrayOf):
            self.fail(node, "only arrays and tuples have elements")
        kind = base.type
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(one, ast.Slice) for one in parts):
            self.fail(node, "slices cannot be translated; index single elements")
        if len(parts) == 1 and isinstance(self.visit(parts[0]), list):
            indices = [self.checked_index(one, parts[0]) for one in self.visit(parts[0])]
        else:
            indices = [self.integer(one) for one in parts]
        if len(indices) > kind.ndim:
            self.fail(node, f"{len(indices)} indices for an array of {kind.ndim} axes")
        text = ""
        for index, extent in zip(indices, kind.extents):
            place = self.cast(index, Scalar(INT)) if index.type.definite().dtype != _dtypes.uint64 else index.text
            if isinstance(index.literal, int) and index.literal < 0:
                place = f"({extent} + {place})"
            elif not index.type.never_negative and index.type.definite().dtype.kind != "u":
                place = f"st_wrap({place}, {extent})"
            text = f"({text} * {extent} + {place})" if text else place
        rest = kind.extents[len(indices):]
        if rest:
            return Value(f"({base.text} + {' * '.join((text, *rest))})", ArrayOf(kind.dtype, len(rest), kind.root, rest))
        if kind.dtype == _dtypes.float16:
            # Half precision is for memory; arithmetic is float32's.
            element = Value(f"{base.text}[{text or '0'}]", Scalar(_dtypes.float32))
            return element
        return Value(f"{base.text}[{text or '0'}]", Scalar(kind.dtype, None, kind.dtype.kind == "u"))

    def checked_index(self, value, node) -> Value:
        if not isinstance(value, Value) or not isinstance(value.type, Scalar) or value.type.definite().dtype.kind not in "biu":
            self.fail(node, "an index is made of integers")
        return value

    def of_BinOp(self, node):  # noqa: N802
        return self.binary(node, node.op, self.number(node.left), self.number(node.right))

    def binary(self, node, op, left: Value, right: Value) -> Value:
        if left.literal is not None and right.literal is not None and left.type.dtype is None and right.type.dtype is None:
            return self.folded(node, op, left, right)
        kind = promote(left.type, right.type).definite()
        never_negative = left.type.never_negative and right.type.never_negative and isinstance(op, _KEEPS_SIGN)
        if kind.dtype == BOOL and not isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
            kind = Scalar(INT)
        if isinstance(op, ast.Div):
            kind = kind if kind.dtype.kind == "f" else Scalar(FLOAT)
            return Value(f"({self.cast(left, kind)} / {self.cast(right, kind)})", kind)
        if isinstance(op, ast.Pow):
            return self.power(node, left, right)
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

    def folded(self, node, op, left: Value, right: Value) -> Value:
        try:
            value = eval(compile(ast.Expression(ast.fix_missing_locations(ast.BinOp(  # noqa: S307, two literals
                ast.Constant(left.literal), op, ast.Constant(right.literal)))), "", "eval"))
        except (ArithmeticError, TypeError, ValueError) as error:
            self.fail(node, str(error))
        if isinstance(value, complex):
            self.fail(node, "complex numbers cannot be used in a kernel of Python")
        return self.constant(node, value)

    def power(self, node, left: Value, right: Value) -> Value:
        kind = promote(left.type, right.type).definite()
        if kind.dtype == BOOL:
            kind = Scalar(INT)
        exponent = right.type.definite().dtype
        if isinstance(right.literal, int) and right.literal < 0 and kind.dtype.kind != "f":
            kind = Scalar(FLOAT)
        if exponent.kind in "biu" and (kind.dtype.kind != "f" or isinstance(right.literal, int) and abs(right.literal) <= 64):
            return Value(f"st_power({self.cast(left, kind)}, {self.cast(right, Scalar(INT))})", kind)
        if right.literal == 0.5:
            return Value(f"sqrt({self.cast(left, kind)})", kind)
        return Value(f"pow({self.cast(left, kind)}, {self.cast(right, kind)})", kind)

    def of_UnaryOp(self, node):  # noqa: N802
        value = self.number(node.operand)
        if isinstance(node.op, ast.Not):
            return Value(f"!({self.truth(node.operand)})", Scalar(BOOL))
        if value.literal is not None and value.type.dtype is None:
            return self.constant(node, {ast.USub: lambda x: -x, ast.UAdd: lambda x: +x, ast.Invert: lambda x: ~x}[type(node.op)](value.literal))
        kind = value.type.definite()
        kind = Scalar(INT) if kind.dtype == BOOL else Scalar(kind.dtype)
        if isinstance(node.op, ast.Invert) and kind.dtype.kind == "f":
            self.fail(node, f"~ takes integers, not {kind.dtype}")
        symbol = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}[type(node.op)]
        return Value(f"({c_type(kind.dtype)})({symbol}{self.cast(value, kind)})", kind)

    def of_BoolOp(self, node):  # noqa: N802
        values = [self.number(one) for one in node.values]
        is_and = isinstance(node.op, ast.And)
        if all(one.type.definite().dtype == BOOL for one in values):
            return Value("(" + (" && " if is_and else " || ").join(one.text for one in values) + ")", Scalar(BOOL))
        kind = promote(*(one.type for one in values)).definite()
        text = self.cast(values[-1], kind)
        for one in reversed(values[:-1]):
            first = self.cast(one, kind)
            text = f"(({first}) != 0 ? {text} : {first})" if is_and else f"(({first}) != 0 ? {first} : {text})"
        return Value(text, kind)

    def of_Compare(self, node):  # noqa: N802
        values = [self.number(one) for one in (node.left, *node.comparators)]
        parts = []
        for op, left, right in zip(node.ops, values, values[1:]):
            if type(op) not in _COMPARED:
                self.fail(node, f"the comparison {type(op).__name__} cannot be translated")
            kind = promote(left.type, right.type).definite()
            parts.append(f"{self.cast(left, kind)} {_COMPARED[type(op)]} {self.cast(right, kind)}")
        return Value("(" + " && ".join(parts) + ")", Scalar(BOOL))

    def of_IfExp(self, node):  # noqa: N802
        body, other = self.number(node.body), self.number(node.orelse)
        kind = promote(body.type, other.type)
        never_negative = body.type.never_negative and other.type.never_negative
        definite = kind.definite()
        return Value(f"({self.truth(node.test)} ? {self.cast(body, definite)} : {self.cast(other, definite)})",
                     Scalar(kind.dtype, kind.weak, never_negative))
