"""Python functions as CUDA C++: a subset of Python, types found from those of the arguments.

Numbers have NumPy's types. Literals are weak, as in NumPy 2: `x[i] * 2.0` has the type of `x`; a variable that only
literals are assigned to is int64 or float64. A variable has one type, to which everything assigned to it promotes.
Arrays are pointers with their extents and, where they are slices that are not contiguous, the distances between their
elements. A tuple is a variable for each of its numbers."""

import ast
import collections
from typing import Dict, List, NamedTuple, Optional, Set

import numpy as np

from stride import _dtypes, _errors
from stride._translate_builtins import Builtins
from stride._translate_calls import Calls
from stride._translate_cuda import CudaCalls
from stride._translate_expressions import Expressions
from stride._translate_loops import Loops
from stride._translate_operators import Operators
from stride._translate_prelude import ATOMICS, COMPLEX, PRELUDE, SLICES
from stride._translate_source import Source
from stride._translate_statements import Statements
from stride._translate_types import (
    C_TYPES, ArrayOf, Object, Scalar, Several, TupleOf, c_type, leaves, memory_type, with_memory,
)

_MAX_PASSES = 20
_MAX_DEPTH = 8
# The limit for an array from outside a kernel, which becomes a part of its text.
_MAX_CONSTANT_BYTES = 1 << 18


class Unit:
    """One translation: functions called, each once for a signature, in an order in which C++ knows them."""

    max_constant_bytes = _MAX_CONSTANT_BYTES

    def __init__(self):
        self.functions: Dict[tuple, "Function"] = {}
        self.texts: List[str] = []
        self.active: List[str] = []
        self.needs_half = False
        self.needs_atomics = False
        self.needs_slices = False
        self.needs_complex = False
        self.is_cooperative = False  # meets the whole grid
        self.constants: Dict[int, tuple] = {}  # arrays from outside, by id: the array, its name
        self.links: List[str] = []  # the user's CUDA C++, before the kernel

    def call(self, source: Source, types: tuple) -> "Function":
        key = (source.key, types)
        known = self.functions.get(key)
        if known is None:
            if sum(one is source.key or one == source.key for one in self.active) > _MAX_DEPTH:
                raise _errors.ExpressionError(
                    f"{source.file}:{source.definition.lineno}: {source.name} calls itself with other types at each "
                    f"call"
                )
            # Entered before translation, so that a recursive function is called by its name.
            known = self.functions[key] = Function(self, source, types, f"st_{len(self.functions)}_{source.identifier}")
            try:
                known.translate()
            except _errors.ExpressionError:
                del self.functions[key]  # it may be tried with other types
                raise
            if known.calls_itself:
                self.texts.append(known.declaration())
            self.texts.append(known.text())
        return known

    def prelude(self) -> str:
        half = "#include <cuda_fp16.h>\n" if self.needs_half else ""
        groups = "#include <cooperative_groups.h>\n" if self.is_cooperative else ""
        parts = [
            half,
            groups,
            *self.links,
            PRELUDE,
            SLICES if self.needs_slices else "",
            COMPLEX if self.needs_complex else "",
            ATOMICS if self.needs_atomics else "",
            *(self._constant_text(*one) for one in self.constants.values()),
            *self.texts,
        ]
        return "".join(parts)

    def constant_array(self, values: np.ndarray) -> str:
        """The name of a constant with these elements."""
        # The array stays with the name, so that no other can have its id.
        _, name = self.constants.setdefault(id(values), (values, f"st_constant_{len(self.constants)}"))
        return name

    def _constant_text(self, values: np.ndarray, name: str) -> str:
        flat = np.ascontiguousarray(values).ravel()
        dtype = flat.dtype
        if dtype.kind == "c":  # a constant is not constructed
            flat = flat.view(np.float32 if dtype.itemsize == 8 else np.float64)
        if dtype == _dtypes.float16:
            flat = flat.view(np.uint16)
        elements = ", ".join(Function.literal(one, flat.dtype) for one in flat.tolist())
        memory = f"__device__ const __align__(16) {c_type(flat.dtype)} {name}_memory[{flat.size}] = {{{elements}}};\n"
        return f"{memory}#define {name} ((const {memory_type(dtype)}*){name}_memory)\n"


