#include "server/wire/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/base/environment.h"
#include "server/base/message_descriptors.h"
#include "server/base/spin.h"
#include "server/base/system_error.h"

namespace stride::wire {
namespace {

constexpr size_t kControlBytes = CMSG_SPACE(kMaxPacketDescriptors * sizeof(int));

int PollMilliseconds(absl::Duration timeout) {
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(timeout, absl::Milliseconds(1))));
}

// Returns when a packet, the end or an error can be read, or, with EAGAIN in errno, after
// `timeout`.
void WaitReadable(int fd, absl::Duration timeout) {
  const SteadyTime deadline = Now() + timeout;
  for (;;) {
    pollfd entry{fd, POLLIN, 0};
    const absl::Duration left = std::max(deadline - Now(), absl::ZeroDuration());
    if (poll(&entry, 1, PollMilliseconds(left)) >= 0 || errno != EINTR) return;
  }
}

absl::Status SendError(int error) {
  switch (error) {
    case EAGAIN:
      return absl::DeadlineExceededError("the peer does not read its socket");
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
      return absl::UnavailableError("the peer has closed its socket");
    case EMSGSIZE:
      return absl::ResourceExhaustedError("the packet is larger than the socket takes");
    default:
      return absl::ErrnoToStatus(error, "sending a packet");
  }
}

}  // namespace

absl::StatusOr<std::pair<UniqueFd, UniqueFd>> CreateSocketPair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
    return SystemError(errno, "making a socket pair");
  }
  return std::make_pair(UniqueFd(fds[0]), UniqueFd(fds[1]));
}

Channel::Channel(UniqueFd socket)
    : socket_(std::move(socket)), buffer_(std::make_unique<char[]>(kMaxPacketBytes)) {}

absl::Status Channel::Send(const google::protobuf::MessageLite& message,
                           absl::Span<const int> descriptors) {
  const std::string bytes = message.SerializeAsString();
  return SendPacket(bytes, descriptors, /*flags=*/0);
}

absl::Status Channel::TrySend(std::string_view message, absl::Span<const int> descriptors) {
  return SendPacket(message, descriptors, MSG_DONTWAIT);
}

absl::Status Channel::SendPacket(std::string_view message, absl::Span<const int> descriptors,
                                 int flags) {
  if (message.size() > kMaxPacketBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a message to or from a worker is too large: ", message.size(), " bytes"));
  }
  // An empty packet would look like the end of the stream.
  if (message.empty()) return absl::InvalidArgumentError("the message is empty");
  if (descriptors.size() > kMaxPacketDescriptors) {
    return absl::InvalidArgumentError("too many descriptors for one packet");
  }
  alignas(cmsghdr) char control[kControlBytes] = {};
  msghdr header{};
  iovec content{const_cast<char*>(message.data()), message.size()};
  header.msg_iov = &content;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) PutDescriptors(descriptors, control, &header);
  while (sendmsg(socket_.get(), &header, MSG_NOSIGNAL | flags) < 0) {
    if (errno != EINTR) return SendError(errno);
  }
  return absl::OkStatus();
}

// ECONNRESET reports once that the peer died with packets unread. Its last packets, such as the
// report of its fatal error, can still be received.
ssize_t Channel::ReceivePacket(msghdr* header, absl::Duration timeout, absl::Duration spin) {
  const msghdr fresh = *header;
  auto receive = [&](int flags) {
    ssize_t size;
    do {
      *header = fresh;
      size = recvmsg(socket_.get(), header, MSG_CMSG_CLOEXEC | flags);
    } while (size < 0 && (errno == EINTR || errno == ECONNRESET));
    return size;
  };
  if (timeout == absl::InfiniteDuration() && spin == absl::ZeroDuration()) return receive(0);
  // A packet that has already arrived needs no second system call.
  ssize_t size = receive(MSG_DONTWAIT);
  if (size >= 0 || errno != EAGAIN || timeout == absl::ZeroDuration()) return size;
  auto received = [&] {
    size = receive(MSG_DONTWAIT);
    return size >= 0 || errno != EAGAIN;
  };
  if (SpinUntil(received, std::min(spin, timeout))) return size;
  if (timeout == absl::InfiniteDuration()) return receive(0);
  WaitReadable(socket_.get(), timeout);
  return receive(MSG_DONTWAIT);
}

absl::StatusOr<Channel::Outcome> Channel::Receive(google::protobuf::MessageLite* message,
                                                  std::vector<UniqueFd>* descriptors,
                                                  absl::Duration timeout, absl::Duration spin) {
  descriptors->clear();
  iovec content{buffer_.get(), kMaxPacketBytes};
  alignas(cmsghdr) char control[kControlBytes];
  msghdr header{};
  header.msg_iov = &content;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  const ssize_t size = ReceivePacket(&header, timeout, spin);
  if (size < 0 && errno == EAGAIN) return Outcome::kTimeout;
  if (size < 0) return absl::ErrnoToStatus(errno, "receiving a packet");
  TakeDescriptors(header, descriptors);
  if (size == 0) {
    descriptors->clear();
    return Outcome::kClosed;
  }
  bool truncated = (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  if (truncated || !message->ParseFromArray(buffer_.get(), static_cast<int>(size))) {
    descriptors->clear();
    return absl::InvalidArgumentError(truncated ? "a packet was truncated"
                                                : "a packet does not hold the expected message");
  }
  return Outcome::kMessage;
}

absl::Status Channel::SetSendTimeout(absl::Duration timeout) {
  timeval value = absl::ToTimeval(timeout);
  if (setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &value, sizeof(value)) != 0) {
    return absl::ErrnoToStatus(errno, "setting a socket's send timeout");
  }
  return absl::OkStatus();
}

}  // namespace stride::wire
