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

// The arenas that are mapped, by the daemon's numbers. Every address that reaches the device is
// made here, so that none is made unchecked. Remembers which work used an arena last. Not
// thread-safe: the command loop's.
class ArenaTable {
 public:
  absl::Status Add(uint64_t arena, ArenaMapping mapping);
  // The device must have finished with it.
  absl::Status Remove(uint64_t arena);
  // What is looked up from now on is used by the work with this mark in this lane
  // (CompletionPoller::Lane).
  void BeginUse(int lane, uint32_t mark) {
    lane_ = lane;
    mark_ = mark;
  }
  // The last mark in each lane that used the arena; zeros when none did.
  static constexpr int kNumLanes = 5;
  std::array<uint32_t, kNumLanes> LastUse(uint64_t arena) const;
  bool Contains(uint64_t arena) const { return arenas_.count(arena) != 0; }

  // The address of [offset, offset + size).
  absl::StatusOr<CUdeviceptr> Range(uint64_t arena, uint64_t offset, uint64_t size) const;
  // The address of the operand's first element, every element of which, over `extents`, is within
  // the arena.
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
