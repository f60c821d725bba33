#include "server/base/unique_fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"
#include "server/base/system_error.h"

namespace stride {

void UniqueFd::Reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

absl::StatusOr<UniqueFd> UniqueFd::Duplicate() const {
  int copy = fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return SystemError(errno, "duplicating a file descriptor");
  return UniqueFd(copy);
}

}  // namespace stride
