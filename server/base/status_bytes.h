#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace stride {

// Upper bound of a status's memory, payloads included; at most twice the real size.
inline int64_t StatusBytes(const absl::Status& status) {
  if (status.ok()) return 0;
  int64_t bytes = 192 + static_cast<int64_t>(status.message().size());
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    bytes += 192 + static_cast<int64_t>(url.size() + payload.size());
  });
  return bytes;
}

}  // namespace stride
