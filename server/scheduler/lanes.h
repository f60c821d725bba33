#pragma once

#include <map>
#include <memory>
#include <vector>

#include "server/base/ids.h"
#include "server/scheduler/core.h"
#include "server/scheduler/lane.h"
#include "server/tenant/transaction.h"

namespace stride::scheduler {

// All device queues. A queue that was made stays.
class Lanes {
 public:
  explicit Lanes(Core* core) : core_(core) {}

  // Null: the queue does not exist.
  Lane* Find(TenantTransaction& transaction, const TenantId& tenant, int place) const {
    const auto& lanes = partitions_.Of(transaction, tenant);
    auto found = lanes.find(tenant);
    return found == lanes.end() ? nullptr : found->second[place].get();
  }
  Lane& Get(TenantTransaction& transaction, const TenantId& tenant, int place) {
    auto& lanes = partitions_.Of(transaction, tenant)[tenant];
    lanes.resize(core_->num_places());
    std::unique_ptr<Lane>& lane = lanes[place];
    if (lane == nullptr) {
      lane = std::make_unique<Lane>(tenant, place, core_->Place(place));
      lane->last_used = core_->Now();
    }
    return *lane;
  }

  // The device queues of one tenant.
  template <typename Visit>
  void ForEachOf(TenantTransaction& transaction, const TenantId& tenant, Visit visit) const {
    const auto& lanes = partitions_.Of(transaction, tenant);
    auto found = lanes.find(tenant);
    if (found == lanes.end()) return;
    for (const auto& lane : found->second) {
      if (lane != nullptr) visit(*lane);
    }
  }
  template <typename Visit>
  void ForEach(GlobalTransaction& transaction, Visit visit) const {
    for (const auto& partition : partitions_.All(transaction)) {
      for (const auto& [tenant, lanes] : partition) {
        for (const auto& lane : lanes) {
          if (lane != nullptr) visit(*lane);
        }
      }
    }
  }

 private:
  Core* const core_;
  // By tenant and place.
  PerPartition<std::map<TenantId, std::vector<std::unique_ptr<Lane>>>> partitions_;
};

}  // namespace stride::scheduler
