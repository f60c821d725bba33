// Scheduler: moves tasks off a device that has ceased to serve.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/scheduler/scheduler.h"

namespace stride::scheduler {

// Tasks in a worker's queue stay there: they may still end, and their deadlines end them otherwise.
void Scheduler::HealthChanged(GlobalTransaction& transaction, int device) {
  if (health_.Serves(device)) return;
  lanes_.ForEach(transaction, [&](Lane& lane) {
    if (lane.device != device) return;
    const std::vector<std::shared_ptr<Task>> tasks = lane.preparing.All();
    for (const auto& task : tasks) LeaveIllDevice(transaction, task);
  });
}

// Sends a task to another device, or ends it where no other can run it. A task whose inputs are in
// flight is evaluated again when they arrive.
void Scheduler::LeaveIllDevice(TenantTransaction& transaction, const std::shared_ptr<Task>& task) {
  if (task->state != TaskState::kPreparing || task->num_moves > 0) return;
  TakeBack(transaction, task);
  Evaluate(transaction, task);
}

// The reason why Choose found no device.
absl::Status Scheduler::NoDeviceFor(const Task& task) const {
  const auto& devices = core_->broker->devices();
  for (size_t i = 0; i < devices.size(); ++i) {
    int device = static_cast<int>(i);
    if (!MayRunOn(task, device)) continue;
    absl::Duration retry = std::clamp(health_.of(device).next_canary() - core_->Now(),
                                      absl::Seconds(1), absl::Minutes(1));
    std::string name = absl::StrCat("devices/", devices[i].id());
    return TryLater(absl::StatusCode::kUnavailable, v1::ERROR_REASON_DEVICE_NOT_SERVING,
                    absl::StrCat("the device does not serve now: ", name), retry,
                    {{"device", name}});
  }
  const std::string& kind = task.plan().required_kind;
  // PTX and binaries need a kind of device that is absent, or is not the requested one.
  if (!kind.empty()) {
    return NotImplemented(absl::StrCat(kind, " code"),
                          absl::StrCat("no device here that it may use can run this operation; it "
                                       "needs one of kind: ",
                                       kind));
  }
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_DEVICE_NOT_SERVING,
                   "no device here can run this operation");
}

}  // namespace stride::scheduler
