#pragma once

#include <memory>

#include "absl/status/status.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queue.h"
#include "server/engine/core/device_queues.h"
#include "server/engine/core/task.h"
#include "server/engine/core/task_events.h"
#include "server/engine/core/worker_events.h"
#include "server/engine/memory/task_memory.h"
#include "server/engine/scheduling/cancellation.h"
#include "server/engine/scheduling/health_watch.h"
#include "server/engine/scheduling/placer.h"
#include "server/engine/scheduling/time_slices.h"

namespace stride::engine {

// Ends tasks as their workers report: status, times, charges, text that kernels printed. A task
// ends with the result of its last launch, which calls TaskEvents::Complete.
class TaskResults : public WorkerReports {
 public:
  // The parts that learn from results. All outlive this one.
  struct Parts {
    DeviceQueues* queues;
    MemoryManager* memory;
    TaskMemory* task_memory;
    HealthWatch* health;
    Placer* placer;
    TimeSlices* slices;
    Cancellation* cancellation;
  };
  TaskResults(Core* core, Parts parts, TaskEvents* events)
      : core_(core), parts_(parts), events_(events) {}

  void TasksDone(TenantTransaction& transaction, DeviceQueue& queue,
                 absl::Span<const wire::TaskResult> results) override;
  void Printed(TenantTransaction& transaction, DeviceQueue& queue, uint64_t sequence,
               std::string_view text, uint64_t dropped_lines) override;

 private:
  void Charge(TenantTransaction& transaction, DeviceQueue& queue,
              absl::Span<const wire::TaskResult> results);
  void TaskEnded(TenantTransaction& transaction, DeviceQueue& queue,
                 const std::shared_ptr<Task>& task, const wire::TaskResult& result);

  Core* const core_;
  const Parts parts_;
  TaskEvents* const events_;
};

}  // namespace stride::engine
