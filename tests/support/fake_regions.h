#pragma once

#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/service/region_service.h"

namespace stride::testing {

// Pinned memory files: regions in any session, and as the memory of any array. Thread-safe.
class FakeRegions : public engine::RegionService {
 public:
  absl::StatusOr<engine::PinnedMemory> Create(const TenantId& tenant,
                                              const v1::CreateRegionRequest& request,
                                              v1::CreateRegionResponse* response) override;
  // NOT_FOUND for memory that is not pinned.
  absl::Status Delete(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<engine::PinnedMemory> Map(const TenantId& tenant,
                                           const v1::MapArrayRequest& request, SteadyTime deadline,
                                           v1::MapArrayResponse* response) override;
  void Release(const std::string& name, std::shared_ptr<const void> end) override;
  int64_t bytes() const override { return 0; }

  size_t num_pinned() const;

 private:
  absl::StatusOr<engine::PinnedMemory> Pin(std::string name, int64_t size);

  mutable absl::Mutex mutex_;
  int num_created_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<std::string> pinned_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace stride::testing
