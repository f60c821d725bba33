"""Python functions as CUDA C++: a subset of Python, types found from those of the arguments.

Numbers have NumPy's types. Literals are weak, as in NumPy 2: `x[i] * 2.0` has the type of `x`; a variable that only literals are assigned to is
int64 or float64. A variable has one type, to which everything assigned to it promotes. Arrays are C-contiguous pointers with their extents."""

import ast
import builtins
import inspect
import math
import textwrap
from dataclasses import dataclass, field, replace
from typing import Dict, List, Optional, Tuple

import numpy as np

from stride import _dtypes, _errors, cuda
from stride._translate_prelude import ATOMICS, PRELUDE

_C_TYPES = {
    _dtypes.bool: "bool", _dtypes.int8: "signed char", _dtypes.int16: "short", _dtypes.int32: "int", _dtypes.int64: "long long",
    _dtypes.uint8: "unsigned char", _dtypes.uint16: "unsigned short", _dtypes.uint32: "unsigned int", _dtypes.uint64: "unsigned long long",
    _dtypes.float16: "float", _dtypes.float32: "float", _dtypes.float64: "double"}

_BOOL, _INT, _FLOAT = _dtypes.bool, _dtypes.int64, _dtypes.float64


@dataclass(frozen=True)
class Scalar:
    """A number: `dtype`, or None while it is a weak literal of Python type `weak`."""

    dtype: Optional[np.dtype] = None
    weak: Optional[type] = None
    never_negative: bool = False

    def definite(self) -> "Scalar":
        if self.dtype is not None:
            return self
        return Scalar({bool: _BOOL, int: _INT, float: _FLOAT}[self.weak], None, self.never_negative)


@dataclass(frozen=True)
class ArrayOf:
    """`root` is the parameter that its memory is; empty for shared and local arrays."""

    dtype: np.dtype
    ndim: int
    root: str = ""
    extents: Tuple[str, ...] = field(default=(), compare=False)


@dataclass
class Value:
    text: str
    type: object  # Scalar, ArrayOf
    literal: object = None  # its value, when it is known now


class Object:
    """A Python object that is no number: a module, a function, a type."""

    def __init__(self, value):
        self.value = value


def parameter_type(value) -> object:
    """The type of an argument of a kernel; part of a signature."""
    if hasattr(value, "shape") and not isinstance(value, np.generic):
        return ArrayOf(np.dtype(value.dtype), len(value.shape))
    if isinstance(value, np.generic):
        return Scalar(_dtypes.dtype_of(value.dtype))
    if isinstance(value, (bool, int, float)):
        return Scalar({bool: _BOOL, int: _INT, float: _FLOAT}[next(t for t in (bool, int, float) if isinstance(value, t))])
    raise _errors.DataTypeMismatch(f"a kernel takes arrays and numbers, not {type(value).__name__}")


def c_type(dtype: np.dtype) -> str:
    return _C_TYPES[dtype]


def memory_type(dtype: np.dtype) -> str:
    return "__half" if dtype == _dtypes.float16 else _C_TYPES[dtype]


def _float_functions() -> Dict[object, str]:
    names = {"sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
             "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "exp": "exp", "expm1": "expm1", "log": "log", "log2": "log2", "log10": "log10",
             "log1p": "log1p", "sqrt": "sqrt", "cbrt": "cbrt", "erf": "erf", "erfc": "erfc", "gamma": "tgamma", "lgamma": "lgamma", "fabs": "fabs",
             "exp2": "exp2", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
             "rint": "rint"}
    return _by_object(names)


def _by_object(names) -> Dict[object, str]:
    """By function, wherever it may come from: math, numpy, stride."""
    import stride

    return {getattr(module, name): target for module in (math, np, stride) for name, target in names.items() if hasattr(module, name)}


