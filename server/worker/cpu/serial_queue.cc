#include "server/worker/cpu/serial_queue.h"

#include <utility>

namespace stride::cpu {

SerialQueue::~SerialQueue() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void SerialQueue::Push(std::function<void()> call, bool brief) {
  absl::MutexLock lock(&mutex_);
  calls_.push_back({std::move(call), brief});
}

bool SerialQueue::BriefIsNext() const {
  absl::MutexLock lock(&mutex_);
  return calls_.size() > 1 && calls_[1].brief;
}

void SerialQueue::Drain() {
  absl::MutexLock lock(&mutex_);
  auto empty = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return calls_.empty(); };
  mutex_.Await(absl::Condition(&empty));
}

void SerialQueue::Run() {
  absl::MutexLock lock(&mutex_);
  auto due = [this]()
                 ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !calls_.empty(); };
  for (;;) {
    mutex_.Await(absl::Condition(&due));
    if (calls_.empty()) return;
    std::function<void()> call = std::move(calls_.front().function);
    mutex_.Unlock();
    call();
    call = nullptr;  // release its captures before it counts as done
    mutex_.Lock();
    calls_.pop_front();
  }
}

}  // namespace stride::cpu
