"""The array that users hold."""

import weakref
from typing import TYPE_CHECKING, Any, Optional, Tuple

import numpy as np

from stride import _errors, _graph
from stride._array_methods import NumpyMethods
from stride._array_properties import Properties
from stride._array_reading import Reading
from stride._device_methods import DeviceMethods
from stride._graph import Node, elementwise
from stride._jax_methods import JaxMethods
from stride._numbers import Number
from stride._views import PartStrides

_SCALARS = (bool, int, float, complex, np.generic)
# Attributes of NumPy's scalars, each of some types, that an array without axes has as well.
_OF_NUMBERS = frozenset(
    ("as_integer_ratio", "bit_count", "denominator", "fromhex", "hex", "is_integer", "numerator")
)
# Attributes of other libraries' objects that compute with arrays themselves.
_ARRAY_LIKE = (
    "__array_ufunc__",
    "__array__",
    "__array_namespace__",
    "__array_priority__",
    "__dlpack__",
    "__cuda_array_interface__",
)


class Array(Properties, Reading, NumpyMethods, DeviceMethods, JaxMethods):
    """An n-dimensional array on a daemon's device, computed when it is read.

    Operations record themselves and return at once; reading (`np.asarray`, `float`, `print`, `tolist`) sends
    the operations that it needs in one round trip. Values that are never read are never computed, except long
    operations that do not fuse (products, reductions, copies of about 256 MiB): they are sent when they are
    recorded and run asynchronously. Slices, transposes and reshapes are views, as in NumPy. In-place
    operators and assignment change what views see.

    Parameters
        shape: the extents.
        dtype: the element type.
        buffer: None: elements come from `stride.array`.
        offset: 0.
        strides: None.
        order: C, F or None; the elements lie in C order.
    Raises
        Unimplemented for a `buffer`.
    Example
        >>> x = st.Array((2, 3), st.float32)
        >>> x.shape, x.dtype
        ((2, 3), dtype('float32'))
    """

    # All but the first are of arrays whose elements are on the host (`_elements.py`, `_host_arrays.py`), and set there
    # alone.
    __slots__ = ("_node", "_host", "_target", "_copy", "_home", "_view", "__weakref__")
    _node: Node
    # Before NumPy's own operators.
    __array_priority__ = 1000

    def __init__(self, shape, dtype=float, buffer=None, offset: int = 0, strides=None, order: Optional[str] = None):
        """As `numpy.ndarray`: an array of zeros, or with `buffer` of a copy of the elements in one of the host."""
        if buffer is None:
            if offset or strides is not None:
                raise ValueError("offset and strides are of a buffer, which is not given")
            made = _creation.zeros(shape, dtype, order)
        else:
            buffer = buffer._read() if isinstance(buffer, Array) else buffer
            made = _conversion.asarray(np.ndarray(shape, dtype, buffer, offset, strides, order))
        # The other array is left without a node, so that its end changes nothing.
        self._node = made._node
        del made._node

    def __del__(self):
        try:
            self._node.held = False
        except (AttributeError, _errors.ArrayDeleted):
            pass  # it was never given a node, or has given it up

    def __repr__(self) -> str:
        if not is_readable(self):
            return f"stride.Array(shape={self.shape}, dtype={self.dtype}, traced)"
        return f"stride.Array({_text(self, ', ', 'stride.Array(')}, dtype={self.dtype})"

    def __str__(self) -> str:
        if not is_readable(self):
            return repr(self)
        return _text(self, " ", "") if self.ndim else str(self._read())

    def __format__(self, spec: str) -> str:
        if not is_readable(self):
            return format(repr(self), "")
        return format(self.item(), spec) if spec and self.size == 1 else format(str(self), spec)

    def __hash__(self) -> int:
        """The hash of the number in an array without axes: `x[0]` is a key like NumPy's scalars. The array must not be
        written while it is a key."""
        if self.shape:
            raise TypeError("an array is not hashable; only one without axes is, as its number")
        return hash(self.item())

    def __round__(self, ndigits: Optional[int] = None):
        number = self._one("a rounded number")
        return round(number) if ndigits is None else round(number, ndigits)

    @classmethod
    def __class_getitem__(cls, _: Any) -> type:
        """The class: annotations such as `ndarray[Any, dtype]` say nothing more here."""
        return cls

    def __trunc__(self) -> int:
        return int(self._one("int"))

    def __bytes__(self) -> bytes:
        """The elements' bytes in C order; of an integer so many zeros, as of NumPy's."""
        values = self._read()
        return bytes(values) if self.ndim else bytes(values[()])

    def __copy__(self) -> "Array":
        return _casts.copy(self)

    def copy(self, order: Optional[str] = "C") -> "Array":
        """A copy, which shares no elements.

        Parameters
            order: C or F, the order of memory; A or K, that of this array where it is C or F.
        Returns
            An array of the same shape and type.
        Example
            >>> x = st.zeros(2)
            >>> y = x.copy()
            >>> y[0] = 1
            >>> x.tolist()
            [0.0, 0.0]
        """
        return _casts.copy(self) if order == "C" else _conversion.copy(self, order)

    def __reduce__(self):
        """By value: the elements travel, and come back as an array of the session that is then current."""
        return _restored, (self.to_numpy(),)

    def __deepcopy__(self, _) -> "Array":
        return self.__copy__()

    def __getattr__(self, name: str):
        # Python calls this only for names that are not found.
        if name == "_node":
            raise _errors.ArrayDeleted("the array was deleted: by delete(), or as a donated argument of stride.jit")
        if name in _OF_NUMBERS and not self.ndim:
            return getattr(self._read()[()], name)
        if not name.startswith("_") and hasattr(np.ndarray, name):
            raise AttributeError(f"stride arrays have no {name!r}; np.asarray(x).{name} is that of a copy on the host")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # --- elements ---

    def __getitem__(self, key) -> "Array":
        return _indexing.get(self, key)

    def __setitem__(self, key, value) -> None:
        _indexing.set(self, key, value)

    def __delitem__(self, key) -> None:
        raise ValueError("cannot delete array elements")

    # --- with other libraries ---

    def __array_namespace__(self, *, api_version: Optional[str] = None):
        from stride import _versions

        return _versions.namespace(api_version)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        from stride import _numpy_protocol

        return _numpy_protocol.apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function, types, arguments, kwargs):
        from stride import _numpy_protocol

        return _numpy_protocol.apply_function(function, arguments, kwargs)

    # --- operators ---

    if TYPE_CHECKING:
        # Made below, one for each function of the service.
        def __add__(self, other: Any) -> "Array": ...
        def __radd__(self, other: Any) -> "Array": ...
        def __iadd__(self, other: Any) -> "Array": ...
        def __sub__(self, other: Any) -> "Array": ...
        def __rsub__(self, other: Any) -> "Array": ...
        def __isub__(self, other: Any) -> "Array": ...
        def __mul__(self, other: Any) -> "Array": ...
        def __rmul__(self, other: Any) -> "Array": ...
        def __imul__(self, other: Any) -> "Array": ...
        def __truediv__(self, other: Any) -> "Array": ...
        def __rtruediv__(self, other: Any) -> "Array": ...
        def __itruediv__(self, other: Any) -> "Array": ...
        def __floordiv__(self, other: Any) -> "Array": ...
        def __rfloordiv__(self, other: Any) -> "Array": ...
        def __ifloordiv__(self, other: Any) -> "Array": ...
        def __mod__(self, other: Any) -> "Array": ...
        def __rmod__(self, other: Any) -> "Array": ...
        def __imod__(self, other: Any) -> "Array": ...
        def __pow__(self, other: Any) -> "Array": ...
        def __rpow__(self, other: Any) -> "Array": ...
        def __ipow__(self, other: Any) -> "Array": ...
        def __and__(self, other: Any) -> "Array": ...
        def __rand__(self, other: Any) -> "Array": ...
        def __iand__(self, other: Any) -> "Array": ...
        def __or__(self, other: Any) -> "Array": ...
        def __ror__(self, other: Any) -> "Array": ...
        def __ior__(self, other: Any) -> "Array": ...
        def __xor__(self, other: Any) -> "Array": ...
        def __rxor__(self, other: Any) -> "Array": ...
        def __ixor__(self, other: Any) -> "Array": ...
        def __lshift__(self, other: Any) -> "Array": ...
        def __rlshift__(self, other: Any) -> "Array": ...
        def __ilshift__(self, other: Any) -> "Array": ...
        def __rshift__(self, other: Any) -> "Array": ...
        def __rrshift__(self, other: Any) -> "Array": ...
        def __irshift__(self, other: Any) -> "Array": ...
        def __lt__(self, other: Any) -> "Array": ...
        def __le__(self, other: Any) -> "Array": ...
        def __gt__(self, other: Any) -> "Array": ...
        def __ge__(self, other: Any) -> "Array": ...
        def __eq__(self, other: Any) -> "Array": ...  # type: ignore[override]
        def __ne__(self, other: Any) -> "Array": ...  # type: ignore[override]

    def __matmul__(self, other) -> "Array":
        other = _operand(self, other)
        return NotImplemented if other is NotImplemented else _linear_algebra.matmul_nodes(self._node, other)

    def __rmatmul__(self, other) -> "Array":
        other = _operand(self, other)
        return NotImplemented if other is NotImplemented else _linear_algebra.matmul_nodes(other, self._node)

    def __imatmul__(self, other) -> "Array":
        return _assign_in_place(self, self @ other)

    def __pos__(self) -> "Array":
        return wrap(elementwise("positive", (self._node,)))

    def __neg__(self) -> "Array":
        return wrap(elementwise("negative", (self._node,)))

    def __abs__(self) -> "Array":
        return wrap(elementwise("absolute", (self._node,)))

    def __invert__(self) -> "Array":
        return wrap(elementwise("invert", (self._node,)))

    def __divmod__(self, other) -> Tuple["Array", "Array"]:
        from stride import _ufunc

        return NotImplemented if _operand(self, other) is NotImplemented else _ufunc.call("divmod", (self, other))

    def __rdivmod__(self, other) -> Tuple["Array", "Array"]:
        from stride import _ufunc

        return NotImplemented if _operand(self, other) is NotImplemented else _ufunc.call("divmod", (other, self))


