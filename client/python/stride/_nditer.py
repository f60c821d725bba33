"""`nditer`: NumPy's iterator over elements, on copies of the host that are written back at its end."""

from typing import Any, List, Optional, Tuple

import numpy as np

from stride import _conversion
from stride._array import Array

__all__ = ["nditer"]

_WRITES = ("readwrite", "writeonly")


class nditer:  # noqa: N801
    """Iterates over the elements of arrays that are broadcast together. The arrays are read at once; elements that the
    loop writes reach an array when the iteration ends, at `close`, or at the end of a `with` block.

    Parameters
        op: an array, or a sequence of arrays; None for one that is made.
        flags: NumPy's flags, such as `multi_index` and `external_loop`.
        op_flags: flags of the arrays, such as `readwrite`.
        op_dtypes: the types that elements are given as.
        order: the order of iteration, `C`, `F`, `A` or `K`.
        casting: which conversions are allowed.
        op_axes: for each array its axes in the iteration.
        itershape: the shape of the iteration.
        buffersize: elements of a buffer.
    Returns
        An iterator of arrays of the host without axes, or of tuples of them.
    Raises
        ValueError for flags that there are not and shapes that cannot be broadcast.
    Example
        >>> x = st.arange(3)
        >>> with st.nditer(x, op_flags=["readwrite"]) as it:
        ...     for one in it:
        ...         one[...] = 2 * one
        >>> x.tolist()
        [0, 2, 4]
    """

    def __init__(
        self,
        op: Any,
        flags: Any = None,
        op_flags: Any = None,
        op_dtypes: Any = None,
        order: str = "K",
        casting: str = "safe",
        op_axes: Any = None,
        itershape: Any = None,
        buffersize: int = 0,
    ) -> None:
        self._iterator: Any = None
        given = list(op) if isinstance(op, (tuple, list)) and any(_is_operand(one) for one in op) else [op]
        writes = _written(op_flags, len(given))
        self._given: List[Tuple[Any, Optional[np.ndarray]]] = []
        hosts: List[Any] = []
        for one, written in zip(given, writes):
            host = np.array(one._read()) if isinstance(one, Array) else one
            self._given.append((one, host if written and isinstance(one, Array) else None))
            hosts.append(host)
        options = {"op_dtypes": op_dtypes, "op_axes": op_axes, "itershape": itershape}
        self._iterator = np.nditer(
            hosts[0] if len(hosts) == 1 else hosts,
            flags=flags or (),
            order=order,
            casting=casting,
            buffersize=buffersize,
            **({} if op_flags is None else {"op_flags": op_flags}),
            **{name: value for name, value in options.items() if value is not None},
        )

    @property
    def operands(self) -> Tuple[Any, ...]:
        """The arrays; those that the iterator made are uploaded.

        Returns
            A tuple of arrays.
        Example
            >>> len(st.nditer([st.arange(3), None]).operands)
            2
        """
        self._write_back()
        return tuple(
            one if isinstance(one, Array) else _conversion.asarray(host)
            for (one, _), host in zip(self._given, self._iterator.operands)
        )

    def _write_back(self) -> None:
        for array, host in self._given:
            if host is not None:
                array[...] = host

    def close(self) -> None:
        """Ends the iteration and writes the elements to the arrays.

        Returns
            Nothing.
        Example
            >>> it = st.nditer(st.arange(3))
            >>> it.close()
        """
        self._write_back()
        self._given = [(array, None) for array, _ in self._given]

    def iternext(self) -> bool:
        """Goes to the next element.

        Returns
            Whether there is one.
        Example
            >>> st.nditer(st.arange(3)).iternext()
            True
        """
        more = self._iterator.iternext()
        if not more:
            self._write_back()
        return more

    def copy(self) -> Any:
        """NumPy's iterator at the same place, over the same copies.

        Returns
            A numpy.nditer.
        Example
            >>> next(st.nditer(st.arange(3)).copy()).item()
            0
        """
        return self._iterator.copy()

    def __iter__(self) -> "nditer":
        return self

    def __next__(self) -> Any:
        try:
            return next(self._iterator)
        except StopIteration:
            self._write_back()
            raise

    def __enter__(self) -> "nditer":
        self._iterator.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._iterator.__exit__(*error)
        self.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._iterator, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("index", "iterindex", "iterrange", "multi_index"):
            setattr(self._iterator, name, value)
        else:
            super().__setattr__(name, value)

    def __len__(self) -> int:
        return len(self._iterator)

    def __getitem__(self, key: Any) -> Any:
        return self._iterator[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._iterator[key] = value


def _is_operand(one: Any) -> bool:
    return one is None or isinstance(one, (Array, np.ndarray, list, tuple))


def _written(op_flags: Any, count: int) -> List[bool]:
    """Which operands the loop may write: flags are given for all, or for each."""
    if not op_flags:
        return [False] * count
    each = [op_flags] * count if isinstance(op_flags[0], str) else list(op_flags)
    return [any(flag in _WRITES for flag in flags) for flags in each]
