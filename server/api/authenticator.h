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

// Tells whose call it is. Thread-safe; called once for each RPC, before anything else of it is
// looked at.
class Authenticator {
 public:
  virtual ~Authenticator() = default;
  // UNAUTHENTICATED in the same words, and at the same price, whether credentials are missing,
  // unknown or expired; RESOURCE_EXHAUSTED when an address has failed too often of late.
  virtual absl::StatusOr<identity::Principal> Authenticate(
      const grpc::ServerContext& context) const = 0;
  // Authenticates the same caller again, by what this call showed of him, whenever it is asked to.
  // For calls that come by what this one opens; this must outlive it.
  using Again = std::function<absl::StatusOr<identity::Principal>()>;
  virtual Again Remember(const grpc::ServerContext& context) const = 0;
};

// A tenant's name: [a-z0-9-]{1,63}.
bool IsTenantName(std::string_view text);

// Believes the caller: everybody is `default`, or, with `trust_header`, whoever the `stride-tenant`
// metadata names. For loopback, and behind a proxy that sets it.
std::unique_ptr<Authenticator> MakeTrustingAuthenticator(bool trust_header);

// A caller is whom its bearer token tells; without one, whom its verified client certificate tells
// (URI, then DNS name, then common name); without either, where it is on this machine and there is
// a `local`, whom that tells. `identity` must outlive it.
std::unique_ptr<Authenticator> MakeIdentityAuthenticator(const identity::Identity* identity,
                                                         std::unique_ptr<Authenticator> local);

// Whether gRPC's name of a peer is of this machine: a Unix socket or a loopback address.
bool IsLocalPeer(std::string_view peer);
// Without its port: whom to count failures under.
std::string AddressOfPeer(std::string_view peer);

}  // namespace stride::api
