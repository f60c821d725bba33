"""Calls of Python's own functions inside translated functions."""

import ast
import cmath
import math

from stride import _dtypes
from stride._translate_types import BOOL, C_TYPES, FLOAT, INT, ArrayOf, Object, Scalar, Value, c_type, promote


_PRINTED = {"f": "double", "u": "unsigned long long"}
_COMPLEX = {"exp", "log", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"}


class Builtins:
    """The part of Function that translates calls of Python's own functions."""

    def round(self, node):
        value = self.number(node.args[0]) if node.args else self.one(node)
        kind = value.type.definite()
        if len(node.args) == 2:
            if kind.dtype.kind != "f":
                return value
            return Value(
                f"({c_type(kind.dtype)})st_round({self.cast(value, Scalar(FLOAT))}, "
                f"{self.cast(self.integer(node.args[1]), Scalar(INT))})",
                kind,
            )
        return value if kind.dtype.kind != "f" else Value(f"(long long)rint({value.text})", Scalar(INT))

    def total(self, node):
        """The sum of a tuple, or of an array of one axis."""
        value = self.visit(node.args[0])
        if isinstance(value, list):
            result = self.constant(node, 0)
            for one in value:
                result = self.binary(node, ast.Add(), result, self.scalar(one, node))
            return result
        if not isinstance(value, Value) or not isinstance(value.type, ArrayOf) or value.type.ndim != 1:
            self.fail(node, "sum takes a tuple or an array of one axis")
        index = f"j{self.num_loops}"
        element = self.element(value, [Value(index, Scalar(INT, None, True))], node)
        kind = promote(element.type, Scalar(None, int)).definite()
        result = self.temporary(f"{c_type(kind.dtype)} {{}} = 0;", node)
        self.emit(
            f"for (long long {index} = 0, end_{index} = {value.type.extents[0]}; {index} < end_{index}; ++{index}) "
            f"{result} += {element.text};"
        )
        return Value(result, kind)

    def print(self, node) -> Value:
        """printf, whose text goes to sys.stdout at the next synchronization or read."""
        formats, values = [], []
        for one in node.args:
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                formats.append(one.value.replace("%", "%%"))
                continue
            value = self.visit(one)
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, Object) and isinstance(part.value, str):
                    formats.append(part.value.replace("%", "%%"))
                    continue
                part = self.scalar(part, one)
                dtype = part.type.definite().dtype
                if dtype.kind == "c":
                    text = self.cast(part, Scalar(_dtypes.complex128))
                    formats.append("(%f%+fj)")
                    values += [f"({text}).re", f"({text}).im"]
                else:
                    formats.append("%f" if dtype.kind == "f" else "%llu" if dtype.kind == "u" else "%lld")
                    values.append(f"({_PRINTED.get(dtype.kind, 'long long')}){part.text}")
        for one in node.keywords:
            if one.arg not in ("sep", "end") or not isinstance(one.value, ast.Constant):
                self.fail(node, "print takes sep and end, as text, by keyword")
        options = {one.arg: str(one.value.value) for one in node.keywords}
        whole = options.get("sep", " ").join(formats) + options.get("end", "\n")
        text = "".join(
            f"\\{ord(letter):03o}" if ord(letter) < 32 else f"\\{letter}" if letter in '"\\' else letter
            for letter in whole
        )
        return Value(f'printf("{text}"{"".join(", " + one for one in values)})', None)

    def length(self, node) -> Value:
        value = self.visit(node.args[0]) if len(node.args) == 1 else None
        if isinstance(value, list):
            return self.constant(node, len(value))
        if isinstance(value, Object) and isinstance(value.value, (str, dict)):
            return self.constant(node, len(value.value))
        if not isinstance(value, Value) or not isinstance(value.type, ArrayOf) or not value.type.ndim:
            self.fail(node, "only arrays and tuples have a length")
        return Value(value.type.extents[0], Scalar(INT, None, True))

    def float_call(self, node, name: str, count: int, function=None) -> Value:
        if len(node.args) != count:
            self.fail(node, f"{name} takes {count} argument{'s' * (count > 1)}")
        values = [self.number(one) for one in node.args]
        kind = promote(*(one.type for one in values)).definite()
        if getattr(cmath, getattr(function, "__name__", ""), None) is function and function is not None:
            kind = promote(kind, Scalar(None, complex)).definite()
        kind = kind if kind.dtype.kind in "fc" else Scalar(FLOAT)
        if kind.dtype.kind == "c" and (count != 1 or name not in _COMPLEX):
            self.fail(node, f"{name} does not take complex numbers")
        return Value(f"{name}({', '.join(self.cast(one, kind) for one in values)})", kind)

    def rounded(self, node, function, name: str) -> Value:
        """math's give integers, NumPy's and ours floats."""
        value = self.one(node)
        kind = value.type.definite()
        if kind.dtype.kind != "f":
            return value
        is_math = function in (math.floor, math.ceil, math.trunc)
        text = f"{name}({self.cast(value, kind)})"
        return Value(f"(long long){text}", Scalar(INT)) if is_math else Value(text, kind)

    def least(self, node, name: str) -> Value:
        values = [self.number(one) for one in node.args] if len(node.args) != 1 else self.visit(node.args[0])
        if not isinstance(values, list) or len(values) < 2:
            self.fail(node, f"{name} needs two numbers or more, or a tuple of them")
        values = [self.scalar(one, node) for one in values]
        kind = promote(*(one.type for one in values)).definite()
        text = self.cast(values[0], kind)
        for one in values[1:]:
            text = f"st_{name}({text}, {self.cast(one, kind)})"
        signs = [one.type.never_negative for one in values]
        return Value(text, Scalar(kind.dtype, None, all(signs) if name == "min" else any(signs)))

    def absolute(self, node) -> Value:
        value = self.one(node)
        kind = value.type.definite()
        if kind.dtype.kind == "f":
            return Value(f"fabs({self.cast(value, kind)})", kind)
        if kind.dtype.kind in "bu":
            return value
        if kind.dtype.kind == "c":
            return Value(
                f"abs({self.cast(value, kind)})", Scalar(_dtypes.float32 if kind.dtype.itemsize == 8 else FLOAT)
            )
        return Value(
            f"({value.text} < 0 ? ({c_type(kind.dtype)})-{value.text} : {value.text})", Scalar(kind.dtype, None, True)
        )

    def conversion(self, node, function) -> Value:
        value = self.one(node)
        dtype = {int: INT, float: FLOAT, bool: BOOL}.get(function)
        if dtype is None:
            dtype = _dtypes.dtype_of(function)
        self.unit.needs_complex |= dtype.kind == "c"
        if value.type.definite().dtype.kind == "c" and dtype.kind not in "cb":
            self.fail(node, f"a complex number cannot become {dtype}; take its real or imag")
        if dtype not in C_TYPES:
            self.fail(node, f"{dtype} cannot be used in a kernel of Python")
        if function is int and value.type.definite().dtype == INT:
            return value
        if dtype == BOOL:
            return Value(f"({self.truth(node.args[0])})", Scalar(BOOL))
        return Value(self.converted(value, dtype), Scalar(dtype, None, value.type.never_negative), None)