class Function(Statements, Expressions, Operators, Calls, CudaCalls, Builtins, Loops):
    """One function with the types of its parameters. `translate` walks over it until its variables' types stay as they
    are."""

    def __init__(self, unit: Unit, source: Source, types: tuple, entry: str, is_kernel: bool = False):
        self.unit, self.source, self.entry, self.is_kernel = unit, source, entry, is_kernel
        self.types = [with_memory(name, one) for name, one in zip(source.parameters, types)]
        self.variables: Dict[str, object] = {}
        self.returned: object = None  # Scalar or TupleOf
        self.written = set()  # roots of parameters whose elements are stored to
        self.needs_dynamic = False  # the size of the block's dynamic shared memory is a parameter, in front
        self.stored_once = _stored_once(source.definition)
        self.aliases: Dict[str, Several] = {}  # variables set in one place, to a tuple within a parameter
        self.known: Dict[str, object] = {}  # the value of a variable that is set in one place, to a literal
        self.declared: Dict[str, str] = {}  # shared and local arrays
        self.lines: List[str] = []
        self.depth = 1
        self.num_loops = 0
        self.calls_itself = self.done = False
        # For each enclosing loop: the flag that a break sets, if the loop has an else.
        self.loops: List[Optional[str]] = []
        self.conditional = 0  # within what C++ may evaluate later or not at all

    # --- the whole ---

    def translate(self) -> None:
        source = self.source
        if len(self.types) != len(source.parameters):
            raise TypeError(f"{source.name} takes {len(source.parameters)} arguments, not {len(self.types)}")
        for one in self.types:
            for _, part in () if isinstance(one, Object) else leaves("", one):
                self.memory(part.dtype, source.definition)
        self.variables.update(zip(source.parameters, self.types))
        self.unit.active.append(source.key)
        try:
            self.settle()
        finally:
            self.unit.active.pop()
        self.done = True

    def settle(self) -> None:
        """Walks over the statements until the inferred types no longer change."""
        source = self.source
        for _ in range(_MAX_PASSES):
            before = self.state()
            self.lines, self.declared, self.num_loops = [], {}, 0
            self.statements(source.definition.body)
            if before == self.state():
                break
        else:
            self.fail(source.definition, "the types of its variables do not settle")
        if (
            self.calls_itself
            and self.returned is None
            and any(isinstance(one, ast.Return) and one.value is not None for one in ast.walk(source.definition))
        ):
            self.fail(source.definition, "it calls itself, and no return says of which type its result is")

    def state(self) -> tuple:
        return dict(self.variables), self.returned, len(self.written), self.needs_dynamic

    def parameters_text(self) -> str:
        parts = ["long long st_dynamic_bytes"] if self.needs_dynamic else []
        for name, kind in zip(self.source.parameters, self.types):
            for text, one in leaves(name, kind):
                if isinstance(one, ArrayOf):
                    const = "" if one.root in self.written else "const "
                    parts.append(f"{const}{memory_type(one.dtype)}* {text}")
                    parts += [f"long long {extent}" for extent in (*one.extents, *one.strides)]
                elif isinstance(one, Scalar):
                    is_widened = one is kind and self.is_widened(name, one)
                    parts.append(f"{c_type(one.dtype)} {f'a_{name}' if is_widened else text}")
        return ", ".join(parts)

    def is_widened(self, name: str, parameter: Scalar) -> bool:
        """Whether a number that is a parameter is assigned to with a wider type."""
        return self.variables[name].dtype != parameter.dtype  # type: ignore[attr-defined]

    def result_text(self) -> str:
        if isinstance(self.returned, TupleOf):
            return f"{self.entry}_result"
        return c_type(self.returned.dtype) if self.returned is not None else "void"  # type: ignore[attr-defined]

    def declarations(self) -> List[str]:
        lines = []
        for name, one in zip(self.source.parameters, self.types):
            if isinstance(one, Scalar) and self.is_widened(name, one):
                c = c_type(self.variables[name].dtype)  # type: ignore[attr-defined]
                lines.append(f"  {c} v_{name} = ({c})a_{name};")
        for name, one in self.variables.items():
            if name in self.source.parameters or name in self.declared:
                continue
            if isinstance(one, Scalar):
                lines.append(f"  {c_type(one.dtype)} v_{name} = 0;")
            elif isinstance(one, TupleOf):
                lines += [f"  {c_type(part.dtype)} t_{name}_{i} = 0;" for i, part in enumerate(one.parts)]
            elif isinstance(one, ArrayOf):
                is_const = any(root and root not in self.written for root in one.root.split("|"))
                lines.append(f"  {'const ' if is_const else ''}{memory_type(one.dtype)}* v_{name} = 0;")
                lines += [
                    f"  long long {own} = 0;"
                    for own in (*one.extents, *one.strides)
                    if own[:2] in ("e_", "w_") and own[2:].startswith(f"{name}_")
                ]
        return lines

    def result_struct(self) -> str:
        """The struct that a function of several results returns."""
        if not isinstance(self.returned, TupleOf):
            return ""
        members = "".join(f" {c_type(one.dtype)} f{i};" for i, one in enumerate(self.returned.parts))
        return f"struct {self.entry}_result {{{members} }};\n"

    def declaration(self) -> str:
        """In front of a function that calls itself."""
        return f"{self.result_struct()}__device__ {self.result_text()} {self.entry}({self.parameters_text()});\n"

    def text(self) -> str:
        result = "" if self.calls_itself else self.result_struct()
        head = (
            f'extern "C" __global__ void {self.entry}'
            if self.is_kernel
            else f"__device__ {self.result_text()} {self.entry}"
        )
        return "\n".join(
            [
                f"{result}{head}({self.parameters_text()}) {{",
                *self.declarations(),
                *self.declared.values(),
                *self.lines,
                "}",
                "",
            ]
        )

    def fail(self, node, what: str, kind=_errors.ExpressionError):
        line = getattr(node, "lineno", self.source.definition.lineno)
        raise kind(f"{self.source.file}:{line}: {self.source.name}: {what}")

    def memory(self, dtype: np.dtype, node) -> None:
        if dtype not in C_TYPES:
            self.fail(node, f"arrays of {dtype} cannot be used in a kernel of Python")
        self.unit.needs_half |= dtype == _dtypes.float16
        self.unit.needs_complex |= dtype.kind == "c"

    def emit(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)


