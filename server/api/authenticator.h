#pragma once

#include <memory>
#include <string_view>

#include <grpcpp/server_context.h>

#include "absl/status/statusor.h"
#include "server/base/ids.h"

namespace stride::api {

// Tells whose call it is. Thread-safe; called once for each RPC, before anything else of it is
// looked at.
class Authenticator {
 public:
  virtual ~Authenticator() = default;
  virtual absl::StatusOr<TenantId> Authenticate(const grpc::ServerContext& context) const = 0;
};

// A tenant's name: [a-z0-9-]{1,63}.
bool IsTenantName(std::string_view text);

// Believes the caller: everybody is `default`, or, with `trust_header`, whoever the `stride-tenant`
// metadata names. For loopback, and behind a proxy that sets it.
std::unique_ptr<Authenticator> MakeTrustingAuthenticator(bool trust_header);

}  // namespace stride::api
