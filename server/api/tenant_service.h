#pragma once

#include "server/api/call.h"
#include "server/scheduler/engine.h"
#include "stride/v1/tenant_service.grpc.pb.h"

namespace stride::api {

// The adapter of TenantService: nothing but call, encode.
class TenantServiceAdapter final : public v1::TenantService::Service {
 public:
  // Both must outlive the server.
  TenantServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine)
      : environment_(*environment), engine_(engine) {}

  grpc::Status GetUsage(grpc::ServerContext* context, const v1::GetUsageRequest* request,
                        v1::GetUsageResponse* response) override;

 private:
  CallEnvironment& environment_;
  scheduler::Engine* const engine_;
};

}  // namespace stride::api
