#include "server/engine/devices.h"

#include "absl/strings/str_cat.h"
#include "server/engine/operations/resolve_operation.h"
#include "server/engine/persistence/describe.h"

namespace stride::engine {

std::vector<v1::Device> Devices::List() {
  std::vector<v1::Device> out;
  GlobalTransaction transaction(*core_);
  for (const auto& description : core_->broker->devices()) {
    const auto index = static_cast<int>(out.size());
    const DeviceHealth& health = scheduler_->health().of(index);
    v1::Device& device = out.emplace_back();
    device.set_name(absl::StrCat("devices/", description.id()));
    device.set_kind(description.kind());
    device.set_model(description.model());
    device.set_index(description.index());
    const bool serves = health.serving() && health.known();
    device.set_state(serves             ? v1::Device::STATE_SERVING
                     : health.serving() ? v1::Device::STATE_STARTING
                                        : v1::Device::STATE_NOT_SERVING);
    if (!serves) {
      device.set_state_reason(health.reason().empty() ? "the daemon has just started and tries it"
                                                      : health.reason());
    }
    device.set_memory_total_bytes(description.memory_bytes());
    device.set_num_compute_units(description.num_compute_units());
    device.set_target(description.target());
    device.set_pci_bus_id(description.pci_bus_id());
    device.set_driver_version(description.driver_version());
    device.set_max_workers(scheduler_->starter().most(transaction, index));
    for (const wire::Link& link : core_->broker->links()) {
      if (link.to() != description.id()) continue;
      v1::DeviceLink* out_link = device.add_links();
      out_link->set_device(absl::StrCat("devices/", link.from()));
      out_link->set_path(link.peer() ? v1::DeviceLink::PATH_PEER : v1::DeviceLink::PATH_HOST);
      out_link->set_bytes_per_second(link.bytes_per_second());
    }
  }
  return out;
}

std::vector<v1::DeviceSample> Devices::Sample() {
  std::vector<v1::DeviceSample> out;
  GlobalTransaction transaction(*core_);
  for (size_t i = 0; i < core_->broker->devices().size(); ++i) {
    int device = static_cast<int>(i);
    const DeviceAccount& account = core_->device_accounts[device];
    v1::DeviceSample& sample = out.emplace_back();
    sample.set_device(absl::StrCat("devices/", core_->broker->devices()[i].id()));
    SetTimestamp(core_->Now(), sample.mutable_time());
    sample.set_arena_bytes(
        static_cast<int64_t>(scheduler_->memory().arenas().arena_bytes(transaction, device)));
    sample.set_array_bytes(
        static_cast<int64_t>(scheduler_->memory().arenas().used_bytes(transaction, device)));
    sample.set_queue_depth(account.queue_depth);
    sample.set_queue_seconds(account.queue_seconds());
    sample.set_busy_seconds(account.busy_seconds);
    sample.set_jobs_succeeded(account.succeeded);
    sample.set_jobs_failed(account.failed);
    sample.set_upload_bytes(account.upload_bytes);
    sample.set_download_bytes(account.download_bytes);
    sample.set_num_workers(scheduler_->starter().num_workers(transaction, device));
    sample.set_worker_restarts(account.worker_restarts);
  }
  return out;
}

void Devices::AwaitHealth(SteadyTime deadline) {
  GlobalTransaction transaction(*core_);
  auto known = [this] { return scheduler_->health().AllKnown(); };
  transaction.Await(absl::Condition(&known), deadline);
}

void Devices::ReportBroken(const std::string& device, const std::string& reason) {
  auto index = FindDevice(*core_, device);
  if (!index.ok()) return;
  GlobalTransaction transaction(*core_);
  scheduler_->health().Broke(transaction, *index, reason);
}

SpillSample Devices::SampleSpill() {
  GlobalTransaction transaction(*core_);
  return scheduler_->memory().Sample(transaction);
}

int Devices::MostWorkers() {
  GlobalTransaction transaction(*core_);
  return scheduler_->starter().most_of_all(transaction);
}

}  // namespace stride::engine
