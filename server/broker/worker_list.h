#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace stride::broker {

// A worker as the list knows it. Thread-safe.
class ListedWorker {
 public:
  virtual ~ListedWorker() = default;
  // Unique during the daemon's life.
  virtual uint64_t id() const = 0;
  // Kills the process; its reader thread ends afterwards.
  virtual void Retire() = 0;
};

// Every worker whose reader thread runs, so that the broker can end them all and wait. Thread-safe;
// outlives the workers.
class WorkerList {
 public:
  void Add(std::shared_ptr<ListedWorker> worker);
  // Called by the reader thread as its last step.
  void Remove(uint64_t id);
  // Kills every worker, now and from now on, and waits until their threads have ended.
  void EndAll();

 private:
  absl::Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<ListedWorker>> workers_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace stride::broker
