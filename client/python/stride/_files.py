"""Arrays in files and buffers of the host, by NumPy's functions. Arrays are uploaded after a read and
downloaded before a write."""

from typing import Any, Callable, Optional

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


def _read(function: Callable, *arguments: Any, **options: Any) -> Any:
    values = function(*arguments, **options)
    if isinstance(values, (list, tuple)):
        return type(values)(_uploaded(one, function.__name__) for one in values)
    return _uploaded(values, function.__name__)


def loadtxt(
    fname: Any, dtype: Any = float, comments: Any = "#", delimiter: Optional[str] = None, converters: Any = None,
    skiprows: int = 0, usecols: Any = None, unpack: bool = False, ndmin: int = 0, encoding: Optional[str] = None,
    max_rows: Optional[int] = None, *, quotechar: Optional[str] = None, like: Any = None,
) -> Any:  # fmt: skip
    """An array of the numbers in a text file.

    Parameters
        fname: a path, an open file, or an iterable of lines.
        dtype: the element type.
        comments: the text, or several, after which a line is not read.
        delimiter: the text between numbers; None for white space.
        converters: a function of a field's text, or a dict of such by column.
        skiprows: how many lines are not read at first.
        usecols: the columns that are read; None for all.
        unpack: whether columns are the first axis.
        ndmin: the least number of axes.
        encoding: the file's encoding.
        max_rows: how many lines are read at most.
        quotechar: the text around fields with delimiters in them.
        like: an array of the service, whose kind the result has anyway.
    Returns
        An array, uploaded.
    Raises
        ValueError for a field that is no number; DataTypeMismatch for strings, objects and structured elements.
    Example
        >>> st.loadtxt(["1 2", "3 4"]).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    return _read(
        np.loadtxt, fname, dtype, comments, delimiter, converters, skiprows, usecols, unpack, ndmin, encoding, max_rows,
        quotechar=quotechar,
    )  # fmt: skip


def genfromtxt(
    fname: Any, dtype: Any = float, comments: Any = "#", delimiter: Any = None, skip_header: int = 0,
    skip_footer: int = 0, converters: Any = None, missing_values: Any = None, filling_values: Any = None,
    usecols: Any = None, names: Any = None, excludelist: Any = None, deletechars: Optional[str] = None,
    replace_space: str = "_", autostrip: bool = False, case_sensitive: Any = True, defaultfmt: str = "f%i",
    unpack: Optional[bool] = None, usemask: bool = False, loose: bool = True, invalid_raise: bool = True,
    max_rows: Optional[int] = None, encoding: Optional[str] = None, *, ndmin: int = 0, like: Any = None,
) -> Any:  # fmt: skip
    """An array of the numbers in a text file, in which some may be missing.

    Parameters
        fname: a path, an open file, or an iterable of lines.
        dtype: the element type.
        comments: the text after which a line is not read.
        delimiter: the text between numbers, or the width of fields; None for white space.
        skip_header: how many lines are not read at first.
        skip_footer: how many lines are not read at the end.
        converters: a dict by column of functions of a field's text.
        missing_values: the texts of missing numbers.
        filling_values: the numbers in their places; None for NaN.
        usecols: the columns that are read; None for all.
        names, excludelist, deletechars, replace_space, case_sensitive, defaultfmt: for structured elements, which the
            service does not have.
        autostrip: whether white space around fields is left out.
        unpack: whether columns are the first axis.
        usemask: False; the service has no masks.
        loose: whether a field that is no number counts as missing.
        invalid_raise: whether a line of another length is an error.
        max_rows: how many lines are read at most.
        encoding: the file's encoding.
        ndmin: the least number of axes.
        like: an array of the service, whose kind the result has anyway.
    Returns
        An array, uploaded; a list of arrays with `unpack` for columns of several types.
    Raises
        ValueError for a line of another length; DataTypeMismatch for strings, objects and structured elements;
        Unimplemented for `usemask`.
    Example
        >>> st.genfromtxt(["1,2", "3,"], delimiter=",", filling_values=0).tolist()
        [[1.0, 2.0], [3.0, 0.0]]
    """
    if usemask:
        raise _arguments.unimplemented("genfromtxt with usemask", "the service has no masks; read filling_values")
    options = {} if deletechars is None else {"deletechars": deletechars}
    return _read(
        np.genfromtxt, fname, dtype, comments, delimiter, skip_header, skip_footer, converters, missing_values,
        filling_values, usecols, names, excludelist, replace_space=replace_space, autostrip=autostrip,
        case_sensitive=case_sensitive, defaultfmt=defaultfmt, unpack=unpack, loose=loose, invalid_raise=invalid_raise,
        max_rows=max_rows, encoding=encoding, ndmin=ndmin, **options,
    )  # fmt: skip


def fromfile(
    file: Any, dtype: Any = float, count: int = -1, sep: str = "", offset: int = 0, *, like: Any = None
) -> Array:
    """An array of the elements in a file, as `tofile` writes them.

    Parameters
        file: a path or an open file.
        dtype: the element type.
        count: how many elements are read; -1 for all.
        sep: the text between numbers; elements are bytes where it is empty.
        offset: how many bytes are left out at first.
        like: an array of the service, whose kind the result has anyway.
    Returns
        An array of one axis, uploaded.
    Raises
        OSError for a file that cannot be read; DataTypeMismatch for elements that the service does not have.
    Example
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     st.arange(3).tofile(file.name)
        ...     st.fromfile(file.name, int).tolist()
        [0, 1, 2]
    """
    return _read(np.fromfile, file, dtype, count, sep, offset)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0, *, like: Any = None) -> Array:
    """An array of the elements in a buffer of the host; a copy.

    Parameters
        buffer: a bytes object or another buffer.
        dtype: the element type.
        count: how many elements are read; -1 for all.
        offset: how many bytes are left out at first.
        like: an array of the service, whose kind the result has anyway.
    Returns
        An array of one axis, uploaded.
    Raises
        ValueError for a buffer of another size; DataTypeMismatch for elements that the service does not have.
    Example
        >>> st.frombuffer(b"\\x01\\x02", st.uint8).tolist()
        [1, 2]
    """
    return _read(np.frombuffer, buffer, dtype, count, offset)


def fromiter(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> Array:  # noqa: A002, NumPy's name
    """An array of the elements that an iterator gives.

    Parameters
        iter: an iterator or an iterable of numbers.
        dtype: the element type.
        count: how many elements are taken; -1 for all.
        like: an array of the service, whose kind the result has anyway.
    Returns
        An array of one axis, uploaded.
    Raises
        ValueError for fewer elements than `count`; DataTypeMismatch for elements that the service does not have.
    Example
        >>> st.fromiter((i * i for i in range(3)), int).tolist()
        [0, 1, 4]
    """
    return _read(np.fromiter, iter, dtype, count)


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str, like: Any = None) -> Array:
    """An array of the numbers in a text.

    Parameters
        string: the text.
        dtype: the element type.
        count: how many numbers are read; -1 for all.
        sep: the text between numbers.
        like: an array of the service, whose kind the result has anyway.
    Returns
        An array of one axis, uploaded.
    Raises
        ValueError for a text with something else in it.
    Example
        >>> st.fromstring("1 2", sep=" ").tolist()
        [1.0, 2.0]
    """
    return _read(np.fromstring, string, dtype, count, sep=sep)


def _on_host(x: Any) -> Any:
    return x._read() if isinstance(x, Array) else host_array(x) if isinstance(x, (list, tuple)) else x


def savetxt(
    fname: Any, X: Any, fmt: Any = "%.18e", delimiter: str = " ", newline: str = "\n", header: str = "",  # noqa: N803
    footer: str = "", comments: str = "# ", encoding: Optional[str] = None,
) -> None:  # fmt: skip
    """Writes an array of one or two axes as text.

    Parameters
        fname: a file.
        X: the array, which is read.
        fmt: how a number is written, or one such text for each column.
        delimiter: the text between numbers.
        newline: the text after each line.
        header: a text in front.
        footer: a text at the end.
        comments: the text in front of lines of header and footer.
        encoding: the file's encoding.
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
    np.savetxt(fname, _on_host(X), fmt, delimiter, newline, header, footer, comments, encoding)


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
