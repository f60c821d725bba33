#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/broker/worker.h"
#include "server/tenant/transaction.h"

namespace stride::engine {

// Receives changes of the workers of device queues. WorkerChanges implements it.
class WorkerEvents {
 public:
  virtual ~WorkerEvents() = default;

  // The queue has a worker: its tasks continue.
  virtual void WorkerStarted(GlobalTransaction& transaction, DeviceQueue& queue) = 0;
  // The queue's request for a worker ended with an error: so do the tasks that need a worker.
  virtual void WorkerNotStarted(GlobalTransaction& transaction, DeviceQueue& queue,
                                const absl::Status& status) = 0;
  // The queue's idle worker is about to end.
  virtual void WorkerEnds(GlobalTransaction& transaction, DeviceQueue& queue) = 0;
  // A worker that had been ended is gone, and its memory is free.
  virtual void WorkerGone(GlobalTransaction& transaction) = 0;
  // The queue's worker has died, and the queue has none.
  virtual void WorkerDied(GlobalTransaction& transaction, DeviceQueue& queue,
                          const broker::WorkerDeath& death) = 0;
};

// Receives the reports of a queue's current worker about its tasks. TaskResults implements it.
class WorkerReports {
 public:
  virtual ~WorkerReports() = default;

  virtual void TasksDone(TenantTransaction& transaction, DeviceQueue& queue,
                         absl::Span<const wire::TaskResult> results) = 0;
  // Text of a task in flight.
  virtual void Printed(TenantTransaction& transaction, DeviceQueue& queue, uint64_t sequence,
                       std::string_view text, uint64_t dropped_lines) = 0;
};

// Receives a worker's answers to its Cancel commands. Cancellation implements it.
class CancelAnswers {
 public:
  virtual ~CancelAnswers() = default;

  // The answer about the tasks from `sequence` on; taken: the worker has removed them. An answer
  // that nothing waits for is ignored.
  virtual void Answered(TenantTransaction& transaction, DeviceQueue& queue, uint64_t sequence,
                        bool taken) = 0;
};

}  // namespace stride::engine
