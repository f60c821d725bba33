#pragma once

#include <memory>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queue.h"
#include "server/engine/core/task.h"
#include "server/store/buffer.h"

namespace stride::engine {

// Which memory of other devices a device reads by itself, and where a task finds its buffers. The
// caller has a transaction of the task's tenant.
class PeerReads {
 public:
  explicit PeerReads(const Core* core) : core_(core) {}

  // Whether workers of `to` copy from the memory of `from`.
  bool IsPeer(int from, int to) const;
  // A copy between the devices failed: they are no peers from now on. Logs it once.
  void Break(GlobalTransaction& transaction, int from, int to, const absl::Status& why);

  // The queue's `worker` has copied from a peer's arena: its mapping is good.
  static void NoteCopy(TenantTransaction& transaction, DeviceQueue& queue,
                       const std::weak_ptr<broker::Worker>& worker, const store::Arena& arena);

  // Where a task on the queue finds the buffer: there or, for some inputs, on a peer. Null: the
  // buffer has to be brought first. Valid until the replicas change.
  const store::Allocation* BlockFor(const Task& task, const Use& use,
                                    const DeviceQueue& queue) const;
  // Whether BlockFor finds each buffer of the task.
  bool HasBlocks(const Task& task, const DeviceQueue& queue) const;

 private:
  bool ReadsInPlace(const DeviceQueue& queue, int place, const store::Allocation& block) const;

  const Core* const core_;
  std::set<std::pair<int, int>> broken_;  // from, to; changes in global transactions
};

}  // namespace stride::engine
