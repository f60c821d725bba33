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

grpc::Status RegionServiceAdapter::CreateRegion(grpc::ServerContext* context,
                                                const v1::CreateRegionRequest* request,
                                                v1::CreateRegionResponse* response) {
  return Serve(environment_, context, "RegionService/CreateRegion", [&](Call& call) {
    audit::Record* record = call.Audit();
    absl::Status status = Into(Create(call, *request), response);
    if (record != nullptr) record->resource = response->region().name();
    return status;
  });
}

grpc::Status RegionServiceAdapter::DeleteRegion(grpc::ServerContext* context,
                                                const v1::DeleteRegionRequest* request,
                                                v1::DeleteRegionResponse*) {
  return Serve(environment_, context, "RegionService/DeleteRegion",
               [&](Call& call) { return engine_->DeleteRegion(call.tenant(), request->name()); });
}

}  // namespace stride::api
