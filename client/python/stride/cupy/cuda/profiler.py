"""The runtime's profiler. It does nothing: the daemon runs the work and has its own traces and metrics."""

__all__ = ["initialize", "start", "stop"]


def start() -> None:
    """Begins CUDA's profile. It does nothing: profile the daemon instead.

    Returns
        None.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.profiler.start()
    """


def stop() -> None:
    """Ends CUDA's profile. It does nothing: profile the daemon instead.

    Returns
        None.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.profiler.stop()
    """


def initialize(*_) -> None:
    """Names a file for CUDA's profile. It does nothing: profile the daemon instead.

    Returns
        None.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.profiler.initialize("config", "output", "csv")
    """
