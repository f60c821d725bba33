#include "server/api/authenticator.h"

#include <algorithm>
#include <string>

#include "server/base/error.h"

namespace stride::api {
namespace {

constexpr char kTenantHeader[] = "stride-tenant";
constexpr char kDefaultTenant[] = "default";

class TrustingAuthenticator : public Authenticator {
 public:
  explicit TrustingAuthenticator(bool trust_header) : trust_header_(trust_header) {}

  absl::StatusOr<TenantId> Authenticate(const grpc::ServerContext& context) const override {
    if (!trust_header_) return TenantId{kDefaultTenant};
    const auto& metadata = context.client_metadata();
    auto [first, last] = metadata.equal_range(kTenantHeader);
    if (first == last) return TenantId{kDefaultTenant};
    std::string name(first->second.data(), first->second.size());
    if (std::next(first) != last || !IsTenantName(name)) {
      return InvalidField(v1::ERROR_REASON_INVALID_FIELD, kTenantHeader,
                          "the stride-tenant metadata must be one name of [a-z0-9-]{1,63}");
    }
    return TenantId{std::move(name)};
  }

 private:
  const bool trust_header_;
};

}  // namespace

bool IsTenantName(std::string_view text) {
  return !text.empty() && text.size() <= 63 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

std::unique_ptr<Authenticator> MakeTrustingAuthenticator(bool trust_header) {
  return std::make_unique<TrustingAuthenticator>(trust_header);
}

}  // namespace stride::api
