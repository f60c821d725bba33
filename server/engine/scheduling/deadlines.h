#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/container/btree_map.h"
#include "server/base/block_pool.h"
#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/core/early_ends.h"
#include "server/engine/core/task.h"

namespace stride::engine {

// Reports tasks whose deadline has passed. Nearly all tasks end long before. So a task removes its
// deadline when it ends, and a partition has one timer for all.
class Deadlines {
 public:
  Deadlines(Core* core, EarlyEnds* ends) : core_(core), ends_(ends) {}

  // `task` has its place in the order of acceptance. It must be forgotten before it is destroyed,
  // unless the timer has stopped.
  void Watch(TenantTransaction& transaction, Task& task);
  void Forget(TenantTransaction& transaction, const Task& task);

 private:
  // Equal deadlines pass in the order of acceptance.
  using Key = std::pair<SteadyTime, uint64_t>;
  static Key KeyOf(const Task& task) { return {task.options.deadline, task.order.accepted}; }
  struct alignas(64) Partition {
    absl::btree_map<Key, Task*, std::less<Key>, PoolAllocator<std::pair<const Key, Task*>>> tasks;
    SteadyTime next_look = SteadyTime::InfiniteFuture();  // when the timer looks at them
  };
  void LookLater(TenantTransaction& transaction, int partition);
  void Look(int partition, SteadyTime planned);

  Core* const core_;
  EarlyEnds* const ends_;
  PerPartition<Partition> partitions_;
};

}  // namespace stride::engine
