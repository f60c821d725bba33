#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "server/base/ids.h"
#include "server/scheduler/core.h"
#include "server/scheduler/lane.h"

namespace stride::scheduler {

// Every lane there is; one that was made stays. The caller has the tenant's stripe, and all where
// all are looked at.
class Lanes {
 public:
  explicit Lanes(Core* core) : core_(core) {}

  // Null: there is none.
  Lane* Find(const TenantId& tenant, int place) const {
    const auto& lanes = stripes_[core_->StripeFor(tenant)];
    auto found = lanes.find(tenant);
    return found == lanes.end() ? nullptr : found->second[place].get();
  }
  Lane& Get(const TenantId& tenant, int place) {
    auto& lanes = stripes_[core_->StripeFor(tenant)][tenant];
    lanes.resize(core_->num_places());
    std::unique_ptr<Lane>& lane = lanes[place];
    if (lane == nullptr) {
      lane = std::make_unique<Lane>(tenant, place, core_->Place(place));
      lane->last_used = core_->Now();
    }
    return *lane;
  }

  // The lanes of one tenant. The caller has its stripe.
  template <typename Visit>
  void ForEachOf(const TenantId& tenant, Visit visit) const {
    const auto& lanes = stripes_[core_->StripeFor(tenant)];
    auto found = lanes.find(tenant);
    if (found == lanes.end()) return;
    for (const auto& lane : found->second) {
      if (lane != nullptr) visit(*lane);
    }
  }
  template <typename Visit>
  void ForEach(Visit visit) const {
    core_->AssertAll();
    for (const auto& stripe : stripes_) {
      for (const auto& [tenant, lanes] : stripe) {
        for (const auto& lane : lanes) {
          if (lane != nullptr) visit(*lane);
        }
      }
    }
  }

 private:
  Core* const core_;
  // By tenant and place.
  std::array<std::map<TenantId, std::vector<std::unique_ptr<Lane>>>, kNumStripes> stripes_;
};

}  // namespace stride::scheduler
