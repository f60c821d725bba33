#include "server/api/region_service.h"

#include "server/api/serve.h"
#include "server/base/error.h"

namespace stride::api {

absl::StatusOr<v1::CreateRegionResponse> RegionServiceAdapter::Create(
    Call& call, const v1::CreateRegionRequest& request) {
  if (socket_path_.empty()) {
    return NotImplemented("regions",
                          "this daemon shares no memory with its clients: it listens on no Unix "
                          "socket, or --region-bytes is 0");
  }
  auto response = engine_->CreateRegion(call.tenant(), request);
  if (response.ok()) response->set_socket_path(socket_path_);
  return response;
}

void RegionServiceAdapter::AddMethods() {
  Unary<v1::CreateRegionRequest, v1::CreateRegionResponse>(
      "RegionService/CreateRegion", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        audit::Record* record = call.Audit();
        absl::Status status = Into(Create(call, request), response);
        if (record != nullptr) record->resource = response->region().name();
        return status;
      });
  Unary<v1::DeleteRegionRequest, v1::DeleteRegionResponse>(
      "RegionService/DeleteRegion", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return engine_->DeleteRegion(call.tenant(), request.name());
      });
}

}  // namespace stride::api
