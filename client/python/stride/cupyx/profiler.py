"""cupyx.profiler: times of functions that compute on the service."""

import contextlib
import time
from typing import Any, Callable, Optional, Sequence

import numpy as np

from stride import _execution

__all__ = ["PerformanceResult", "benchmark", "profile", "time_range"]


class PerformanceResult:
    """Times of the calls, in seconds: `cpu_times`, that of the call itself, and `gpu_times`, one row for each device,
    until its results were there.

    Parameters
        name: the function's name.
        cpu_times: an array of seconds, one for each call.
        gpu_times: an array of seconds, one row for each device.
    Example
        >>> from stride.cupyx import profiler
        >>> profiler.PerformanceResult("f", np.ones(2), np.ones((1, 2))).cpu_times.mean().item()
        1.0
    """

    def __init__(self, name: str, cpu_times: np.ndarray, gpu_times: np.ndarray):
        self.name, self.cpu_times, self.gpu_times = name, cpu_times, gpu_times

    def to_str(self, show_gpu: bool = False) -> str:
        """The times as a line of text.

        Parameters
            show_gpu: whether the devices' times are in it.
        Returns
            A str.
        Example
            >>> from stride.cupyx import profiler
            >>> profiler.PerformanceResult("f", np.ones(2), np.ones((1, 2))).to_str().startswith("f")
            True
        """
        parts = [f"{self.name:<20s}:{self._line('CPU', self.cpu_times)}"]
        if show_gpu:
            parts += [self._line(f"GPU-{i}", one) for i, one in enumerate(self.gpu_times)]
        return " ".join(parts)

    @staticmethod
    def _line(device: str, seconds: np.ndarray) -> str:
        micro = seconds * 1e6
        text = f"{device:>7s}: {micro.mean():9.03f} us"
        return text + (
            f"   +/- {micro.std():6.03f} (min: {micro.min():9.03f} / max: {micro.max():9.03f}) us"
            if micro.size > 1
            else ""
        )

    def __str__(self) -> str:
        return self.to_str(show_gpu=True)

    __repr__ = __str__


def benchmark(
    func: Callable,
    args: Sequence = (),
    kwargs: Optional[dict] = None,
    n_repeat: int = 10000,
    *,
    name: Optional[str] = None,
    n_warmup: int = 10,
    max_duration: float = float("inf"),
    devices: Any = None,
) -> PerformanceResult:
    """Calls a function `n_warmup` times, then up to `n_repeat` times or `max_duration` seconds.

    A result that nothing reads would not be computed: each call's results are sent and waited for. `devices` are
    those that are named in the result; the operations run where the session has them.

    Parameters
        func: the function.
        args: its arguments.
        kwargs: its arguments by name.
        n_repeat: the most calls that are measured.
        name: the name in the result; None for the function's.
        n_warmup: calls before.
        max_duration: seconds after which no further call begins.
        devices: the devices that the result names; None for the current one.
    Returns
        A PerformanceResult.
    Raises
        What the function raises.
    Example
        >>> from stride.cupyx import profiler
        >>> profiler.benchmark(st.sum, (st.ones(3),), n_repeat=2, n_warmup=1).cpu_times.size
        2
    """
    from stride._array import Array

    kwargs = {} if kwargs is None else kwargs
    if not callable(func):
        raise ValueError("`func` should be a callable object.")
    if n_repeat < 1 or n_warmup < 0:
        raise ValueError("n_repeat is at least 1 and n_warmup at least 0")

    def computed(result) -> None:
        parts = result if isinstance(result, (tuple, list)) else (result,)
        nodes = [one._node for one in parts if isinstance(one, Array) and one._node.deferred]
        if nodes:
            nodes[0].session._flush(nodes)
        _execution.synchronize()

    for _ in range(n_warmup):
        computed(func(*args, **kwargs))
    _execution.synchronize()
    cpu, gpu, begin = [], [], time.perf_counter()
    for _ in range(n_repeat):
        first = time.perf_counter()
        result = func(*args, **kwargs)
        second = time.perf_counter()
        computed(result)
        cpu.append(second - first)
        gpu.append(time.perf_counter() - first)
        if time.perf_counter() - begin > max_duration:
            break
    rows = len(devices) if devices is not None else 1
    return PerformanceResult(name or getattr(func, "__name__", "function"), np.array(cpu), np.array([gpu] * rows))


@contextlib.contextmanager
def profile():
    """A context that CUDA's profiler records. It does nothing: profile the daemon instead.

    Returns
        A context.
    Example
        >>> from stride.cupyx import profiler
        >>> with profiler.profile():
        ...     x = st.zeros(3)
        ...
    """
    yield


class time_range(contextlib.ContextDecorator):  # noqa: N801, CuPy's name
    """A range for a profiler, as a context and a decorator. It does nothing: the daemon runs the work and has
    its own traces.

    Parameters
        message: accepted.
        color_id: accepted.
        argb_color: accepted.
        sync: accepted.
    Example
        >>> from stride.cupyx import profiler
        >>> with profiler.time_range("step"):
        ...     x = st.zeros(3)
        ...
    """

    def __init__(self, message: Optional[str] = None, color_id: Any = None, argb_color: Any = None, sync: bool = False):
        self.message = message

    def __enter__(self) -> "time_range":
        return self

    def __exit__(self, *_: Any) -> None:
        pass
