#pragma once

#include <memory>

#include <grpcpp/channel.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server.h>

#include "server/api/authenticator.h"
#include "server/api/call.h"
#include "server/api/rpc_counters.h"

namespace stride::testing {

// A gRPC server of one adapter, over the one fake that it needs. Calls arrive within this process,
// without sockets; every caller is tenant `default`. Tests of connections, of limits or of several
// services use TestServer.
class AdapterServer {
 public:
  ~AdapterServer();

  // For the adapter.
  api::CallEnvironment* environment() { return &environment_; }
  api::RpcCounters& counters() { return counters_; }
  // Serves the adapter until destruction, and returns a channel to it. Call once.
  std::shared_ptr<grpc::Channel> Serve(std::unique_ptr<grpc::Service> adapter);

 private:
  const std::unique_ptr<api::Authenticator> authenticator_ =
      api::MakeTrustingAuthenticator(/*trust_header=*/false);
  api::RpcCounters counters_;
  api::CallEnvironment environment_{authenticator_.get(), &counters_};
  std::unique_ptr<grpc::Service> adapter_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace stride::testing
