"""Devices, contexts, streams and events of Numba's `cuda`."""

import contextlib
from typing import Iterator, List

from stride import _errors, _execution
from stride._execution import Event, Place, Stream, null_stream, refused


class Device(Place):
    """A device, numbered as `gpus` has them."""

    @property
    def name(self) -> bytes:
        """The model."""
        return self.described.model.encode()

    @property
    def compute_capability(self) -> tuple:
        """(major, minor); of a CPU device (8, 0), as its kernels are compiled."""
        return _execution.compute_capability(self.described)

    cc = compute_capability

    @property
    def uuid(self) -> str:
        """The name that the daemon has for it."""
        return self.described.name

    MAX_THREADS_PER_BLOCK = MAX_BLOCK_DIM_X = MAX_BLOCK_DIM_Y = 1024
    MAX_BLOCK_DIM_Z = 64
    MAX_GRID_DIM_X, MAX_GRID_DIM_Y, MAX_GRID_DIM_Z = 2**31 - 1, 65535, 65535
    MAX_SHARED_MEMORY_PER_BLOCK = 48 << 10
    WARP_SIZE = 32

    @property
    def MULTIPROCESSOR_COUNT(self) -> int:  # noqa: N802
        """Multiprocessors of a GPU, processors of a CPU device."""
        return self.described.num_compute_units

    def reset(self) -> None:
        """Does nothing but wait: the device is shared, and the session's arrays stay."""
        _execution.synchronize()


