#pragma once

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace stride {

// A lock for short sections that some threads take again and again. Whoever gives it back may take
// it again before a thread that waits for it has woken up, which is cheap, and with absl::Mutex may
// go on for tens of milliseconds where processors are few. Here only for a millisecond: who has
// waited that long is let in first. Thread-safe; not recursive.
class ABSL_LOCKABLE FairMutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION();
  // Does not wait.
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.TryLock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  // Threads that sleep for it.
  int num_waiting() const { return num_waiting_.load(std::memory_order_acquire); }
  // For absl::Condition: whoever has this one has that.
  absl::Mutex& base() { return mutex_; }

 private:
  void LetInFirst();
  void Wait() ABSL_EXCLUSIVE_LOCK_FUNCTION();
  void NoteTime();

  absl::Mutex mutex_;
  std::atomic<int> num_waiting_{0};
  // Nanoseconds of the steady clock when the first of them began to wait, or came to be the next.
  std::atomic<int64_t> waiting_since_{0};
};

}  // namespace stride
