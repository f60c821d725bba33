"""Numbers that single reads give: arrays on the host whose operators compute there."""

import operator
from typing import Any, Callable, Optional, Tuple

import numpy as np

from stride import _dtypes
from stride._array import Array, get_node, set_node
from stride._copies import NUMBERS
from stride._graph import Node
from stride._origin import caller

_new = object.__new__
_ndarray = np.ndarray

_PLAIN_KEYS = frozenset((int, slice, type(Ellipsis), type(None)))


def _is_plain(key: Any) -> bool:
    if type(key) is not tuple:
        return type(key) in _PLAIN_KEYS
    for one in key:
        if type(one) not in _PLAIN_KEYS:
            return False
    return True


def _as_plain(key: Any) -> Any:
    """An index with Python's integers for those of NumPy and for Elements."""
    if type(key) is tuple:
        return tuple([_as_plain(one) for one in key])
    is_integer = isinstance(key, np.integer) or type(key) is Element and key.dtype.kind in "iu"
    return int(key) if is_integer else key


def _value_for(value: Any, numbers: frozenset) -> Any:
    """The value that NumPy would assign. None: the host does not know it, or stride's assignment differs from
    NumPy's."""
    kind = type(value)
    if kind is Element:
        value = value._host
        kind = type(value)
    if kind in numbers:
        return value
    if kind in (list, tuple):
        value = [one._host if type(one) is Element else one for one in value]
        return value if all(type(one) in numbers for one in value) else None
    if isinstance(value, Array):
        value = _host_arrays.values_of(value)
        if value is None:
            return None
    elif kind is not _ndarray:
        return None
    return value if value.dtype.type in numbers else None


