#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace stride {

// Runs functions that may block (starting processes, moving bytes) on its own threads, in the order
// they were given, several at once. Thread-safe. Threads are started as they are needed, up to
// `max_threads`.
class Executor {
 public:
  explicit Executor(int max_threads) : max_threads_(max_threads) {}
  ~Executor() { Stop(); }

  // Runs what is queued, also what that adds, then joins; later work is dropped.
  void Stop();

  void Run(std::function<void()> work);

 private:
  void Loop();

  const int max_threads_;
  absl::Mutex mutex_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;  // threads end when the queue is empty
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;  // they have ended
};

}  // namespace stride
