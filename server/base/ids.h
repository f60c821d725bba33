#pragma once

#include <compare>
#include <string>

namespace stride {

// The unit of accounting and isolation. Never empty for a request that passed authentication.
struct TenantId {
  std::string value;
  auto operator<=>(const TenantId&) const = default;
};

}  // namespace stride
