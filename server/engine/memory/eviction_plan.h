#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "server/store/arena_pool.h"

namespace stride::engine {

// Selects blocks to evict so that a block of a given size fits: adjacent ones in an arena of the
// requesting pool, or all blocks of enough arenas of any pool that a new arena can be made. Pure.
// Blocks are added in the order of eviction. No arena may change while the plan exists.
class EvictionPlan {
 public:
  // `room`: bytes of new arenas that the device allows now; below 0: it is over its limit.
  // `least_arena`: bytes of the smallest new arena that suffices.
  EvictionPlan(const store::ArenaPool& pool, uint64_t size, uint64_t least_arena, int64_t room);

  void Add(const store::Allocation& block);
  bool enough() const { return gap_.arena != nullptr || room_ >= least_arena_; }

  // Whether the nth added block is one to evict.
  bool Needed(size_t n) const;
  // Whether the block's arena belongs to the requesting pool and may take a block of this size.
  bool Own(const store::Allocation& block) const;

 private:
  struct Freed {
    uint64_t bytes = 0;
    std::map<uint64_t, uint64_t> gaps;  // begin -> end
  };
  struct Gap {
    const store::Arena* arena = nullptr;
    uint64_t begin = 0, end = 0;
  };

  const store::ArenaPool& pool_;
  const uint64_t size_;
  const int64_t least_arena_;
  int64_t room_;
  Gap gap_;
  std::map<const store::Arena*, Freed> freed_;
  std::vector<store::Allocation> blocks_;
};

}  // namespace stride::engine
