#pragma once

#include "server/api/call.h"
#include "server/api/raw_methods.h"
#include "server/engine/service/session_service.h"
#include "stride/v1/session_service.grpc.pb.h"

namespace stride::api {

// The adapter of SessionService: nothing but decode, call, encode.
class SessionServiceAdapter final : public RawService<v1::SessionService::Service> {
 public:
  // Both must outlive the server.
  SessionServiceAdapter(CallEnvironment* environment, engine::SessionService* sessions)
      : RawService(environment), sessions_(sessions) {
    AddMethods();
  }

 private:
  void AddMethods();
  engine::SessionService* const sessions_;
};

}  // namespace stride::api
