#include "tests/support/adapter_server.h"

#include <utility>

#include <grpcpp/server_builder.h>

namespace stride::testing {

AdapterServer::~AdapterServer() {
  environment_.stopping = true;
  if (server_ != nullptr) server_->Shutdown();
}

std::shared_ptr<grpc::Channel> AdapterServer::Serve(std::unique_ptr<grpc::Service> adapter) {
  adapter_ = std::move(adapter);
  grpc::ServerBuilder builder;
  builder.RegisterService(adapter_.get());
  server_ = builder.BuildAndStart();
  return server_->InProcessChannel({});
}

}  // namespace stride::testing
