#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/steady_time.h"
#include "server/scheduler/core.h"
#include "server/scheduler/lanes.h"
#include "server/scheduler/memory_manager.h"
#include "server/scheduler/worker_source.h"
#include "server/store/buffer.h"

namespace stride::scheduler {

// Places buffers in arenas that contain nothing else, so that a client can map them.
class LentBlocks {
 public:
  LentBlocks(Core* core, Lanes* lanes, MemoryManager* memory, WorkerSource* workers)
      : core_(core), lanes_(lanes), memory_(memory), workers_(workers) {}

  // Places the buffer's content on the device in an arena that contains, and contained, nothing
  // else: where it lies now if that is so, else after one copy. The caller has a host access that
  // writes the buffer, and no transaction.
  absl::StatusOr<store::Allocation> PutAlone(const std::shared_ptr<store::Buffer>& buffer,
                                             int device, SteadyTime deadline);

 private:
  absl::StatusOr<std::shared_ptr<store::Arena>> MakeArena(Lane& lane, uint64_t size,
                                                          SteadyTime deadline);
  absl::Status Fill(Lane& lane, const std::shared_ptr<store::Buffer>& buffer,
                    const store::Allocation& target);

  Core* const core_;
  Lanes* const lanes_;
  MemoryManager* const memory_;
  WorkerSource* const workers_;
};

}  // namespace stride::scheduler
