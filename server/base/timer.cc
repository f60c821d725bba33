#include "server/base/timer.h"

#include <utility>

#include "server/base/environment.h"
#include "server/base/steady_wait.h"

namespace stride {

Timer::Timer() {
  if (simulated_environment == nullptr) thread_ = std::thread([this] { Loop(); });
}

void Timer::Stop() {
  if (simulated_environment != nullptr) {
    simulated_environment->Forget(this);
    return;
  }
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    changed_.Signal();
  }
  if (thread_.joinable()) thread_.join();
}

void Timer::At(SteadyTime time, std::function<void()> work) {
  if (time == SteadyTime::InfiniteFuture()) return;
  if (simulated_environment != nullptr) {
    simulated_environment->At(this, time, std::move(work));
    return;
  }
  absl::MutexLock lock(&mutex_);
  auto position = pending_.emplace(time, std::move(work));
  if (position == pending_.begin()) changed_.Signal();
}

void Timer::Loop() {
  absl::MutexLock lock(&mutex_);
  while (!closing_) {
    if (pending_.empty()) {
      changed_.Wait(&mutex_);
      continue;
    }
    auto first = pending_.begin();
    if (first->first > MachineTime()) {
      SteadyWait(changed_, mutex_, first->first);
      continue;
    }
    std::function<void()> work = std::move(first->second);
    pending_.erase(first);
    mutex_.Unlock();
    work();
    work = nullptr;
    mutex_.Lock();
  }
}

}  // namespace stride
