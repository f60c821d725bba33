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
#include "server/engine/scheduling/health_watch.h"
#include "server/engine/scheduling/time_slices.h"
#include "server/engine/scheduling/worker_starter.h"

namespace stride::engine {

// Decides about the tasks of a queue when its worker starts, does not start, ends or dies, or when
// its device no longer serves. After a death, the tasks that the worker had not begun, and
// those that can be repeated, run again with the next one (task_dispositions.h).
class WorkerChanges : public WorkerEvents {
 public:
  // The parts that a change concerns. All outlive this one.
  struct Parts {
    DeviceQueues* queues;
    MemoryManager* memory;
    TaskMemory* task_memory;
    HealthWatch* health;
    WorkerStarter* starter;
    TimeSlices* slices;
  };
  WorkerChanges(Core* core, Parts parts, TaskEvents* events)
      : core_(core), parts_(parts), events_(events) {}

  void WorkerStarted(GlobalTransaction& transaction, DeviceQueue& queue) override;
  void WorkerNotStarted(GlobalTransaction& transaction, DeviceQueue& queue,
                        const absl::Status& status) override;
  void WorkerEnds(GlobalTransaction& transaction, DeviceQueue& queue) override;
  void WorkerGone(GlobalTransaction& transaction) override;
  void WorkerDied(GlobalTransaction& transaction, DeviceQueue& queue,
                  const broker::WorkerDeath& death) override;

  // The device began or ceased to serve. Tasks in preparation leave a device that does not.
  void HealthChanged(GlobalTransaction& transaction, int device);

 private:
  void Blame(GlobalTransaction& transaction, DeviceQueue& queue, const broker::WorkerDeath& death,
             const std::shared_ptr<Task>& culprit);
  void ReportLoss(TenantTransaction& transaction, const DeviceQueue& queue,
                  const broker::WorkerDeath& death, const std::shared_ptr<Task>& running);
  void PrepareAll(GlobalTransaction& transaction, DeviceQueue& queue);

  Core* const core_;
  const Parts parts_;
  TaskEvents* const events_;
};

}  // namespace stride::engine
