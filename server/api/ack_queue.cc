#include "server/api/ack_queue.h"

#include <utility>

#include "absl/time/clock.h"
#include "server/base/steady_time.h"

namespace stride::api {

namespace {

// Number of results that is worth waking the popper for, while more follow.
constexpr size_t kManyAcks = 64;

}  // namespace

bool AckQueue::Push(absl::Span<PendingAck> acks, bool more) {
  std::unique_lock lock(mutex_);
  for (PendingAck& ack : acks) {
    if (outstanding_ >= capacity_ && !broken_) {
      StopHoldingBack();
      for_pusher_.wait(lock, [&] { return broken_ || outstanding_ < capacity_; });
    }
    if (broken_) return false;
    acks_.push_back(std::move(ack));
    ++outstanding_;
  }
  more_ = more;
  if (!more || acks_.size() >= kManyAcks) for_popper_.Notify();
  return true;
}

void AckQueue::StopHoldingBack() {
  more_ = false;
  for_popper_.Notify();
}

void AckQueue::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  StopHoldingBack();
}

void AckQueue::Break() {
  std::vector<PendingAck> dropped;  // destroyed without the lock
  std::lock_guard lock(mutex_);
  broken_ = true;
  dropped.swap(acks_);
  for_pusher_.notify_one();
  for_popper_.Notify();
}

AckQueue::Next AckQueue::Pop(SteadyTime deadline, std::vector<PendingAck>* acks) {
  std::unique_lock lock(mutex_);
  auto ready = [&] { return broken_ || closed_ || !acks_.empty(); };
  if (!for_popper_.Wait(lock, deadline, ready)) return Next::kTimeout;
  if (broken_ || acks_.empty()) return Next::kEnd;
  acks->swap(acks_);
  return Next::kAcks;
}

void AckQueue::Done(size_t count) {
  std::lock_guard lock(mutex_);
  const bool was_full = outstanding_ >= capacity_;
  outstanding_ -= count;
  if (was_full) for_pusher_.notify_one();
}

bool AckQueue::idle() const {
  std::lock_guard lock(mutex_);
  return acks_.empty() && !more_;
}

}  // namespace stride::api
