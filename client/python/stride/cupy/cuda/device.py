"""Devices."""

from typing import Dict, Tuple

from stride import _execution
from stride._execution import Place, refused

__all__ = ["Device", "get_compute_capability", "get_device_id"]


class Device(Place):
    """The daemon's device numbered `device` (default: the current one). `with Device(1): ...` runs operations on it,
    `use()` from here on."""

    def __init__(self, device=None):
        super().__init__(device.id if isinstance(device, Place) else device)

    @property
    def compute_capability(self) -> str:
        """Such as "90"; of a CPU device "80", as its kernels are compiled."""
        return "".join(map(str, _execution.compute_capability(self.described)))

    @property
    def mem_info(self) -> Tuple[int, int]:
        """Free bytes and all bytes."""
        return _execution.memory_info(self.described)

    @property
    def pci_bus_id(self) -> str:
        """The PCI bus id of a GPU; empty for a CPU device."""
        return self.described.pci_bus_id

    @property
    def attributes(self) -> Dict[str, int]:
        """Those that the daemon knows, by the runtime's names."""
        major, minor = _execution.compute_capability(self.described)
        return {
            "MultiProcessorCount": self.described.num_compute_units,
            "ComputeCapabilityMajor": major,
            "ComputeCapabilityMinor": minor,
            "WarpSize": 32,
            "MaxThreadsPerBlock": 1024,
            "MaxBlockDimX": 1024,
            "MaxBlockDimY": 1024,
            "MaxBlockDimZ": 64,
            "MaxGridDimX": 2**31 - 1,
            "MaxGridDimY": 65535,
            "MaxGridDimZ": 65535,
            "MaxSharedMemoryPerBlock": 48 << 10,
            "CooperativeLaunch": 1,
            "ConcurrentKernels": 1,
            "UnifiedAddressing": 0,
            "ManagedMemory": 0,
        }

    @property
    def cublas_handle(self):
        """Refused: use cp.matmul and cp.linalg."""
        refused("Device.cublas_handle", "libraries are the daemon's; use cp.matmul and cp.linalg")

    cusolver_handle = cusparse_handle = cublas_handle

    @classmethod
    def from_pci_bus_id(cls, pci_bus_id: str) -> "Device":
        """The device with this PCI bus id."""
        for i, one in enumerate(_execution.devices()):
            if one.pci_bus_id and one.pci_bus_id.lower() == pci_bus_id.lower():
                return cls(i)
        raise ValueError(f"no device of the daemon has the PCI bus id {pci_bus_id}")


def get_device_id() -> int:
    """The number of the current device."""
    return _execution.current_id()


def get_compute_capability() -> str:
    """The current device's."""
    return Device().compute_capability
