#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "absl/time/time.h"
#include "server/scheduler/engine.h"
#include "stride/v1/compute_service.pb.h"

namespace stride::api {

// One command that was taken and is not yet acknowledged.
struct PendingAck {
  enum class Kind { kReady, kWait, kFetch, kSynchronize };
  Kind kind = Kind::kReady;
  std::shared_ptr<v1::CommandResult> result;      // has the id; complete when kReady
  std::shared_ptr<scheduler::Ticket> ticket;      // kWait
  std::unique_ptr<scheduler::InlineFetch> fetch;  // kFetch
  uint64_t before = 0;                            // kSynchronize: operations up to this number
};

// The commands between the reader and the writer of one Execute stream, in order and bounded. One
// thread pushes, one pops.
class AckQueue {
 public:
  explicit AckQueue(size_t capacity) : capacity_(capacity) {}

  // Blocks while full. False, without taking it, once Break() was called. `more`: others follow at
  // once, so the popper is not woken for each of them, nor finds the queue idle in between.
  bool Push(PendingAck ack, bool more = false);
  // No more will be pushed.
  void Close();
  // Nobody reads the answers: what is queued is dropped, and Push fails.
  void Break();

  enum class Next { kAck, kTimeout, kEnd };
  // The oldest; kEnd when closed and empty, or broken.
  Next Pop(absl::Time deadline, PendingAck* ack);
  // The popped one was completed.
  void Done();
  // Nothing is queued, and nothing follows at once.
  bool idle() const;

 private:
  // The pusher will be a while: the popper goes on with what there is. Caller holds the lock.
  void StopHoldingBack();

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<PendingAck> acks_;  // guarded by mutex_, as are all below
  size_t outstanding_ = 0;       // queued, and popped but not done
  bool more_ = false;            // the last Push said so
  bool closed_ = false;
  bool broken_ = false;
};

}  // namespace stride::api
