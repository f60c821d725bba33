"""Calls inside translated functions: of functions of mathematics, and of other Python functions."""

import ast
import builtins
import cmath
import inspect
import math
import operator
from dataclasses import replace
from typing import Dict

import numpy as np

from stride import _dtypes, _errors, cuda
from stride._signatures import ElementType
from stride._translate_cuda import _SHUFFLES
from stride._translate_source import Source
from stride._translate_types import (
    BOOL, FLOAT, INT, ArrayOf, Object, Scalar, TupleOf, Unknown, UnknownValue, Value, c_type, flattened, leaves,
    promote, with_memory,
)


def _float_functions() -> Dict[object, str]:
    names = {
        "sin": "sin",
        "cos": "cos",
        "tan": "tan",
        "asin": "asin",
        "acos": "acos",
        "atan": "atan",
        "sinh": "sinh",
        "cosh": "cosh",
        "tanh": "tanh",
        "asinh": "asinh",
        "acosh": "acosh",
        "atanh": "atanh",
        "exp": "exp",
        "expm1": "expm1",
        "log": "log",
        "log2": "log2",
        "log10": "log10",
        "log1p": "log1p",
        "sqrt": "sqrt",
        "cbrt": "cbrt",
        "erf": "erf",
        "erfc": "erfc",
        "gamma": "tgamma",
        "lgamma": "lgamma",
        "fabs": "fabs",
        "exp2": "exp2",
        "arcsin": "asin",
        "arccos": "acos",
        "arctan": "atan",
        "arcsinh": "asinh",
        "arccosh": "acosh",
        "arctanh": "atanh",
        "rint": "rint",
        "exp10": "exp10",
        "sinpi": "sinpi",
        "cospi": "cospi",
    }
    return _by_object(names)


def _by_object(names, *modules) -> Dict[object, str]:
    """By function, wherever it may come from: math, numpy, stride."""
    import stride

    if modules:
        return {
            getattr(module, name): target
            for module in modules
            for name, target in names.items()
            if hasattr(module, name)
        }
    return {
        getattr(module, name): target
        for module in (math, cmath, np, stride)
        for name, target in names.items()
        if hasattr(module, name)
    }


class _Tables:
    """Made at the first use, once the package is imported."""

    _made = None

    @classmethod
    def get(cls):
        import stride

        if cls._made is None:
            tables = cls()
            tables.floats = _float_functions()
            tables.floats2 = _by_object(
                {
                    "atan2": "atan2",
                    "arctan2": "atan2",
                    "hypot": "hypot",
                    "copysign": "copysign",
                    "fmod": "fmod",
                    "nextafter": "nextafter",
                    "remainder": "remainder",
                }
            )
            tables.floats2.pop(np.remainder, None)  # Python's %, while math's is C's
            tables.floats2.pop(getattr(stride, "remainder", None), None)
            tables.modulo = _by_object({"mod": ""}, np, stride)
            tables.modulo.update(_by_object({"remainder": ""}, np, stride))
            tables.rounded = _by_object({"floor": "floor", "ceil": "ceil", "trunc": "trunc"})
            tables.asked = _by_object({"isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite"})
            tables.least = {
                builtins.min: "min",
                builtins.max: "max",
                np.minimum: "min",
                np.maximum: "max",
                **_by_object({"minimum": "min", "maximum": "max"}),
            }
            tables.absolute = [builtins.abs, *_by_object({"abs": "", "absolute": ""})]
            tables.square = _by_object({"square": ""})
            tables.sign = _by_object({"sign": ""})
            tables.conjugate = _by_object({"conj": "", "conjugate": ""}, np, stride)
            tables.power = [builtins.pow, *_by_object({"pow": "", "power": ""})]
            # Ours are Python functions, which must not be translated themselves.
            tables.all = {
                *tables.floats,
                *tables.floats2,
                *tables.rounded,
                *tables.asked,
                *tables.least,
                *tables.absolute,
                *tables.power,
                *tables.modulo,
                *tables.square,
                *tables.sign,
                *tables.conjugate,
            }
            cls._made = tables
        return cls._made
