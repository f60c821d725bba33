#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/core/device_queue.h"
#include "server/engine/core/task_events.h"

namespace stride::engine {

// Notes what a part does with tasks, by their labels, and changes their state as the scheduler
// would.
class FakeTaskEvents : public TaskEvents {
 public:
  void Evaluate(TenantTransaction&, const std::shared_ptr<Task>& task) override {
    Note("evaluate ", *task);
  }
  void Prepare(TenantTransaction&, const std::shared_ptr<Task>& task) override {
    Note("prepare ", *task);
  }
  void EndUnrun(TenantTransaction&, const std::shared_ptr<Task>& task,
                absl::Status status) override {
    Note("end ", *task);
    Leave(*task);
    task->state = TaskState::kDone;
    task->result = std::move(status);
  }
  void Complete(TenantTransaction&, const std::shared_ptr<Task>& task,
                absl::Status status) override {
    Note("complete ", *task);
    Leave(*task);
    task->state = TaskState::kDone;
    task->result = std::move(status);
  }
  void Unplace(TenantTransaction&, Task& task, TaskState next) override {
    Note(next == TaskState::kWaiting ? "postpone " : "run apart ", task);
    Leave(task);
    task.state = next;
  }
  void Requeue(TenantTransaction&, const std::shared_ptr<Task>& task) override {
    Note("requeue ", *task);
    Wait(*task);
  }
  void LeaveQueue(TenantTransaction&, const std::shared_ptr<Task>& task) override {
    Note("abandon ", *task);
    Wait(*task);
  }

  std::vector<std::string> Take() { return std::exchange(events_, {}); }

 private:
  void Note(const char* what, const Task& task) {
    events_.push_back(absl::StrCat(what, task.label));
  }
  static void Leave(Task& task) {
    if (task.queue != nullptr) task.queue->preparing.Remove(task);
    if (task.links.queued_ready) task.queue->sending.ready.pop_front();
    task.links.queued_ready = false;
    task.queue = nullptr;
  }
  static void Wait(Task& task) {
    Leave(task);
    task.state = TaskState::kWaiting;
    task.cancel.recall_asked = task.cancel.recall_refused = task.cancel.grace_begun = false;
    task.cancel.num_recalls = 0;
  }

  std::vector<std::string> events_;
};

}  // namespace stride::engine
