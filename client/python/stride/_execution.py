"""Devices, streams and events as CuPy and Numba have them, over a session.

A session's operations run in the order in which they were recorded, and what does not depend on each other overlaps by
itself. Streams have therefore nothing to order: they are names for the session. An event is the moment at which
everything recorded before it was done, which `record` waits for."""

import functools
import re
import time
from typing import Callable, List, Optional

from stride import _errors, _session
from stride._metrics import Device as _Described

__all__ = [
    "DeviceName",
    "devices",
    "elapsed_milliseconds",
    "Event",
    "memory_info",
    "Place",
    "refused",
    "Stream",
    "synchronize",
]


def refused(name: str, why: str):
    """Raises UNIMPLEMENTED for a name that has no counterpart."""
    raise _errors.Unimplemented(f"{name} is not there: {why}", reason="NOT_IMPLEMENTED", metadata={"feature": name})


def real_session() -> "_session.Session":
    """The current one; the innermost that is no trace."""
    session = _session.current_session()
    while session._is_trace:
        session = session.outer
    return session


def synchronize() -> None:
    """Waits until everything recorded in the current session has been computed; raises what went wrong."""
    real_session().synchronize()


# --- devices ---


def devices() -> List[_Described]:
    """Those that a number names: the daemon's GPUs, or, where it has none, its CPU devices."""
    found = real_session().devices()
    return [one for one in found if one.kind == "cuda"] or found


def memory_info(described: _Described) -> tuple:
    """Free bytes and all bytes of a device."""
    for samples in real_session().watch_devices(0.1, max_samples=1):
        for one in samples:
            if one.device in (described.name, f"devices/{described.name}") and one.memory_total_bytes is not None:
                used = one.memory_used_bytes if one.memory_used_bytes is not None else one.arena_bytes
                return max(0, one.memory_total_bytes - used), one.memory_total_bytes
    return described.memory_total_bytes, described.memory_total_bytes


def array_bytes(described: _Described) -> tuple:
    """Bytes in arrays, and bytes that the service has allocated for arrays, on a device."""
    for samples in real_session().watch_devices(0.1, max_samples=1):
        for one in samples:
            if one.device in (described.name, f"devices/{described.name}"):
                return one.array_bytes, max(one.arena_bytes, one.array_bytes)
    return 0, 0


def compute_capability(described: _Described) -> tuple:
    """(major, minor); a CPU device compiles kernels as for 8.0, the value of __CUDA_ARCH__ there."""
    match = re.search(r"(\d+)(\d)", described.target) if described.kind == "cuda" else None
    return (int(match[1]), int(match[2])) if match else (8, 0)


@functools.total_ordering
class Place:
    """The device numbered `id`. As a context, and after `use`, operations of the session run on it."""

    def __init__(self, id: Optional[int] = None):  # noqa: A002
        self.id = current_id() if id is None else int(id)
        self._before: list = []

    @functools.cached_property
    def described(self) -> _Described:
        """The device as `stride.devices` lists it.

        Example
            >>> from stride import cuda
            >>> cuda.get_current_device().described.kind
            'cpu'
        """
        found = devices()
        if not 0 <= self.id < len(found):
            raise _errors.NotFound(f"there is no device {self.id}: the daemon has {len(found)}")
        return found[self.id]

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    def __eq__(self, other) -> bool:
        return isinstance(other, Place) and self.id == other.id

    def __lt__(self, other) -> bool:
        return self.id < other.id if isinstance(other, Place) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __int__(self) -> int:
        return self.id

    def use(self) -> "Place":
        """Makes operations of the session run on the device from here on.

        Returns
            The device.
        Raises
            NotFound for a number that the daemon does not have.
        Example
            >>> from stride import cuda
            >>> cuda.get_current_device().use().id
            0
        """
        session, name = real_session(), _session._device_name(self.described.name)
        # A session whose daemon has one device runs everything there anyway, and records less when it need not say so.
        session.device = name if len(session.devices()) > 1 else ""
        return self

    def __enter__(self) -> "Place":
        self._before.append(real_session().device)
        return self.use()

    def __exit__(self, *_) -> None:
        real_session().device = self._before.pop()

    def synchronize(self) -> None:
        """Waits until everything recorded in the session has been computed.

        Returns
            None.
        Raises
            The first error of a launch that never ran, or of a kernel that faulted.
        Example
            >>> from stride import cuda
            >>> cuda.get_current_device().synchronize()
        """
        synchronize()