class Devices:
    """A sequence of the devices; each is a context that runs operations on it.

    Example
        >>> from stride import cuda
        >>> len(cuda.gpus) >= 1
        True
    """

    def __len__(self) -> int:
        return len(_execution.devices())

    def __getitem__(self, index: int) -> Device:
        if not -len(self) <= index < len(self):
            raise IndexError(f"there is no device {index}: the daemon has {len(self)}")
        return Device(index % len(self))

    def __iter__(self) -> Iterator[Device]:
        return (Device(i) for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<Managed Device {', '.join(str(one.id) for one in self)}>"

    @property
    def lst(self) -> List[Device]:
        """A list of all devices.

        Example
            >>> from stride import cuda
            >>> cuda.gpus.lst[0].id
            0
        """
        return list(self)

    @property
    def current(self) -> Device:
        """The device that operations run on.

        Example
            >>> from stride import cuda
            >>> cuda.gpus.current.id
            0
        """
        return get_current_device()


gpus = Devices()


def list_devices() -> Devices:
    """The devices, as `gpus`.

    Returns
        A sequence of Device.
    Example
        >>> from stride import cuda
        >>> len(cuda.list_devices()) >= 1
        True
    """
    return gpus


def get_num_devices() -> int:
    """The number of devices.

    Returns
        The length of `gpus`.
    Example
        >>> from stride import cuda
        >>> cuda.get_num_devices() == len(cuda.gpus)
        True
    """
    return len(gpus)


def is_available() -> bool:
    """Whether a daemon with a serving device can be reached. A CPU device runs kernels too.

    Returns
        A bool.
    Example
        >>> from stride import cuda
        >>> cuda.is_available()
        True
    """
    try:
        return any(one.serving or one.state == "STARTING" for one in _execution.devices())
    except _errors.StrideError:
        return False


def is_supported_version() -> bool:
    """True: the daemon includes it.

    Returns
        A bool.
    Example
        >>> from stride import cuda
        >>> cuda.is_supported_version()
        True
    """
    return True


def is_float16_supported() -> bool:
    """True: memory may be of float16, with which kernels compute in float32.

    Returns
        A bool.
    Example
        >>> from stride import cuda
        >>> cuda.is_float16_supported()
        True
    """
    return True


def detect() -> bool:
    """Prints the devices.

    Returns
        Whether there is a device.
    Example
        >>> import contextlib, io
        >>> from stride import cuda
        >>> with contextlib.redirect_stdout(io.StringIO()):
        ...     found = cuda.detect()
        ...
        >>> found
        True
    """
    found = _execution.devices()
    print(f"Found {len(found)} CUDA devices")
    for i, one in enumerate(found):
        major, minor = _execution.compute_capability(one)
        print(f"id {i}    {one.model!r:>40}    [{'SUPPORTED' if one.serving else one.state}]")
        print(f"{'Compute Capability:':>45} {major}.{minor}\n{'Device:':>45} {one.name}")
    print(f"Summary:\n\t{len(found)}/{len(found)} devices are supported")
    return bool(found)


def get_current_device() -> Device:
    """The device that operations run on.

    Returns
        A Device.
    Example
        >>> from stride import cuda
        >>> cuda.get_current_device().id
        0
    """
    return Device()


def select_device(device_id: int) -> "Context":
    """Makes operations of the session run on a device from here on.

    Parameters
        device_id: the device's number.
    Returns
        A Context.
    Raises
        NotFound for a number that the daemon does not have.
    Example
        >>> from stride import cuda
        >>> cuda.select_device(0) is not None
        True
    """
    return Context(Device(device_id).use())  # type: ignore[arg-type]


class Context:
    """A device's context, with the methods that Numba's programs call."""

    def __init__(self, device: Device):
        self.device = device

    def get_memory_info(self):
        """Free and all bytes of the device."""
        return MemoryInfo(*_execution.memory_info(self.device.described))

    def synchronize(self) -> None:
        """Waits until everything recorded has been computed."""
        _execution.synchronize()

    def reset(self) -> None:
        """Does nothing but wait."""
        _execution.synchronize()


class MemoryInfo(tuple):
    """Two numbers of bytes, `free` and `total`."""

    def __new__(cls, free: int, total: int):
        return super().__new__(cls, (free, total))

    @property
    def free(self) -> int:
        """Bytes that nothing uses."""
        return self[0]

    @property
    def total(self) -> int:
        """All bytes."""
        return self[1]


def current_context(devnum=None) -> Context:
    """The context of the current device, or of the one numbered `devnum`.

    Parameters
        devnum: the device's number; None for the current one.
    Returns
        A Context.
    Example
        >>> from stride import cuda
        >>> cuda.current_context() is not None
        True
    """
    return Context(Device(devnum))


def require_context(function):
    """Returns the function: a session connects by itself.

    Parameters
        function: a function.
    Returns
        The function.
    Example
        >>> from stride import cuda
        >>> cuda.require_context(abs) is abs
        True
    """
    return function


def close() -> None:
    """Waits until everything recorded has been computed. The session's arrays stay; `stride.current_session().close()`
    ends it.

    Returns
        None.
    Example
        >>> from stride import cuda
        >>> cuda.close()
    """
    _execution.synchronize()


def synchronize(session=None) -> None:
    """Waits until everything recorded has been computed.

    Parameters
        session: the session; None for the current one.
    Returns
        None.
    Raises
        The first error of a launch that never ran, or of a kernel that faulted.
    Example
        >>> from stride import cuda
        >>> cuda.synchronize()
    """
    session.synchronize() if session is not None else _execution.synchronize()


def stream() -> Stream:
    """A stream: a name for the session, whose operations run in order.

    Returns
        A Stream.
    Example
        >>> from stride import cuda
        >>> with cuda.stream().auto_synchronize():
        ...     x = st.ones(2) + 1
        ...
    """
    return Stream()


def default_stream() -> Stream:
    """The stream of launches that name none.

    Returns
        A Stream.
    Example
        >>> from stride import cuda
        >>> cuda.default_stream().done
        True
    """
    return null_stream


legacy_default_stream = per_thread_default_stream = default_stream


def external_stream(ptr):
    """Refused: a stream of another library has no meaning to the service.

    Parameters
        ptr: accepted.
    Returns
        Nothing: it raises.
    Raises
        Unimplemented.
    Example
        >>> from stride import cuda
        >>> try:
        ...     cuda.external_stream(0)
        ... except st.Unimplemented:
        ...     print("refused")
        ...
        refused
    """
    refused(
        "cuda.external_stream",
        "the devices are the daemon's, where no stream of this process is known; use cuda.stream()",
    )


def event(timing: bool = True) -> Event:
    """A moment in the session's work; `record` waits for it.

    Parameters
        timing: accepted.
    Returns
        An Event.
    Example
        >>> from stride import cuda
        >>> event = cuda.event()
        >>> event.record()
    """
    return Event(timing=timing)


def event_elapsed_time(start: Event, end: Event) -> float:
    """Milliseconds between two events.

    Parameters
        start: a recorded event.
        end: a later one.
    Returns
        A float.
    Raises
        RuntimeError for an event that was not recorded.
    Example
        >>> from stride import cuda
        >>> start, end = cuda.event(), cuda.event()
        >>> start.record()
        >>> end.record()
        >>> cuda.event_elapsed_time(start, end) >= 0
        True
    """
    return _execution.elapsed_milliseconds(start, end)


@contextlib.contextmanager
def defer_cleanup():
    """A context in which Numba frees no memory. It does nothing: memory is the daemon's.

    Returns
        A context.
    Example
        >>> from stride import cuda
        >>> with cuda.defer_cleanup():
        ...     pass
        ...
    """
    yield


def profile_start() -> None:
    """Does nothing: profile the daemon instead.

    Returns
        None.
    Example
        >>> from stride import cuda
        >>> cuda.profile_start()
    """


def profile_stop() -> None:
    """Does nothing: profile the daemon instead.

    Returns
        None.
    Example
        >>> from stride import cuda
        >>> cuda.profile_stop()
    """


@contextlib.contextmanager
def profiling():
    """A context that CUDA's profiler records. It does nothing: profile the daemon instead.

    Returns
        A context.
    Example
        >>> from stride import cuda
        >>> with cuda.profiling():
        ...     pass
        ...
    """
    yield
