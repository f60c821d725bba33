#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "server/store/arena_pool.h"

namespace stride::scheduler {

// Which blocks have to go so that one of a given size fits: either next to each other in an arena
// of the one who asks, or enough whole arenas of anybody that a new one may be made. Pure; told of
// blocks in the order in which they may go. Nothing may change while it lives.
class EvictionPlan {
 public:
  // `room`: bytes of new arenas that the device allows now; below 0: it is over its limit.
  // `least_arena`: of which one suffices.
  EvictionPlan(const store::ArenaPool& pool, uint64_t size, uint64_t least_arena, int64_t room);

  void Add(const store::Allocation& block);
  bool enough() const { return gap_.arena != nullptr || room_ >= least_arena_; }

  // Whether the nth that was added helped to make it enough.
  bool Needed(size_t n) const;
  // Whether a block lies in an arena of the one who asks, that may take a block such as his.
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

}  // namespace stride::scheduler
