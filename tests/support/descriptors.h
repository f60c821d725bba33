#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace stride::testing {

// The number of open descriptors of a process; of this one, including the one used to count them,
// if none is given. 0: the process does not exist or may not be inspected.
inline int NumDescriptors(pid_t pid = getpid()) {
  int count = 0;
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/" + std::to_string(pid) + "/fd", error), end;
  for (; !error && entry != end; entry.increment(error)) ++count;
  return count;
}

}  // namespace stride::testing
