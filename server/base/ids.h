#pragma once

#include <compare>
#include <string>

namespace stride {

// Who pays and who is kept apart. Never empty for a request that passed authentication.
struct TenantId {
  std::string value;
  auto operator<=>(const TenantId&) const = default;
};

}  // namespace stride
