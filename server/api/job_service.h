#pragma once

#include <string>

#include "server/api/call.h"
#include "server/scheduler/engine.h"
#include "stride/v1/job_service.grpc.pb.h"

namespace stride::api {

// The adapter of JobService. A watch holds its thread and looks for the client every 50 ms.
class JobServiceAdapter final : public v1::JobService::Service {
 public:
  // Both must outlive the server.
  JobServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine)
      : environment_(*environment), engine_(engine) {}

  grpc::Status CreateJob(grpc::ServerContext* context, const v1::CreateJobRequest* request,
                         v1::CreateJobResponse* response) override;
  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request,
                      v1::GetJobResponse* response) override;
  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override;
  grpc::Status CancelJob(grpc::ServerContext* context, const v1::CancelJobRequest* request,
                         v1::CancelJobResponse* response) override;
  grpc::Status DeleteJob(grpc::ServerContext* context, const v1::DeleteJobRequest* request,
                         v1::DeleteJobResponse* response) override;
  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::WatchJobResponse>* writer) override;

 private:
  bool Ended(Call& call, const std::string& name);
  absl::Status Watch(Call& call, const v1::WatchJobRequest& request,
                     grpc::ServerWriter<v1::WatchJobResponse>* writer);

  CallEnvironment& environment_;
  scheduler::Engine* const engine_;
};

}  // namespace stride::api
