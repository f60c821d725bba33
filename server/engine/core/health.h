#pragma once

#include <deque>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "server/base/ids.h"
#include "server/base/steady_time.h"

namespace stride::engine {

struct HealthOptions {
  // A probe tests a device that completed no work for this long. Infinite: no canaries, and every
  // device always serves.
  absl::Duration interval = absl::InfiniteDuration();
  absl::Duration timeout = absl::Seconds(10);  // for one probe
  absl::Duration retry = absl::Seconds(1);     // after a failure; doubled with each further one
  absl::Duration longest_retry = absl::Minutes(1);  // up to this
  int max_failures = 3;  // consecutive failures until the device stops serving
  // More unexplained worker deaths than this, of several tenants and within this time, are a storm.
  int max_losses = 5;
  absl::Duration loss_window = absl::Minutes(1);
};

// Judges whether one device is well. Events that a tenant can cause alone (faults of its kernels,
// deaths of its workers) are no evidence against a device: a tenant could take it from others. So a
// storm of deaths only requests a probe, and makes its first failure decisive.
//
// Only judges: no clock, no lock. Global transactions guard it.
class DeviceHealth {
 public:
  DeviceHealth(HealthOptions options, SteadyTime now);

  // Whether the device takes work; true until something is known.
  bool serving() const { return state_ != State::kIll; }
  // Whether something is known of the device.
  bool known() const {
    return state_ != State::kUnknown || options_.interval == absl::InfiniteDuration();
  }
  // The reason why the device does not serve, for people.
  const std::string& reason() const { return reason_; }

  // Real work was completed: sufficient proof for a device that serves.
  void Worked(SteadyTime now);
  // Whether Worked would change more than the time of the next probe.
  bool NeedsProof() const {
    return serving() && next_probe_ != SteadyTime::InfiniteFuture() &&
           (state_ != State::kServing || num_failures_ > 0 || storm_);
  }
  // A probe returned the right answer.
  void Passed(SteadyTime now);
  // A probe failed.
  void Failed(const std::string& why, SteadyTime now);
  // A tenant's worker did not start: a reason for a probe, but no evidence.
  void Suspect(SteadyTime now);
  // A probe could not run, for lack of resources that others use: no result.
  void CouldNotTell(SteadyTime now);
  // A worker died with nothing running, and was not killed.
  void LostWorker(const TenantId& tenant, SteadyTime now);
  // The hardware reports an error that only a reset clears.
  void Broke(const std::string& why, SteadyTime now);

  SteadyTime next_probe() const { return next_probe_; }
  bool in_storm() const { return storm_; }

 private:
  enum class State { kUnknown, kServing, kIll };

  HealthOptions options_;
  State state_ = State::kUnknown;
  std::string reason_;
  SteadyTime next_probe_;
  int num_failures_ = 0;  // consecutive
  bool storm_ = false;
  std::deque<std::pair<SteadyTime, TenantId>> losses_;
};

}  // namespace stride::engine
