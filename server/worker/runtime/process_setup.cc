#include "server/worker/runtime/process_setup.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <new>
#include <thread>

#include "server/base/system_error.h"
#include "server/wire/exit_code.h"

namespace stride::worker {
namespace {

// Out of 1000, which means "always first"; the daemon's own score is 0 unless its unit changes it.
constexpr char kOomScore[] = "800";

void SetLimit(__rlimit_resource resource, rlim_t soft, rlim_t hard) {
  rlimit limit{soft, hard};
  setrlimit(resource, &limit);
}

}  // namespace

void HardenProcess() {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  SetLimit(RLIMIT_CORE, 0, 0);
  // A process may always raise its own score; without /proc it stays unchanged.
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    (void)!write(fd, kOomScore, sizeof(kOomScore) - 1);
    close(fd);
  }
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit fails instead
  signal(SIGINT, SIG_IGN);
}

void ExitWhenMemoryEnds() {
  std::set_new_handler([] { _exit(wire::kOutOfMemoryExit); });
}

void AllowProcessorTime(absl::Duration time) {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  rlim_t used = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec;
  SetLimit(RLIMIT_CPU, used + 1 + absl::ToInt64Seconds(time), RLIM_INFINITY);
}

void ExitWhenPeerGoes(int socket) {
  absl::StatusOr<std::thread> watcher = StartThread([socket] {
    for (;;) {
      pollfd entry{socket, 0, 0};  // POLLHUP is always reported
      if (poll(&entry, 1, -1) > 0) _exit(0);
    }
  });
  if (!watcher.ok()) _exit(wire::kNoThreadExit);
  watcher->detach();
}

}  // namespace stride::worker
