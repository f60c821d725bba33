#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace stride::api {

// A listening address of a daemon: `unix:/path`, `tcp:127.0.0.1:7433`, `tcp:[::1]:7433`,
// `tcp:localhost:0` (port 0: any free port).
struct Address {
  enum class Kind { kUnix, kTcp };
  Kind kind = Kind::kUnix;
  std::string path;  // kUnix
  std::string host;  // kTcp: a numeric address, without brackets
  uint16_t port = 0;

  bool ipv6() const { return host.find(':') != std::string::npos; }
  // Reachable from this machine only.
  bool local() const;
  std::string ToString() const;
  // In a gRPC client's form.
  std::string ToTarget() const;
};

// Host names are not looked up: a daemon's listening addresses must not depend on a name server.
absl::StatusOr<Address> ParseAddress(std::string_view text);

}  // namespace stride::api
