#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"
#include "server/scheduler/service/redeemed_region.h"
#include "stride/v1/region_service.pb.h"

namespace stride::scheduler {

// Memory shared with clients of this host: regions, and the memory of mapped arrays. Thread-safe;
// the caller has no transaction. A name of another tenant is NOT_FOUND, as one that does not exist.
class RegionService {
 public:
  virtual ~RegionService() = default;

  // Fills all fields but `socket_path`. Blocks for the allocation, up to a second a GiB.
  // RESOURCE_EXHAUSTED beyond the bounds of the tenant or the daemon.
  virtual absl::StatusOr<v1::CreateRegionResponse> Create(
      const TenantId& tenant, const v1::CreateRegionRequest& request) = 0;
  virtual absl::Status Delete(const TenantId& tenant, const std::string& name) = 0;
  // Maps an array. Fills all fields but `socket_path`. Blocks until the array is ready or
  // `deadline`.
  virtual absl::StatusOr<v1::MapArrayResponse> Map(const TenantId& tenant,
                                                   const v1::MapArrayRequest& request,
                                                   SteadyTime deadline) = 0;
  // Returns what the ticket was issued for. Does not block. NOT_FOUND when the ticket is unknown,
  // expired or was redeemed before.
  virtual absl::StatusOr<RedeemedRegion> Redeem(std::string_view ticket) = 0;
  // While a client holds a region, the end of its session or of the daemon leaves the bytes
  // unchanged. LetGo of an array's memory ends its loan. Neither blocks.
  virtual void Hold(const std::string& name) = 0;
  // `connection` is dropped after the release.
  virtual void LetGo(const std::string& name, std::shared_ptr<const void> connection) = 0;
  // Bytes of all regions.
  virtual int64_t bytes() const = 0;
};

}  // namespace stride::scheduler
