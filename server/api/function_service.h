#pragma once

#include "server/api/call.h"
#include "server/scheduler/engine.h"
#include "stride/v1/function_service.grpc.pb.h"

namespace stride::api {

// The adapter of FunctionService: nothing but decode, call, encode.
class FunctionServiceAdapter final : public v1::FunctionService::Service {
 public:
  // Both must outlive the server.
  FunctionServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine)
      : environment_(*environment), engine_(engine) {}

  grpc::Status CreateFunction(grpc::ServerContext* context,
                              const v1::CreateFunctionRequest* request,
                              v1::CreateFunctionResponse* response) override;
  grpc::Status GetFunction(grpc::ServerContext* context, const v1::GetFunctionRequest* request,
                           v1::GetFunctionResponse* response) override;
  grpc::Status ListFunctions(grpc::ServerContext* context, const v1::ListFunctionsRequest* request,
                             v1::ListFunctionsResponse* response) override;
  grpc::Status DeleteFunction(grpc::ServerContext* context,
                              const v1::DeleteFunctionRequest* request,
                              v1::DeleteFunctionResponse* response) override;

 private:
  CallEnvironment& environment_;
  scheduler::Engine* const engine_;
};

}  // namespace stride::api
