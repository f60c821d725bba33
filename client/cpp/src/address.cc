#include "client/cpp/src/address.h"

#include <charconv>
#include <cstdint>
#include <string_view>

#include "client/cpp/src/status.h"

namespace stride::internal {
namespace {

Error Bad(const std::string& address, const std::string& why) {
  return LocalError(
      Code::kInvalidArgument,
      why + "; write unix:/path, host:7433, [::1]:7433 or tcp:host:7433, not: " + address);
}

bool IsPort(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port != 0;
}

// Brackets contain colons and the other characters of an IPv6 address; a name or an IPv4 address
// has neither these, nor a scheme or a path.
bool IsHost(std::string_view text) {
  const bool bracketed = text.size() > 2 && text.front() == '[' && text.back() == ']';
  if (bracketed) {
    text = text.substr(1, text.size() - 2);
    return text.find_first_not_of("0123456789abcdefABCDEF:.%") == text.npos &&
           text.find(':') != text.npos;
  }
  return !text.empty() && text.find_first_of(":/[]@?# \t\r\n") == text.npos;
}

}  // namespace

Result<std::string> TargetOf(const std::string& address) {
  std::string_view text = address;
  if (text.starts_with("unix:")) {
    if (text.size() == 5) return Bad(address, "The path of the Unix socket is missing");
    return address;
  }
  if (text.starts_with("tcp:")) text.remove_prefix(4);
  const size_t colon = text.rfind(':');
  if (colon == text.npos || text.back() == ']') return Bad(address, "The port is missing");
  if (!IsHost(text.substr(0, colon))) return Bad(address, "Not a host's name or address");
  if (!IsPort(text.substr(colon + 1))) return Bad(address, "The port must be from 1 to 65535");
  return std::string(text);
}

}  // namespace stride::internal
