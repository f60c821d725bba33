"""Exceptions: one class for each kind of failure, with the daemon's error details."""

from typing import Dict, List, Optional, Tuple

import grpc
import numpy as np

from stride._rpc import error_details_pb2, status_pb2


class StrideError(Exception):
    """The base of all errors of the service.

    message      the text, without the rest
    code         gRPC's name of it, such as `INVALID_ARGUMENT`
    reason       a name of stride.v1.ErrorReason such as `SHAPE_MISMATCH`; empty when it arose on this side
    metadata     every value that the text names
    fields       (path, description) of each field of the request at fault, such as `operation.matmul.left`
    retry_delay  seconds after which the daemon expects the same call to succeed, or None
    origin       `file.py:12`, the line that recorded the operation at fault, where that is known

    Parameters
        message: the text.
        reason: a name of stride.v1.ErrorReason.
        metadata: the values that the text names.
        fields: pairs of path and description.
        retry_delay: seconds, or None.
        origin: `file.py:12`, the line that recorded the operation.
    Example
        >>> try:
        ...     st.ones(2) + st.ones(3)
        ... except st.StrideError as error:
        ...     print(error.code)
        ...
        INVALID_ARGUMENT
    """

    code = "UNKNOWN"

    def __init__(self, message: str, *, reason: str = "", metadata: Optional[Dict[str, str]] = None,
                 fields: Optional[List[Tuple[str, str]]] = None, retry_delay: Optional[float] = None, origin: str = ""):
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.metadata = metadata or {}
        self.fields = fields or []
        self.retry_delay = retry_delay
        self.origin = origin

    @property
    def field(self) -> str:
        """The path of the first field at fault, or an empty string.

        Example
            >>> try:
            ...     st.Module("no source")
            ... except st.CompileError as error:
            ...     print(error.field)
            ...
            module.source
        """
        return self.fields[0][0] if self.fields else ""

    def __str__(self) -> str:
        parts = [self.message]
        if self.fields:
            parts.append("(field " + ", ".join(path for path, _ in self.fields) + ")")
        if self.retry_delay is not None:
            parts.append(f"(try again in {self.retry_delay:g} s)")
        if self.origin:
            parts.append(f"[recorded at {self.origin}]")
        return " ".join(parts)


class InvalidArgument(StrideError, ValueError):
    """INVALID_ARGUMENT: an argument that the operation does not take. The text names the field.

    Example
        >>> try:
        ...     st.zeros(2).reshape(5)
        ... except st.InvalidArgument as error:
        ...     print(error.code)
        ...
        INVALID_ARGUMENT
    """

    code = "INVALID_ARGUMENT"


class AxisError(InvalidArgument, np.exceptions.AxisError):
    """An axis that the array does not have. Like NumPy's, it is both a ValueError and an IndexError.

    Parameters
        message: the text.
        axis: the axis that was given.
        ndim: the number of axes that there are.
        details: `reason`, `metadata`, `fields`, `retry_delay` and `origin` of StrideError.
    Example
        >>> try:
        ...     st.sum(st.ones(2), axis=1)
        ... except st.AxisError as error:
        ...     print(isinstance(error, ValueError), isinstance(error, IndexError))
        ...
        True True
    """

    def __init__(self, message: str, axis: Optional[int] = None, ndim: Optional[int] = None, **details):
        super().__init__(message, **details)
        self.axis, self.ndim = axis, ndim

    def __reduce__(self):
        return type(self), (self.message, self.axis, self.ndim), self.__dict__


class ShapeMismatch(InvalidArgument):
    """SHAPE_MISMATCH: shapes do not broadcast or do not fit the operation.

    Example
        >>> try:
        ...     st.ones(2) + st.ones(3)
        ... except st.ShapeMismatch as error:
        ...     print(error.code)
        ...
        INVALID_ARGUMENT
    """


class DataTypeMismatch(InvalidArgument, TypeError):
    """DATA_TYPE_MISMATCH: no version of the operation takes these types.

    Example
        >>> try:
        ...     st.bitwise_and(st.ones(2), 1)
        ... except st.DataTypeMismatch as error:
        ...     print(error.code)
        ...
        INVALID_ARGUMENT
    """


class ExpressionError(InvalidArgument):
    """EXPRESSION_SYNTAX or UNKNOWN_FUNCTION: an expression or a function of Python that cannot be translated.

    Example
        >>> try:
        ...     st.vectorize("x +")(x=st.ones(2))
        ... except st.ExpressionError as error:
        ...     print(error.code)
        ...
        INVALID_ARGUMENT
    """


class CompileError(InvalidArgument):
    """COMPILE_FAILED or UNKNOWN_ENTRY: a kernel's source does not compile; the text has the compiler's log.

    Example
        >>> try:
        ...     st.Module("no source")
        ... except st.CompileError as error:
        ...     print(error.code)
        ...
        INVALID_ARGUMENT
    """


