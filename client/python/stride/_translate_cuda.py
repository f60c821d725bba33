"""Calls of stride.cuda's functions inside translated functions."""

import ast

from stride import _dtypes, cuda
from stride._translate_types import BOOL, FLOAT, INT, ArrayOf, Object, Scalar, Value


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


class CudaCalls:
    """The part of Function that translates calls of what stride.cuda has."""

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
