#pragma once

#include <chrono>
#include <cstdint>

#include "absl/time/time.h"

namespace stride {

// A point on the machine's monotonic clock (CLOCK_MONOTONIC), which cannot be set. Durations and
// timers use it. absl::Time is the wall clock, which steps: it is only for dates that people read
// and for data that survives a reboot. The two types do not convert implicitly;
// base/environment.h has the clocks and the conversions.
class SteadyTime {
 public:
  // The machine's start; means "not set".
  constexpr SteadyTime() = default;
  static constexpr SteadyTime SinceBoot(absl::Duration time) { return SteadyTime(time); }
  static constexpr SteadyTime InfiniteFuture() { return SteadyTime(absl::InfiniteDuration()); }
  static constexpr SteadyTime InfinitePast() { return SteadyTime(-absl::InfiniteDuration()); }

  constexpr absl::Duration since_boot() const { return since_boot_; }
  // Saturates; not to be used for waits without an end.
  std::chrono::steady_clock::time_point ToChrono() const {
    return std::chrono::steady_clock::time_point(absl::ToChronoNanoseconds(since_boot_));
  }

  SteadyTime& operator+=(absl::Duration time) {
    since_boot_ += time;
    return *this;
  }
  SteadyTime& operator-=(absl::Duration time) {
    since_boot_ -= time;
    return *this;
  }
  friend SteadyTime operator+(SteadyTime a, absl::Duration b) { return a += b; }
  friend SteadyTime operator+(absl::Duration a, SteadyTime b) { return b += a; }
  friend SteadyTime operator-(SteadyTime a, absl::Duration b) { return a -= b; }
  friend absl::Duration operator-(SteadyTime a, SteadyTime b) {
    return a.since_boot_ - b.since_boot_;
  }
  friend constexpr bool operator==(SteadyTime a, SteadyTime b) {
    return a.since_boot_ == b.since_boot_;
  }
  friend constexpr bool operator!=(SteadyTime a, SteadyTime b) { return !(a == b); }
  friend constexpr bool operator<(SteadyTime a, SteadyTime b) {
    return a.since_boot_ < b.since_boot_;
  }
  friend constexpr bool operator>(SteadyTime a, SteadyTime b) { return b < a; }
  friend constexpr bool operator<=(SteadyTime a, SteadyTime b) { return !(b < a); }
  friend constexpr bool operator>=(SteadyTime a, SteadyTime b) { return !(a < b); }

 private:
  explicit constexpr SteadyTime(absl::Duration time) : since_boot_(time) {}

  absl::Duration since_boot_;
};

// The machine's own clock; code that a simulation runs uses Now() of base/environment.h instead.
inline SteadyTime MachineTime() {
  return SteadyTime::SinceBoot(
      absl::FromChrono(std::chrono::duration_cast<std::chrono::nanoseconds>(
          std::chrono::steady_clock::now().time_since_epoch())));
}

}  // namespace stride
