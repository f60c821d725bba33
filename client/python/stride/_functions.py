"""User-defined functions that the daemon stores by name (FunctionService). They work as built-in ones do.

    hypot3 = st.define_ufunc(
        "hypot3", ["float32,float32->float32", "float64,float64->float64"], expression="sqrt(a*a + b*b + 3)"
    )
    y = hypot3(x, 1.5) * 2          # fuses with neighbouring operations
    st.define_reduction("sumsq", ["float32->float64->float32"], map="a*a", combine="a + b", identity=0)(x, axis=0)
    st.define_gufunc("scale", "(n),()->(n)", ["float64,float64->float64"], source=...)

A text is CUDA C++ with a `__device__` function of the function's name, or of `entry`'s. Names belong to the
tenant and stay until they are deleted. Any program may repeat the same definition; a different one under that
name raises AlreadyExists."""

import re
import weakref
from typing import Dict, List, NamedTuple, Optional, Sequence, Union

import numpy as np

from stride import _dtypes, _errors, _inference, _manipulation, _reductions, _ufunc
from stride._array import _SCALARS, Array, node_of, operands_of, wrap
from stride._graph import Node, caller, meet, record, record_several
from stride._named import _full
from stride._numbers import Number
from stride._session import Session, current_session
from stride._ufunc import _give
from stride._ufunc_methods import apply_at
from stride.v1 import function_service_pb2 as proto, function_service_pb2_grpc, operation_pb2 as pb

__all__ = ["define_gufunc", "define_reduction", "define_ufunc", "delete_function", "functions"]

_PARAMETERS = "abcdefgh"


class _Loop(NamedTuple):
    inputs: tuple
    outputs: tuple


def _loop(signature: str) -> _Loop:
    groups = [
        tuple(_dtypes.dtype_of(np.dtype(one.strip())) for one in group.split(",")) for group in signature.split("->")
    ]
    if len(groups) not in (2, 3):
        raise ValueError(f"a signature is written as float32,float32->float32, not {signature!r}")
    return _Loop(groups[0], groups[-1])


class _Defined:
    """A definition, registered with each daemon before its first use there."""

    def __init__(self, name: str, signatures: Sequence[str], definition: proto.Function, device_kind: str = ""):
        self.__name__ = name
        self._loops = [_loop(one) for one in ([signatures] if isinstance(signatures, str) else signatures)]
        if not self._loops:
            raise ValueError("signatures are needed: the client has to know the results' types")
        self._definition, self._device_kind = definition, device_kind
        self._known: "weakref.WeakSet[Session]" = weakref.WeakSet()

    def __repr__(self) -> str:
        return f"<stride function {self.__name__}>"

    def _register(self, session: Session) -> None:
        while session._is_trace:
            session = session.outer
        if session in self._known:
            return
        stub = function_service_pb2_grpc.FunctionServiceStub(session._channels.control)
        try:
            session._call(
                stub.CreateFunction,
                proto.CreateFunctionRequest(
                    function_id=self.__name__, function=self._definition, device_kind=self._device_kind
                ),
            )
        except _errors.AlreadyExists:
            there = session._call(
                stub.GetFunction, proto.GetFunctionRequest(name=_full(session, self.__name__, "functions"))
            ).function
            there.ClearField("name")
            there.ClearField("create_time")
            if there != self._definition:
                raise
        self._known.add(session)

    def _choose(self, types: Sequence, dtype: Optional[np.dtype]) -> _Loop:
        """The first loop that accepts the types, as the daemon selects it; a Python number fits any type of
        its kind."""
        exact = [one for one in types if isinstance(one, np.dtype)]
        casting = "safe" if dtype is None else "same_kind"
        for loop in self._loops:
            if dtype is not None and loop.outputs[0] != dtype or len(loop.inputs) != len(types):
                continue
            if all(
                (
                    np.can_cast(one, to, casting)
                    if isinstance(one, np.dtype)
                    else np.can_cast(_inference.promote(*exact, one), to, "same_kind")
                )
                for one, to in zip(types, loop.inputs)
            ):
                return loop
        wanted = "" if dtype is None else f" and gives {dtype}"
        names = ", ".join(getattr(one, "name", None) or one.__name__ for one in types)
        raise _errors.DataTypeMismatch(
            f"none of the signatures of {self.__name__} takes these types{wanted}: {names}", reason="DATA_TYPE_MISMATCH"
        )


