#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"
#include "server/scheduler/exports.h"
#include "server/scheduler/regions.h"
#include "server/scheduler/service/region_service.h"

namespace stride::scheduler {

// The region calls of clients: one space of names and tickets for regions and mapped arrays.
// Thread-safe.
class SharedMemory : public RegionService {
 public:
  // Both must outlive it.
  SharedMemory(Regions* regions, Exports* exports) : regions_(regions), exports_(exports) {}

  absl::StatusOr<v1::CreateRegionResponse> Create(const TenantId& tenant,
                                                  const v1::CreateRegionRequest& request) override {
    return regions_->Create(tenant, request);
  }
  absl::Status Delete(const TenantId& tenant, const std::string& name) override {
    return regions_->Delete(tenant, name);
  }
  absl::StatusOr<v1::MapArrayResponse> Map(const TenantId& tenant,
                                           const v1::MapArrayRequest& request,
                                           SteadyTime deadline) override {
    return exports_->Map(tenant, request, deadline);
  }
  absl::StatusOr<RedeemedRegion> Redeem(std::string_view ticket) override {
    auto region = regions_->Redeem(ticket);
    if (absl::IsNotFound(region.status())) return exports_->Redeem(ticket);
    if (!region.ok()) return region.status();
    return RedeemedRegion{*region, (*region)->fd(), (*region)->name()};
  }
  void Hold(const std::string& name) override { regions_->Hold(name); }
  void LetGo(const std::string& name, std::shared_ptr<const void> connection) override {
    if (!Exports::IsName(name)) return regions_->LetGo(name);
    exports_->LetGo(name, std::move(connection));
  }
  int64_t bytes() const override { return regions_->bytes(); }

 private:
  Regions* const regions_;
  Exports* const exports_;
};

}  // namespace stride::scheduler
