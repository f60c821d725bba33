// Ends calls from another thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace stride {

// Copies share one state. Any thread may call any member. A cancelled token stays cancelled: use a
// new one for new calls.
class Cancellation {
 public:
  Cancellation();

  // Calls with this token end soon with CANCELLED; the daemon cancels their queued work. May be
  // called twice.
  void Cancel() const;
  bool cancelled() const;

  // Runs `action` at Cancel, on the cancelling thread, or at once if it is cancelled already. It
  // must not block or call back into this token.
  uint64_t Add(std::function<void()> action) const;
  // Once this returns, the action neither runs nor will run.
  void Remove(uint64_t id) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace stride