def _prepared(function: _Defined, inputs: tuple):
    """Operands and their session, in which the function is known."""
    operands = operands_of(inputs)
    session = None
    for one in operands:
        if type(one) is Node:
            session = one.session if session is None else meet(session, one.session)
    function._register(session)
    return operands, [one.dtype if type(one) is Node else one.type for one in operands], session


class Ufunc(_Defined):
    """A function of elements. With two inputs it has `reduce`, `accumulate`, `outer`, `at` and `reduceat`, as
    NumPy's ufuncs do."""

    def __call__(self, *inputs, out=None, where=True, casting: str = "same_kind", dtype=None):
        """Returns an array, or a tuple of arrays for a function with several results."""
        operands, types, session = _prepared(self, inputs)
        dtype = None if dtype is None else _dtypes.dtype_of(dtype)
        loop = self._choose(types, dtype)
        if len(loop.outputs) == 1 and dtype is None and out is None and where is True:
            shape = _inference.broadcast(*(one.shape for one in operands if type(one) is Node))
            node = Node(session, shape, loop.outputs[0], self.__name__, operands, caller())
            session._record(node)
            return wrap(node)
        mask = _ufunc._mask_of(where, session)
        outs = _ufunc._outs(out, len(loop.outputs))
        return _ufunc.give_all(self.__name__, operands, loop.outputs, dtype, casting, mask, outs)

    def _one(self, x, axis):
        if len(self._loops[0].outputs) != 1:
            raise TypeError(f"{self.__name__} has several results: it neither reduces nor accumulates")
        array = x if isinstance(x, Array) else wrap(node_of(x))
        self._register(array.session)
        loop = self._choose((array.dtype, array.dtype), None)
        return array, loop.outputs[0], None if axis is None else _inference.normal_axes(axis, array.ndim)

    def reduce(self, x, axis=0, keepdims: bool = False, out: Optional[Array] = None, initial=None, where=True) -> Array:
        return _give(_reduced(self.__name__, *self._one(x, axis), (), keepdims, initial, where), out, None, "same_kind")

    def accumulate(
        self, x, axis: int = 0, out: Optional[Array] = None, reverse: bool = False, exclusive: bool = False
    ) -> Array:
        array, dtype, (axis,) = self._one(x, axis)

        def build(flush, node, operands):
            flush.operation(node.handle, node.origin, accumulation=pb.Accumulation(
                function=self.__name__, input=operands[0], axis=axis, reverse=reverse, exclusive=exclusive))

        return _give(wrap(record(array.session, array.shape, dtype, build, (array._node,))), out, None, "same_kind")

    def reduceat(self, x, indices, axis: int = 0, out: Optional[Array] = None) -> Array:
        array, dtype, (axis,) = self._one(x, axis)
        places = node_of(indices, array.session)

        def build(flush, node, operands):
            flush.operation(
                node.handle,
                node.origin,
                reduce_at=pb.ReduceAt(function=self.__name__, input=operands[0], indices=operands[1], axis=axis),
            )

        shape = (*array.shape[:axis], places.shape[0], *array.shape[axis + 1:])
        return _give(wrap(record(array.session, shape, dtype, build, (array._node, places))), out, None, "same_kind")

    def outer(self, a, b) -> Array:
        a, b = (one if isinstance(one, Array) else wrap(node_of(one)) for one in (a, b))
        return self(_manipulation.reshape(a, a.shape + (1,) * b.ndim), b)

    def at(self, a: Array, indices, b=None) -> None:
        """`a[indices] = function(a[indices], b)` in the order of the indices; a repeated index counts each
        time. A function of one input takes no `b`."""
        if not isinstance(a, Array):
            raise TypeError(f"{self.__name__}.at changes a stride array, not {type(a).__name__}")
        self._register(a.session)
        unary = len(self._loops[0].inputs) == 1
        if unary != (b is None):
            raise TypeError(f"{self.__name__}.at takes {'no values' if unary else 'values'}")
        value = None if unary else Number(b) if isinstance(b, _SCALARS) else node_of(b, a.session)
        types = [a.dtype] if unary else [a.dtype, value.type if type(value) is Number else value.dtype]
        result = self._choose(types, None).outputs[0]
        if not np.can_cast(result, a.dtype, "same_kind"):
            raise _errors.DataTypeMismatch(
                f"{self.__name__}.at: {result} is not cast to {a.dtype}", reason="DATA_TYPE_MISMATCH"
            )
        apply_at(self.__name__, a, indices, value)


