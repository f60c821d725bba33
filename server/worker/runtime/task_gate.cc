#include "server/worker/runtime/task_gate.h"

namespace stride::worker {

void TaskGate::Cancel(absl::Span<const uint64_t> sequences, Completions* completions) {
  absl::MutexLock lock(&mutex_);
  bool taken = sequences.front() > begun_;
  if (taken) taken_.insert(sequences.begin(), sequences.end());
  completions->TasksCancelled(sequences.front(), taken);
}

bool TaskGate::Begin(uint64_t sequence) {
  absl::MutexLock lock(&mutex_);
  begun_ = sequence;
  return taken_.erase(sequence) == 0;
}

absl::Status TaskGate::CancelledResult() {
  return absl::CancelledError("the task was taken out of the queue");
}

}  // namespace stride::worker
