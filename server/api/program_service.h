#pragma once

#include "server/api/call.h"
#include "server/api/raw_methods.h"
#include "server/scheduler/engine.h"
#include "stride/v1/program_service.grpc.pb.h"

namespace stride::api {

// The adapter of ProgramService: nothing but decode, call, encode.
class ProgramServiceAdapter final : public RawService<v1::ProgramService::Service> {
 public:
  // Both must outlive the server.
  ProgramServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine)
      : RawService(environment), engine_(engine) {
    AddMethods();
  }

 private:
  void AddMethods();
  scheduler::Engine* const engine_;
};

}  // namespace stride::api
