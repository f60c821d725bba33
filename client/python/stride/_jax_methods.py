"""The methods of JAX's arrays that NumPy's arrays lack."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stride._array import Array
    from stride._at import At


class JaxMethods:
    """A part of Array."""

    __slots__ = ()
    if TYPE_CHECKING:
        _node: Any

    @property
    def at(self) -> "At":
        """Updates that make a new array: `x.at[i].set(v)`, `add`, `multiply`, `min`, `max`, and `x.at[i].get()`."""
        from stride._at import At

        return At(self)  # type: ignore[arg-type]

    def block_until_ready(self) -> "Array":
        """Waits until the array has been computed, and returns it; raises what went wrong. While a function is traced
        it does nothing."""
        from stride._transfers import wait_for

        wait_for(self)  # type: ignore[arg-type]
        return self  # type: ignore[return-value]

    def delete(self) -> None:
        """Gives up the array: its use raises ArrayDeleted. Views of it, and what was computed from it, stay."""
        if not self.is_deleted():
            self._node.held = False
            del self._node

    def is_deleted(self) -> bool:
        """Whether it was deleted: by `delete`, or as a donated argument of a jitted function."""
        try:
            object.__getattribute__(self, "_node")
        except AttributeError:
            return True
        return False

    def copy_to_host_async(self) -> None:
        """Does nothing: a read that follows copies."""

    def to_torch(self, *, copy: Any = None) -> Any:
        """A PyTorch tensor of a copy on the host, in memory of its own.

        From 1 MiB on, with a daemon on this machine, the daemon writes the elements into memory that it shares with
        this process, and the tensor lies there: this process copies nothing."""
        from stride import _interchange

        return _interchange.to_torch(self, copy)  # type: ignore[arg-type]
