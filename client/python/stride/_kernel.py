"""User-defined kernels and elementwise functions."""

import ast
import functools
import inspect
import operator
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from stride import _dtypes, _elementwise, _encoding, _errors, _launch, _origin, _printed
from stride._array import Array, node_of, operands_of, wrap
from stride._graph import Node, check_isolated, elementwise, isolation
from stride._numbers import Number
from stride._session import _device_name, current_session
from stride._views import PartStrides, passed_on
from stride.v1 import operation_pb2 as pb

Extents = Union[int, Tuple[int, ...]]


def _dim3(extents: Extents, name: str) -> pb.Dim3:
    """`name` is grid or block. An extent of 0 is no launch in CUDA either; on the wire it would count as 1."""
    extents = tuple(map(operator.index, (extents,) if np.ndim(extents) == 0 else extents))
    if not 1 <= len(extents) <= 3:
        raise ValueError(f"a {name} has one to three extents: {extents}")
    if any(not 1 <= extent < 2**32 for extent in extents):
        raise ValueError(f"a {name}'s extents are from 1 to {2**32 - 1}: {extents}")
    return pb.Dim3(**dict(zip("xyz", extents)))


def _hashable(extents: Extents) -> Extents:
    return tuple(extents) if isinstance(extents, list) else extents


_MAX_TEMPLATES = 64  # per kernel, mostly for grids
_NO_VARIABLES: Mapping[str, object] = {}


