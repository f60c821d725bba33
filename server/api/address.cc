#include "server/api/address.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace stride::api {
namespace {

absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

absl::Status Bad(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      ToAbsl(why),
      "; write unix:/path, tcp:127.0.0.1:7433 or tcp:[::1]:7433, not: ", ToAbsl(text)));
}

bool IsNumeric(const std::string& host, bool ipv6) {
  in6_addr address;
  return inet_pton(ipv6 ? AF_INET6 : AF_INET, host.c_str(), &address) == 1;
}

absl::StatusOr<Address> ParseUnix(std::string_view text, std::string_view path) {
  if (path.empty() || path[0] != '/')
    return Bad(text, "the path of a Unix socket must be absolute");
  if (path.size() >= sizeof(sockaddr_un{}.sun_path))
    return Bad(text, "the path of a Unix socket is at most 107 bytes");
  Address address;
  address.path = std::string(path);
  return address;
}

absl::StatusOr<Address> ParseTcp(std::string_view text, std::string_view rest) {
  size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return Bad(text, "the port is missing");
  Address address;
  address.kind = Address::Kind::kTcp;
  uint32_t port = 0;
  if (!absl::SimpleAtoi(ToAbsl(rest.substr(colon + 1)), &port) || port > 65535) {
    return Bad(text, "the port must be from 0 to 65535");
  }
  address.port = static_cast<uint16_t>(port);
  std::string_view host = rest.substr(0, colon);
  bool brackets = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  address.host = host == "localhost" ? "127.0.0.1" : std::string(host);
  if (!IsNumeric(address.host, brackets))
    return Bad(text, "the host must be a numeric address or localhost");
  return address;
}

}  // namespace

bool Address::local() const {
  if (kind == Kind::kUnix) return true;
  in6_addr six;
  if (inet_pton(AF_INET6, host.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
  in_addr four;
  return inet_pton(AF_INET, host.c_str(), &four) == 1 && (ntohl(four.s_addr) >> 24) == 127;
}

std::string Address::ToString() const {
  if (kind == Kind::kUnix) return absl::StrCat("unix:", path);
  return absl::StrCat("tcp:", ipv6() ? absl::StrCat("[", host, "]") : host, ":", port);
}

std::string Address::ToTarget() const {
  if (kind == Kind::kUnix) return absl::StrCat("unix:", path);
  return ipv6() ? absl::StrCat("ipv6:[", host, "]:", port) : absl::StrCat("ipv4:", host, ":", port);
}

absl::StatusOr<Address> ParseAddress(std::string_view text) {
  if (text.substr(0, 5) == "unix:") return ParseUnix(text, text.substr(5));
  if (text.substr(0, 4) == "tcp:") return ParseTcp(text, text.substr(4));
  return Bad(text, "an address starts with unix: or tcp:");
}

}  // namespace stride::api
