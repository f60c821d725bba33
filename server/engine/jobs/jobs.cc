#include "server/engine/jobs/jobs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/crash_point.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/base/random_id.h"
#include "server/engine/arrays/array_persister.h"
#include "server/engine/operations/resolve_operation.h"
#include "server/engine/persistence/answer.h"
#include "server/engine/persistence/describe.h"
#include "server/engine/persistence/journal_writer.h"
#include "server/recovery/records.pb.h"
#include "server/session/control_cost.h"
#include "server/session/resource_name.h"

namespace stride::engine {
namespace {

constexpr int kMaxOperations = 10000;
constexpr size_t kMaxLabel = 256;

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
  if (!request.job_id().empty()) {
    if (absl::Status status = kJobs.CheckId(request.job_id()); !status.ok()) return status;
  }
  if (absl::Status status = CheckPriority(request.job().priority(), "job.priority"); !status.ok())
    return status;
  if (request.request_id().size() > 64) {
    return InvalidField(v1::ERROR_REASON_INVALID_FIELD, "request_id", "a UUID has 36 characters");
  }
  for (int i = 0; i < request.job().operations_size(); ++i) {
    for (const auto& output : request.job().operations(i).outputs()) {
      if (!output.inline_result()) continue;
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD,
                          absl::StrCat("job.operations[", i, "].outputs"),
                          "a job has no reply to carry inline results; name "
                          "them, or use handles for temporaries");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::Job> Jobs::Create(const TenantId& tenant, const v1::CreateJobRequest& request) {
  uint64_t durable_number = 0;
  auto job = Accept(tenant, request, &durable_number);
  if (!job.ok()) return job.status();
  // Without the jobs' lock, so that concurrent jobs are written together with
  // this one.
  if (durable_number != 0) core_->array_persister->Await(durable_number);
  return job->Write();
}

absl::StatusOr<JobView> Jobs::Accept(const TenantId& tenant, const v1::CreateJobRequest& request,
                                     uint64_t* durable_number) {
  if (absl::Status status = kJobs.CheckParent(request.parent(), tenant); !status.ok())
    return status;
  if (absl::Status status = CheckJob(request); !status.ok()) return status;
  JobTable::Partition& mine = table_.Of(tenant);
  absl::MutexLock lock(&mine.mutex);
  if (const JobPtr first = JobTable::FindRequest(mine, tenant, request.request_id())) {
    *durable_number = first->durable_number;
    return first->view();
  }
  auto place = core_->accounts->EnterJob(tenant);
  if (!place.ok()) return place.status();
  // Random: a number would show one tenant how many jobs the others have made.
  std::string id = request.job_id().empty() ? absl::StrCat("job-", RandomId(16)) : request.job_id();
  if (mine.jobs.Find(tenant, id) != nullptr) return kJobs.AlreadyExists(id);
  const int64_t cost = session::kJobControlBytes + session::ControlBytesOf(request.job()) +
                       request.job().operations_size() * session::kJobOperationControlBytes;
  table_.MakeRoom(mine, tenant, cost);
  auto charge = core_->accounts->ControlOf(tenant)->Take(cost);
  if (!charge.ok()) return charge.status();
  auto job = std::make_shared<JobRecord>();
  job->tenant = tenant;
  job->place = *std::move(place);
  job->control = *std::move(charge);
  auto asked = std::make_shared<v1::Job>(request.job());
  KeepWhatWasAsked(asked.get());
  asked->set_name(kJobs.NameOf(tenant, id));
  SetTimestamp(core_->Now(), asked->mutable_create_time());
  job->asked = std::move(asked);
  SteadyTime deadline = request.job().has_timeout()
                            ? core_->Now() + ToDuration(request.job().timeout())
                            : SteadyTime::InfiniteFuture();
  absl::Status status = submission_.SubmitAll(job, request.job(), deadline);
  if (!status.ok() || request.validate_only()) {
    submission_.Abandon(job);
    if (!status.ok()) return status;
    return job->view();
  }
  job->id = id;
  job->request_id = request.request_id();
  job->record = core_->journal_writer->NewId();
  JobTable::Add(mine, job);
  core_->accounts->AddJob(tenant);
  STRIDE_CRASH_POINT("job.before_acceptance");
  Keep(*job);
  *durable_number = job->durable_number;
  const std::shared_ptr<Task> gate = job->gate;  // which the job may drop at once
  tracker_.Update(job);
  STRIDE_CRASH_POINT("job.after_acceptance");
  submission_.Open(tenant, gate);
  return job->view();
}

void Jobs::Keep(JobRecord& job) {
  if (core_->array_persister == nullptr) return;
  recovery::DurableJobRecord accepted = AcceptedOf(job);
  GlobalTransaction transaction(*core_);
  job.durable = core_->array_persister->Accepted(transaction, job.session, job.durable,
                                                 std::move(accepted), &job.durable_number);
}

void Jobs::UpdateAll() {
  for (JobTable::Partition& mine : table_.partitions()) {
    absl::MutexLock lock(&mine.mutex);
    std::vector<JobPtr> jobs;  // an ended job may be dropped at any time
    mine.jobs.ForEach([&jobs](const std::string&, const JobPtr& job) { jobs.push_back(job); });
    for (const JobPtr& job : jobs) tracker_.Update(job);
  }
}

absl::StatusOr<v1::Job> Jobs::Get(const TenantId& tenant, const std::string& name) {
  JobView view;
  {
    JobTable::Partition& mine = table_.Of(tenant);
    absl::MutexLock lock(&mine.mutex);
    auto job = JobTable::Find(mine, tenant, name);
    if (!job.ok()) return job.status();
    view = (*job)->view();
  }
  return view.Write();
}

absl::StatusOr<v1::ListJobsResponse> Jobs::List(const TenantId& tenant,
                                                const v1::ListJobsRequest& request) {
  v1::ListJobsResponse response;
  auto entries = [&](const std::string& token, int page_size) {
    JobTable::Partition& mine = table_.Of(tenant);
    absl::MutexLock lock(&mine.mutex);
    return mine.jobs.PageAfter(tenant, token, page_size,
                               [](const JobPtr& job) { return job->view(); });
  };
  auto write = [](const JobView& view, v1::Job* listed) {
    static const OmittedFields kOmitted({"operations"});
    kOmitted.CopyWithout(*view.asked, listed);
    listed->MergeFrom(*view.now);
    JobView::Fit(listed);
  };
  absl::Status status = ListResources(kJobs, tenant, request, entries, write,
                                      response.mutable_jobs(), response.mutable_next_page_token());
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::Job> Jobs::Cancel(const TenantId& tenant, const std::string& name) {
  uint64_t durable_number = 0;
  auto job = Cancel(tenant, name, &durable_number);
  if (durable_number != 0) core_->array_persister->Await(durable_number);
  if (!job.ok()) return job.status();
  return job->Write();
}

absl::StatusOr<JobView> Jobs::Cancel(const TenantId& tenant, const std::string& name,
                                     uint64_t* durable_number) {
  JobTable::Partition& mine = table_.Of(tenant);
  absl::MutexLock lock(&mine.mutex);
  auto found = JobTable::Find(mine, tenant, name);
  if (!found.ok()) return found.status();
  JobRecord& job = **found;
  if (IsFinal(job.state())) return job.view();
  job.cancel_requested = true;
  {
    TenantTransaction transaction(*core_, tenant);
    tracker_.Save(transaction, job);
  }
  if (core_->array_persister != nullptr) {
    GlobalTransaction transaction(*core_);
    *durable_number = core_->array_persister->CancelRequested(transaction, job.durable);
  }
  tracker_.CancelAll(job);
  tracker_.Update(*found);
  return job.view();
}

absl::Status Jobs::Delete(const TenantId& tenant, const std::string& name) {
  JobTable::Partition& mine = table_.Of(tenant);
  absl::MutexLock lock(&mine.mutex);
  auto found = JobTable::Find(mine, tenant, name);
  if (!found.ok()) return found.status();
  if (!IsFinal((*found)->state())) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_WRONG_STATE,
                     absl::StrCat("the job has not ended; cancel it first: ", name),
                     {{"name", name}});
  }
  table_.Drop(mine, *found);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::WatchJobResponse>> Jobs::NextEvents(const TenantId& tenant,
                                                                   const std::string& name,
                                                                   uint64_t after_sequence,
                                                                   SteadyTime deadline) {
  std::shared_ptr<const v1::Job> asked;
  std::vector<JobRecord::Event> events;
  {
    JobTable::Partition& mine = table_.Of(tenant);
    absl::MutexLock lock(&mine.mutex);
    auto found = JobTable::Find(mine, tenant, name);
    if (!found.ok()) return found.status();
    const JobRecord& job = **found;
    auto has_event = [&] { return job.num_events() > after_sequence || IsFinal(job.state()); };
    Await(mine.mutex, absl::Condition(&has_event), deadline);
    asked = job.asked;
    if (after_sequence == 0 && !job.events.empty()) {
      // A new watcher gets the present state only.
      events = {job.events.back()};
    } else if (after_sequence < job.num_events()) {
      uint64_t skipped = after_sequence - std::min(after_sequence, job.num_forgotten_events);
      events.assign(job.events.begin() + static_cast<ptrdiff_t>(skipped), job.events.end());
    }
  }
  std::vector<v1::WatchJobResponse> responses;
  for (const JobRecord::Event& event : events) {
    v1::WatchJobResponse& response = responses.emplace_back();
    response.set_sequence(event.sequence);
    SetTimestamp(DateOf(event.time), response.mutable_time());
    response.set_state(event.now->state());
    JobView{asked, event.now}.WriteTo(response.mutable_job());
  }
  return responses;
}

}  // namespace stride::engine
