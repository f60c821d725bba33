#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/base/unique_fd.h"
#include "server/wire/channel.h"

namespace stride::broker {

// Messages queued for a worker, in order. No method waits for the worker, however slowly it reads:
// senders may hold locks that other threads need. Thread-safe.
class Outbox {
 public:
  // `channel` must outlive the outbox.
  explicit Outbox(wire::Channel* channel) : channel_(*channel) {}

  // Appends a message, given in pieces. Descriptors are duplicated: the caller keeps its own.
  // RESOURCE_EXHAUSTED: the message is over kMaxPacketBytes and is not sent.
  absl::Status Add(absl::Span<const std::string_view> pieces,
                   absl::Span<const int> descriptors = {});

  // Sends until the queue is empty or the socket is full. Returns at once while another thread
  // sends: that thread also sends the packets added so far. UNAVAILABLE: the worker is gone, and
  // its messages are dropped.
  absl::Status Send();

  // Packets wait for room in the socket. Call Send again when the socket is writable.
  bool full() const { return full_.load(std::memory_order_acquire); }

 private:
  struct Packet {
    std::string bytes;
    std::vector<UniqueFd> descriptors;
  };
  // Takes the next packet; false: the queue is empty, and this thread stops sending.
  bool Next(Packet* packet);
  // Ends this thread's Send. `full`: puts `packet` back for later; otherwise drops all packets.
  void Stop(Packet packet, bool full);

  wire::Channel& channel_;
  absl::Mutex mutex_;
  std::deque<Packet> packets_ ABSL_GUARDED_BY(mutex_);
  bool sending_ ABSL_GUARDED_BY(mutex_) = false;  // some thread is in Send
  std::string spare_ ABSL_GUARDED_BY(mutex_);     // buffer of a sent packet, used for the next
  std::atomic<bool> full_{false};
};

}  // namespace stride::broker
