"""`jit`, `vmap` and what shows a traced program, for functions of JAX's arrays."""

import functools
from typing import Any, Callable, List, Optional

import numpy as np

import stride as _st
from stride import _errors, _jit, _trace, _vmap, tree_util
from stride._array import Array as _Plain
from stride.jax import _config
from stride.jax._array import as_jax, inside

__all__ = ["ShapeDtypeStruct", "Traced", "eval_shape", "jit", "make_jaxpr", "named_call", "named_scope", "pmap", "vmap"]
_FLOATS = (float, complex)


def _weakly(value: Any) -> Any:
    """NumPy's arrays of 64 bits are of 32, as arguments."""
    if isinstance(value, np.ndarray) and value.dtype.itemsize >= 8 and value.dtype.kind in "iufc":
        return value.astype(_config.canonical(value.dtype))
    return value


def jit(fun: Optional[Callable] = None, /, **options: Any) -> Callable:
    """`stride.jit` for functions of JAX's arrays: traced once for each combination of shapes and types.

    Parameters
        fun: the function; without one the result is a decorator.
        options: `static_argnums`, `static_argnames`, `donate_argnums`, `donate_argnames` and the
            others of `stride.jit`.
    Returns
        A function of the same arguments, with `lower` and `clear_cache`.
    Raises
        What `stride.jit` raises.
    Example
        >>> from stride import jax
        >>> jax.jit(lambda x: x * 2)(jax.numpy.arange(3)).tolist()
        [0, 2, 4]
    """
    if fun is None:
        return lambda function: jit(function, **options)
    if options.get("abstracted_axes") is None:
        options.pop("abstracted_axes", None)
    compiled = _jit.jit(inside(fun), **options)

    @functools.wraps(fun)
    def call(*arguments: Any, **kwargs: Any) -> Any:
        arguments, kwargs = tree_util.tree_map(_weakly, (arguments, kwargs)) if _has_numpy(arguments, kwargs) else (
            arguments, kwargs)
        return as_jax(compiled(*arguments, **kwargs))

    call.clear_cache = compiled.clear_cache  # type: ignore[attr-defined]
    call.templates = compiled.templates  # type: ignore[attr-defined]
    call.lower = lambda *arguments, **kwargs: Lowered(call, fun, arguments, kwargs)  # type: ignore[attr-defined]
    call.trace = lambda *arguments, **kwargs: TracedCall(call, fun, arguments, kwargs)  # type: ignore[attr-defined]
    call._cache_size = lambda: len(compiled.templates)  # type: ignore[attr-defined]
    return call


def _has_numpy(arguments: Any, kwargs: Any) -> bool:
    return any(isinstance(one, np.ndarray) for one in (*arguments, *kwargs.values())) or any(
        isinstance(one, (tuple, list, dict)) for one in (*arguments, *kwargs.values()))


class TracedCall:
    """A function with arguments of known kinds: `jaxpr` is what is recorded, `lower()` the next stage, `out_info`
    shapes and types of the result."""

    def __init__(self, call: Callable, fun: Callable, arguments: tuple, kwargs: dict):
        self._call, self._fun, self._arguments, self._kwargs = call, fun, arguments, kwargs

    @property
    def jaxpr(self) -> Any:
        return make_jaxpr(self._fun)(*self._arguments, **self._kwargs)

    @property
    def out_info(self) -> Any:
        return eval_shape(self._fun, *self._arguments, **self._kwargs)

    def lower(self, **_: Any) -> "Lowered":
        """The next stage.

        Example
            >>> from stride import jax
            >>> float(jax.jit(lambda x: x + 1).trace(1.0).lower().compile()(1.0))
            2.0
        """
        return Lowered(self._call, self._fun, self._arguments, self._kwargs)


class Lowered:
    """A function with arguments of known kinds: `compile()` is the jitted function, `as_text()` what is recorded."""

    def __init__(self, call: Callable, fun: Callable, arguments: tuple, kwargs: dict):
        self._call, self._fun, self._arguments, self._kwargs = call, fun, arguments, kwargs

    def compile(self) -> Callable:
        """The jitted function.

        Example
            >>> from stride import jax
            >>> float(jax.jit(lambda x: x + 1).lower(1.0).compile()(1.0))
            2.0
        """
        return self._call

    def as_text(self) -> str:
        """The text of the program, as `make_jaxpr` has it.

        Example
            >>> from stride import jax
            >>> "add" in jax.jit(lambda x: x + 1).lower(1.0).as_text()
            True
        """
        return str(make_jaxpr(self._fun)(*self._arguments, **self._kwargs))


