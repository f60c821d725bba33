#pragma once

#include <deque>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queues.h"
#include "server/engine/core/task.h"
#include "server/engine/core/worker_source.h"
#include "server/engine/memory/memory_manager.h"

namespace stride::engine {

// Computes operations whose arrays do not fit their device together, in pieces. The operation's
// task keeps its place in the order of its arrays and only waits. Each piece is a task of its own
// on private buffers. The parts of inputs are inline bytes. The result of a piece is copied into
// the operation's output, in host memory or a file.
//
// A device queue has one such operation at a time; others wait for it (DeviceQueue::streaming).
class OutOfCoreExecutor {
 public:
  // Events of an operation's task and of its pieces. The scheduler implements it.
  class Tasks {
   public:
    virtual ~Tasks() = default;
    // Returns a prepared task to the state kWaiting: it is evaluated when earlier accesses end.
    virtual void Postpone(GlobalTransaction& transaction, Task& task) = 0;
    // The task leaves its device queue and is kDispatched.
    virtual void Begun(GlobalTransaction& transaction, Task& task) = 0;
    virtual void Ended(GlobalTransaction& transaction, const std::shared_ptr<Task>& task,
                       absl::Status status) = 0;
    virtual absl::Status EnqueuePiece(GlobalTransaction& transaction,
                                      const std::shared_ptr<Task>& piece) = 0;
    virtual void CancelPiece(TenantTransaction& transaction,
                             const std::shared_ptr<Task>& piece) = 0;
  };
  // `waiting` receives a task that cannot be cut, and one whose turn has come.
  OutOfCoreExecutor(Core* core, DeviceQueues* queues, MemoryManager* memory, WorkerSource* workers,
                    WaitingTasks* waiting, Tasks* tasks)
      : core_(core),
        queues_(queues),
        memory_(memory),
        workers_(workers),
        waiting_(waiting),
        tasks_(tasks) {}

  // Begins to compute a prepared task in pieces if all earlier accesses have ended. Ends it with an
  // error if it cannot be cut; `too_large` says why it must be.
  void Begin(GlobalTransaction& transaction, const std::shared_ptr<Task>& task,
             const absl::Status& too_large);

 private:
  class Execution;

  // The caller has no transaction.
  void RunEnded(const std::shared_ptr<Task>& task, DeviceQueue& queue, absl::Status status);

  Core* const core_;
  DeviceQueues* const queues_;
  MemoryManager* const memory_;
  WorkerSource* const workers_;
  WaitingTasks* const waiting_;
  Tasks* const tasks_;
  // Tasks that wait for another operation in pieces of their queue, still being prepared. Changes
  // in global transactions.
  std::map<const DeviceQueue*, std::deque<std::shared_ptr<Task>>> queued_;
};

}  // namespace stride::engine
