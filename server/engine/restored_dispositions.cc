#include "server/engine/restored_dispositions.h"

#include <algorithm>
#include <vector>

#include "server/engine/persistence/task_codec.h"

namespace stride::engine {
namespace {

QueuedTask AsQueued(const recovery::TaskRecord& task, const recovery::DispatchRecord& dispatch,
                    const WorkerProgress& progress) {
  QueuedTask queued{
      .first_sequence = dispatch.first_sequence(),
      .last_sequence = dispatch.last_sequence(),
      .repeatable = dispatch.num_deaths() + 1 < kMaxTaskAttempts && !WritesInPlace(dispatch),
      .cancelled = dispatch.has_recall(),
      .running = WasRunning(dispatch, progress)};
  for (int i = 0; i < std::min(dispatch.flags_size(), task.uses_size()); ++i) {
    queued.uses.push_back({.buffer = task.uses(i).buffer(),
                           .write = (dispatch.flags(i) & kUseWrite) != 0,
                           .fresh = (dispatch.flags(i) & kUseFresh) != 0});
  }
  return queued;
}

// Null: it is not known.
const QueueProgress* ProgressOf(uint64_t worker, const WorkerProgress& progress) {
  auto found = progress.find(worker);
  return found != progress.end() && found->second.has_value() ? &*found->second : nullptr;
}

}  // namespace

bool WritesInPlace(const recovery::DispatchRecord& dispatch) {
  return std::any_of(dispatch.flags().begin(), dispatch.flags().end(), [](uint32_t flags) {
    return (flags & kUseWrite) != 0 && (flags & kUseFresh) == 0;
  });
}

bool WasRunning(const recovery::DispatchRecord& dispatch, const WorkerProgress& progress) {
  const QueueProgress* known = ProgressOf(dispatch.worker(), progress);
  if (known == nullptr) return true;
  const uint32_t next = known->completed + 1;
  return wire::AtOrBefore(next, known->started) &&
         wire::AtOrBefore(dispatch.first_sequence(), next) &&
         !wire::AtOrBefore(dispatch.last_sequence(), known->completed);
}

std::map<uint64_t, TaskDisposition> DispositionsOf(const RecordSet& records,
                                                   const WorkerProgress& progress) {
  std::map<uint64_t, TaskDisposition> dispositions;
  std::map<uint64_t, std::vector<uint64_t>> queues;  // tasks by worker
  for (const auto& [id, record] : records.tasks) {
    auto dispatch = records.dispatches.find(id);
    if (dispatch == records.dispatches.end()) {
      dispositions[id] = TaskDisposition::kAgain;
    } else {
      queues[dispatch->second.worker()].push_back(id);
    }
  }
  for (auto& [worker, ids] : queues) {
    std::sort(ids.begin(), ids.end(), [&](uint64_t a, uint64_t b) {
      return records.dispatches.at(a).last_sequence() < records.dispatches.at(b).last_sequence();
    });
    std::vector<QueuedTask> queue;
    for (uint64_t id : ids)
      queue.push_back(AsQueued(records.tasks.at(id), records.dispatches.at(id), progress));
    const QueueProgress* known = ProgressOf(worker, progress);
    const std::vector<TaskDisposition> judged =
        known != nullptr ? DispositionsOf(queue, *known) : std::vector<TaskDisposition>();
    for (size_t i = 0; i < ids.size(); ++i) {
      // If the worker's progress is not known, any of its tasks may have been running.
      dispositions[ids[i]] = known != nullptr      ? judged[i]
                             : queue[i].repeatable ? TaskDisposition::kAgain
                                                   : TaskDisposition::kLost;
    }
  }
  return dispositions;
}

}  // namespace stride::engine
