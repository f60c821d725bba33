"""Exceptions: one class for each kind of failure, with what the daemon's error details tell."""

from typing import Dict, List, Optional, Tuple

import grpc
import numpy as np

from stride._rpc import error_details_pb2, status_pb2


class StrideError(Exception):
    """What went wrong in the service.

    message      the text, without the rest
    code         gRPC's name of it, such as `INVALID_ARGUMENT`
    reason       a name of stride.v1.ErrorReason such as `SHAPE_MISMATCH`; empty when it arose on this side
    metadata     every value that the text names
    fields       (path, description) of each field of the request at fault, such as `operation.matmul.left`
    retry_delay  seconds after which the daemon expects the same call to succeed, or None
    origin       `file.py:12`, the line that recorded the operation at fault, where that is known
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
        """The path of the first field at fault, or an empty string."""
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
    code = "INVALID_ARGUMENT"


class AxisError(InvalidArgument, np.exceptions.AxisError):
    """An axis that the array does not have. Like NumPy's, it is both a ValueError and an IndexError."""

    def __init__(self, message: str, axis: Optional[int] = None, ndim: Optional[int] = None, **details):
        super().__init__(message, **details)
        self.axis, self.ndim = axis, ndim

    def __reduce__(self):
        return type(self), (self.message, self.axis, self.ndim), self.__dict__


class ShapeMismatch(InvalidArgument):
    """SHAPE_MISMATCH: shapes do not broadcast or do not fit the operation."""


class DataTypeMismatch(InvalidArgument, TypeError):
    """DATA_TYPE_MISMATCH: no version of the operation takes these types."""


class ExpressionError(InvalidArgument):
    """EXPRESSION_SYNTAX or UNKNOWN_FUNCTION."""


class CompileError(InvalidArgument):
    """COMPILE_FAILED or UNKNOWN_ENTRY; the text has the compiler's log."""


class FailedPrecondition(StrideError):
    code = "FAILED_PRECONDITION"


class TracingError(FailedPrecondition, TypeError):
    """A value was needed while the function that computes it was traced."""


class ArrayDeleted(FailedPrecondition, RuntimeError):
    """The array was given up: by its `delete`, or as a donated argument of a jitted function."""


class NotFound(StrideError, LookupError):
    code = "NOT_FOUND"


class AlreadyExists(StrideError):
    code = "ALREADY_EXISTS"


class KernelFault(FailedPrecondition):
    """KERNEL_FAULT: the kernel faulted: illegal address, trap, assert."""


class ResourceExhausted(StrideError):
    code = "RESOURCE_EXHAUSTED"


class DeviceMemoryError(ResourceExhausted, MemoryError):
    """DEVICE_MEMORY: a device is full."""


class QuotaExceeded(ResourceExhausted):
    """QUOTA: the tenant has no more of something."""


class DownloadWarning(UserWarning):
    """A function of NumPy that the service does not have ran on the host, on arrays that were downloaded for it."""


class Unavailable(StrideError, ConnectionError):
    code = "UNAVAILABLE"


class Aborted(StrideError):
    code = "ABORTED"


class Cancelled(StrideError):
    code = "CANCELLED"


class DeadlineExceeded(StrideError, TimeoutError):
    code = "DEADLINE_EXCEEDED"


class OutOfRange(StrideError, IndexError):
    code = "OUT_OF_RANGE"


class LinAlgError(StrideError, np.linalg.LinAlgError):
    """LINEAR_ALGEBRA: the matrix is singular, it is not positive definite, an iteration does not converge."""

    code = "OUT_OF_RANGE"


class Unimplemented(StrideError, NotImplementedError):
    code = "UNIMPLEMENTED"


class Unauthenticated(StrideError, PermissionError):
    code = "UNAUTHENTICATED"


class PermissionDenied(StrideError, PermissionError):
    code = "PERMISSION_DENIED"


class DataLoss(StrideError):
    code = "DATA_LOSS"


class Internal(StrideError):
    code = "INTERNAL"


_BY_CODE = {kind.code: kind for kind in (
    InvalidArgument, NotFound, AlreadyExists, FailedPrecondition, ResourceExhausted, Unavailable, Aborted, Cancelled,
    DeadlineExceeded, OutOfRange, Unimplemented, Unauthenticated, PermissionDenied, DataLoss, Internal)}
_BY_REASON = {
    "SHAPE_MISMATCH": ShapeMismatch, "DATA_TYPE_MISMATCH": DataTypeMismatch, "EXPRESSION_SYNTAX": ExpressionError,
    "UNKNOWN_FUNCTION": ExpressionError, "COMPILE_FAILED": CompileError, "UNKNOWN_ENTRY": CompileError,
    "KERNEL_FAULT": KernelFault, "DEVICE_MEMORY": DeviceMemoryError, "QUOTA": QuotaExceeded, "LINEAR_ALGEBRA": LinAlgError,
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
    """The exception for a failed call. Raise it after the handler, not within: there the call, which has locks, would
    be the exception's context, which pickles include."""
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
