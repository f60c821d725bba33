"""Streams and events."""

from stride import _execution
from stride._execution import Event, current_stream, null_stream, refused
from stride._execution import Stream as _Stream

__all__ = ["Event", "ExternalStream", "Stream", "get_current_stream", "get_elapsed_time"]


class Stream(_Stream):
    """A name for the session, whose operations run in order. `Stream.null` is the one that is current at first.

    Parameters
        null: whether it is the default stream.
        non_blocking: accepted.
        ptds: accepted.
        priority: accepted.
    Example
        >>> import stride.cupy as cp
        >>> with cp.cuda.Stream() as stream:
        ...     x = cp.arange(3) + 1
        ...
        >>> stream.synchronize()
    """

    null = ptds = null_stream

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: int = 0):
        super().__init__(null, non_blocking, ptds, priority)


def get_current_stream(device_id: int = -1) -> _Stream:
    """The stream that was entered last.

    Parameters
        device_id: accepted.
    Returns
        A Stream.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.get_current_stream().done
        True
    """
    return current_stream()


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Milliseconds between two recorded events.

    Parameters
        start_event: a recorded event.
        end_event: a later one.
    Returns
        A float.
    Raises
        RuntimeError for an event that was not recorded.
    Example
        >>> import stride.cupy as cp
        >>> start, end = cp.cuda.Event(), cp.cuda.Event()
        >>> start.record()
        >>> end.record()
        >>> cp.cuda.get_elapsed_time(start, end) >= 0
        True
    """
    return _execution.elapsed_milliseconds(start_event, end_event)


def ExternalStream(ptr, device_id: int = -1):  # noqa: N802, CuPy's name
    """Refused: a stream of another library has no meaning to the service.

    Parameters
        ptr: accepted.
        device_id: accepted.
    Returns
        Nothing: it raises.
    Raises
        Unimplemented.
    Example
        >>> import stride.cupy as cp
        >>> try:
        ...     cp.cuda.ExternalStream(0)
        ... except st.Unimplemented:
        ...     print("refused")
        ...
        refused
    """
    refused(
        "cuda.ExternalStream",
        "the devices are the daemon's, where no stream of this process is known; use cuda.Stream()",
    )
