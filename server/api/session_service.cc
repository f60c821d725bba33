#include "server/api/session_service.h"

#include "server/api/serve.h"

namespace stride::api {

void SessionServiceAdapter::AddMethods() {
  Unary<v1::CreateSessionRequest, v1::CreateSessionResponse>(
      "SessionService/CreateSession", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(engine_->CreateSession(call.tenant(), request), response->mutable_session());
      });
  Unary<v1::GetSessionRequest, v1::GetSessionResponse>(
      "SessionService/GetSession", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(engine_->GetSession(call.tenant(), request.name()),
                    response->mutable_session());
      });
  Unary<v1::RenewSessionRequest, v1::RenewSessionResponse>(
      "SessionService/RenewSession", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(engine_->RenewSession(call.tenant(), request.name()),
                    response->mutable_session());
      });
  Unary<v1::DeleteSessionRequest, v1::DeleteSessionResponse>(
      "SessionService/DeleteSession", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return engine_->DeleteSession(call.tenant(), request.name());
      });
  Unary<v1::ReadPrintedRequest, v1::ReadPrintedResponse>(
      "SessionService/ReadPrinted", kControlRequest,
      [this](Call& call, const auto& request, auto* response) {
        return Into(engine_->ReadPrinted(call.tenant(), request.name()), response);
      });
}

}  // namespace stride::api