def vmap(
    fun: Callable, in_axes: Any = 0, out_axes: Any = 0, axis_name: Any = None, axis_size: Optional[int] = None,
    spmd_axis_name: Any = None,
) -> Callable:
    """`stride.vmap` for functions of JAX's arrays: the items are computed together.

    Parameters
        fun: a function of single items.
        in_axes, out_axes, axis_name, axis_size, spmd_axis_name: as in `stride.vmap`.
    Returns
        A function of the same arguments with one axis more.
    Raises
        What `stride.vmap` raises.
    Example
        >>> from stride import jax
        >>> jax.vmap(lambda x: x * 2)(jax.numpy.arange(3)).tolist()
        [0, 2, 4]
    """
    mapped = _vmap.vmap(inside(fun), in_axes, out_axes, axis_name, axis_size, spmd_axis_name)

    @functools.wraps(fun)
    def call(*arguments: Any, **kwargs: Any) -> Any:
        arguments, kwargs = tree_util.tree_map(_weakly, (arguments, kwargs))
        return as_jax(mapped(*arguments, **kwargs))

    return call


def pmap(fun: Callable, *_: Any, **__: Any) -> Callable:
    """Not there: `vmap` maps on one device, and sharded arrays spread over several.

    Raises
        Unimplemented.
    Example
        >>> from stride import jax
        >>> jax.pmap(lambda x: x)
        Traceback (most recent call last):
        stride._errors.Unimplemented: jax.pmap is not there: use vmap, or arrays with a NamedSharding
    """
    raise _errors.Unimplemented("jax.pmap is not there: use vmap, or arrays with a NamedSharding",
                                reason="NOT_IMPLEMENTED", metadata={"feature": "jax.pmap"})


class ShapeDtypeStruct:
    """A shape and a type.

    Parameters
        shape: the lengths of the axes.
        dtype: the element type.
        sharding, weak_type: kept.
    Example
        >>> from stride import jax
        >>> jax.ShapeDtypeStruct((2,), "float32")
        ShapeDtypeStruct(shape=(2,), dtype=float32)
    """

    def __init__(self, shape: Any, dtype: Any, *, sharding: Any = None, weak_type: bool = False, **_: Any):
        self.shape, self.dtype, self.sharding, self.weak_type = tuple(shape), np.dtype(dtype), sharding, weak_type

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype})"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, ShapeDtypeStruct) and (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))


def _traced(fun: Callable, arguments: tuple, kwargs: dict) -> tuple:
    flat, tree = tree_util.tree_flatten((arguments, kwargs))
    arrays = []
    for one in flat:
        if isinstance(one, ShapeDtypeStruct):
            arrays.append(_st.zeros(one.shape, dtype=one.dtype))
        elif isinstance(one, (bool, int, float, complex, np.generic, np.ndarray)):
            values = np.asarray(one)
            arrays.append(_st.asarray(values.astype(_config.canonical(values.dtype))))
        else:
            arrays.append(one)
    leaves: list = []
    structure = _trace.flatten(tree_util.tree_unflatten(tree, arrays), leaves)
    session = _trace.session_of(leaves)
    specs = tuple([(one.shape, np.dtype(one.dtype)) for one in leaves])
    return _trace.trace(inside(fun), structure, specs, session)


def eval_shape(fun: Callable, *args: Any, **kwargs: Any) -> Any:
    """Shapes and types of a function's result: it is traced, and nothing is computed.

    Parameters
        fun: the function.
        args, kwargs: its arguments: arrays, or ShapeDtypeStruct.
    Returns
        A pytree of ShapeDtypeStruct.
    Raises
        TracingError for a function that cannot be traced.
    Example
        >>> from stride import jax
        >>> jax.eval_shape(lambda x: x + 1, jax.ShapeDtypeStruct((2,), "float32"))
        ShapeDtypeStruct(shape=(2,), dtype=float32)
    """
    template, result = _traced(fun, args, kwargs)
    structs = iter([ShapeDtypeStruct(one.shape, _config.canonical(one.dtype)) for one in template.outputs])
    leaves = [
        next(structs) if slot is _Plain else ShapeDtypeStruct((), _config.canonical(np.asarray(slot.value).dtype))
        for slot in result.slots
    ]
    return tree_util.tree_unflatten(result.tree, leaves)


