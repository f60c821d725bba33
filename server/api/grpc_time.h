#pragma once

#include "absl/time/time.h"
#include "grpc/support/time.h"
#include "server/base/steady_time.h"

// Deadlines for gRPC on its monotonic clock: the std::chrono times that it also accepts and returns
// are on the wall clock.
namespace stride::api {

inline gpr_timespec ToGrpcTime(SteadyTime time) {
  if (time == SteadyTime::InfiniteFuture()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_nanos(absl::ToInt64Nanoseconds(time - MachineTime()), GPR_TIMESPAN));
}

inline SteadyTime FromGrpcTime(gpr_timespec time) {
  if (gpr_time_cmp(time, gpr_inf_future(time.clock_type)) == 0) return SteadyTime::InfiniteFuture();
  const gpr_timespec left =
      gpr_time_sub(gpr_convert_clock_type(time, GPR_CLOCK_MONOTONIC), gpr_now(GPR_CLOCK_MONOTONIC));
  return MachineTime() + absl::Seconds(left.tv_sec) + absl::Nanoseconds(left.tv_nsec);
}

}  // namespace stride::api
