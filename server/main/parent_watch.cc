#include "server/main/parent_watch.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace stride {

absl::StatusOr<UniqueFd> WatchProcess(int pid) {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (fd.valid()) return fd;
  return absl::ErrnoToStatus(errno == ESRCH ? ENOENT : errno,
                             "watching the process given by --parent-pid");
}

}  // namespace stride
