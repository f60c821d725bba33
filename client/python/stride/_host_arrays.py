"""Small arrays of a loop of the host, without nodes: results that NumPy computed, and views of arrays with a copy.

`_local.py` decides which operations the host computes. This module has fast paths for operands whose class
implies that their elements are on the host. A **HostArray** is a result with memory of its own. A
**LocalView** is a view of a LocalArray (`_element_numbers.py`) and uses the memory of its copy. Both become Arrays
with a node at the first access to the node. Until then a LocalView counts among the values of its buffer."""

import math
import operator
import weakref
from typing import Any, Callable, Iterator, Optional

import numpy as np

from stride import _array, _dtypes, _element_numbers, _elements, _graph, _indexing, _local
from stride._array import Array, get_node, set_node
from stride._copies import NUMBERS
from stride._element_numbers import Element, LocalArray
from stride._graph import Buffer, Node
from stride._origin import caller

_new = object.__new__
_ndarray = np.ndarray
_MAX = _local.MAX_BYTES


class OnHost:
    """The base of the two classes. `_host`: the elements."""

    __slots__ = ()

    shape = property(lambda self: self._host.shape, Array.shape.fset)  # type: ignore[attr-defined]
    dtype = property(lambda self: self._host.dtype)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    nbytes = property(lambda self: self._host.nbytes)
    itemsize = property(lambda self: self._host.itemsize)
    session = property(lambda self: self._home[0])

    def __len__(self) -> int:
        shape = self._host.shape  # type: ignore[attr-defined]
        return shape[0] if shape else Array.__len__(self)  # type: ignore[arg-type]


class HostArray(OnHost, Array):
    """A result with axes. Its elements are written where they are."""

    __slots__ = ()
    __del__ = object.__sizeof__  # a function in C: nothing is to be done

    @property
    def _node(self) -> Node:  # type: ignore[override]
        session, device = self._home  # type: ignore[attr-defined]
        host = self._host  # type: ignore[attr-defined]
        host.setflags(write=False)  # the node owns it from now on
        node = Node(session, host.shape, _dtypes.dtype_of(host.dtype), None, (), caller())
        node.device, node.host = device, host
        node.buffer = Buffer()
        node.buffer.is_local = True
        self._node = node
        return node

    @_node.setter
    def _node(self, node: Node) -> None:
        self.__class__ = Array
        self._host = None  # type: ignore[attr-defined]
        node.held = True
        set_node(self, node)

    def _read(self) -> np.ndarray:
        return _for_reading(self._host)  # type: ignore[attr-defined]

    def to_numpy(self, *, progress=None) -> np.ndarray:
        return np.array(self._host, order="C")  # type: ignore[attr-defined]

    def __getitem__(self, key: Any) -> Array:
        return _taken(self, self._host, key)  # type: ignore[attr-defined]

    def __setitem__(self, key: Any, value: Any) -> None:
        host = self._host  # type: ignore[attr-defined]
        # A branch that is traced may not write: the general path says so.
        if _graph.isolation.depth or not _assigned(host, key, value, self._home):  # type: ignore[attr-defined]
            Array.__setitem__(self, key, value)