def _restored(values: np.ndarray) -> Array:
    from stride import _conversion

    return _conversion.asarray(values)


def is_readable(array: Array) -> bool:
    """False within a function that jit or vmap traces, whose values no process knows yet."""
    session = array._node.session
    return not session._is_trace or session._reads or array._node.cached() is not None


def _text(array: Array, separator: str, prefix: str) -> str:
    """The text as in NumPy. For a large array, only the elements at its edges are read."""
    options = np.get_printoptions()
    edge = options["edgeitems"]
    if array.size <= options["threshold"] or array._node.cached() is not None:
        return np.array2string(array._read(), separator=separator, prefix=prefix)
    edges = array
    for axis, extent in enumerate(array.shape):
        if extent > 2 * edge + 1:  # one more marks the omitted elements
            before = (slice(None),) * axis
            edges = _assembly.concat(
                [edges[(*before, slice(0, edge + 1))], edges[(*before, slice(extent - edge, None))]], axis=axis
            )
    return np.array2string(edges._read(), separator=separator, prefix=prefix, threshold=0)


_new = object.__new__
# The slot itself: arrays with a copy on the host override the access to their nodes.
get_node, set_node = Array.__dict__["_node"].__get__, Array.__dict__["_node"].__set__


def wrap(node: Node, base: Any = None) -> Array:
    """A new array for a node without an array; `base` is the array that it is a view of, or None."""
    array = _new(Array)
    array._node = node
    node.held = True
    if base is not None and isinstance(base, Array):
        buffer = node.buffer
        if buffer is not None and buffer.owner is None and base._node.buffer is buffer:
            buffer.owner = weakref.ref(base)
    return array


