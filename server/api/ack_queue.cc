#include "server/api/ack_queue.h"

#include <utility>

#include "absl/time/clock.h"

namespace stride::api {

namespace {

// Enough to be worth waking the popper for, while more follow.
constexpr size_t kManyAcks = 64;

}  // namespace

bool AckQueue::Push(PendingAck ack, bool more) {
  std::unique_lock lock(mutex_);
  if (outstanding_ >= capacity_) StopHoldingBack();
  changed_.wait(lock, [&] { return broken_ || outstanding_ < capacity_; });
  if (broken_) return false;
  acks_.push_back(std::move(ack));
  ++outstanding_;
  more_ = more;
  if (!more || acks_.size() % kManyAcks == 0) changed_.notify_all();
  return true;
}

void AckQueue::StopHoldingBack() {
  more_ = false;
  changed_.notify_all();
}

void AckQueue::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  StopHoldingBack();
}

void AckQueue::Break() {
  std::deque<PendingAck> dropped;  // destroyed without the lock
  std::lock_guard lock(mutex_);
  broken_ = true;
  dropped.swap(acks_);
  changed_.notify_all();
}

AckQueue::Next AckQueue::Pop(absl::Time deadline, PendingAck* ack) {
  std::unique_lock lock(mutex_);
  auto ready = [&] { return broken_ || closed_ || !acks_.empty(); };
  if (deadline == absl::InfiniteFuture()) {
    changed_.wait(lock, ready);
  } else if (!changed_.wait_until(lock, absl::ToChronoTime(deadline), ready)) {
    return Next::kTimeout;
  }
  if (broken_ || acks_.empty()) return Next::kEnd;
  *ack = std::move(acks_.front());
  acks_.pop_front();
  return Next::kAck;
}

void AckQueue::Done() {
  std::lock_guard lock(mutex_);
  --outstanding_;
  changed_.notify_all();
}

bool AckQueue::idle() const {
  std::lock_guard lock(mutex_);
  return acks_.empty() && !more_;
}

}  // namespace stride::api
