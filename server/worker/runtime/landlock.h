#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stride::worker {

struct LandlockPaths {
  // Files and folders with all below them. What does not exist is passed over.
  std::vector<std::string> read_only;
  std::vector<std::string> read_write;  // existing files and devices; nothing new may be made
};

// From now on this thread, and those it starts, open only these paths, and (with newer kernels)
// bind and connect no TCP socket, reach no abstract Unix socket and signal no process outside.
// Returns the version of Landlock that was used. Needs no_new_privs. Library-free: raw system
// calls, with the kernel's constants of every version.
absl::StatusOr<int> RestrictFiles(const LandlockPaths& paths);

}  // namespace stride::worker
