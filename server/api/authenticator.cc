#include "server/api/authenticator.h"

#include <grpc/grpc_security_constants.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "server/base/environment.h"
#include "server/base/error.h"
#include "server/identity/failure_limiter.h"

namespace stride::api {
namespace {

constexpr char kTenantHeader[] = "stride-tenant";
constexpr char kTokenHeader[] = "authorization";
constexpr absl::string_view kScheme = "Bearer ";
constexpr char kDefaultTenant[] = "default";
constexpr absl::Duration kFailurePause = absl::Seconds(5);

class TrustingAuthenticator : public Authenticator {
 public:
  explicit TrustingAuthenticator(bool trust_header) : trust_header_(trust_header) {}

  absl::StatusOr<identity::Principal> Authenticate(
      const grpc::ServerContext& context) const override {
    if (!trust_header_) return identity::Principal{{kDefaultTenant}, ""};
    const auto& metadata = context.client_metadata();
    auto [first, last] = metadata.equal_range(kTenantHeader);
    if (first == last) return identity::Principal{{kDefaultTenant}, ""};
    std::string name(first->second.data(), first->second.size());
    if (std::next(first) != last || !IsTenantName(name)) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, kTenantHeader,
                          "the stride-tenant metadata must be one name of [a-z0-9-]{1,63}");
    }
    return identity::Principal{{std::move(name)}, "header"};
  }

  Again Remember(const grpc::ServerContext& context) const override {
    return [who = Authenticate(context)] { return who; };
  }

 private:
  const bool trust_header_;
};

// Names in a certificate that the handshake has verified; empty without one.
std::vector<std::string> CertificateNames(const grpc::ServerContext& context) {
  std::vector<std::string> names;
  std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) return names;
  auto add = [&](const char* property, const char* kind) {
    for (const grpc::string_ref& value : auth->FindPropertyValues(property))
      names.push_back(std::string(kind) + std::string(value.data(), value.size()));
  };
  add(GRPC_PEER_URI_PROPERTY_NAME, "uri:");
  add(GRPC_PEER_DNS_PROPERTY_NAME, "dns:");
  add(GRPC_X509_CN_PROPERTY_NAME, "cn:");
  return names;
}

class IdentityAuthenticator : public Authenticator {
 public:
  IdentityAuthenticator(const identity::Identity* identity, std::unique_ptr<Authenticator> local)
      : identity_(identity), local_(std::move(local)) {}

  absl::StatusOr<identity::Principal> Authenticate(
      const grpc::ServerContext& context) const override {
    return Judge(ShownBy(context));
  }

  Again Remember(const grpc::ServerContext& context) const override {
    return [this, shown = ShownBy(context)] { return Judge(shown); };
  }

 private:
  // Credentials that a caller presents.
  struct Shown {
    std::string peer;
    std::optional<std::string> token;  // empty where it is malformed
    std::vector<std::string> certificate_names;
    // the local authenticator's answer, if there is one
    std::optional<absl::StatusOr<identity::Principal>> local;
  };

  Shown ShownBy(const grpc::ServerContext& context) const {
    Shown shown{.peer = context.peer()};
    const auto& metadata = context.client_metadata();
    auto [first, last] = metadata.equal_range(kTokenHeader);
    if (first != last) {
      absl::string_view text;
      if (std::next(first) == last) text = {first->second.data(), first->second.size()};
      // The scheme is case-insensitive (RFC 9110).
      const bool bearer = absl::StartsWithIgnoreCase(text, kScheme);
      shown.token = bearer ? std::string(text.substr(kScheme.size())) : "";
      return shown;
    }
    shown.certificate_names = CertificateNames(context);
    if (local_ != nullptr && IsLocalPeer(shown.peer)) shown.local = local_->Authenticate(context);
    return shown;
  }

  absl::StatusOr<identity::Principal> Judge(const Shown& shown) const {
    // Looked up without a token too, so that all failures cost the same.
    std::optional<identity::Principal> who = identity_->FromToken(shown.token.value_or(""));
    if (!shown.token.has_value()) {
      who = identity_->FromCertificate(shown.certificate_names);
      if (!who.has_value() && shown.local.has_value()) return *shown.local;
    }
    if (who.has_value()) return *std::move(who);
    return Failure(shown.peer);
  }

  absl::Status Failure(const std::string& peer) const {
    if (!failures_.Take(AddressOfPeer(peer), Now())) {
      return TryLater(absl::StatusCode::kResourceExhausted, v1::ERROR_REASON_UNAUTHENTICATED,
                      "too many calls from this address had no valid credentials", kFailurePause);
    }
    return MakeError(absl::StatusCode::kUnauthenticated, v1::ERROR_REASON_UNAUTHENTICATED,
                     "the call has no valid credentials; it needs a bearer token or a client "
                     "certificate that this daemon knows");
  }

  const identity::Identity* const identity_;
  const std::unique_ptr<Authenticator> local_;
  mutable identity::FailureLimiter failures_;
};

}  // namespace

bool IsTenantName(std::string_view text) { return identity::TenantTable::IsTenantName(text); }

bool IsLocalPeer(std::string_view peer) {
  std::string address = AddressOfPeer(peer);
  return absl::StartsWith(address, "unix") || absl::StartsWith(address, "ipv4:127.") ||
         address == "ipv6:[::1]" || absl::StartsWith(address, "ipv6:[::ffff:127.") ||
         absl::StartsWith(address, "fd:");
}

std::string AddressOfPeer(std::string_view peer) {
  if (peer.substr(0, 3) != "ipv") return std::string(peer.substr(0, peer.find(':')));
  std::string text;
  // gRPC escapes the brackets of an IPv6 address.
  for (size_t i = 0; i < peer.size(); ++i) {
    std::string_view three = peer.substr(i, 3);
    if (three == "%5B" || three == "%5D") {
      text += three == "%5B" ? '[' : ']';
      i += 2;
    } else {
      text += peer[i];
    }
  }
  size_t colon = text.rfind(':');
  size_t bracket = text.rfind(']');
  bool has_port =
      colon != std::string::npos && colon > 4 && (bracket == std::string::npos || colon > bracket);
  return has_port ? text.substr(0, colon) : text;
}

std::unique_ptr<Authenticator> MakeTrustingAuthenticator(bool trust_header) {
  return std::make_unique<TrustingAuthenticator>(trust_header);
}

std::unique_ptr<Authenticator> MakeIdentityAuthenticator(const identity::Identity* identity,
                                                         std::unique_ptr<Authenticator> local) {
  return std::make_unique<IdentityAuthenticator>(identity, std::move(local));
}

}  // namespace stride::api