class LocalView(OnHost, Array):
    """A view by integers and slices of an array with a copy. `_view`: the node that it is of, the indices that lead
    from there, and the copy's memory as it was then."""

    __slots__ = ()

    def __del__(self):
        if type(self) is LocalView:
            self._copy.num_views -= 1
            self._view[0].buffer.num_nodes -= 1
        else:
            Array.__del__(self)

    @property
    def _node(self) -> Node:  # type: ignore[override]
        base, keys, _ = self._view  # type: ignore[attr-defined]
        copy = self._copy  # type: ignore[attr-defined]
        with base.session._lock:
            if type(self) is not LocalView:
                return self._node
            copy.close()
            node = base
            for key in keys:
                node = _indexing._view_of(node, key if type(key) is tuple else (key,))
            self._node = node
        return node

    @_node.setter
    def _node(self, node: Node) -> None:
        self._copy.num_views -= 1  # type: ignore[attr-defined]
        self._view[0].buffer.num_nodes -= 1  # type: ignore[attr-defined]
        self._host = self._copy = self._view = None  # type: ignore[attr-defined]
        self.__class__ = Array
        node.held = True
        set_node(self, node)

    def _read(self) -> np.ndarray:
        host = values_of(self)
        return Array._read(self) if host is None else _for_reading(host)

    def to_numpy(self, *, progress=None) -> np.ndarray:
        host = values_of(self)
        return Array.to_numpy(self) if host is None else np.array(host, order="C")

    def __getitem__(self, key: Any) -> Array:
        if self._copy.memory is self._view[2]:  # type: ignore[attr-defined]
            return _taken(self, self._host, key)  # type: ignore[attr-defined]
        return Array.__getitem__(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        copy, host = self._copy, self._host  # type: ignore[attr-defined]
        if copy.open and copy.memory is self._view[2] and host.flags.writeable:  # type: ignore[attr-defined]
            # A copy that was closed in between may have been sent without the write.
            if _assigned(host, key, value, self._home) and copy.open:  # type: ignore[attr-defined]
                return
        Array.__setitem__(self, key, value)


def _for_reading(host: np.ndarray) -> np.ndarray:
    view = host.view()
    view.setflags(write=False)
    return view


def values_of(one: Any) -> Any:
    """The elements of an operand on the host: a number, or NumPy's array; None for others."""
    kind = type(one)
    if kind is Element or kind is HostArray:
        return one._host
    if kind in NUMBERS:
        return one
    if kind is LocalArray:
        host = None if one._home[0]._has_sharded else one._host  # a result keeps its sharding
    elif kind is LocalView:
        host = one._host if one._copy.memory is one._view[2] else None
    elif kind is Array:
        node = get_node(one)
        host = None if node.session._is_trace else node.cached()
    else:
        return None
    return host if host is not None and host.nbytes <= _MAX and host.dtype.kind != "V" else None


def array_of(value: Any, home: tuple) -> Optional[Array]:
    """The array of NumPy's result, whose memory it owns."""
    if type(value) is _ndarray:
        if not value.ndim:
            value = value[()]
        elif value.nbytes > _MAX:
            return None
        array = _new(HostArray if type(value) is _ndarray else Element)
    elif isinstance(value, np.generic):
        array = _new(Element)
    else:
        return None
    array._host, array._home = value, home
    return array


def _is_small(values) -> bool:
    """Whether operands that broadcast give a result within the limit."""
    arrays = [one for one in values if type(one) is _ndarray and one.ndim]
    if len(arrays) < 2 or all(one.shape == arrays[0].shape for one in arrays):
        return True
    return math.prod(one.size for one in arrays) <= _MAX or np.broadcast(*arrays).size <= _MAX // 8


def home_of(inputs) -> Optional[tuple]:
    """The session and device of the operands without nodes; None where they are of several."""
    home = None
    for one in inputs:
        if isinstance(one, Array):
            other = one._home if type(one) is not Array else None
            if other is None:
                node = get_node(one)
                other = node.session, node.device
            if home is None:
                home = other
            elif home is not other and home[0] is not other[0]:
                return None
    return home


def call(function: Callable, inputs, home: Optional[tuple] = None) -> Optional[Array]:
    """A function of operands on the host, by NumPy; None if the service must compute."""
    values = []
    for one in inputs:
        value = values_of(one)
        if value is None:
            return None
        values.append(value)
    if len(values) > 1 and not _is_small(values):
        return None
    home = home or home_of(inputs)
    value = _local.called(function, values)
    return None if home is None or value is None else array_of(value, home)


def of_host(name: str, *inputs: Any) -> Optional[Array]:
    """A function of the service of operands of which one is an OnHost or LocalArray."""
    function = getattr(np, name, None)
    if not isinstance(function, np.ufunc) or name == "floor_divide" or function.nout != 1:
        return None
    return call(function, inputs)


# --- elements and views ---

_PLAIN = frozenset((int, slice, type(Ellipsis), type(None)))


def _host_key(key: Any) -> Any:
    """An index as NumPy takes it; NotImplemented for the general path."""
    kind = type(key)
    if kind is int or kind is slice or _element_numbers._is_plain(key):
        return key
    if kind is tuple:
        keys = tuple([one if type(one) in _PLAIN else _host_key(one) for one in key])
        return NotImplemented if any(one is NotImplemented for one in keys) else keys
    if kind is Element:
        return int(key._host) if key._host.dtype.kind in "iu" else NotImplemented
    if isinstance(key, np.integer):
        return int(key)
    if kind is list:
        return key if key and all(type(one) is int for one in key) else NotImplemented
    value = key if kind is _ndarray else values_of(key)
    return value if type(value) is _ndarray and value.dtype.kind in "biu" and value.ndim else NotImplemented


def _taken(array: Any, host: np.ndarray, key: Any) -> Array:
    """`array[key]` where `host` has the elements."""
    try:
        value = host[key] if type(key) is int else None
        if value is None:
            plain = _host_key(key)
            if plain is NotImplemented:
                return Array.__getitem__(array, key)
            key, value = plain, host[plain]
    except Exception:
        return Array.__getitem__(array, key)
    if type(value) is not _ndarray:
        element = _new(Element)
        element._host, element._home = value, array._home
        return element
    if type(key) is int or _element_numbers._is_plain(key):
        return view_of(array, key, value)
    if value.nbytes > _MAX or not value.ndim:
        return Array.__getitem__(array, key)
    taken = _new(HostArray)
    taken._host, taken._home = value, array._home
    return taken


def view_of(array: Any, key: Any, host: np.ndarray) -> Array:
    """`array[key]`, a view; `host` is the same of the elements."""
    kind = type(array)
    if kind is HostArray:
        if not _elements.joined(array):
            return Array.__getitem__(array, key)
        return array[key]
    view = _new(LocalView)
    copy = array._copy
    view._copy, view._home = copy, array._home
    if kind is LocalView:
        base, keys, memory = array._view
        view._host, view._view = host, (base, (*keys, key), memory)
    else:
        base = get_node(array)
        target = array._target
        if target is not None:
            host = target[key]
        view._host, view._view = host, (base, (key,), copy.memory)
        if base.buffer.owner is None:
            base.buffer.owner = weakref.ref(array)
    base.buffer.num_nodes += 1
    copy.num_views += 1
    return view


def _assigned(host: np.ndarray, key: Any, value: Any, home: tuple) -> bool:
    """Assigns by NumPy if possible. False: the general path assigns, or refuses."""
    given = values_of(value)
    if given is None:
        if type(value) not in (list, tuple, _ndarray):
            return False
        given = _element_numbers._value_for(value, NUMBERS)
        if given is None:
            return False
    elif type(value) is not Element and isinstance(value, Array):
        other = home_of((value,))
        if other is None or other[0] is not home[0]:
            return False
    if host.dtype.kind != "c" and (given.dtype.kind if hasattr(given, "dtype") else type(given)) in ("c", complex):
        return False
    if type(key) is not int:
        key = _host_key(key)
        if key is NotImplemented:
            return False
    try:
        host[key] = given
    except Exception:
        return False
    return True


# --- operators and methods ---


def _operators(ufunc: Callable, method: str, classes) -> None:
    is_division = method == "floordiv"

    def forward(self, other):
        mine, theirs = values_of(self), values_of(other)
        if mine is None or theirs is None or type(theirs) is _ndarray and not _is_small((mine, theirs)):
            return general(self, other)
        if is_division and not (np.isfinite(mine).all() and np.isfinite(theirs).all()):
            return general(self, other)
        try:
            value = ufunc(mine, theirs)
        except FloatingPointError:
            raise
        except Exception:
            return general(self, other)
        home = self._home
        if isinstance(other, Array) and home_of((self, other)) is None:
            return general(self, other)
        result = array_of(value, home)
        return general(self, other) if result is None else result

    def backward(self, other):
        mine, theirs = values_of(self), values_of(other)
        if mine is None or theirs is None or type(theirs) is _ndarray and not _is_small((mine, theirs)):
            return general_backward(self, other)
        if is_division and not (np.isfinite(mine).all() and np.isfinite(theirs).all()):
            return general_backward(self, other)
        try:
            value = ufunc(theirs, mine)
        except FloatingPointError:
            raise
        except Exception:
            return general_backward(self, other)
        if isinstance(other, Array) and home_of((self, other)) is None:
            return general_backward(self, other)
        result = array_of(value, self._home)
        return general_backward(self, other) if result is None else result

    def in_place(self, other):
        mine = values_of(self)
        result = forward(self, other) if mine is not None else None
        if type(result) is HostArray and result._host.shape == mine.shape and type(self) is not Array:
            if np.can_cast(result._host.dtype, mine.dtype, "same_kind"):
                self[...] = result
                return self
        return general_in_place(self, other)

    general = getattr(Array, f"__{method}__")
    general_backward = getattr(Array, f"__r{method}__", None)
    general_in_place = getattr(Array, f"__i{method}__", None)
    for prefix, operator_ in (("__", forward), ("__r", backward), ("__i", in_place)):
        name = f"{prefix}{method}__"
        if hasattr(Array, name):
            operator_.__name__, operator_.__qualname__ = name, f"Array.{name}"
            for one in classes:
                setattr(one, name, operator_)


_UFUNCS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": operator.pow, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.left_shift, "rshift": np.right_shift, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
}
_CLASSES = (LocalArray, HostArray, LocalView)
for _method, _ufunc in _UFUNCS.items():
    _operators(_ufunc, _method, _CLASSES)


