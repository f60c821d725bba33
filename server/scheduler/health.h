#pragma once

#include <deque>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"

namespace stride::scheduler {

struct HealthOptions {
  // A device that completed no work for so long is tried by a canary. Infinite: no canaries, and
  // every device serves for ever.
  absl::Duration interval = absl::InfiniteDuration();
  absl::Duration timeout = absl::Seconds(10);  // of one canary
  absl::Duration retry = absl::Seconds(1);     // after a failure; doubled with each further one
  absl::Duration longest_retry = absl::Minutes(1);  // up to this
  int max_failures = 3;                             // in a row, then the device does not serve
  // More worker deaths that nothing explains, of several tenants and within this time, are a storm.
  int max_losses = 5;
  absl::Duration loss_window = absl::Minutes(1);
};

// Whether one device is well, judged from what was seen of it. What a tenant can bring about alone
// (faults of its kernels, deaths of its workers) is no evidence against a device: it could take the
// device from others. So a storm of deaths only calls for a canary, and makes its failure count at
// once.
//
// Only judges: no clock, no lock. Global transactions guard it.
class DeviceHealth {
 public:
  DeviceHealth(HealthOptions options, SteadyTime now);

  // Takes work. One that nothing was seen of yet does too.
  bool serving() const { return state_ != State::kIll; }
  // Something is known of it.
  bool known() const {
    return state_ != State::kUnknown || options_.interval == absl::InfiniteDuration();
  }
  // Why it does not serve, for a person.
  const std::string& reason() const { return reason_; }

  // Real work was completed: proof enough for a device that serves.
  void Worked(SteadyTime now);
  // Whether Worked would tell more than that it still works.
  bool NeedsProof() const {
    return serving() && next_canary_ != SteadyTime::InfiniteFuture() &&
           (state_ != State::kServing || num_failures_ > 0 || storm_);
  }
  // The canary came back with the right answer.
  void Passed(SteadyTime now);
  // A canary failed.
  void Failed(const std::string& why, SteadyTime now);
  // A tenant's worker does not start: reason enough for a canary, but no evidence.
  void Suspect(SteadyTime now);
  // A canary could not be sent, for lack of resources that others use: it has no result.
  void CouldNotTell(SteadyTime now);
  // A worker died with nothing running, and not because anybody killed it.
  void LostWorker(const TenantId& tenant, SteadyTime now);
  // The hardware itself reports an error that only a reset can cure.
  void Broke(const std::string& why, SteadyTime now);

  SteadyTime next_canary() const { return next_canary_; }
  bool in_storm() const { return storm_; }

 private:
  enum class State { kUnknown, kServing, kIll };

  HealthOptions options_;
  State state_ = State::kUnknown;
  std::string reason_;
  SteadyTime next_canary_;
  int num_failures_ = 0;  // in a row
  bool storm_ = false;
  std::deque<std::pair<SteadyTime, TenantId>> losses_;
};

}  // namespace stride::scheduler
