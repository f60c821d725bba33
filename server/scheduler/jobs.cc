#include "server/scheduler/jobs.h"

#include <algorithm>
#include <climits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/base/block_pool.h"
#include "server/base/crash_point.h"
#include "server/base/error.h"
#include "server/base/page_size.h"
#include "server/base/random_id.h"
#include "server/base/surroundings.h"
#include "server/ops/plan.h"
#include "server/recovery/records.pb.h"
#include "server/scheduler/answer.h"
#include "server/scheduler/describe.h"
#include "server/scheduler/durability.h"
#include "server/scheduler/record_convert.h"
#include "server/scheduler/recorder.h"
#include "server/scheduler/session_end.h"
#include "server/session/control_cost.h"
#include "server/session/resource_name.h"

namespace stride::scheduler {
namespace {

constexpr int kMaxOperations = 10000;
constexpr size_t kMaxLabel = 256;
constexpr size_t kMostPrinted = 64 << 10;  // for each job; an answer lists many

// The fields that lists leave out, and those that an answer leaves out when it is too large.
const OmittedFields& OmittedInJobLists() {
  static const OmittedFields kLeftOut({"operations"});
  return kLeftOut;
}
const OmittedFields& OmittedInJobs() {
  static const OmittedFields kLarge({"operations", "timelines", "results", "error"});
  return kLarge;
}

// Takes out of a whole job all that never changes.
void KeepWhatChanges(v1::Job* job) {
  v1::Job now;
  now.set_state(job->state());
  if (job->has_error()) now.mutable_error()->Swap(job->mutable_error());
  if (job->has_end_time()) now.mutable_end_time()->Swap(job->mutable_end_time());
  now.mutable_timelines()->Swap(job->mutable_timelines());
  now.mutable_results()->Swap(job->mutable_results());
  job->Swap(&now);
}

// Takes out of it all that changes.
void KeepWhatWasAsked(v1::Job* job) {
  job->clear_state();
  job->clear_error();
  job->clear_end_time();
  job->clear_timelines();
  job->clear_results();
  job->clear_omitted();
}

absl::Status CheckJob(const v1::CreateJobRequest& request) {
  if (request.job().operations().empty() || request.job().operations_size() > kMaxOperations) {
    return InvalidField(v1::ERROR_REASON_ARGUMENT_COUNT, "job.operations",
                        absl::StrCat("a job has from 1 to ", kMaxOperations,
                                     " operations. Got: ", request.job().operations_size()));
  }
  if (request.job().label().size() > kMaxLabel) {
    return InvalidField(v1::ERROR_REASON_SIZE_LIMIT, "job.label",
                        absl::StrCat("at most ", kMaxLabel, " bytes"));
  }
  if (!request.job_id().empty() && !session::IsResourceId(request.job_id())) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "job_id",
                        "must match [a-zA-Z0-9][a-zA-Z0-9._-]{0,254}");
  }
  if (absl::Status status = CheckPriority(request.job().priority(), "job.priority"); !status.ok())
    return status;
  if (request.request_id().size() > 64) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "request_id", "a UUID has 36 characters");
  }
  for (int i = 0; i < request.job().operations_size(); ++i) {
    for (const auto& output : request.job().operations(i).outputs()) {
      if (!output.inline_result()) continue;
      return InvalidField(
          v1::ERROR_REASON_INVALID_FIELD, absl::StrCat("job.operations[", i, "].outputs"),
          "a job has no reply to carry inline results; name them, or use handles for temporaries");
    }
  }
  return absl::OkStatus();
}

// A task that had ended before this daemon began, as far as its job wants to know.
std::shared_ptr<Task> FinishedTask(const Core& core, const recovery::TaskResultRecord& result) {
  auto task = MakePooled<Task>();
  task->state = TaskState::kDone;
  task->result = StatusFrom(result.status());
  task->submit_time = TimeFrom(result.submit_time(), SteadyTime());
  task->dispatch_time = TimeFrom(result.dispatch_time(), SteadyTime());
  task->begin_time = TimeFrom(result.begin_time(), SteadyTime());
  task->end_time = TimeFrom(result.end_time(), SteadyTime());
  task->run_seconds = result.run_seconds();
  task->ran_on_device = core.DeviceIndex(result.device());
  return task;
}

absl::Duration ToDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

SteadyTime TimeOf(const google::protobuf::Timestamp& time) {
  return FromWallTime(absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos()));
}

// How far one task brings its job: in its worker's queue it still waits for its turn.
v1::Job::State StateOf(const Task& task) {
  bool succeeded = task.state == TaskState::kDone && task.result.ok();
  if (succeeded || task.begin_time != SteadyTime()) return v1::Job::STATE_RUNNING;
  bool placed = task.state == TaskState::kPreparing || task.state == TaskState::kDispatched;
  return placed ? v1::Job::STATE_SCHEDULED : v1::Job::STATE_QUEUED;
}

}  // namespace

