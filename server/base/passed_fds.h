#pragma once

#include <string>
#include <vector>

#include "server/base/unique_fd.h"

namespace stride {

// A descriptor with the name under which it came or is kept.
struct NamedFd {
  std::string name;
  UniqueFd fd;
};

// The descriptors that systemd passed to this process (LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES):
// sockets that it listens on for us, and what we once put into its store. Takes them out of the
// environment, so that children do not see them. Once; close-on-exec from then on.
std::vector<NamedFd> TakePassedFds();

}  // namespace stride
