#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/steady_time.h"

namespace stride::api {

// Limits the calls that each peer may cancel. gRPC 1.51 gives even a call that is opened and reset
// at once a thread (CVE-2023-44487), and a connection's limit of streams does not count it: some
// thousands at once leave no threads for other peers. By peer, since an attacker reconnects at
// once. Thread-safe.
class ResetBudget {
 public:
  static constexpr double kPerSecond = 200;  // far more than clients cancel

  // So many at once.
  void set_burst(int burst) {
    absl::MutexLock lock(&mutex_);
    burst_ = burst;
  }
  // Charges `resets` to `peer`. False: too many.
  bool Take(const std::string& peer, uint64_t resets, SteadyTime now);
  // Number of remembered peers: those whose budget is not full, as of the last cleanup.
  size_t num_peers() const;

 private:
  struct Bucket {
    double left;
    SteadyTime time;  // as of then
  };
  double LeftAt(const Bucket& bucket, SteadyTime now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  double burst_ ABSL_GUARDED_BY(mutex_) = 500;
  std::map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mutex_);
  SteadyTime next_forget_ ABSL_GUARDED_BY(mutex_) = SteadyTime::InfinitePast();
};

}  // namespace stride::api
