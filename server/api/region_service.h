#pragma once

#include <string>

#include "server/api/call.h"
#include "server/scheduler/engine.h"
#include "stride/v1/region_service.grpc.pb.h"

namespace stride::api {

// The adapter of RegionService: decode, call, encode, and the name of the socket.
class RegionServiceAdapter final : public v1::RegionService::Service {
 public:
  // Both must outlive the server.
  RegionServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine)
      : environment_(*environment), engine_(engine) {}

  // Where TicketSocket listens. Before the first call; without it none are made.
  void set_socket_path(std::string path) { socket_path_ = std::move(path); }

  grpc::Status CreateRegion(grpc::ServerContext* context, const v1::CreateRegionRequest* request,
                            v1::CreateRegionResponse* response) override;
  grpc::Status DeleteRegion(grpc::ServerContext* context, const v1::DeleteRegionRequest* request,
                            v1::DeleteRegionResponse* response) override;

 private:
  absl::StatusOr<v1::CreateRegionResponse> Create(Call& call,
                                                  const v1::CreateRegionRequest& request);

  CallEnvironment& environment_;
  scheduler::Engine* const engine_;
  std::string socket_path_;
};

}  // namespace stride::api