# The functions of Python's module operator.
_BINARY = {
    operator.add: ast.Add,
    operator.sub: ast.Sub,
    operator.mul: ast.Mult,
    operator.truediv: ast.Div,
    operator.floordiv: ast.FloorDiv,
    operator.mod: ast.Mod,
    operator.pow: ast.Pow,
    operator.and_: ast.BitAnd,
    operator.or_: ast.BitOr,
    operator.xor: ast.BitXor,
    operator.lshift: ast.LShift,
    operator.rshift: ast.RShift,
    operator.iadd: ast.Add,
    operator.isub: ast.Sub,
    operator.imul: ast.Mult,
    operator.itruediv: ast.Div,
}
_COMPARISONS = {
    operator.lt: ast.Lt,
    operator.le: ast.LtE,
    operator.gt: ast.Gt,
    operator.ge: ast.GtE,
    operator.eq: ast.Eq,
    operator.ne: ast.NotEq,
}
_UNARY = {operator.neg: ast.USub, operator.pos: ast.UAdd, operator.invert: ast.Invert, operator.not_: ast.Not}


def known_object(value, kind):
    """An Object for a known number or tuple of numbers, in place of its type."""
    if isinstance(kind, Scalar) and value.literal is not None:
        return Object(value.literal)
    if isinstance(kind, TupleOf) and all(getattr(one, "literal", None) is not None for one in value):
        return Object(tuple(one.literal for one in value))
    return kind