def _operand(array: Array, other):
    """The operand of an operator of `array`: a node, a Number, or NotImplemented."""
    kind = type(other)
    if kind is Array:
        return other._node
    if kind is int or kind is float or isinstance(other, _SCALARS):
        return Number(other)
    if kind is _element_numbers.Element:
        return Number(other._host)
    if isinstance(other, Array):
        return other._node
    if isinstance(other, (np.ndarray, list, tuple, range)):
        return array._node.session._upload(host_array(other))
    return NotImplemented


def host_array(anything) -> np.ndarray:
    """Converts a NumPy array-like. All data that is not from the service passes through here. Arrays of the service
    within lists are read."""
    if isinstance(anything, (list, tuple)):
        from stride import _conversion

        return _conversion.from_sequence(anything)
    if isinstance(anything, np.ma.MaskedArray):
        raise _errors.DataTypeMismatch(
            "a masked array is not taken in, since the service has no masks and what is masked would count; give "
            "`x.filled(value)`, or `x.data` and `where=~x.mask`"
        )
    return np.asarray(anything)


def node_of(anything, session=None) -> Node:
    """The node of an array, or of one made of a number or of a value that NumPy converts to an array."""
    if isinstance(anything, Array):
        return anything._node
    if isinstance(anything, (list, tuple)) and _conversion.has_arrays_to_compute(anything):
        return _conversion.joined_sequence(anything)._node
    from stride._session import current_session

    return (session or current_session())._upload(host_array(anything))


