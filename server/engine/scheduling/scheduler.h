#pragma once

#include <memory>

#include "absl/status/status.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queue.h"
#include "server/engine/core/device_queues.h"
#include "server/engine/core/task.h"
#include "server/engine/core/task_events.h"
#include "server/engine/core/task_intake.h"
#include "server/engine/memory/memory_manager.h"
#include "server/engine/memory/out_of_core.h"
#include "server/engine/memory/task_memory.h"
#include "server/engine/scheduling/cancellation.h"
#include "server/engine/scheduling/code_loader.h"
#include "server/engine/scheduling/code_preparer.h"
#include "server/engine/scheduling/conducted_tasks.h"
#include "server/engine/scheduling/deadlines.h"
#include "server/engine/scheduling/dependency_tracker.h"
#include "server/engine/scheduling/dispatcher.h"
#include "server/engine/scheduling/health_watch.h"
#include "server/engine/scheduling/placer.h"
#include "server/engine/scheduling/task_results.h"
#include "server/engine/scheduling/time_slices.h"
#include "server/engine/scheduling/unfinished_tasks.h"
#include "server/engine/scheduling/worker_changes.h"
#include "server/engine/scheduling/worker_starter.h"

namespace stride::engine {

// The states of a task, from acceptance to its end. Owns the parts that do the work of each state,
// and hands a task from one to the next (docs/decisions/0058-parts-of-the-scheduler.md).
//
// A task waits (kWaiting) until every access before it has ended, or, better, is already in the
// queue of one worker: then it may follow there at once, since a worker keeps order. It is placed
// on the queue expected to finish it first (placement.h), prepared there (kPreparing) and
// dispatched. A function without a transaction says whether its caller may have one.
class Scheduler final : public TaskIntake, public TaskEvents {
 public:
  explicit Scheduler(Core* core);

  absl::Status Enqueue(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                       const std::shared_ptr<Task>& after = nullptr) override;
  // A task that an earlier daemon had accepted: enters it into its buffers' order, after those
  // restored before. Resume lets it go its way once all are there.
  void Restore(GlobalTransaction& transaction, const std::shared_ptr<Task>& task);
  void Resume(GlobalTransaction& transaction, const std::shared_ptr<Task>& task);

  void Evaluate(TenantTransaction& transaction, const std::shared_ptr<Task>& task) override;
  void Prepare(TenantTransaction& transaction, const std::shared_ptr<Task>& task) override;
  void Unplace(TenantTransaction& transaction, Task& task, TaskState next) override;
  void Requeue(TenantTransaction& transaction, const std::shared_ptr<Task>& task) override;
  void LeaveQueue(TenantTransaction& transaction, const std::shared_ptr<Task>& task) override;
  // A task that has ended is left as it is.
  void Complete(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                absl::Status status) override;
  void EndUnrun(TenantTransaction& transaction, const std::shared_ptr<Task>& task,
                absl::Status status) override;

  // Does the transaction's work list: evaluates freed tasks, sends what may be sent, gives time
  // slices. The end of each transaction calls it, and a batch after each operation.
  void Settle(TenantTransaction& transaction);
  // Ends workers without work for long and gives back memory that nothing uses.
  void Housekeep(GlobalTransaction& transaction);

  // The parts that others use.
  DeviceQueues& queues() { return queues_; }
  MemoryManager& memory() { return memory_; }
  WorkerStarter& starter() { return starter_; }
  HealthWatch& health() { return health_; }
  Placer& placer() { return placer_; }
  Dispatcher& dispatcher() { return dispatcher_; }
  Cancellation& cancellation() { return cancellation_; }
  ConductedTasks& conducted() { return conducted_; }
  UnfinishedTasks& unfinished() { return unfinished_; }

 private:
  void Place(TenantTransaction& transaction, const std::shared_ptr<Task>& task, DeviceQueue& queue);

  // Each part gets pointers to others, and uses none before all are made.
  Core* const core_;
  DeviceQueues queues_;
  UnfinishedTasks unfinished_;
  DependencyTracker dependencies_;
  Cancellation cancellation_;
  Deadlines deadlines_;
  ConductedTasks conducted_;
  TimeSlices slices_;
  WorkerChanges changes_;
  TaskResults results_;
  WorkerStarter starter_;
  HealthWatch health_;
  Placer placer_;
  MemoryManager memory_;
  OutOfCoreExecutor out_of_core_;
  TaskMemory task_memory_;
  CodePreparer code_;
  CodeLoader loader_;
  Dispatcher dispatcher_;
};

}  // namespace stride::engine
