#pragma once

#include <map>
#include <memory>
#include <vector>

#include "server/base/ids.h"
#include "server/engine/core/core.h"
#include "server/engine/core/device_queue.h"
#include "server/tenant/transaction.h"

namespace stride::engine {

// All device queues. A queue that was made stays.
class DeviceQueues {
 public:
  explicit DeviceQueues(Core* core) : core_(core) {}

  // Null: the queue does not exist.
  DeviceQueue* Find(TenantTransaction& transaction, const TenantId& tenant, int place) const {
    const auto& queues = partitions_.Of(transaction, tenant);
    auto found = queues.find(tenant);
    return found == queues.end() ? nullptr : found->second[place].get();
  }
  DeviceQueue& Get(TenantTransaction& transaction, const TenantId& tenant, int place) {
    auto& queues = partitions_.Of(transaction, tenant)[tenant];
    queues.resize(core_->num_places());
    std::unique_ptr<DeviceQueue>& queue = queues[place];
    if (queue == nullptr) {
      queue = std::make_unique<DeviceQueue>(tenant, place, core_->MemorySpace(place));
      queue->last_used = core_->Now();
    }
    return *queue;
  }

  // Charges the tenant for device time: as reported, or on a CPU what the worker's process has used
  // since the last call.
  void Charge(TenantTransaction&, DeviceQueue& queue, double run_seconds) {
    if (queue.description.kind() == "cpu") run_seconds = queue.processor_time.Take(run_seconds);
    core_->accounts->AddDeviceTime(queue.tenant, queue.device, run_seconds);
  }

  // Charges the tenant for what its workers have used since their last tasks ended.
  void ChargeWorkers(TenantTransaction& transaction, const TenantId& tenant) {
    ForEachOf(transaction, tenant, [&](DeviceQueue& queue) {
      if (queue.worker != nullptr) Charge(transaction, queue, 0);
    });
  }

  // The device queues of one tenant.
  template <typename Visit>
  void ForEachOf(TenantTransaction& transaction, const TenantId& tenant, Visit visit) const {
    const auto& queues = partitions_.Of(transaction, tenant);
    auto found = queues.find(tenant);
    if (found == queues.end()) return;
    for (const auto& queue : found->second) {
      if (queue != nullptr) visit(*queue);
    }
  }
  template <typename Visit>
  void ForEach(GlobalTransaction& transaction, Visit visit) const {
    for (const auto& partition : partitions_.All(transaction)) {
      for (const auto& [tenant, queues] : partition) {
        for (const auto& queue : queues) {
          if (queue != nullptr) visit(*queue);
        }
      }
    }
  }

 private:
  Core* const core_;
  // By tenant and place.
  PerPartition<std::map<TenantId, std::vector<std::unique_ptr<DeviceQueue>>>> partitions_;
};

}  // namespace stride::engine