class FailedPrecondition(StrideError):
    """FAILED_PRECONDITION: the state of something does not permit the call.

    Example
        >>> issubclass(st.TracingError, st.FailedPrecondition)
        True
    """

    code = "FAILED_PRECONDITION"


class TracingError(FailedPrecondition, TypeError):
    """A value was needed while the function that computes it was traced.

    Example
        >>> try:
        ...     st.jit(lambda x: x if x > 0 else -x)(st.ones(()))
        ... except st.TracingError as error:
        ...     print(error.code)
        ...
        FAILED_PRECONDITION
    """


class ArrayDeleted(FailedPrecondition, RuntimeError):
    """The array was given up: by its `delete`, or as a donated argument of a jitted function.

    Example
        >>> issubclass(st.ArrayDeleted, RuntimeError)
        True
    """


class NotFound(StrideError, LookupError):
    """NOT_FOUND: there is nothing of that name.

    Example
        >>> try:
        ...     st.load("doc_missing")
        ... except st.NotFound as error:
        ...     print(error.code)
        ...
        NOT_FOUND
    """

    code = "NOT_FOUND"


class AlreadyExists(StrideError):
    """ALREADY_EXISTS: the name is taken.

    Example
        >>> try:
        ...     _ = [st.save("doc_twice", st.ones(2)) for _ in range(2)]
        ... except st.AlreadyExists as error:
        ...     print(error.code)
        ...
        ALREADY_EXISTS
    """

    code = "ALREADY_EXISTS"


class KernelFault(FailedPrecondition):
    """KERNEL_FAULT: a kernel faulted: an illegal address, a trap or an assertion.

    Example
        >>> issubclass(st.KernelFault, st.FailedPrecondition)
        True
    """


class ResourceExhausted(StrideError):
    """RESOURCE_EXHAUSTED: a limit is reached.

    Example
        >>> issubclass(st.QuotaExceeded, st.ResourceExhausted)
        True
    """

    code = "RESOURCE_EXHAUSTED"


class DeviceMemoryError(ResourceExhausted, MemoryError):
    """DEVICE_MEMORY: a device is full.

    Example
        >>> issubclass(st.DeviceMemoryError, MemoryError)
        True
    """


class QuotaExceeded(ResourceExhausted):
    """QUOTA: the tenant has no more of something.

    Example
        >>> issubclass(st.QuotaExceeded, st.StrideError)
        True
    """


class DownloadWarning(UserWarning):
    """A function of NumPy that the service does not have ran on the host, on arrays that were downloaded for it.

    Parameters
        args: the text.
    Example
        >>> issubclass(st.DownloadWarning, UserWarning)
        True
    """


class Unavailable(StrideError, ConnectionError):
    """UNAVAILABLE: the daemon is not reached, or does not serve now.

    Example
        >>> try:
        ...     st.connect("unix:/nowhere", timeout=1)
        ... except st.Unavailable as error:
        ...     print(error.code)
        ...
        UNAVAILABLE
    """

    code = "UNAVAILABLE"


class Aborted(StrideError):
    """ABORTED: another call has changed what this one worked on; try again.

    Example
        >>> issubclass(st.Aborted, st.StrideError)
        True
    """

    code = "ABORTED"


class Cancelled(StrideError):
    """CANCELLED: the call or the job was cancelled.

    Example
        >>> issubclass(st.Cancelled, st.StrideError)
        True
    """

    code = "CANCELLED"


class DeadlineExceeded(StrideError, TimeoutError):
    """DEADLINE_EXCEEDED: the time of a call has passed.

    Example
        >>> issubclass(st.DeadlineExceeded, TimeoutError)
        True
    """

    code = "DEADLINE_EXCEEDED"


class OutOfRange(StrideError, IndexError):
    """OUT_OF_RANGE: an index or a number is outside.

    Example
        >>> issubclass(st.OutOfRange, IndexError)
        True
    """

    code = "OUT_OF_RANGE"


class LinAlgError(StrideError, np.linalg.LinAlgError):
    """LINEAR_ALGEBRA: the matrix is singular, it is not positive definite, an iteration does not converge.

    Example
        >>> try:
        ...     st.linalg.inv(st.zeros((2, 2))).tolist()
        ... except st.LinAlgError as error:
        ...     print(error.code)
        ...
        OUT_OF_RANGE
    """

    code = "OUT_OF_RANGE"


class Unimplemented(StrideError, NotImplementedError):
    """UNIMPLEMENTED: a feature that is missing; the text names it.

    Example
        >>> try:
        ...     st.zeros(2).view(type=np.matrix)
        ... except st.Unimplemented as error:
        ...     print(error.code)
        ...
        UNIMPLEMENTED
    """

    code = "UNIMPLEMENTED"


