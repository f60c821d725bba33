// Jobs of FakeDaemon: accepted, reported, never run.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "stride/v1/job_service.grpc.pb.h"

namespace stride::testing {

class FakeJobService : public v1::JobService::Service {
 public:
  // The same request id again returns the first job.
  grpc::Status CreateJob(grpc::ServerContext*, const v1::CreateJobRequest*,
                         v1::CreateJobResponse*) override;
  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest*, v1::GetJobResponse*) override;
  // QUEUED, RUNNING, SUCCEEDED.
  grpc::Status WatchJob(grpc::ServerContext*, const v1::WatchJobRequest*,
                        grpc::ServerWriter<v1::WatchJobResponse>*) override;
  grpc::Status CancelJob(grpc::ServerContext*, const v1::CancelJobRequest*,
                         v1::CancelJobResponse*) override;

 private:
  std::mutex mutex_;
  std::map<std::string, v1::Job> jobs_;          // by name; guarded by mutex_
  std::map<std::string, std::string> requests_;  // request id to name; guarded by mutex_
};

}  // namespace stride::testing