class Traced:
    """A traced program: `str()` is a text with one operation of the service a line. It is no jaxpr: names and grammar
    are this service's."""

    def __init__(self, template: _trace.Template):
        self._template = template

    @property
    def in_avals(self) -> List[ShapeDtypeStruct]:
        return [ShapeDtypeStruct(*self._template.specs[one]) for one in self._template.inputs]

    @property
    def out_avals(self) -> List[ShapeDtypeStruct]:
        return [ShapeDtypeStruct(one.shape, one.dtype) for one in self._template.outputs]

    def __str__(self) -> str:
        template = self._template
        names: dict = {}

        def name(handle: int) -> str:
            text = names.setdefault(handle, f"v{len(names)}")
            spec = template.specs.get(handle)
            return f"{text}:{spec[1]}[{','.join(map(str, spec[0]))}]" if spec else text

        lines = [f"{{ lambda {' '.join(name(one) for one in [*template.inputs, *(h for _, h in template.captured)])} ."]
        for operation, paths, _ in template.commands:
            if operation is None:
                continue
            kind = operation.WhichOneof("kind")
            message = getattr(operation, kind)
            what = kind
            if kind == "ufunc" or kind in ("accumulation", "outer", "apply_at"):
                what = message.function if kind == "ufunc" else f"{kind}[{message.function}]"
            elif kind == "expression":
                what = f"expression[{message.text}]"
            elif kind == "reduction":
                function = type(message).Function.Name(message.function)[9:].lower()
                what = f"reduction[{message.function_name or function}]"
            inputs = [names.get(handle, f"v{handle}") for path, handle in paths if path[0] != "outputs"]
            outputs = [name(one.handle) for one in operation.outputs]
            lines.append(f"  {' '.join(outputs)} = {what} {' '.join(inputs)}")
        results = ", ".join(names.get(one.handle, f"v{one.handle}") for one in template.outputs)
        return "\n".join([*lines, f"  in ({results}) }}"])

    __repr__ = __str__


def make_jaxpr(fun: Callable, static_argnums: Any = (), return_shape: bool = False, **_: Any) -> Callable:
    """A function that traces `fun` and returns the program's text: operations of this service, not JAX's primitives.

    Parameters
        fun: the function.
        static_argnums: arguments that are not arrays.
        return_shape: whether shapes and types of the result are returned too.
    Returns
        A function of `fun`'s arguments that returns a Traced.
    Raises
        TracingError for a function that cannot be traced.
    Example
        >>> from stride import jax
        >>> print(jax.make_jaxpr(lambda x: x + 1)(1.0))
        { lambda v0:float32[] .
          v1:float32[] = add v0
          in (v1) }
    """
    places = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @functools.wraps(fun)
    def call(*arguments: Any, **kwargs: Any) -> Any:
        given = [_trace.Static(one) if i in places else one for i, one in enumerate(arguments)]
        made = Traced(_traced(fun, tuple(given), kwargs)[0])
        return (made, eval_shape(fun, *arguments, **kwargs)) if return_shape else made

    return call


def named_call(fun: Callable, *, name: Optional[str] = None) -> Callable:
    """`fun` itself: operations are named after the line that records them.

    Parameters
        fun: a function.
        name: accepted.
    Returns
        `fun`.
    Example
        >>> from stride import jax
        >>> jax.named_call(abs, name="size")(-1)
        1
    """
    return fun


class named_scope:  # noqa: N801, JAX's name
    """A context manager and decorator without effect.

    Parameters
        name: accepted.
    Example
        >>> from stride import jax
        >>> with jax.named_scope("layer"):
        ...     pass
        ...
    """

    def __init__(self, name: str):
        self.name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: Any) -> None:
        return None

    def __call__(self, function: Callable) -> Callable:
        return function