class RawKernel:
    """A CUDA C++ kernel, compiled by the daemon for the device that runs it, CPU devices included.

        add = stride.RawKernel(source, "add")
        add((30,), (128,), (x, y, out, np.int32(n)))

    Arguments: arrays (pointers of the parameter's type; a pointer to non-const counts as a write), NumPy
    arrays (uploaded, not downloaded), numbers (converted to the parameter's type if that is exact), `bytes`
    (a struct), stride.Struct (one with arrays in it). `constants` sets variables of the source,
    `__constant__` or `__device__`, for this launch: `{"table": values, "bias": 3}`. `cooperative`: all blocks
    run at once and may synchronize (`cooperative_groups::this_grid().sync()`); a grid too large for that is
    refused. After a fault, reads of the arrays that the kernel may write raise it.

    Parameters
        source: CUDA C++, or with `ptx` the text of PTX; empty with `module`.
        name: the kernel's name in the source; for a template a name expression such as `scale<float>`.
        options: the compiler's, such as `-DSTEP=5`.
        ptx: whether the source is PTX.
        module: the full name of a Module that has the kernel.
    Raises
        CompileError at the first launch for what does not compile.
    Example
        >>> source = '''
        ... extern "C" __global__ void twice(const float* x, float* y) {
        ...   y[threadIdx.x] = 2 * x[threadIdx.x];
        ... }'''
        >>> twice = st.RawKernel(source, "twice")
        >>> x, y = st.ones(2, st.float32), st.zeros(2, st.float32)
        >>> twice((1,), (2,), (x, y))
        >>> y.tolist()
        [2.0, 2.0]
    """

    def __init__(
        self, source: Union[str, bytes], name: str, options: Sequence[str] = (), *, ptx: bool = False, module: str = ""
    ):
        """`source` is CUDA C++, with `ptx` PTX; as bytes a cubin or fatbin. With `module`, the name of one,
        it is not used."""
        self.source, self.name, self.options = source, name, tuple(options)
        _printed.note_code(source)
        self._kind = "module" if module else "ptx" if ptx else "binary" if isinstance(source, bytes) else "source"
        self._code = module or source
        self._templates: Dict[tuple, _encoding.LaunchTemplate] = {}
        self._code_bytes: Dict[object, bytes] = {}  # serialised code and options, by the code

    def __repr__(self) -> str:
        return f"<stride.RawKernel {self.name}>"

    def __call__(
        self, grid: Extents, block: Extents, arguments: Sequence, *, shared_memory_bytes: int = 0,
        constants: Optional[Mapping[str, object]] = None, cooperative: bool = False, session=None,
        device: Optional[str] = None,
    ) -> None:
        written = []
        for one in arguments:
            kind = type(one)
            if kind is Array:
                written.append(one)
            elif kind not in _launch.NUMBER_TYPES and not isinstance(one, _launch.NUMBERS):
                arguments, written = self._prepared_arguments(arguments, session)
                break
        # Only the service knows which of the arrays the kernel writes.
        self.launch(grid, block, arguments, written, shared_memory_bytes=shared_memory_bytes, constants=constants,
                    cooperative=cooperative, session=written[0].session if written else session, device=device)

    @staticmethod
    def _prepared_arguments(arguments: Sequence, session) -> Tuple[list, List[Array]]:
        """With arrays of the service in place of NumPy's, and those that a kernel may write."""
        arguments = [getattr(one, "_as_kernel_argument", one) for one in arguments]
        session = next((one.session for one in _launch.arrays_of(arguments)), session)
        arguments = [_launch.uploaded(one, session) for one in arguments]
        return arguments, _launch.written_arrays_of(arguments)

    def _code_for(self, session) -> str:
        return self._code

    def _constants(self) -> Optional[Mapping[str, object]]:
        """Those of every launch."""
        return None

    def launch(
        self, grid: Extents, block: Extents, values: Sequence, written: Sequence[Array], *,
        shared_memory_bytes: int = 0, constants: Optional[Mapping[str, object]] = None,
        cooperative: bool = False, session=None, device: Optional[str] = None,
    ) -> None:
        """Launches the kernel with arrays of the service only, where the arrays that it may write are known.

        Parameters
            grid: the number of blocks, for each axis.
            block: the number of threads of a block, for each axis.
            values: the arguments, as a call takes them.
            written: the arrays among them that the kernel may write.
            shared_memory_bytes: bytes of dynamic shared memory of a block.
            constants: values of the source's variables for this launch, by name.
            cooperative: whether all blocks run at once and may meet.
            session: whose launch it is; None for the arrays' session.
            device: the device's name; None for where the arrays are.
        Returns
            None.
        Raises
            CompileError for what does not compile; InvalidArgument for arguments that do not fit.
        Example
            >>> source = 'extern "C" __global__ void count(long long* y) { y[threadIdx.x] = threadIdx.x; }'
            >>> y = st.zeros(3, st.int64)
            >>> st.RawKernel(source, "count").launch((1,), (3,), (y,), [y])
            >>> y.tolist()
            [0, 1, 2]
        """
        session = session or next((one.session for one in _launch.arrays_of(values)), None) or current_session()
        nodes = [one._node for one in written]
        for node in nodes:
            if node.buffer is not None and node.buffer.loans or isolation.depth:
                check_isolated(node)
        template = self._template(session, grid, block, shared_memory_bytes, cooperative, device)
        variables = self._variables(session, constants)
        origin, stream = _origin.caller(), session._stream

        def add(flush):
            # A launch whose code is available is checked at once; the first of its kind is awaited.
            arguments, types, buffers = _launch.encoded(flush, values, variables)
            known: Optional[tuple] = None
            if variables or session._is_trace or template.known != (stream.number, types):
                known = (template.identity, tuple(variables), types)
                if not variables and not session._is_trace and known in stream.launched:
                    template.known = stream.number, types
            flush.add_launch(template, arguments, origin, known, buffers)
            for node in nodes:
                node.written()

        session._launch(add)
        for node in nodes:
            node.origin = origin
            if node.buffer is None or node.buffer.parts or type(node.strides) is PartStrides:
                passed_on(node)

    def _variables(self, session, constants: Optional[Mapping[str, object]]) -> Mapping[str, object]:
        """The values of variables that every launch and this one set, with arrays of the service."""
        always = self._constants()
        if not always and not constants:
            return _NO_VARIABLES
        variables = _launch.merged(always, constants)
        return {name: _launch.uploaded(value, session) for name, value in variables.items()}

    def _template(self, session, grid: Extents, block: Extents, shared_memory_bytes: int, cooperative: bool,
                  device: Optional[str]) -> _encoding.LaunchTemplate:
        """The common part of this launch and others like it, made once."""
        code = self._code if self._kind != "module" else self._code_for(session)
        device = session.device if device is None else _device_name(device) or session.device
        if type(grid) is list or type(block) is list:
            grid, block = _hashable(grid), _hashable(block)
        key = code, grid, block, shared_memory_bytes, cooperative, device
        template = self._templates.get(key)
        if template is None:
            launch = pb.KernelLaunch(
                entry=self.name,
                grid=_dim3(grid, "grid"),
                block=_dim3(block, "block"),
                shared_memory_bytes=shared_memory_bytes,
                cooperative=cooperative,
            )
            code_bytes = self._code_bytes.get(code)  # one object for all grids, so that comparing it is fast
            if code_bytes is None:
                with_code = pb.KernelLaunch(options=self.options)
                setattr(with_code, self._kind, code)
                self._code_bytes.clear()
                code_bytes = self._code_bytes[code] = with_code.SerializeToString()
            identity = self._kind, code, self.name, self.options, device
            template = _encoding.LaunchTemplate(code_bytes, launch, device, identity)
            if len(self._templates) >= _MAX_TEMPLATES:
                self._templates.clear()
            self._templates[key] = template
        return template


