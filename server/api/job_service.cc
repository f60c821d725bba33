#include "server/api/job_service.h"

#include "absl/strings/str_cat.h"
#include "server/api/serve.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/ops/operation_view.h"

namespace stride::api {
namespace {

bool IsFinal(v1::Job::State state) {
  return state == v1::Job::STATE_SUCCEEDED || state == v1::Job::STATE_FAILED ||
         state == v1::Job::STATE_CANCELLED;
}

absl::Status CheckJob(const v1::Job& job) {
  for (int i = 0; i < job.operations_size(); ++i) {
    if (absl::Status status = ops::CheckLists(job.operations(i)); !status.ok()) {
      return PrefixField(status, absl::StrCat("job.operations[", i, "]."));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool JobServiceAdapter::Ended(Call& call, const std::string& name) {
  auto job = jobs_->Get(call.tenant(), name);
  return job.ok() && IsFinal(job->state());
}

absl::Status JobServiceAdapter::Watch(Call& call, const v1::WatchJobRequest& request,
                                      ResponseWriter* writer) {
  uint64_t sequence = request.after_sequence();
  for (;;) {
    SteadyTime slice = Now() + kPollInterval;
    auto events = jobs_->NextEvents(call.tenant(), request.name(), sequence, slice);
    if (!events.ok() && !absl::IsDeadlineExceeded(events.status())) return events.status();
    // No new event: the wait has ended, or a final job has no further event.
    if (events.ok() && events->empty() && Now() < slice && Ended(call, request.name())) {
      return absl::OkStatus();
    }
    if (events.ok()) {
      for (const v1::WatchJobResponse& event : *events) {
        if (!writer->Write(event)) return call.EndOfWait();
        sequence = event.sequence();
        if (IsFinal(event.state())) return absl::OkStatus();
      }
    }
    if (call.cancelled()) return call.EndOfWait();
    if (call.stopping()) return StoppingError();
  }
}

void JobServiceAdapter::AddMethods() {
  Unary<v1::CreateJobRequest, v1::CreateJobResponse>(
      "JobService/CreateJob", kContentRequest,
      [this](Call& call, const auto& request, auto* response) {
        if (absl::Status status = CheckJob(request.job()); !status.ok()) return status;
        audit::Record* record = call.Audit();
        absl::Status rate = call.AwaitUploadRate(accounts_->UploadDelay(call.tenant()));
        if (!rate.ok()) return rate;
        absl::Status status = Into(jobs_->Create(call.tenant(), request), response->mutable_job());
        if (record != nullptr) record->resource = response->job().name();
        return status;
      });
  Unary<v1::GetJobRequest, v1::GetJobResponse>(
      "JobService/GetJob", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(jobs_->Get(call.tenant(), request.name()), response->mutable_job());
      });
  Unary<v1::ListJobsRequest, v1::ListJobsResponse>(
      "JobService/ListJobs", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(jobs_->List(call.tenant(), request), response);
      });
  Unary<v1::CancelJobRequest, v1::CancelJobResponse>(
      "JobService/CancelJob", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(jobs_->Cancel(call.tenant(), request.name()), response->mutable_job());
      });
  Unary<v1::DeleteJobRequest, v1::DeleteJobResponse>(
      "JobService/DeleteJob", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return jobs_->Delete(call.tenant(), request.name());
      });
  Responses<v1::WatchJobRequest>("JobService/WatchJob", kControlRequest,
                                 [this](Call& call, const auto& request, ResponseWriter* writer) {
                                   return Watch(call, request, writer);
                                 });
}

}  // namespace stride::api
