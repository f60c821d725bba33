"""Calls inside translated functions: math, conversions, what stride.cuda has, and other Python functions."""

import ast
import builtins
import inspect
import math
from dataclasses import replace
from typing import Dict

import numpy as np

from stride import _dtypes, cuda
from stride._translate_source import Source
from stride._translate_types import BOOL, C_TYPES, FLOAT, INT, ArrayOf, Object, Scalar, Value, c_type, promote


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
BARRIERS = {cuda.syncthreads: "__syncthreads();", cuda.syncwarp: "__syncwarp();", cuda.threadfence: "__threadfence();"}


class Calls:
    """The part of Function that translates calls."""

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
        if function in BARRIERS:
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
            return Value(f"(bool){tables.asked[function]}({self.cast(value, kind)})", Scalar(BOOL))
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
            return value if kind.dtype.kind != "f" else Value(f"(long long)rint({value.text})", Scalar(INT))
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
        values = [Value(template.format(axis), Scalar(INT, None, True)) for axis in "xyz"[:axes]]
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
        if not isinstance(value, Value) or not isinstance(value.type, ArrayOf) or not value.type.ndim:
            self.fail(node, "only arrays and tuples have a length")
        return Value(value.type.extents[0], Scalar(INT, None, True))

    def float_call(self, node, name: str, count: int) -> Value:
        if len(node.args) != count:
            self.fail(node, f"{name} takes {count} argument{'s' * (count > 1)}")
        values = [self.number(one) for one in node.args]
        kind = promote(*(one.type for one in values)).definite()
        kind = kind if kind.dtype.kind == "f" else Scalar(FLOAT)
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
        dtype = {int: INT, float: FLOAT, bool: BOOL}.get(function)
        if dtype is None:
            dtype = _dtypes.dtype_of(function)
        if dtype not in C_TYPES:
            self.fail(node, f"{dtype} cannot be used in a kernel of Python")
        if function is int and value.type.definite().dtype == INT:
            return value
        if dtype == BOOL:
            return Value(f"({self.truth(node.args[0])})", Scalar(BOOL))
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
