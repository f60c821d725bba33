#pragma once

#include <cstdint>
#include <optional>

namespace stride::identity {

// Limits of one tenant's concurrent use. Absent: the daemon's default, which for bytes and rates is
// no limit.
struct Quota {
  std::optional<int64_t> array_bytes;  // declared bytes of all arrays, wherever they are stored
  // the part of array_bytes that arrives in requests and lies in the daemon's memory
  std::optional<int64_t> inline_bytes;
  std::optional<int64_t> control_bytes;  // the daemon's memory for everything but arrays' content
  std::optional<int64_t> operations;     // accepted and not ended
  std::optional<int64_t> jobs;           // accepted and not ended
  std::optional<int64_t> sessions;
  std::optional<int64_t> upload_bytes_per_second;
  std::optional<int64_t> region_bytes;  // bytes of memory shared with clients on this host
  double weight = 1;                    // share of device time relative to other tenants

  bool operator==(const Quota&) const = default;
};

}  // namespace stride::identity
