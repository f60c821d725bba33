#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "server/store/arena.h"

namespace stride::store {

// The arenas of one tenant on one device, and their blocks. Not thread-safe: guarded by the
// scheduler's lock.
class ArenaPool {
 public:
  // Blocks of at least this size get their own arena, so that freeing them returns the memory.
  static constexpr uint64_t kDedicatedBytes = uint64_t{32} << 20;
  static constexpr uint64_t kSharedArenaBytes = uint64_t{64} << 20;

  // Size of the arena that should be added for a block of `size`.
  static uint64_t ArenaSizeFor(uint64_t size, uint64_t granularity);
  // The smallest size that suffices, if there is no room for ArenaSizeFor.
  static uint64_t LeastArenaFor(uint64_t size, uint64_t granularity);
  // Whether a block of this size may be allocated in an arena of `arena_size`.
  static bool Suits(uint64_t size, uint64_t arena_size) {
    return arena_size <= kSharedArenaBytes || size >= kDedicatedBytes;
  }

  void Add(std::shared_ptr<Arena> arena);
  std::optional<Allocation> TryAllocate(uint64_t size);
  void Free(const Allocation& allocation);

  // Removes empty arenas until at most `keep_bytes` of them remain. An arena that is `alone` is
  // removed at once, but not while a client has it mapped.
  std::vector<std::shared_ptr<Arena>> TakeEmpty(uint64_t keep_bytes);

  uint64_t arena_bytes() const { return arena_bytes_; }
  uint64_t used_bytes() const;
  const std::map<uint64_t, std::shared_ptr<Arena>>& arenas() const { return arenas_; }

 private:
  std::map<uint64_t, std::shared_ptr<Arena>> arenas_;  // by id
  uint64_t arena_bytes_ = 0;
};

}  // namespace stride::store