class Calls:
    """The part of Function that translates calls."""

    def of_Call(self, node):  # noqa: N802
        method = self.method_of(node)
        if method is not None:
            return method
        called = self.visit(node.func)
        if not isinstance(called, Object):
            self.fail(node, "only functions can be called")
        if any(isinstance(one, ast.Starred) for one in node.args):
            node = self.with_parts(node)
        function = called.value
        try:
            hash(function)
        except TypeError:
            self.fail(node, f"{function!r} cannot be called in a kernel")
        if isinstance(function, Source):
            return self.call(node, function)
        if function is print:
            return self.print(node)
        own = getattr(function, "python_function", function)
        if inspect.isfunction(own) and own not in _Tables.get().all:
            return self.call(node, Source(own), getattr(function, "signatures", ()))
        if function in _SHUFFLES and [one.arg for one in node.keywords] == ["width"]:
            node = ast.copy_location(ast.Call(node.func, [*node.args, node.keywords[0].value], []), node)
        if node.keywords:
            self.fail(node, "arguments by keyword can be given to Python functions alone")
        for translate in (self.cuda_call, self.math_call, self.python_call):
            found = translate(node, function)
            if found is not None:
                return found
        link = getattr(function, "linked_signature", None)
        if link is not None:
            return self.linked(node, function)
        self.fail(node, f"{getattr(function, '__name__', function)!r} cannot be called in a kernel")

    def with_parts(self, node):
        """A call whose `*tuple` arguments are replaced by the tuple's elements."""
        arguments = []
        for one in node.args:
            if not isinstance(one, ast.Starred):
                arguments.append(one)
                continue
            value = self.visit(one.value)
            if not isinstance(value, list):
                self.fail(node, "only tuples can be given by *")
            arguments += [
                ast.copy_location(ast.Subscript(one.value, ast.Constant(i), ast.Load()), one) for i in range(len(value))
            ]
        return ast.fix_missing_locations(ast.copy_location(ast.Call(node.func, arguments, node.keywords), node))

    def method_of(self, node):
        """Methods of numbers; None for any other call."""
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in ("conjugate", "conj") or node.args:
            return None
        value = self.visit(node.func.value)
        return self.conjugate(value, node) if isinstance(value, Value) and isinstance(value.type, Scalar) else None

    def conjugate(self, value: Value, node) -> Value:
        kind = value.type.definite()
        return Value(f"conj({self.cast(value, kind)})", kind) if kind.dtype.kind == "c" else value

    def math_call(self, node, function):
        """Functions of math, cmath, NumPy and ours."""
        tables = _Tables.get()
        if function in tables.floats and len(node.args) == 2:
            return self.into_array(node, tables.floats[function])
        if function in tables.floats:
            return self.float_call(node, tables.floats[function], 1, function)
        if function in tables.floats2:
            return self.float_call(node, tables.floats2[function], 2)
        if function in tables.rounded:
            return self.rounded(node, function, tables.rounded[function])
        if function in tables.asked:
            value = self.one(node)
            kind = promote(value.type, Scalar(None, float)).definite()
            return Value(f"(bool){tables.asked[function]}({self.cast(value, kind)})", Scalar(BOOL))
        if function in tables.least:
            return self.least(node, tables.least[function])
        if function in tables.absolute:
            return self.absolute(node)
        if function is math.pow:
            return self.float_call(node, "pow", 2)
        if function in tables.power and len(node.args) == 2:
            return self.power_of(node, *map(self.number, node.args))
        if function in tables.modulo and len(node.args) == 2:
            return self.binary(node, ast.Mod(), *map(self.number, node.args))
        if function in tables.square:
            return self.binary(node, ast.Mult(), self.one(node), self.one(node))
        if function in tables.conjugate:
            return self.conjugate(self.one(node), node)
        if function in tables.sign:
            value = self.one(node)
            kind = value.type.definite()
            text = self.cast(value, kind)
            c = c_type(kind.dtype)
            return Value(f"({text} > 0 ? ({c})1 : {text} < 0 ? ({c})-1 : {text})", Scalar(kind.dtype))
        if function in (math.degrees, math.radians, np.degrees, np.radians, np.rad2deg, np.deg2rad):
            to_degrees = function in (math.degrees, np.degrees, np.rad2deg)
            factor = self.constant(node, 180 / math.pi if to_degrees else math.pi / 180)
            return self.binary(node, ast.Mult(), self.one(node), factor)
        if function is math.ldexp:
            value, exponent = self.number(node.args[0]), self.integer(node.args[1])
            kind = promote(value.type, Scalar(None, float)).definite()
            return Value(f"ldexp({self.cast(value, kind)}, {self.cast(exponent, Scalar(_dtypes.int32))})", kind)
        if function in (math.modf, math.frexp):
            return self.split(node, function is math.modf)
        if function in (cmath.phase, cmath.polar, cmath.rect):
            return self.polar(node, function)
        return None

    def into_array(self, node, name: str) -> Value:
        """A function of NumPy's with an array of one axis for its results: `np.sin(x, out)`."""
        given, out = map(self.visit, node.args)
        if not isinstance(out, Value) or not isinstance(out.type, ArrayOf) or out.type.ndim != 1:
            self.fail(node, "the second argument is an array of one axis for the results")
        self.mark_written(node.args[1], node)
        place = Value(f"k{self.num_loops}", Scalar(INT, None, True))
        self.num_loops += 1
        is_array = isinstance(given, Value) and isinstance(given.type, ArrayOf)
        value = self.element(given, [place], node) if is_array else self.scalar(given, node)
        kind = value.type.definite() if value.type.definite().dtype.kind == "f" else Scalar(FLOAT)
        result, target = Value(f"{name}({self.cast(value, kind)})", kind), self.element(out, [place], node)
        k = place.text
        self.emit(
            f"for (long long {k} = 0, end_{k} = {out.type.extents[0]}; {k} < end_{k}; ++{k}) "
            f"{target.lvalue()} = {self.cast(result, Scalar(target.type.dtype))};"
        )
        return Value("(void)0", None)

    def split(self, node, is_modf: bool) -> list:
        """The two results of modf and frexp."""
        value = self.one(node)
        kind = promote(value.type, Scalar(None, float)).definite()
        second = kind if is_modf else Scalar(_dtypes.int32)
        other = self.temporary(f"{c_type(second.dtype)} {{}} = 0;", node)
        name = ("modf" if is_modf else "frexp") + "f" * (kind.dtype.itemsize == 4)
        first = self.temporary(f"{c_type(kind.dtype)} {{}} = {name}({self.cast(value, kind)}, &{other});", node)
        return [Value(first, kind), Value(other, second)]

    def polar(self, node, function):
        if function is cmath.rect:
            parts = [self.cast(self.number(one), Scalar(FLOAT)) for one in node.args]
            self.unit.needs_complex = True
            return Value(f"polar<double>({', '.join(parts)})", Scalar(_dtypes.complex128))
        value = self.one(node)
        kind = promote(value.type, Scalar(None, complex)).definite()
        part = Scalar(_dtypes.float32 if kind.dtype.itemsize == 8 else FLOAT)
        text = self.cast(value, kind)
        phase = Value(f"arg({text})", part)
        return phase if function is cmath.phase else [Value(f"abs({text})", part), phase]

    def python_call(self, node, function):
        """Python's own functions and types."""
        if function is len:
            return self.length(node)
        if function is round:
            return self.round(node)
        if function is divmod and len(node.args) == 2:
            a, b = map(self.number, node.args)
            return [self.binary(node, ast.FloorDiv(), a, b), self.binary(node, ast.Mod(), a, b)]
        if function is complex and 1 <= len(node.args) <= 2:
            parts = [self.number(one) for one in node.args]
            if len(parts) == 1:
                return Value(self.cast(parts[0], Scalar(_dtypes.complex128)), Scalar(_dtypes.complex128))
            self.unit.needs_complex = True
            return Value(
                f"st_complex<double>({', '.join(self.cast(one, Scalar(FLOAT)) for one in parts)})",
                Scalar(_dtypes.complex128),
            )
        if function in (tuple, list) and len(node.args) == 1:
            value = self.visit(node.args[0])
            return value if isinstance(value, list) else None
        if function is sum and len(node.args) == 1:
            return self.total(node)
        if function is np.dtype and len(node.args) == 1:
            return Object(self.dtype(node.args[0]))
        if function in _BINARY and len(node.args) == 2:
            return self.binary(node, _BINARY[function](), *map(self.number, node.args))
        if function in _COMPARISONS and len(node.args) == 2:
            return self.visit(
                ast.copy_location(ast.Compare(node.args[0], [_COMPARISONS[function]()], [node.args[1]]), node)
            )
        if function in _UNARY and len(node.args) == 1:
            return self.visit(ast.copy_location(ast.UnaryOp(_UNARY[function](), node.args[0]), node))
        if function in (any, all) and len(node.args) == 1 and isinstance(self.visit(node.args[0]), list):
            either = ast.Or() if function is any else ast.And()
            parts = [
                ast.copy_location(ast.Subscript(node.args[0], ast.Constant(i), ast.Load()), node)
                for i in range(len(self.visit(node.args[0])))
            ]
            return self.visit(ast.fix_missing_locations(ast.copy_location(ast.BoolOp(either, parts), node)))
        if (
            function in (int, float, bool)
            or isinstance(function, type)
            and issubclass(function, np.generic)
            or isinstance(function, np.dtype)
            or isinstance(function, ElementType)
            and hasattr(function, "dtype")
        ):
            return self.conversion(node, function)
        return None

    def linked(self, node, function) -> Value:
        """A function of CUDA C++ that `declare_device` named: `extern "C" __device__ int name(R* result,
        arguments...)`."""
        signature = function.linked_signature
        if len(node.args) != len(signature.args):
            self.fail(node, f"{function.name} takes {len(signature.args)} arguments, not {len(node.args)}")
        arguments = []
        for one, kind in zip(node.args, signature.args):
            if isinstance(kind, ElementType):
                arguments.append(self.cast(self.number(one), Scalar(kind.dtype)))
            else:
                value = self.visit(one)
                if isinstance(value, Value) and isinstance(value.type, ArrayOf):
                    self.mark_root(value.type.root, node)
                arguments.append(value.text)
        kind = Scalar(signature.return_type.dtype)
        self.memory(kind.dtype, node)
        result = self.temporary(f"{c_type(kind.dtype)} {{}} = 0;", node)
        self.emit(f"{function.name}(&{result}{''.join(', ' + one for one in arguments)});")
        return Value(result, kind)

    def one(self, node) -> Value:
        if len(node.args) != 1:
            self.fail(node, "one argument is needed")
        return self.number(node.args[0])

    def signature_for(self, signatures, values: list, node):
        """The first whose types hold these numbers, else the first of as many; None where there are none."""
        fitting = [one for one in signatures if len(one.args) == len(values)]
        if signatures and not fitting:
            self.fail(node, f"no signature takes {len(values)} arguments: {', '.join(map(repr, signatures))}")
        for one in fitting:
            if all(
                not isinstance(value, Value)
                or not isinstance(value.type, Scalar)
                or not isinstance(wanted, ElementType)
                or np.can_cast(value.type.definite().dtype, wanted.dtype)
                for value, wanted in zip(values, one.args)
            ):
                return one
        return fitting[0] if fitting else None

    def tuple_type(self, values: list, node) -> TupleOf:
        """The type of a tuple that is an argument."""
        parts = []
        for one in values:
            if isinstance(one, list):
                parts.append(self.tuple_type(one, node))
            elif isinstance(one, Value) and isinstance(one.type, ArrayOf):
                parts.append(one.type.signature())
            else:
                parts.append(replace(self.scalar(one, node).type.definite(), never_negative=False))
        return TupleOf(tuple(parts), getattr(values, "fields", ()))

    def call(self, node, source: Source, signatures=()):
        """A Python function. With signatures its arguments and its result have one's types."""
        given = dict(zip(source.parameters, (self.visit(one) for one in node.args)))
        for one in node.keywords:
            if one.arg is None or one.arg in given or one.arg not in source.parameters:
                self.fail(node, f"{source.name} takes no argument {one.arg or '**'} here")
            given[one.arg] = self.visit(one.value)
        for name, default in zip(source.parameters[len(source.parameters) - len(source.defaults) :], source.defaults):
            if name not in given:
                given[name] = self.constant(node, default)
        if len(node.args) > len(source.parameters) or len(given) != len(source.parameters):
            self.fail(
                node,
                f"{source.name} takes {len(source.parameters)} arguments, not {len(node.args) + len(node.keywords)}",
            )
        values = [given[name] for name in source.parameters]
        signature = self.signature_for(signatures, values, node)
        types = []
        for value, wanted in zip(values, signature.args if signature is not None else (None,) * len(values)):
            if isinstance(value, Object):
                types.append(value)  # known now: a function or a type
            elif isinstance(value, list):
                types.append(self.tuple_type(value, node))
            elif not isinstance(value, Value) or value.type is None:
                self.fail(node, "a function takes numbers, arrays, tuples and functions")
            elif isinstance(value.type, Scalar):
                types.append(
                    Scalar(wanted.dtype)
                    if isinstance(wanted, ElementType)
                    else replace(value.type.definite(), never_negative=False)
                )
            else:
                types.append(value.type.signature())
        try:
            known = self.unit.call(source, tuple(types))
        except UnknownValue:
            # As Numba: what needs to know its arguments, such as the shape of a shared array, knows the literals.
            literals = [known_object(value, kind) for value, kind in zip(values, types)]
            if literals == types:
                raise
            types = literals
            known = self.unit.call(source, tuple(types))
        if not known.done:
            known.calls_itself = True
        arguments = []
        for name, value, kind in zip(source.parameters, values, types):
            if isinstance(kind, Object):
                continue
            parts = leaves(name, with_memory(name, kind))
            for one, (_, part) in zip(flattened(value), parts):
                if isinstance(part, ArrayOf):
                    arguments += [one.text, *one.type.extents, *one.type.strides]
                    if part.root in known.written:
                        self.mark_root(one.type.root, node)
                else:
                    arguments.append(self.cast(one, part))
        if known.needs_dynamic:
            self.needs_dynamic = True
            arguments.insert(0, "st_dynamic_bytes")
        text = f"{known.entry}({', '.join(arguments)})"
        if isinstance(known.returned, TupleOf):
            result = self.temporary(f"{known.result_text()} {{}} = {text};", node)
            return [Value(f"{result}.f{i}", part) for i, part in enumerate(known.returned.parts)]
        if known.returned is None and not known.done:
            # Its other results say of which type it is: in the next pass it is known.
            return Unknown("0", Scalar(None, bool))
        wanted = getattr(signature, "return_type", None)
        if known.returned is not None and isinstance(wanted, ElementType) and hasattr(wanted, "dtype"):
            return Value(self.cast(Value(text, known.returned), Scalar(wanted.dtype)), Scalar(wanted.dtype))
        return Value(text, known.returned)
