"""The runtime's profiler. It does nothing: the work is the daemon's, which has traces and metrics of its own."""

__all__ = ["initialize", "start", "stop"]


def start() -> None:
    """Does nothing."""


def stop() -> None:
    """Does nothing."""


def initialize(*_) -> None:
    """Does nothing."""
