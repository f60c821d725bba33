#include "server/engine/scheduling/task_dispositions.h"

#include <algorithm>
#include <set>

namespace stride::engine {
namespace {

using wire::AtOrBefore;

class Judge {
 public:
  Judge(absl::Span<const QueuedTask> queue, const QueueProgress& progress)
      : queue_(queue), progress_(progress), dispositions_(queue.size()), has_run_(queue.size()) {}

  std::vector<TaskDisposition> Run() {
    for (size_t i = 0; i < queue_.size(); ++i) {
      const QueuedTask& task = queue_[i];
      const bool undone = RanOnGarbage(task);
      has_run_[i] = Completed(task) && !undone;
      dispositions_[i] = DispositionOf(task, undone);
    }
    KeepWhatWasUsed();
    return std::move(dispositions_);
  }

 private:
  bool Completed(const QueuedTask& task) const {
    return !task.running && AtOrBefore(task.last_sequence, progress_.completed);
  }
  bool TakenOut(const QueuedTask& task) const {
    return progress_.undone.TakenOut(task.last_sequence);
  }

  TaskDisposition DispositionOf(const QueuedTask& task, bool undone) const {
    if (task.running && (task.at_fault || !task.repeatable)) return TaskDisposition::kLost;
    if (!Completed(task) || TakenOut(task)) return TaskDisposition::kAgain;
    // A task cancelled too late has ended, and only its message was lost: later tasks have its
    // result. A task cancelled in time ends so and never runs again.
    const bool too_late = task.cancelled && !undone;
    const bool again = !too_late && (task.cancelled || !OverwrittenSince(task));
    if (task.repeatable && again) return TaskDisposition::kAgain;
    return undone ? TaskDisposition::kLost : TaskDisposition::kDone;
  }

  // Whether the task failed, was taken out, or has read the output of such a task. Its own output
  // is garbage then, too.
  bool RanOnGarbage(const QueuedTask& task) {
    bool undone =
        TakenOut(task) || progress_.undone.Failed(task.first_sequence, task.last_sequence);
    for (const QueuedTask::Use& use : task.uses)
      undone = undone || (use.buffer != 0 && !use.fresh && garbage_.count(use.buffer) > 0);
    for (const QueuedTask::Use& use : task.uses) {
      if (undone && use.buffer != 0 && use.write) garbage_.insert(use.buffer);
    }
    return undone;
  }

  // Whether a later task that has begun changes in place what this one used: a second run would
  // read other content, or undo the change. A stream counts waiting tasks as begun, so only the one
  // after the last completed task counts.
  bool OverwrittenSince(const QueuedTask& task) const {
    return std::any_of(queue_.begin(), queue_.end(), [&](const QueuedTask& later) {
      if (later.last_sequence <= task.last_sequence ||
          !AtOrBefore(later.first_sequence, progress_.started) ||
          !AtOrBefore(later.first_sequence, progress_.completed + 1))
        return false;
      return std::any_of(later.uses.begin(), later.uses.end(), [&](const QueuedTask::Use& written) {
        return written.buffer != 0 && written.write && !written.fresh && Uses(task, written.buffer);
      });
    });
  }
  static bool Uses(const QueuedTask& task, uint64_t buffer) {
    return std::any_of(task.uses.begin(), task.uses.end(),
                       [&](const QueuedTask::Use& use) { return use.buffer == buffer; });
  }

  // Keeps a task done if its result was used by a task that has run and does not run again. A
  // second run might fail, although the later task has its result.
  void KeepWhatWasUsed() {
    std::set<uint64_t> used;
    for (size_t i = queue_.size(); i-- > 0;) {
      if (!has_run_[i]) continue;
      for (const QueuedTask::Use& use : queue_[i].uses) {
        if (use.write && used.count(use.buffer) > 0) dispositions_[i] = TaskDisposition::kDone;
      }
      for (const QueuedTask::Use& use : queue_[i].uses) {
        if (dispositions_[i] != TaskDisposition::kAgain && use.buffer != 0 && !use.fresh)
          used.insert(use.buffer);
      }
    }
  }

  const absl::Span<const QueuedTask> queue_;
  const QueueProgress& progress_;
  std::vector<TaskDisposition> dispositions_;
  std::vector<bool> has_run_;   // to the end, on valid input
  std::set<uint64_t> garbage_;  // buffers
};

}  // namespace

std::vector<TaskDisposition> DispositionsOf(absl::Span<const QueuedTask> queue,
                                            const QueueProgress& progress) {
  return Judge(queue, progress).Run();
}

}  // namespace stride::engine