def _unary(ufunc: np.ufunc, name: str) -> Callable:
    general = getattr(Array, name)

    def operator_(self):
        result = call(ufunc, (self,))
        return general(self) if result is None else result

    return operator_


# In float64 and integers, which NumPy sums in the types of the service; others are rounded once (`_local.wide`).
_SUMMED = frozenset(np.dtype(one) for one in ("f8", "c16", "i8", "u8"))


def reduced(name: str, array: Any, axis: Any = None) -> Optional[Array]:
    """A reduction of an OnHost or LocalArray; None for the general path."""
    if type(axis) is tuple and len(axis) == 1:
        axis = axis[0]
    if axis is not None and type(axis) is not int:
        return None
    host, (reduce, any_type) = values_of(array), _REDUCTIONS[name]
    if host is None or not host.size or not host.ndim or not (any_type or host.dtype in _SUMMED):
        return None
    try:
        return array_of(reduce(host, axis), array._home)
    except FloatingPointError:
        raise
    except Exception:
        return None


def _norm(host: np.ndarray, axis: Optional[int]) -> Any:
    """The norm of float64. Squares that leave the range are for the service."""
    if host.dtype.kind != "f":
        raise TypeError
    squares = np.add.reduce(host * host, axis)
    is_within = (squares > 1e-200) & (squares < 1e200)
    if not np.all(is_within) and not np.all(is_within | ~host.any(axis)):  # those of zeros alone are exact
        raise OverflowError
    return np.sqrt(squares)


