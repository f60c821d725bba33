"""The CUDA runtime's functions that have a meaning to a client of a daemon."""

from typing import Any, Dict, Tuple

from stride import _execution
from stride._errors import StrideError as CUDARuntimeError
from stride._execution import Place

__all__ = [
    "CUDARuntimeError",
    "deviceCanAccessPeer",
    "deviceEnablePeerAccess",
    "deviceGetAttribute",
    "deviceGetPCIBusId",
    "deviceSynchronize",
    "driverGetVersion",
    "eventElapsedTime",
    "eventSynchronize",
    "getDevice",
    "getDeviceCount",
    "getDeviceProperties",
    "memGetInfo",
    "runtimeGetVersion",
    "setDevice",
    "streamSynchronize",
]

is_hip = False
memcpyHostToHost, memcpyHostToDevice, memcpyDeviceToHost, memcpyDeviceToDevice, memcpyDefault = range(5)  # noqa: N816
cudaDevAttrMaxThreadsPerBlock, cudaDevAttrWarpSize, cudaDevAttrMultiProcessorCount = 1, 10, 16  # noqa: N816
cudaDevAttrComputeCapabilityMajor, cudaDevAttrComputeCapabilityMinor = 75, 76  # noqa: N816
cudaDevAttrCooperativeLaunch = 95  # noqa: N816
cudaChannelFormatKindSigned, cudaChannelFormatKindUnsigned = 0, 1  # noqa: N816
cudaChannelFormatKindFloat, cudaChannelFormatKindNone = 2, 3  # noqa: N816
cudaResourceTypeArray, cudaResourceTypeMipmappedArray = 0, 1  # noqa: N816
cudaResourceTypeLinear, cudaResourceTypePitch2D = 2, 3  # noqa: N816
cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder = range(4)  # noqa: N816
cudaFilterModePoint, cudaFilterModeLinear = 0, 1  # noqa: N816
cudaReadModeElementType, cudaReadModeNormalizedFloat = 0, 1  # noqa: N816
cudaArrayDefault, cudaArrayLayered, cudaArraySurfaceLoadStore = 0, 1, 2  # noqa: N816
cudaArrayCubemap, cudaArrayTextureGather = 4, 8  # noqa: N816
# CUDART_VERSION of the compilers of both device kinds.
_RUNTIME_VERSION = 12000


def getDeviceCount() -> int:  # noqa: N802
    """How many GPUs the daemon has; where it has none, how many CPU devices.

    Returns
        An int.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.runtime.getDeviceCount() >= 1
        True
    """
    return len(_execution.devices())


def getDevice() -> int:  # noqa: N802
    """The number of the current device.

    Returns
        An int.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.runtime.getDevice()
        0
    """
    return _execution.current_id()


def setDevice(device: int) -> None:  # noqa: N802
    """Makes operations of the session run on a device from here on.

    Parameters
        device: the device's number.
    Returns
        None.
    Raises
        NotFound for a number that the daemon does not have.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.runtime.setDevice(0)
    """
    Place(device).use()


def deviceSynchronize() -> None:  # noqa: N802
    """Waits until everything recorded in the session has been computed.

    Returns
        None.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.runtime.deviceSynchronize()
    """
    _execution.synchronize()


def streamSynchronize(stream: Any = 0) -> None:  # noqa: N802
    """Waits until everything recorded in the session has been computed.

    Parameters
        stream: accepted: every stream is the session.
    Returns
        None.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.runtime.streamSynchronize()
    """
    _execution.synchronize()


def eventSynchronize(event: Any) -> None:  # noqa: N802
    """Waits for an event; `record` has waited already, so that nothing remains to do.

    Parameters
        event: an event.
    Returns
        None.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.runtime.eventSynchronize(cp.cuda.Event())
    """


def eventElapsedTime(start: Any, end: Any) -> float:  # noqa: N802
    """Milliseconds between two recorded events.

    Parameters
        start: a recorded event.
        end: a later one.
    Returns
        A float.
    Raises
        RuntimeError for an event that was not recorded.
    Example
        >>> import stride.cupy as cp
        >>> start, end = cp.cuda.Event(), cp.cuda.Event()
        >>> start.record()
        >>> end.record()
        >>> cp.cuda.runtime.eventElapsedTime(start, end) >= 0
        True
    """
    return _execution.elapsed_milliseconds(start, end)


def runtimeGetVersion() -> int:  # noqa: N802
    """12000: the version for which kernels are compiled.

    Returns
        An int.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.runtime.runtimeGetVersion()
        12000
    """
    return _RUNTIME_VERSION


def driverGetVersion() -> int:  # noqa: N802
    """12000: the driver itself is the daemon's; `Device.driver_version` of stride.devices() names it.

    Returns
        An int.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.runtime.driverGetVersion()
        12000
    """
    return _RUNTIME_VERSION


