#pragma once

#include <string>

#include "server/api/call.h"
#include "server/api/local_connections.h"
#include "stride/v1/local_service.grpc.pb.h"

namespace stride::api {

// The adapter of LocalService.
class LocalServiceAdapter final : public v1::LocalService::Service {
 public:
  // Both must outlive the server.
  LocalServiceAdapter(CallEnvironment* environment, LocalConnections* connections)
      : environment_(*environment), connections_(*connections) {}

  // Where TicketSocket listens. Before the first call; without it there are no connections.
  void set_socket_path(std::string path) { socket_path_ = std::move(path); }

  grpc::Status Connect(grpc::ServerContext* context, const v1::ConnectRequest* request,
                       v1::ConnectResponse* response) override;

 private:
  absl::StatusOr<v1::ConnectResponse> Invite(const Call& call, const grpc::ServerContext& context);

  CallEnvironment& environment_;
  LocalConnections& connections_;
  std::string socket_path_;
};

}  // namespace stride::api
