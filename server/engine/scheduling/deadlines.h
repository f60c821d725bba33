#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/container/btree_map.h"
#include "server/base/block_pool.h"
#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/core/task.h"
#include "server/engine/core/task_events.h"

namespace stride::engine {

// Reports tasks whose deadline has passed. Nearly all tasks end long before. So a task removes its
// deadline when it ends, and a partition has one timer for all.
class Deadlines {
 public:
  Deadlines(Core* core, TaskEvents* events) : core_(core), events_(events) {}

  // `task` has its place in the order of acceptance. It must be forgotten before it is destroyed.
  void Watch(TenantTransaction& transaction, Task& task);
  void Forget(TenantTransaction& transaction, const Task& task);
  // Forgets all tasks, when no other thread runs any more.
  void Clear();

 private:
  // Equal deadlines pass in the order of acceptance.
  using Key = std::pair<SteadyTime, uint64_t>;
  static Key KeyOf(const Task& task) { return {task.deadline, task.order}; }
  struct alignas(64) Partition {
    absl::btree_map<Key, Task*, std::less<Key>, PoolAllocator<std::pair<const Key, Task*>>> tasks;
    SteadyTime next_look = SteadyTime::InfiniteFuture();  // when the timer looks at them
  };
  void LookLater(TenantTransaction& transaction, int partition);
  void Look(int partition, SteadyTime planned);

  Core* const core_;
  TaskEvents* const events_;
  PerPartition<Partition> partitions_;
};

}  // namespace stride::engine
