#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/wire/worker.pb.h"
#include "server/worker/cuda/driver/driver.h"
#include "server/worker/cuda/driver/handles.h"
#include "server/worker/cuda/driver/module_globals.h"

namespace stride::cuda {

// A kernel of a loaded module with its attributes from the driver.
struct Kernel {
  struct Slot {
    uint64_t offset = 0;  // within the parameters
    uint64_t size = 0;
  };
  CUfunction function = nullptr;
  std::string entry;
  std::vector<Slot> parameters;
  int max_threads = 0;  // per block
  int static_shared_bytes = 0;
  int dynamic_shared_limit = 0;  // the limit set for the function so far
  wire::KernelAttributes attributes;
};

// The kernels of one module, by the names in the compilation request. Not thread-safe.
class KernelModule {
 public:
  // `image` as for Module::Load. INVALID_ARGUMENT when the driver refuses it, or when its kernels
  // differ from `description`.
  static absl::StatusOr<KernelModule> Load(const Driver& driver, const void* image,
                                           const wire::ModuleDescription& description);

  // INVALID_ARGUMENT when there is no such kernel.
  absl::StatusOr<Kernel*> Find(std::string_view entry);
  wire::ModuleLoaded Attributes() const;

  ModuleGlobals& globals() { return globals_; }
  // Address of the module's GridBarrier; 0: it has none.
  CUdeviceptr grid_barrier() const { return grid_barrier_; }

 private:
  Module module_;
  ModuleGlobals globals_;
  CUdeviceptr grid_barrier_ = 0;
  absl::node_hash_map<std::string, Kernel> kernels_;
};

// Launch dimensions, validated by CheckGrid.
struct Grid {
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;  // all blocks run at once
};

// A device's limits for launches.
struct LaunchLimits {
  int grid[3] = {};
  int block[3] = {};
  int threads_per_block = 0;
  int shared_bytes_per_block = 0;  // with opt-in
  int num_multiprocessors = 0;
};
LaunchLimits ReadLaunchLimits(const Driver& driver, CUdevice device);

// INVALID_ARGUMENT that names the limit and the requested value.
absl::Status CheckGrid(const Kernel& kernel, const Grid& grid, const LaunchLimits& limits);

// Launches with one pointer for each parameter. The caller has checked the grid and the parameters'
// number and sizes.
absl::Status Launch(const Driver& driver, CUstream stream, Kernel& kernel, const Grid& grid,
                    absl::Span<void*> parameters);

// INVALID_ARGUMENT, with the largest number of blocks, unless all blocks of a cooperative launch
// fit on the device at once. The caller has checked the grid.
absl::Status CheckFits(const Driver& driver, Kernel& kernel, const Grid& grid,
                       const LaunchLimits& limits);

}  // namespace stride::cuda
