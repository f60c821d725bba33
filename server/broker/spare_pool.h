#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/steady_time.h"
#include "server/broker/worker.h"

namespace stride::broker {

// Ready workers kept for each device, so that a tenant's first job does not wait for a process. One
// thread starts them, one after another; a device whose workers do not start is tried again after a
// growing pause. Thread-safe.
class SparePool {
 public:
  using Start = std::function<absl::StatusOr<std::shared_ptr<Worker>>(int device)>;

  SparePool(int num_devices, int num_spares, Start start);
  ~SparePool() { Stop(); }

  // A living spare, or nullptr. Starts its replacement.
  std::shared_ptr<Worker> Take(int device);
  // Drops dead spares and starts replacements. Call when a worker has died.
  void Prune();
  // Releases the spares and ends the thread; waits for a start in progress.
  void Stop();

 private:
  struct Shelf {
    std::vector<std::shared_ptr<Worker>> ready;
    SteadyTime next_try = SteadyTime::InfinitePast();
    absl::Duration pause = absl::ZeroDuration();
  };
  void Run();
  // A device that lacks a spare and may be tried now; -1: none. `next`: when another may be tried.
  int NextDevice(SteadyTime* next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Shelve(int device, absl::StatusOr<std::shared_ptr<Worker>> worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int num_spares_;
  const Start start_;
  absl::Mutex mutex_;
  std::vector<Shelf> shelves_ ABSL_GUARDED_BY(mutex_);
  bool changed_ ABSL_GUARDED_BY(mutex_) = true;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace stride::broker
