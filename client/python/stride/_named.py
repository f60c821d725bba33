"""Arrays that outlive a session, by name, and their files. They belong to the tenant."""

import os
import warnings
from typing import IO, Any, Dict, Iterator, List, Mapping, Optional, Union

import numpy as np

from stride import _dtypes, _errors
from stride._array import Array, node_of, wrap
from stride._graph import defer, spec_of
from stride._session import Session, current_session
from stride.v1 import array_pb2, array_service_pb2, operation_pb2 as pb

__all__ = ["delete_array", "load", "named_arrays", "save"]


def _full(session: Session, name: str, collection: str = "arrays") -> str:
    return name if "/" in name else f"{session.tenant}/{collection}/{name}"


def _warn_if_private(session: Session, what: str) -> None:
    if session._daemon is not None:
        warnings.warn(
            f"{what} is gone when this session ends: it is in a private daemon, which ends with it. Start strided and "
            "name it by STRIDE_ADDRESS to keep it",
            UserWarning,
            stacklevel=3,
        )


def _describe(session: Session, name: str) -> array_pb2.Array:
    return session._call(session._arrays.GetArray, array_service_pb2.GetArrayRequest(name=name)).array


def _is_file(name) -> bool:
    """True if the name selects NumPy's `save` and `load`: an open file, a path object, or a string that ends in `.npy`
    or `.npz`. Other strings are names of arrays."""
    if not isinstance(name, str):
        return isinstance(name, os.PathLike) or hasattr(name, "read") or hasattr(name, "write")
    return name.endswith((".npy", ".npz"))


