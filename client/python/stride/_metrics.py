"""Devices and their readings, as plain values."""

from dataclasses import dataclass, fields
from typing import Optional


@dataclass(frozen=True)
class Device:
    """A device of the daemon, as `stride.devices` lists it.

    Example
        >>> st.devices()[0].kind
        'cpu'
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
