#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queues.h"
#include "server/engine/core/worker_source.h"
#include "server/engine/memory/memory_manager.h"
#include "server/store/buffer.h"

namespace stride::engine {

// Places buffers in arenas that contain nothing else, so that a client can map them.
class LentBlocks {
 public:
  LentBlocks(Core* core, DeviceQueues* queues, MemoryManager* memory, WorkerSource* workers)
      : core_(core), queues_(queues), memory_(memory), workers_(workers) {}

  // Places the buffer's content on the device in an arena that contains, and contained, nothing
  // else: where it lies now if that is so, else after one copy. The caller has a host access that
  // writes the buffer, and no transaction.
  absl::StatusOr<store::Allocation> PutAlone(const std::shared_ptr<store::Buffer>& buffer,
                                             int device, SteadyTime deadline);

 private:
  absl::StatusOr<std::shared_ptr<store::Arena>> MakeArena(DeviceQueue& queue, uint64_t size,
                                                          SteadyTime deadline);
  absl::Status Fill(DeviceQueue& queue, const std::shared_ptr<store::Buffer>& buffer,
                    const store::Allocation& target);

  Core* const core_;
  DeviceQueues* const queues_;
  MemoryManager* const memory_;
  WorkerSource* const workers_;
};

}  // namespace stride::engine
