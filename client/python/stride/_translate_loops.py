"""Loops inside translated functions."""

import ast
from typing import Callable, List, NamedTuple

from stride import _dtypes
from stride._translate_types import INT, ArrayOf, Object, Scalar, Value, c_type, promote


class Walk(NamedTuple):
    """The items of a loop: their count (a text), and the item at an index."""

    count: str
    item: Callable


class Loops:
    """The part of Function that translates loops."""

    def do_Break(self, node) -> None:  # noqa: N802
        flag = self.loops[-1] if self.loops else None
        if flag:
            self.emit(f"{flag} = true;")
        self.emit("break;")

    def do_Continue(self, node) -> None:  # noqa: N802
        self.emit("continue;")

    def loop_body(self, node, head: str, begin: Callable = lambda: None) -> None:
        """A loop whose first line is `head`; `begin` writes what comes before the statements. An `else` runs unless a
        `break` ended the loop."""
        flag = f"broken{self.num_loops}" if node.orelse else None
        self.num_loops += 1
        if flag:
            self.emit(f"bool {flag} = false;")
        self.emit(head)
        self.loops.append(flag)
        self.depth += 1
        begin()
        self.statements(node.body)
        self.depth -= 1
        self.loops.pop()
        self.emit("}")
        if flag:
            self.emit(f"if (!{flag}) {{")
            self.block(node.orelse)
            self.emit("}")

    def do_While(self, node) -> None:  # noqa: N802
        self.conditional += 1
        condition = self.truth(node.test)
        self.conditional -= 1
        self.loop_body(node, f"while ({condition}) {{")

    def do_For(self, node) -> None:  # noqa: N802
        called = self.visit(node.iter.func) if isinstance(node.iter, ast.Call) else None
        if isinstance(called, Object) and called.value is range and isinstance(node.target, ast.Name):
            self.for_range(node)
            return
        walk = self.walk(node.iter)
        loop = self.num_loops
        self.num_loops += 1
        index = Value(f"i{loop}", Scalar(INT, None, True))
        self.loop_body(
            node,
            f"for (long long i{loop} = 0, end{loop} = {walk.count}; i{loop} < end{loop}; ++i{loop}) {{",
            lambda: self.store_value(node.target, walk.item(index), node),
        )

    def range_parts(self, call) -> List[Value]:
        """Start, stop and step."""
        if any(one.arg != "unroll" for one in call.keywords) or not 1 <= len(call.args) <= 3:
            self.fail(call, "range takes one to three numbers")
        parts = [self.integer(one) for one in call.args]
        zero = Value("0", Scalar(None, int, True), 0)
        start, stop = (zero, parts[0]) if len(parts) == 1 else parts[:2]
        return [start, stop, parts[2] if len(parts) == 3 else Value("1", Scalar(None, int, True), 1)]

    def for_range(self, node) -> None:
        start, stop, step = self.range_parts(node.iter)
        kind = promote(*(one.type for one in (start, stop, step))).definite()
        rises = step.type.never_negative
        falls = isinstance(step.literal, int) and step.literal < 0
        self.assign(
            node.target, Value("", Scalar(kind.dtype, None, start.type.never_negative and rises)), node, silent=True
        )
        loop, name = self.num_loops, f"v_{node.target.id}"
        self.num_loops += 1
        c, i = c_type(kind.dtype), f"i{loop}"
        condition = (
            f"{i} < end{loop}"
            if rises
            else f"{i} > end{loop}" if falls else f"(step{loop} > 0 ? {i} < end{loop} : {i} > end{loop})"
        )
        self.loop_body(
            node,
            f"for ({c} {i} = {self.cast(start, kind)}, end{loop} = {self.cast(stop, kind)}, step{loop} = "
            f"{self.cast(step, kind)}; "
            f"{condition}; {i} += step{loop}) {{",
            lambda: self.emit(f"{name} = {i};"),
        )

    def walk(self, node) -> Walk:
        """The items of an array, a tuple, range, enumerate, zip and reversed."""
        called = self.visit(node.func) if isinstance(node, ast.Call) else None
        function = called.value if isinstance(called, Object) else None
        if function is range:
            start, stop, step = self.range_parts(node)
            self.unit.needs_slices = True
            a, b, c = (self.cast(one, Scalar(INT)) for one in (start, stop, step))
            never_negative = start.type.never_negative and step.type.never_negative
            return Walk(
                f"({c} > 0 ? ({b} - {a} + {c} - 1) / {c} : ({a} - {b} - {c} - 1) / -({c}))",
                lambda i: Value(f"({a} + {i.text} * {c})", Scalar(INT, None, never_negative)),
            )
        if function is enumerate and 1 <= len(node.args) <= 2:
            inner = self.walk(node.args[0])
            first = self.integer(
                node.args[1] if len(node.args) == 2 else next((one.value for one in node.keywords), ast.Constant(0))
            )
            return Walk(
                inner.count,
                lambda i: [
                    Value(
                        f"({i.text} + {self.cast(first, Scalar(INT))})", Scalar(INT, None, first.type.never_negative)
                    ),
                    inner.item(i),
                ],
            )
        if function is zip and node.args:
            parts = [self.walk(one) for one in node.args]
            count = parts[0].count
            for one in parts[1:]:
                count = f"st_min<long long>({count}, {one.count})"
            return Walk(count, lambda i: [one.item(i) for one in parts])
        if function is reversed and len(node.args) == 1:
            inner = self.walk(node.args[0])
            return Walk(
                inner.count, lambda i: inner.item(Value(f"({inner.count} - 1 - {i.text})", Scalar(INT, None, True)))
            )
        value = self.visit(node)
        if isinstance(value, list):
            array = self.tuple_as_array(value, node)
            return Walk(str(len(value)), lambda i: self.element(array, [i], node))
        if isinstance(value, Value) and isinstance(value.type, ArrayOf) and value.type.ndim:
            return Walk(value.type.extents[0], lambda i: self.element(value, [i], node))
        self.fail(node, "only range, arrays, tuples, enumerate, zip and reversed can be walked over")

    def tuple_as_array(self, values: list, node) -> Value:
        """The numbers of a tuple as a local array."""
        extents = [len(values)]
        if values and all(isinstance(one, list) and len(one) == len(values[0]) for one in values):
            extents.append(len(values[0]))
            values = [part for one in values for part in one]
        kinds = [self.scalar(one, node).type for one in values]
        kind = promote(*kinds).definite() if kinds else Scalar(INT)
        if kind.dtype == _dtypes.float16:
            kind = Scalar(_dtypes.float32)
        name = f"y{self.num_loops}"
        self.num_loops += 1
        elements = ", ".join(self.cast(one, kind) for one in values) or "0"
        self.emit(f"{c_type(kind.dtype)} {name}[{max(1, len(values))}] = {{{elements}}};")
        return Value(name, ArrayOf(kind.dtype, len(extents), "", tuple(map(str, extents))))
