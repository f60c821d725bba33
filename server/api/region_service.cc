#include "server/api/region_service.h"

#include "server/api/serve.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

constexpr char kUnixPeer[] = "unix:";

}  // namespace

absl::StatusOr<v1::CreateRegionResponse> RegionServiceAdapter::Create(
    Call& call, const v1::CreateRegionRequest& request) {
  if (socket_path_.empty() || !share_regions_) {
    return NotImplemented("regions",
                          "this daemon shares no memory with its clients: it listens on no Unix "
                          "socket, or --region-bytes is 0");
  }
  auto response = regions_->Create(call.tenant(), request);
  if (response.ok()) response->set_socket_path(socket_path_);
  return response;
}

absl::StatusOr<v1::MapArrayResponse> RegionServiceAdapter::Map(Call& call,
                                                               const v1::MapArrayRequest& request) {
  if (socket_path_.empty())
    return NotImplemented("mapped arrays", "this daemon listens on no Unix socket");
  if (!call.peer().starts_with(kUnixPeer)) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_WRONG_STATE,
                     "memory can be mapped only by a client that is connected by the daemon's Unix "
                     "socket: connect to unix:PATH, or fetch a copy");
  }
  // In slices, since the client may go away while it waits.
  auto response = WaitFor(call, call.deadline(), [&](SteadyTime deadline) {
    return regions_->Map(call.tenant(), request, deadline);
  });
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
        return regions_->Delete(call.tenant(), request.name());
      });
  Unary<v1::MapArrayRequest, v1::MapArrayResponse>(
      "RegionService/MapArray", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        audit::Record* record = call.Audit();
        if (record != nullptr) record->resource = request.name();
        return Into(Map(call, request), response);
      });
}

}  // namespace stride::api
