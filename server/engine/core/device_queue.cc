#include "server/engine/core/device_queue.h"

#include <utility>

namespace stride::engine {

void DeviceQueue::Contents::Clear() {
  mapped.clear();
  modules.clear();
  load_errors.clear();
  attributes.clear();
  graphs.clear();
}

void DeviceQueue::Preparing::Add(Task& task) {
  task.links.being_prepared = true;
  task.links.prepared_before = last_;
  task.links.prepared_after = nullptr;
  (last_ != nullptr ? last_->links.prepared_after : first_) = &task;
  last_ = &task;
}

void DeviceQueue::Preparing::Remove(Task& task) {
  if (!std::exchange(task.links.being_prepared, false)) return;
  Task *before = task.links.prepared_before, *after = task.links.prepared_after;
  (before != nullptr ? before->links.prepared_after : first_) = after;
  (after != nullptr ? after->links.prepared_before : last_) = before;
}

std::vector<std::shared_ptr<Task>> DeviceQueue::Preparing::All() const {
  std::vector<std::shared_ptr<Task>> tasks;
  for (Task* task = first_; task != nullptr; task = task->links.prepared_after)
    tasks.push_back(task->shared_from_this());
  return tasks;
}

absl::Status MapArena(DeviceQueue& queue, const std::shared_ptr<store::Arena>& arena, bool peer) {
  if (!queue.contents.mapped.emplace(arena->id, false).second) return absl::OkStatus();
  const int fd = arena->fd.get();
  const bool in_place = arena->map.data() != nullptr && !queue.description.host_memory();
  absl::Status mapped = peer       ? queue.worker->MapPeerArena(arena->id, arena->size, fd)
                        : in_place ? queue.worker->MapHostArena(arena->id, arena->size, fd)
                                   : queue.worker->MapArena(arena->id, arena->size, fd);
  if (!mapped.ok()) queue.contents.mapped.erase(arena->id);
  return mapped;
}

void UnmapArena(DeviceQueue& queue, const store::Arena& arena) {
  if (queue.contents.mapped.erase(arena.id) > 0 && queue.worker != nullptr)
    queue.worker->UnmapArena(arena.id).IgnoreError();
}

}  // namespace stride::engine
