#include "server/engine/scheduling/hazards.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace stride::engine {

void LinkBehind(const std::shared_ptr<Task>& task, const std::shared_ptr<store::Access>& access) {
  auto before = std::static_pointer_cast<Task>(access);
  if (before == nullptr || before == task || before->state == TaskState::kDone) return;
  if (std::find(task->order.pending.begin(), task->order.pending.end(), before) !=
      task->order.pending.end())
    return;
  task->order.pending.push_back(before);
  before->order.dependents.push_back(task);
}

namespace {

void AddReader(const std::shared_ptr<Task>& task, Use& use) {
  use.reader = static_cast<uint32_t>(use.buffer->readers.size());
  use.buffer->readers.push_back(task);
}

// Moves the last reader into the gap, since one buffer may have thousands.
void TakeOutReader(const Task& task, const Use& use) {
  auto& readers = use.buffer->readers;
  // A write since then has replaced the list.
  if (use.reader >= readers.size() || readers[use.reader].get() != &task) return;
  const size_t last = readers.size() - 1;
  if (use.reader != last) {
    readers[use.reader] = std::move(readers[last]);
    for (Use& other : static_cast<Task&>(*readers[use.reader]).uses) {
      if (other.buffer == use.buffer && other.reader == last) other.reader = use.reader;
    }
  }
  readers.pop_back();
}

}  // namespace

void RegisterAccesses(const std::shared_ptr<Task>& task) {
  for (const Use& use : task->uses) {
    if (use.buffer == nullptr || use.held) continue;
    LinkBehind(task, use.buffer->writer);
    if (!use.write) continue;
    for (const auto& reader : use.buffer->readers) LinkBehind(task, reader);
  }
  for (Use& use : task->uses) {
    if (use.buffer == nullptr) continue;
    use.buffer->Touch();
    if (use.held) continue;
    if (use.write) {
      use.buffer->writer = task;
      use.buffer->readers.clear();
    } else if (use.read && use.buffer->writer != task) {
      AddReader(task, use);
    }
  }
}

namespace {

// Restores the accesses before a task that ended ahead of its turn: later tasks wait for them from
// now on. Some are there because of another buffer, and used this one long before. Only the last
// task that writes this buffer is its writer, and it stands for those before it.
void PutBack(const TaskList& earlier, const std::shared_ptr<store::Buffer>& buffer) {
  auto writes = [&](const Task& task) {
    return std::any_of(task.uses.begin(), task.uses.end(),
                       [&](const Use& use) { return use.buffer == buffer && use.write; });
  };
  std::shared_ptr<Task> writer;
  for (const auto& task : earlier) {
    bool later = writer == nullptr || writer->order.accepted < task->order.accepted;
    if (later && writes(*task)) writer = task;
  }
  if (writer != nullptr) buffer->writer = writer;
  for (const auto& task : earlier) {
    if (writer != nullptr && writer->order.accepted >= task->order.accepted) continue;
    auto& readers = buffer->readers;
    if (std::find(readers.begin(), readers.end(), task) != readers.end()) continue;
    auto use = std::find_if(task->uses.begin(), task->uses.end(),
                            [&](const Use& one) { return one.buffer == buffer; });
    if (use != task->uses.end()) AddReader(task, *use);
  }
}

}  // namespace

TaskList ReleaseAccesses(Task& task) {
  TaskList earlier = std::exchange(task.order.pending, {});
  for (const auto& before : earlier) {
    auto& behind = before->order.dependents;
    behind.erase(std::remove_if(behind.begin(), behind.end(),
                                [&](const auto& other) { return other.get() == &task; }),
                 behind.end());
  }
  for (const Use& use : task.uses) {
    if (use.buffer == nullptr) continue;
    use.buffer->Touch();
    if (use.held) continue;
    TakeOutReader(task, use);
    if (use.buffer->writer.get() != &task) continue;
    use.buffer->writer.reset();
    PutBack(earlier, use.buffer);
  }
  TaskList dependents = std::exchange(task.order.dependents, {});
  for (const auto& dependent : dependents) {
    for (const auto& before : earlier) LinkBehind(dependent, before);
  }
  for (const auto& dependent : dependents) {
    auto& pending = dependent->order.pending;
    pending.erase(std::remove_if(pending.begin(), pending.end(),
                                 [&](const auto& before) { return before.get() == &task; }),
                  pending.end());
  }
  return dependents;
}

bool NeedsOutputOf(const Task& later, const Task& task) {
  // Neither a client's upload nor a move makes content that later tasks were planned on.
  if (task.options.host_access || task.options.drop_other_replicas) return false;
  for (const Use& written : task.uses) {
    if (written.buffer == nullptr || !written.write || written.held) continue;
    for (const Use& use : later.uses) {
      if (use.buffer == written.buffer && !use.fresh && (use.read || use.write)) return true;
    }
  }
  return false;
}

absl::Status FirstInputError(const Task& task) {
  if (!task.order.lost_input.ok()) return task.order.lost_input;
  for (const Use& use : task.uses) {
    if (use.buffer == nullptr || use.fresh) continue;
    if ((use.read || use.write) && !use.buffer->error.ok()) return use.buffer->error;
  }
  return absl::OkStatus();
}

bool WritesHeld(const Task& task) {
  return std::any_of(task.uses.begin(), task.uses.end(),
                     [](const Use& use) { return use.held && use.write; });
}

absl::Status WritesInputOfBody(const Task& task) {
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::ERROR_REASON_INVALID_FIELD,
                   absl::StrCat("a kernel in a loop or a branch writes an input of the body; copy "
                                "the array there first: ",
                                task.label),
                   {{"operation", task.label}});
}

bool IsRepeatable(const Task& task) {
  return std::all_of(task.uses.begin(), task.uses.end(),
                     [](const Use& use) { return !use.write || use.fresh; });
}

}  // namespace stride::engine
