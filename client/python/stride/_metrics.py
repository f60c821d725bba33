"""Devices and their readings, as plain values."""

from dataclasses import dataclass, fields
from typing import Optional


@dataclass(frozen=True)
class Device:
    """A device of the daemon, as `stride.devices` lists it.

    Parameters
        name: the name by which sessions select it, such as `cuda:0`.
        kind: `cuda` or `cpu`.
        model: the maker's name of the device.
        index: its number among the devices of its kind.
        serving: whether operations run there.
        state: the state's name.
        state_reason: why the device does not serve; else empty.
        memory_total_bytes: the bytes of its memory.
        num_compute_units: multiprocessors or threads.
        target: what kernels are compiled for.
        pci_bus_id: the PCI bus id of a GPU.
        driver_version: the driver's version.
    Example
        >>> st.devices()[0].kind in ("cpu", "cuda")
        True
    """

    name: str
    kind: str
    model: str
    index: int
    serving: bool
    state: str  # SERVING, STARTING (the daemon has just started and tries it; work waits) or NOT_SERVING
    state_reason: str
    memory_total_bytes: int
    num_compute_units: int
    target: str
    pci_bus_id: str
    driver_version: str

    @classmethod
    def from_proto(cls, device) -> "Device":
        """The device that a message of the daemon describes.

        Parameters
            device: a stride.v1 message.
        Returns
            A Device.
        Example
            >>> from stride.v1 import device_service_pb2
            >>> st.Device.from_proto(device_service_pb2.Device(name="devices/cpu:0")).serving
            False
        """
        state = (
            device.State.Name(device.state).replace("STATE_", "")
            if device.state in device.State.values()
            else "UNSPECIFIED"
        )
        return cls(serving=device.state == device.STATE_SERVING, state=state,
                   **{f.name: getattr(device, f.name) for f in fields(cls) if f.name not in ("serving", "state")})


@dataclass(frozen=True)
class DeviceSample:
    """One device at one moment (`time`: seconds since 1970). A reading that the device does not support is None.

    Parameters
        device: the device's name.
        time: seconds since 1970.
        utilization_ratio: the part of the time that kernels ran.
        memory_utilization_ratio: the part of the time that memory was read or written.
        memory_used_bytes: bytes in use by all programs.
        memory_total_bytes: the bytes of its memory.
        temperature_celsius: the temperature.
        power_watts: the power drawn.
        power_limit_watts: the most power that it may draw.
        sm_clock_hertz: the multiprocessors' clock.
        memory_clock_hertz: the memory's clock.
        arena_bytes: bytes that the service has taken for arrays.
        array_bytes: bytes of arrays.
        queue_depth: commands that wait.
        queue_seconds: seconds that they are expected to take.
        busy_seconds: seconds that the device has computed.
        jobs_succeeded: jobs that ended well.
        jobs_failed: jobs that failed.
        upload_bytes: bytes that came from clients.
        download_bytes: bytes that went to clients.
        num_workers: processes that serve the device.
        worker_restarts: how often such a process was started again.
    Example
        >>> next(iter(st.current_session().watch_devices(max_samples=1)))[0].array_bytes >= 0
        True
    """

    device: str
    time: float
    utilization_ratio: Optional[float]
    memory_utilization_ratio: Optional[float]
    memory_used_bytes: Optional[int]
    memory_total_bytes: Optional[int]
    temperature_celsius: Optional[float]
    power_watts: Optional[float]
    power_limit_watts: Optional[float]
    sm_clock_hertz: Optional[int]
    memory_clock_hertz: Optional[int]
    arena_bytes: int
    array_bytes: int
    queue_depth: int
    queue_seconds: float
    busy_seconds: float
    jobs_succeeded: int
    jobs_failed: int
    upload_bytes: int
    download_bytes: int
    num_workers: int
    worker_restarts: int

    @classmethod
    def from_proto(cls, sample) -> "DeviceSample":
        """The sample that a message of the daemon describes.

        Parameters
            sample: a stride.v1 message.
        Returns
            A DeviceSample.
        Example
            >>> from stride.v1 import device_service_pb2
            >>> st.DeviceSample.from_proto(device_service_pb2.DeviceSample(device="devices/cpu:0")).queue_depth
            0
        """
        values = {}
        for field in fields(cls):
            if field.name == "time":
                values["time"] = sample.time.ToNanoseconds() * 1e-9
            elif field.type == Optional[float] or field.type == Optional[int]:
                values[field.name] = getattr(sample, field.name) if sample.HasField(field.name) else None
            else:
                values[field.name] = getattr(sample, field.name)
        return cls(**values)
