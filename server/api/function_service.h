#pragma once

#include "server/api/call.h"
#include "server/api/raw_methods.h"
#include "server/scheduler/engine.h"
#include "stride/v1/function_service.grpc.pb.h"

namespace stride::api {

// The adapter of FunctionService: only decodes, calls and encodes.
class FunctionServiceAdapter final : public RawService<v1::FunctionService::Service> {
 public:
  // Both must outlive the server.
  FunctionServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine)
      : RawService(environment), engine_(engine) {
    AddMethods();
  }

 private:
  void AddMethods();
  scheduler::Engine* const engine_;
};

}  // namespace stride::api
