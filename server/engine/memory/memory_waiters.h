#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queues.h"
#include "server/engine/core/task.h"
#include "server/engine/core/task_events.h"

namespace stride::engine {

// Tasks and threads that wait for memory. A device queue's tasks wait by priority, then age
// (DeviceQueue::memory_queue); its first takes all that it needs at once, and none passes it.
// Across queues the first that has waited longest is tried first.
class MemoryWaiters {
 public:
  MemoryWaiters(Core* core, DeviceQueues* queues, TaskEvents* events)
      : core_(core), queues_(queues), events_(events) {}

  // A position in the order of waiting, later than all before (Task::memory_turn).
  uint64_t NextTurn(GlobalTransaction&) { return ++last_turn_; }
  // Enters the task into its device queue's list, once.
  void Enter(GlobalTransaction& transaction, const std::shared_ptr<Task>& task);
  void Leave(TenantTransaction& transaction, Task& task);

  // Memory may be free: waiters are tried soon, joined with the changes of other transactions.
  void Changed(TenantTransaction& transaction);
  // Tries the waiters now.
  void Retry(GlobalTransaction& transaction);

  // Calls of Changed with waiters.
  uint64_t num_changes(GlobalTransaction&) const { return changes_; }
  // Waits until num_changes is not `seen`, the deadline, or the engine's end. The transaction ends
  // while it waits.
  void AwaitChange(GlobalTransaction& transaction, uint64_t seen, SteadyTime deadline);

 private:
  Core* const core_;
  DeviceQueues* const queues_;
  TaskEvents* const events_;
  std::atomic<uint64_t> changes_{0};
  uint64_t last_turn_ = 0;
  std::atomic<int> num_waiters_{0};  // tasks in queues, and threads
  std::atomic<bool> retry_soon_{false};
};

}  // namespace stride::engine
