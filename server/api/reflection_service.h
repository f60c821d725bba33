#pragma once

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/impl/service_type.h>

#include "grpc/reflection/v1/reflection.pb.h"
#include "server/api/call.h"
#include "server/api/raw_methods.h"

namespace stride::api {

// grpc.reflection.v1, and v1alpha, whose messages are the same. Tools such as grpcurl read the
// contract from it. It returns only the content of the public .proto files and needs no
// authentication, so it receives messages of unknown callers. It parses only small messages and
// takes few calls at once.
class ReflectionService final : public grpc::Service {
 public:
  // `environment` must outlive the server. `services` are full names, such as
  // `stride.v1.ArrayService`.
  ReflectionService(CallEnvironment* environment, std::vector<std::string> services);

 private:
  grpc::Status Serve(RawStream* stream);
  void Answer(const grpc::reflection::v1::ServerReflectionRequest& request,
              grpc::reflection::v1::ServerReflectionResponse* response) const;

  CallEnvironment& environment_;
  const std::vector<std::string> services_;
  std::atomic<int> num_calls_{0};
};

}  // namespace stride::api
