#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "google/protobuf/message_lite.h"
#include "server/base/unique_fd.h"

namespace stride::wire {

// Limit of a packet in bytes. The kernel's default socket buffer (212,992 bytes) holds one with
// room to spare.
inline constexpr size_t kMaxPacketBytes = 128 << 10;
inline constexpr size_t kMaxPacketDescriptors = 4;

// Two connected SOCK_SEQPACKET sockets, close-on-exec.
absl::StatusOr<std::pair<UniqueFd, UniqueFd>> CreateSocketPair();

// One end of the socket between the daemon and a worker: one message per packet, with descriptors
// attached. Any thread may send; one thread at a time receives. The peer is not trusted: for any
// input Receive returns a message, an outcome or an error.
class Channel {
 public:
  explicit Channel(UniqueFd socket);

  // Blocks while the socket is full, up to the send timeout. Descriptors are duplicated into the
  // packet: the caller keeps its own. RESOURCE_EXHAUSTED: the message is over kMaxPacketBytes and
  // was not sent. DEADLINE_EXCEEDED: the peer does not read. UNAVAILABLE: the peer is gone.
  absl::Status Send(const google::protobuf::MessageLite& message,
                    absl::Span<const int> descriptors = {});

  // Sends an encoded message; never blocks. DEADLINE_EXCEEDED: the socket is full.
  absl::Status TrySend(std::string_view message, absl::Span<const int> descriptors = {});

  enum class Outcome { kMessage, kClosed, kTimeout };
  // INVALID_ARGUMENT when the packet was malformed, truncated or had too many descriptors; its
  // descriptors are closed. `spin`: how long to poll before the thread sleeps, for an answer that
  // is expected within microseconds; sleeping and waking costs several.
  absl::StatusOr<Outcome> Receive(google::protobuf::MessageLite* message,
                                  std::vector<UniqueFd>* descriptors,
                                  absl::Duration timeout = absl::InfiniteDuration(),
                                  absl::Duration spin = absl::ZeroDuration());

  // Default: infinite.
  absl::Status SetSendTimeout(absl::Duration timeout);

  int fd() const { return socket_.get(); }

 private:
  absl::Status SendPacket(std::string_view message, absl::Span<const int> descriptors, int flags);
  // Like recvmsg into `buffer_`, but returns -1 and EAGAIN also after `timeout`.
  ssize_t ReceivePacket(msghdr* header, absl::Duration timeout, absl::Duration spin);

  UniqueFd socket_;
  std::unique_ptr<char[]> buffer_;
};

}  // namespace stride::wire
