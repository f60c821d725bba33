#include "stride/cancellation.h"

#include <map>
#include <mutex>

namespace stride {

struct Cancellation::State {
  std::mutex mutex;
  bool cancelled = false;
  uint64_t next = 1;
  std::map<uint64_t, std::function<void()>> actions;
};

Cancellation::Cancellation() : state_(std::make_shared<State>()) {}

void Cancellation::Cancel() const {
  // Held while actions run, so that none runs after Remove.
  std::lock_guard lock(state_->mutex);
  if (state_->cancelled) return;
  state_->cancelled = true;
  for (auto& [id, action] : state_->actions) action();
}

bool Cancellation::cancelled() const {
  std::lock_guard lock(state_->mutex);
  return state_->cancelled;
}

uint64_t Cancellation::Add(std::function<void()> action) const {
  std::lock_guard lock(state_->mutex);
  if (state_->cancelled) action();
  const uint64_t id = state_->next++;
  state_->actions.emplace(id, std::move(action));
  return id;
}

void Cancellation::Remove(uint64_t id) const {
  std::lock_guard lock(state_->mutex);
  state_->actions.erase(id);
}

}  // namespace stride
