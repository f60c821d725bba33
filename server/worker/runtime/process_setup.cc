#include "server/worker/runtime/process_setup.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace stride::worker {
namespace {

// A compiler writes its object to a memory file; a large one is a few MiB. Memory itself is for the
// sandbox to bound: RLIMIT_AS breaks CUDA, whose libraries reserve address space by the terabyte.
constexpr rlim_t kMaxFileBytes = 1u << 30;

void SetLimit(__rlimit_resource resource, rlim_t soft, rlim_t hard) {
  rlimit limit{soft, hard};
  setrlimit(resource, &limit);
}

}  // namespace

void HardenProcess() {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  SetLimit(RLIMIT_CORE, 0, 0);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGINT, SIG_IGN);
}

void SetCompilerLimits() { SetLimit(RLIMIT_FSIZE, kMaxFileBytes, kMaxFileBytes); }

void AllowProcessorTime(absl::Duration time) {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  rlim_t used = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec;
  SetLimit(RLIMIT_CPU, used + 1 + absl::ToInt64Seconds(time), RLIM_INFINITY);
}

void ExitWhenPeerGoes(int socket) {
  std::thread([socket] {
    for (;;) {
      pollfd entry{socket, 0, 0};  // POLLHUP is always told
      if (poll(&entry, 1, -1) > 0) _exit(0);
    }
  }).detach();
}

}  // namespace stride::worker
