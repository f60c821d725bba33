#pragma once

#include <string>

#include "server/api/call.h"
#include "server/api/local/local_connections.h"
#include "server/api/raw_methods.h"
#include "stride/v1/local_service.grpc.pb.h"

namespace stride::api {

// The adapter of LocalService.
class LocalServiceAdapter final : public RawService<v1::LocalService::Service> {
 public:
  // Both arguments must outlive the server.
  LocalServiceAdapter(CallEnvironment* environment, LocalConnections* connections)
      : RawService(environment), connections_(*connections) {
    AddMethods();
  }

  // Path of the LocalListener. Set before the first call; without it there are no connections.
  void set_socket_path(std::string path) { socket_path_ = std::move(path); }

 private:
  void AddMethods();
  absl::StatusOr<v1::ConnectResponse> IssueToken(const Call& call);

  LocalConnections& connections_;
  std::string socket_path_;
};

}  // namespace stride::api
