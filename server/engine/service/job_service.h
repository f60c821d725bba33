#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"
#include "stride/v1/job_service.pb.h"

namespace stride::engine {

// Jobs by name, `tenants/{tenant}/jobs/{id}`. Thread-safe; the caller has no transaction. A name of
// another tenant is NOT_FOUND, as one that does not exist. Create and Cancel block for the disk
// where jobs are kept there.
class JobService {
 public:
  virtual ~JobService() = default;

  // Accepts all operations of the job, or none. Does not wait for their work. A repeated
  // `request_id` returns the first job of that id.
  virtual absl::StatusOr<v1::Job> Create(const TenantId& tenant,
                                         const v1::CreateJobRequest& request) = 0;
  virtual absl::StatusOr<v1::Job> Get(const TenantId& tenant, const std::string& name) = 0;
  virtual absl::StatusOr<v1::ListJobsResponse> List(const TenantId& tenant,
                                                    const v1::ListJobsRequest& request) = 0;
  // Requests the end of a job's unfinished work. Does not wait for it. No effect on a final job.
  virtual absl::StatusOr<v1::Job> Cancel(const TenantId& tenant, const std::string& name) = 0;
  // FAILED_PRECONDITION for a job that is not final.
  virtual absl::Status Delete(const TenantId& tenant, const std::string& name) = 0;
  // Events after `after_sequence`, oldest first. Blocks until there is one or `deadline`. An empty
  // list: the job is final and has no further event.
  virtual absl::StatusOr<std::vector<v1::WatchJobResponse>> NextEvents(const TenantId& tenant,
                                                                       const std::string& name,
                                                                       uint64_t after_sequence,
                                                                       SteadyTime deadline) = 0;
};

}  // namespace stride::engine
