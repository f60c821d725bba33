#include "server/engine/jobs/job_tracker.h"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/crash_point.h"
#include "server/engine/arrays/array_persister.h"
#include "server/engine/jobs/session_end.h"
#include "server/engine/persistence/describe.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/engine/persistence/record_convert.h"
#include "server/recovery/records.pb.h"
#include "server/session/resource_name.h"

namespace stride::engine {
namespace {

constexpr size_t kMostPrinted = 64 << 10;  // for each job; an answer lists many

}  // namespace

// Called on engine threads without a transaction; the job may be gone by then.
// One look covers all tasks that change before it.
std::function<void(TaskState)> JobTracker::ObserverOf(const JobPtr& job) {
  auto look = [this, mine = &table_->Of(job->tenant), weak = std::weak_ptr<JobRecord>(job),
               asked = job->look_asked] {
    absl::MutexLock lock(&mine->mutex);
    asked->store(false);  // a later change requests another look
    if (JobPtr job = weak.lock()) Update(job);
  };
  return [this, look, asked = job->look_asked](TaskState) {
    if (!asked->exchange(true)) core_->executor.Run(look);
  };
}

void JobTracker::CancelAll(const JobRecord& job) {
  scheduler_->cancellation().CancelAll(job.tenant, job.helpers);
  scheduler_->cancellation().CancelAll(job.tenant, job.tasks);
}

void JobTracker::Save(TenantTransaction& transaction, const JobRecord& job) {
  if (!core_->journal_writer->on() || job.record == 0) return;
  recovery::JobRecord out;
  WriteRecord(job, &out);
  core_->journal_writer->Set(transaction, job.tenant, recovery::Kind::kJob, job.record, out);
  if (!IsFinal(job.state())) return;
  core_->journal_writer->Commit(transaction);  // results that are not written yet would come after
  for (const auto& task : job.tasks) {
    if (task == nullptr) continue;
    core_->journal_writer->Erase(transaction, job.tenant, recovery::Kind::kTaskResult, task->id);
  }
}

void JobTracker::AddEvent(TenantTransaction& transaction, JobRecord& job, v1::Job now) {
  job.now = std::make_shared<const v1::Job>(std::move(now));
  job.events.push_back({job.num_events() + 1, core_->Now(), job.now});
  Save(transaction, job);
}

// A job may have 10,000 operations, so its tenant's transactions look at them,
// describe and report them.
void JobTracker::Update(const JobPtr& job) {
  while (!IsFinal(job->state())) {
    JobProgress seen;
    v1::Job work;
    {
      TenantTransaction transaction(*core_, job->tenant);
      seen = ProgressOf(transaction, *job);
      if (!seen.all_done && seen.error.ok()) {
        Advance(transaction, *job, seen);
        return;
      }
      if (seen.all_done) work = DescribeWork(transaction, *core_, *job);
    }
    if (seen.all_done) {
      End(*job, seen, std::move(work));
      return;
    }
    CancelAll(*job);
    TenantTransaction transaction(*core_, job->tenant);
    seen = ProgressOf(transaction, *job);
    if (seen.all_done) continue;  // that was quick
    Advance(transaction, *job, seen);
    return;
  }
}

// It has not ended.
void JobTracker::Advance(TenantTransaction& transaction, JobRecord& job, const JobProgress& seen) {
  if (seen.state == job.state()) return;
  v1::Job now = DescribeWork(transaction, *core_, job);
  now.set_state(seen.state);
  AddEvent(transaction, job, std::move(now));
}

void JobTracker::AddPrinted(const JobRecord& job, v1::Job* work) const {
  auto id = session::ParseSessionName(job.session, "session");
  if (!id.ok()) return;
  TenantTransaction transaction(*core_, job.tenant);
  auto session = core_->catalogue.FindSession(transaction, job.tenant, *id, core_->Now());
  if (!session.ok()) return;
  PrintedText printed = (*session)->printed.Take(session::PrintedOutput::kMostBytes).printed;
  printed.Truncate(kMostPrinted);
  work->set_printed(std::move(printed.text));
  work->set_dropped_lines(printed.dropped_lines);
}

// All is done, and described. If the daemon dies here, a successor ends the job
// again: until its end is written it has not ended, so that its results still
// go to disk.
void JobTracker::End(JobRecord& job, const JobProgress& seen, v1::Job work) {
  AddPrinted(job, &work);
  // A successor may find it gone already.
  EndSession(core_, scheduler_, job.tenant, job.session).IgnoreError();
  STRIDE_CRASH_POINT("job.before_end");
  work.set_state(seen.state);
  if (!seen.error.ok()) SetStatus(seen.error, work.mutable_error());
  {
    TenantTransaction transaction(*core_, job.tenant);
    SetTimestamp(core_->Now(), work.mutable_end_time());
    job.final_time = core_->Now();
    job.place.reset();
    ReportEnd(job, seen.error);
    AddEvent(transaction, job, std::move(work));
  }
  STRIDE_CRASH_POINT("job.after_end");
  if (core_->array_persister != nullptr) {
    std::string end = EndOf(job);
    GlobalTransaction transaction(*core_);
    core_->array_persister->JobEnded(transaction, job.session, job.durable, std::move(end),
                                     job.named_results);
  }
  job.ReleaseWork();
  JobTable::Partition& mine = table_->Of(job.tenant);
  mine.mutex.AssertHeld();
  JobTable::NoteFinished(mine, job);
  table_->MakeRoom(mine, job.tenant, 0);
}

void JobTracker::ReportEnd(const JobRecord& job, const absl::Status& outcome) const {
  if (!core_->options.job_ended) return;
  JobEnd end{.tenant = job.tenant, .job = job.name(), .outcome = outcome};
  std::set<int> devices;
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    const auto& task = job.tasks[i];
    if (task == nullptr) continue;
    end.num_operations += job.IsLast(i);
    end.device_seconds += task->timeline.run_seconds;
    if (task->timeline.ran_on_device >= 0) devices.insert(task->timeline.ran_on_device);
  }
  for (int device : devices) {
    absl::StrAppend(&end.devices, end.devices.empty() ? "" : ",", "devices/",
                    core_->broker->devices()[device].id());
  }
  core_->options.job_ended(end);
}

}  // namespace stride::engine
