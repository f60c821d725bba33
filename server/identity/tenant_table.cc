#include "server/identity/tenant_table.h"

#include <algorithm>
#include <utility>

namespace stride::identity {

bool TenantTable::IsTenantName(std::string_view text) {
  return !text.empty() && text.size() <= 63 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

bool TenantTable::AddToken(Token token) {
  bool known = std::any_of(tokens_.begin(), tokens_.end(),
                           [&](const Token& other) { return SameHash(other.hash, token.hash); });
  if (!known) tokens_.push_back(std::move(token));
  return !known;
}

bool TenantTable::AddCertificate(std::string certificate, const TenantId& tenant) {
  return certificates_.emplace(std::move(certificate), tenant).second;
}

std::optional<Principal> TenantTable::FindToken(std::string_view token, absl::Time now) const {
  bool plausible = token.size() >= kShortestToken && token.size() <= kLongestToken;
  TokenHash hash = HashToken(plausible ? token : std::string_view("something to hash instead"));
  size_t found = tokens_.size();
  for (size_t i = 0; i < tokens_.size(); ++i) {
    size_t mask = size_t{0} - static_cast<size_t>(SameHash(tokens_[i].hash, hash));
    found = (i & mask) | (found & ~mask);
  }
  bool valid = plausible && found < tokens_.size() && now < tokens_[found].expires;
  return valid ? std::optional(tokens_[found].principal) : std::nullopt;
}

std::optional<Principal> TenantTable::FindCertificate(const std::vector<std::string>& names) const {
  for (const std::string& name : names) {
    auto it = certificates_.find(name);
    if (it != certificates_.end()) return Principal{it->second, "certificate:" + name};
  }
  return std::nullopt;
}

}  // namespace stride::identity