bool Jobs::IsFinal(v1::Job::State state) {
  return state == v1::Job::STATE_SUCCEEDED || state == v1::Job::STATE_FAILED ||
         state == v1::Job::STATE_CANCELLED;
}

void Jobs::View::WriteTo(v1::Job* job) const {
  *job = *asked;
  job->MergeFrom(*now);
  OmittedInJobs().Fit(job);
}

v1::Job Jobs::View::Write() const {
  v1::Job job;
  WriteTo(&job);
  return job;
}

absl::StatusOr<v1::Job> Jobs::Create(const TenantId& tenant, const v1::CreateJobRequest& request) {
  uint64_t durable_number = 0;
  auto job = Accept(tenant, request, &durable_number);
  if (!job.ok()) return job.status();
  // Without our lock, so that concurrent jobs are written together with this one.
  if (durable_number != 0) core_->durability->Await(durable_number);
  return job->Write();
}

absl::StatusOr<Jobs::View> Jobs::Accept(const TenantId& tenant, const v1::CreateJobRequest& request,
                                        uint64_t* durable_number) {
  auto owner = session::ParseParent(request.parent(), tenant, "parent");
  if (!owner.ok()) return owner.status();
  if (*owner != tenant.value)
    return NotFound(v1::ERROR_REASON_JOB_NOT_FOUND, "tenant", absl::StrCat("tenants/", *owner));
  if (absl::Status status = CheckJob(request); !status.ok()) return status;
  Stripe& mine = StripeFor(tenant);
  absl::MutexLock lock(&mine.mutex);
  if (!request.request_id().empty()) {
    auto it = mine.requests.find({tenant, request.request_id()});
    if (it != mine.requests.end()) {
      auto first = mine.jobs.find({tenant, it->second});
      if (first != mine.jobs.end()) {
        *durable_number = first->second->durable_number;
        return ViewOf(*first->second);
      }
    }
  }
  auto place = core_->accounts->EnterJob(tenant);
  if (!place.ok()) return place.status();
  // Random: a number would show one tenant how many jobs the others have made.
  std::string id = request.job_id().empty() ? absl::StrCat("job-", RandomId(16)) : request.job_id();
  if (mine.jobs.count({tenant, id}) > 0) {
    return MakeError(absl::StatusCode::kAlreadyExists, v1::ERROR_REASON_ALREADY_EXISTS,
                     absl::StrCat("the job exists already: ", id), {{"name", id}});
  }
  const int64_t cost = session::kJobControlBytes + session::ControlBytesOf(request.job()) +
                       request.job().operations_size() * session::kJobOperationControlBytes;
  MakeRoom(mine, tenant, cost);
  auto charge = core_->accounts->ControlOf(tenant)->Take(cost);
  if (!charge.ok()) return charge.status();
  auto record = std::make_shared<Record>();
  record->tenant = tenant;
  record->place = *std::move(place);
  record->control = *std::move(charge);
  auto asked = std::make_shared<v1::Job>(request.job());
  KeepWhatWasAsked(asked.get());
  asked->set_name(absl::StrCat("tenants/", tenant.value, "/jobs/", id));
  SetTimestamp(core_->Now(), asked->mutable_create_time());
  record->asked = std::move(asked);
  SteadyTime deadline = request.job().has_timeout()
                            ? core_->Now() + ToDuration(request.job().timeout())
                            : SteadyTime::InfiniteFuture();
  absl::Status status = SubmitAll(record, request.job(), deadline);
  if (!status.ok() || request.validate_only()) {
    Abandon(record);
    if (!status.ok()) return status;
    return ViewOf(*record);
  }
  record->id = id;
  record->request_id = request.request_id();
  record->record = core_->recorder->NewId();
  mine.jobs[{tenant, id}] = record;
  core_->accounts->AddJob(tenant);
  if (!request.request_id().empty()) mine.requests[{tenant, request.request_id()}] = id;
  STRIDE_CRASH_POINT("job.before_acceptance");
  Keep(*record);
  *durable_number = record->durable_number;
  const std::shared_ptr<Task> gate = record->gate;  // which the record may drop at once
  Update(record);
  STRIDE_CRASH_POINT("job.after_acceptance");
  {
    TenantTransaction transaction(*core_, tenant);
    scheduler_->Finish(transaction, gate, absl::OkStatus());
  }
  return ViewOf(*record);
}