_BINARY = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder", ast.Pow: "power", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor", ast.LShift: "left_shift", ast.RShift: "right_shift",
}
_UNARY = {ast.USub: "negative", ast.UAdd: "positive", ast.Invert: "invert", ast.Not: "logical_not"}
_COMPARED = {
    ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal", ast.Eq: "equal",
    ast.NotEq: "not_equal",
}
_CONSTANTS = {"pi": np.pi, "e": np.e, "inf": np.inf, "nan": np.nan}


class _Translation(ast.NodeVisitor):
    """Records an expression's operations on given values. Its values are Nodes and Numbers."""

    def __init__(self, values, name: str, lookup=None):
        self._values, self._name, self._lookup = dict(values), name, lookup

    def generic_visit(self, node):
        raise _errors.ExpressionError(
            f"{self._name}: {type(node).__name__} at line {getattr(node, 'lineno', '?')} cannot be translated; "
            "there are arithmetic, comparisons, and/or/not, if-else, calls of stride's functions and assignments"
        )

    def _apply(self, name: str, *arguments):
        if all(type(one) is Number for one in arguments):
            function = getattr(np, name)
            return Number(function(*(one.value for one in arguments)).item())
        return elementwise(name, arguments)

    def run(self, statements):
        for statement in statements:
            if isinstance(statement, ast.Return) and statement.value is not None:
                return self.visit(statement.value)
            if (
                isinstance(statement, ast.Assign)
                and len(statement.targets) == 1
                and isinstance(statement.targets[0], ast.Name)
            ):
                self._values[statement.targets[0].id] = self.visit(statement.value)
            elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                self._values[statement.target.id] = self._apply(
                    _BINARY[type(statement.op)], self.visit(statement.target), self.visit(statement.value))
            elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):  # a docstring
                self.generic_visit(statement)
        raise _errors.ExpressionError(f"{self._name} returns nothing")

    def visit_Name(self, node):  # noqa: N802
        if node.id in self._values:
            return self._values[node.id]
        if node.id in _CONSTANTS:
            return Number(_CONSTANTS[node.id])
        try:
            value = self._lookup(node.id) if self._lookup is not None else None
        except (AttributeError, ValueError):
            value = None
        if isinstance(value, (bool, int, float, complex, np.generic)):
            return Number(value)
        raise _errors.ExpressionError(f"{self._name}: {node.id} is no argument and no number")

    def visit_Constant(self, node):  # noqa: N802
        if not isinstance(node.value, (bool, int, float, complex)):
            self.generic_visit(node)
        return Number(node.value)

    def visit_BinOp(self, node):  # noqa: N802
        if type(node.op) not in _BINARY:
            self.generic_visit(node)
        return self._apply(_BINARY[type(node.op)], self.visit(node.left), self.visit(node.right))

    def visit_UnaryOp(self, node):  # noqa: N802
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.USub) and type(operand) is Number:
            return Number(-operand.value)
        return self._apply(_UNARY[type(node.op)], operand)

    def visit_BoolOp(self, node):  # noqa: N802
        name = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        return functools.reduce(lambda a, b: self._apply(name, a, b), map(self.visit, node.values))

    def visit_Compare(self, node):  # noqa: N802
        sides = [self.visit(one) for one in (node.left, *node.comparators)]
        parts = []
        for op, left, right in zip(node.ops, sides, sides[1:]):
            if type(op) not in _COMPARED:
                self.generic_visit(op)
            parts.append(self._apply(_COMPARED[type(op)], left, right))
        return functools.reduce(lambda a, b: self._apply("logical_and", a, b), parts)

    def visit_IfExp(self, node):  # noqa: N802
        return self._apply("where", *map(self.visit, (node.test, node.body, node.orelse)))

    def visit_Call(self, node):  # noqa: N802
        # The last name: `cos`, `math.cos` and `np.cos` are one function.
        name = (
            node.func.id
            if isinstance(node.func, ast.Name)
            else node.func.attr if isinstance(node.func, ast.Attribute) else ""
        )
        function = _SERVICE_NAMES.get(name)
        if function is None or node.keywords:
            raise _errors.ExpressionError(
                f"{self._name}: no function {name or 'here'} is known to the service", reason="UNKNOWN_FUNCTION"
            )
        return self._apply(function, *map(self.visit, node.args))

    def visit_Attribute(self, node):  # noqa: N802
        if node.attr in _CONSTANTS:
            return Number(_CONSTANTS[node.attr])
        return self.generic_visit(node)


_SERVICE_NAMES = {
    "where": "where", "real": "real", "imag": "imag", "abs": "absolute", "min": "minimum", "max": "maximum",
}
for _table in (_elementwise.UNARY, _elementwise.BINARY):
    for _name, _public in _table.items():
        _SERVICE_NAMES[_name] = _name
        if _public:
            _SERVICE_NAMES[_public] = _name


