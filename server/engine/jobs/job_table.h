#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/base/tenant_partition.h"
#include "server/engine/core/core.h"
#include "server/engine/jobs/job_record.h"
#include "server/tenant/resource_map.h"

namespace stride::engine {

// The jobs of all tenants by name and by request. Final jobs are kept for
// EngineOptions:: job_retention, and give way to other things of their tenant
// before that. Thread-safe.
class JobTable {
 public:
  explicit JobTable(Core* core) : core_(core) {}

  // The jobs of one partition's tenants. Its mutex, "the jobs' lock", is held
  // while a job's operations are accepted. Transactions begin under it, so it
  // is no transaction itself.
  struct alignas(64) Partition {
    absl::Mutex mutex;
    ResourceMap<JobPtr> jobs ABSL_GUARDED_BY(mutex);
    ResourceMap<std::string> requests ABSL_GUARDED_BY(mutex);  // request_id -> job id
    // Final jobs, by the time of their end.
    std::set<std::tuple<TenantId, SteadyTime, std::string>> finished ABSL_GUARDED_BY(mutex);
  };
  Partition& Of(const TenantId& tenant) { return partitions_[PartitionOf(tenant)]; }
  std::array<Partition, kNumTenantPartitions>& partitions() { return partitions_; }

  static absl::StatusOr<JobPtr> Find(const Partition& mine, const TenantId& tenant,
                                     const std::string& name)
      ABSL_SHARED_LOCKS_REQUIRED(mine.mutex);
  // The job that the request made. Null: none, or it is gone.
  static JobPtr FindRequest(const Partition& mine, const TenantId& tenant,
                            const std::string& request_id) ABSL_SHARED_LOCKS_REQUIRED(mine.mutex);
  static void Add(Partition& mine, const JobPtr& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mine.mutex);
  // The job, which is in the table, has ended: it may be dropped from now on.
  static void NoteFinished(Partition& mine, JobRecord& job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mine.mutex);
  // Forgets the tenant's final jobs, the first to end first, until `bytes` more
  // would be within its quota of control bytes, or none is left. The caller has
  // no transaction, here and below.
  void MakeRoom(Partition& mine, const TenantId& tenant, int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mine.mutex);
  void MakeRoom(const TenantId& tenant);
  // Forgets a final job, also in journal and disk.
  void Drop(Partition& mine, const JobPtr& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mine.mutex);
  // Forgets jobs that have been final for EngineOptions::job_retention.
  void Retire(SteadyTime now);

 private:
  Core* const core_;
  std::array<Partition, kNumTenantPartitions> partitions_;
};

}  // namespace stride::engine
