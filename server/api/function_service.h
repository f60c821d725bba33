#pragma once

#include "server/api/call.h"
#include "server/api/raw_methods.h"
#include "server/engine/service/function_service.h"
#include "stride/v1/function_service.grpc.pb.h"

namespace stride::api {

// The adapter of FunctionService: only decodes, calls and encodes.
class FunctionServiceAdapter final : public RawService<v1::FunctionService::Service> {
 public:
  // Both must outlive the server.
  FunctionServiceAdapter(CallEnvironment* environment, engine::FunctionService* functions)
      : RawService(environment), functions_(functions) {
    AddMethods();
  }

 private:
  void AddMethods();
  engine::FunctionService* const functions_;
};

}  // namespace stride::api