def _is_expression(statements) -> bool:
    """Whether a body consists of assignments and a return that use only functions of the service."""
    for i, statement in enumerate(statements):
        is_last = i == len(statements) - 1
        if not (
            isinstance(statement, ast.Return)
            if is_last
            else isinstance(statement, (ast.Assign, ast.AugAssign))
            or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        ):
            return False
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                if name not in _SERVICE_NAMES:
                    return False
            elif isinstance(node, (ast.Subscript, ast.Tuple, ast.NamedExpr)):
                return False
    return True


def vectorize(
    function: Union[str, Callable, Sequence[str], None] = None,
    otypes=None,
    doc: Optional[str] = None,
    excluded=None,
    cache: bool = False,
    signature: Optional[str] = None,
    *,
    target: Optional[str] = None,
    identity=None,
) -> Callable:
    """An elementwise function, from an expression or from a Python function.

        smooth = stride.vectorize("where(x > 0, x, a * (exp(x) - 1))")   # called with x=..., a=...

        @stride.vectorize
        def smooth(x, a):
            return x if x > 0 else a * (math.exp(x) - 1)

    A function of assignments and an expression fuses with neighbouring operations. A function with more (if,
    loops, calls of other functions) becomes a separate kernel, in stride.kernel's subset of Python. A
    function that cannot be translated runs on the host, element by element, as NumPy's does; a
    DownloadWarning then names the reason and the line that calls it. With a list of Numba's signatures
    (`["float32(float32, float32)"]`) it takes these types only, and has the methods of NumPy's ufuncs (`reduce`,
    `accumulate`, `reduceat`, `outer`, `at`); `target` and `identity` are Numba's too. With either of them,
    and while a function is traced, what cannot be translated raises ExpressionError when it is called.

    Parameters
        function: an expression, a function of numbers, or a list of Numba's signatures; None for a decorator.
        otypes, doc, excluded, cache, signature: as of `numpy.vectorize`.
        target: accepted: the daemon chooses the device.
        identity: with signatures, the value of an empty reduction, or "reorderable"; None: a reduction takes the
            elements in order.
    Returns
        A function of arrays, or a decorator.
    Raises
        ExpressionError for an expression that cannot be translated.
    Example
        >>> smooth = st.vectorize("where(x > 0, x, a * x)")
        >>> smooth(x=st.array([1.0, -1.0]), a=0.5).tolist()
        [1.0, -0.5]
    """
    from stride import _host_vectorize

    if otypes is not None or excluded is not None or signature is not None or doc is not None or cache:
        return _host_vectorize.vectorize(function, otypes, doc, excluded, cache, signature)
    if function is None:
        return lambda function: vectorize(function, target=target)
    if isinstance(function, (list, tuple)):
        signatures = function
        if not signatures:
            return lambda function: vectorize(function, target=target)
        from stride import _vectorized

        return lambda function: _vectorized.Vectorized(function, signatures, compiled(function), identity)
    return compiled(function) if isinstance(function, str) or target is not None else _host_vectorize.function(function)


def compiled(function: Union[str, Callable]) -> Callable:
    """`vectorize` of an expression or a function that is translated. ExpressionError, here or at the first call, for
    what cannot be."""
    from stride import _elementwise_kernel, _python_kernel

    if isinstance(function, str):
        try:
            tree = ast.parse(function.strip(), mode="eval")
        except SyntaxError as error:
            raise _errors.ExpressionError(
                f"{error.msg} at byte {(error.offset or 1) - 1}: {function}",
                reason="EXPRESSION_SYNTAX",
                metadata={"position": str((error.offset or 1) - 1)},
            ) from None
        statements: list = [ast.Return(value=tree.body)]
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        called = {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        names = sorted(used - called - set(_CONSTANTS))
        signature = inspect.Signature(
            [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        )
        title, wrapped, lookup = function, lambda *_: None, None
    else:
        source = _python_kernel.Source(function)
        statements, lookup = source.definition.body, source.lookup
        signature, title, wrapped = inspect.signature(function), function.__name__, function

    simple = isinstance(function, str) or _is_expression(statements)

    @functools.wraps(wrapped)
    def call(*arguments, **kwargs) -> Array:
        bound = signature.bind(*arguments, **kwargs)
        bound.apply_defaults()
        operands = operands_of(tuple(bound.arguments.values()))
        if not simple:
            return _elementwise_kernel.elementwise_kernel(title, _python_kernel.Source(wrapped), operands)
        result = _Translation(zip(bound.arguments, operands), title, lookup).run(statements)
        return wrap(
            result
            if type(result) is Node and not result.held
            else node_of(np.asarray(result.value)) if type(result) is Number else elementwise("positive", (result,))
        )

    call.__name__ = getattr(wrapped, "__name__", "expression") if wrapped.__name__ != "<lambda>" else "expression"
    return call
