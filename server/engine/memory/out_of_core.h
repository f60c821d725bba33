#pragma once

#include <deque>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queues.h"
#include "server/engine/core/early_ends.h"
#include "server/engine/core/task.h"
#include "server/engine/core/task_events.h"
#include "server/engine/core/task_intake.h"
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
  // `intake` and `ends` run and cancel the pieces.
  OutOfCoreExecutor(Core* core, DeviceQueues* queues, MemoryManager* memory, WorkerSource* workers,
                    TaskEvents* events, TaskIntake* intake, EarlyEnds* ends)
      : core_(core),
        queues_(queues),
        memory_(memory),
        workers_(workers),
        events_(events),
        intake_(intake),
        ends_(ends) {}

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
  TaskEvents* const events_;
  TaskIntake* const intake_;
  EarlyEnds* const ends_;
  // Tasks that wait for another operation in pieces of their queue, still being prepared. Changes
  // in global transactions.
  std::map<const DeviceQueue*, std::deque<std::shared_ptr<Task>>> queued_;
};

}  // namespace stride::engine