class Translated(NamedTuple):
    """A kernel's text, its entry, which numbers and arrays of its arguments it writes, whether its blocks meet, and
    whether its first parameter is the size of dynamic shared memory in bytes."""

    text: str
    entry: str
    written: List[bool]
    is_cooperative: bool
    needs_dynamic: bool


def translate_kernel(source: Source, types: tuple, links=()) -> Translated:
    """`links`: CUDA C++ that the kernel calls."""
    unit = Unit()
    unit.links += links
    entry = f"py_{source.identifier}"
    function = Function(unit, source, types, entry, is_kernel=True)
    function.translate()
    text = function.text()
    written = [
        getattr(one, "root", None) in function.written
        for name, kind in zip(source.parameters, function.types)
        for _, one in leaves(name, kind)
    ]
    return Translated(unit.prelude() + text, entry, written, unit.is_cooperative, function.needs_dynamic)


def _stored_once(definition: ast.FunctionDef) -> Set[str]:
    """Variables that are no parameters and that one statement sets, which is no loop."""
    nodes = list(ast.walk(definition))
    stores = [one for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]
    counts = collections.Counter(one.id for one in stores)
    loops = {
        one.id
        for node in nodes
        if isinstance(node, (ast.For, ast.AugAssign))
        for one in ast.walk(node.target)
        if isinstance(one, ast.Name)
    }
    parameters = {one.arg for one in ast.walk(definition.args) if isinstance(one, ast.arg)}
    return {name for name, count in counts.items() if count == 1} - loops - parameters
