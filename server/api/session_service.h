#pragma once

#include "server/api/call.h"
#include "server/api/raw_methods.h"
#include "server/scheduler/engine.h"
#include "stride/v1/session_service.grpc.pb.h"

namespace stride::api {

// The adapter of SessionService: nothing but decode, call, encode.
class SessionServiceAdapter final : public RawService<v1::SessionService::Service> {
 public:
  // Both must outlive the server.
  SessionServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine)
      : RawService(environment), engine_(engine) {
    AddMethods();
  }

 private:
  void AddMethods();
  scheduler::Engine* const engine_;
};

}  // namespace stride::api