def product(function: Callable, left: Any, right: Any) -> Optional[Array]:
    """A product of vectors and matrices on the host."""
    one, other = values_of(left), values_of(right)
    if type(one) is not _ndarray or type(other) is not _ndarray:
        return None
    if one.dtype not in _SUMMED or other.dtype not in _SUMMED or not 0 < one.ndim <= 2 or not 0 < other.ndim <= 2:
        return None
    columns = other.shape[-1] if other.ndim > 1 else 1
    home = home_of((left, right))
    if one.size * columns > _local.MAX_PRODUCTS or home is None:
        return None
    value = _local.called(function, (one, other))
    return None if value is None else array_of(value, home)


def _reduction(name: str) -> Callable:
    general = getattr(Array, name)

    def method(self, axis=None, *args, **options):
        if not args and not options and (result := reduced(name, self, axis)) is not None:
            return result
        return general(self, axis, *args, **options)

    return method


def _rows(self) -> Iterator[Array]:
    if not self.shape:
        raise TypeError("a zero-dimensional array cannot be iterated over")
    return _elements_of(self) if self.ndim == 1 else (self[i] for i in range(self.shape[0]))


def _elements_of(array: Any) -> Iterator[Array]:
    home = array._home
    for i in range(array.shape[0]):
        kind = type(array)
        if kind is LocalArray or kind is HostArray or kind is LocalView and array._copy.memory is array._view[2]:
            element = _new(Element)
            element._host, element._home = array._host[i], home
            yield element
        else:
            yield array[i]


def _apply(self, ufunc, method, *inputs, **kwargs):
    if method == "__call__" and not kwargs and (result := of_host(ufunc.__name__, *inputs)) is not None:
        return result
    return Array.__array_ufunc__(self, ufunc, method, *inputs, **kwargs)


_REDUCTIONS = {
    "norm": (_norm, False), "sum": (np.add.reduce, False), "prod": (np.multiply.reduce, False),
    "min": (np.minimum.reduce, True),
    "max": (np.maximum.reduce, True), "any": (np.any, True), "all": (np.all, True), "mean": (np.mean, False),
    "argmin": (np.argmin, True), "argmax": (np.argmax, True),
}
_local.use(frozenset(_CLASSES), reduced, product)


def _matmul(self, other):
    return Array.__matmul__(self, other) if (result := product(np.matmul, self, other)) is None else result


def _matmul_backward(self, other):
    """Python asks this before `other`, an Array of no such class."""
    if isinstance(other, Array):
        return Array.__matmul__(other, self) if (result := product(np.matmul, other, self)) is None else result
    return Array.__rmatmul__(self, other)


for _class in _CLASSES:
    _class.__matmul__ = _matmul  # type: ignore[method-assign, assignment]
    _class.__rmatmul__ = _matmul_backward  # type: ignore[method-assign, assignment]
    for _method in _REDUCTIONS:
        if _method != "norm":
            setattr(_class, _method, _reduction(_method))
    for _method, _ufunc in (("__neg__", np.negative), ("__abs__", np.absolute), ("__invert__", np.invert)):
        setattr(_class, _method, _unary(_ufunc, _method))
    _class.__iter__, _class.__array_ufunc__ = _rows, _apply  # type: ignore[method-assign, assignment]
    _class.__name__, _class.__qualname__, _class.__module__ = "Array", "Array", Array.__module__
