#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "server/base/steady_time.h"
#include "server/scheduler/core.h"
#include "server/scheduler/lane.h"
#include "server/scheduler/worker_source.h"
#include "server/store/arena.h"

namespace stride::scheduler {

// Copies `size` bytes between blocks of any memory spaces: in host memory, in files, on devices by
// their workers. Blocks; the caller has no transaction and pins the blocks.
class BlockCopier {
 public:
  BlockCopier(Core* core, WorkerSource* workers) : core_(core), workers_(workers) {}

  // Through the host. Not within one device: both directions would wait for its staging memory.
  absl::Status Copy(Lane& from, const store::Allocation& source, Lane& to,
                    const store::Allocation& target, uint64_t size);
  absl::Status CopyBytes(std::string_view bytes, Lane& to, const store::Allocation& target);
  // Between devices: the worker of the target reads the source's arena.
  absl::Status CopyFromPeer(Lane& from, const store::Allocation& source, Lane& to,
                            const store::Allocation& target, uint64_t size);
  // On the device itself, by its worker.
  absl::Status CopyWithin(Lane& lane, const store::Allocation& source,
                          const store::Allocation& target, uint64_t size, SteadyTime deadline);

 private:
  class Sink;

  absl::Status CopyFile(const store::Allocation& source, uint64_t size, Sink* sink);

  Core* const core_;
  WorkerSource* const workers_;
};

}  // namespace stride::scheduler