class LocalArray(Array):
    """An Array with a copy on the host. It is a plain Array again when the copy ends."""

    __slots__ = ()

    @property
    def _node(self) -> Node:  # type: ignore[override]
        copy = self._copy  # type: ignore[attr-defined]
        if copy is not None and copy.open:
            copy.close()
        return get_node(self)

    @_node.setter
    def _node(self, node: Node) -> None:
        copy = self._copy  # type: ignore[attr-defined]
        if copy is not None:
            copy.close()
            copy.arrays = [one for one in copy.arrays if one() is not self]
        self._leave()
        set_node(self, node)

    @_node.deleter
    def _node(self) -> None:
        copy = self._copy  # type: ignore[attr-defined]
        if copy is not None:
            copy.close()
        self._leave()
        del self._node  # the slot, now that it is a plain Array

    def _leave(self) -> None:
        """Detaches the array from its copy."""
        self._target = self._host = self._copy = None  # type: ignore[attr-defined]
        self.__class__ = Array

    def __del__(self):
        get_node(self).held = False

    def __getitem__(self, key: Any) -> Array:
        host = self._host  # type: ignore[attr-defined]
        if host is not None:
            kind = type(key)
            if kind is int or kind is tuple:
                try:
                    value = host[key]
                except Exception:
                    return Array.__getitem__(self, key)
                if type(value) is not _ndarray:
                    element = _new(Element)
                    element._host = value
                    element._home = self._home  # type: ignore[attr-defined]
                    return element
                if kind is int:
                    return _host_arrays.view_of(self, key, value)
            return _host_arrays._taken(self, host, key)
        return Array.__getitem__(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        target = self._target  # type: ignore[attr-defined]
        if target is not None:
            kind = type(value)
            if kind is Element:
                value = value._host
                kind = type(value)
            if type(key) is not int and not _is_plain(key):
                key = _as_plain(key)
            numbers = self._copy.numbers  # type: ignore[attr-defined]
            if kind not in numbers and (known := _value_for(value, numbers)) is not None:
                value, kind = known, int
            if kind in numbers and (type(key) is int or _is_plain(key)):  # type: ignore[attr-defined]
                try:
                    target[key] = value
                    if self._target is target:  # type: ignore[attr-defined]
                        return
                except Exception:
                    pass
            elif _host_arrays._assigned(target, key, value, self._home):  # type: ignore[attr-defined]
                if self._target is target:  # type: ignore[attr-defined]
                    return
        Array.__setitem__(self, key, value)

    def __len__(self) -> int:
        shape = get_node(self).shape
        return shape[0] if shape else Array.__len__(self)

    shape = property(lambda self: get_node(self).shape, Array.shape.fset)  # type: ignore[attr-defined]
    dtype = property(lambda self: get_node(self).dtype)
    ndim = property(lambda self: len(get_node(self).shape))
    size = property(lambda self: get_node(self).size)
    nbytes = property(lambda self: get_node(self).nbytes)
    itemsize = property(lambda self: get_node(self).dtype.itemsize)
    session = property(lambda self: get_node(self).session)


def _element(value: Any, home: Tuple) -> "Element":
    element = _new(Element)
    element._host = value
    element._home = home
    return element


class Element(Array):
    """A number that was read from a copy, or computed from such numbers: an array without axes. It becomes an
    Array with a node at the first access to the node."""

    __slots__ = ()
    # Its end needs no work. The function is one in C, since the end is part of the cost of a loop.
    __del__ = object.__sizeof__

    @property
    def _node(self) -> Node:  # type: ignore[override]
        session, device = self._home  # type: ignore[attr-defined]
        host = np.array(self._host)  # type: ignore[attr-defined]
        host.setflags(write=False)
        node = Node(session, (), _dtypes.dtype_of(host.dtype), None, (), caller())
        node.device = device
        node.keep(host)
        self._node = node
        return node

    @_node.setter
    def _node(self, node: Node) -> None:
        self.__class__ = Array
        self._host = None  # type: ignore[attr-defined]
        node.held = True
        set_node(self, node)

    shape = property(lambda self: (), Array.shape.fset)  # type: ignore[attr-defined]
    ndim = property(lambda self: 0)
    size = property(lambda self: 1)
    dtype = property(lambda self: self._host.dtype)
    session = property(lambda self: self._home[0])

    def _read(self) -> np.ndarray:
        return np.asarray(self._host)  # type: ignore[attr-defined]

    def to_numpy(self, *, progress=None) -> np.ndarray:
        return np.array(self._host)  # type: ignore[attr-defined]

    def item(self, *args):
        return np.asarray(self._host).item(*args)  # type: ignore[attr-defined]

    def __bool__(self) -> bool:
        return bool(self._host)  # type: ignore[attr-defined]

    # NumPy's scalars convert themselves, at half the cost of `item`; complex ones with their warning.
    def __int__(self) -> int:
        return int(self._host)  # type: ignore[attr-defined]

    def __float__(self) -> float:
        return float(self._host)  # type: ignore[attr-defined]

    def __complex__(self) -> complex:
        return complex(self._host)  # type: ignore[attr-defined]

    def __index__(self) -> int:
        value = self._host  # type: ignore[attr-defined]
        return Array.__index__(self) if value.dtype.kind not in "iu" else operator.index(value)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if method == "__call__" and not kwargs and ufunc.nout == 1:
            result = of_elements(ufunc.__name__, *inputs)
            if result is not None:
                return result
        return Array.__array_ufunc__(self, ufunc, method, *inputs, **kwargs)


def _home_of_numbers() -> Optional[Tuple]:
    """The current session, unless numbers made in it have a device. A trace records operations."""
    from stride._session import current_session

    session = current_session()
    if session._is_trace or session.device:
        return None
    session._check_open()
    return session, None



def number_of(value: np.generic, session) -> Element:
    """A number of NumPy's in a session."""
    return _element(value, (session, session.device))


# Functions whose results here differ from NumPy's for some types or numbers.
_OTHERS = frozenset(("floor_divide", "ceil", "floor", "trunc"))


def of_elements(name: str, *inputs: Any) -> Optional[Array]:
    """A function of Elements, numbers and arrays on the host, by NumPy; None if other values are among them.
    The result of numbers alone belongs to the current session without a command."""
    values, home = [], None
    for one in inputs:
        if type(one) is Element:
            home = one._home  # type: ignore[attr-defined]
            one = one._host  # type: ignore[attr-defined]
        elif type(one) not in NUMBERS:
            return _host_arrays.of_host(name, *inputs)
        values.append(one)
    function = getattr(np, name, None)
    if home is None:
        home = _home_of_numbers()
    if home is None or not isinstance(function, np.ufunc):
        return None
    if name in _OTHERS and not all(np.isfinite(one) for one in values):
        return None
    try:
        result = function(*values)
    except FloatingPointError:
        raise
    except Exception:
        return None  # the general path raises it with the common text
    if not isinstance(result, np.generic) or name in _OTHERS and name != "floor_divide" and result.dtype.kind != "f":
        return None
    return _element(result, home)


def _operators(function: Callable, method: str) -> None:
    """An operator of two numbers, both ways and in place."""
    def forward(self, other):
        kind = type(other)
        if kind is Element:
            other = other._host
        elif kind not in NUMBERS:
            is_array = kind in _ON_HOST or kind is Array
            if is_array and (result := _host_arrays.call(function, (self, other))) is not None:
                return result
            return general(self, other)
        try:
            value = function(self._host, other)
        except FloatingPointError:
            raise
        except Exception:
            return general(self, other)
        element = _new(Element)
        element._host = value
        element._home = self._home
        return element

    def backward(self, other):
        if type(other) in NUMBERS:
            try:
                return _element(function(other, self._host), self._home)
            except FloatingPointError:
                raise
            except Exception:
                pass
        return general_backward(self, other)

    def in_place(self, other):
        kind = type(other)
        if kind is Element:
            other = other._host
        elif kind not in NUMBERS:
            return general_in_place(self, other)
        value = self._host
        try:
            result = function(value, other)
        except FloatingPointError:
            raise
        except Exception:
            return general_in_place(self, other)
        return _element(result, self._home)  # a number is never changed: other names may have it

    for prefix, operator_ in (("__", forward), ("__r", backward), ("__i", in_place)):
        name = f"{prefix}{method}__"
        if hasattr(Array, name):
            operator_.__name__, operator_.__qualname__ = name, f"Element.{name}"
            setattr(Element, name, operator_)
    general = getattr(Array, f"__{method}__")
    general_backward = getattr(Array, f"__r{method}__", None)
    general_in_place = getattr(Array, f"__i{method}__", None)


def _floor_divided(left, right):
    value = left // right
    if not np.isfinite(value) or not np.isfinite(right):
        raise ValueError("the standard's rules, not NumPy's")
    return value


def _raised(left, right):
    # NumPy's scalars take an exponent of Python that is negative for a float.
    return np.power(left, right)


for _method, _function in {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": _floor_divided, "mod": operator.mod, "pow": _raised, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "lshift": operator.lshift, "rshift": operator.rshift, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
}.items():
    _operators(_function, _method)


def _unary(function: Callable, name: str) -> None:
    general = getattr(Array, name)

    def operator_(self):
        try:
            return _element(function(self._host), self._home)
        except FloatingPointError:
            raise
        except Exception:
            return general(self)

    operator_.__name__, operator_.__qualname__ = name, f"Element.{name}"
    setattr(Element, name, operator_)


for _method, _function in {
    "__neg__": operator.neg, "__pos__": operator.pos, "__abs__": operator.abs, "__invert__": operator.invert
}.items():
    _unary(_function, _method)

for _class in (LocalArray, Element):
    _class.__name__, _class.__qualname__, _class.__module__ = "Array", "Array", Array.__module__

from stride import _host_arrays  # noqa: E402, which stands on this module

_ON_HOST = frozenset((LocalArray, _host_arrays.HostArray, _host_arrays.LocalView))
# The types that `of_elements` takes.
HOST_NUMBERS = NUMBERS | _ON_HOST | {Element}
