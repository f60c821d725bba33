#include "server/api/tenant_service.h"

#include "server/api/serve.h"

namespace stride::api {

void TenantServiceAdapter::AddMethods() {
  Unary<v1::GetUsageRequest, v1::GetUsageResponse>(
      "TenantService/GetUsage", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        *response->mutable_usage() = tenants_->GetUsage(call.tenant());
        return absl::OkStatus();
      });
}

}  // namespace stride::api