class _Tables:
    """Made at the first use, when the package is there."""

    _made = None

    @classmethod
    def get(cls):
        if cls._made is None:
            tables = cls()
            tables.floats = _float_functions()
            tables.floats2 = _by_object({"atan2": "atan2", "arctan2": "atan2", "hypot": "hypot", "copysign": "copysign", "fmod": "fmod", "nextafter": "nextafter"})
            tables.rounded = _by_object({"floor": "floor", "ceil": "ceil", "trunc": "trunc"})
            tables.asked = _by_object({"isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite"})
            tables.least = {builtins.min: "min", builtins.max: "max", np.minimum: "min", np.maximum: "max", **_by_object({"minimum": "min", "maximum": "max"})}
            tables.absolute = [builtins.abs, *_by_object({"abs": "", "absolute": ""})]
            tables.power = [builtins.pow, *_by_object({"pow": "", "power": ""})]
            cls._made = tables
        return cls._made


_ATOMIC = {getattr(cuda.atomic, name): name for name in ("add", "sub", "min", "max", "and_", "or_", "xor", "exch", "cas")}
_PLACES = {getattr(getattr(cuda, group), axis): f"{group}.{axis}" for group in ("threadIdx", "blockIdx", "blockDim", "gridDim") for axis in "xyz"}
_BARRIERS = {cuda.syncthreads: "__syncthreads();", cuda.syncwarp: "__syncwarp();", cuda.threadfence: "__threadfence();"}
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"}
_COMPARED = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_KEEPS_SIGN = (ast.Add, ast.Mult, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.LShift, ast.RShift)
_MAX_PASSES = 20


def promote(*types: Scalar) -> Scalar:
    """NumPy's, with weak literals; weak only when all are."""
    if all(one.dtype is None for one in types):
        weak = max((one.weak for one in types), key=[bool, int, float].index)
        return Scalar(None, weak)
    stand_ins = [one.dtype if one.dtype is not None else {bool: _BOOL, int: 0, float: 0.0}[one.weak] for one in types]
    dtype = np.result_type(*stand_ins)
    return Scalar(dtype)


class Source:
    """The text and syntax tree of a Python function, and what its names stand for."""

    def __init__(self, function):
        self.function = function
        self.name = function.__name__
        try:
            lines, first = inspect.getsourcelines(function)
            self.file = inspect.getsourcefile(function) or "?"
        except (OSError, TypeError):
            raise _errors.ExpressionError(f"the source of {self.name} is not there to translate") from None
        tree = ast.parse(textwrap.dedent("".join(lines)))
        ast.increment_lineno(tree, first - 1)
        definition = next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)), None)
        if definition is None:
            raise _errors.ExpressionError(f"{self.file}:{first}: a function made by def is needed, not a lambda")
        arguments = definition.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            raise _errors.ExpressionError(f"{self.file}:{definition.lineno}: {self.name}: *args, **kwargs and keyword-only arguments cannot be translated")
        self.definition = definition
        self.parameters = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]

    def lookup(self, name: str):
        code = self.function.__code__
        if name in code.co_freevars:
            return self.function.__closure__[code.co_freevars.index(name)].cell_contents
        if name in self.function.__globals__:
            return self.function.__globals__[name]
        return getattr(builtins, name)


class Unit:
    """One translation: functions called, each once for a signature, in an order in which C++ knows them."""

    def __init__(self):
        self.functions: Dict[tuple, "Function"] = {}
        self.texts: List[str] = []
        self.active: List[str] = []
        self.needs_half = False
        self.needs_atomics = False

    def call(self, source: Source, types: tuple) -> "Function":
        key = (source.function, types)
        known = self.functions.get(key)
        if known is None:
            if source.name in self.active:
                raise _errors.ExpressionError(f"{source.file}:{source.definition.lineno}: {source.name} calls itself, which cannot be translated")
            known = Function(self, source, types, f"st_{len(self.functions)}_{source.name}")
            known.translate()
            self.functions[key] = known
            self.texts.append(known.text())
        return known

    def prelude(self) -> str:
        half = "#include <cuda_fp16.h>\n" if self.needs_half else ""
        return half + PRELUDE + (ATOMICS if self.needs_atomics else "") + "".join(self.texts)


