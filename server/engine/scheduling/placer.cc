#include "server/engine/scheduling/placer.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/engine/core/links.h"
#include "server/engine/scheduling/placement.h"

namespace stride::engine {
namespace {

// The key under which run times of equal code are averaged.
const std::string& CodeKeyOf(const Task& task) {
  if (task.program_launch != nullptr) return task.program_launch->code_key;
  // Block loops run every expression, each at its own rate, so the label identifies it.
  return task.code.module != nullptr && task.code.block_loops == nullptr ? task.code.module->key
                                                                         : task.label;
}

// To bring a buffer to a device, from the place that is nearest.
double MoveSeconds(const broker::Broker& broker, const store::Buffer& buffer, int to, double rate) {
  const auto& devices = broker.devices();
  const auto bytes = static_cast<double>(buffer.size);
  double least = SecondsOver(nullptr, bytes, rate);
  if (broker.links().empty()) return least;
  for (const auto& [from, block] : buffer.replicas) {
    if (from >= static_cast<int>(devices.size())) continue;
    const wire::Link* link = FindLink(broker.links(), devices[from].id(), devices[to].id());
    least = std::min(least, SecondsOver(link, bytes, rate));
  }
  return least;
}

}  // namespace

bool Placer::MayRunOn(const Task& task, int device) const {
  const std::string& kind = task.plan().required_kind;
  return (task.options.pinned_device < 0 || task.options.pinned_device == device) &&
         (kind.empty() || kind == core_->broker->devices()[device].kind());
}

bool Placer::Fits(const Task& task, int device) const {
  return health_->Serves(device) && MayRunOn(task, device);
}

double Placer::QueueSeconds(TenantTransaction& transaction, int device) const {
  const DeviceChange* change = transaction.FindChange(device);
  const int64_t here = change != nullptr ? change->queue_nanoseconds : 0;
  return core_->device_accounts[device].queue_seconds() + 1e-9 * static_cast<double>(here);
}

int Placer::Choose(TenantTransaction& transaction, const Task& task) {
  const auto& devices = core_->broker->devices();
  const RunTimeModel& model = partitions_.Of(transaction, task.tenant).model;
  std::vector<Candidate> candidates;
  // A session's arrays start out together: its home device comes first among equals, otherwise the
  // devices take turns.
  int first = task.session != nullptr && task.session->home_device >= 0
                  ? task.session->home_device
                  : static_cast<int>(rotation_++ % devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    int index = static_cast<int>((first + i) % devices.size());
    const wire::DeviceDescription& device = devices[index];
    Candidate candidate;
    candidate.device = index;
    candidate.suitable = Fits(task, index);
    candidate.queued_seconds = QueueSeconds(transaction, index);
    candidate.run_seconds = model.Estimate(device, CodeKeyOf(task), task.plan());
    double rate = std::max(1e8, device.transfer_bytes_per_second());
    for (const Use& use : task.uses) {
      if (use.buffer == nullptr || use.fresh || use.buffer->replicas.count(index) > 0) continue;
      // Inline bytes move to any device, so only replicas on other devices make a difference.
      if (!use.buffer->replicas.empty())
        candidate.transfer_seconds += MoveSeconds(*core_->broker, *use.buffer, index, rate);
    }
    candidates.push_back(candidate);
  }
  return ChooseDevice(candidates);
}

absl::Status Placer::NoDeviceFor(const Task& task) const {
  const auto& devices = core_->broker->devices();
  for (size_t i = 0; i < devices.size(); ++i) {
    int device = static_cast<int>(i);
    if (!MayRunOn(task, device)) continue;
    absl::Duration retry = std::clamp(health_->of(device).next_probe() - core_->Now(),
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

void Placer::Enter(TenantTransaction& transaction, Task& task, DeviceQueue& queue) {
  task.queue = &queue;
  task.sent.estimate_seconds = ExpectedSeconds(transaction, task, queue);
  DeviceChange& account = transaction.ChangeOf(queue.device);
  account.queue_nanoseconds += Nanoseconds(task.sent.estimate_seconds);
  ++account.queue_depth;
  queue.preparing.Add(task);
  queue.last_used = core_->Now();
  if (task.session != nullptr && task.session->home_device < 0)
    task.session->home_device = queue.device;
}

void Placer::Leave(TenantTransaction& transaction, Task& task) {
  if (task.queue == nullptr) return;
  DeviceChange& account = transaction.ChangeOf(task.queue->device);
  account.queue_nanoseconds -= Nanoseconds(task.sent.estimate_seconds);
  --account.queue_depth;
  task.queue->last_used = core_->Now();
  task.queue->preparing.Remove(task);
  if (task.links.queued_ready) {  // one that was sent is not: thousands may stand there
    auto& ready = task.queue->sending.ready;
    auto place = std::find_if(ready.begin(), ready.end(),
                              [&](const auto& other) { return other.get() == &task; });
    if (place != ready.end()) ready.erase(place);
  }
  task.links.queued_ready = false;
  task.queue = nullptr;
}

double Placer::ExpectedSeconds(TenantTransaction& transaction, const Task& task,
                               const DeviceQueue& queue) const {
  return partitions_.Of(transaction, task.tenant)
      .model.Estimate(queue.description, CodeKeyOf(task), task.plan());
}

void Placer::Ran(TenantTransaction& transaction, const Task& task, const DeviceQueue& queue,
                 double seconds) {
  partitions_.Of(transaction, task.tenant)
      .model.Record(queue.description, CodeKeyOf(task), task.plan(), seconds);
}

}  // namespace stride::engine
