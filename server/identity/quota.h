#pragma once

#include <cstdint>
#include <optional>

namespace stride::identity {

// What one tenant may use at once. Absent: the daemon's default, which for bytes and rates is no
// limit.
struct Quota {
  std::optional<int64_t> array_bytes;    // declared bytes of all arrays, wherever they lie
  std::optional<int64_t> inline_bytes;   // of which inside requests, and so in the daemon's memory
  std::optional<int64_t> control_bytes;  // of the daemon's memory, for all but arrays' content
  std::optional<int64_t> operations;     // accepted and not ended
  std::optional<int64_t> jobs;           // accepted and not ended
  std::optional<int64_t> sessions;
  std::optional<int64_t> upload_bytes_per_second;
  std::optional<int64_t> region_bytes;  // of memory shared with clients on this host
  double weight = 1;                    // share of device time against other tenants

  bool operator==(const Quota&) const = default;
};

}  // namespace stride::identity
