#pragma once

#include <string>

#include "server/api/call.h"
#include "server/api/raw_methods.h"
#include "server/scheduler/engine.h"
#include "stride/v1/region_service.grpc.pb.h"

namespace stride::api {

// The adapter of RegionService: decode, call, encode, and the name of the socket.
class RegionServiceAdapter final : public RawService<v1::RegionService::Service> {
 public:
  // Both must outlive the server.
  RegionServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine)
      : RawService(environment), engine_(engine) {
    AddMethods();
  }

  // Where TicketSocket listens. Before the first call; without it none are made.
  void set_socket_path(std::string path) { socket_path_ = std::move(path); }

 private:
  void AddMethods();
  absl::StatusOr<v1::CreateRegionResponse> Create(Call& call,
                                                  const v1::CreateRegionRequest& request);

  scheduler::Engine* const engine_;
  std::string socket_path_;
};

}  // namespace stride::api
