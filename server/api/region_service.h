#pragma once

#include <string>

#include "server/api/call.h"
#include "server/api/raw_methods.h"
#include "server/scheduler/service/region_service.h"
#include "stride/v1/region_service.grpc.pb.h"

namespace stride::api {

// The adapter of RegionService: decode, call, encode, and the name of the socket.
class RegionServiceAdapter final : public RawService<v1::RegionService::Service> {
 public:
  // Both must outlive the server.
  RegionServiceAdapter(CallEnvironment* environment, scheduler::RegionService* regions)
      : RawService(environment), regions_(regions) {
    AddMethods();
  }

  // Where TicketSocket listens. Before the first call; without it no memory is shared, and without
  // `share_regions` no regions are made.
  void set_socket_path(std::string path, bool share_regions) {
    socket_path_ = std::move(path);
    share_regions_ = share_regions;
  }

 private:
  void AddMethods();
  absl::StatusOr<v1::CreateRegionResponse> Create(Call& call,
                                                  const v1::CreateRegionRequest& request);
  absl::StatusOr<v1::MapArrayResponse> Map(Call& call, const v1::MapArrayRequest& request);

  scheduler::RegionService* const regions_;
  std::string socket_path_;
  bool share_regions_ = false;
};

}  // namespace stride::api