def _reduced(name: str, array: Array, dtype, axes, more: tuple, keepdims: bool, initial, where) -> Array:
    axes = tuple(range(array.ndim)) if axes is None else axes
    return _reductions.reduce_by(
        name, array._node, axes, keepdims, dtype, None, where, initial, tuple(one._node for one in more)
    )


class Reduction(_Defined):
    """finish(combine over the axes of map(inputs)); in any order and grouping."""

    def __call__(
        self, *inputs, axis=None, keepdims: bool = False, out: Optional[Array] = None, initial=None, where=True
    ) -> Array:
        arrays = [one if isinstance(one, Array) else wrap(node_of(one)) for one in inputs]
        operands, types, _ = _prepared(self, tuple(arrays))
        loop = self._choose(types, None)
        rank = max(one.ndim for one in arrays)
        axes = None if axis is None else _inference.normal_axes(axis, rank)
        if axes is None:
            axes = tuple(range(rank))
        return _give(
            _reduced(self.__name__, arrays[0], loop.outputs[0], axes, tuple(arrays[1:]), keepdims, initial, where),
            out,
            None,
            "same_kind",
        )


class Gufunc(_Defined):
    """A function of sub-arrays, mapped over the axes before them."""

    def __init__(self, name, layout, signatures, definition, device_kind=""):
        super().__init__(name, signatures, definition, device_kind)
        left, right = ("".join(layout.split())).split("->")
        self._inputs, self._outputs = (
            [[word for word in part.split(",") if word] for part in re.findall(r"\(([^)]*)\)", side)]
            for side in (left, right)
        )

    def __call__(self, *inputs, axes=None, axis: Optional[int] = None, keepdims: bool = False):
        """`axes`, `axis` and `keepdims` as in NumPy: the positions of the layout's axes in each input and
        output, by default last."""
        if len(inputs) != len(self._inputs):
            raise TypeError(f"{self.__name__} takes {len(self._inputs)} arrays, not {len(inputs)}")
        if all(isinstance(one, _SCALARS) for one in inputs):
            inputs = tuple(wrap(node_of(one)) for one in inputs)
        operands, types, session = _prepared(self, inputs)
        loop = self._choose(types, None)
        shapes = [one.shape if type(one) is Node else () for one in operands]
        message = pb.Gufunc(function=self.__name__, keep_dims=keepdims)
        places = self._places(shapes, axes, axis, keepdims, message)
        sizes, outer = self._sizes([_last(shape, place) for shape, place in zip(shapes, places)])
        results = []
        for words, dtype, place in zip(self._outputs, loop.outputs, places[len(operands):]):
            shape = outer + ((1,) if keepdims else tuple(sizes[word] for word in words if word in sizes))
            results.append((_placed(shape, place), dtype))

        def build(flush, operands, handles, origin):
            operation = pb.Operation(gufunc=message)
            operation.gufunc.inputs.extend(operands)
            for handle in handles:
                operation.outputs.add(handle=handle)
            flush.add(operation, origin)

        arrays = [wrap(node) for node in record_several(session, results, build, tuple(operands))]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def _places(self, shapes, axes, axis, keepdims, message) -> list:
        """For each operand the positions of its core axes, from 0. Also sets them in the message."""
        absent = self._absent(shapes)
        every = [*self._inputs, *self._outputs]
        counts = [len([word for word in words if word not in absent]) for words in every]
        for words, shape, count in zip(every, shapes, counts):
            if len(shape) < count:
                raise _errors.ShapeMismatch(
                    f"{self.__name__}: an array of shape {shape} has not the axes ({','.join(words)})",
                    reason="SHAPE_MISMATCH",
                )
        loop = max(len(shape) - count for shape, count in zip(shapes, counts))
        if axis is not None or keepdims:
            if any(len(words) > 1 for words in every) or len({word for words in every for word in words}) != 1:
                raise ValueError(
                    f"{self.__name__}: axis= and keepdims= are for layouts whose operands have one axis, the "
                    "same for all, or none"
                )
            if keepdims and any(self._outputs):
                raise ValueError(f"{self.__name__}: keepdims= is for layouts whose outputs have no axis")
        if keepdims:
            counts[len(shapes):] = [1] * len(self._outputs)
        ranks = [*map(len, shapes), *(loop + count for count in counts[len(shapes):])]
        if axis is not None:
            if axes is not None:
                raise TypeError(f"{self.__name__}: either axes= or axis=, not both")
            message.axis = axis
            given = [(axis,) * count for count in counts]
        elif axes is not None:
            given = [one if isinstance(one, (tuple, list)) else (one,) for one in axes]
            if (
                len(given) not in (len(every), len(shapes))
                or len(given) < len(every)
                and any(counts[len(shapes) :])
                and not keepdims
            ):
                raise ValueError(f"{self.__name__}: axes= has an entry for each input and output")
            for one in given:
                message.axes.add(axes=one)
        else:
            given = []
        given += [tuple(range(rank - count, rank)) for rank, count in zip(ranks[len(given):], counts[len(given):])]
        for i, (one, count) in enumerate(zip(given, counts)):
            if len(one) != count:
                raise ValueError(f"{self.__name__}: operand {i} has {count} axes in the layout, axes= names {len(one)}")
        return [_inference.normal_axes(one, rank) for one, rank in zip(given, ranks)]

    def _absent(self, shapes) -> set:
        return {
            word
            for words, shape in zip(self._inputs, shapes)
            if len(shape) < len(words)
            for word in words
            if word.endswith("?")
        }

    def _sizes(self, shapes):
        """Sizes of the core dimensions, without optional ones that an operand lacks, and the loop's shape."""
        sizes: Dict[str, int] = {
            word: int(word) for words in (*self._inputs, *self._outputs) for word in words if word.isdigit()
        }
        absent = self._absent(shapes)
        outers = []
        for words, shape in zip(self._inputs, shapes):
            core = [word for word in words if word not in absent]
            if len(shape) < len(core):
                raise _errors.ShapeMismatch(
                    f"{self.__name__}: an array of shape {shape} has not the axes ({','.join(core)})",
                    reason="SHAPE_MISMATCH",
                )
            split = len(shape) - len(core)
            outers.append(shape[:split])
            for word, size in zip(core, shape[split:]):
                if sizes.setdefault(word, size) != size:
                    raise _errors.ShapeMismatch(
                        f"{self.__name__}: the dimension {word.rstrip('?')} is {sizes[word]} and {size}",
                        reason="SHAPE_MISMATCH",
                    )
        return sizes, _inference.broadcast(*outers)


