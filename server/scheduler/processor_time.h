#pragma once

#include <sys/types.h>

namespace stride::scheduler {

// What a worker process of a CPU device is charged for: the processor time of all its threads, at
// any time of its life, and no less than its tasks ran. The worker's own word is not asked: the
// kernel's clock of the process tells. Of one worker; guarded as its lane is.
class ProcessorTime {
 public:
  // Another worker: what it used until now, at its start, is nobody's.
  void Begin(pid_t worker);
  // Adds run time that tasks have reported. Returns the seconds to charge that were not before.
  double Take(double run_seconds);

  // All threads' of a process that was not reaped; negative: it is not known.
  static double Of(pid_t process);

 private:
  pid_t worker_ = 0;
  double at_start_ = 0, run_ = 0, charged_ = 0;
};

}  // namespace stride::scheduler
