#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/wire/plan.pb.h"
#include "server/worker/cuda/driver/arena.h"

namespace stride::cuda {

// The mapped arenas, by the daemon's numbers. All device addresses of operands come from here, so
// that all are checked. Records the latest use of each arena. Not thread-safe: used by the command
// loop.
class ArenaTable {
 public:
  absl::Status Add(uint64_t arena, ArenaMapping mapping);
  // The device must have finished its use of the arena.
  absl::Status Remove(uint64_t arena);
  // Later lookups count as uses by the work with this mark in this lane (CompletionPoller::Lane).
  void BeginUse(int lane, uint32_t mark) {
    lane_ = lane;
    mark_ = mark;
  }
  // The last mark in each lane that used the arena; zeros if none did.
  static constexpr int kNumLanes = 5;
  std::array<uint32_t, kNumLanes> LastUse(uint64_t arena) const;
  bool Contains(uint64_t arena) const { return arenas_.count(arena) != 0; }

  // The address of [offset, offset + size).
  absl::StatusOr<CUdeviceptr> Range(uint64_t arena, uint64_t offset, uint64_t size) const;
  // The address of the operand's first element. All elements over `extents` must lie within the
  // arena.
  absl::StatusOr<CUdeviceptr> Address(const wire::Operand& operand,
                                      absl::Span<const int64_t> extents) const;

 private:
  struct Entry {
    ArenaMapping mapping;
    mutable std::array<uint32_t, kNumLanes> last_use{};
  };
  absl::StatusOr<const ArenaMapping*> Find(uint64_t arena) const;

  std::unordered_map<uint64_t, Entry> arenas_;
  int lane_ = 0;
  uint32_t mark_ = 0;
};

}  // namespace stride::cuda
