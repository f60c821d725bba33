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

// What a worker is still to be sent, in order. Nothing here waits for the worker, however slowly it
// reads: those who send may hold locks that others need. Thread-safe.
class Outbox {
 public:
  // `channel` must outlive it.
  explicit Outbox(wire::Channel* channel) : channel_(*channel) {}

  // Puts a message, which comes in pieces, behind all others. Descriptors are duplicated: the
  // caller keeps its own. RESOURCE_EXHAUSTED: it is over kMaxPacketBytes, and is not sent.
  absl::Status Add(absl::Span<const std::string_view> pieces,
                   absl::Span<const int> descriptors = {});

  // Sends until nothing is left or the socket is full; while another thread is at it that one goes
  // on with what is there now. UNAVAILABLE: the worker is gone, and so is what it was to be sent.
  absl::Status Send();

  // Something waits for room in the socket: Send is to be called when there is.
  bool full() const { return full_.load(std::memory_order_acquire); }

 private:
  struct Packet {
    std::string bytes;
    std::vector<UniqueFd> descriptors;
  };
  // The next one; false: there is none, and this thread sends no more.
  bool Next(Packet* packet);
  // What `packet` says could not be sent now, or never.
  void Stop(Packet packet, bool full);

  wire::Channel& channel_;
  absl::Mutex mutex_;
  std::deque<Packet> packets_ ABSL_GUARDED_BY(mutex_);
  bool sending_ ABSL_GUARDED_BY(mutex_) = false;  // some thread is in Send
  std::string spare_ ABSL_GUARDED_BY(mutex_);     // of a packet that was sent, for the next
  std::atomic<bool> full_{false};
};

}  // namespace stride::broker
