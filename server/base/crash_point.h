#pragma once

#include <string>

namespace stride {

// Named places at which tests make the process die as if by `kill -9`. `name:count` arms one: the
// process dies when it passes the place for the count-th time. Costs a load and a branch.
#define STRIDE_CRASH_POINT(name)                                     \
  do {                                                               \
    if (::stride::crash_point_armed) ::stride::PassCrashPoint(name); \
  } while (false)

// Reads the list of crash points in STRIDE_CRASH_POINT, separated by commas. The first is for this
// process, the next ones for the processes that a supervisor starts after it.
void ArmCrashPointsFromEnvironment();
// Another process replaces this one, and takes the next entry of the list.
void NextCrashPoint();

void PassCrashPoint(const char* name);
inline bool crash_point_armed = false;

}  // namespace stride
