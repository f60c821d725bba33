#pragma once

#include <cstdint>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/worker/runtime/device.h"

namespace stride::worker {

// Decides, for a device with its own queue, whether a task begins or is removed: exactly one of
// both. Thread-safe.
class TaskGate {
 public:
  // On the command loop's thread. Like Device::Cancel; notifies `completions` before any removed
  // task can fail to begin, so that the answer precedes their results.
  void Cancel(absl::Span<const uint64_t> sequences, Completions* completions);

  // On the thread that runs tasks, once for each, in order. False: the task was removed and must
  // not access memory; its result is CancelledResult().
  bool Begin(uint64_t sequence);

  static absl::Status CancelledResult();

 private:
  absl::Mutex mutex_;
  uint64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;        // the latest task that reached Begin
  std::set<uint64_t> taken_ ABSL_GUARDED_BY(mutex_);  // removed tasks that have not reached Begin
};

}  // namespace stride::worker
