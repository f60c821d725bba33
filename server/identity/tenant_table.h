#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/ids.h"
#include "server/identity/quota.h"
#include "server/identity/token.h"

namespace stride::identity {

// An authenticated caller: its tenant, and the credential that it used, for the audit log.
struct Principal {
  TenantId tenant;
  std::string name;  // `token:laptop`, `certificate:dns:lab.example.org`
};

// Content of the tenants file. Filled once, then read-only.
class TenantTable {
 public:
  struct Token {
    TokenHash hash;
    Principal principal;
    absl::Time expires = absl::InfiniteFuture();
  };

  // A tenant's name: [a-z0-9-]{1,63}.
  static bool IsTenantName(std::string_view text);

  // False when the tenant exists already.
  bool AddTenant(const TenantId& tenant, Quota quota) {
    return quotas_.emplace(tenant, quota).second;
  }
  bool AddToken(Token token);
  // `certificate` such as `uri:spiffe://lab/physics`, `dns:lab.example.org`, `cn:physics`.
  bool AddCertificate(std::string certificate, const TenantId& tenant);

  Quota& QuotaOf(const TenantId& tenant) { return quotas_.at(tenant); }
  const std::map<TenantId, Quota>& quotas() const { return quotas_; }
  // Quota of tenants that the file does not name.
  Quota default_quota;

  // Compares with each token, valid or not, so that the time reveals nothing.
  std::optional<Principal> FindToken(std::string_view token, absl::Time now) const;
  // Looks up the names in the caller's order; returns the first known one.
  std::optional<Principal> FindCertificate(const std::vector<std::string>& names) const;

  bool empty() const { return quotas_.empty() && tokens_.empty() && certificates_.empty(); }
  size_t num_tokens() const { return tokens_.size(); }
  size_t num_certificates() const { return certificates_.size(); }

 private:
  std::map<TenantId, Quota> quotas_;
  std::vector<Token> tokens_;
  std::map<std::string, TenantId> certificates_;
};

}  // namespace stride::identity
