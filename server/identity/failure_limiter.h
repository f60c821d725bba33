#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/steady_time.h"

namespace stride::identity {

// Limits the log lines about failed attempts of each address: a burst of kFree, then kPerSecond.
// Good credentials always pass, since a machine with one stale token must not lock out others that
// share its address. Thread-safe; bounded memory.
class FailureLimiter {
 public:
  static constexpr double kFree = 20;
  static constexpr double kPerSecond = 1;
  static constexpr size_t kMaxAddresses = 4096;

  // Whether this failure is within the address's allowance.
  bool Take(const std::string& address, SteadyTime now);

 private:
  struct Bucket {
    double left = kFree;
    SteadyTime time;
  };
  void Forget(SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace stride::identity
