"""Resources that outlive a session: named arrays, jobs, and modules of kernels. They belong to the tenant."""

import os
import uuid
import warnings
from typing import IO, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union

import numpy as np

from stride import _dtypes, _errors, _printed
from stride._array import Array, node_of, wrap
from stride._graph import defer, spec_of
from stride._kernel import RawKernel
from stride._session import Session, current_session
from stride.v1 import array_pb2, array_service_pb2, job_service_pb2, job_service_pb2_grpc, kernel_service_pb2, \
    kernel_service_pb2_grpc, operation_pb2 as pb

__all__ = ["Job", "Module", "delete_array", "job", "jobs", "load", "modules", "named_arrays", "save", "submit"]


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


# --- arrays ---

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


# --- jobs ---

class Job:
    """Work that continues without its client. stride.job(name) finds it again.

    Parameters
        session: the session whose daemon runs the job.
        proto: the daemon's message.
    Raises
        NotFound, by its methods, for a job that was deleted.
    Example
        >>> _ = st.save("doc_left", st.ones(2), overwrite=True)
        >>> job = st.submit(st.negative, "doc_left", results=["doc_sum6"])
        >>> job.wait().state
        'SUCCEEDED'
        >>> job.delete()
    """

    def __init__(self, session: Session, proto: job_service_pb2.Job):
        self._session = session
        self._stub = job_service_pb2_grpc.JobServiceStub(session._channels.control)
        self._proto = proto

    def __repr__(self) -> str:
        return f"<stride.Job {self.name} {self._state()}>"

    @property
    def name(self) -> str:
        """The full name, by which `stride.job` finds the job.

        Example
            >>> _ = st.save("doc_left", st.ones(2), overwrite=True)
            >>> st.submit(st.negative, "doc_left", results=["doc_sum7"]).wait().name.startswith("tenants/default/jobs/")
            True
        """
        return self._proto.name

    @property
    def label(self) -> str:
        """The text that `submit` was given.

        Example
            >>> _ = st.save("doc_left", st.ones(2), overwrite=True)
            >>> st.submit(st.negative, "doc_left", results=["doc_sum8"], label="first").wait().label
            'first'
        """
        return self._proto.label

    def _state(self) -> str:
        return job_service_pb2.Job.State.Name(self._proto.state).replace("STATE_", "")

    @property
    def state(self) -> str:
        """The state as it is now: QUEUED, SCHEDULED, RUNNING, SUCCEEDED, FAILED or CANCELLED.

        Example
            >>> _ = st.save("doc_left", st.ones(2), overwrite=True)
            >>> st.submit(st.negative, "doc_left", results=["doc_sum9"]).wait().state
            'SUCCEEDED'
        """
        if not self.done:
            self._proto = self._session._call(self._stub.GetJob, job_service_pb2.GetJobRequest(name=self.name)).job
        return self._state()

    @property
    def done(self) -> bool:
        """Whether the job has ended, to this program's knowledge.

        Example
            >>> _ = st.save("doc_left", st.ones(2), overwrite=True)
            >>> st.submit(st.negative, "doc_left", results=["doc_sum10"]).wait().done
            True
        """
        return self._state() in ("SUCCEEDED", "FAILED", "CANCELLED")

    @property
    def results(self) -> List[str]:
        """Full names of the arrays that the job makes.

        Example
            >>> _ = st.save("doc_left", st.ones(2), overwrite=True)
            >>> st.submit(st.negative, "doc_left", results=["doc_sum11"]).wait().results
            ['tenants/default/arrays/doc_sum11']
        """
        return [one.name for one in self._proto.results]

    @property
    def error(self) -> Optional[_errors.StrideError]:
        """The error that ended the job, or None.

        Example
            >>> _ = st.save("doc_left", st.ones(2), overwrite=True)
            >>> print(st.submit(st.negative, "doc_left", results=["doc_sum12"]).wait().error)
            None
        """
        return _errors.from_status(self._proto.error) if self._proto.error.code else None

    def watch(self, timeout: Optional[float] = None) -> Iterator[str]:
        """The job's state now, then every change, up to the last.

        Parameters
            timeout: seconds after which DeadlineExceeded is raised; None waits without an end.
        Returns
            An iterator of states.
        Example
            >>> _ = st.save("doc_left", st.ones(2), overwrite=True)
            >>> list(st.submit(st.negative, "doc_left", results=["doc_sum13"]).watch())[-1]
            'SUCCEEDED'
        """
        call = self._stub.WatchJob(job_service_pb2.WatchJobRequest(name=self.name), timeout=timeout)
        try:
            for reply in _errors.replies(call):
                self._proto = reply.job
                yield self._state()
        finally:
            call.cancel()

    def wait(self, timeout: Optional[float] = None) -> "Job":
        """Waits until the job has ended; raises its error when it did not succeed.

        Parameters
            timeout: seconds after which DeadlineExceeded is raised; None waits without an end.
        Returns
            The job.
        Raises
            The job's error; DeadlineExceeded after `timeout`.
        Example
            >>> _ = st.save("doc_left", st.ones(2), overwrite=True)
            >>> st.submit(st.negative, "doc_left", results=["doc_sum14"]).wait(timeout=600).done
            True
        """
        for _ in self.watch(timeout):
            pass
        if self.error is not None:
            raise self.error
        return self

    def cancel(self) -> None:
        """Asks the daemon to stop the job; a job that has ended stays as it is.

        Returns
            None.
        Raises
            NotFound for a job that was deleted.
        Example
            >>> _ = st.save("doc_left", st.ones(2), overwrite=True)
            >>> job = st.submit(st.negative, "doc_left", results=["doc_sum15"]).wait()
            >>> job.cancel()
            >>> job.state
            'SUCCEEDED'
        """
        self._proto = self._session._call(self._stub.CancelJob, job_service_pb2.CancelJobRequest(name=self.name)).job

    def delete(self) -> None:
        """Deletes the daemon's record of the job; only once the job has ended.

        Returns
            None.
        Raises
            FailedPrecondition for a job that has not ended.
        Example
            >>> _ = st.save("doc_left", st.ones(2), overwrite=True)
            >>> st.submit(st.negative, "doc_left", results=["doc_sum16"]).wait().delete()
        """
        self._session._call(self._stub.DeleteJob, job_service_pb2.DeleteJobRequest(name=self.name))