class _BuiltInGufunc(Gufunc):
    """A gufunc that every daemon has, for any types."""

    def __init__(self, name: str, layout: str):
        super().__init__(name, layout, "float64,float64->float64", proto.Function())

    def _register(self, session: Session) -> None:
        pass

    def _choose(self, types: Sequence, dtype: Optional[np.dtype]) -> _Loop:
        common = _inference.promote(*types)
        return _Loop((common, common), (common,))


BUILT_IN_GUFUNCS = {
    name: _BuiltInGufunc(name, layout)
    for name, layout in (
        ("matmul", "(m?,n),(n,p?)->(m?,p?)"),
        ("vecdot", "(n),(n)->()"),
        ("matvec", "(m,n),(n)->(m)"),
        ("vecmat", "(n),(n,m)->(m)"),
    )
}


def _last(shape: tuple, axes: tuple) -> tuple:
    """The shape with these axes last."""
    return (*(n for i, n in enumerate(shape) if i not in axes), *(shape[i] for i in axes))


def _placed(shape: tuple, axes: tuple) -> tuple:
    """The shape whose axes `_last` would bring there."""
    split = len(shape) - len(axes)
    core = dict(zip(axes, shape[split:]))
    rest = iter(shape[:split])
    return tuple(core[i] if i in core else next(rest) for i in range(len(shape)))


