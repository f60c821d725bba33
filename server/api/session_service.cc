#include "server/api/session_service.h"

#include "server/api/serve.h"

namespace stride::api {

grpc::Status SessionServiceAdapter::CreateSession(grpc::ServerContext* context,
                                                  const v1::CreateSessionRequest* request,
                                                  v1::CreateSessionResponse* response) {
  return Serve(environment_, context, "SessionService/CreateSession", [&](Call& call) {
    return Into(engine_->CreateSession(call.tenant(), *request), response->mutable_session());
  });
}

grpc::Status SessionServiceAdapter::GetSession(grpc::ServerContext* context,
                                               const v1::GetSessionRequest* request,
                                               v1::GetSessionResponse* response) {
  return Serve(environment_, context, "SessionService/GetSession", [&](Call& call) {
    return Into(engine_->GetSession(call.tenant(), request->name()), response->mutable_session());
  });
}

grpc::Status SessionServiceAdapter::RenewSession(grpc::ServerContext* context,
                                                 const v1::RenewSessionRequest* request,
                                                 v1::RenewSessionResponse* response) {
  return Serve(environment_, context, "SessionService/RenewSession", [&](Call& call) {
    return Into(engine_->RenewSession(call.tenant(), request->name()), response->mutable_session());
  });
}

grpc::Status SessionServiceAdapter::DeleteSession(grpc::ServerContext* context,
                                                  const v1::DeleteSessionRequest* request,
                                                  v1::DeleteSessionResponse* response) {
  return Serve(environment_, context, "SessionService/DeleteSession",
               [&](Call& call) { return engine_->DeleteSession(call.tenant(), request->name()); });
}

}  // namespace stride::api
