#pragma once

#include "server/api/call.h"
#include "server/scheduler/engine.h"
#include "stride/v1/compute_service.grpc.pb.h"

namespace stride::api {

// The adapter of ComputeService. Each call holds its thread; Execute has a second one that writes
// (execute_stream.h).
class ComputeServiceAdapter final : public v1::ComputeService::Service {
 public:
  // Both must outlive the server.
  ComputeServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine)
      : environment_(*environment), engine_(engine) {}

  grpc::Status Run(grpc::ServerContext* context, const v1::RunRequest* request,
                   v1::RunResponse* response) override;
  grpc::Status Execute(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::ExecuteResponse, v1::ExecuteRequest>* stream) override;

 private:
  CallEnvironment& environment_;
  scheduler::Engine* const engine_;
};

}  // namespace stride::api
