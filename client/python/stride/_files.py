"""Arrays in files and buffers of the host, by NumPy's functions: what they read is uploaded, what they write is
read."""

from typing import Any, Callable

import numpy as np

from stride import _arguments, _errors
from stride._array import Array, array_of, host_array

__all__ = [
    "frombuffer",
    "fromfile",
    "fromiter",
    "fromstring",
    "genfromtxt",
    "loadtxt",
    "savetxt",
    "savez",
    "savez_compressed",
]


def _uploaded(values: Any, name: str) -> Array:
    if isinstance(values, np.ndarray) and (values.dtype.names is not None or values.dtype.kind not in "biufc"):
        raise _errors.DataTypeMismatch(
            f"{name} read elements of {values.dtype}, which the service does not have; numpy.{name} gives an array of "
            "the host",
            reason="DATA_TYPE_MISMATCH",
        )
    return array_of(values)


def _reader(function: Callable, summary: str, example: str) -> Callable:
    name = function.__name__

    def read(*arguments: Any, **options: Any) -> Any:
        options.pop("like", None)
        if options.get("usemask"):
            raise _arguments.unimplemented(f"{name} with usemask", "the service has no masks; read filling_values")
        values = function(*arguments, **options)
        if isinstance(values, (list, tuple)):
            return type(values)(_uploaded(one, name) for one in values)
        return _uploaded(values, name)

    read.__name__ = read.__qualname__ = name
    read.__doc__ = f"""{summary}

    Parameters
        arguments, options: as of `numpy.{name}`.
    Returns
        An array, uploaded; a list of them with unpack=True for columns of several types.
    Raises
        What `numpy.{name}` raises; DataTypeMismatch for strings, objects and structured elements.
    Example
        {example}
    """
    return read


loadtxt = _reader(
    np.loadtxt,
    "An array of the numbers in a text file.",
    '>>> st.loadtxt(["1 2", "3 4"]).tolist()\n        [[1.0, 2.0], [3.0, 4.0]]',
)
genfromtxt = _reader(
    np.genfromtxt,
    "An array of the numbers in a text file, in which some may be missing.",
    '>>> st.genfromtxt(["1,2", "3,"], delimiter=",", filling_values=0).tolist()\n        [[1.0, 2.0], [3.0, 0.0]]',
)
fromfile = _reader(
    np.fromfile,
    "An array of the elements in a file, as `tofile` writes them.",
    ">>> import tempfile\n        >>> with tempfile.NamedTemporaryFile() as file:\n"
    "        ...     st.arange(3).tofile(file.name)\n"
    "        ...     st.fromfile(file.name, int).tolist()\n        [0, 1, 2]",
)
frombuffer = _reader(
    np.frombuffer,
    "An array of the elements in a buffer of the host; a copy.",
    '>>> st.frombuffer(b"\\x01\\x02", st.uint8).tolist()\n        [1, 2]',
)
fromiter = _reader(
    np.fromiter,
    "An array of the elements that an iterator gives.",
    ">>> st.fromiter((i * i for i in range(3)), int).tolist()\n        [0, 1, 4]",
)
fromstring = _reader(
    np.fromstring,
    "An array of the numbers in a text.",
    '>>> st.fromstring("1 2", sep=" ").tolist()\n        [1.0, 2.0]',
)


def _on_host(x: Any) -> Any:
    return x._read() if isinstance(x, Array) else host_array(x) if isinstance(x, (list, tuple)) else x


def savetxt(fname: Any, X: Any, *arguments: Any, **options: Any) -> None:  # noqa: N803, NumPy's name
    """Writes an array of one or two axes as text.

    Parameters
        fname: a file.
        X: the array, which is read.
        arguments: `fmt`, `delimiter`, `newline`, `header`, `footer`, `comments` and `encoding`, in this order.
        options: the same by name.
    Returns
        None.
    Raises
        OSError for a file that cannot be written, ValueError for more than two axes.
    Example
        >>> import io
        >>> file = io.StringIO()
        >>> st.savetxt(file, st.arange(2), fmt="%d")
        >>> file.getvalue().split()
        ['0', '1']
    """
    np.savetxt(fname, _on_host(X), *arguments, **options)


def savez(file: Any, *args: Any, **kwds: Any) -> None:
    """Writes several arrays into one `.npz` file, which `load` reads.

    Parameters
        file: a file's name, a path object or an open file.
        args: the arrays, which are read; they are called arr_0, arr_1 and so on.
        kwds: the arrays by name.
    Returns
        None.
    Raises
        OSError for a file that cannot be written.
    Example
        >>> import io
        >>> file = io.BytesIO()
        >>> st.savez(file, x=st.arange(2))
        >>> _ = file.seek(0)
        >>> st.load(file)["x"].tolist()
        [0, 1]
    """
    np.savez(file, *map(_on_host, args), **{name: _on_host(one) for name, one in kwds.items()})


def savez_compressed(file: Any, *args: Any, **kwds: Any) -> None:
    """Writes several arrays into one compressed `.npz` file, which `load` reads.

    Parameters
        file: a file's name, a path object or an open file.
        args: the arrays, which are read; they are called arr_0, arr_1 and so on.
        kwds: the arrays by name.
    Returns
        None.
    Raises
        OSError for a file that cannot be written.
    Example
        >>> import io
        >>> st.savez_compressed(io.BytesIO(), st.arange(2))
    """
    np.savez_compressed(file, *map(_on_host, args), **{name: _on_host(one) for name, one in kwds.items()})
