#pragma once

#include <deque>
#include <functional>
#include <list>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace stride {

// Runs functions that may block (starting processes, moving bytes) on its own threads, in the order
// of submission, several at once. Thread-safe. Threads are started on demand, up to `max_threads`,
// and end after `idle_time` without work.
class Executor {
 public:
  explicit Executor(int max_threads, absl::Duration idle_time = absl::Seconds(5))
      : max_threads_(max_threads), idle_time_(idle_time) {}
  ~Executor() { Stop(); }

  // Runs queued work and work that it adds, then joins the threads; drops later work.
  void Stop();

  void Run(std::function<void()> work);

  int num_threads() const;

 private:
  using Threads = std::list<std::thread>;

  void Loop(Threads::iterator self);

  const int max_threads_;
  const absl::Duration idle_time_;
  mutable absl::Mutex mutex_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  Threads threads_ ABSL_GUARDED_BY(mutex_);
  Threads ended_ ABSL_GUARDED_BY(mutex_);  // ended threads to join, which need no lock any more
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;  // threads end when the queue is empty
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;  // they have ended
};

}  // namespace stride