def current_id() -> int:
    """The number of the device that the session runs on; 0 where the daemon chooses."""
    device = real_session().device
    names = [_session._device_name(one.name) for one in devices()] if device else []
    return names.index(device) if device in names else 0


class DeviceName(str):
    """The name of an array's device, with what CuPy's devices have."""

    @property
    def id(self) -> int:  # noqa: A003
        """The number of the device among those of its kind; 0 where the daemon chooses."""
        number = self.rpartition(":")[2]
        return int(number) if number.isdigit() else 0

    def __enter__(self) -> Place:
        place = Place(self.id)
        self._place = place
        return place.__enter__()

    def __exit__(self, *_) -> None:
        self._place.__exit__()

    def synchronize(self) -> None:
        """Waits until everything recorded in the session has been computed."""
        synchronize()


# --- streams and events ---


class Stream:
    """A name for the session, whose operations run in order. Arguments of CuPy's and Numba's (`null`, `non_blocking`,
    `ptds`, `priority`) are accepted."""

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: int = 0):
        self.is_null, self.non_blocking, self.ptds, self.priority = null, non_blocking, ptds, priority
        self.ptr = self.handle = 0
        self._outer: list = []

    def __repr__(self) -> str:
        return "<stride stream: the session's operations, in order>"

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other) -> bool:
        return isinstance(other, Stream) and (self is other or self.is_null and other.is_null)

    def __hash__(self) -> int:
        return hash(0 if self.is_null else id(self))

    def __enter__(self) -> "Stream":
        self._outer.append(_current[-1])
        _current.append(self)
        return self

    def __exit__(self, *_) -> None:
        _current.pop()
        self._outer.pop()

    def use(self) -> "Stream":
        """Makes it what `get_current_stream` returns.

        Returns
            The stream.
        Example
            >>> import stride.cupy as cp
            >>> before = cp.cuda.get_current_stream()
            >>> cp.cuda.Stream().use() == cp.cuda.get_current_stream()
            True
            >>> _ = before.use()
        """
        _current[-1] = self
        return self

    def synchronize(self) -> None:
        """Waits until everything recorded in the session has been computed.

        Returns
            None.
        Raises
            The first error of a launch that never ran, or of a kernel that faulted.
        Example
            >>> from stride import cuda
            >>> cuda.stream().synchronize()
        """
        synchronize()

    @property
    def done(self) -> bool:
        """True, once everything recorded has been computed, which is waited for.

        Example
            >>> from stride import cuda
            >>> cuda.stream().done
            True
        """
        synchronize()
        return True

    query = done

    def record(self, event: Optional["Event"] = None) -> "Event":
        """Records an event, a new one where none is given.

        Parameters
            event: an event, or None for a new one.
        Returns
            The event.
        Example
            >>> from stride import cuda
            >>> cuda.stream().record().query()
            True
        """
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: "Event") -> None:
        """Does nothing: what was recorded before runs before.

        Parameters
            event: an event.
        Returns
            None.
        Example
            >>> from stride import cuda
            >>> cuda.stream().wait_event(cuda.event())
        """

    def wait(self, event: "Event") -> None:
        """Does nothing: what was recorded before runs before.

        Parameters
            event: an event.
        Returns
            None.
        Example
            >>> from stride import cuda
            >>> cuda.stream().wait(cuda.event())
        """

    def add_callback(self, callback: Callable, arg=None) -> None:
        """Calls `callback(stream, status, arg)` once everything recorded has been computed, which is waited for.

        Parameters
            callback: a function of stream, status and `arg`.
            arg: any object.
        Returns
            None.
        Example
            >>> from stride import cuda
            >>> cuda.stream().add_callback(lambda stream, status, arg: print(status, arg), "end")
            0 end
        """
        synchronize()
        callback(self, 0, arg)

    def launch_host_func(self, callback: Callable, arg=None) -> None:
        """Calls `callback(arg)` once everything recorded has been computed, which is waited for.

        Parameters
            callback: a function of `arg`.
            arg: any object.
        Returns
            None.
        Example
            >>> from stride import cuda
            >>> cuda.stream().launch_host_func(print, "end")
            end
        """
        synchronize()
        callback(arg)

    def auto_synchronize(self):
        """A context that waits at its end until everything recorded has been computed.

        Returns
            A context, which gives the stream.
        Example
            >>> from stride import cuda
            >>> with cuda.stream().auto_synchronize():
            ...     x = st.ones(2) + 1
            ...
        """
        return _Synchronizing(self)

    def async_done(self):
        """An asyncio future that is resolved once everything recorded has been computed.

        Returns
            A future.
        Example
            >>> import asyncio
            >>> from stride import cuda
            >>> async def main():
            ...     await cuda.stream().async_done()
            ...
            >>> asyncio.run(main())
        """
        import asyncio

        return asyncio.get_running_loop().run_in_executor(None, real_session().synchronize)

    def begin_capture(self, mode=None):
        """Refused: use stride.jit, which records a function's operations once and replays them.

        Parameters
            mode: accepted.
        Returns
            Nothing: it raises.
        Raises
            Unimplemented.
        Example
            >>> from stride import cuda
            >>> try:
            ...     cuda.stream().begin_capture()
            ... except st.Unimplemented:
            ...     print("refused")
            ...
            refused
        """
        refused(
            "Stream.begin_capture",
            "use stride.jit, which records a function's operations once and replays them as one program",
        )

    end_capture = begin_capture

    def is_capturing(self) -> bool:
        """False: streams are not captured.

        Returns
            A bool.
        Example
            >>> from stride import cuda
            >>> cuda.stream().is_capturing()
            False
        """
        return False


