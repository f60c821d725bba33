#pragma once

#include <sys/types.h>

#include "server/base/steady_time.h"

namespace stride::scheduler {

// The charge of a CPU device's worker process: the processor time of all its threads, at any time
// of its life, and no less than its tasks ran. The worker's own report is not used: the kernel's
// clock of the process is. For one worker; guarded as its lane is.
class ProcessorTime {
 public:
  // Another worker: no tenant is charged for the time that it used until now, at its start.
  void Begin(pid_t worker);
  // Adds run time that tasks have reported. Returns the seconds to charge that were not before.
  // Two system calls read the kernel's clock: after tasks, at most once in kReadInterval. A call
  // with 0 seconds always reads it.
  double Take(double run_seconds);

  // All threads' of a process that was not reaped; negative: it is not known.
  static double Of(pid_t process);

 private:
  pid_t worker_ = 0;
  double at_start_ = 0, run_ = 0, charged_ = 0;
  SteadyTime read_at_ = SteadyTime::InfinitePast();
};

}  // namespace stride::scheduler
