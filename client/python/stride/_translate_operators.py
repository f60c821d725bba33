"""Operators and comparisons inside translated functions."""

import ast

from stride._translate_types import BOOL, FLOAT, INT, Object, Scalar, Value, c_type, calls_a_function, promote


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


class Operators:
    """The part of Function that translates operators."""

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
