#pragma once

#include <cstdint>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/worker/runtime/device.h"

namespace stride::worker {

// Decides, for a device with a queue of its own, whether a task begins or is taken out: each is
// either, never both. Thread-safe.
class TaskGate {
 public:
  // The command loop's thread. As Device::Cancel; tells `completions` before any task taken out can
  // fail to begin, so that the answer comes before their results.
  void Cancel(absl::Span<const uint64_t> sequences, Completions* completions);

  // The thread that runs tasks, once for each, in order. False: it was taken out and must not touch
  // memory; its result is CancelledResult().
  bool Begin(uint64_t sequence);

  static absl::Status CancelledResult();

 private:
  absl::Mutex mutex_;
  uint64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;  // the last one, or the last that did not begin
  std::set<uint64_t> taken_ ABSL_GUARDED_BY(mutex_);  // their turn has not come
};

}  // namespace stride::worker
