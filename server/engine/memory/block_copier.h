#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queue.h"
#include "server/engine/core/worker_source.h"
#include "server/store/arena.h"

namespace stride::engine {

// Copies `size` bytes between blocks of any memory spaces: in host memory, in files, on devices by
// their workers. Blocks; the caller has no transaction and pins the blocks.
class BlockCopier {
 public:
  BlockCopier(Core* core, WorkerSource* workers) : core_(core), workers_(workers) {}

  // Through the host. Not within one device: both directions would wait for its staging memory.
  absl::Status Copy(DeviceQueue& from, const store::Allocation& source, DeviceQueue& to,
                    const store::Allocation& target, uint64_t size);
  absl::Status CopyBytes(std::string_view bytes, DeviceQueue& to, const store::Allocation& target);
  // Between devices: the worker of the target reads the source's arena.
  absl::Status CopyFromPeer(DeviceQueue& from, const store::Allocation& source, DeviceQueue& to,
                            const store::Allocation& target, uint64_t size);
  // On the device itself, by its worker.
  absl::Status CopyWithin(DeviceQueue& queue, const store::Allocation& source,
                          const store::Allocation& target, uint64_t size, SteadyTime deadline);

 private:
  class Sink;

  absl::Status CopyFile(const store::Allocation& source, uint64_t size, Sink* sink);

  Core* const core_;
  WorkerSource* const workers_;
};

}  // namespace stride::engine
