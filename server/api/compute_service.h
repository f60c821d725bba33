#pragma once

#include "server/api/call.h"
#include "server/scheduler/engine.h"
#include "stride/v1/compute_service.grpc.pb.h"

namespace stride::api {

// The adapter of ComputeService: Execute, each call of which holds its thread and has a second one
// that writes (execute_stream.h). Run is RunServer's.
class ComputeServiceAdapter final
    : public v1::ComputeService::WithAsyncMethod_Run<v1::ComputeService::Service> {
 public:
  // Both must outlive the server.
  ComputeServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine)
      : environment_(*environment), engine_(engine) {}

  grpc::Status Execute(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::ExecuteResponse, v1::ExecuteRequest>* stream) override;

 private:
  CallEnvironment& environment_;
  scheduler::Engine* const engine_;
};

}  // namespace stride::api
