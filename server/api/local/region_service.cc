#include "server/api/local/region_service.h"

#include "server/api/serve.h"
#include "server/base/error.h"

namespace stride::api {
namespace {

absl::Status OnlyLocally(std::string_view feature) {
  return NotImplemented(feature,
                        "memory is shared over a local connection alone (LocalService), whose "
                        "answers carry its descriptor");
}

}  // namespace

void RegionServiceAdapter::AddMethods() {
  Unary<v1::CreateRegionRequest, v1::CreateRegionResponse>(
      "RegionService/CreateRegion", kControlRequest,
      [](Call&, const auto&, auto*) { return OnlyLocally("regions by gRPC"); });
  Unary<v1::DeleteRegionRequest, v1::DeleteRegionResponse>(
      "RegionService/DeleteRegion", kControlRequest,
      [this](Call& call, const auto& request, auto*) {
        absl::Status status = regions_->Delete(call.tenant(), request.name());
        if (status.ok()) pins_->Drop(request.name());
        return status;
      });
  Unary<v1::MapArrayRequest, v1::MapArrayResponse>(
      "RegionService/MapArray", kControlRequest,
      [](Call&, const auto&, auto*) { return OnlyLocally("mapped arrays by gRPC"); });
}

}  // namespace stride::api
