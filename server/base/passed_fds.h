#pragma once

#include <string>
#include <vector>

#include "server/base/unique_fd.h"

namespace stride {

// A descriptor with the name under which it was passed or stored.
struct NamedFd {
  std::string name;
  UniqueFd fd;
};

// Descriptors that systemd passed to this process (LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES):
// listening sockets, and the content of the FdStore. Removes the variables from the environment, so
// that children do not see them. Call once; sets close-on-exec.
std::vector<NamedFd> TakePassedFds();

}  // namespace stride
