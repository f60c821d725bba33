#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace stride::cuda {

// A compiled object's description of one kernel.
struct KernelInfo {
  struct Slot {
    uint32_t offset = 0, size = 0;  // within the parameters
    bool pointer = false;           // known to be a pointer
  };
  std::string symbol;
  std::vector<Slot> parameters;
  uint32_t max_threads = 0;  // __launch_bounds__, 0: none
  uint32_t static_shared_bytes = 0;
};

// A variable at namespace scope.
struct VariableInfo {
  std::string symbol;
  uint64_t size = 0;  // bytes
  bool constant = false;
};
absl::StatusOr<std::vector<VariableInfo>> ReadCubinVariables(std::string_view cubin);

// The kernels of a cubin, in the order of its symbol table. The bytes are not trusted:
// INVALID_ARGUMENT when they are malformed.
absl::StatusOr<std::vector<KernelInfo>> ReadCubin(std::string_view cubin);

}  // namespace stride::cuda
