"""Statements inside translated functions."""

import ast
import importlib
import math
import re
from dataclasses import replace

from stride import _dtypes, cuda
from stride._translate_cuda import BARRIERS
from stride._translate_source import Source
from stride._translate_types import (
    INT, ArrayOf, Object, Scalar, Several, TupleOf, Unknown, UnknownValue, Value, c_type, calls_a_function, flattened,
    leaves, memory_type, promote, promote_parts,
)


_STABLE = re.compile(r"\d+|nt?_\w+_\d+")


class Statements:
    """The part of Function that translates statements."""

    # --- statements ---

    def statements(self, body) -> None:
        for statement in body:
            method = getattr(self, f"do_{type(statement).__name__}", None)
            if method is None:
                self.fail(
                    statement,
                    f"{type(statement).__name__} cannot be translated; there are assignments, if, for, while, break, "
                    f"continue, "
                    "return, assert and calls",
                )
            method(statement)

    def block(self, body) -> None:
        self.depth += 1
        self.statements(body)
        self.depth -= 1

    def do_Pass(self, node) -> None:  # noqa: N802
        pass

    def do_Import(self, node) -> None:  # noqa: N802
        for one in node.names:
            module = importlib.import_module(one.name)
            self.variables[one.asname or one.name.partition(".")[0]] = Object(
                module if one.asname else importlib.import_module(one.name.partition(".")[0])
            )

    def do_ImportFrom(self, node) -> None:  # noqa: N802
        module = importlib.import_module(node.module or "", None)
        for one in node.names:
            self.variables[one.asname or one.name] = Object(getattr(module, one.name))

    def do_FunctionDef(self, node) -> None:  # noqa: N802
        known = self.variables.get(node.name)
        if isinstance(known, Object) and isinstance(known.value, Source) and known.value.definition is node:
            return
        self.variables[node.name] = Object(Source.nested(node, self.source))

    def do_Assert(self, node) -> None:  # noqa: N802
        self.emit(f"if (!({self.truth(node.test)})) __trap();")

    def do_Raise(self, node) -> None:  # noqa: N802
        self.emit("__trap();")

    def do_Expr(self, node) -> None:  # noqa: N802
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return
        if not isinstance(node.value, ast.Call):
            self.fail(node, "an expression alone does nothing")
        called = self.visit(node.value.func)
        if isinstance(called, Object) and called.value in BARRIERS:
            self.emit(self.barrier(node.value, called.value))
            return
        value = self.visit(node.value)
        if isinstance(value, Value):
            self.emit(f"(void)({value.text});" if value.type is not None else f"{value.text};")

    def do_Return(self, node) -> None:  # noqa: N802
        if node.value is None or isinstance(node.value, ast.Constant) and node.value.value is None:
            self.emit("return;")
            return
        if self.is_kernel:
            self.fail(node, "a kernel returns nothing; write into an array")
        value = self.visit(node.value)
        if isinstance(value, list):
            kinds = tuple(replace(self.scalar(one, node).type.definite(), never_negative=False) for one in value)
            if self.returned is not None:
                if not isinstance(self.returned, TupleOf):
                    self.fail(node, "a function returns a number or a tuple, not both")
                kinds = promote_parts(node, self.returned.parts, kinds, self.fail)
            self.returned = TupleOf(kinds)
            self.emit(f"return {{{', '.join(self.cast(one, kind) for one, kind in zip(value, kinds))}}};")
            return
        value = self.scalar(value, node)
        if isinstance(value, Unknown):
            return
        if isinstance(self.returned, TupleOf):
            self.fail(node, "a function returns a number or a tuple, not both")
        kind = value.type.definite()
        kinds = [kind] if self.returned is None else [self.returned, kind]
        self.returned = replace(promote(*kinds).definite(), never_negative=False)
        self.emit(f"return {self.cast(value, self.returned)};")

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

    def do_AnnAssign(self, node) -> None:  # noqa: N802
        if node.value is not None:
            self.store(node.target, node.value, node)

    def do_Assign(self, node) -> None:  # noqa: N802
        for target in node.targets:
            self.store(target, node.value, node)

    def store(self, target, value, node) -> None:
        if isinstance(value, ast.Call):
            called = self.visit(value.func)
            if isinstance(called, Object) and called.value in (cuda.shared.array, cuda.local.array, cuda.shared_memory):
                self.declare(
                    target,
                    value,
                    called.value is not cuda.local.array,
                    ("dtype", "shape") if called.value is cuda.shared_memory else ("shape", "dtype"),
                )
                return
        self.store_value(target, self.visit(value), node)

    def store_value(self, target, value, node) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, Value) and isinstance(value.type, ArrayOf) and value.type.ndim == 1:
                value = [
                    self.element(value, [Value(f"{i}LL", Scalar(INT, None, True), i)], node)
                    for i in range(len(target.elts))
                ]
            if not isinstance(value, list) or len(value) != len(target.elts):
                self.fail(node, f"{len(target.elts)} names need as many values")
            for one, part in zip(target.elts, self.held(value, node)):
                self.store_value(one, part, node)
            return
        self.assign(target, value, node)

    def held(self, values: list, node) -> list:
        """The same values, unaffected by the next assignments."""
        kept, number = [], self.num_loops
        self.num_loops += 1
        for i, part in enumerate(values):
            if isinstance(part, list):
                part = self.held(part, node)
            elif isinstance(part, Value) and isinstance(part.type, Scalar) and len(values) > 1 and part.literal is None:
                temporary = f"x{number}_{i}"
                self.emit(f"{c_type(part.type.definite().dtype)} {temporary} = {part.text};")
                part = Value(temporary, part.type)
            kept.append(part)
        return kept

    def assign(self, target, value, node, silent: bool = False) -> None:
        if isinstance(target, ast.Subscript):
            self.assign_elements(target, value, node)
            return
        if isinstance(target, ast.Attribute):
            self.fail(node, f"nothing can be assigned to an attribute, here {target.attr}")
        if not isinstance(target, ast.Name):
            self.fail(node, f"nothing can be assigned to {type(target).__name__}")
        name = target.id
        if isinstance(value, list):
            self.assign_tuple(name, value, node)
            return
        if isinstance(value, Object):
            if self.variables.get(name, value) != value:
                self.fail(node, f"{name} stands for one thing only")
            self.variables[name] = value
            return
        if not isinstance(value, Value) or value.type is None:
            self.fail(node, "only numbers, tuples and arrays can be assigned")
        known = self.variables.get(name)
        if isinstance(value.type, ArrayOf):
            self.assign_array(name, value, node)
            return
        kind = value.type.definite()
        if known is not None and not isinstance(known, Scalar):
            self.fail(node, f"{name} stands for one thing only: a number, or one array")
        if known is not None:
            dtype = promote(known, kind).dtype
            kind = Scalar(dtype, None, known.never_negative and kind.never_negative)
        self.memory(kind.dtype, node)
        self.variables[name] = kind
        if name in self.stored_once and value.literal is not None:
            self.known[name] = value.literal
        if not silent:
            self.emit(f"v_{name} = {self.cast(value, kind)};")

    def assign_tuple(self, name: str, values: list, node) -> None:
        known = self.variables.get(name)
        if known is None and name in self.stored_once and self.is_of_parameters(values):
            self.aliases[name] = Several(values, getattr(values, "fields", ()))
            return
        kinds = tuple(self.scalar(one, node).type.definite() for one in values)
        literals = tuple(one.literal for one in values) if name in self.stored_once else ()
        if known is not None:
            if not isinstance(known, TupleOf) or name in self.source.parameters:
                self.fail(node, f"{name} stands for one thing only: a number, a tuple, or one array")
            kinds = promote_parts(node, known.parts, kinds, self.fail)
        self.variables[name] = TupleOf(kinds, literals=literals)
        for i, (one, kind) in enumerate(zip(self.held(values, node), kinds)):
            self.memory(kind.dtype, node)
            self.emit(f"t_{name}_{i} = {self.cast(one, kind)};")

    def is_of_parameters(self, values: list) -> bool:
        """Whether a tuple with arrays or tuples in it consists of parts of parameters, which nothing assigns to."""
        whole = [(name, one) for name, one in zip(self.source.parameters, self.types) if isinstance(one, TupleOf)]
        texts = {text for name, one in whole for text, _ in leaves(name, one)}
        has_more = any(isinstance(one, list) or isinstance(getattr(one, "type", None), ArrayOf) for one in values)
        return has_more and all(getattr(one, "text", None) in texts for one in flattened(values))

    def assign_array(self, name: str, value: Value, node) -> None:
        known, kind = self.variables.get(name), value.type
        if known is not None and (
            not isinstance(known, ArrayOf)
            or (known.dtype, known.ndim) != (kind.dtype, kind.ndim)
            or name in self.source.parameters
            or name in self.declared
        ):
            self.fail(node, f"{name} stands for one thing only: a number, or arrays of one type and as many axes")
        if known is not None and known.root != kind.root:
            kind = replace(kind, root="|".join(sorted({*known.root.split("|"), *kind.root.split("|")})))
        strided = kind.strided or known is not None and known.strided
        # The extents of a parameter, and of a row of one, do not change; those of a slice are the variable's own.
        own = (
            strided
            or not all(_STABLE.fullmatch(one) for one in kind.extents)
            or known is not None
            and known.extents != kind.extents
        )
        if not own:
            self.variables[name] = kind
            self.emit(f"v_{name} = {value.text};")
            return
        extents = tuple(f"e_{name}_{i}" for i in range(kind.ndim))
        strides = tuple(f"w_{name}_{i}" for i in range(kind.ndim)) if strided else ()
        self.variables[name] = replace(kind, extents=extents, strided=strided, strides=strides)
        parts = [(f"v_{name}", value.text), *zip(extents, kind.extents), *zip(strides, kind.steps())]
        # The assigned slice may be one of the variable itself.
        for i, (_, text) in enumerate(parts):
            self.emit(f"auto x{self.num_loops}_{i} = {text};")
        for i, (variable, _) in enumerate(parts):
            self.emit(f"{variable} = x{self.num_loops}_{i};")
        self.num_loops += 1

    def assign_elements(self, target, value, node) -> None:
        place = self.visit(target)
        if not isinstance(place, Value):
            self.fail(node, "a tuple's numbers cannot be assigned to")
        self.mark_written(target, node)
        if isinstance(place.type, Scalar):
            if isinstance(value, Value) and isinstance(value.type, ArrayOf) and value.type.ndim == 0:
                value = self.element(value, [], node)
            if not isinstance(value, Value) or not isinstance(value.type, Scalar):
                self.fail(node, "an element takes a number")
            self.emit(f"{place.lvalue()} = {self.stored(value, place)};")
            return
        self.assign_slice(place, value, node)

    def stored(self, value: Value, element: Value) -> str:
        """A number in the type of the element that takes it. One with a place of its own is of float16 in memory."""
        return self.cast(value, Scalar(_dtypes.float16 if element.place else element.type.dtype))

    def assign_slice(self, place: Value, value, node) -> None:
        """Element by element: from a number, or from an array of as many axes."""
        kind = place.type
        if isinstance(value, list) and kind.ndim == 1:
            for i, one in enumerate(self.held(value, node)):
                element = self.element(place, [Value(f"{i}LL", Scalar(INT, None, True), i)], node)
                self.emit(f"{element.lvalue()} = {self.stored(self.scalar(one, node), element)};")
            return
        if not isinstance(value, Value) or isinstance(value.type, ArrayOf) and value.type.ndim != kind.ndim:
            self.fail(node, f"{kind.ndim} axes of an array take a number or an array of {kind.ndim} axes")
        loop = self.num_loops
        self.num_loops += 1
        indices = [Value(f"j{loop}_{i}", Scalar(INT, None, True)) for i in range(kind.ndim)]
        for index, extent in zip(indices, kind.extents):
            self.emit(
                f"for (long long {index.text} = 0, end_{index.text} = {extent}; {index.text} < end_{index.text}; "
                f"++{index.text})"
            )
        element = self.element(place, indices, node)
        source = self.element(value, indices, node) if isinstance(value.type, ArrayOf) else value
        self.emit(f"  {element.lvalue()} = {self.stored(source, element)};")

    def do_AugAssign(self, node) -> None:  # noqa: N802
        target = node.target
        if isinstance(target, ast.Subscript) and calls_a_function(target):
            self.augment_element(node)
            return
        read = ast.copy_location(ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target, target)
        self.assign(target, self.binary(node, node.op, self.number(read), self.number(node.value)), node)

    def augment_element(self, node) -> None:
        """An element whose place is computed by a function, which is called once."""
        place = self.visit(node.target)
        if not isinstance(place, Value) or not isinstance(place.type, Scalar):
            self.fail(node, "a number is needed here")
        self.mark_written(node.target, node)
        name = f"r{self.num_loops}"
        self.num_loops += 1
        self.emit(f"auto& {name} = {place.lvalue()};")
        now = Value(f"(float){name}", place.type, None, name) if place.place else Value(name, place.type)
        self.emit(f"{name} = {self.stored(self.binary(node, node.op, now, self.number(node.value)), now)};")

    def declare(self, target, call, is_shared: bool, names=("shape", "dtype")) -> None:
        if not isinstance(target, ast.Name):
            self.fail(call, "an array of a block or a thread needs a name")
        arguments = dict(zip(names, call.args))
        arguments.update({"shape" if one.arg == "size" else one.arg: one.value for one in call.keywords})
        arguments.pop("alignment", None)
        if set(arguments) != {"shape", "dtype"}:
            self.fail(call, "an array has a shape and a dtype")
        shape = self.visit(arguments["shape"])
        if isinstance(shape, Object) and shape.value is None:
            shape = self.constant(call, 0)  # as large as the launch says
        shape = shape if isinstance(shape, list) else [shape]
        if any(isinstance(one, list) for one in shape):
            self.fail(call, "a shape is a number or a tuple of numbers")
        if not all(isinstance(one, Value) and isinstance(one.literal, int) for one in shape):
            self.fail(call, "the shape of such an array is made of known integers", UnknownValue)
        dtype = self.dtype(arguments["dtype"])
        self.memory(dtype, call)
        extents, name = [str(one.literal) for one in shape], target.id
        c, count = memory_type(dtype), math.prod(one.literal for one in shape)
        if is_shared and count == 0 and len(extents) == 1:
            self.needs_dynamic = True
            extents = [f"(st_dynamic_bytes / {dtype.itemsize})"]
            text = f"  extern __shared__ __align__(16) unsigned char st_dynamic[];\n  {c}* v_{name} = ({c}*)st_dynamic;"
        elif count <= 0:
            self.fail(call, "an array of no elements")
        else:
            # Classes with a constructor may not be made in shared memory: their bytes may.
            text = f"  {'__shared__ ' if is_shared else ''}{c} v_{name}[{count}];"
            if dtype.kind == "c" and is_shared:
                room = f"__shared__ __align__(16) unsigned char m_{name}[{count * dtype.itemsize}]"
                text = f"  {room};\n  {c}* v_{name} = ({c}*)m_{name};"
        kind = ArrayOf(dtype, len(extents), "", tuple(extents))
        if self.variables.get(name, kind) != kind or name in self.declared:
            self.fail(call, f"{name} stands for one thing only")
        self.variables[name] = kind
        self.declared[name] = text

    def mark_written(self, target, node) -> None:
        within = []
        while isinstance(target, ast.Subscript):
            within.append(target)
            target = target.value
        while within and self.is_tuple(getattr(target, "id", "")):
            target = within.pop()  # the array is in a tuple
            if not isinstance(self.visit(target), list):
                break
        if isinstance(target, ast.Subscript):
            value = self.visit(target)
            if isinstance(value, Value) and isinstance(value.type, ArrayOf):
                self.mark_root(value.type.root, node)
            return
        value = self.visit(target) if isinstance(target, (ast.Name, ast.Attribute, ast.Call)) else None
        if isinstance(value, Value) and isinstance(value.type, ArrayOf):
            self.mark_root(value.type.root, node)

    def is_tuple(self, name: str) -> bool:
        return name in self.aliases or isinstance(self.variables.get(name), TupleOf)

    def mark_root(self, roots: str, node) -> None:
        for root in filter(None, roots.split("|")):
            if root.startswith("="):
                self.fail(
                    node,
                    f"{root[1:]} is an array from outside the kernel, which is a constant there; pass it as an "
                    f"argument to write it",
                )
            self.written.add(root)