def array_of(anything, session=None) -> Array:
    return anything if isinstance(anything, Array) else wrap(node_of(anything, session))


def operands_of(arguments, session=None) -> tuple:
    """Nodes and Numbers for the arguments of an elementwise function, at least one a node."""
    operands, has_node, others = [], False, False
    for one in arguments:
        kind = type(one)
        if kind is Array:
            one = one._node
            has_node, session = True, session or one.session
        elif kind is int or kind is float or isinstance(one, _SCALARS):
            one = Number(one)
        elif isinstance(one, Array):
            session = session or one.session
            if kind is _element_numbers.Element:
                one = Number(one._host)
            else:
                one, has_node = one._node, True
        else:
            others = True
        operands.append(one)
    if others:  # which go to the session of the arrays among them
        operands = [one if type(one) is Node or type(one) is Number else node_of(one, session) for one in operands]
    elif not has_node:
        first = arguments[0]
        operands[0] = node_of(np.full((), first, np.int64) if type(first) is int else first, session)
    return tuple(operands)


def is_number(array: Array) -> bool:
    """Whether NumPy would have a scalar in its place: an array without axes that was computed or read from an array,
    not one that was made or is a view. Those have strides (`Session._upload`, `_creation._create`, `make_view`)."""
    node = array._node
    if node.shape or node.strides is not None or node.session._is_trace and node.op is None:
        return False
    buffer = node.buffer
    return buffer is None or buffer.num_nodes == 1 and not (buffer.is_shared or buffer.loans)


def _assign_in_place(array: Array, result: Array, casting: str = "same_kind") -> Array:
    """The array becomes `result`, in its own type. Views see it too."""
    _indexing.check_writable(array)
    if result.shape != array.shape:
        raise _errors.ShapeMismatch(
            f"an array of shape {array.shape} cannot take a result of shape {result.shape} in place"
        )
    if not np.can_cast(result.dtype, array.dtype, casting):
        raise _errors.DataTypeMismatch(f"an array of {array.dtype} cannot take a result of {result.dtype} in place")
    if result.dtype != array.dtype:
        result = result.astype(array.dtype)
    node = array._node
    _graph.check_isolated(node)
    is_seen = node.buffer is not None and (node.buffer.num_nodes > 1 or node.buffer.parts)
    # The new elements would lie in C order.
    if (
        is_seen
        or type(node.strides) is PartStrides
        or node.strides
        and not _casts.is_contiguous(node.shape, node.strides)
    ):
        _indexing.write(array, result)
        return array
    # No other array has these elements: the name moves to the new ones, which may still be fused.
    new = result._node
    result._node = node
    array._node = new
    new.held = True
    if not new.shape:
        new.strides = ()  # it stays an array
    return array