class _Synchronizing:
    def __init__(self, stream: Stream):
        self._stream = stream

    def __enter__(self) -> Stream:
        return self._stream

    def __exit__(self, kind, *_) -> None:
        if kind is None:
            synchronize()


null_stream = Stream(null=True)
_current: list = [null_stream]


def current_stream() -> Stream:
    """The innermost that was entered."""
    return _current[-1]


class Event:
    """A moment at which everything recorded before it had been computed. `record` waits for that moment, so that times
    are those of the work itself.

    Parameters
        block: accepted.
        disable_timing: accepted.
        interprocess: accepted.
        timing: accepted.
    Example
        >>> from stride import cuda
        >>> start, end = cuda.event(), cuda.event()
        >>> start.record()
        >>> end.record()
        >>> cuda.event_elapsed_time(start, end) >= 0
        True
    """

    def __init__(
        self, block: bool = False, disable_timing: bool = False, interprocess: bool = False, timing: bool = True
    ):
        self.disable_timing = disable_timing or not timing
        self.time: Optional[float] = None  # seconds of the host's clock

    def record(self, stream: Optional[Stream] = None) -> None:
        """Waits until everything recorded has been computed and keeps the time.

        Parameters
            stream: accepted: operations run in order whatever the stream.
        Returns
            None.
        Example
            >>> from stride import cuda
            >>> event = cuda.event()
            >>> event.record()
            >>> event.query()
            True
        """
        synchronize()
        self.time = time.perf_counter()

    def synchronize(self) -> None:
        """Waits for the event; `record` has waited already, so that nothing remains to do.

        Returns
            None.
        Example
            >>> from stride import cuda
            >>> event = cuda.event()
            >>> event.record()
            >>> event.synchronize()
        """

    def wait(self, stream: Optional[Stream] = None) -> None:
        """Does nothing: what was recorded before runs before.

        Parameters
            stream: accepted: operations run in order whatever the stream.
        Returns
            None.
        Example
            >>> from stride import cuda
            >>> event = cuda.event()
            >>> event.record()
            >>> event.wait()
        """

    @property
    def done(self) -> bool:
        """Whether it was recorded: then everything before it has been computed.

        Example
            >>> from stride import cuda
            >>> cuda.event().done
            False
        """
        return self.time is not None

    def query(self) -> bool:
        """Whether it was recorded: then everything before it has been computed.

        Returns
            A bool.
        Example
            >>> from stride import cuda
            >>> cuda.event().query()
            False
        """
        return self.done

    def elapsed_time(self, end: "Event") -> float:
        """Milliseconds from this event to `end`.

        Parameters
            end: a later event.
        Returns
            A float.
        Raises
            RuntimeError for an event that was not recorded.
        Example
            >>> from stride import cuda
            >>> start, end = cuda.event(), cuda.event()
            >>> start.record()
            >>> end.record()
            >>> start.elapsed_time(end) >= 0
            True
        """
        return elapsed_milliseconds(self, end)


def elapsed_milliseconds(start: Event, end: Event) -> float:
    """From one event to another, both recorded."""
    for name, one in (("start", start), ("end", end)):
        if one.time is None:
            raise ValueError(f"the {name} event was not recorded; call its record() first")
        if one.disable_timing:
            raise ValueError(f"the {name} event was made without timing")
    return (end.time - start.time) * 1e3  # type: ignore[operator]
