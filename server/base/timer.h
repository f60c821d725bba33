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

  // Waits for the running function, if any; drops pending and later ones. Not to be called from a
  // function of the timer.
  void Stop();

  // Functions with equal times run in the order of submission.
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
