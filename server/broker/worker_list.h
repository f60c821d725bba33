#pragma once

#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace stride::broker {

class WorkerProcess;

// Every worker whose reader thread runs, so that the broker can end them all and wait. Thread-safe;
// outlives them.
class WorkerList {
 public:
  void Add(std::shared_ptr<WorkerProcess> worker);
  // The thread's last act.
  void Remove(uint64_t id);
  // Kills every worker, now and from now on, and waits until their threads have ended.
  void EndAll();

 private:
  absl::Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<WorkerProcess>> workers_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace stride::broker
