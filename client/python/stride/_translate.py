"""Python functions as CUDA C++: a subset of Python, types found from those of the arguments.

Numbers have NumPy's types. Literals are weak, as in NumPy 2: `x[i] * 2.0` has the type of `x`; a variable that only literals are assigned to is
int64 or float64. A variable has one type, to which everything assigned to it promotes. Arrays are C-contiguous pointers with their extents."""

import ast
import math
from dataclasses import replace
from typing import Dict, List, Optional, Tuple

import numpy as np

from stride import _dtypes, _errors, cuda
from stride._translate_calls import BARRIERS, Calls
from stride._translate_expressions import Expressions
from stride._translate_prelude import ATOMICS, PRELUDE
from stride._translate_source import Source
from stride._translate_types import C_TYPES, ArrayOf, Object, Scalar, Value, c_type, memory_type, promote

_MAX_PASSES = 20


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


class Function(Expressions, Calls):
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
        if dtype not in C_TYPES:
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
        if isinstance(called, Object) and called.value in BARRIERS:
            self.emit(BARRIERS[called.value])
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


def translate_kernel(source: Source, types: tuple) -> Tuple[str, str, List[bool]]:
    """The text of a kernel, its entry, and which arguments it writes."""
    unit = Unit()
    entry = f"py_{source.name}"
    function = Function(unit, source, types, entry, is_kernel=True)
    function.translate()
    return unit.prelude() + function.text(), entry, [name in function.written for name in source.parameters]
