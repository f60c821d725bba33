#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/wire/channel.h"
#include "server/wire/worker.pb.h"
#include "server/worker/runtime/device.h"

namespace stride::worker {

// Sends events to the daemon. If no send is in progress, a completion is sent at once on the
// reporting thread, unless more are announced. Completions that arrive during a send go into the
// next packets.
//
// Thread-safe. When the daemon is gone the process exits, since it has no other work.
class EventSender : public Completions {
 public:
  // `channel` must outlive the sender.
  explicit EventSender(wire::Channel* channel) : channel_(channel) {}

  void TaskDone(uint64_t sequence, const absl::Status& status, double run_seconds,
                bool more) override;
  void TasksCancelled(uint64_t sequence, bool taken) override;
  void CopyDone(uint64_t id, const absl::Status& status) override;
  // Blocks until the daemon has read the text.
  void Printed(uint64_t sequence, const PrintedText& printed) override;
  [[noreturn]] void Fatal(uint64_t sequence, const absl::Status& status,
                          bool context_lost) override;

  // Sends any other event; not ordered with completions.
  void Send(const wire::Event& event, absl::Span<const int> descriptors = {});

 private:
  void Flush() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The oldest answer to a Cancel, which precedes any task that completed later.
  bool TakeCancelled(wire::Event* event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves as many completions as a packet holds into `event`; false when there are none.
  bool TakeTasks(wire::Event* event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeCopies(wire::Event* event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  wire::Channel* const channel_;
  absl::Mutex mutex_;
  std::deque<wire::TasksCancelled> cancelled_ ABSL_GUARDED_BY(mutex_);
  std::vector<wire::TaskResult> tasks_ ABSL_GUARDED_BY(mutex_);
  std::vector<wire::CopiesDone> copies_
      ABSL_GUARDED_BY(mutex_);  // neighbours with status OK are merged
  bool flushing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace stride::worker
