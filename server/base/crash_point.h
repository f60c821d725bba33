#pragma once

#include <string>

namespace stride {

// Named places at which tests let the process die as if by `kill -9`. `name:count` arms one: the
// process is gone when it passes there for the count-th time. Costs a load and a branch.
#define STRIDE_CRASH_POINT(name)                                     \
  do {                                                               \
    if (::stride::crash_point_armed) ::stride::PassCrashPoint(name); \
  } while (false)

// Reads the list of crash points in STRIDE_CRASH_POINT, separated by commas. The first is for this
// process, the next ones for the processes that a holder starts after it.
void ArmCrashPointsFromEnvironment();
// That this process was replaced by another: the next one of the list is for that.
void NextCrashPoint();

void PassCrashPoint(const char* name);
inline bool crash_point_armed = false;

}  // namespace stride
