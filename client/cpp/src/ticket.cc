#include "client/cpp/src/ticket.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "client/cpp/src/status.h"

namespace stride::internal {
namespace {

constexpr timeval kSocketTimeout = {2, 0};

Error SocketError(const char* what) {
  return LocalError(Code::kUnavailable,
                    std::string("No descriptor can be fetched from the daemon: ") + what + ": " +
                        std::strerror(errno));
}

// The daemon's name for its socket may be invalid here: in another container it lies next to the
// socket that calls use.
std::string BesideCalls(const Channels& channels, const std::string& path) {
  const std::string own = channels.socket_path();
  return own.substr(0, own.rfind('/') + 1) + path.substr(path.rfind('/') + 1);
}

Result<Descriptor> Connect(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof(name.sun_path))
    return LocalError(Code::kUnavailable,
                      "The name of the daemon's socket for tickets is too long");
  std::memcpy(name.sun_path, path.data(), path.size());
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return SocketError("making a socket");
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kSocketTimeout, sizeof(kSocketTimeout));
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kSocketTimeout, sizeof(kSocketTimeout));
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)) != 0)
    return SocketError("connecting");
  return socket;
}

}  // namespace

Result<Descriptor> FetchDescriptor(const Channels& channels, const std::string& socket_path,
                                   const std::string& ticket) {
  auto fetched = FetchWithConnection(channels, socket_path, ticket);
  if (!fetched) return fetched.error();
  return std::move(fetched->descriptor);
}

Result<Ticketed> FetchWithConnection(const Channels& channels, const std::string& socket_path,
                                     const std::string& ticket) {
  auto socket = Connect(socket_path);
  if (!socket) socket = Connect(BesideCalls(channels, socket_path));
  if (!socket) return socket.error();
  if (send(socket->get(), ticket.data(), ticket.size(), MSG_NOSIGNAL) < 0)
    return SocketError("sending the ticket");
  char byte = 0;
  iovec content{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr header{};
  header.msg_iov = &content;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  const ssize_t size = recvmsg(socket->get(), &header, MSG_CMSG_CLOEXEC);
  if (size < 0) return SocketError("receiving");
  const cmsghdr* rights = CMSG_FIRSTHDR(&header);
  if (size != 1 || rights == nullptr || rights->cmsg_type != SCM_RIGHTS)
    return LocalError(Code::kUnavailable, "The daemon did not hand out the descriptor");
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(rights), sizeof(fd));
  return Ticketed{Descriptor(fd), *std::move(socket)};
}

}  // namespace stride::internal