class Function:
    """One function with the types of its parameters. `translate` walks over it until its variables' types stay as they are."""

    def __init__(self, unit: Unit, source: Source, types: tuple, entry: str, is_kernel: bool = False):
        self.unit, self.source, self.entry, self.is_kernel = unit, source, entry, is_kernel
        self.types = [replace(one, root=name, extents=tuple(f"v_{name}_{i}" for i in range(one.ndim))) if isinstance(one, ArrayOf) else one
                      for name, one in zip(source.parameters, types)]
        self.variables: Dict[str, object] = {}
        self.returned: Optional[Scalar] = None
        self.written = set()  # parameters whose elements are stored to
        self.declared: Dict[str, str] = {}  # shared and local arrays
        self.lines: List[str] = []
        self.depth = 1
        self.num_loops = 0

    # --- the whole ---

    def translate(self) -> None:
        source = self.source
        if len(self.types) != len(source.parameters):
            raise TypeError(f"{source.name} takes {len(source.parameters)} arguments, not {len(self.types)}")
        for one in self.types:
            if isinstance(one, ArrayOf):
                self.memory(one.dtype, source.definition)
        self.variables.update(zip(source.parameters, self.types))
        self.unit.active.append(source.name)
        for _ in range(_MAX_PASSES):
            before = (dict(self.variables), self.returned)
            self.lines, self.declared, self.num_loops = [], {}, 0
            self.statements(source.definition.body)
            if before == (self.variables, self.returned):
                break
        else:
            self.fail(source.definition, "the types of its variables do not settle")
        self.unit.active.pop()

    def parameters_text(self) -> str:
        parts = []
        for name, one in zip(self.source.parameters, self.types):
            if isinstance(one, ArrayOf):
                const = "" if name in self.written else "const "
                parts.append(f"{const}{memory_type(one.dtype)}* v_{name}")
                parts += [f"long long {extent}" for extent in one.extents]
            else:
                parts.append(f"{c_type(one.dtype)} v_{name}")
        return ", ".join(parts)

    def text(self) -> str:
        result = c_type(self.returned.dtype) if self.returned is not None else "void"
        head = f'extern "C" __global__ void {self.entry}' if self.is_kernel else f"__device__ {result} {self.entry}"
        declarations = [f"  {c_type(one.dtype)} v_{name} = 0;" for name, one in self.variables.items()
                        if isinstance(one, Scalar) and name not in self.source.parameters]
        for name, one in self.variables.items():
            if isinstance(one, ArrayOf) and name not in self.source.parameters and name not in self.declared:
                declarations.append(f"  {'const ' if one.root and one.root not in self.written else ''}{memory_type(one.dtype)}* v_{name} = 0;")
        return "\n".join([f"{head}({self.parameters_text()}) {{", *declarations, *self.declared.values(), *self.lines, "}", ""])

    def fail(self, node, what: str):
        line = getattr(node, "lineno", self.source.definition.lineno)
        raise _errors.ExpressionError(f"{self.source.file}:{line}: {self.source.name}: {what}")

    def memory(self, dtype: np.dtype, node) -> None:
        if dtype not in _C_TYPES:
            self.fail(node, f"arrays of {dtype} cannot be used in a kernel of Python")
        self.unit.needs_half |= dtype == _dtypes.float16

    def emit(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    # --- statements ---

    def statements(self, body) -> None:
        for statement in body:
            method = getattr(self, f"do_{type(statement).__name__}", None)
            if method is None:
                self.fail(statement, f"{type(statement).__name__} cannot be translated; there are assignments, if, for over range, while, break, "
                                     "continue, return and calls")
            method(statement)

    def block(self, body) -> None:
        self.depth += 1
        self.statements(body)
        self.depth -= 1

    def do_Pass(self, node) -> None:  # noqa: N802
        pass

    def do_Break(self, node) -> None:  # noqa: N802
        self.emit("break;")

    def do_Continue(self, node) -> None:  # noqa: N802
        self.emit("continue;")

    def do_Expr(self, node) -> None:  # noqa: N802
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return
        if not isinstance(node.value, ast.Call):
            self.fail(node, "an expression alone does nothing")
        called = self.visit(node.value.func)
        if isinstance(called, Object) and called.value in _BARRIERS:
            self.emit(_BARRIERS[called.value])
            return
        value = self.visit(node.value)
        if value is not None:
            self.emit(f"(void)({value.text});" if value.type is not None else f"{value.text};")

    def do_Return(self, node) -> None:  # noqa: N802
        if node.value is None or isinstance(node.value, ast.Constant) and node.value.value is None:
            self.emit("return;")
            return
        if self.is_kernel:
            self.fail(node, "a kernel returns nothing; write into an array")
        value = self.number(node.value).type.definite()
        self.returned = replace(value, never_negative=False) if self.returned is None else promote(self.returned, value)
        self.emit(f"return {self.cast(self.number(node.value), self.returned)};")

    def do_If(self, node) -> None:  # noqa: N802
        self.emit(f"if ({self.truth(node.test)}) {{")
        self.block(node.body)
        while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
            node = node.orelse[0]
            self.emit(f"}} else if ({self.truth(node.test)}) {{")
            self.block(node.body)
        if node.orelse:
            self.emit("} else {")
            self.block(node.orelse)
        self.emit("}")

    def do_While(self, node) -> None:  # noqa: N802
        if node.orelse:
            self.fail(node, "else of a loop cannot be translated")
        self.emit(f"while ({self.truth(node.test)}) {{")
        self.block(node.body)
        self.emit("}")

    def do_For(self, node) -> None:  # noqa: N802
        if node.orelse:
            self.fail(node, "else of a loop cannot be translated")
        called = self.visit(node.iter.func) if isinstance(node.iter, ast.Call) else None
        if not isinstance(called, Object) or called.value is not range or not isinstance(node.target, ast.Name) or node.iter.keywords:
            self.fail(node, "only `for name in range(...)` can be translated")
        parts = [self.integer(one) for one in node.iter.args]
        if not 1 <= len(parts) <= 3:
            self.fail(node, "range takes one to three numbers")
        zero = Value("0", Scalar(None, int, True), 0)
        start, stop = (zero, parts[0]) if len(parts) == 1 else parts[:2]
        step = parts[2] if len(parts) == 3 else Value("1", Scalar(None, int, True), 1)
        kind = promote(*(one.type for one in (start, stop, step))).definite()
        rises = step.type.never_negative
        falls = isinstance(step.literal, int) and step.literal < 0
        self.assign(node.target, Value("", Scalar(kind.dtype, None, start.type.never_negative and rises)), node, silent=True)
        loop, name = self.num_loops, f"v_{node.target.id}"
        self.num_loops += 1
        c, i = c_type(kind.dtype), f"i{loop}"
        condition = f"{i} < end{loop}" if rises else f"{i} > end{loop}" if falls else f"(step{loop} > 0 ? {i} < end{loop} : {i} > end{loop})"
        self.emit(f"for ({c} {i} = {self.cast(start, kind)}, end{loop} = {self.cast(stop, kind)}, step{loop} = {self.cast(step, kind)}; {condition}; "
                  f"{i} += step{loop}) {{")
        self.depth += 1
        self.emit(f"{name} = {i};")
        self.depth -= 1
        self.block(node.body)
        self.emit("}")

    def do_AnnAssign(self, node) -> None:  # noqa: N802
        if node.value is not None:
            self.store(node.target, node.value, node)

    def do_Assign(self, node) -> None:  # noqa: N802
        for target in node.targets:
            self.store(target, node.value, node)

    def store(self, target, value, node) -> None:
        if isinstance(value, ast.Call):
            called = self.visit(value.func)
            if isinstance(called, Object) and called.value in (cuda.shared.array, cuda.local.array):
                self.declare(target, value, called.value is cuda.shared.array)
                return
        value = self.visit(value)
        if isinstance(target, ast.Tuple):
            if not isinstance(value, list) or len(value) != len(target.elts):
                self.fail(node, f"{len(target.elts)} names need as many values")
            temporaries = []
            for i, (one, part) in enumerate(zip(target.elts, value)):
                if not isinstance(part.type, Scalar):
                    self.fail(node, "only numbers can be assigned several at once")
                if len(value) > 1 and part.literal is None:
                    temporary = f"t{self.num_loops}_{i}"
                    self.emit(f"{c_type(part.type.definite().dtype)} {temporary} = {part.text};")
                    part = Value(temporary, part.type)
                temporaries.append((one, part))
            self.num_loops += 1
            for one, part in temporaries:
                self.assign(one, part, node)
            return
        if isinstance(value, list):
            self.fail(node, "several values need as many names")
        self.assign(target, value, node)

    def assign(self, target, value, node, silent: bool = False) -> None:
        if isinstance(target, ast.Subscript):
            place = self.visit(target)
            if not isinstance(place, Value) or not isinstance(place.type, Scalar):
                self.fail(node, "only single elements can be assigned to; a loop can do the rest")
            if not isinstance(value, Value) or not isinstance(value.type, Scalar):
                self.fail(node, "an element takes a number")
            self.mark_written(target, node)
            self.emit(f"{place.text} = {self.cast(value, Scalar(place.type.dtype))};")
            return
        if not isinstance(target, ast.Name):
            self.fail(node, f"nothing can be assigned to {type(target).__name__}")
        name = target.id
        if not isinstance(value, Value) or value.type is None:
            self.fail(node, "only numbers and arrays can be assigned")
        known = self.variables.get(name)
        if isinstance(value.type, ArrayOf):
            if known is not None and (not isinstance(known, ArrayOf) or (known.dtype, known.ndim, known.root) != (
                    value.type.dtype, value.type.ndim, value.type.root) or name in self.source.parameters):
                self.fail(node, f"{name} stands for one thing only: a number, or one array")
            # The extents of what a row is taken from do not change.
            self.variables[name] = value.type
            self.emit(f"v_{name} = {value.text};")
            return
        kind = value.type.definite()
        if isinstance(known, ArrayOf):
            self.fail(node, f"{name} stands for one thing only: a number, or one array")
        if known is not None:
            dtype = promote(known, kind).dtype
            kind = Scalar(dtype, None, known.never_negative and kind.never_negative)
            if name in self.source.parameters and dtype != known.dtype:
                self.fail(node, f"the argument {name} is {known.dtype} and cannot become {dtype}; give the result another name")
        self.variables[name] = kind
        if not silent:
            self.emit(f"v_{name} = {self.cast(value, kind)};")

    def do_AugAssign(self, node) -> None:  # noqa: N802
        target = node.target
        read = ast.copy_location(ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target, target)
        self.assign(target, self.binary(node, node.op, self.number(read), self.number(node.value)), node)

    def declare(self, target, call, is_shared: bool) -> None:
        if not isinstance(target, ast.Name):
            self.fail(call, "an array of a block or a thread needs a name")
        arguments = dict(zip(("shape", "dtype"), call.args))
        arguments.update({one.arg: one.value for one in call.keywords})
        if set(arguments) != {"shape", "dtype"}:
            self.fail(call, "an array has a shape and a dtype")
        shape = self.visit(arguments["shape"])
        shape = shape if isinstance(shape, list) else [shape]
        if not all(isinstance(one, Value) and isinstance(one.literal, int) for one in shape):
            self.fail(call, "the shape of such an array is made of known integers")
        dtype = self.dtype(arguments["dtype"])
        self.memory(dtype, call)
        extents, name = [one.literal for one in shape], target.id
        c, count = memory_type(dtype), math.prod(extents)
        if is_shared and count == 0 and len(extents) == 1:
            text = f"  extern __shared__ __align__(16) unsigned char st_dynamic[];\n  {c}* v_{name} = ({c}*)st_dynamic;"
        elif count <= 0:
            self.fail(call, "an array of no elements")
        else:
            text = f"  {'__shared__ ' if is_shared else ''}{c} v_{name}[{count}];"
        kind = ArrayOf(dtype, len(extents), "", tuple(map(str, extents)))
        if self.variables.get(name, kind) != kind or name in self.declared:
            self.fail(call, f"{name} stands for one thing only")
        self.variables[name] = kind
        self.declared[name] = text

    def mark_written(self, target, node) -> None:
        while isinstance(target, ast.Subscript):
            target = target.value
        if isinstance(target, ast.Name) and isinstance(self.variables.get(target.id), ArrayOf):
            root = self.variables[target.id].root
            if root:
                self.written.add(root)

    # --- expressions ---

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
        return value.text if value.type.definite().dtype == _BOOL else f"({value.text}) != 0"

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
            suffix = "" if dtype == _FLOAT else "f"
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
        if isinstance(value, np.generic) and value.dtype in _C_TYPES:
            dtype = _dtypes.dtype_of(value.dtype)
            return Value(self.literal(value.item(), dtype), Scalar(dtype, None, bool(value >= 0)), value.item())
        if isinstance(value, (bool, int, float)):
            kind = Scalar(None, type(value), value >= 0)
            return Value(self.literal(value, kind.definite().dtype), kind, value)
        if isinstance(value, tuple):
            return [self.constant(node, one) for one in value]
        if isinstance(value, cuda.Intrinsic):
            if value in _PLACES:
                return Value(f"(long long){_PLACES[value]}", Scalar(_INT, None, True))
            if value is cuda.laneid:
                return Value("(long long)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32)", Scalar(_INT, None, True))
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
                return [Value(one, Scalar(_INT, None, True), int(one) if one.isdigit() else None) for one in kind.extents]
            if node.attr == "size":
                return Value("(" + " * ".join(kind.extents or ("1LL",)) + ")", Scalar(_INT, None, True))
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
            place = self.cast(index, Scalar(_INT)) if index.type.definite().dtype != _dtypes.uint64 else index.text
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
        if kind.dtype == _BOOL and not isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
            kind = Scalar(_INT)
        if isinstance(op, ast.Div):
            kind = kind if kind.dtype.kind == "f" else Scalar(_FLOAT)
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
        if kind.dtype.itemsize < 4 and kind.dtype != _BOOL:
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
        if kind.dtype == _BOOL:
            kind = Scalar(_INT)
        exponent = right.type.definite().dtype
        if isinstance(right.literal, int) and right.literal < 0 and kind.dtype.kind != "f":
            kind = Scalar(_FLOAT)
        if exponent.kind in "biu" and (kind.dtype.kind != "f" or isinstance(right.literal, int) and abs(right.literal) <= 64):
            return Value(f"st_power({self.cast(left, kind)}, {self.cast(right, Scalar(_INT))})", kind)
        if right.literal == 0.5:
            return Value(f"sqrt({self.cast(left, kind)})", kind)
        return Value(f"pow({self.cast(left, kind)}, {self.cast(right, kind)})", kind)

    def of_UnaryOp(self, node):  # noqa: N802
        value = self.number(node.operand)
        if isinstance(node.op, ast.Not):
            return Value(f"!({self.truth(node.operand)})", Scalar(_BOOL))
        if value.literal is not None and value.type.dtype is None:
            return self.constant(node, {ast.USub: lambda x: -x, ast.UAdd: lambda x: +x, ast.Invert: lambda x: ~x}[type(node.op)](value.literal))
        kind = value.type.definite()
        kind = Scalar(_INT) if kind.dtype == _BOOL else Scalar(kind.dtype)
        if isinstance(node.op, ast.Invert) and kind.dtype.kind == "f":
            self.fail(node, f"~ takes integers, not {kind.dtype}")
        symbol = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}[type(node.op)]
        return Value(f"({c_type(kind.dtype)})({symbol}{self.cast(value, kind)})", kind)

    def of_BoolOp(self, node):  # noqa: N802
        values = [self.number(one) for one in node.values]
        is_and = isinstance(node.op, ast.And)
        if all(one.type.definite().dtype == _BOOL for one in values):
            return Value("(" + (" && " if is_and else " || ").join(one.text for one in values) + ")", Scalar(_BOOL))
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
        return Value("(" + " && ".join(parts) + ")", Scalar(_BOOL))

    def of_IfExp(self, node):  # noqa: N802
        body, other = self.number(node.body), self.number(node.orelse)
        kind = promote(body.type, other.type)
        never_negative = body.type.never_negative and other.type.never_negative
        definite = kind.definite()
        return Value(f"({self.truth(node.test)} ? {self.cast(body, definite)} : {self.cast(other, definite)})",
                     Scalar(kind.dtype, kind.weak, never_negative))

    # --- calls ---

    def of_Call(self, node):  # noqa: N802
        called = self.visit(node.func)
        if not isinstance(called, Object):
            self.fail(node, "only functions can be called")
        if node.keywords:
            self.fail(node, "arguments by keyword cannot be translated")
        if any(isinstance(one, ast.Starred) for one in node.args):
            self.fail(node, "arguments by * cannot be translated")
        function, tables = called.value, _Tables.get()
        try:
            hash(function)
        except TypeError:
            self.fail(node, f"{function!r} cannot be called in a kernel")
        if function in (cuda.grid, cuda.gridsize):
            return self.grid(node, function is cuda.grid)
        if function in _ATOMIC:
            return self.atomic(node, _ATOMIC[function])
        if function in _BARRIERS:
            self.fail(node, "a barrier is a statement of its own")
        if function is len:
            return self.length(node)
        if function in tables.floats:
            return self.float_call(node, tables.floats[function], 1)
        if function in tables.floats2:
            return self.float_call(node, tables.floats2[function], 2)
        if function in tables.rounded:
            return self.rounded(node, function, tables.rounded[function])
        if function in tables.asked:
            value = self.one(node)
            kind = promote(value.type, Scalar(None, float)).definite()
            return Value(f"(bool){tables.asked[function]}({self.cast(value, kind)})", Scalar(_BOOL))
        if function in tables.least:
            return self.least(node, tables.least[function])
        if function in tables.absolute:
            return self.absolute(node)
        if function is math.pow:
            return self.float_call(node, "pow", 2)
        if function in tables.power and len(node.args) == 2:
            return self.power(node, *map(self.number, node.args))
        if function is round and len(node.args) == 1:
            value = self.one(node)
            kind = value.type.definite()
            return value if kind.dtype.kind != "f" else Value(f"(long long)rint({value.text})", Scalar(_INT))
        if function in (int, float, bool) or isinstance(function, type) and issubclass(function, np.generic) or isinstance(function, np.dtype):
            return self.conversion(node, function)
        function = getattr(function, "python_function", function)
        if inspect.isfunction(function):
            return self.call(node, function)
        self.fail(node, f"{getattr(function, '__name__', function)!r} cannot be called in a kernel")

    def one(self, node) -> Value:
        if len(node.args) != 1:
            self.fail(node, "one argument is needed")
        return self.number(node.args[0])

    def grid(self, node, is_place: bool):
        axes = self.one(node).literal
        if axes not in (1, 2, 3):
            self.fail(node, "a grid has 1, 2 or 3 axes")
        template = "((long long)blockIdx.{0} * blockDim.{0} + threadIdx.{0})" if is_place else "((long long)gridDim.{0} * blockDim.{0})"
        values = [Value(template.format(axis), Scalar(_INT, None, True)) for axis in "xyz"[:axes]]
        return values[0] if axes == 1 else values

    def atomic(self, node, name: str) -> Value:
        count = 4 if name == "cas" else 3
        if len(node.args) == count - 1 and name == "cas":
            count = 3  # Numba's compare_and_swap has no index
        if len(node.args) != count:
            self.fail(node, f"cuda.atomic.{name} takes an array, an index and {'two numbers' if name == 'cas' else 'a number'}")
        place_node = ast.copy_location(ast.Subscript(node.args[0], node.args[1] if count > 2 else ast.Constant(0), ast.Load()), node)
        ast.fix_missing_locations(place_node)
        place = self.visit(place_node)
        if not isinstance(place, Value) or not isinstance(place.type, Scalar):
            self.fail(node, "an atomic changes one element of an array")
        dtype = place.type.dtype
        bits = name in ("and_", "or_", "xor", "cas")
        if dtype.itemsize < 4 or dtype.kind == "b" or bits and dtype.kind == "f":
            self.fail(node, f"there is no cuda.atomic.{name} of {dtype}")
        self.mark_written(place_node, node)
        self.unit.needs_atomics = True
        values = ", ".join(self.cast(self.number(one), Scalar(dtype)) for one in node.args[2:])
        return Value(f"st_atomic_{name}(&{place.text}, {values})", Scalar(dtype))

    def length(self, node) -> Value:
        value = self.visit(node.args[0]) if len(node.args) == 1 else None
        if isinstance(value, list):
            return self.constant(node, len(value))
        if not isinstance(value, Value) or not isinstance(value.type, ArrayOf) or not value.type.ndim:
            self.fail(node, "only arrays and tuples have a length")
        return Value(value.type.extents[0], Scalar(_INT, None, True))

    def float_call(self, node, name: str, count: int) -> Value:
        if len(node.args) != count:
            self.fail(node, f"{name} takes {count} argument{'s' * (count > 1)}")
        values = [self.number(one) for one in node.args]
        kind = promote(*(one.type for one in values)).definite()
        kind = kind if kind.dtype.kind == "f" else Scalar(_FLOAT)
        return Value(f"{name}({', '.join(self.cast(one, kind) for one in values)})", kind)

    def rounded(self, node, function, name: str) -> Value:
        """math's give integers, NumPy's and ours floats."""
        value = self.one(node)
        kind = value.type.definite()
        if kind.dtype.kind != "f":
            return value
        is_math = function in (math.floor, math.ceil, math.trunc)
        text = f"{name}({self.cast(value, kind)})"
        return Value(f"(long long){text}", Scalar(_INT)) if is_math else Value(text, kind)

    def least(self, node, name: str) -> Value:
        if len(node.args) < 2:
            self.fail(node, f"{name} needs two numbers or more")
        values = [self.number(one) for one in node.args]
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
        return Value(f"({value.text} < 0 ? ({c_type(kind.dtype)})-{value.text} : {value.text})", Scalar(kind.dtype, None, True))

    def conversion(self, node, function) -> Value:
        value = self.one(node)
        dtype = {int: _INT, float: _FLOAT, bool: _BOOL}.get(function)
        if dtype is None:
            dtype = _dtypes.dtype_of(function)
        if dtype not in _C_TYPES:
            self.fail(node, f"{dtype} cannot be used in a kernel of Python")
        if function is int and value.type.definite().dtype == _INT:
            return value
        if dtype == _BOOL:
            return Value(f"({self.truth(node.args[0])})", Scalar(_BOOL))
        return Value(f"({c_type(dtype)})({value.text})", Scalar(dtype, None, value.type.never_negative), None)

    def call(self, node, function) -> Value:
        source = Source(function)
        values = [self.visit(one) for one in node.args]
        if any(not isinstance(one, Value) or one.type is None for one in values):
            self.fail(node, "a function takes numbers and arrays")
        types = tuple(replace(one.type.definite(), never_negative=False) if isinstance(one.type, Scalar) else ArrayOf(one.type.dtype, one.type.ndim)
                      for one in values)
        if len(types) != len(source.parameters):
            self.fail(node, f"{source.name} takes {len(source.parameters)} arguments, not {len(types)}")
        known = self.unit.call(source, types)
        arguments = []
        for name, value, kind in zip(source.parameters, values, types):
            if isinstance(kind, ArrayOf):
                arguments += [value.text, *value.type.extents]
                if name in known.written and value.type.root:
                    self.written.add(value.type.root)
            else:
                arguments.append(self.cast(value, kind))
        text = f"{known.entry}({', '.join(arguments)})"
        return Value(text, known.returned)


def translate_kernel(source: Source, types: tuple) -> Tuple[str, str, List[bool]]:
    """The text of a kernel, its entry, and which arguments it writes."""
    unit = Unit()
    entry = f"py_{source.name}"
    function = Function(unit, source, types, entry, is_kernel=True)
    function.translate()
    return unit.prelude() + function.text(), entry, [name in function.written for name in source.parameters]
