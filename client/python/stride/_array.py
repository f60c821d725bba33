"""The array that users hold."""

import operator
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Iterator, Optional, Tuple

import numpy as np

from stride import _errors, _graph
from stride._array_methods import NumpyMethods
from stride._device_methods import DeviceMethods
from stride._execution import DeviceName
from stride._graph import Node, elementwise
from stride._jax_methods import JaxMethods
from stride._numbers import Number
from stride._views import PartStrides

if TYPE_CHECKING:
    from stride._array_attributes import Flags, Flat
    from stride._sharding import Sharding

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


class Array(NumpyMethods, DeviceMethods, JaxMethods):
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

    # --- attributes ---

    @property
    def shape(self) -> Tuple[int, ...]:
        """How many elements there are along each axis.

        Example
            >>> st.zeros((2, 3)).shape
            (2, 3)
        """
        return self._node.shape

    @shape.setter
    def shape(self, shape) -> None:
        """Another shape of the same elements, where that is a view."""
        try:
            view = _manipulation.reshape(self, shape, copy=False)
        except ValueError as error:
            if "no view of this array" not in str(error):
                raise
            raise AttributeError(
                "Incompatible shape for in-place modification. Use `.reshape()` to make a copy."
            ) from None
        self._node, view._node = view._node, self._node

    @property
    def strides(self) -> Tuple[int, ...]:
        """How many bytes lie between neighbours along each axis.

        Example
            >>> st.zeros((2, 3)).strides
            (24, 8)
        """
        from stride import _array_attributes

        return _array_attributes.byte_strides(self)

    @property
    def flags(self) -> "Flags":
        """How the elements lie: c_contiguous, f_contiguous, owndata, writeable and so on.

        Example
            >>> st.zeros((2, 3)).flags.c_contiguous
            True
        """
        from stride import _array_attributes

        return _array_attributes.Flags(self)

    @property
    def base(self) -> Optional["Array"]:
        """The array that this is a view of. None if the array owns its elements, and once the base is
        deleted: its views then own them.

        Example
            >>> x = st.arange(4)
            >>> x[1:].base is x, x.base
            (True, None)
        """
        buffer = self._node.buffer
        owner = None if buffer is None or buffer.owner is None else buffer.owner()
        return None if owner is None or owner is self or owner._node.buffer is not buffer else owner

    @property
    def flat(self) -> "Flat":
        """The elements in C order, to iterate over, to index and to write.

        Example
            >>> [int(one) for one in st.array([[1, 2], [3, 4]]).flat]
            [1, 2, 3, 4]
        """
        from stride import _array_attributes

        return _array_attributes.Flat(self)

    @flat.setter
    def flat(self, value) -> None:
        from stride import _array_attributes

        _array_attributes.Flat(self)[:] = value

    @property
    def dtype(self) -> np.dtype:
        """The element type.

        Example
            >>> st.zeros(2, st.float32).dtype
            dtype('float32')
        """
        return self._node.dtype

    @property
    def ndim(self) -> int:
        """The number of axes.

        Example
            >>> st.zeros((2, 3)).ndim
            2
        """
        return len(self._node.shape)

    @property
    def size(self) -> int:
        """The number of elements.

        Example
            >>> st.zeros((2, 3)).size
            6
        """
        return self._node.size

    @property
    def nbytes(self) -> int:
        """The bytes of all elements.

        Example
            >>> st.zeros((2, 3), st.float32).nbytes
            24
        """
        return self._node.nbytes

    @property
    def itemsize(self) -> int:
        """The bytes of an element.

        Example
            >>> st.zeros(2, st.float32).itemsize
            4
        """
        return self._node.dtype.itemsize

    @property
    def session(self):
        """The session that it belongs to.

        Example
            >>> st.zeros(2).session is st.current_session()
            True
        """
        return self._node.session

    @property
    def device(self) -> str:
        """The device that it was put on or that the session's operations run on, or `auto` where the daemon chooses for
        each.

        Example
            >>> isinstance(st.zeros(2).device, str)
            True
        """
        return DeviceName(self._node.device.replace("devices/", "", 1) or "auto")

    def to_device(self, device: str, /, *, stream: Optional[Any] = None) -> "Array":
        """A copy there; this array itself when that is where it is.

        Parameters
            device: the name of a device, such as `cuda:0`.
            stream: None; the array API has others for libraries with streams.
        Returns
            An array of the same shape and type.
        Raises
            NotFound for a device that the daemon does not have, ValueError for a stream.
        Example
            >>> st.arange(2).to_device(st.devices()[0].name).tolist()
            [0, 1]
        """
        if stream is not None:
            raise ValueError("the service has no streams: stream must be None")
        return self if device == self.device else _casts.to_device(self, device)

    @property
    def sharding(self) -> Optional["Sharding"]:
        """How it is spread over devices, as the daemon says; None: it is in one piece.

        Example
            >>> print(st.zeros(2).sharding)
            None
        """
        from stride._sharding import Sharding

        if not self._node.handle and self._node.op is None and self._node.host is not None:
            return None
        described = self._node.session._describe(self._node)
        return Sharding.from_proto(described.sharding) if described.HasField("sharding") else None

    def to_sharding(self, sharding: Optional["Sharding"], /) -> "Array":
        """A copy spread in this way; None: in one piece.

        Parameters
            sharding: a Sharding, or None.
        Returns
            An array of the same shape and type.
        Raises
            NotFound for a device that the daemon does not have.
        Example
            >>> st.arange(2).to_sharding(None).tolist()
            [0, 1]
        """
        from stride._sharding import reshard

        return reshard(self, sharding)

    @property
    def T(self) -> "Array":  # noqa: N802, NumPy's name
        """A view with all axes reversed.

        Example
            >>> st.zeros((2, 3)).T.shape
            (3, 2)
        """
        return _manipulation.permute_dims(self)

    @property
    def mT(self) -> "Array":  # noqa: N802, the standard's name
        """A view of matrices in the last two axes with rows and columns exchanged.

        Example
            >>> st.zeros((5, 2, 3)).mT.shape
            (5, 3, 2)
        """
        return _manipulation.matrix_transpose(self)

    @property
    def real(self) -> "Array":
        """A view of the real parts; for an array of real numbers, the array itself.

        Example
            >>> st.array([1 + 2j]).real.tolist()
            [1.0]
        """
        if self.dtype.kind != "c":
            return self
        from stride import _array_attributes

        return _array_attributes.real_part(self)

    @property
    def imag(self) -> "Array":
        """A view of the imaginary parts; for an array of real numbers, zeros for reading.

        Example
            >>> st.array([1 + 2j]).imag.tolist()
            [2.0]
        """
        if self.dtype.kind != "c":
            return wrap(elementwise("imag", (self._node,)).freeze())
        from stride import _array_attributes

        return _array_attributes.imaginary_part(self)

    @real.setter
    def real(self, value) -> None:
        """Writes the real parts; the imaginary ones stay."""
        from stride import _array_attributes

        if self.dtype.kind != "c":
            self[...] = value
        elif not _array_attributes.is_part(value, self, "real"):
            self[...] = _array_attributes.complex_of(value, self.imag)

    @imag.setter
    def imag(self, value) -> None:
        """Writes the imaginary parts; the real ones stay."""
        from stride import _array_attributes

        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        if not _array_attributes.is_part(value, self, "imag"):
            self[...] = _array_attributes.complex_of(self.real, value)

    # --- reading ---

    def _read(self) -> np.ndarray:
        return self._node.session._read(self._node)

    def to_numpy(self, *, progress=None) -> np.ndarray:
        """A copy on the host. `progress(done_bytes, total_bytes)` is called while a large array comes down.

        Parameters
            progress: a function of two numbers of bytes, or None.
        Returns
            A numpy.ndarray of the same shape and type.
        Raises
            The error of the operation that computes the array.
        Example
            >>> st.arange(3).to_numpy()
            array([0, 1, 2])
        """
        return self._node.session._read_own(self._node, progress)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        if copy is False:
            raise ValueError("the elements are on a device: reading them is always a copy")
        if dtype is not None and np.dtype(dtype) != self.dtype:
            return self._read().astype(dtype)
        return self.to_numpy()

    @property
    def __array_interface__(self) -> dict:
        """A copy on the host, for libraries that take memory in this way, as Pillow does. The strides are always
        there: such a library then asks for `tobytes`, since an array has no buffer of the host."""
        host = self.__array__()
        if host.dtype.kind not in "biufc":
            raise AttributeError(f"the array interface has no element type {host.dtype}")
        if not (host.flags.c_contiguous or host.flags.f_contiguous):
            host = np.ascontiguousarray(host)
        data = host.ravel("K").data  # a view: the elements as they lie
        return {"version": 3, "shape": host.shape, "typestr": host.dtype.str, "strides": host.strides, "data": data}

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """A DLPack capsule of a copy on the host. `copy=False`: the cached elements of a small array, which
        the consumer then owns; the mapped memory of an array on a CPU device of this machine, for reading.
        `dl_device` a GPU: the mapped memory of an array there."""
        from stride import _interchange

        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            if copy or tuple(dl_device)[0] != 2:  # kDLCUDA
                raise BufferError(f"only host memory and a GPU's are given, not device {tuple(dl_device)}")
            return self.map_memory().__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device)
        if stream not in (None, -1):
            raise BufferError(f"host memory has no streams: stream must be None, not {stream!r}")
        if copy is False and not self._node.session._may_hand_over(self._node):
            return _interchange.mapped_on_host(self).__dlpack__(max_version=max_version)
        values = self._node.session._hand_over(self._node) if copy is False else self.to_numpy()
        return _interchange.exported(values, max_version)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (1, 0)  # kDLCPU

    def item(self, *args):
        """An element as Python's number: the only one, or the one at a place in C order or at indices.

        Parameters
            args: nothing, a number in C order, or an index for each axis.
        Returns
            A bool, an int, a float or a complex.
        Raises
            ValueError where no place is given and there is not one element; IndexError for a place outside.
        Example
            >>> st.array([[1, 2], [3, 4]]).item(1, 0)
            3
        """
        if args:
            index = args[0] if len(args) == 1 else args
            if isinstance(index, tuple) and len(index) == 1:
                index = index[0]
            if not isinstance(index, tuple):
                return _manipulation.ravel(self)[operator.index(index)]._read().item()
            if len(index) != self.ndim:
                raise ValueError("incorrect number of indices for array")
            return self[index]._read().item()
        if self.size != 1:
            raise ValueError("only an array of one element is a Python scalar")
        return self._read().item()

    def tolist(self):
        """The elements as nested lists of Python's numbers.

        Returns
            Nested lists, as deep as there are axes; a number for an array without axes.
        Raises
            The error of the operation that computes the array.
        Example
            >>> st.array([[1, 2], [3, 4]]).tolist()
            [[1, 2], [3, 4]]
        """
        return self._read().tolist()

    def _one(self, what: str):
        if self.size != 1:
            raise TypeError(f"only an array of one element converts to {what}; this one has the shape {self.shape}")
        return self._read().item()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError("the truth of an array is ambiguous; use stride.any or stride.all")
        return bool(self._one("bool"))

    def __int__(self) -> int:
        return int(_real_number(self._one("int")))

    def __float__(self) -> float:
        return float(_real_number(self._one("float")))

    def __complex__(self) -> complex:
        return complex(self._one("complex"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" or self.ndim:
            raise TypeError("only a zero-dimensional array of integers is an index")
        return operator.index(self._one("int"))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a zero-dimensional array has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator["Array"]:
        if not self.shape:
            raise TypeError("a zero-dimensional array cannot be iterated over")
        return self._rows()

    def _rows(self) -> Iterator["Array"]:
        """Reads in blocks, rather than one element at a time."""
        count = self.shape[0]
        if self._node.session._is_trace or self.nbytes <= BLOCK_BYTES:
            if not self._node.session._is_trace:
                self._read()
            yield from (self[i] for i in range(count))
            return
        step = max(1, BLOCK_BYTES * count // self.nbytes)
        for begin in range(0, count, step):
            block = self[begin:begin + step]
            if block.nbytes <= BLOCK_BYTES:
                block._read()
            yield from (block[i] for i in range(block.shape[0]))

    def __contains__(self, value) -> bool:
        """True if an element equals the value: one round trip."""
        found = self == value
        return bool(found if isinstance(found, bool) else _reductions.any(found))

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


def _real_number(value):
    """Python's number without its imaginary part, with NumPy's warning."""
    if type(value) is not complex:
        return value
    warnings.warn(
        "Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning, stacklevel=3
    )
    return value.real


def _restored(values: np.ndarray) -> Array:
    from stride import _conversion

    return _conversion.asarray(values)


BLOCK_BYTES = 64 << 10  # that the host keeps of what it reads


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
    if kind is _elements.Element:
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
            if kind is _elements.Element:
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
from stride import _assembly, _casts, _conversion, _creation, _elements, _indexing, _linear_algebra  # noqa: E402
from stride import _manipulation, _reductions  # noqa: E402
from stride import _host_arrays  # noqa: E402, F401
