#pragma once

#include <sys/types.h>

#include "server/base/steady_time.h"

namespace stride::engine {

// The charge of a CPU device's worker process: the processor time of all its threads, and no less
// than the run time of its tasks. The source is the kernel's clock of the process, since a worker
// could misreport its own. For one worker. The transactions that guard its device queue guard it.
class ProcessorTime {
 public:
  // Begins with another worker. No tenant is charged for the time of its start, until now.
  void Begin(pid_t worker);
  // Adds run time that tasks have reported. Returns the seconds that were not charged yet. Two
  // system calls read the kernel's clock: after tasks, at most once in kReadInterval. A call with 0
  // seconds always reads it.
  double Take(double run_seconds);

  // Seconds of all threads of a process that is not reaped yet; negative: not known.
  static double Of(pid_t process);

 private:
  pid_t worker_ = 0;
  double at_start_ = 0, run_ = 0, charged_ = 0;
  SteadyTime read_at_ = SteadyTime::InfinitePast();
};

}  // namespace stride::engine
