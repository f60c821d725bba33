#include "server/base/executor.h"

#include <stdexcept>
#include <utility>

#include "server/base/environment.h"
#include "server/base/steady_wait.h"
#include "server/base/system_error.h"

namespace stride {
namespace {

// Attempts to start an executor's first thread, if the machine has none at the moment.
constexpr int kTries = 200;
constexpr absl::Duration kPause = absl::Milliseconds(10);

}  // namespace

void Executor::Stop() {
  Threads threads;
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    threads.splice(threads.end(), threads_);
    threads.splice(threads.end(), ended_);
  }
  for (std::thread& thread : threads) thread.join();
  if (simulated_environment != nullptr) simulated_environment->Finish(this);
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

void Executor::Run(std::function<void()> work) {
  absl::MutexLock lock(&mutex_);
  if (stopped_) return;
  if (simulated_environment != nullptr) {
    simulated_environment->Run(this, std::move(work));
    return;
  }
  for (std::thread& thread : ended_) thread.join();
  ended_.clear();
  queue_.push_back(std::move(work));
  if (!closing_ && static_cast<int>(queue_.size()) > idle_ &&
      static_cast<int>(threads_.size()) < max_threads_) {
    auto self = threads_.emplace(threads_.end());
    absl::StatusOr<std::thread> thread = StartThread([this, self] { Loop(self); });
    // If the machine refuses a thread, the others do the work. The first one is retried.
    for (int i = 1; !thread.ok() && threads_.size() == 1; ++i) {
      if (i == kTries) throw std::runtime_error("the machine has no thread for this process");
      absl::SleepFor(kPause);
      thread = StartThread([this, self] { Loop(self); });
    }
    if (thread.ok()) {
      *self = *std::move(thread);
    } else {
      threads_.erase(self);
    }
  }
}

int Executor::num_threads() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(threads_.size());
}

void Executor::Loop(Threads::iterator self) {
  mutex_.Lock();
  auto ready = [this]()
                   ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closing_ || !queue_.empty(); };
  while (true) {
    ++idle_;
    SteadyAwait(mutex_, absl::Condition(&ready), MachineTime() + idle_time_);
    --idle_;
    if (queue_.empty()) break;
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    mutex_.Unlock();
    work();
    work = nullptr;
    mutex_.Lock();
  }
  if (!closing_) ended_.splice(ended_.end(), threads_, self);
  mutex_.Unlock();
}

}  // namespace stride
