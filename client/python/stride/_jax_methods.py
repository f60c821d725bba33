"""The methods of JAX's arrays that NumPy's arrays lack."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stride._array import Array
    from stride._at import At
    from stride._mapping import MappedArray


class JaxMethods:
    """A part of Array."""

    __slots__ = ()
    if TYPE_CHECKING:
        _node: Any

    @property
    def at(self) -> "At":
        """Updates that make a new array: `x.at[i].set(v)`, `add`, `multiply`, `min`, `max`, and `x.at[i].get()`.

        Example
            >>> st.arange(3).at[0].set(5).tolist()
            [5, 1, 2]
        """
        from stride._at import At

        return At(self)  # type: ignore[arg-type]

    def block_until_ready(self) -> "Array":
        """Waits until the array has been computed, and returns it; raises what went wrong. While a function is traced
        it does nothing.

        Returns
            This array.
        Example
            >>> (st.ones(2) + 1).block_until_ready().tolist()
            [2.0, 2.0]
        """
        from stride._transfers import wait_for

        wait_for(self)  # type: ignore[arg-type]
        return self  # type: ignore[return-value]

    def delete(self) -> None:
        """Deletes the array: later use raises ArrayDeleted. Its views and results stay.

        Returns
            None.
        Example
            >>> st.ones(2).delete()
        """
        if not self.is_deleted():
            self._node.held = False
            del self._node

    def is_deleted(self) -> bool:
        """Whether it was deleted: by `delete`, or as a donated argument of a jitted function.

        Returns
            A bool.
        Example
            >>> st.ones(2).is_deleted()
            False
        """
        try:
            object.__getattribute__(self, "_node")
        except AttributeError:
            return True
        return False

    def copy_to_host_async(self) -> None:
        """Does nothing: a read that follows copies.

        Returns
            None.
        Example
            >>> st.ones(2).copy_to_host_async()
        """

    def map_memory(self, *, hand_over: bool = False) -> "MappedArray":
        """The array's own memory, on a device of this machine, mapped into this process: no copy.

        For reading: until the mapping and all arrays made of it are gone, the service cannot write the array. With
        `hand_over` the array leaves the service: its use raises ArrayDeleted, and the memory is this process's to read
        and write. It counts as the tenant's until the mapping ends. An array that shares its memory with small others
        is first copied on its device.

        Parameters
            hand_over: whether the array leaves the service. None of its views may be left.
        Returns
            A MappedArray, for `numpy.asarray`, and `from_dlpack` of PyTorch, CuPy and JAX.
        Raises
            FailedPrecondition for a daemon that is not reached by its Unix socket, or an array that cannot be mapped;
            ResourceExhausted where too much is mapped; Unavailable where the memory cannot be mapped here; the error of
            the operation that computes the array.
        Example
            >>> with st.arange(3).map_memory() as mapping:
            ...     print(np.asarray(mapping))
            ...
            [0 1 2]
        """
        from stride import _mapping

        return _mapping.map_memory(self, hand_over)  # type: ignore[arg-type]

    def to_torch(self, *, copy: Any = None, device: Any = None) -> Any:
        """A PyTorch tensor of a copy on the host, in memory of its own.

        From 1 MiB on, with a daemon on this machine, the daemon writes the elements into memory that it shares with
        this process, and the tensor lies there: this process copies nothing. A GPU of this machine as `device`, or
        `copy=False`, has the tensor lie in the array's own memory (`map_memory`). Writes to such a tensor on the host
        stay in this process; a GPU's tensor is not to be written, which nothing prevents.

        Parameters
            copy: None or True copies; False takes elements that the host has, or maps the memory of a CPU device, or
                raises.
            device: None for the host; else PyTorch's name of a GPU that the array is on, such as `cuda`.
        Returns
            A torch.Tensor.
        Raises
            BufferError where that cannot be without a copy; what `map_memory` raises.
        Example
            >>> callable(st.ones(2).to_torch)
            True
        """
        from stride import _interchange

        return _interchange.to_torch(self, copy, device)  # type: ignore[arg-type]
