#include "server/api/session_service.h"

#include "server/api/serve.h"

namespace stride::api {

void SessionServiceAdapter::AddMethods() {
  Unary<v1::CreateSessionRequest, v1::CreateSessionResponse>(
      "SessionService/CreateSession", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(sessions_->Create(call.tenant(), request), response->mutable_session());
      });
  Unary<v1::GetSessionRequest, v1::GetSessionResponse>(
      "SessionService/GetSession", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(sessions_->Get(call.tenant(), request.name()), response->mutable_session());
      });
  Unary<v1::RenewSessionRequest, v1::RenewSessionResponse>(
      "SessionService/RenewSession", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(sessions_->Renew(call.tenant(), request.name()), response->mutable_session());
      });
  Unary<v1::DeleteSessionRequest, v1::DeleteSessionResponse>(
      "SessionService/DeleteSession", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return sessions_->Delete(call.tenant(), request.name());
      });
  Unary<v1::ReadPrintedRequest, v1::ReadPrintedResponse>(
      "SessionService/ReadPrinted", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(sessions_->ReadPrinted(call.tenant(), request.name()), response);
      });
}

}  // namespace stride::api
