#include "server/api/listening_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stride::api {
namespace {

constexpr int kBacklog = 512;
constexpr mode_t kSocketMode = 0660;

absl::Status Error(int error, std::string_view what, const Address& address) {
  return absl::ErrnoToStatus(
      error, absl::StrCat(absl::string_view(what.data(), what.size()), " ", address.ToString()));
}

absl::Status CheckReach(const Address& address, Reach reach) {
  if (address.local() || reach == Reach::kAnywhere) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("other machines could reach this address, and calls are not both encrypted "
                   "(--tls-cert, --tls-key) and authenticated (--tenants); listen on a "
                   "Unix socket or a loopback address, or say --insecure: ",
                   address.ToString()));
}

sockaddr_un UnixName(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  return name;
}

// Removes the socket file of a daemon that died; leaves other files.
absl::Status RemoveStaleSocket(const Address& address) {
  struct stat info;
  if (lstat(address.path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) return Error(EEXIST, "something that is no socket is at", address);
  UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.valid()) return Error(errno, "making a socket for", address);
  sockaddr_un name = UnixName(address.path);
  if (connect(probe.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0 ||
      errno == EAGAIN) {
    return absl::FailedPreconditionError(
        absl::StrCat("another process listens on ", address.ToString()));
  }
  if (errno != ECONNREFUSED) return Error(errno, "looking who listens on", address);
  if (unlink(address.path.c_str()) != 0) return Error(errno, "removing the stale", address);
  return absl::OkStatus();
}

absl::Status BindUnix(int fd, const Address& address) {
  if (absl::Status status = RemoveStaleSocket(address); !status.ok()) return status;
  sockaddr_un name = UnixName(address.path);
  if (bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)) != 0)
    return Error(errno, "binding", address);
  // No client can connect before listen(), so that no other mode is ever in force.
  if (chmod(address.path.c_str(), kSocketMode) != 0)
    return Error(errno, "setting the mode of", address);
  return absl::OkStatus();
}

absl::Status BindTcp(int fd, const Address& address) {
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in four{};
  sockaddr_in6 six{};
  sockaddr* name = reinterpret_cast<sockaddr*>(&four);
  socklen_t size = sizeof(four);
  if (address.ipv6()) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(address.port);
    inet_pton(AF_INET6, address.host.c_str(), &six.sin6_addr);
    name = reinterpret_cast<sockaddr*>(&six);
    size = sizeof(six);
  } else {
    four.sin_family = AF_INET;
    four.sin_port = htons(address.port);
    inet_pton(AF_INET, address.host.c_str(), &four.sin_addr);
  }
  if (bind(fd, name, size) != 0) return Error(errno, "binding", address);
  return absl::OkStatus();
}

absl::StatusOr<Address> NameOf(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    return absl::ErrnoToStatus(errno, "asking a socket for its address");
  }
  Address address;
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_UNIX) {
    const auto* name = reinterpret_cast<const sockaddr_un*>(&storage);
    address.path = name->sun_path;
    return address;
  }
  address.kind = Address::Kind::kTcp;
  if (storage.ss_family == AF_INET) {
    const auto* name = reinterpret_cast<const sockaddr_in*>(&storage);
    address.host = inet_ntop(AF_INET, &name->sin_addr, text, sizeof(text));
    address.port = ntohs(name->sin_port);
    return address;
  }
  if (storage.ss_family == AF_INET6) {
    const auto* name = reinterpret_cast<const sockaddr_in6*>(&storage);
    address.host = inet_ntop(AF_INET6, &name->sin6_addr, text, sizeof(text));
    address.port = ntohs(name->sin6_port);
    return address;
  }
  return absl::InvalidArgumentError("a passed socket is neither Unix nor TCP");
}

}  // namespace

absl::StatusOr<ListeningSocket> Listen(const Address& address, Reach reach) {
  if (absl::Status status = CheckReach(address, reach); !status.ok()) return status;
  bool is_unix = address.kind == Address::Kind::kUnix;
  int family = is_unix ? AF_UNIX : address.ipv6() ? AF_INET6 : AF_INET;
  ListeningSocket result;
  result.fd = UniqueFd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!result.fd.valid()) return Error(errno, "making a socket for", address);
  absl::Status status =
      is_unix ? BindUnix(result.fd.get(), address) : BindTcp(result.fd.get(), address);
  if (!status.ok()) return status;
  if (listen(result.fd.get(), kBacklog) != 0) return Error(errno, "listening on", address);
  absl::StatusOr<Address> bound = NameOf(result.fd.get());
  if (!bound.ok()) return bound.status();
  result.address = *std::move(bound);
  result.owned = is_unix;
  return result;
}

absl::StatusOr<ListeningSocket> AdoptSocket(UniqueFd fd, Reach reach, bool owned) {
  int listening = 0;
  socklen_t size = sizeof(listening);
  if (getsockopt(fd.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0) {
    return absl::InvalidArgumentError("a passed descriptor is not a listening socket");
  }
  absl::StatusOr<Address> address = NameOf(fd.get());
  if (!address.ok()) return address.status();
  if (absl::Status status = CheckReach(*address, reach); !status.ok()) return status;
  fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
  bool has_file = address->kind == Address::Kind::kUnix;
  return ListeningSocket{std::move(fd), *std::move(address), owned && has_file};
}

void RemoveSocketFile(const ListeningSocket& socket) {
  if (!socket.owned) return;
  // A later daemon may have replaced the file. Its socket then answers, and ours is closed by now.
  UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un name = UnixName(socket.address.path);
  bool dead = connect(probe.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)) != 0 &&
              errno == ECONNREFUSED;
  if (dead) unlink(socket.address.path.c_str());
}

}  // namespace stride::api