def submit(
    function: Callable, *arguments, results: Sequence[str], label: str = "", timeout: Optional[float] = None,
    priority: int = 0, session: Optional[Session] = None, **kwargs,
) -> Job:
    """Runs a function on named arrays as a job, which continues when this program ends.

    String arguments name arrays; others are passed as they are. The function is traced as by stride.jit; its
    results are saved under the names of `results`.

    Parameters
        function: a function of arrays that returns arrays.
        arguments: names of arrays, and other values.
        results: names for the arrays that the function returns.
        label: a text for people.
        timeout: seconds after which the daemon cancels the job; None for no limit.
        priority: jobs with a higher number run first.
        session: the session; None for the current one.
        kwargs: values that the function gets by name.
    Returns
        A Job.
    Raises
        TypeError for an array in place of a name; ValueError for another number of `results` than the function returns;
        NotFound for a name that there is not.
    Example
        >>> _ = st.save("doc_left", st.ones(2), overwrite=True)
        >>> _ = st.submit(lambda x, n: x + n, "doc_left", 5, results=["doc_sum28"]).wait()
        >>> st.load("doc_sum28").tolist()
        [6.0, 6.0]
    """
    from stride._trace import at, flatten, trace

    session = session or current_session()
    _warn_if_private(session, "The result of the job")
    names, placeholders, specs = [], [], []
    for one in arguments:
        if isinstance(one, str):
            described = _describe(session, _full(session, one))
            names.append(described.name)
            specs.append((tuple(described.shape), _dtypes.dtype_numbered(described.data_type)))
            one = np.empty(0)  # stands for an array in the structure
        elif isinstance(one, (Array, np.ndarray)):
            raise TypeError(
                "a job works on named arrays, since it outlives this session: stride.save it, and pass its name"
            )
        placeholders.append(one)
    structure = flatten((tuple(placeholders), kwargs), [])
    template, _ = trace(function, structure, tuple(specs), session)
    if template.captured:
        raise TypeError(
            "the function uses an array of this session, which the job would outlive: stride.save it, and pass its name"
        )
    if len(template.outputs) != len(results):
        raise ValueError(f"the function gives {len(template.outputs)} arrays for {len(results)} names of results")
    named = dict(zip(template.inputs, names))
    named.update(zip((one.handle for one in template.outputs), (_full(session, one) for one in results)))
    request = job_service_pb2.CreateJobRequest(request_id=str(uuid.uuid4()))
    request.job.label, request.job.priority = label, priority
    if timeout is not None:
        request.job.timeout.FromNanoseconds(int(timeout * 1e9))
    for operation, paths, _ in template.commands:
        if operation is None:
            continue
        new = request.job.operations.add()
        new.CopyFrom(operation)
        for path, handle in paths:
            if handle in named:
                at(new, path).name = named[handle]
    stub = job_service_pb2_grpc.JobServiceStub(session._channels.control)
    return Job(session, session._call(stub.CreateJob, request).job)


def job(name: str, *, session: Optional[Session] = None) -> Job:
    """The job of a name; NotFound where there is none.

    Parameters
        name: the job's name.
        session: the session; None for the current one.
    Returns
        A Job.
    Raises
        NotFound where there is none.
    Example
        >>> _ = st.save("doc_left", st.ones(2), overwrite=True)
        >>> name = st.submit(st.negative, "doc_left", results=["doc_sum23"]).wait().name
        >>> st.job(name).state
        'SUCCEEDED'
    """
    session = session or current_session()
    stub = job_service_pb2_grpc.JobServiceStub(session._channels.control)
    return Job(
        session, session._call(stub.GetJob, job_service_pb2.GetJobRequest(name=_full(session, name, "jobs"))).job
    )


