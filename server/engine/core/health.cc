#include "server/engine/core/health.h"

#include <algorithm>

#include "server/base/steady_time.h"

namespace stride::engine {

DeviceHealth::DeviceHealth(HealthOptions options, SteadyTime now)
    : options_(options),
      next_probe_(options.interval == absl::InfiniteDuration() ? SteadyTime::InfiniteFuture()
                                                               : now) {}

void DeviceHealth::Worked(SteadyTime now) {
  if (state_ == State::kIll || next_probe_ == SteadyTime::InfiniteFuture()) return;
  state_ = State::kServing;
  num_failures_ = 0;
  storm_ = false;
  next_probe_ = now + options_.interval;
}

void DeviceHealth::Passed(SteadyTime now) {
  state_ = State::kServing;
  reason_.clear();
  num_failures_ = 0;
  storm_ = false;
  losses_.clear();
  next_probe_ = now + options_.interval;
}

void DeviceHealth::Failed(const std::string& why, SteadyTime now) {
  if (options_.interval == absl::InfiniteDuration()) return;
  ++num_failures_;
  reason_ = why;
  if (num_failures_ >= options_.max_failures || storm_) state_ = State::kIll;
  absl::Duration pause = options_.retry;
  for (int i = 1; i < num_failures_ && pause < options_.longest_retry; ++i) pause *= 2;
  next_probe_ = now + std::min(pause, options_.longest_retry);
}

void DeviceHealth::Suspect(SteadyTime now) {
  if (options_.interval == absl::InfiniteDuration() || state_ == State::kIll) return;
  // After a failure the planned time stands, so that canaries stay apart.
  if (num_failures_ == 0) next_probe_ = std::min(next_probe_, now);
}

void DeviceHealth::CouldNotTell(SteadyTime now) {
  if (options_.interval == absl::InfiniteDuration()) return;
  next_probe_ = now + options_.retry;
}

void DeviceHealth::LostWorker(const TenantId& tenant, SteadyTime now) {
  if (options_.interval == absl::InfiniteDuration()) return;
  losses_.emplace_back(now, tenant);
  while (losses_.front().first < now - options_.loss_window) losses_.pop_front();
  bool several = std::any_of(losses_.begin(), losses_.end(),
                             [&](const auto& loss) { return loss.second.value != tenant.value; });
  if (!several || static_cast<int>(losses_.size()) <= options_.max_losses) return;
  storm_ = true;
  next_probe_ = std::min(next_probe_, now);
}

void DeviceHealth::Broke(const std::string& why, SteadyTime now) {
  if (options_.interval == absl::InfiniteDuration()) return;
  state_ = State::kIll;
  reason_ = why;
  num_failures_ = std::max(num_failures_, options_.max_failures);
  next_probe_ = now + options_.longest_retry;
}

}  // namespace stride::engine
