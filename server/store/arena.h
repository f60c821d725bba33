#pragma once

#include <cstdint>
#include <memory>

#include "server/base/memory_file.h"
#include "server/base/unique_fd.h"
#include "server/store/offset_allocator.h"

namespace stride::store {

// A range of memory with a file descriptor: device memory that a worker exported, or a sealed
// memfd. The daemon's descriptor keeps it alive when workers die. Belongs to one tenant on one
// device throughout.
struct Arena {
  Arena(uint64_t id, uint64_t size, UniqueFd fd, MemoryMap map)
      : id(id), size(size), fd(std::move(fd)), map(std::move(map)), heap(size) {}

  const uint64_t id;  // unique in the daemon's life
  const uint64_t size;
  const UniqueFd fd;
  const MemoryMap map;  // the daemon's own mapping; host memory only
  OffsetAllocator heap;

  // Number of blocks allocated in it so far: an earlier block's bytes may still be there.
  uint64_t num_blocks = 0;
  // A client has or had this memory mapped, so the client could see later blocks: the arena never
  // gets another block. Set by Lend.
  bool alone = false;
  // This daemon lent it, and releases its pages at the arena's end. Pages lent by an earlier daemon
  // may still be mapped by a client, which is legitimate.
  bool lent = false;
  int num_loans = 0;  // clients that have it mapped now; pins the arena even when it is empty
};

// A block within an arena. A plain value; the owner frees it through the pool that allocated it.
struct Allocation {
  std::shared_ptr<Arena> arena;
  uint64_t offset = 0;
  uint64_t size = 0;

  // Whether the daemon can access the bytes: host memory, also when a device uses it in place.
  bool mapped() const { return arena != nullptr && arena->map.data() != nullptr; }
  // Address of the block. Requires mapped().
  std::byte* data() const { return arena->map.data() + offset; }
};

}  // namespace stride::store
