#pragma once

#include "server/api/call.h"
#include "server/scheduler/engine.h"
#include "stride/v1/kernel_service.grpc.pb.h"

namespace stride::api {

// The adapter of KernelService: nothing but decode, call, encode.
class KernelServiceAdapter final : public v1::KernelService::Service {
 public:
  // Both must outlive the server.
  KernelServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine)
      : environment_(*environment), engine_(engine) {}

  grpc::Status CreateModule(grpc::ServerContext* context, const v1::CreateModuleRequest* request,
                            v1::CreateModuleResponse* response) override;
  grpc::Status GetModule(grpc::ServerContext* context, const v1::GetModuleRequest* request,
                         v1::GetModuleResponse* response) override;
  grpc::Status ListModules(grpc::ServerContext* context, const v1::ListModulesRequest* request,
                           v1::ListModulesResponse* response) override;
  grpc::Status DeleteModule(grpc::ServerContext* context, const v1::DeleteModuleRequest* request,
                            v1::DeleteModuleResponse* response) override;

 private:
  CallEnvironment& environment_;
  scheduler::Engine* const engine_;
};

}  // namespace stride::api
