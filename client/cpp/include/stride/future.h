// The result of a call that runs in the background.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "stride/cancellation.h"
#include "stride/result.h"

namespace stride {

// Move-only. Destruction neither waits nor cancels.
template <typename T>
class [[nodiscard]] Future {
 public:
  struct State {
    std::mutex mutex;
    std::condition_variable ready;
    std::optional<Result<T>> result;
  };

  Future(std::shared_ptr<State> state, Cancellation cancellation)
      : state_(std::move(state)), cancellation_(std::move(cancellation)) {}
  Future(Future&&) = default;
  Future& operator=(Future&&) = default;

  // True when the result is available within `time`.
  bool WaitFor(std::chrono::nanoseconds time) {
    std::unique_lock lock(state_->mutex);
    return state_->ready.wait_for(lock, time, [this] { return state_->result.has_value(); });
  }

  // Waits for the result and moves it out. Call once.
  Result<T> Get() {
    std::unique_lock lock(state_->mutex);
    state_->ready.wait(lock, [this] { return state_->result.has_value(); });
    return std::move(*state_->result);
  }

  // Get then soon returns CANCELLED, unless the result arrived first.
  void Cancel() { cancellation_.Cancel(); }

 private:
  std::shared_ptr<State> state_;
  Cancellation cancellation_;
};

}  // namespace stride