class Unauthenticated(StrideError, PermissionError):
    """UNAUTHENTICATED: the token is missing or wrong.

    Example
        >>> issubclass(st.Unauthenticated, PermissionError)
        True
    """

    code = "UNAUTHENTICATED"


class PermissionDenied(StrideError, PermissionError):
    """PERMISSION_DENIED: the tenant may not do that.

    Example
        >>> issubclass(st.PermissionDenied, PermissionError)
        True
    """

    code = "PERMISSION_DENIED"


class DataLoss(StrideError):
    """DATA_LOSS: stored data cannot be read.

    Example
        >>> issubclass(st.DataLoss, st.StrideError)
        True
    """

    code = "DATA_LOSS"


class Internal(StrideError):
    """INTERNAL: a mistake of the service itself; please report it.

    Example
        >>> issubclass(st.Internal, st.StrideError)
        True
    """

    code = "INTERNAL"


_BY_CODE = {kind.code: kind for kind in (
    InvalidArgument, NotFound, AlreadyExists, FailedPrecondition, ResourceExhausted, Unavailable, Aborted, Cancelled,
    DeadlineExceeded, OutOfRange, Unimplemented, Unauthenticated, PermissionDenied, DataLoss, Internal)}
_BY_REASON = {
    "SHAPE_MISMATCH": ShapeMismatch, "DATA_TYPE_MISMATCH": DataTypeMismatch,
    "EXPRESSION_SYNTAX": ExpressionError, "UNKNOWN_FUNCTION": ExpressionError, "COMPILE_FAILED": CompileError,
    "UNKNOWN_ENTRY": CompileError, "KERNEL_FAULT": KernelFault, "DEVICE_MEMORY": DeviceMemoryError,
    "QUOTA": QuotaExceeded, "LINEAR_ALGEBRA": LinAlgError,
}
_HINTS = {
    "SESSION_NOT_FOUND": ". The daemon has been restarted, or the session was idle for too long: its arrays are lost. "
    "Connect again with stride.connect()"
}
_CODE_NAMES = {code.value[0]: code.name for code in grpc.StatusCode}


def from_status(status, origin: str = "") -> StrideError:
    """The exception for a google.rpc.Status."""
    details = {"reason": "", "metadata": {}, "fields": [], "retry_delay": None}
    for detail in status.details:
        info, bad, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            details["reason"], details["metadata"] = info.reason, dict(info.metadata)
        elif detail.Unpack(bad):
            details["fields"] = [(v.field, v.description) for v in bad.field_violations]
        elif detail.Unpack(retry):
            details["retry_delay"] = retry.retry_delay.seconds + retry.retry_delay.nanos * 1e-9
    kind = _BY_REASON.get(details["reason"]) or _BY_CODE.get(_CODE_NAMES.get(status.code, ""), StrideError)
    return kind(status.message + _HINTS.get(details["reason"], ""), origin=origin, **details)


def from_rpc(error: grpc.RpcError) -> StrideError:
    """The exception for a failed call. Raise it after the handler, not within: there the call, which has
    locks and cannot be pickled, would become the exception's context."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status = status_pb2.Status.FromString(value)
            if status.code:
                return from_status(status)
    text = error.details() or error.code().name
    if error.code() is grpc.StatusCode.UNAVAILABLE:  # gRPC's own: the daemon's have details
        return connection_lost(text)
    return from_status(status_pb2.Status(code=error.code().value[0], message=text))


def connection_lost(why: str) -> Unavailable:
    return Unavailable(
        f"The connection to the daemon is lost ({why}). Arrays of a daemon that has ended are lost with it; "
        "once one serves again, "
        "connect again with stride.connect()"
    )


def call(method, *arguments, **options):
    """A call by gRPC; its failure is raised as a StrideError."""
    try:
        return method(*arguments, **options)
    except grpc.RpcError as error:
        failure = from_rpc(error)
    raise failure


def replies(stream):
    """The replies that a call by gRPC streams, with the same exceptions."""
    try:
        yield from stream
        return
    except grpc.RpcError as error:
        failure = from_rpc(error)
    raise failure


__all__ = [
    "Aborted",
    "AlreadyExists",
    "ArrayDeleted",
    "AxisError",
    "Cancelled",
    "CompileError",
    "DataLoss",
    "DataTypeMismatch",
    "DeadlineExceeded",
    "DeviceMemoryError",
    "DownloadWarning",
    "ExpressionError",
    "FailedPrecondition",
    "Internal",
    "InvalidArgument",
    "KernelFault",
    "LinAlgError",
    "NotFound",
    "OutOfRange",
    "PermissionDenied",
    "QuotaExceeded",
    "ResourceExhausted",
    "ShapeMismatch",
    "StrideError",
    "TracingError",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
]
