#include "server/api/local/local_service.h"

#include "server/api/serve.h"
#include "server/base/environment.h"
#include "server/base/error.h"

namespace stride::api {

absl::StatusOr<v1::ConnectResponse> LocalServiceAdapter::IssueToken(const Call& call) {
  if (socket_path_.empty())
    return NotImplemented("local connections", "this daemon listens on no Unix socket");
  auto ticket = connections_.IssueToken(call, call.RememberCaller());
  if (!ticket.ok()) return ticket.status();
  v1::ConnectResponse response;
  response.set_socket_path(socket_path_);
  response.set_ticket(ticket->secret);
  response.mutable_expire_time()->set_seconds(absl::ToUnixSeconds(DateOf(ticket->expire_time)));
  return response;
}

void LocalServiceAdapter::AddMethods() {
  Unary<v1::ConnectRequest, v1::ConnectResponse>(
      "LocalService/Connect", kControlRequest,
      [this](Call& call, const auto&, auto* response) { return Into(IssueToken(call), response); });
}

}  // namespace stride::api
