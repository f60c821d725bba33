#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <grpcpp/server_context.h>

#include "absl/status/statusor.h"
#include "server/base/ids.h"
#include "server/identity/identity.h"

namespace stride::api {

// Identifies the caller of an RPC. Thread-safe; called once for each RPC, before its content is
// read.
class Authenticator {
 public:
  virtual ~Authenticator() = default;
  // UNAUTHENTICATED with the same text and cost, whether credentials are missing, unknown or
  // expired; RESOURCE_EXHAUSTED when the address has failed too often recently.
  virtual absl::StatusOr<identity::Principal> Authenticate(
      const grpc::ServerContext& context) const = 0;
  // Authenticates the same caller again by the credentials of this call, each time it is called.
  // For calls over connections that this call opens; the authenticator must outlive it.
  using Again = std::function<absl::StatusOr<identity::Principal>()>;
  virtual Again Remember(const grpc::ServerContext& context) const = 0;
};

// A tenant's name: [a-z0-9-]{1,63}.
bool IsTenantName(std::string_view text);

// Trusts the caller: each is `default`, or, with `trust_header`, the tenant in the `stride-tenant`
// metadata. For loopback, and for a daemon whose proxy sets the metadata.
std::unique_ptr<Authenticator> MakeTrustingAuthenticator(bool trust_header);

// Identifies a caller by its bearer token; without a token by its verified client certificate (URI,
// then DNS name, then common name); without either, if it is on this machine, by `local` unless
// null. `identity` must outlive the result.
std::unique_ptr<Authenticator> MakeIdentityAuthenticator(const identity::Identity* identity,
                                                         std::unique_ptr<Authenticator> local);

// Whether gRPC's name of a peer is on this machine: a Unix socket or a loopback address.
bool IsLocalPeer(std::string_view peer);
// The address without its port, for counts of failures.
std::string AddressOfPeer(std::string_view peer);

}  // namespace stride::api
