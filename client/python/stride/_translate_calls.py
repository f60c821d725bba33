"""Calls inside translated functions: math, conversions, what stride.cuda has, and other Python functions."""

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
from stride._translate_source import Source
from stride._translate_types import (
    BOOL,
    C_TYPES,
    FLOAT,
    INT,
    ArrayOf,
    Object,
    Scalar,
    TupleOf,
    Unknown,
    UnknownValue,
    Value,
    c_type,
    flattened,
    leaves,
    promote,
    with_memory,
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


_ATOMIC = {
    getattr(cuda.atomic, name): name
    for name in ("add", "sub", "min", "max", "and_", "or_", "xor", "inc", "dec", "exch", "cas")
}
# The minimum and maximum here ignore NaN, as Numba's nanmin and nanmax do.
_ATOMIC.update({cuda.atomic.nanmin: "min", cuda.atomic.nanmax: "max", cuda.atomic.compare_and_swap: "compare_and_swap"})
BARRIERS = {
    cuda.syncthreads: "__syncthreads",
    cuda.syncwarp: "__syncwarp",
    cuda.threadfence: "__threadfence",
    cuda.threadfence_block: "__threadfence_block",
    cuda.threadfence_system: "__threadfence_system",
    cuda.grid_group.sync: "cooperative_groups::this_grid().sync",
    cuda.nanosleep: "__nanosleep",
}
_COUNTS = {
    cuda.syncthreads_count: "__syncthreads_count",
    cuda.syncthreads_and: "__syncthreads_and",
    cuda.syncthreads_or: "__syncthreads_or",
}
_SHUFFLES = {
    cuda.shfl_sync: "__shfl_sync",
    cuda.shfl_up_sync: "__shfl_up_sync",
    cuda.shfl_down_sync: "__shfl_down_sync",
    cuda.shfl_xor_sync: "__shfl_xor_sync",
}
_VOTES = {
    cuda.all_sync: "__all_sync",
    cuda.any_sync: "__any_sync",
    cuda.ballot_sync: "__ballot_sync",
    cuda.eq_sync: "eq",
}
_BITS = {cuda.popc: "__popc", cuda.brev: "__brev", cuda.clz: "__clz", cuda.ffs: "__ffs"}
_PRINTED = {"f": "double", "u": "unsigned long long"}
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
_COMPLEX = {"exp", "log", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"}


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

    def cuda_call(self, node, function):
        """Translates calls of `stride.cuda`'s functions."""
        if function in (cuda.grid, cuda.gridsize):
            return self.grid(node, function is cuda.grid)
        if function in _ATOMIC:
            return self.atomic(node, _ATOMIC[function])
        if function in BARRIERS:
            self.fail(node, "a barrier is a statement of its own")
        if function is cuda.this_grid:
            self.unit.is_cooperative = True
            return Object(cuda.grid_group)
        if function is cuda.const.array_like:
            return self.visit(node.args[0])
        if function in _COUNTS:
            return Value(f"{_COUNTS[function]}({self.truth(node.args[0])})", Scalar(_dtypes.int32, None, True))
        if function in _SHUFFLES or function in _VOTES or function in (cuda.match_any_sync, cuda.match_all_sync):
            return self.warp_call(node, function)
        if function is cuda.activemask:
            return Value("__activemask()", Scalar(_dtypes.uint32, None, True))
        if function is cuda.lanemask_lt:
            return Value(f"((1u << {self.constant(node, cuda.laneid).text}) - 1u)", Scalar(_dtypes.uint32, None, True))
        if function in _BITS:
            value = self.integer(node.args[0])
            wide = value.type.definite().dtype.itemsize == 8
            bits = Scalar(_dtypes.uint64 if wide else _dtypes.uint32)
            kind = (
                Scalar(_dtypes.uint64 if wide else _dtypes.uint32)
                if function is cuda.brev
                else Scalar(_dtypes.int32, None, True)
            )
            return Value(f"{_BITS[function]}{'ll' * wide}({self.cast(value, bits)})", kind)
        if function is cuda.selp:
            choice = ast.copy_location(ast.IfExp(*node.args), node)
            return self.visit(choice)
        if function is cuda.fma:
            return self.float_call(node, "fma", 3)
        if function is cuda.cbrt:
            return self.float_call(node, "cbrt", 1)
        if isinstance(function, cuda.LibdeviceFunction):
            kind = Scalar(_dtypes.float32 if function.is_single else FLOAT)
            return Value(
                f"{function.target}({', '.join(self.cast(self.number(one), kind) for one in node.args)})", kind
            )
        return None

    def barrier(self, node, function) -> str:
        """The statement."""
        if function is cuda.syncwarp and node.args:
            return f"__syncwarp({self.cast(self.integer(node.args[0]), Scalar(_dtypes.uint32))});"
        if function is cuda.nanosleep:
            return f"__nanosleep({self.cast(self.integer(node.args[0]), Scalar(_dtypes.uint32))});"
        return f"{BARRIERS[function]}();"

    def warp_call(self, node, function) -> Value:
        """Shuffles and votes: the mask of the lanes that take part, then values."""
        if len(node.args) < 2:
            self.fail(node, f"{function} takes the mask of the lanes that take part first")
        mask = f"(unsigned)({self.integer(node.args[0]).text})"
        if function in (cuda.match_any_sync, cuda.match_all_sync):
            value = self.number(node.args[1])
            text = f"__match_any_sync({mask}, {self.cast(value, value.type.definite())})"
            if function is cuda.match_any_sync:
                return Value(text, Scalar(_dtypes.uint32, None, True))
            found, there = self.temporary(f"unsigned {{}} = {text};", node), self.temporary(
                f"unsigned {{}} = __ballot_sync({mask}, true);", node
            )
            return [
                Value(f"({found} == {there} ? {found} : 0u)", Scalar(_dtypes.uint32, None, True)),
                Value(f"({found} == {there})", Scalar(BOOL)),
            ]
        if function in _VOTES:
            truth = self.truth(node.args[1])
            if function is cuda.ballot_sync:
                return Value(f"__ballot_sync({mask}, {truth})", Scalar(_dtypes.uint32, None, True))
            if function is cuda.eq_sync:
                found, there = (
                    self.temporary(f"unsigned {{}} = __ballot_sync({mask}, {one});", node) for one in (truth, "true")
                )
                return Value(f"({found} == 0 || {found} == {there})", Scalar(BOOL))
            return Value(f"({_VOTES[function]}({mask}, {truth}) != 0)", Scalar(BOOL))
        value = self.number(node.args[1])
        kind = value.type.definite()
        if kind.dtype.kind == "c":
            self.fail(node, "complex numbers cannot be shuffled; shuffle their parts")
        if kind.dtype.itemsize < 4:
            kind = Scalar(_dtypes.int32)
        if len(node.args) < 3:
            self.fail(node, f"{function} takes a mask, a value and a lane")
        lanes = ", ".join(self.cast(self.integer(one), Scalar(_dtypes.int32)) for one in node.args[2:4])
        return Value(f"{_SHUFFLES[function]}({mask}, {self.cast(value, kind)}, {lanes})", Scalar(kind.dtype))

    def temporary(self, declaration: str, node) -> str:
        """The name of a variable that is made before the statement."""
        if self.conditional:
            self.fail(
                node,
                "this call cannot stand in a condition, of which a part may not be evaluated; assign its result first",
            )
        name = f"z{self.num_loops}"
        self.num_loops += 1
        self.emit(declaration.format(name))
        return name

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

    def grid(self, node, is_place: bool):
        axes = self.one(node).literal
        if axes not in (1, 2, 3):
            self.fail(node, "a grid has 1, 2 or 3 axes")
        template = (
            "((long long)blockIdx.{0} * blockDim.{0} + threadIdx.{0})"
            if is_place
            else "((long long)gridDim.{0} * blockDim.{0})"
        )
        values = [Value(template.format(axis), Scalar(INT, None, True)) for axis in "xyz"[:axes]]
        return values[0] if axes == 1 else values

    def atomic(self, node, name: str) -> Value:
        count = 4 if name == "cas" else 3
        if len(node.args) == count - 1 and name == "cas":
            name = "compare_and_swap"
        if name == "compare_and_swap":  # it has no index
            name, count = "cas", 3
            node = ast.copy_location(
                ast.Call(node.func, [node.args[0], ast.copy_location(ast.Constant(0), node), *node.args[1:]], []), node
            )
            count = 4
        if len(node.args) != count:
            self.fail(
                node,
                f"cuda.atomic.{name} takes an array, an index and {'two numbers' if name == 'cas' else 'a number'}",
            )
        place_node = ast.copy_location(ast.Subscript(node.args[0], node.args[1], ast.Load()), node)
        ast.fix_missing_locations(place_node)
        place = self.visit(place_node)
        if not isinstance(place, Value) or not isinstance(place.type, Scalar):
            self.fail(node, "an atomic changes one element of an array")
        dtype = place.type.dtype
        bits = name in ("and_", "or_", "xor", "cas")
        if (
            dtype.itemsize < 4
            or dtype.kind in "bc"
            or bits
            and dtype.kind == "f"
            or name in ("inc", "dec")
            and dtype.kind != "u"
        ):
            self.fail(node, f"there is no cuda.atomic.{name} of {dtype}")
        memory = self.visit(node.args[0])
        if isinstance(memory, Value) and isinstance(memory.type, ArrayOf) and memory.type.dtype == _dtypes.float16:
            self.fail(node, "there are no atomics of float16")
        self.mark_written(place_node, node)
        self.unit.needs_atomics = True
        values = ", ".join(self.cast(self.number(one), Scalar(dtype)) for one in node.args[2:])
        return Value(f"st_atomic_{name}(&{place.text}, {values})", Scalar(dtype))

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
