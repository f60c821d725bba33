"""Ranges for a profiler. They do nothing: the daemon runs the work and has its own traces."""

from typing import Any

available = False
__all__ = ["Mark", "MarkC", "RangePop", "RangePush", "RangePushC"]


def RangePush(message: str = "", id_color: Any = -1) -> None:  # noqa: N802
    """Names a range for a profiler of CUDA. It does nothing: the work is the daemon's.

    Parameters
        message: accepted.
        id_color: accepted.
    Returns
        None.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.nvtx.RangePush("step")
    """


def RangePop() -> None:  # noqa: N802
    """Ends the range that was named last. It does nothing: the work is the daemon's.

    Returns
        None.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.nvtx.RangePop()
    """


def Mark(message: str = "", id_color: Any = -1) -> None:  # noqa: N802
    """Names a moment for a profiler of CUDA. It does nothing: the work is the daemon's.

    Parameters
        message: accepted.
        id_color: accepted.
    Returns
        None.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.nvtx.Mark("step")
    """


RangePushC, MarkC = RangePush, Mark
