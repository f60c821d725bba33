#include "server/scheduler/lane.h"

#include <utility>

namespace stride::scheduler {

void Lane::ForgetWorker() {
  mapped.clear();
  loaded.clear();
  load_errors.clear();
  attributes.clear();
  graphs.clear();
}

void Lane::Preparing::Add(Task& task) {
  task.being_prepared = true;
  task.prepared_before = last_;
  task.prepared_after = nullptr;
  (last_ != nullptr ? last_->prepared_after : first_) = &task;
  last_ = &task;
}

void Lane::Preparing::Remove(Task& task) {
  if (!std::exchange(task.being_prepared, false)) return;
  Task *before = task.prepared_before, *after = task.prepared_after;
  (before != nullptr ? before->prepared_after : first_) = after;
  (after != nullptr ? after->prepared_before : last_) = before;
}

std::vector<std::shared_ptr<Task>> Lane::Preparing::All() const {
  std::vector<std::shared_ptr<Task>> tasks;
  for (Task* task = first_; task != nullptr; task = task->prepared_after)
    tasks.push_back(task->shared_from_this());
  return tasks;
}

absl::Status MapArena(Lane& lane, const std::shared_ptr<store::Arena>& arena, bool peer) {
  if (!lane.mapped.emplace(arena->id, false).second) return absl::OkStatus();
  const int fd = arena->fd.get();
  const bool in_place = arena->map.data() != nullptr && !lane.description.host_memory();
  absl::Status mapped = peer       ? lane.worker->MapPeerArena(arena->id, arena->size, fd)
                        : in_place ? lane.worker->MapHostArena(arena->id, arena->size, fd)
                                   : lane.worker->MapArena(arena->id, arena->size, fd);
  if (!mapped.ok()) lane.mapped.erase(arena->id);
  return mapped;
}

void UnmapArena(Lane& lane, const store::Arena& arena) {
  if (lane.mapped.erase(arena.id) > 0 && lane.worker != nullptr)
    lane.worker->UnmapArena(arena.id).IgnoreError();
}

}  // namespace stride::scheduler
