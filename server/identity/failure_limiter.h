#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/steady_time.h"

namespace stride::identity {

// Counts failed attempts of each address: some are free, then they come back one a second. It holds
// nobody up who shows good credentials, since a machine with one stale token must not shut out its
// neighbours behind the same address; what it saves is the log. Thread-safe; bounded memory.
class FailureLimiter {
 public:
  static constexpr double kFree = 20;
  static constexpr double kPerSecond = 1;
  static constexpr size_t kMaxAddresses = 4096;

  // Whether this failure is within what the address may have.
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
