#include "server/main/process_limits.h"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "absl/synchronization/mutex.h"

namespace stride {
namespace {

// More would slow down each scan of descriptors.
constexpr rlim_t kMostDescriptors = 65536;

}  // namespace

size_t RaiseProcessLimits() {
  // glibc before 2.35 takes at most 32 MiB here; transfers need only more than one message.
  if (mallopt(M_MMAP_THRESHOLD, 64 << 20) == 0) mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  // Disables the bins that glibc sweeps at every larger allocation: a tenth of a small job's time.
  mallopt(M_MXFAST, 0);
  setenv("GRPC_EXPERIMENTS", "-tcp_read_chunks", 0);
  // Debian builds Abseil without NDEBUG: every lock, including gRPC's, would enter a graph of all
  // locks under one global spin lock. Tests keep it, since they do not call this function.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  std::signal(SIGPIPE, SIG_IGN);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  rlim_t wanted = std::min(limit.rlim_max, kMostDescriptors);
  if (limit.rlim_cur < wanted) {
    limit.rlim_cur = wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
  }
  return limit.rlim_cur;
}

}  // namespace stride
