#pragma once

#include "absl/status/status.h"
#include "server/base/steady_time.h"
#include "server/engine/jobs/job_record.h"
#include "server/engine/jobs/job_tracker.h"
#include "server/engine/operations/operations.h"
#include "server/engine/scheduling/scheduler.h"

namespace stride::engine {

// Submits a job's operations as tasks of a session of its own, all or none.
// Thread-safe. The caller holds the jobs' lock and has no transaction.
class JobSubmission {
 public:
  // All must outlive it.
  JobSubmission(Core* core, Scheduler* scheduler, Operations* operations, JobTracker* tracker)
      : core_(core), scheduler_(scheduler), operations_(operations), tracker_(tracker) {}

  // The tasks wait for the job's gate.
  absl::Status SubmitAll(const JobPtr& job, const v1::Job& asked, SteadyTime deadline);
  // Lets the tasks of an accepted job begin.
  void Open(const TenantId& tenant, const std::shared_ptr<Task>& gate);
  // Undoes SubmitAll, also after an error.
  void Abandon(const JobPtr& job);

 private:
  Core* const core_;
  Scheduler* const scheduler_;
  Operations* const operations_;
  JobTracker* const tracker_;
};

}  // namespace stride::engine
