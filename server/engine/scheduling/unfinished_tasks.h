#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "server/base/ids.h"
#include "server/engine/core/core.h"
#include "server/engine/core/task.h"
#include "server/tenant/transaction.h"

namespace stride::engine {

// The accepted tasks that have not ended, and their numbers.
class UnfinishedTasks {
 public:
  explicit UnfinishedTasks(const Core* core) : core_(core) {}

  void Add(TenantTransaction& transaction, const std::shared_ptr<Task>& task);
  void Remove(TenantTransaction& transaction, Task& task);

  int Count(TenantTransaction& transaction, const TenantId& tenant) const;
  // The number of all tenants. Any thread, without a lock. While the daemon drains, a global
  // transaction follows when a partition has none left.
  int Count() const;

  // Releases the tasks, without a result, when no other thread runs any more. Tasks and buffers
  // refer to each other, so they would leak.
  void Drop();

 private:
  struct alignas(64) Partition {
    void NoteCount() { count.store(static_cast<int>(tasks.size()), std::memory_order_relaxed); }
    std::map<TenantId, int> of_tenant;
    std::vector<std::shared_ptr<Task>> tasks;  // in no order
    std::atomic<int> count{0};                 // their number; any thread reads it
  };

  const Core* const core_;
  PerPartition<Partition> partitions_;
};

}  // namespace stride::engine
