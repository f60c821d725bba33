#pragma once

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace stride {

// A lock for short critical sections that some threads enter again and again. The thread that
// unlocks it may lock it again before a waiter has woken up, which is cheap. With absl::Mutex this
// may go on for tens of milliseconds where processors are few; here a thread that has waited for
// one millisecond goes first. Thread-safe; not recursive.
class ABSL_LOCKABLE FairMutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION();
  // Never blocks.
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.TryLock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  // Number of threads that sleep until the lock is free.
  int num_waiting() const { return num_waiting_.load(std::memory_order_acquire); }
  // The underlying mutex, for absl::Condition. It is held exactly while the FairMutex is held.
  absl::Mutex& base() { return mutex_; }

 private:
  void LetInFirst();
  void Wait() ABSL_EXCLUSIVE_LOCK_FUNCTION();
  void NoteTime();

  absl::Mutex mutex_;
  std::atomic<int> num_waiting_{0};
  // Steady-clock nanoseconds at which the longest waiter began to wait or became the first in line.
  std::atomic<int64_t> waiting_since_{0};
};

}  // namespace stride
