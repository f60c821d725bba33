#pragma once

#include <cuda.h>

#include <cstdint>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/wire/plan.pb.h"
#include "server/worker/cuda/arena.h"

namespace stride::cuda {

// The arenas that are mapped, by the daemon's numbers. Every address that reaches the device is
// made here, so that none is made unchecked. Not thread-safe: the command loop's.
class ArenaTable {
 public:
  absl::Status Add(uint64_t arena, ArenaMapping mapping);
  // The device must have finished with it.
  absl::Status Remove(uint64_t arena);
  bool Contains(uint64_t arena) const { return arenas_.count(arena) != 0; }

  // The address of [offset, offset + size).
  absl::StatusOr<CUdeviceptr> Range(uint64_t arena, uint64_t offset, uint64_t size) const;
  // The address of the operand's first element, every element of which, over `extents`, is within
  // the arena.
  absl::StatusOr<CUdeviceptr> Address(const wire::Operand& operand,
                                      absl::Span<const int64_t> extents) const;

 private:
  absl::StatusOr<const ArenaMapping*> Find(uint64_t arena) const;

  std::unordered_map<uint64_t, ArenaMapping> arenas_;
};

}  // namespace stride::cuda
