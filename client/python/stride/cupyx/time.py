"""cupyx.time.repeat, the older name of cupyx.profiler.benchmark."""

from stride.cupyx.profiler import benchmark

__all__ = ["repeat"]
repeat = benchmark
