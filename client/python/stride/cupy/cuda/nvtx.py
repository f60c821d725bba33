"""Ranges for a profiler. They do nothing: the work is the daemon's, which has traces of its own."""

from typing import Any

available = False
__all__ = ["Mark", "MarkC", "RangePop", "RangePush", "RangePushC"]


def RangePush(message: str = "", id_color: Any = -1) -> None:  # noqa: N802
    """Does nothing."""


def RangePop() -> None:  # noqa: N802
    """Does nothing."""


def Mark(message: str = "", id_color: Any = -1) -> None:  # noqa: N802
    """Does nothing."""


RangePushC, MarkC = RangePush, Mark