def _body(
    name: str, num_inputs: int, expression: Optional[str], source: Optional[str], entry: Optional[str]
) -> proto.FunctionBody:
    if (expression is None) == (source is None):
        raise ValueError("a function is an expression or the source of a device function: give one of them")
    if source is not None:
        return proto.FunctionBody(device_function=proto.DeviceFunctionBody(source=source, entry=entry or name))
    return proto.FunctionBody(
        expression=proto.ExpressionBody(text=expression, parameters=list(_PARAMETERS[:num_inputs]))
    )


def _identity(value):
    from stride._numbers import Number

    return None if value is None else Number(value).to_proto()


def define_ufunc(
    name: str, signatures: Union[str, Sequence[str]], *, expression: Union[None, str, Sequence[str]] = None,
    source: Optional[str] = None, entry: Optional[str] = None, identity=None, associative: bool = False,
    device_kind: str = "",
) -> Ufunc:
    """Defines an elementwise function; the daemon keeps the function for all of the tenant's sessions.

    Parameters
        name: an identifier, by which operations name the function.
        signatures: the types, as `float32,float32->float32`; an operation takes the first that all its arguments cast
            to safely.
        expression: a text of the inputs a, b, c and so on; for several results one text for each.
        source: CUDA C++ with a device function. With several results the function returns nothing and writes them
            through pointers that follow its arguments.
        entry: the device function's name; None for `name`.
        identity: for a function of two inputs the value of empty reductions.
        associative: for a function of two inputs whether a reduction may group elements in any way.
        device_kind: `cuda` or `cpu` for what compiles for these devices only; operations with the function then run
            there.
    Returns
        A Ufunc, which is called with arrays.
    Raises
        AlreadyExists for a name that is taken; ExpressionError and CompileError for what is wrong with the texts.
    Example
        >>> blend = st.define_ufunc("doc_blend", "float64,float64->float64", expression="0.5 * (a + b)")
        >>> blend(st.array([1.0, 2.0]), 3.0).tolist()
        [2.0, 2.5]
        >>> st.delete_function("doc_blend")
    """
    given = [signatures] if isinstance(signatures, str) else list(signatures)
    count = len(_loop(given[0]).inputs) if given else 0
    texts = [expression] if expression is None or isinstance(expression, str) else list(expression)
    body = _body(name, count, texts[0], source, entry)
    if len(texts) > 1:
        body.expression.more_texts.extend(texts[1:])
    definition = proto.UfuncDefinition(signatures=given, body=body, identity=_identity(identity),
                                       associative=associative)
    return Ufunc(name, given, proto.Function(ufunc=definition), device_kind)


