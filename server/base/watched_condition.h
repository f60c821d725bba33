#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "absl/time/time.h"
#include "server/base/spin.h"
#include "server/base/steady_time.h"

namespace stride {

// A condition variable whose waiter polls for kWatch before it sleeps (SpinUntil): for events that
// mostly follow within microseconds. The caller owns the mutex. One thread waits at a time.
class WatchedCondition {
 public:
  // Reports that the condition may hold now. The caller holds the mutex.
  void Notify() {
    num_notices_.fetch_add(1, std::memory_order_release);
    changed_.notify_one();
  }

  // Waits until `holds`, evaluated under the lock, returns true; false: the deadline has passed.
  template <typename Predicate>
  bool Wait(std::unique_lock<std::mutex>& lock, SteadyTime deadline, Predicate holds) {
    if (holds()) return true;
    const uint32_t seen = num_notices_.load(std::memory_order_relaxed);
    lock.unlock();
    SpinUntil([&] { return num_notices_.load(std::memory_order_acquire) != seen; }, kWatch);
    lock.lock();
    if (deadline != SteadyTime::InfiniteFuture())
      return changed_.wait_until(lock, deadline.ToChrono(), holds);
    changed_.wait(lock, holds);
    return true;
  }

 private:
  std::condition_variable changed_;
  std::atomic<uint32_t> num_notices_{0};
};

}  // namespace stride
