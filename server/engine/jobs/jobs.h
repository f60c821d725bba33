#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/steady_time.h"
#include "server/engine/core/core.h"
#include "server/engine/jobs/job_record.h"
#include "server/engine/jobs/job_submission.h"
#include "server/engine/jobs/job_table.h"
#include "server/engine/jobs/job_tracker.h"
#include "server/engine/operations/operations.h"
#include "server/engine/scheduling/scheduler.h"
#include "server/engine/service/job_service.h"

namespace stride::recovery {
class JobRecord;
class TaskResultRecord;
}  // namespace stride::recovery

namespace stride::durable {
struct JobRow;
}

namespace stride::engine {

// Work that outlives its client: a job's operations are tasks of a session that
// belongs to the job. Thread-safe; its lock (JobTable) is taken before a
// transaction begins.
class Jobs : public JobService {
 public:
  Jobs(Core* core, Scheduler* scheduler, Operations* operations)
      : core_(core),
        scheduler_(scheduler),
        table_(core),
        tracker_(core, scheduler, &table_),
        submission_(core, scheduler, operations, &tracker_) {}

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

  // State from an earlier daemon's journal. Its unfinished tasks are restored
  // and not resumed yet. The caller has no transaction.
  struct Restored {
    const std::map<uint64_t, std::shared_ptr<Task>>& unfinished;
    const std::map<uint64_t, recovery::TaskResultRecord>& results;
    const std::map<uint64_t, std::shared_ptr<session::Array>>& arrays;
  };
  void Restore(uint64_t id, const recovery::JobRecord& record, const Restored& things);
  // Restores a job from its row after a reboot. An ended job is known; others
  // run again from their requests where possible, and fail otherwise. Call in
  // the order of acceptance. The caller has no transaction.
  void RestoreFromDisk(const durable::JobRow& row);

  // Updates all jobs. The caller has no transaction.
  void UpdateAll();

  // See JobTable.
  void Retire(SteadyTime now) { table_.Retire(now); }
  void MakeRoom(const TenantId& tenant) { table_.MakeRoom(tenant); }

 private:
  absl::StatusOr<JobView> Accept(const TenantId& tenant, const v1::CreateJobRequest& request,
                                 uint64_t* durable_number);
  absl::StatusOr<JobView> Cancel(const TenantId& tenant, const std::string& name,
                                 uint64_t* durable_number);
  // Writes the job to disk, where jobs are kept there. The caller holds the
  // jobs' lock and has no transaction: one begins after the long part.
  void Keep(JobRecord& job);
  void RestoreTasks(GlobalTransaction& transaction, const JobPtr& job,
                    const recovery::JobRecord& record, const Restored& things);
  void RestoreRow(GlobalTransaction& transaction, JobRecord& job, uint64_t row);
  absl::Status Rerun(const JobPtr& job, const durable::JobRow& row);
  void EndUnrun(const JobPtr& job, const absl::Status& status);

  Core* const core_;
  Scheduler* const scheduler_;
  JobTable table_;
  JobTracker tracker_;
  JobSubmission submission_;
};

}  // namespace stride::engine
