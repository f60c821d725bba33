#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/steady_time.h"

namespace stride {

// Calls functions at given times on its own thread; they must not block. Thread-safe.
class Timer {
 public:
  Timer();
  ~Timer() { Stop(); }

  // Waits for the function that runs now, if any; pending and later ones are dropped. Not from a
  // function of the timer itself.
  void Stop();

  // Functions of equal time run in the order they were given.
  void At(SteadyTime time, std::function<void()> work);

 private:
  void Loop();

  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::multimap<SteadyTime, std::function<void()>> pending_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace stride
