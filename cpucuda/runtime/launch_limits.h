// Parameters and limits of a launch.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace stride::cpucuda {

struct Dim3 {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
};

struct LaunchConfig {
  Dim3 grid;
  Dim3 block;
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;  // all blocks run at once
};

// Properties of a compiled kernel that a launch needs (see CompiledKernel).
struct KernelEntry {
  std::string name;
  void* function = nullptr;  // Module::Symbol(CompiledKernel::symbol)
  uint32_t static_shared_bytes = 0;
  uint32_t max_threads_per_block = 1024;
  uint64_t private_bytes_per_thread = 0;
  bool per_thread = false;  // runs one thread, see fibers.h; else a whole block
};

inline constexpr uint32_t kMaxThreadsPerBlock = 1024;
inline constexpr uint32_t kMaxSharedBytes =
    228 * 1024;  // static and dynamic together, as the largest GPUs have
inline constexpr uint64_t kMaxPrivateBytes =
    512ull << 20;  // for one block; each thread of the pool may need as much

// Threads of all blocks of a cooperative launch together. Each thread keeps a stack, whose two
// mappings count against the system's limit for a process (65,530 by default).
inline constexpr uint32_t kMaxCooperativeThreads = 8192;

// The greatest number of blocks of this size in a cooperative launch.
uint64_t MaxCooperativeBlocks(const KernelEntry& kernel, const LaunchConfig& config);

// INVALID_ARGUMENT that names the limit; RESOURCE_EXHAUSTED for private memory.
absl::Status CheckLaunch(const KernelEntry& kernel, const LaunchConfig& config);

}  // namespace stride::cpucuda
