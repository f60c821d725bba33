#include "server/base/executor.h"

#include <utility>

namespace stride {

void Executor::Stop() {
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

void Executor::Run(std::function<void()> work) {
  absl::MutexLock lock(&mutex_);
  if (stopped_) return;
  queue_.push_back(std::move(work));
  if (!closing_ && static_cast<int>(queue_.size()) > idle_ &&
      static_cast<int>(threads_.size()) < max_threads_) {
    threads_.emplace_back([this] { Loop(); });
  }
}

void Executor::Loop() {
  mutex_.Lock();
  auto ready = [this]()
                   ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closing_ || !queue_.empty(); };
  while (true) {
    ++idle_;
    mutex_.Await(absl::Condition(&ready));
    --idle_;
    if (queue_.empty()) break;
    std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    mutex_.Unlock();
    work();
    work = nullptr;
    mutex_.Lock();
  }
  mutex_.Unlock();
}

}  // namespace stride
