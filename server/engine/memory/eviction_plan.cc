#include "server/engine/memory/eviction_plan.h"

#include <algorithm>
#include <iterator>

namespace stride::engine {

using store::OffsetAllocator;

EvictionPlan::EvictionPlan(const store::ArenaPool& pool, uint64_t size, uint64_t least_arena,
                           int64_t room)
    : pool_(pool), size_(size), least_arena_(static_cast<int64_t>(least_arena)), room_(room) {}

bool EvictionPlan::Own(const store::Allocation& block) const {
  return pool_.arenas().count(block.arena->id) > 0 &&
         store::ArenaPool::Suits(size_, block.arena->size);
}

void EvictionPlan::Add(const store::Allocation& block) {
  const store::Arena* arena = block.arena.get();
  Freed& freed = freed_[arena];
  freed.bytes += OffsetAllocator::Rounded(block.size);
  if (freed.bytes == arena->heap.used_bytes()) room_ += static_cast<int64_t>(arena->size);
  if (Own(block)) {
    auto [begin, end] = arena->heap.FreeAround(block.offset);
    // Merge with the gaps freed on either side.
    auto next = freed.gaps.upper_bound(begin);
    if (next != freed.gaps.begin() && std::prev(next)->second >= begin) --next;
    while (next != freed.gaps.end() && next->first <= end) {
      begin = std::min(begin, next->first);
      end = std::max(end, next->second);
      next = freed.gaps.erase(next);
    }
    freed.gaps[begin] = end;
    bool fits = end - begin >= OffsetAllocator::Rounded(size_);
    if (fits && !enough()) gap_ = {arena, begin, end};
  }
  blocks_.push_back(block);
}

bool EvictionPlan::Needed(size_t n) const {
  const store::Allocation& block = blocks_[n];
  if (gap_.arena != nullptr) {
    return block.arena.get() == gap_.arena && block.offset >= gap_.begin && block.offset < gap_.end;
  }
  return freed_.at(block.arena.get()).bytes == block.arena->heap.used_bytes();
}

}  // namespace stride::engine
