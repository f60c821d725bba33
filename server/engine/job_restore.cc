// Restoration of jobs, from the journal of an earlier daemon or from the disk.
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/block_pool.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/base/random_id.h"
#include "server/engine/arrays/array_persister.h"
#include "server/engine/jobs/jobs.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/engine/persistence/record_convert.h"
#include "server/engine/persistence/task_codec.h"
#include "server/recovery/records.pb.h"

namespace stride::engine {

void Jobs::Restore(uint64_t id, const recovery::JobRecord& record, const Restored& things) {
  const JobPtr job = ReadRecord(record);
  job->record = id;
  if (!IsFinal(job->state())) job->place = core_->accounts->RestoreJob(job->tenant);
  for (uint64_t array_id : record.named_results()) {
    auto array = things.arrays.find(array_id);
    if (array != things.arrays.end()) job->named_results.push_back(array->second);
  }
  JobTable::Partition& mine = table_.Of(job->tenant);
  absl::MutexLock lock(&mine.mutex);
  GlobalTransaction transaction(*core_);
  RestoreTasks(transaction, job, record, things);
  if (core_->array_persister != nullptr) RestoreRow(transaction, *job, record.durable());
  JobTable::Add(mine, job);
  job->control = core_->accounts->ControlOf(job->tenant)->Hold(job->Cost() + job->WorkCost());
  if (!IsFinal(job->state())) return;
  job->ReleaseWork();
  JobTable::NoteFinished(mine, *job);
}

void Jobs::RestoreTasks(GlobalTransaction& transaction, const JobPtr& job,
                        const recovery::JobRecord& record, const Restored& things) {
  for (uint64_t task_id : record.tasks()) {
    auto unfinished = things.unfinished.find(task_id);
    auto result = things.results.find(task_id);
    std::shared_ptr<Task> task;
    if (unfinished != things.unfinished.end()) {
      task = unfinished->second;
      task->callbacks.observer =
          std::make_unique<const std::function<void(TaskState)>>(tracker_.ObserverOf(job));
    } else if (result != things.results.end()) {
      task = FinishedTask(task_id, result->second, core_->spaces);
    }
    job->tasks.push_back(std::move(task));
    const auto place = static_cast<int>(job->tasks.size()) - 1;
    job->operations.push_back(place < record.operations_size() ? record.operations(place) : place);
  }
  for (const auto& task : job->tasks) {
    if (job->cancel_requested && task != nullptr)
      scheduler_->cancellation().Cancel(transaction, task);
  }
}

void Jobs::RestoreRow(GlobalTransaction& transaction, JobRecord& job, uint64_t row) {
  ArrayPersister& array_persister = *core_->array_persister;
  bool begun = job.state() > v1::Job::STATE_QUEUED;
  if (array_persister.Restored(transaction, job.session, row, begun)) {
    job.durable = row;
  } else {
    job.durable =
        array_persister.Accepted(transaction, job.session, 0, AcceptedOf(job), &job.durable_number);
  }
  if (!IsFinal(job.state()) || array_persister.HasEnded(transaction, job.durable)) return;
  array_persister.JobEnded(transaction, job.session, job.durable, EndOf(job), job.named_results);
}

void Jobs::RestoreFromDisk(const durable::JobRow& row) {
  recovery::DurableJobRecord kept;
  auto job = std::make_shared<JobRecord>();
  auto asked = std::make_shared<v1::Job>();
  if (!kept.ParseFromString(row.accepted) || !asked->ParseFromString(kept.job())) {
    core_->options.log(absl::StrCat("damaged on disk and given up: the row of job ", row.id));
    return;
  }
  KeepWhatWasAsked(asked.get());
  job->asked = std::move(asked);
  job->tenant = TenantId{kept.tenant()};
  job->id = kept.id();
  job->request_id = kept.request_id();
  job->durable = row.id;
  job->cancel_requested = row.cancel_requested;
  job->record = core_->journal_writer->NewId();
  // Above all that a watcher may have seen of it.
  job->num_forgotten_events = absl::ToUnixSeconds(WallNow());
  JobTable::Partition& mine = table_.Of(job->tenant);
  absl::MutexLock lock(&mine.mutex);
  v1::Job end;
  if (!row.ended.empty() && end.ParseFromString(row.ended) && IsFinal(end.state())) {
    KeepWhatChanges(&end);
    job->now = std::make_shared<const v1::Job>(std::move(end));
    job->final_time = ToSteadyTime(job->now->end_time());
    job->session = absl::StrCat("sessions/job-ended-", row.id);
  } else {
    job->place = core_->accounts->RestoreJob(job->tenant);
    if (absl::Status status = Rerun(job, row); !status.ok()) EndUnrun(job, status);
  }
  JobTable::Add(mine, job);
  job->control = core_->accounts->ControlOf(job->tenant)->Hold(job->Cost() + job->WorkCost());
  if (IsFinal(job->state())) {
    GlobalTransaction transaction(*core_);
    job->events.push_back({job->num_forgotten_events + 1, core_->Now(), job->now});
    JobTable::NoteFinished(mine, *job);
    tracker_.Save(transaction, *job);
    return;
  }
  const std::shared_ptr<Task> gate = job->gate;
  tracker_.Update(job);
  if (gate != nullptr) submission_.Open(job->tenant, gate);
}

// The caller holds the jobs' lock.
absl::Status Jobs::Rerun(const JobPtr& job, const durable::JobRow& row) {
  if (row.cancel_requested)
    return MakeError(absl::StatusCode::kCancelled, v1::ERROR_REASON_CANCELLED,
                     "the job was cancelled before the machine was off");
  if (row.changed_kept) {
    return MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST,
                     "the machine was off before the job had ended, and arrays "
                     "have changed since "
                     "it used them: it cannot run once more");
  }
  recovery::DurableJobRecord kept;
  kept.ParseFromString(row.accepted);
  {
    GlobalTransaction transaction(*core_);
    absl::Status status = core_->array_persister->PrepareRerun(transaction, job->tenant, kept);
    if (!status.ok()) return status;
  }
  const v1::Job& asked = *job->asked;
  SteadyTime deadline = asked.has_timeout()
                            ? ToSteadyTime(asked.create_time()) + ToDuration(asked.timeout())
                            : SteadyTime::InfiniteFuture();
  absl::Status status = submission_.SubmitAll(job, asked, deadline);
  if (!status.ok()) {
    submission_.Abandon(job);
    job->ReleaseWork();
    return MakeError(
        absl::StatusCode::kDataLoss, v1::ERROR_REASON_DATA_LOST,
        absl::StrCat("the job cannot run again after the machine was off: ", status.message()));
  }
  Keep(*job);
  return absl::OkStatus();
}

// As if its one operation had ended so. The caller holds the jobs' lock.
void Jobs::EndUnrun(const JobPtr& job, const absl::Status& status) {
  if (job->session.empty()) job->session = absl::StrCat("sessions/job-", RandomId(24));
  auto task = MakePooled<Task>();
  task->state = TaskState::kDone;
  task->result = status;
  task->timeline.end_time = core_->Now();
  job->tasks = {std::move(task)};
  job->operations = {0};
}

}  // namespace stride::engine
