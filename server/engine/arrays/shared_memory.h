#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"
#include "server/engine/arrays/exports.h"
#include "server/engine/service/region_service.h"
#include "server/engine/transfers/regions.h"

namespace stride::engine {

// The region calls of clients: one space of names for regions and mapped arrays.
// Thread-safe.
class SharedMemory : public RegionService {
 public:
  // Both must outlive it.
  SharedMemory(Regions* regions, Exports* exports) : regions_(regions), exports_(exports) {}

  absl::StatusOr<PinnedMemory> Create(const TenantId& tenant,
                                      const v1::CreateRegionRequest& request,
                                      v1::CreateRegionResponse* response) override {
    return regions_->Create(tenant, request, response);
  }
  absl::Status Delete(const TenantId& tenant, const std::string& name) override {
    return regions_->Delete(tenant, name);
  }
  absl::StatusOr<PinnedMemory> Map(const TenantId& tenant, const v1::MapArrayRequest& request,
                                   SteadyTime deadline, v1::MapArrayResponse* response) override {
    return exports_->Map(tenant, request, deadline, response);
  }
  void Release(const std::string& name, std::shared_ptr<const void> end) override {
    if (!Exports::IsName(name)) return regions_->Release(name);
    exports_->Release(name, std::move(end));
  }
  int64_t bytes() const override { return regions_->bytes(); }

 private:
  Regions* const regions_;
  Exports* const exports_;
};

}  // namespace stride::engine
