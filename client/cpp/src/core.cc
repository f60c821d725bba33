#include "client/cpp/src/core.h"

#include <utility>

#include "client/cpp/src/pending_command.h"

namespace stride::internal {

void Core::InBackground(Cancellation cancellation, std::function<void()> work) {
  std::lock_guard lock(mutex_);
  std::erase_if(tasks_, [](const auto& task) {
    if (!task->done) return false;
    task->thread.join();
    return true;
  });
  auto task = std::make_unique<Task>();
  task->cancellation = std::move(cancellation);
  task->thread = std::thread([task = task.get(), work = std::move(work)] {
    work();
    task->done = true;
  });
  tasks_.push_back(std::move(task));
}

void Core::NoteWrite(std::shared_ptr<PendingCommand> command) {
  std::lock_guard lock(mutex_);
  last_write_ = std::move(command);
}

void Core::AwaitWrites(const CallOptions& options) {
  std::shared_ptr<PendingCommand> last;
  {
    std::lock_guard lock(mutex_);
    last = last_write_;
  }
  if (last) (void)last->Wait(options, default_timeout);
}

std::shared_ptr<PendingCommand> Core::Refuse(Error error) {
  auto command = std::make_shared<PendingCommand>();
  {
    std::lock_guard lock(mutex_);
    if (!refusal_) refusal_ = error;
  }
  command->Fail(std::move(error));
  return command;
}

std::optional<Error> Core::TakeRefusal() {
  std::lock_guard lock(mutex_);
  return std::exchange(refusal_, std::nullopt);
}

void Core::Close() {
  std::vector<std::unique_ptr<Task>> tasks;
  {
    std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (auto& task : tasks) task->cancellation.Cancel();
  for (auto& task : tasks) task->thread.join();
  stream.Close();
  local.Close();
  shared.EndSession();
}

}  // namespace stride::internal
