#pragma once

#include "server/api/call.h"
#include "server/scheduler/engine.h"
#include "stride/v1/session_service.grpc.pb.h"

namespace stride::api {

// The adapter of SessionService: nothing but decode, call, encode.
class SessionServiceAdapter final : public v1::SessionService::Service {
 public:
  // Both must outlive the server.
  SessionServiceAdapter(CallEnvironment* environment, scheduler::Engine* engine)
      : environment_(*environment), engine_(engine) {}

  grpc::Status CreateSession(grpc::ServerContext* context, const v1::CreateSessionRequest* request,
                             v1::CreateSessionResponse* response) override;
  grpc::Status GetSession(grpc::ServerContext* context, const v1::GetSessionRequest* request,
                          v1::GetSessionResponse* response) override;
  grpc::Status RenewSession(grpc::ServerContext* context, const v1::RenewSessionRequest* request,
                            v1::RenewSessionResponse* response) override;
  grpc::Status DeleteSession(grpc::ServerContext* context, const v1::DeleteSessionRequest* request,
                             v1::DeleteSessionResponse* response) override;

 private:
  CallEnvironment& environment_;
  scheduler::Engine* const engine_;
};

}  // namespace stride::api
