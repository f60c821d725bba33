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

// How arena memory is asked for on `device`: pinned device memory that can be exported as a POSIX
// descriptor.
CUmemAllocationProp ArenaProperties(CUdevice device);

// Device memory behind a descriptor, mapped for this process. The mapping alone keeps the memory
// alive here; the memory itself lives as long as anyone holds its descriptor. Movable; the Driver
// must outlive it.
class ArenaMapping {
 public:
  ArenaMapping() = default;
  ArenaMapping(ArenaMapping&& other) noexcept { *this = std::move(other); }
  ArenaMapping& operator=(ArenaMapping&& other) noexcept;
  ~ArenaMapping();

  // Fresh memory: the driver hands out zeros. `size` is a multiple of the granularity.
  // RESOURCE_EXHAUSTED when there is none.
  struct Created;
  static absl::StatusOr<Created> Create(const Driver& driver, CUdevice device, uint64_t size);
  // Maps memory that this or another process made.
  static absl::StatusOr<ArenaMapping> Import(const Driver& driver, CUdevice device, uint64_t size,
                                             const UniqueFd& fd);

  // Host memory behind a sealed memfd, pinned: the device goes to it over its bus.
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
  // Of host memory; in this order, since it is pinned while it is mapped.
  MemoryMap host_;
  PinnedRegion pinned_;
};

struct ArenaMapping::Created {
  ArenaMapping mapping;
  UniqueFd fd;
};

}  // namespace stride::cuda