def _repeats_sequences(array: Array) -> bool:
    """Whether `[0] * array` is Python's: a list, repeated. So it is for NumPy's integers, which are no arrays."""
    return not array.ndim and array.dtype.kind in "iu" and is_number(array)


def _binary(name: str):
    if name == "floor_divide":
        return _operators(lambda name, inputs: _graph.floor_divide(inputs), name)
    return _operators(_power if name == "power" else elementwise, name)


# As NumPy's operator with these numbers of Python: they are rounded correctly, and differ from powers in signed zeros
# and infinities.
_POWERS = {-1: "reciprocal", 0.5: "sqrt", 2: "square"}


def _power(name: str, inputs: tuple) -> Node:
    base, exponent = inputs
    if type(exponent) is Number and type(base) is Node and (exponent.type is float or exponent.type is int):
        function, kind = _POWERS.get(exponent.value), base.dtype.kind
        if function is not None and (kind in "fc" or function == "square" and kind == "b" and exponent.type is int):
            return elementwise(function, (base,))
        if function == "sqrt" and kind in "iu":
            return elementwise(function, (elementwise("multiply", (base, Number(1.0))),))
    return elementwise(name, inputs)


def _operators(elementwise, name: str):
    repeats = name == "multiply"

    # The most frequent operands first: `_operand` has all.
    def forward(self, other):
        kind = type(other)
        if kind is Array:
            other = other._node
        elif kind is float or kind is int:
            other = Number(other)
        elif repeats and (kind is list or kind is tuple) and _repeats_sequences(self):
            return NotImplemented
        elif (other := _operand(self, other)) is NotImplemented:
            return NotImplemented
        return wrap(elementwise(name, (self._node, other)))

    def backward(self, other):
        kind = type(other)
        if kind is float or kind is int:
            other = Number(other)
        elif repeats and (kind is list or kind is tuple) and _repeats_sequences(self):
            return NotImplemented
        elif (other := _operand(self, other)) is NotImplemented:
            return NotImplemented
        return wrap(elementwise(name, (other, self._node)))

    def in_place(self, other):
        other = _operand(self, other)
        if other is NotImplemented:
            return NotImplemented
        result = wrap(elementwise(name, (self._node, other)))
        # A number is never changed, since other names may have it: the result takes its place.
        return result if is_number(self) else _assign_in_place(self, result)

    return forward, backward, in_place


for _method, _function in {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "left_shift", "rshift": "right_shift",
}.items():
    for _prefix, _operator in zip(("__", "__r", "__i"), _binary(_function)):
        _operator.__name__ = f"{_prefix}{_method}__"
        _operator.__qualname__ = f"Array.{_operator.__name__}"
        setattr(Array, _operator.__name__, _operator)


def _compared(name: str):
    """`==` and `!=`: an operand that is not a number differs from every element, as in NumPy."""
    compare = _binary(name)[0]

    def operator_(self, other):
        result = compare(self, other)
        if result is not NotImplemented or any(hasattr(other, one) for one in _ARRAY_LIKE):
            return result
        return _creation.full_in(self._node.session, self.shape, name == "not_equal", np.dtype(bool))

    return operator_


for _method, _function in {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}.items():
    _operator = _compared(_function) if _method in ("eq", "ne") else _binary(_function)[0]
    _operator.__name__ = f"__{_method}__"
    setattr(Array, _operator.__name__, _operator)

# These import this module, and its methods use them.
from stride import _assembly, _casts, _conversion, _creation, _element_numbers, _indexing, _linear_algebra  # noqa: E402
from stride import _host_arrays  # noqa: E402, F401
