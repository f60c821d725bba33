#include "server/engine/core/processor_time.h"

#include <algorithm>
#include <ctime>

#include "server/base/environment.h"

namespace stride::engine {
namespace {

// The wait of a charge is shorter than a tenant's turn on a device.
constexpr absl::Duration kReadInterval = absl::Milliseconds(1);

}  // namespace

double ProcessorTime::Of(pid_t process) {
  clockid_t clock;
  timespec time;
  // 0 would be this process.
  if (process <= 0 || clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0)
    return -1;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void ProcessorTime::Begin(pid_t worker) {
  *this = {};
  worker_ = worker;
  at_start_ = std::max(0.0, Of(worker));
}

double ProcessorTime::Take(double run_seconds) {
  run_ += run_seconds;
  double used = run_;
  const SteadyTime now = Now();
  if (run_seconds <= 0 || now >= read_at_ + kReadInterval) {
    read_at_ = now;
    used = std::max(used, Of(worker_) - at_start_);
  }
  const double due = used - charged_;
  if (due <= 0) return 0;
  charged_ += due;
  return due;
}

}  // namespace stride::engine
