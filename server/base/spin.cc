#include "server/base/spin.h"

#include <sched.h>

#include <atomic>

#include "server/base/machine_limits.h"
#include "server/base/steady_time.h"

namespace stride {
namespace {

constexpr int kPlenty = 8;
// After this time each poll yields the processor to other threads.
constexpr absl::Duration kSelfish = absl::Microseconds(20);

int NumProcessors() {
  static const int count = AvailableThreads();
  return count;
}

std::atomic<int> num_spinning{0};

// Waits between two polls, after `passed` time.
void Pause(absl::Duration passed) {
  if (passed >= kSelfish) {
    sched_yield();
  } else {
    __builtin_ia32_pause();
  }
}

}  // namespace

bool ProcessorsArePlenty() { return NumProcessors() >= kPlenty; }

bool SpinUntil(absl::FunctionRef<bool()> done, absl::Duration time) {
  if (!ProcessorsArePlenty() || time == absl::ZeroDuration()) return false;
  if (done()) return true;
  bool ended = false;
  if (num_spinning.fetch_add(1) < NumProcessors() / 4) {
    const SteadyTime begin = MachineTime();
    for (absl::Duration passed; !ended && passed < time; passed = MachineTime() - begin) {
      Pause(passed);
      ended = done();
    }
  }
  num_spinning.fetch_sub(1);
  return ended;
}

}  // namespace stride
