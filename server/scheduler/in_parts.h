#pragma once

#include "server/base/crash_point.h"
#include "server/scheduler/core.h"

namespace stride::scheduler {

// What one step of InParts did.
enum class Step {
  kDone,      // there may be more
  kNeedsAll,  // nothing: it is to be called in a section of all
  kEnd,       // nothing: there is no more
};

// Calls `step` until kEnd, some hundreds of times in a section of the stripe, and in one of all
// from where it asks for that: nobody waits for all of it, however much there is. The lock must not
// be held.
template <typename Function>
void InParts(Core& core, int stripe, Function step) {
  constexpr int kPart = 256;
  Step last = Step::kDone;
  while (last != Step::kEnd) {
    {
      const Locked lock = last == Step::kNeedsAll ? Locked(core) : Locked(core, stripe);
      last = Step::kDone;
      for (int i = 0; i < kPart && last == Step::kDone; ++i) last = step();
    }
    STRIDE_CRASH_POINT("scheduler.part_done");
  }
}

}  // namespace stride::scheduler
