#pragma once

#include <cstdint>
#include <memory>

#include "server/base/memory_file.h"
#include "server/base/unique_fd.h"
#include "server/store/offset_allocator.h"

namespace stride::store {

// A piece of memory as a file descriptor: device memory that a worker exported, or a sealed memfd.
// The daemon's descriptor keeps it alive whoever dies. Belongs to one tenant on one device for all
// its life.
struct Arena {
  Arena(uint64_t id, uint64_t size, UniqueFd fd, MemoryMap map)
      : id(id), size(size), fd(std::move(fd)), map(std::move(map)), heap(size) {}

  const uint64_t id;  // unique in the daemon's life
  const uint64_t size;
  const UniqueFd fd;
  const MemoryMap map;  // host memory only: the daemon's own mapping
  OffsetAllocator heap;

  // How many blocks have lain in it, earlier ones included: their bytes may still be there.
  uint64_t num_blocks = 0;
  // A client has its memory mapped, or had: it takes no other block for the rest of its life, since
  // the client would see it. Set by Lend.
  bool alone = false;
  // This daemon lent it, and so takes its pages back at its end. What an earlier daemon lent, a
  // client may rightly have mapped still.
  bool lent = false;
  int num_loans = 0;  // clients that have it mapped now: it stays, empty or not
};

// A block within an arena. A plain value; whoever holds it frees it through the pool that made it.
struct Allocation {
  std::shared_ptr<Arena> arena;
  uint64_t offset = 0;
  uint64_t size = 0;

  // Whether the daemon sees the bytes itself: host memory, also where a device uses it in place.
  bool mapped() const { return arena != nullptr && arena->map.data() != nullptr; }
  // Of a block that is mapped.
  std::byte* data() const { return arena->map.data() + offset; }
};

}  // namespace stride::store
