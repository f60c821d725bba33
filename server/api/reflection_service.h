#pragma once

#include <string>
#include <vector>

#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "server/api/call.h"

namespace stride::api {

// grpc.reflection.v1: what tools such as grpcurl learn the contract from. gRPC's own plugin serves
// v1alpha alone. It tells what the public .proto files tell, so it needs no authentication.
class ReflectionService final : public grpc::reflection::v1::ServerReflection::Service {
 public:
  // `environment` must outlive the server.
  explicit ReflectionService(CallEnvironment* environment) : environment_(*environment) {}

  // Full names, such as `stride.v1.ArrayService`. Before the server starts.
  void SetServices(std::vector<std::string> names) { services_ = std::move(names); }

  grpc::Status ServerReflectionInfo(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<grpc::reflection::v1::ServerReflectionResponse,
                               grpc::reflection::v1::ServerReflectionRequest>* stream) override;

 private:
  void Answer(const grpc::reflection::v1::ServerReflectionRequest& request,
              grpc::reflection::v1::ServerReflectionResponse* response) const;

  CallEnvironment& environment_;
  std::vector<std::string> services_;
};

}  // namespace stride::api
