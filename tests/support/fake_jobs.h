#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "server/engine/service/job_service.h"

namespace stride::testing {

// Jobs that stay queued until they are cancelled. Each has two events: queued (1), cancelled (2).
// Thread-safe.
class FakeJobs : public engine::JobService {
 public:
  absl::StatusOr<v1::Job> Create(const TenantId& tenant,
                                 const v1::CreateJobRequest& request) override;
  absl::StatusOr<v1::Job> Get(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<v1::ListJobsResponse> List(const TenantId& tenant,
                                            const v1::ListJobsRequest& request) override;
  absl::StatusOr<v1::Job> Cancel(const TenantId& tenant, const std::string& name) override;
  absl::Status Delete(const TenantId& tenant, const std::string& name) override;
  absl::StatusOr<std::vector<v1::WatchJobResponse>> NextEvents(const TenantId& tenant,
                                                               const std::string& name,
                                                               uint64_t after_sequence,
                                                               SteadyTime deadline) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, v1::Job> jobs_;  // by name, guarded by mutex_
};

}  // namespace stride::testing
