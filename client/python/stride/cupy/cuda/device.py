"""Devices."""

from typing import Dict, Tuple

from stride import _execution
from stride._execution import Place, refused

__all__ = ["Device", "get_compute_capability", "get_device_id"]


class Device(Place):
    """The daemon's device numbered `device` (default: the current one). `with Device(1): ...` runs operations on it,
    `use()` from here on.

    Parameters
        device: the device's number, or a Device.
    Raises
        NotFound at the first use for a number that the daemon does not have.
    Example
        >>> import stride.cupy as cp
        >>> with cp.cuda.Device(0):
        ...     x = cp.arange(3)
        ...
        >>> x.tolist()
        [0, 1, 2]
    """

    def __init__(self, device=None):
        super().__init__(device.id if isinstance(device, Place) else device)

    @property
    def compute_capability(self) -> str:
        """The compute capability, such as "90"; for a CPU device "80", as which its kernels are compiled.

        Example
            >>> import stride.cupy as cp
            >>> len(cp.cuda.Device(0).compute_capability)
            2
        """
        return "".join(map(str, _execution.compute_capability(self.described)))

    @property
    def mem_info(self) -> Tuple[int, int]:
        """Free bytes and all bytes.

        Example
            >>> import stride.cupy as cp
            >>> free, total = cp.cuda.Device(0).mem_info
            >>> free <= total
            True
        """
        return _execution.memory_info(self.described)

    @property
    def pci_bus_id(self) -> str:
        """The PCI bus id of a GPU; empty for a CPU device.

        Example
            >>> import stride.cupy as cp
            >>> isinstance(cp.cuda.Device(0).pci_bus_id, str)
            True
        """
        return self.described.pci_bus_id

    @property
    def attributes(self) -> Dict[str, int]:
        """The attributes that the daemon knows, by the runtime's names.

        Example
            >>> import stride.cupy as cp
            >>> cp.cuda.Device(0).attributes["WarpSize"]
            32
        """
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
        """Refused: use cp.matmul and cp.linalg.

        Example
            >>> import stride.cupy as cp
            >>> try:
            ...     cp.cuda.Device(0).cublas_handle
            ... except st.Unimplemented:
            ...     print("refused")
            ...
            refused
        """
        refused("Device.cublas_handle", "libraries are the daemon's; use cp.matmul and cp.linalg")

    cusolver_handle = cusparse_handle = cublas_handle

    @classmethod
    def from_pci_bus_id(cls, pci_bus_id: str) -> "Device":
        """The device with this PCI bus id.

        Parameters
            pci_bus_id: the id, such as `0000:01:00.0`.
        Returns
            A Device.
        Raises
            ValueError for an id that no device has.
        Example
            >>> import stride.cupy as cp
            >>> try:
            ...     cp.cuda.Device.from_pci_bus_id("none")
            ... except ValueError:
            ...     print("no such device")
            ...
            no such device
        """
        for i, one in enumerate(_execution.devices()):
            if one.pci_bus_id and one.pci_bus_id.lower() == pci_bus_id.lower():
                return cls(i)
        raise ValueError(f"no device of the daemon has the PCI bus id {pci_bus_id}")


def get_device_id() -> int:
    """The number of the current device.

    Returns
        An int.
    Example
        >>> import stride.cupy as cp
        >>> cp.cuda.device.get_device_id()
        0
    """
    return _execution.current_id()


def get_compute_capability() -> str:
    """The compute capability of the current device.

    Returns
        A str.
    Example
        >>> import stride.cupy as cp
        >>> len(cp.cuda.device.get_compute_capability())
        2
    """
    return Device().compute_capability
