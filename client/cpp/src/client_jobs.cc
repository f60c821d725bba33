#include <random>

#include "client/cpp/src/call.h"
#include "client/cpp/src/convert.h"
#include "client/cpp/src/core.h"
#include "client/cpp/src/operation_impl.h"
#include "client/cpp/src/status.h"
#include "stride/client.h"
#include "stride/v1/job_service.grpc.pb.h"

namespace stride {
namespace {

// A random (version 4) UUID.
std::string NewRequestId() {
  std::random_device random;
  static constexpr char kHex[] = "0123456789abcdef";
  std::string id = "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx";
  for (char& c : id) {
    const unsigned bits = random();
    if (c == 'x') c = kHex[bits & 15];
    if (c == 'y') c = kHex[8 | (bits & 3)];
  }
  return id;
}

std::unique_ptr<v1::JobService::Stub> Stub(internal::Core& core) {
  return v1::JobService::NewStub(core.channels.control());
}

}  // namespace

const char* Name(Job::State state) {
  switch (state) {
    case Job::State::kUnspecified:
      return "UNSPECIFIED";
    case Job::State::kQueued:
      return "QUEUED";
    case Job::State::kScheduled:
      return "SCHEDULED";
    case Job::State::kRunning:
      return "RUNNING";
    case Job::State::kSucceeded:
      return "SUCCEEDED";
    case Job::State::kFailed:
      return "FAILED";
    case Job::State::kCancelled:
      return "CANCELLED";
  }
  return "UNKNOWN";
}

Result<Job> Client::CreateJob(const JobSpec& spec, const CallOptions& options) {
  v1::CreateJobRequest request;
  request.set_job_id(spec.id);
  request.set_request_id(spec.request_id.empty() ? NewRequestId() : spec.request_id);
  request.set_validate_only(spec.validate_only);
  request.mutable_job()->set_label(spec.label);
  request.mutable_job()->set_priority(spec.priority);
  if (spec.timeout.count() != 0)
    internal::ToProto(spec.timeout, request.mutable_job()->mutable_timeout());
  for (const auto& operation : spec.operations) {
    if (operation.impl().error) return *operation.impl().error;
    *request.mutable_job()->add_operations() = operation.impl().message;
  }
  internal::Call call(options, core_->default_timeout);
  v1::CreateJobResponse response;
  if (auto status = Stub(*core_)->CreateJob(call.context(), request, &response); !status.ok()) {
    return internal::ToError(status);
  }
  return internal::FromProto(response.job());
}

Result<Job> Client::GetJob(const std::string& name, const CallOptions& options) {
  internal::Call call(options, core_->default_timeout);
  v1::GetJobRequest request;
  request.set_name(name);
  v1::GetJobResponse response;
  if (auto status = Stub(*core_)->GetJob(call.context(), request, &response); !status.ok()) {
    return internal::ToError(status);
  }
  return internal::FromProto(response.job());
}

Result<std::vector<Job>> Client::ListJobs(const CallOptions& options) {
  std::vector<Job> jobs;
  v1::ListJobsRequest request;
  request.set_page_size(1000);
  do {
    internal::Call call(options, core_->default_timeout);
    v1::ListJobsResponse response;
    if (auto status = Stub(*core_)->ListJobs(call.context(), request, &response); !status.ok()) {
      return internal::ToError(status);
    }
    for (const auto& job : response.jobs()) jobs.push_back(internal::FromProto(job));
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return jobs;
}

Result<void> Client::WatchJob(const std::string& name,
                              const std::function<bool(const Job&)>& on_change,
                              const CallOptions& options) {
  internal::Call call(options, core_->default_timeout);
  v1::WatchJobRequest request;
  request.set_name(name);
  auto stub = Stub(*core_);
  auto stream = stub->WatchJob(call.context(), request);
  bool wanted = true;
  for (v1::WatchJobResponse response; wanted && stream->Read(&response);) {
    wanted = on_change(internal::FromProto(response.job()));
  }
  if (!wanted) call.context()->TryCancel();
  const grpc::Status status = stream->Finish();
  if (!wanted || status.ok()) return {};
  return internal::ToError(status);
}

Result<Job> Client::CancelJob(const std::string& name, const CallOptions& options) {
  internal::Call call(options, core_->default_timeout);
  v1::CancelJobRequest request;
  request.set_name(name);
  v1::CancelJobResponse response;
  if (auto status = Stub(*core_)->CancelJob(call.context(), request, &response); !status.ok()) {
    return internal::ToError(status);
  }
  return internal::FromProto(response.job());
}

Result<void> Client::DeleteJob(const std::string& name, const CallOptions& options) {
  internal::Call call(options, core_->default_timeout);
  v1::DeleteJobRequest request;
  request.set_name(name);
  v1::DeleteJobResponse response;
  if (auto status = Stub(*core_)->DeleteJob(call.context(), request, &response); !status.ok()) {
    return internal::ToError(status);
  }
  return {};
}

}  // namespace stride
