#include "tests/support/fake_daemon/fake_job_service.h"

namespace stride::testing {
namespace {

grpc::Status NotFound(const std::string& name) {
  return {grpc::StatusCode::NOT_FOUND, "No job " + name};
}

}  // namespace

grpc::Status FakeJobService::CreateJob(grpc::ServerContext*, const v1::CreateJobRequest* request,
                                       v1::CreateJobResponse* response) {
  std::lock_guard lock(mutex_);
  auto [it, first] =
      requests_.try_emplace(request->request_id(), "tenants/default/jobs/" + request->job_id());
  v1::Job& job = jobs_[it->second];
  if (first) {
    job = request->job();
    job.set_name(it->second);
    job.set_state(v1::Job::STATE_QUEUED);
  }
  *response->mutable_job() = job;
  return grpc::Status::OK;
}

grpc::Status FakeJobService::GetJob(grpc::ServerContext*, const v1::GetJobRequest* request,
                                    v1::GetJobResponse* response) {
  std::lock_guard lock(mutex_);
  const auto it = jobs_.find(request->name());
  if (it == jobs_.end()) return NotFound(request->name());
  *response->mutable_job() = it->second;
  return grpc::Status::OK;
}

grpc::Status FakeJobService::WatchJob(grpc::ServerContext*, const v1::WatchJobRequest* request,
                                      grpc::ServerWriter<v1::WatchJobResponse>* writer) {
  std::lock_guard lock(mutex_);
  const auto it = jobs_.find(request->name());
  if (it == jobs_.end()) return NotFound(request->name());
  for (auto state : {v1::Job::STATE_QUEUED, v1::Job::STATE_RUNNING, v1::Job::STATE_SUCCEEDED}) {
    it->second.set_state(state);
    v1::WatchJobResponse response;
    *response.mutable_job() = it->second;
    writer->Write(response);
  }
  return grpc::Status::OK;
}

grpc::Status FakeJobService::CancelJob(grpc::ServerContext*, const v1::CancelJobRequest* request,
                                       v1::CancelJobResponse* response) {
  std::lock_guard lock(mutex_);
  const auto it = jobs_.find(request->name());
  if (it == jobs_.end()) return NotFound(request->name());
  it->second.set_state(v1::Job::STATE_CANCELLED);
  *response->mutable_job() = it->second;
  return grpc::Status::OK;
}

}  // namespace stride::testing
