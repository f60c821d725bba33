#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "server/recovery/records.pb.h"
#include "server/store/buffer.h"

namespace stride::scheduler {

// An arena of an earlier daemon, and the memory space that it is in.
struct RestoredArena {
  std::shared_ptr<store::Arena> arena;
  int space = 0;
};
using RestoredArenas = std::map<uint64_t, RestoredArena>;                    // by id
using RestoredBuffers = std::map<uint64_t, std::shared_ptr<store::Buffer>>;  // by record

// Everything but inline bytes, which have a record of their own. `record` is empty.
void ToRecord(const store::Buffer& buffer, recovery::BufferRecord* record);
// The buffer of the record `id` (0: it has none yet). Reserves its blocks in `arenas`; a block that
// is not there, or belongs to another buffer, is left out. A buffer that was being read from disk
// has no block.
std::shared_ptr<store::Buffer> BufferFrom(uint64_t id, const recovery::BufferRecord& record,
                                          const RestoredArenas& arenas,
                                          const std::shared_ptr<store::Reclaimer>& reclaimer);

}  // namespace stride::scheduler
