#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace stride::testing {

// How many descriptors a process has open; of this one when none is named, the one for looking
// among them. 0: there is no such process, or it may not be looked into.
inline int NumDescriptors(pid_t pid = getpid()) {
  int count = 0;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/" + std::to_string(pid) + "/fd", error), end;
  for (; !error && entry != end; entry.increment(error)) ++count;
  return count;
}

}  // namespace stride::testing