def memGetInfo() -> Tuple[int, int]:  # noqa: N802
    """Free bytes and all bytes of the current device.

    Returns
        A tuple of two int.
    Example
        >>> import stride.cupy as cp
        >>> free, total = cp.cuda.runtime.memGetInfo()
        >>> free <= total
        True
    """
    return _execution.memory_info(Place().described)


def deviceGetPCIBusId(device: int) -> str:  # noqa: N802
    """The PCI bus id of a GPU; empty for a CPU device.

    Parameters
        device: the device's number.
    Returns
        A str.
    Raises
        NotFound for a number that the daemon does not have.
    Example
        >>> import stride.cupy as cp
        >>> isinstance(cp.cuda.runtime.deviceGetPCIBusId(0), str)
        True
    """
    return Place(device).described.pci_bus_id


def deviceCanAccessPeer(device: int, peer: int) -> int:  # noqa: N802
    """1: the service moves arrays between its devices.

    Parameters
        device: the device's number.
        peer: the other device's number.
    Returns
        1.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.runtime.deviceCanAccessPeer(0, 0)
        1
    """
    return 1


def deviceEnablePeerAccess(peer: int) -> None:  # noqa: N802
    """Does nothing: the service moves arrays between its devices.

    Parameters
        peer: the other device's number.
    Returns
        None.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.runtime.deviceEnablePeerAccess(0)
    """


def getDeviceProperties(device: int) -> Dict[str, Any]:  # noqa: N802
    """The daemon's description of a device, by the runtime's names.

    Parameters
        device: the device's number.
    Returns
        A dict.
    Raises
        NotFound for a number that the daemon does not have.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.runtime.getDeviceProperties(0)["warpSize"]
        32
    """
    described = Place(device).described
    major, minor = _execution.compute_capability(described)
    return {
        "name": described.model.encode(),
        "totalGlobalMem": described.memory_total_bytes,
        "sharedMemPerBlock": 48 << 10,
        "regsPerBlock": 65536,
        "warpSize": 32,
        "maxThreadsPerBlock": 1024,
        "maxThreadsDim": (1024, 1024, 64),
        "maxGridSize": (2**31 - 1, 65535, 65535),
        "major": major,
        "minor": minor,
        "multiProcessorCount": described.num_compute_units,
        "totalConstMem": 64 << 10,
        "pciBusID": described.pci_bus_id,
        "integrated": int(described.kind == "cpu"),
        "concurrentKernels": 1,
        "cooperativeLaunch": 1,
    }


def deviceGetAttribute(attribute: int, device: int) -> int:  # noqa: N802
    """An attribute of a device: threads of a block, warp size, multiprocessors, compute capability, and
    whether the blocks of a grid can meet, which they can on every device.

    Parameters
        attribute: CUDA's number of the attribute.
        device: the device's number.
    Returns
        An int.
    Raises
        ValueError for an attribute that the daemon does not know.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.runtime.deviceGetAttribute(cp.cuda.runtime.cudaDevAttrWarpSize, 0)
        32
    """
    properties = getDeviceProperties(device)
    if attribute == cudaDevAttrCooperativeLaunch:
        return 1
    names = {
        1: "maxThreadsPerBlock",
        10: "warpSize",
        16: "multiProcessorCount",
        75: "major",
        76: "minor",
        8: "sharedMemPerBlock",
        12: "regsPerBlock",
    }
    if attribute not in names:
        raise ValueError(f"the attribute {attribute} is not known of a daemon's device")
    return properties[names[attribute]]


_REFUSED = (
    "malloc",
    "mallocManaged",
    "mallocAsync",
    "mallocArray",
    "free",
    "freeAsync",
    "hostAlloc",
    "hostRegister",
    "hostUnregister",
    "freeHost",
    "memcpy",
    "memcpyAsync",
    "memcpyPeer",
    "memset",
    "memsetAsync",
    "memPrefetchAsync",
    "memAdvise",
    "pointerGetAttributes",
    "streamCreate",
    "streamCreateWithFlags",
    "streamDestroy",
    "streamAddCallback",
    "launchHostFunc",
    "eventCreate",
    "eventDestroy",
    "eventRecord",
    "streamWaitEvent",
    "ipcGetMemHandle",
    "ipcOpenMemHandle",
    "createTextureObject",
    "createSurfaceObject",
    "profilerStart",
    "graphLaunch",
)


def __getattr__(name: str):
    if name in _REFUSED:
        raise AttributeError(
            f"cuda.runtime.{name} is not there: memory, streams and events are the daemon's; use arrays, cuda.Stream "
            f"and cuda.Event"
        )
    raise AttributeError(f"stride.cupy.cuda.runtime has no {name}")