def define_reduction(
    name: str,
    signatures: Union[str, Sequence[str]],
    *,
    combine: str,
    map: Optional[str] = None,  # noqa: A002
    finish: Optional[str] = None,
    identity=None,
    source: Optional[str] = None,
    device_kind: str = "",
) -> Reduction:
    """Defines a reduction of arrays along axes; the daemon keeps the reduction for all of the tenant's sessions.

    Parameters
        name: an identifier, by which operations name the reduction.
        signatures: the types, as `float32->float32`, or `float32->float64->float32` with the type in between.
        combine: an expression of `a` and `b`, two values in between.
        map: an expression of the inputs a, b, ..., computed for each element.
        finish: an expression of `a`, computed at the end.
        identity: the value of no elements; None makes empty reductions an error.
        source: CUDA C++ whose device functions the other texts then name.
        device_kind: `cuda` or `cpu` for what compiles for these devices only.
    Returns
        A Reduction, which is called with arrays.
    Raises
        AlreadyExists for a name that is taken; ExpressionError and CompileError for what is wrong with the texts.
    Example
        >>> squares = st.define_reduction("doc_squares", "float64->float64", map="a * a", combine="a + b", identity=0)
        >>> float(squares(st.array([1.0, 2.0])))
        5.0
        >>> st.delete_function("doc_squares")
    """
    given = [signatures] if isinstance(signatures, str) else list(signatures)
    count = len(_loop(given[0]).inputs) if given else 0

    def part(text, num_inputs):
        if text is None:
            return None
        return (
            _body(name, num_inputs, None, source, text)
            if source is not None
            else _body(name, num_inputs, text, None, None)
        )

    definition = proto.ReductionDefinition(
        signatures=given,
        map=part(map, count),
        combine=part(combine, 2),
        finish=part(finish, 1),
        identity=_identity(identity),
    )
    return Reduction(name, given, proto.Function(reduction=definition), device_kind)


def define_gufunc(
    name: str, layout: str, signatures: Union[str, Sequence[str]], *, source: str, entry: Optional[str] = None,
    device_kind: str = "",
) -> Gufunc:
    """Defines a function of arrays with common axes in front; the daemon keeps the function for all of the tenant's
    sessions.

    Parameters
        name: an identifier, by which operations name the function.
        layout: NumPy's grammar, `(m,n),(n)->(m)`.
        signatures: the types, as `float32,float32->float32`; one text or several.
        source: CUDA C++ with a device function, which takes a `stride_view<T, rank>` for each operand, inputs first,
            and writes the results, which begin as zeros.
        entry: the device function's name; None for `name`.
        device_kind: `cuda` or `cpu` for what compiles for these devices only.
    Returns
        A Gufunc, which is called with arrays.
    Raises
        AlreadyExists for a name that is taken; ExpressionError and CompileError for what is wrong with the text.
    Example
        >>> source = '''
        ... __device__ void doc_twice(stride_view<const float, 1> x, stride_view<float, 1> y) {
        ...   for (int i = 0; i < x.size(0); ++i) y(i) = 2 * x(i);
        ... }'''
        >>> twice = st.define_gufunc("doc_twice", "(n)->(n)", "float32->float32", source=source)
        >>> twice(st.ones(2, st.float32)).tolist()
        [2.0, 2.0]
        >>> st.delete_function("doc_twice")
    """
    given = [signatures] if isinstance(signatures, str) else list(signatures)
    body = proto.DeviceFunctionBody(source=source, entry=entry or name)
    return Gufunc(
        name,
        layout,
        given,
        proto.Function(gufunc=proto.GufuncDefinition(layout=layout, signatures=given, body=body)),
        device_kind,
    )


def functions(*, session: Optional[Session] = None) -> List[proto.Function]:
    """The tenant's functions, without their texts.

    Parameters
        session: the session; None for the current one.
    Returns
        A list of messages with name, signatures and kind.
    Example
        >>> [one.name for one in st.functions()]
        []
    """
    session = session or current_session()
    stub = function_service_pb2_grpc.FunctionServiceStub(session._channels.control)
    replies = session._pages(stub.ListFunctions, proto.ListFunctionsRequest(parent=session.tenant))
    return [one for reply in replies for one in reply.functions]


def delete_function(name: str, *, session: Optional[Session] = None) -> None:
    """Deletes a function that was defined; results that exist stay.

    Parameters
        name: the function's name.
        session: the session; None for the current one.
    Returns
        None.
    Raises
        NotFound where there is none.
    Example
        >>> plus = st.define_ufunc("doc_gone", "float64->float64", expression="a + 1")
        >>> float(plus(st.ones(())))
        2.0
        >>> st.delete_function("doc_gone")
    """
    session = session or current_session()
    stub = function_service_pb2_grpc.FunctionServiceStub(session._channels.control)
    session._call(stub.DeleteFunction, proto.DeleteFunctionRequest(name=_full(session, name, "functions")))