absl::Status Jobs::SubmitAll(const RecordPtr& record, const v1::Job& job, SteadyTime deadline) {
  std::string id = absl::StrCat("job-", RandomId(24));
  record->session = absl::StrCat("sessions/", id);
  record->gate = MakePooled<Task>();
  record->gate->tenant = record->tenant;
  record->gate->label = "job";
  record->gate->host_access = true;
  {
    GlobalTransaction transaction(*core_);
    auto session = core_->catalogue.CreateSession(transaction, record->tenant, id, absl::Hours(1),
                                                  core_->Now(),
                                                  INT_MAX);  // the quota `jobs` bounds them
    if (!session.ok()) return session.status();
    ++(*session)->num_pins;
    core_->recorder->Added(transaction, **session);  // as a job's
    if (absl::Status status = scheduler_->Enqueue(transaction, record->gate); !status.ok())
      return status;
  }
  for (int i = 0; i < job.operations_size(); ++i) {
    Operations::Extras extras{
        .observer = ObserverOf(record), .after = record->gate, .priority = job.priority()};
    auto accepted =
        operations_->Accept(record->tenant, record->session, job.operations(i), deadline, extras);
    if (!accepted.ok())
      return PrefixField(accepted.status(), absl::StrCat("job.operations[", i, "]."));
    std::vector<std::shared_ptr<Task>>& others =
        accepted->waits_for_helpers ? record->tasks : record->helpers;
    others.insert(others.end(), accepted->helpers.begin(), accepted->helpers.end());
    record->tasks.push_back(accepted->task);
    record->operations.resize(record->tasks.size(), i);
    const ops::OutputList outputs = ops::OutputsOf(job.operations(i));
    for (size_t j = 0; j < accepted->outputs.size(); ++j) {
      const std::shared_ptr<session::Array>& output = accepted->outputs[j];
      if (!output->name.is_named()) continue;
      record->named_results.push_back(output);
      if (!outputs[j]->existing()) record->made.push_back(output);
    }
  }
  return absl::OkStatus();
}

// Called on engine threads without a transaction; the job may be gone by then. One look covers all
// tasks that change before it.
std::function<void(TaskState)> Jobs::ObserverOf(const RecordPtr& record) {
  auto look = [this, mine = &StripeFor(record->tenant), weak = std::weak_ptr<Record>(record),
               asked = record->look_asked] {
    absl::MutexLock lock(&mine->mutex);
    asked->store(false);  // a later change requests another look
    if (RecordPtr record = weak.lock()) Update(record);
  };
  return [this, look, asked = record->look_asked](TaskState) {
    if (!asked->exchange(true)) core_->executor.Run(look);
  };
}

void Jobs::Save(TenantTransaction& transaction, const Record& record) {
  if (!core_->recorder->on() || record.record == 0) return;
  recovery::JobRecord out;
  out.set_tenant(record.tenant.value);
  out.set_id(record.id);
  out.set_session(record.session);
  // The concatenation of the two serialized messages parses as one job.
  record.asked->AppendToString(out.mutable_job());
  record.now->AppendToString(out.mutable_job());
  for (const auto& task : record.tasks) out.add_tasks(task != nullptr ? task->id : 0);
  out.mutable_operations()->Add(record.operations.begin(), record.operations.end());
  for (const auto& array : record.named_results) out.add_named_results(array->record);
  out.set_request_id(record.request_id);
  out.set_cancel_requested(record.cancel_requested);
  out.set_durable(record.durable);
  out.set_final_time(ToRecord(record.final_time));
  out.set_num_events(record.num_forgotten_events + record.events.size());
  if (!record.events.empty()) {
    // Its job is the record's.
    v1::WatchJobResponse event;
    event.set_sequence(record.events.back().sequence);
    SetTimestamp(DateOf(record.events.back().time), event.mutable_time());
    event.SerializeToString(out.mutable_last_event());
  }
  core_->recorder->Set(transaction, record.tenant, recovery::Kind::kJob, record.record, out);
  if (!IsFinal(record.state())) return;
  core_->recorder->Commit(transaction);  // results that are not written yet would come after
  for (const auto& task : record.tasks) {
    if (task == nullptr) continue;
    core_->recorder->Erase(transaction, record.tenant, recovery::Kind::kTaskResult, task->id);
  }
}

AcceptedJob Jobs::AcceptedOf(const Record& record) {
  AcceptedJob accepted{.tenant = record.tenant,
                       .session = record.session,
                       .id = record.id,
                       .request_id = record.request_id,
                       .row = record.durable};
  accepted.SetJob(*record.asked);
  return accepted;
}

void Jobs::Keep(Record& record) {
  if (core_->durability == nullptr) return;
  const AcceptedJob accepted = AcceptedOf(record);
  GlobalTransaction transaction(*core_);
  record.durable = core_->durability->Accepted(transaction, accepted, &record.durable_number);
}

void Jobs::Forget(GlobalTransaction& transaction, const Record& record) {
  if (core_->durability != nullptr)
    core_->durability->Forgotten(transaction, record.session, record.durable);
  if (record.record == 0) return;
  core_->recorder->Erase(transaction, record.tenant, recovery::Kind::kJob, record.record);
}

