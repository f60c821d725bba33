#include "server/worker/cuda/device_list.h"

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/worker/cuda/device_links.h"
#include "server/worker/cuda/driver/arena.h"
#include "server/worker/cuda/driver/cuda_status.h"
#include "server/worker/cuda/driver/dynamic_library.h"

namespace stride::cuda {
namespace {

// PCIe 5 with 16 lanes moves 48-54 GB/s from pinned memory, PCIe 4 half; a first estimate only,
// replaced by measured transfers.
constexpr double kTransferRate = 25e9;
// Share of the peak rate that plain kernels reach (2.9-3.0 of 3.35 TB/s on an H100).
constexpr double kMemoryEfficiency = 0.87;

int Attribute(const Driver& driver, CUdevice device, CUdevice_attribute attribute) {
  int value = 0;
  driver.cuDeviceGetAttribute(&value, attribute, device);
  return value;
}

// "GPU-8e3a...": lower-case hexadecimal in groups of 8-4-4-4-12 digits, as the vendor's tools print
// it.
std::string DeviceId(const CUuuid& uuid) {
  std::string hex = absl::BytesToHexString(absl::string_view(uuid.bytes, sizeof(uuid.bytes)));
  return absl::StrCat("GPU-", hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                      hex.substr(16, 4), "-", hex.substr(20));
}

// The driver's own version, such as 580.159.04, which only NVML reports; without NVML the CUDA
// version that it supports.
std::string DriverVersion(const Driver& driver) {
  absl::StatusOr<DynamicLibrary> nvml = DynamicLibrary::Open("NVML", {"libnvidia-ml.so.1"});
  if (nvml.ok()) {
    auto init = reinterpret_cast<int (*)()>(nvml->Find("nvmlInit_v2"));
    auto shutdown = reinterpret_cast<int (*)()>(nvml->Find("nvmlShutdown"));
    auto version =
        reinterpret_cast<int (*)(char*, unsigned)>(nvml->Find("nvmlSystemGetDriverVersion"));
    char text[96] = {};
    if (init != nullptr && shutdown != nullptr && version != nullptr && init() == 0) {
      const bool known = version(text, sizeof(text) - 1) == 0;
      shutdown();
      if (known) return text;
    }
  }
  int number = 0;
  driver.cuDriverGetVersion(&number);
  return absl::StrCat("CUDA ", number / 1000, ".", number % 1000 / 10);
}

double MemoryRate(const Driver& driver, CUdevice device) {
  const double kilohertz = Attribute(driver, device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  const double bits = Attribute(driver, device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  return kMemoryEfficiency * 2 * kilohertz * 1e3 * bits / 8;
}

}  // namespace

absl::StatusOr<wire::DeviceDescription> DescribeDevice(const Driver& driver, int index) {
  CUdevice device = 0;
  STRIDE_CUDA_RETURN(driver.cuDeviceGet(&device, index), "opening a device");
  char name[256] = {};
  STRIDE_CUDA_RETURN(driver.cuDeviceGetName(name, sizeof(name) - 1, device),
                     "asking a device's name");
  CUuuid uuid = {};
  STRIDE_CUDA_RETURN(driver.cuDeviceGetUuid(&uuid, device), "asking a device's id");
  size_t memory = 0;
  STRIDE_CUDA_RETURN(driver.cuDeviceTotalMem(&memory, device), "asking a device's memory");
  char bus[32] = {};
  driver.cuDeviceGetPCIBusId(bus, sizeof(bus) - 1, device);
  const CUmemAllocationProp properties = ArenaProperties(device);
  size_t granularity = 0;
  STRIDE_CUDA_RETURN(driver.cuMemGetAllocationGranularity(&granularity, &properties,
                                                          CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                     "asking a device's allocation granularity");
  wire::DeviceDescription description;
  description.set_id(DeviceId(uuid));
  description.set_kind("cuda");
  description.set_model(name);
  description.set_index(index);
  description.set_target(absl::StrCat(
      "cuda:sm_", Attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
      Attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)));
  description.set_memory_bytes(static_cast<int64_t>(memory));
  description.set_num_compute_units(
      Attribute(driver, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  description.set_pci_bus_id(bus);
  description.set_host_memory(false);
  description.set_arena_granularity_bytes(static_cast<int64_t>(granularity));
  description.set_memory_bytes_per_second(MemoryRate(driver, device));
  description.set_transfer_bytes_per_second(kTransferRate);
  return description;
}

wire::DeviceList ListDevices() {
  wire::DeviceList list;
  absl::StatusOr<std::shared_ptr<const Driver>> driver = Driver::Load();
  if (!driver.ok()) {
    list.set_reason(std::string(driver.status().message()));
    return list;
  }
  int count = 0;
  if (CUresult result = (*driver)->cuDeviceGetCount(&count); result != CUDA_SUCCESS) {
    list.set_reason(std::string(ToStatus(result, "counting devices").message()));
    return list;
  }
  const std::string version = DriverVersion(**driver);
  for (int index = 0; index < count; ++index) {
    absl::StatusOr<wire::DeviceDescription> device = DescribeDevice(**driver, index);
    if (!device.ok()) {
      list.set_reason(absl::StrCat("device ", index, ": ", std::string(device.status().message())));
      continue;
    }
    device->set_driver_version(version);
    *list.add_devices() = *std::move(device);
  }
  if (count == 0) list.set_reason("no NVIDIA device");
  for (wire::Link& link : FindLinks(**driver, {list.devices().begin(), list.devices().end()}))
    *list.add_links() = std::move(link);
  return list;
}

}  // namespace stride::cuda
