#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stride::worker {

struct LandlockPaths {
  // Files, and folders with their content. Absent paths are skipped.
  std::vector<std::string> read_only;
  std::vector<std::string> read_write;  // existing files and devices; new ones cannot be created
};

// From now on this thread, and threads that it starts, open only these paths. With newer kernels
// they also cannot bind or connect TCP sockets, reach abstract Unix sockets, or signal other
// processes. Returns the version of Landlock in use. Requires no_new_privs. Uses raw system calls
// and no library, with the kernel's constants of each version.
absl::StatusOr<int> RestrictFiles(const LandlockPaths& paths);

}  // namespace stride::worker
