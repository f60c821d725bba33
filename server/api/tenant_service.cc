#include "server/api/tenant_service.h"

#include "server/api/serve.h"

namespace stride::api {

grpc::Status TenantServiceAdapter::GetUsage(grpc::ServerContext* context,
                                            const v1::GetUsageRequest* /*request*/,
                                            v1::GetUsageResponse* response) {
  return Serve(environment_, context, "TenantService/GetUsage", [&](Call& call) {
    *response->mutable_usage() = engine_->GetUsage(call.tenant());
    return absl::OkStatus();
  });
}

}  // namespace stride::api