void Jobs::Restore(uint64_t id, const recovery::JobRecord& record, const Restored& things) {
  auto restored = std::make_shared<Record>();
  restored->tenant = TenantId{record.tenant()};
  restored->id = record.id();
  restored->session = record.session();
  auto asked = std::make_shared<v1::Job>();
  asked->ParseFromString(record.job());
  auto now = std::make_shared<v1::Job>(*asked);
  KeepWhatChanges(now.get());
  KeepWhatWasAsked(asked.get());
  restored->asked = std::move(asked);
  restored->now = std::move(now);
  restored->request_id = record.request_id();
  restored->cancel_requested = record.cancel_requested();
  restored->final_time = TimeFrom(record.final_time(), SteadyTime::InfiniteFuture());
  restored->record = id;
  if (!IsFinal(restored->state())) restored->place = core_->accounts->RestoreJob(restored->tenant);
  v1::WatchJobResponse last;
  if (record.num_events() > 0 && last.ParseFromString(record.last_event())) {
    restored->num_forgotten_events = record.num_events() - 1;
    restored->events.push_back({last.sequence(), TimeOf(last.time()), restored->now});
  }
  for (uint64_t array_id : record.named_results()) {
    auto array = things.arrays.find(array_id);
    if (array != things.arrays.end()) restored->named_results.push_back(array->second);
  }
  Stripe& mine = StripeFor(restored->tenant);
  absl::MutexLock lock(&mine.mutex);
  GlobalTransaction transaction(*core_);
  for (uint64_t task_id : record.tasks()) {
    auto unfinished = things.unfinished.find(task_id);
    auto result = things.results.find(task_id);
    std::shared_ptr<Task> task;
    if (unfinished != things.unfinished.end()) {
      task = unfinished->second;
      task->observer = std::make_unique<const std::function<void(TaskState)>>(ObserverOf(restored));
    } else if (result != things.results.end()) {
      task = FinishedTask(*core_, result->second);
      task->id = task_id;
    }
    restored->tasks.push_back(std::move(task));
    const auto place = static_cast<int>(restored->tasks.size()) - 1;
    restored->operations.push_back(place < record.operations_size() ? record.operations(place)
                                                                    : place);
  }
  for (const auto& task : restored->tasks) {
    if (restored->cancel_requested && task != nullptr) scheduler_->Cancel(transaction, task);
  }
  if (core_->durability != nullptr) RestoreRow(transaction, *restored, record.durable());
  mine.jobs[{restored->tenant, restored->id}] = restored;
  restored->control = core_->accounts->ControlOf(restored->tenant)->Hold(CostOf(*restored));
  if (IsFinal(restored->state())) {
    LetGo(*restored);
    restored->control.MakeDroppable();
    mine.finished.emplace(restored->tenant, restored->final_time, restored->id);
  } else {
    restored->control.Set(restored->control.bytes() +
                          restored->asked->operations_size() * session::kJobOperationControlBytes);
  }
  if (!restored->request_id.empty())
    mine.requests[{restored->tenant, restored->request_id}] = restored->id;
}

void Jobs::RestoreRow(GlobalTransaction& transaction, Record& record, uint64_t row) {
  Durability& durability = *core_->durability;
  bool begun = record.state() > v1::Job::STATE_QUEUED;
  if (durability.Restored(transaction, record.session, row, begun)) {
    record.durable = row;
  } else {
    record.durable = 0;
    record.durable = durability.Accepted(transaction, AcceptedOf(record), &record.durable_number);
  }
  if (!IsFinal(record.state()) || durability.HasEnded(transaction, record.durable)) return;
  durability.JobEnded(transaction, record.session, record.durable, EndOf(record),
                      record.named_results);
}

void Jobs::RestoreFromDisk(const durable::JobRow& row) {
  recovery::DurableJobRecord kept;
  auto record = std::make_shared<Record>();
  auto asked = std::make_shared<v1::Job>();
  if (!kept.ParseFromString(row.accepted) || !asked->ParseFromString(kept.job())) {
    core_->options.log(absl::StrCat("damaged on disk and given up: the row of job ", row.id));
    return;
  }
  KeepWhatWasAsked(asked.get());
  record->asked = std::move(asked);
  record->tenant = TenantId{kept.tenant()};
  record->id = kept.id();
  record->request_id = kept.request_id();
  record->durable = row.id;
  record->cancel_requested = row.cancel_requested;
  record->record = core_->recorder->NewId();
  // Above all that a watcher may have seen of it.
  record->num_forgotten_events = absl::ToUnixSeconds(WallNow());
  Stripe& mine = StripeFor(record->tenant);
  absl::MutexLock lock(&mine.mutex);
  v1::Job end;
  if (!row.ended.empty() && end.ParseFromString(row.ended) && IsFinal(end.state())) {
    KeepWhatChanges(&end);
    record->now = std::make_shared<const v1::Job>(std::move(end));
    record->final_time = TimeOf(record->now->end_time());
    record->session = absl::StrCat("sessions/job-ended-", row.id);
  } else {
    record->place = core_->accounts->RestoreJob(record->tenant);
    if (absl::Status status = Rerun(record, row); !status.ok()) EndUnrun(record, status);
  }
  mine.jobs[{record->tenant, record->id}] = record;
  if (!record->request_id.empty()) mine.requests[{record->tenant, record->request_id}] = record->id;
  record->control = core_->accounts->ControlOf(record->tenant)
                        ->Hold(CostOf(*record) + record->asked->operations_size() *
                                                     session::kJobOperationControlBytes);
  if (IsFinal(record->state())) {
    GlobalTransaction transaction(*core_);
    record->events.push_back({record->num_forgotten_events + 1, core_->Now(), record->now});
    record->control.Set(CostOf(*record));
    record->control.MakeDroppable();
    mine.finished.emplace(record->tenant, record->final_time, record->id);
    Save(transaction, *record);
    return;
  }
  const std::shared_ptr<Task> gate = record->gate;
  Update(record);
  if (gate == nullptr) return;
  GlobalTransaction transaction(*core_);
  scheduler_->Finish(transaction, gate, absl::OkStatus());
}