def jobs(*, session: Optional[Session] = None) -> List[Job]:
    """The tenant's jobs.

    Parameters
        session: the session; None for the current one.
    Returns
        A list of Job.
    Example
        >>> all(one.name for one in st.jobs())
        True
    """
    session = session or current_session()
    stub = job_service_pb2_grpc.JobServiceStub(session._channels.control)
    replies = session._pages(stub.ListJobs, job_service_pb2.ListJobsRequest(parent=session.tenant))
    return [Job(session, one) for reply in replies for one in reply.jobs]


# --- modules ---

class Module:
    """Kernels compiled once and kept by the daemon, so that launches name them instead of carrying source.

    module = stride.Module(source, options=["-DSTEP=5"], name="steps") module["step"](1, 3, (x,))
    # as a RawKernel module.kernels["scale<float>"].registers                          # one KernelInfo a kernel;
    of several devices the first

    Parameters
        source: CUDA C++.
        ptx: in place of `source`, the text of PTX.
        binary: in place of `source`, a cubin.
        options: the compiler's, such as `-DSTEP=5`.
        entries: kernels, or name expressions such as `scale<float>`; empty for every kernel that is no template.
        name: the last part of the full name; empty for one that the daemon chooses.
        session: the session; None for the current one.
        _proto: the daemon's message of a module that exists.
    Raises
        ValueError unless the code is given in one form; CompileError for what does not compile; AlreadyExists for a
        name that is taken.
    Example
        >>> module = st.Module('extern "C" __global__ void count(long long* y) { y[threadIdx.x] = threadIdx.x; }')
        >>> y = st.zeros(3, st.int64)
        >>> module["count"](1, 3, (y,))
        >>> y.tolist()
        [0, 1, 2]
        >>> module.delete()
    """

    def __init__(
        self, source: str = "", *, ptx: str = "", binary: bytes = b"", options: Sequence[str] = (),
        entries: Sequence[str] = (), name: str = "", session: Optional[Session] = None,
        _proto: Optional[kernel_service_pb2.Module] = None,
    ):
        self._session = session or current_session()
        self._stub = kernel_service_pb2_grpc.KernelServiceStub(self._session._channels.control)
        if _proto is None:
            request = kernel_service_pb2.CreateModuleRequest(module_id=name)
            given = [(kind, code) for kind, code in (("source", source), ("ptx", ptx), ("binary", binary)) if code]
            if len(given) != 1:
                raise ValueError("a module is made of source, of PTX or of a binary")
            setattr(request.module, *given[0])
            request.module.options.extend(options)
            request.module.entries.extend(entries)
            _proto = self._session._call(self._stub.CreateModule, request).module
        self._proto = _proto

    def __repr__(self) -> str:
        return f"<stride.Module {self.name}>"

    @property
    def name(self) -> str:
        """The full name.

        Example
            >>> module = st.Module('extern "C" __global__ void nothing() {}', name="doc-name")
            >>> module.name
            'tenants/default/modules/doc-name'
            >>> module.delete()
        """
        return self._proto.name

    @property
    def log(self) -> str:
        r"""The compiler's warnings.

        Example
            >>> module = st.Module('extern "C" __global__ void nothing() {}', name="doc-log")
            >>> module.log
            '\n'
            >>> module.delete()
        """
        return self._proto.log

    @property
    def kernels(self) -> Dict[str, kernel_service_pb2.KernelInfo]:
        """The kernels by name: registers, shared memory and parameters of each.

        Example
            >>> module = st.Module('extern "C" __global__ void nothing() {}', name="doc-kernels")
            >>> list(module.kernels)
            ['nothing']
            >>> module.delete()
        """
        return {one.entry: one for one in reversed(self._proto.kernels)}

    def __getitem__(self, entry: str) -> RawKernel:
        code = self._proto.source or self._proto.ptx or self._proto.binary
        if code:
            _printed.note_code(code)
        else:  # too long for an answer
            _printed.expect()
        return RawKernel("", entry, module=self.name)

    def delete(self) -> None:
        """Deletes the module from the daemon.

        Returns
            None.
        Raises
            NotFound for a module that was deleted.
        Example
            >>> st.Module('extern "C" __global__ void nothing() {}').delete()
        """
        self._session._call(self._stub.DeleteModule, kernel_service_pb2.DeleteModuleRequest(name=self.name))


def modules(*, session: Optional[Session] = None) -> List[Module]:
    """The tenant's modules of kernels.

    Parameters
        session: the session; None for the current one.
    Returns
        A list of Module.
    Example
        >>> module = st.Module('extern "C" __global__ void nothing() {}', name="doc-listed")
        >>> [one.name for one in st.modules() if one.name.endswith("doc-listed")]
        ['tenants/default/modules/doc-listed']
        >>> module.delete()
    """
    session = session or current_session()
    stub = kernel_service_pb2_grpc.KernelServiceStub(session._channels.control)
    replies = session._pages(stub.ListModules, kernel_service_pb2.ListModulesRequest(parent=session.tenant))
    return [Module(session=session, _proto=one) for reply in replies for one in reply.modules]
