#include "server/store/arena_pool.h"

#include <algorithm>

namespace stride::store {
namespace {

uint64_t RoundUp(uint64_t size, uint64_t unit) { return (size + unit - 1) / unit * unit; }

}  // namespace

uint64_t ArenaPool::ArenaSizeFor(uint64_t size, uint64_t granularity) {
  granularity = std::max<uint64_t>(granularity, OffsetAllocator::kAlignment);
  if (size < kDedicatedBytes) return RoundUp(kSharedArenaBytes, granularity);
  return RoundUp(size, granularity);
}

uint64_t ArenaPool::LeastArenaFor(uint64_t size, uint64_t granularity) {
  return RoundUp(std::max<uint64_t>(size, 1),
                 std::max<uint64_t>(granularity, OffsetAllocator::kAlignment));
}

void ArenaPool::Add(std::shared_ptr<Arena> arena) {
  arena_bytes_ += arena->size;
  arenas_[arena->id] = std::move(arena);
}

std::optional<Allocation> ArenaPool::TryAllocate(uint64_t size) {
  // The arena whose largest gap is the tightest fit: small blocks stay out of the large arenas.
  Arena* best = nullptr;
  for (auto& [id, arena] : arenas_) {
    if (arena->alone) continue;
    uint64_t gap = arena->heap.largest_gap();
    if (gap < std::max<uint64_t>(size, 1)) continue;
    if (!Suits(size, arena->size)) continue;
    if (best == nullptr || gap < best->heap.largest_gap()) best = arena.get();
  }
  if (best == nullptr) return std::nullopt;
  std::optional<uint64_t> offset = best->heap.Allocate(size);
  if (!offset) return std::nullopt;
  ++best->num_blocks;
  return Allocation{arenas_[best->id], *offset, size};
}

void ArenaPool::Free(const Allocation& allocation) {
  allocation.arena->heap.Free(allocation.offset);
}

std::vector<std::shared_ptr<Arena>> ArenaPool::TakeEmpty(uint64_t keep_bytes) {
  std::vector<std::shared_ptr<Arena>> taken;
  uint64_t kept = 0;
  for (auto it = arenas_.begin(); it != arenas_.end();) {
    const std::shared_ptr<Arena>& arena = it->second;
    if (!arena->heap.empty() || arena->num_loans > 0) {
      ++it;
    } else if (!arena->alone && kept + arena->size <= keep_bytes) {
      kept += arena->size;
      ++it;
    } else {
      arena_bytes_ -= arena->size;
      taken.push_back(arena);
      it = arenas_.erase(it);
    }
  }
  return taken;
}

uint64_t ArenaPool::used_bytes() const {
  uint64_t used = 0;
  for (const auto& [id, arena] : arenas_) used += arena->heap.used_bytes();
  return used;
}

}  // namespace stride::store