// Our lock is held.
absl::Status Jobs::Rerun(const RecordPtr& record, const durable::JobRow& row) {
  if (row.cancel_requested)
    return MakeError(absl::StatusCode::kCancelled, v1::ERROR_REASON_CANCELLED,
                     "the job was cancelled before the machine was off");
  if (row.changed_kept) {
    return MakeError(absl::StatusCode::kAborted, v1::ERROR_REASON_WORKER_LOST,
                     "the machine was off before the job had ended, and arrays have changed since "
                     "it used them: it cannot run once more");
  }
  recovery::DurableJobRecord kept;
  kept.ParseFromString(row.accepted);
  {
    GlobalTransaction transaction(*core_);
    absl::Status status = core_->durability->PrepareRerun(transaction, record->tenant, kept);
    if (!status.ok()) return status;
  }
  const v1::Job& job = *record->asked;
  SteadyTime deadline = job.has_timeout() ? TimeOf(job.create_time()) + ToDuration(job.timeout())
                                          : SteadyTime::InfiniteFuture();
  absl::Status status = SubmitAll(record, job, deadline);
  if (!status.ok()) {
    Abandon(record);
    record->tasks.clear();
    record->operations.clear();
    record->helpers.clear();
    record->named_results.clear();
    record->gate = nullptr;
    return MakeError(
        absl::StatusCode::kDataLoss, v1::ERROR_REASON_DATA_LOST,
        absl::StrCat("the job cannot run again after the machine was off: ", status.message()));
  }
  Keep(*record);
  return absl::OkStatus();
}

// As if its one operation had ended so. Our lock is held.
void Jobs::EndUnrun(const RecordPtr& record, const absl::Status& status) {
  if (record->session.empty()) record->session = absl::StrCat("sessions/job-", RandomId(24));
  auto task = MakePooled<Task>();
  task->state = TaskState::kDone;
  task->result = status;
  task->end_time = core_->Now();
  record->tasks = {std::move(task)};
  record->operations = {0};
}

void Jobs::UpdateAll() {
  for (Stripe& stripe : stripes_) {
    absl::MutexLock lock(&stripe.mutex);
    // An ended job may be dropped at any time.
    const std::map<std::pair<TenantId, std::string>, RecordPtr> jobs = stripe.jobs;
    for (const auto& [key, record] : jobs) Update(record);
  }
}

void Jobs::Abandon(const RecordPtr& record) {
  {
    TenantTransaction transaction(*core_, record->tenant);
    // The job was never accepted, so no result is kept.
    for (const auto& task : record->tasks) {
      if (task == nullptr) continue;
      task->of_job = false;
      core_->recorder->Erase(transaction, record->tenant, recovery::Kind::kTaskResult,
                             task->id);  // the record of a task that ended at once
    }
    const absl::Status why = absl::CancelledError("the job was not accepted");
    for (const auto& task : record->helpers) scheduler_->Finish(transaction, task, why);
    for (const auto& task : record->tasks) {
      if (task != nullptr) scheduler_->Finish(transaction, task, why);
    }
    if (record->gate != nullptr) scheduler_->Finish(transaction, record->gate, absl::OkStatus());
  }
  {
    // Before its session: a successor knows by that what is still to be abandoned.
    GlobalTransaction transaction(*core_);
    for (const auto& array : record->made) {
      auto name = session::ParseArrayName(array->name.ToString(), "name");
      if (name.ok())
        core_->catalogue.RemoveArray(transaction, record->tenant, *name, core_->Now())
            .IgnoreError();
    }
  }
  EndSession(core_, scheduler_, record->tenant, record->session).IgnoreError();
}

void Jobs::CancelAll(const Record& record) {
  scheduler_->CancelAll(record.tenant, record.helpers);
  scheduler_->CancelAll(record.tenant, record.tasks);
}

