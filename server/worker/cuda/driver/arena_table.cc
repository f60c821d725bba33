#include "server/worker/cuda/driver/arena_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/worker/cuda/driver/operand_bounds.h"

namespace stride::cuda {

absl::Status ArenaTable::Add(uint64_t arena, ArenaMapping mapping) {
  if (!arenas_.emplace(arena, Entry{std::move(mapping), {}}).second) {
    return absl::InvalidArgumentError(absl::StrCat("arena ", arena, " is mapped already"));
  }
  return absl::OkStatus();
}

absl::Status ArenaTable::Remove(uint64_t arena) {
  if (arenas_.erase(arena) == 0) {
    return absl::InvalidArgumentError(absl::StrCat("arena ", arena, " is not mapped"));
  }
  return absl::OkStatus();
}

std::array<uint32_t, ArenaTable::kNumLanes> ArenaTable::LastUse(uint64_t arena) const {
  auto found = arenas_.find(arena);
  return found == arenas_.end() ? std::array<uint32_t, kNumLanes>{} : found->second.last_use;
}

absl::StatusOr<CUdeviceptr> ArenaTable::Range(uint64_t arena, uint64_t offset,
                                              uint64_t size) const {
  absl::StatusOr<const ArenaMapping*> mapping = Find(arena);
  if (!mapping.ok()) return mapping.status();
  if (absl::Status status = CheckRange(offset, size, (*mapping)->size()); !status.ok()) {
    return status;
  }
  return (*mapping)->address() + offset;
}

absl::StatusOr<CUdeviceptr> ArenaTable::Address(const wire::Operand& operand,
                                                absl::Span<const int64_t> extents) const {
  absl::StatusOr<const ArenaMapping*> mapping = Find(operand.arena());
  if (!mapping.ok()) return mapping.status();
  if (absl::Status status = CheckOperand(operand, extents, (*mapping)->size()); !status.ok()) {
    return status;
  }
  return (*mapping)->address() + operand.offset();
}

absl::StatusOr<const ArenaMapping*> ArenaTable::Find(uint64_t arena) const {
  auto found = arenas_.find(arena);
  if (found == arenas_.end()) {
    return absl::InvalidArgumentError(absl::StrCat("arena ", arena, " is not mapped"));
  }
  found->second.last_use[lane_] = mark_;
  return &found->second.mapping;
}

}  // namespace stride::cuda
