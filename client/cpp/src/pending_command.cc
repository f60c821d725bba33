#include "client/cpp/src/pending_command.h"

#include "client/cpp/src/call.h"
#include "client/cpp/src/status.h"
#include "client/cpp/src/watch.h"

namespace stride::internal {

Result<const v1::CommandResult*> PendingCommand::Wait(const CallOptions& options,
                                                      std::chrono::nanoseconds default_timeout) {
  uint64_t action = 0;
  if (options.cancellation) {
    action = options.cancellation->Add([this] {
      std::lock_guard lock(mutex_);
      changed_.notify_all();
    });
  }
  const auto timeout = TimeoutOf(options, default_timeout);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  bool cancelled = false;
  bool in_time = true;
  Watch([&] { return done_.load(); });
  {
    std::unique_lock lock(mutex_);
    while (!done_ && !cancelled && in_time) {
      if (options.cancellation) {
        // Cancel() holds its own lock while it waits for ours: never call it with ours held.
        lock.unlock();
        cancelled = options.cancellation->cancelled();
        lock.lock();
        if (done_ || cancelled) break;
      }
      if (timeout.count() == 0 && !options.cancellation) {
        changed_.wait(lock);
      } else {
        // A cancellation between the check above and this wait is noticed in the next iteration.
        const auto turn = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
        const bool last = timeout.count() != 0 && deadline <= turn;
        const auto until = last || !options.cancellation ? deadline : turn;
        if (changed_.wait_until(lock, until) == std::cv_status::timeout && until == deadline)
          in_time = false;
      }
    }
  }
  if (options.cancellation) options.cancellation->Remove(action);
  std::lock_guard lock(mutex_);
  if (done_ && error_) return *error_;
  if (done_) return &result_;
  if (cancelled)
    return LocalError(Code::kCancelled, "Cancelled while waiting for the daemon's answer");
  return LocalError(Code::kDeadlineExceeded, "The daemon's answer did not come in time");
}

bool PendingCommand::Succeeded() {
  std::lock_guard lock(mutex_);
  return done_ && !error_;
}

void PendingCommand::Finish(v1::CommandResult result) {
  std::lock_guard lock(mutex_);
  if (done_) return;
  if (result.status().code() != 0) error_ = ToError(result.status());
  result_ = std::move(result);
  done_ = true;
  changed_.notify_all();
}

void PendingCommand::Fail(Error error) {
  std::lock_guard lock(mutex_);
  if (done_) return;
  error_ = std::move(error);
  done_ = true;
  changed_.notify_all();
}

}  // namespace stride::internal
