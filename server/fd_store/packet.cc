#include "server/fd_store/packet.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "server/base/message_descriptors.h"

namespace stride::fd_store {
namespace {

constexpr size_t kMaxText = 1024;

}  // namespace

absl::Status SendPacket(int socket, const std::string& text, int fd, const std::string& address) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  sockaddr_un name{};
  if (!address.empty()) {
    if (address.size() >= sizeof(name.sun_path))
      return absl::InvalidArgumentError("the socket's name is too long");
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, address.data(), address.size());
    // An abstract name is written with @ and begins with a zero byte.
    if (name.sun_path[0] == '@') name.sun_path[0] = '\0';
    message.msg_name = &name;
    message.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
  }
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) PutDescriptors({fd}, control, &message);
  while (sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET || errno == ECONNREFUSED || errno == ENOTCONN)
      return absl::UnavailableError("the keeper of descriptors is gone");
    return absl::ErrnoToStatus(errno, "sending to the keeper of descriptors");
  }
  return absl::OkStatus();
}

absl::Status ReceivePacket(int socket, Packet* packet) {
  packet->text.resize(kMaxText);
  packet->fd.Reset();
  iovec part{packet->text.data(), packet->text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t size;
  do {
    size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size < 0 && errno != ECONNRESET)
    return absl::ErrnoToStatus(errno, "hearing from the keeper of descriptors");
  if (size <= 0) return absl::UnavailableError("the keeper of descriptors is gone");
  packet->text.resize(size);
  std::vector<UniqueFd> descriptors;
  TakeDescriptors(message, &descriptors);
  if (!descriptors.empty()) packet->fd = std::move(descriptors.back());
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
    return absl::InvalidArgumentError("a packet of the keeper of descriptors was cut off");
  return absl::OkStatus();
}

}  // namespace stride::fd_store
