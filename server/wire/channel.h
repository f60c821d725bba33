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

// A packet's most bytes. The kernel's default socket buffer (212,992 bytes) holds one with room to
// spare.
inline constexpr size_t kMaxPacketBytes = 128 << 10;
inline constexpr size_t kMaxPacketDescriptors = 4;

// Two connected SOCK_SEQPACKET sockets, close-on-exec.
absl::StatusOr<std::pair<UniqueFd, UniqueFd>> CreateSocketPair();

// One end of the daemon's socket to a worker: one message a packet, descriptors beside it. Any
// thread may send; one thread at a time receives. The peer is not trusted: whatever it sends,
// Receive answers with a message, an outcome or an error.
class Channel {
 public:
  explicit Channel(UniqueFd socket);

  // Blocks while the socket is full, no longer than the send timeout. Descriptors are duplicated
  // into the packet: the caller keeps its own. RESOURCE_EXHAUSTED: the message is over
  // kMaxPacketBytes, nothing was sent. DEADLINE_EXCEEDED: the peer does not read. UNAVAILABLE: the
  // peer is gone.
  absl::Status Send(const google::protobuf::MessageLite& message,
                    absl::Span<const int> descriptors = {});

  // The same of a message that is encoded already; never blocks. DEADLINE_EXCEEDED: the socket is
  // full.
  absl::Status TrySend(std::string_view message, absl::Span<const int> descriptors = {});

  enum class Outcome { kMessage, kClosed, kTimeout };
  // INVALID_ARGUMENT when the packet was malformed, truncated or had too many descriptors; all it
  // brought is closed. `spin`: how long to keep asking before the thread sleeps, for an answer that
  // is expected within microseconds; sleeping and waking costs several.
  absl::StatusOr<Outcome> Receive(google::protobuf::MessageLite* message,
                                  std::vector<UniqueFd>* descriptors,
                                  absl::Duration timeout = absl::InfiniteDuration(),
                                  absl::Duration spin = absl::ZeroDuration());

  // Forever until it is set.
  absl::Status SetSendTimeout(absl::Duration timeout);

  int fd() const { return socket_.get(); }

 private:
  absl::Status SendPacket(std::string_view message, absl::Span<const int> descriptors, int flags);
  // As recvmsg into `buffer_`, but -1 and EAGAIN also after `timeout`.
  ssize_t ReceivePacket(msghdr* header, absl::Duration timeout, absl::Duration spin);

  UniqueFd socket_;
  std::unique_ptr<char[]> buffer_;
};

}  // namespace stride::wire
