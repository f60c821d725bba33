#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace stride::cpu {

// A thread that makes calls one after another, in the order given. Thread-safe.
class SerialQueue {
 public:
  SerialQueue() : thread_([this] { Run(); }) {}
  ~SerialQueue();

  void Push(std::function<void()> call);
  // Until everything pushed before has returned.
  void Drain();

 private:
  void Run();

  absl::Mutex mutex_;
  std::deque<std::function<void()>> calls_ ABSL_GUARDED_BY(mutex_);  // the first may be running
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace stride::cpu
