#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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
    task->state = TaskState::kDone;
    task->queue = nullptr;
    task->result = std::move(status);
  }
  void TakeBack(TenantTransaction&, const std::shared_ptr<Task>& task) override {
    Note("take back ", *task);
    Wait(*task);
  }
  void LeaveQueue(TenantTransaction&, const std::shared_ptr<Task>& task) override {
    Note("abandon ", *task);
    Wait(*task);
  }
  void DeadlinePassed(TenantTransaction&, const std::shared_ptr<Task>& task) override {
    Note("late ", *task);
  }

  std::vector<std::string> Take() { return std::exchange(events_, {}); }

 private:
  void Note(const char* what, const Task& task) {
    events_.push_back(absl::StrCat(what, task.label));
  }
  static void Wait(Task& task) {
    task.state = TaskState::kWaiting;
    task.queue = nullptr;
    task.recall_asked = task.recall_refused = task.grace_begun = false;
    task.num_recalls = 0;
  }

  std::vector<std::string> events_;
};

}  // namespace stride::engine
