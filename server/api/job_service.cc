#include "server/api/job_service.h"

#include "absl/strings/str_cat.h"
#include "server/api/operation_limits.h"
#include "server/api/serve.h"
#include "server/base/error.h"
#include "server/base/surroundings.h"

namespace stride::api {
namespace {

bool IsFinal(v1::Job::State state) {
  return state == v1::Job::STATE_SUCCEEDED || state == v1::Job::STATE_FAILED ||
         state == v1::Job::STATE_CANCELLED;
}

absl::Status CheckJob(const v1::Job& job) {
  for (int i = 0; i < job.operations_size(); ++i) {
    if (absl::Status status = CheckCounts(job.operations(i)); !status.ok()) {
      return PrefixField(status, absl::StrCat("job.operations[", i, "]."));
    }
  }
  return absl::OkStatus();
}

}  // namespace

grpc::Status JobServiceAdapter::CreateJob(grpc::ServerContext* context,
                                          const v1::CreateJobRequest* request,
                                          v1::CreateJobResponse* response) {
  return Serve(environment_, context, "JobService/CreateJob", [&](Call& call) {
    if (absl::Status status = CheckJob(request->job()); !status.ok()) return status;
    audit::Record* record = call.Audit();
    absl::Status rate = call.AwaitUploadRate(engine_->accounts().UploadDelay(call.tenant()));
    if (!rate.ok()) return rate;
    absl::Status status =
        Into(engine_->CreateJob(call.tenant(), *request), response->mutable_job());
    if (record != nullptr) record->resource = response->job().name();
    return status;
  });
}

grpc::Status JobServiceAdapter::GetJob(grpc::ServerContext* context,
                                       const v1::GetJobRequest* request,
                                       v1::GetJobResponse* response) {
  return Serve(environment_, context, "JobService/GetJob", [&](Call& call) {
    return Into(engine_->GetJob(call.tenant(), request->name()), response->mutable_job());
  });
}

grpc::Status JobServiceAdapter::ListJobs(grpc::ServerContext* context,
                                         const v1::ListJobsRequest* request,
                                         v1::ListJobsResponse* response) {
  return Serve(environment_, context, "JobService/ListJobs", [&](Call& call) {
    return Into(engine_->ListJobs(call.tenant(), *request), response);
  });
}

grpc::Status JobServiceAdapter::CancelJob(grpc::ServerContext* context,
                                          const v1::CancelJobRequest* request,
                                          v1::CancelJobResponse* response) {
  return Serve(environment_, context, "JobService/CancelJob", [&](Call& call) {
    return Into(engine_->CancelJob(call.tenant(), request->name()), response->mutable_job());
  });
}

grpc::Status JobServiceAdapter::DeleteJob(grpc::ServerContext* context,
                                          const v1::DeleteJobRequest* request,
                                          v1::DeleteJobResponse* response) {
  return Serve(environment_, context, "JobService/DeleteJob",
               [&](Call& call) { return engine_->DeleteJob(call.tenant(), request->name()); });
}

grpc::Status JobServiceAdapter::WatchJob(grpc::ServerContext* context,
                                         const v1::WatchJobRequest* request,
                                         grpc::ServerWriter<v1::WatchJobResponse>* writer) {
  return Serve(environment_, context, "JobService/WatchJob",
               [&](Call& call) { return Watch(call, *request, writer); });
}

bool JobServiceAdapter::Ended(Call& call, const std::string& name) {
  auto job = engine_->GetJob(call.tenant(), name);
  return job.ok() && IsFinal(job->state());
}

absl::Status JobServiceAdapter::Watch(Call& call, const v1::WatchJobRequest& request,
                                      grpc::ServerWriter<v1::WatchJobResponse>* writer) {
  uint64_t sequence = request.after_sequence();
  for (;;) {
    SteadyTime slice = Now() + kPollInterval;
    auto events = engine_->NextJobEvents(call.tenant(), request.name(), sequence, slice);
    if (!events.ok() && !absl::IsDeadlineExceeded(events.status())) return events.status();
    // Nothing new: either the wait was over, or a final job has nothing more to tell.
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

}  // namespace stride::api
