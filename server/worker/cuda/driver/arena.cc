#include "server/worker/cuda/driver/arena.h"

#include "absl/cleanup/cleanup.h"
#include "server/worker/cuda/driver/cuda_status.h"

namespace stride::cuda {

CUmemAllocationProp ArenaProperties(CUdevice device) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

ArenaMapping& ArenaMapping::operator=(ArenaMapping&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(address_, other.address_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  std::swap(host_, other.host_);
  std::swap(pinned_, other.pinned_);
  return *this;
}

ArenaMapping::~ArenaMapping() {
  if (driver_ == nullptr) return;
  if (mapped_) driver_->cuMemUnmap(address_, size_);
  driver_->cuMemAddressFree(address_, size_);
}

absl::StatusOr<ArenaMapping::Created> ArenaMapping::Create(const Driver& driver, CUdevice device,
                                                           uint64_t size) {
  const CUmemAllocationProp properties = ArenaProperties(device);
  CUmemGenericAllocationHandle handle = 0;
  STRIDE_CUDA_RETURN(driver.cuMemCreate(&handle, size, &properties, 0), "making an arena");
  absl::Cleanup release = [&] { driver.cuMemRelease(handle); };
  int fd = -1;
  STRIDE_CUDA_RETURN(
      driver.cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
      "exporting an arena");
  Created created;
  created.fd.Reset(fd);
  absl::StatusOr<ArenaMapping> mapping = Map(driver, device, size, handle);
  if (!mapping.ok()) return mapping.status();
  created.mapping = *std::move(mapping);
  return created;
}

absl::StatusOr<ArenaMapping> ArenaMapping::Import(const Driver& driver, CUdevice device,
                                                  uint64_t size, const UniqueFd& fd) {
  CUmemGenericAllocationHandle handle = 0;
  STRIDE_CUDA_RETURN(driver.cuMemImportFromShareableHandle(
                         &handle, reinterpret_cast<void*>(static_cast<uintptr_t>(fd.get())),
                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                     "importing an arena");
  absl::Cleanup release = [&] { driver.cuMemRelease(handle); };
  return Map(driver, device, size, handle);
}

absl::StatusOr<ArenaMapping> ArenaMapping::OfHostMemory(const Driver& driver, uint64_t size,
                                                        const UniqueFd& fd) {
  if (absl::Status s = CheckMemoryFile(fd.get(), size); !s.ok()) return s;
  ArenaMapping mapping;
  absl::StatusOr<MemoryMap> host = MemoryMap::Map(fd.get(), size, /*writable=*/true);
  if (!host.ok()) return host.status();
  mapping.host_ = *std::move(host);
  absl::StatusOr<PinnedRegion> pinned = PinnedRegion::Register(driver, mapping.host_.data(), size);
  if (!pinned.ok()) return pinned.status();
  mapping.pinned_ = *std::move(pinned);
  mapping.address_ = mapping.pinned_.device_address();
  mapping.size_ = size;
  return mapping;
}

absl::StatusOr<ArenaMapping> ArenaMapping::Map(const Driver& driver, CUdevice device, uint64_t size,
                                               CUmemGenericAllocationHandle handle) {
  ArenaMapping mapping;
  STRIDE_CUDA_RETURN(driver.cuMemAddressReserve(&mapping.address_, size, 0, 0, 0),
                     "reserving addresses for an arena");
  mapping.driver_ = &driver;
  mapping.size_ = size;
  // Fails when the descriptor's memory has another size, so that a wrong size cannot reach the
  // bounds checks.
  STRIDE_CUDA_RETURN(driver.cuMemMap(mapping.address_, size, 0, handle, 0), "mapping an arena");
  mapping.mapped_ = true;
  CUmemAccessDesc access = {};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  STRIDE_CUDA_RETURN(driver.cuMemSetAccess(mapping.address_, size, &access, 1),
                     "opening an arena for access");
  return mapping;
}

}  // namespace stride::cuda