// It never goes back, though work that a worker's death undid may wait again.
Jobs::Progress Jobs::Look(TenantTransaction& transaction, const Record& record) const {
  Progress seen;
  v1::Job::State state = std::max(record.state(), v1::Job::STATE_QUEUED);
  for (const auto& helper : record.helpers) state = std::max(state, StateOf(*helper));
  for (size_t i = 0; i < record.tasks.size(); ++i) {
    const auto& task = record.tasks[i];
    if (task == nullptr) continue;
    state = std::max(state, StateOf(*task));
    seen.all_done = seen.all_done && task->state == TaskState::kDone;
    if (task->state != TaskState::kDone || task->result.ok()) continue;
    // Reports the first cause. Tasks cancelled because of it may come before it.
    if (seen.error.ok() || (absl::IsCancelled(seen.error) && !absl::IsCancelled(task->result)))
      seen.error =
          PrefixField(task->result, absl::StrCat("job.operations[", record.operations[i], "]."));
  }
  if (seen.all_done) state = seen.error.ok() ? v1::Job::STATE_SUCCEEDED : v1::Job::STATE_FAILED;
  if (seen.all_done && record.cancel_requested && absl::IsCancelled(seen.error))
    state = v1::Job::STATE_CANCELLED;
  seen.state = state;
  return seen;
}

v1::Job Jobs::DescribeWork(TenantTransaction& transaction, const Record& record) const {
  v1::Job work;
  for (size_t i = 0; i < record.tasks.size(); ++i) {
    const auto& task = record.tasks[i];
    if (task != nullptr && task->state == TaskState::kDone && IsLast(record, i))
      *work.add_timelines() = DescribeTimeline(*core_, *task);
  }
  for (const auto& array : record.named_results)
    *work.add_results() = scheduler::Describe(*core_, *array);
  return work;
}

void Jobs::AddEvent(TenantTransaction& transaction, Record& record, v1::Job now) {
  record.now = std::make_shared<const v1::Job>(std::move(now));
  record.events.push_back(
      {record.num_forgotten_events + record.events.size() + 1, core_->Now(), record.now});
  Save(transaction, record);
}

// Its work is looked at, described and reported in its tenant's transactions: it may have 10,000
// operations.
void Jobs::Update(const RecordPtr& record) {
  while (!IsFinal(record->state())) {
    Progress seen;
    v1::Job work;
    {
      TenantTransaction transaction(*core_, record->tenant);
      seen = Look(transaction, *record);
      if (!seen.all_done && seen.error.ok()) {
        Advance(transaction, *record, seen);
        return;
      }
      if (seen.all_done) work = DescribeWork(transaction, *record);
    }
    if (seen.all_done) {
      End(*record, seen, std::move(work));
      return;
    }
    CancelAll(*record);
    TenantTransaction transaction(*core_, record->tenant);
    seen = Look(transaction, *record);
    if (seen.all_done) continue;  // that was quick
    Advance(transaction, *record, seen);
    return;
  }
}

// It has not ended.
void Jobs::Advance(TenantTransaction& transaction, Record& record, const Progress& seen) {
  if (seen.state == record.state()) return;
  v1::Job now = DescribeWork(transaction, record);
  now.set_state(seen.state);
  AddEvent(transaction, record, std::move(now));
}

void Jobs::AddPrinted(const Record& record, v1::Job* work) const {
  auto id = session::ParseSessionName(record.session, "session");
  if (!id.ok()) return;
  TenantTransaction transaction(*core_, record.tenant);
  auto session = core_->catalogue.FindSession(transaction, record.tenant, *id, core_->Now());
  if (!session.ok()) return;
  PrintedText printed = (*session)->printed.Take(session::PrintedOutput::kMostBytes).printed;
  printed.Truncate(kMostPrinted);
  work->set_printed(std::move(printed.text));
  work->set_dropped_lines(printed.dropped_lines);
}

// All is done, and described. Cut off by the daemon's death it is begun again: until its end is
// written it has not ended, and then a successor sees to what goes to disk.
void Jobs::End(Record& record, const Progress& seen, v1::Job work) {
  AddPrinted(record, &work);
  // A successor may find it gone already.
  EndSession(core_, scheduler_, record.tenant, record.session).IgnoreError();
  STRIDE_CRASH_POINT("job.before_end");
  work.set_state(seen.state);
  if (!seen.error.ok()) SetStatus(seen.error, work.mutable_error());
  {
    TenantTransaction transaction(*core_, record.tenant);
    SetTimestamp(core_->Now(), work.mutable_end_time());
    record.final_time = core_->Now();
    record.place.reset();
    TellEnd(record, seen.error);
    AddEvent(transaction, record, std::move(work));
  }
  STRIDE_CRASH_POINT("job.after_end");
  if (core_->durability != nullptr) {
    std::string end = EndOf(record);
    GlobalTransaction transaction(*core_);
    core_->durability->JobEnded(transaction, record.session, record.durable, std::move(end),
                                record.named_results);
  }
  LetGo(record);
  Stripe& mine = StripeFor(record.tenant);
  mine.mutex.AssertHeld();
  NoteFinished(mine, record);
}

