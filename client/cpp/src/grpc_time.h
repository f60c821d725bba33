// Points in time for gRPC, on its monotonic clock. gRPC also accepts those of std::chrono, but they
// are on the wall clock, which steps.
#pragma once

#include <grpc/support/time.h>

#include <chrono>

namespace stride::internal {

inline gpr_timespec GrpcTimeAfter(std::chrono::nanoseconds time) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(time.count(), GPR_TIMESPAN));
}

}  // namespace stride::internal
