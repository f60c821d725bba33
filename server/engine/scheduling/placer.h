#pragma once

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queue.h"
#include "server/engine/core/run_time_model.h"
#include "server/engine/core/task.h"
#include "server/engine/scheduling/health_watch.h"

namespace stride::engine {

// Chooses the device of a task, and accounts for the tasks that each device has. The cost of a
// device is what it has to run already, the inputs that it lacks, and the task's own run time, as
// measured for the tenant (placement.h).
class Placer {
 public:
  Placer(Core* core, const HealthWatch* health) : core_(core), health_(health) {}

  // The device that is expected to finish the task first; -1: none can run it.
  int Choose(TenantTransaction& transaction, const Task& task);
  // Whether the device serves, is of the kind that the task needs, and is the task's if it has one.
  bool Fits(const Task& task, int device) const;
  // The reason why Choose found no device.
  absl::Status NoDeviceFor(const Task& task) const;

  // Enters a task into the queue that prepares it, and removes it from there or from its worker. A
  // task without a queue is left as it is.
  void Enter(TenantTransaction& transaction, Task& task, DeviceQueue& queue);
  void Leave(TenantTransaction& transaction, Task& task);

  // Expected run time of the tasks placed on the device, with the changes of this transaction.
  double QueueSeconds(TenantTransaction& transaction, int device) const;
  double ExpectedSeconds(TenantTransaction& transaction, const Task& task,
                         const DeviceQueue& queue) const;
  // The task ran on the queue's device for so long.
  void Ran(TenantTransaction& transaction, const Task& task, const DeviceQueue& queue,
           double seconds);

 private:
  bool MayRunOn(const Task& task, int device) const;

  Core* const core_;
  const HealthWatch* const health_;
  struct alignas(64) Partition {
    RunTimeModel model;
  };
  PerPartition<Partition> partitions_;
  std::atomic<unsigned> rotation_{0};  // spreads equal choices over the devices
};

}  // namespace stride::engine