int64_t Jobs::CostOf(const Record& record) {
  int64_t bytes = session::kJobControlBytes + session::ControlBytesOf(*record.asked);
  for (const Record::Event& event : record.events) bytes += session::ControlBytesOf(*event.now);
  return bytes;
}

void Jobs::NoteFinished(Stripe& mine, Record& record) {
  record.control.Set(CostOf(record));
  record.control.MakeDroppable();
  mine.finished.emplace(record.tenant, record.final_time, record.id);
  MakeRoom(mine, record.tenant, 0);
}

// The outcome of its tasks is written down. They hold the arrays that they worked on, and results
// are to go when their names do.
void Jobs::LetGo(Record& record) {
  record.tasks = {};
  record.operations = {};
  record.helpers = {};
  record.named_results = {};
  record.made = {};
  record.gate = nullptr;
}

std::string Jobs::EndOf(const Record& record) {
  v1::Job end = *record.now;
  const v1::Job& asked = *record.asked;
  end.set_name(asked.name());
  end.set_label(asked.label());
  end.set_priority(asked.priority());
  if (asked.has_timeout()) *end.mutable_timeout() = asked.timeout();
  *end.mutable_create_time() = asked.create_time();
  return Durability::EndOf(end);
}

// The tasks of an operation are adjacent.
bool Jobs::IsLast(const Record& record, size_t task) {
  return task + 1 == record.tasks.size() || record.operations[task + 1] != record.operations[task];
}

void Jobs::TellEnd(const Record& record, const absl::Status& outcome) const {
  if (!core_->options.job_ended) return;
  JobEnd end{.tenant = record.tenant, .job = record.name(), .outcome = outcome};
  std::set<int> devices;
  for (size_t i = 0; i < record.tasks.size(); ++i) {
    const auto& task = record.tasks[i];
    if (task == nullptr) continue;
    end.num_operations += IsLast(record, i);
    end.device_seconds += task->run_seconds;
    if (task->ran_on_device >= 0) devices.insert(task->ran_on_device);
  }
  for (int device : devices) {
    absl::StrAppend(&end.devices, end.devices.empty() ? "" : ",", "devices/",
                    core_->broker->devices()[device].id());
  }
  core_->options.job_ended(end);
}

absl::StatusOr<Jobs::RecordPtr> Jobs::Find(const Stripe& stripe, const TenantId& tenant,
                                           const std::string& name) {
  auto parsed = session::ParseTenantResource(name, "jobs", "name");
  if (!parsed.ok()) return parsed.status();
  auto it = stripe.jobs.find({tenant, parsed->id});
  if (it == stripe.jobs.end() || parsed->tenant != tenant.value)
    return NotFound(v1::ERROR_REASON_JOB_NOT_FOUND, "job", name);
  return it->second;
}

absl::StatusOr<v1::Job> Jobs::Get(const TenantId& tenant, const std::string& name) {
  View view;
  {
    Stripe& mine = StripeFor(tenant);
    absl::MutexLock lock(&mine.mutex);
    auto record = Find(mine, tenant, name);
    if (!record.ok()) return record.status();
    view = ViewOf(**record);
  }
  return view.Write();
}

absl::StatusOr<v1::ListJobsResponse> Jobs::List(const TenantId& tenant,
                                                const v1::ListJobsRequest& request) {
  auto owner = session::ParseParent(request.parent(), tenant, "parent");
  if (!owner.ok()) return owner.status();
  if (*owner != tenant.value)
    return NotFound(v1::ERROR_REASON_JOB_NOT_FOUND, "tenant", absl::StrCat("tenants/", *owner));
  auto page_size = PageSize(request.page_size());
  if (!page_size.ok()) return page_size.status();
  std::vector<std::pair<std::string, View>> found;
  {
    Stripe& mine = StripeFor(tenant);
    absl::MutexLock lock(&mine.mutex);
    found = EntriesAfter(mine.jobs, tenant, request.page_token(), *page_size,
                         [](const RecordPtr& record) { return ViewOf(*record); });
  }
  v1::ListJobsResponse response;
  WritePage(
      found, *page_size,
      [](const View& view, v1::Job* listed) {
        OmittedInJobLists().CopyWithout(*view.asked, listed);
        listed->MergeFrom(*view.now);
        OmittedInJobs().Fit(listed);
      },
      response.mutable_jobs(), response.mutable_next_page_token());
  return response;
}

absl::StatusOr<v1::Job> Jobs::Cancel(const TenantId& tenant, const std::string& name) {
  uint64_t durable_number = 0;
  auto job = Cancel(tenant, name, &durable_number);
  if (durable_number != 0) core_->durability->Await(durable_number);
  if (!job.ok()) return job.status();
  return job->Write();
}

