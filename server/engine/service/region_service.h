#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"
#include "server/engine/service/pinned_memory.h"
#include "stride/v1/region_service.pb.h"

namespace stride::engine {

// Memory shared with clients of this host: regions, and the memory of mapped arrays. Thread-safe;
// the caller has no transaction. A name of another tenant is NOT_FOUND, as one that does not exist.
class RegionService {
 public:
  virtual ~RegionService() = default;

  // Creates a pinned region. Blocks for the allocation, up to a second a GiB. RESOURCE_EXHAUSTED
  // beyond the bounds of the tenant or the daemon.
  virtual absl::StatusOr<PinnedMemory> Create(const TenantId& tenant,
                                              const v1::CreateRegionRequest& request,
                                              v1::CreateRegionResponse* response) = 0;
  virtual absl::Status Delete(const TenantId& tenant, const std::string& name) = 0;
  // Lends the memory of an array until Release. Blocks until the array is ready or `deadline`.
  virtual absl::StatusOr<PinnedMemory> Map(const TenantId& tenant,
                                           const v1::MapArrayRequest& request, SteadyTime deadline,
                                           v1::MapArrayResponse* response) = 0;
  // Unpins. While a region is pinned, the end of its session or of the daemon leaves its bytes
  // unchanged. Release of an array's memory ends its loan. Ignores a name that is not pinned. Does
  // not block; `end` is dropped after the release.
  virtual void Release(const std::string& name, std::shared_ptr<const void> end) = 0;
  // Bytes of all regions.
  virtual int64_t bytes() const = 0;
};

}  // namespace stride::engine