class Archive(Mapping):
    """The arrays of a `.npz` file by name, which close with it; a context manager, as NumPy's."""

    def __init__(self, file: Any, session: Session):
        self._file, self._session = file, session
        self._arrays: Dict[str, Array] = {}
        self.files: List[str] = file.files

    def __getitem__(self, key: str) -> Array:
        if key not in self._arrays:
            values = self._file[key]
            if not isinstance(values, np.ndarray):
                return values  # a file of another kind in the archive, as bytes
            self._arrays[key] = wrap(self._session._upload(values))
        return self._arrays[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    @property
    def f(self) -> "Archive":
        """The arrays as attributes: `archive.f.weights`."""
        return self

    @property
    def fid(self) -> Optional[IO[bytes]]:
        """The file, where `load` opened it."""
        return self._file.fid

    @property
    def zip(self) -> Any:
        """The archive as Python reads it."""
        return self._file.zip

    def __getattr__(self, name: str) -> Array:
        if name in self.__dict__.get("files", ()):
            return self[name]
        raise AttributeError(f"the archive has no array {name!r}")

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def load(
    name: Union[str, os.PathLike, IO[bytes]],
    mmap_mode=None,
    allow_pickle: bool = False,
    *,
    session: Optional[Session] = None,
    **options,
) -> Any:
    """The array saved under a name, itself and not a copy: assignments change it for all who load it. A string that
    ends in `.npy` or `.npz`, a path object or an open file is NumPy's file instead, whose arrays are uploaded.

    Parameters
        name: a name, or a file.
        mmap_mode, allow_pickle, options: as of `numpy.load`, for files; what is pickled are no arrays of the service,
            and modes that write into the file are refused.
        session: whose array it becomes; the current one where none is given.
    Returns
        An array; of a `.npz` file a read-only mapping of names to arrays, each uploaded when it is first asked for.
    Raises
        NotFound for a name that is not there; what `numpy.load` raises for files.
    Example
        >>> st.save("doc_example", st.arange(3), overwrite=True).endswith("doc_example")
        True
        >>> st.load("doc_example").tolist()
        [0, 1, 2]
    """
    session = session or current_session()
    if mmap_mode in ("r+", "w+"):
        # The array is a copy, and what is written into it would not reach the file.
        raise _errors.Unimplemented(
            f"mmap_mode={mmap_mode!r} writes into the file, which is not mapped to a device; load it and save it again",
            reason="NOT_IMPLEMENTED",
            metadata={"feature": "mmap_mode"},
        )
    if _is_file(name):
        values = np.load(name, mmap_mode, allow_pickle=allow_pickle, **options)
        return wrap(session._upload(values)) if isinstance(values, np.ndarray) else Archive(values, session)
    full = _full(session, name)
    described = _describe(session, full)
    if described.state == array_pb2.Array.STATE_FAILED:
        raise _errors.from_status(described.error)
    if described.HasField("sharding"):
        session._has_sharded = True

    def build(flush, node, operands):
        flush.operation(node.handle, node.origin, view=pb.View(input=pb.Operand(name=full)))

    array = wrap(defer(session, tuple(described.shape), _dtypes.dtype_numbered(described.data_type), build, ()))
    # Its elements may change from elsewhere, and the name may go: it is bound now.
    session._flush((array._node,))
    array._node.own_buffer().is_shared = True
    return array


def save(
    file: Union[str, os.PathLike, IO[bytes]],
    arr,
    allow_pickle: bool = True,
    *,
    overwrite: bool = False,
    ttl: Optional[float] = None,
) -> str:
    """Computes an array and keeps it under a name, for good or for `ttl` seconds.

    A string that ends in `.npy`, a path object or an open file is NumPy's file instead, written by this program;
    an existing one is replaced, as by `numpy.save`. Warns where a name is kept by a private daemon, which ends
    with its session.

    Parameters
        file: a name, or a file.
        arr: an array, or what becomes one.
        allow_pickle: accepted: no array of the service needs it.
        overwrite: whether an array of that name is replaced.
        ttl: seconds after which the daemon deletes the array.
    Returns
        The full name; for a file its path.
    Raises
        AlreadyExists for a name that is taken, unless `overwrite`; ValueError for a `ttl` of a file.
    Example
        >>> st.save("doc_saved", st.arange(3), overwrite=True)
        'tenants/default/arrays/doc_saved'
    """
    name, node = file, node_of(arr)
    if _is_file(name):
        if ttl is not None:
            raise ValueError("ttl is of arrays kept by the daemon, not of files")
        if isinstance(name, str) and name.endswith(".npz"):
            raise _errors.Unimplemented(
                "a file of several arrays is written with stride.savez",
                reason="NOT_IMPLEMENTED",
                metadata={"feature": "npz"},
            )
        np.save(name, node.session._read(node))
        return str(name if isinstance(name, (str, os.PathLike)) else getattr(name, "name", ""))
    session = node.session
    full = _full(session, name)
    _warn_if_private(session, f"The array {full}")
    exists = False
    if overwrite:
        try:
            described = _describe(session, full)
            exists = (
                described.data_type == _dtypes.NUMBERS[node.dtype]
                and tuple(described.shape) == node.shape
                and ttl is None
            )
            if not exists:
                delete_array(full, session=session)
        except _errors.NotFound:
            pass
    if ttl is not None:
        request = array_service_pb2.CreateArrayRequest(
            parent=session.tenant, array_id=full.rsplit("/", 1)[1], spec=spec_of(node)
        )
        request.ttl.FromNanoseconds(int(ttl * 1e9))
        session._call(session._arrays.CreateArray, request)
        exists = True
    operation = pb.Operation(copy=pb.Copy(input=pb.Operand()), outputs=[pb.Output(name=full, existing=exists)])
    session._run_and_wait((node,), lambda flush: operation.copy.input.CopyFrom(flush.operand(node)) or operation)
    return full


def delete_array(name: str, *, session: Optional[Session] = None) -> None:
    """Deletes a named array from the daemon.

    Parameters
        name: the array's name.
        session: the session; None for the current one.
    Returns
        None.
    Raises
        NotFound where there is none.
    Example
        >>> _ = st.save("doc_gone", st.ones(2), overwrite=True)
        >>> st.delete_array("doc_gone")
    """
    session = session or current_session()
    session._call(session._arrays.DeleteArray, array_service_pb2.DeleteArrayRequest(name=_full(session, name)))


def named_arrays(*, session: Optional[Session] = None) -> List[Dict]:
    """The tenant's named arrays.

    Parameters
        session: the session; None for the current one.
    Returns
        A list of dicts with the keys `name`, `dtype`, `shape` and `bytes`.
    Example
        >>> _ = st.save("doc_named", st.ones(2), overwrite=True)
        >>> [one["shape"] for one in st.named_arrays() if one["name"].endswith("doc_named")]
        [(2,)]
    """
    session = session or current_session()
    return session.list_arrays(session.tenant)
