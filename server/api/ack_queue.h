#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/base/steady_time.h"
#include "server/base/watched_condition.h"
#include "server/engine/service/download.h"
#include "server/engine/service/operation_handle.h"
#include "server/session/array_description.h"
#include "stride/v1/array.pb.h"

namespace stride::api {

// A command that was accepted for processing and is not yet acknowledged.
struct PendingAck {
  enum class Kind { kReady, kWait, kFetch, kSynchronize };
  Kind kind = Kind::kReady;
  uint64_t id = 0;      // the command's
  absl::Status status;  // not OK: it was refused
  // kReady: the outputs of an accepted operation, in one or the other.
  session::PendingArrays pending;
  std::vector<v1::Array> arrays;
  // kWait: the operation, and which results its answer includes.
  std::shared_ptr<engine::OperationHandle> handle;
  std::vector<bool> wanted;  // WantedInline
  bool timeline = false;
  std::unique_ptr<engine::Download> fetch;  // kFetch
  uint64_t before = 0;                      // kSynchronize: operations up to this number
};

// Bounded queue of commands, in order, between the reader and the writer of one Execute stream. One
// thread pushes, one pops.
class AckQueue {
 public:
  explicit AckQueue(size_t capacity) : capacity_(capacity) {}

  // Moves `acks` into the queue in order; blocks while it is full. Returns false after Break(),
  // possibly without all of them. `more`: others follow at once, so the popper is not woken for
  // these, and the queue does not count as idle.
  bool Push(absl::Span<PendingAck> acks, bool more = false);
  // No more acks will be pushed.
  void Close();
  // The client no longer reads: drops queued acks, and Push fails.
  void Break();

  enum class Next { kAcks, kTimeout, kEnd };
  // Moves all queued acks into the empty `acks`, oldest first. Returns kEnd when the queue is
  // closed and empty, or broken.
  Next Pop(SteadyTime deadline, std::vector<PendingAck>* acks);
  // Reports that `count` popped acks were completed.
  void Done(size_t count);
  // Returns whether nothing is queued and nothing follows at once.
  bool idle() const;

 private:
  // Lets the popper continue with the queued acks when the pusher will take a while. Caller holds
  // the lock.
  void StopHoldingBack();

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable for_pusher_;
  WatchedCondition for_popper_;
  std::vector<PendingAck> acks_;  // guarded by mutex_, as are all below
  size_t outstanding_ = 0;        // queued, and popped but not done
  bool more_ = false;             // the last Push said so
  bool closed_ = false;
  bool broken_ = false;
};

}  // namespace stride::api
