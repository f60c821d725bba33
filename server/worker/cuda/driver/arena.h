#pragma once

#include <cuda.h>

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "server/base/memory_file.h"
#include "server/base/unique_fd.h"
#include "server/worker/cuda/driver/driver.h"
#include "server/worker/cuda/driver/handles.h"

namespace stride::cuda {

// Allocation properties of arena memory on `device`: pinned device memory that can be exported as a
// POSIX descriptor.
CUmemAllocationProp ArenaProperties(CUdevice device);

// Device memory with a descriptor, mapped into this process. The mapping pins the memory here; the
// memory lives as long as a process holds its descriptor. Movable; the Driver must outlive it.
class ArenaMapping {
 public:
  ArenaMapping() = default;
  ArenaMapping(ArenaMapping&& other) noexcept { *this = std::move(other); }
  ArenaMapping& operator=(ArenaMapping&& other) noexcept;
  ~ArenaMapping();

  // Creates memory, which the driver zeroes. `size` is a multiple of the granularity.
  // RESOURCE_EXHAUSTED when there is none.
  struct Created;
  static absl::StatusOr<Created> Create(const Driver& driver, CUdevice device, uint64_t size);
  // Maps memory that this or another process created.
  static absl::StatusOr<ArenaMapping> Import(const Driver& driver, CUdevice device, uint64_t size,
                                             const UniqueFd& fd);

  // Maps and pins host memory from a sealed memfd; the device accesses it over its bus.
  static absl::StatusOr<ArenaMapping> OfHostMemory(const Driver& driver, uint64_t size,
                                                   const UniqueFd& fd);

  CUdeviceptr address() const { return address_; }
  uint64_t size() const { return size_; }

 private:
  static absl::StatusOr<ArenaMapping> Map(const Driver& driver, CUdevice device, uint64_t size,
                                          CUmemGenericAllocationHandle handle);

  const Driver* driver_ = nullptr;
  CUdeviceptr address_ = 0;
  uint64_t size_ = 0;
  bool mapped_ = false;
  // Host memory, in this order, since it is unpinned before it is unmapped.
  MemoryMap host_;
  PinnedRegion pinned_;
};

struct ArenaMapping::Created {
  ArenaMapping mapping;
  UniqueFd fd;
};

}  // namespace stride::cuda
