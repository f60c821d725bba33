"""Jobs: computations that outlive a session. They belong to the tenant."""

import uuid
from typing import Callable, Iterator, List, Optional, Sequence

import numpy as np

from stride import _dtypes, _errors
from stride._array import Array
from stride._named import _describe, _full, _warn_if_private
from stride._session import Session, current_session
from stride.v1 import job_service_pb2, job_service_pb2_grpc

__all__ = ["Job", "job", "jobs", "submit"]


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
