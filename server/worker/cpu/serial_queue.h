#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace stride::cpu {

// A thread that makes calls one after another, in order of submission. Thread-safe.
class SerialQueue {
 public:
  SerialQueue() : thread_([this] { Run(); }) {}
  ~SerialQueue();

  // `brief`: it takes microseconds.
  void Push(std::function<void()> call, bool brief = false);
  // Whether a brief call follows the running one. To be called by the running call.
  bool BriefIsNext() const;
  // Waits until every earlier call has returned.
  void Drain();

 private:
  struct Call {
    std::function<void()> function;
    bool brief = false;
  };
  void Run();

  mutable absl::Mutex mutex_;
  std::deque<Call> calls_ ABSL_GUARDED_BY(mutex_);  // the first may be running
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace stride::cpu