absl::StatusOr<Jobs::View> Jobs::Cancel(const TenantId& tenant, const std::string& name,
                                        uint64_t* durable_number) {
  Stripe& mine = StripeFor(tenant);
  absl::MutexLock lock(&mine.mutex);
  auto record = Find(mine, tenant, name);
  if (!record.ok()) return record.status();
  if (IsFinal((*record)->state())) return ViewOf(**record);
  (*record)->cancel_requested = true;
  {
    TenantTransaction transaction(*core_, tenant);
    Save(transaction, **record);
  }
  if (core_->durability != nullptr) {
    GlobalTransaction transaction(*core_);
    *durable_number = core_->durability->CancelRequested(transaction, (*record)->durable);
  }
  CancelAll(**record);
  Update(*record);
  return ViewOf(**record);
}

absl::Status Jobs::Delete(const TenantId& tenant, const std::string& name) {
  Stripe& mine = StripeFor(tenant);
  absl::MutexLock lock(&mine.mutex);
  auto record = Find(mine, tenant, name);
  if (!record.ok()) return record.status();
  if (!IsFinal((*record)->state())) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_WRONG_STATE,
                     absl::StrCat("the job has not ended; cancel it first: ", name),
                     {{"name", name}});
  }
  Drop(mine, *record);
  return absl::OkStatus();
}

void Jobs::Drop(Stripe& mine, const RecordPtr& dropped) {
  const RecordPtr record = dropped;  // which may lie where it is erased
  {
    GlobalTransaction transaction(*core_);
    Forget(transaction, *record);
  }
  mine.finished.erase({record->tenant, record->final_time, record->id});
  // Unless that request has made another job since.
  const auto request = mine.requests.find({record->tenant, record->request_id});
  if (request != mine.requests.end() && request->second == record->id) mine.requests.erase(request);
  mine.jobs.erase({record->tenant, record->id});
}

absl::StatusOr<std::vector<v1::WatchJobResponse>> Jobs::NextEvents(const TenantId& tenant,
                                                                   const std::string& name,
                                                                   uint64_t after_sequence,
                                                                   SteadyTime deadline) {
  std::shared_ptr<const v1::Job> asked;
  std::vector<Record::Event> events;
  {
    Stripe& mine = StripeFor(tenant);
    absl::MutexLock lock(&mine.mutex);
    auto record = Find(mine, tenant, name);
    if (!record.ok()) return record.status();
    const Record& job = **record;
    auto num_events = [&] { return job.num_forgotten_events + job.events.size(); };
    auto told = [&] { return num_events() > after_sequence || IsFinal(job.state()); };
    Await(mine.mutex, absl::Condition(&told), deadline);
    asked = job.asked;
    if (after_sequence == 0 && !job.events.empty()) {
      // A fresh watcher gets the present state; what led to it is of no use to it.
      events = {job.events.back()};
    } else if (after_sequence < num_events()) {
      uint64_t skipped = after_sequence - std::min(after_sequence, job.num_forgotten_events);
      events.assign(job.events.begin() + static_cast<ptrdiff_t>(skipped), job.events.end());
    }
  }
  std::vector<v1::WatchJobResponse> responses;
  for (const Record::Event& event : events) {
    v1::WatchJobResponse& response = responses.emplace_back();
    response.set_sequence(event.sequence);
    SetTimestamp(DateOf(event.time), response.mutable_time());
    response.set_state(event.now->state());
    View{asked, event.now}.WriteTo(response.mutable_job());
  }
  return responses;
}

void Jobs::Retire(SteadyTime now) {
  for (Stripe& stripe : stripes_) {
    absl::MutexLock lock(&stripe.mutex);
    for (auto it = stripe.finished.begin(); it != stripe.finished.end();) {
      const TenantId tenant = std::get<0>(*it);
      // The tenant's first ended first.
      while (it != stripe.finished.end() && std::get<0>(*it) == tenant &&
             std::get<1>(*it) + core_->options.job_retention < now) {
        const RecordPtr record = stripe.jobs.at({tenant, std::get<2>(*it)});
        Drop(stripe, record);
        it = stripe.finished.lower_bound({tenant, SteadyTime::InfinitePast(), ""});
      }
      // The next tenant's; no id begins with this character.
      it = stripe.finished.upper_bound({tenant, SteadyTime::InfiniteFuture(), "\x7f"});
    }
  }
}

void Jobs::MakeRoom(const TenantId& tenant) {
  Stripe& mine = StripeFor(tenant);
  absl::MutexLock lock(&mine.mutex);
  core_->accounts->ControlOf(tenant)->RoomMade();
  MakeRoom(mine, tenant, 0);
}

void Jobs::MakeRoom(Stripe& mine, const TenantId& tenant, int64_t bytes) {
  const std::shared_ptr<session::ControlAccount> account = core_->accounts->ControlOf(tenant);
  while (account->Excess(bytes) > 0) {
    auto first = mine.finished.lower_bound({tenant, SteadyTime::InfinitePast(), ""});
    if (first == mine.finished.end() || std::get<0>(*first) != tenant) return;
    const RecordPtr record = mine.jobs.at({tenant, std::get<2>(*first)});
    Drop(mine, record);
  }
}

}  // namespace stride::scheduler
