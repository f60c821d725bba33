#pragma once

#include <functional>

#include "absl/status/status.h"
#include "server/engine/jobs/job_record.h"
#include "server/engine/jobs/job_table.h"
#include "server/engine/scheduling/scheduler.h"

namespace stride::engine {

// Follows the tasks of jobs: notes each change of a job's state as an event, in
// the journal too, and ends the job once its tasks have ended. Thread-safe. The
// caller of a function without a transaction has none; "the jobs' lock" is that
// of the job's partition in the table.
class JobTracker {
 public:
  // All must outlive it.
  JobTracker(Core* core, Scheduler* scheduler, JobTable* table)
      : core_(core), scheduler_(scheduler), table_(table) {}

  // An observer of the job's tasks.
  std::function<void(TaskState)> ObserverOf(const JobPtr& job);
  // Looks at the tasks, and adds an event when the job's state has changed. The
  // caller holds the jobs' lock.
  void Update(const JobPtr& job);
  // Cancels all unfinished tasks. The caller holds the jobs' lock.
  void CancelAll(const JobRecord& job);
  // Writes the job to the journal.
  void Save(TenantTransaction& transaction, const JobRecord& job);

 private:
  void Advance(TenantTransaction& transaction, JobRecord& job, const JobProgress& seen);
  // `now`: the job in its new state.
  void AddEvent(TenantTransaction& transaction, JobRecord& job, v1::Job now);
  // Moves the text that the job's kernels printed into `work`.
  void AddPrinted(const JobRecord& job, v1::Job* work) const;
  // `work`: from DescribeWork. The caller holds the jobs' lock.
  void End(JobRecord& job, const JobProgress& seen, v1::Job work);
  // Reports the end to EngineOptions::job_ended.
  void ReportEnd(const JobRecord& job, const absl::Status& outcome) const;

  Core* const core_;
  Scheduler* const scheduler_;
  JobTable* const table_;
};

}  // namespace stride::engine
