#pragma once

#include "server/base/crash_point.h"
#include "server/engine/core/core.h"

namespace stride::engine {

// The result of one step of ForEachBatch.
enum class Step {
  kDone,  // one item done; there may be more
  kEnd,   // nothing left to do
};

// Calls `step` with a transaction of the partition until it returns kEnd, some hundreds of times in
// each transaction. Other tenants wait for one such part at most, whatever the number of steps. The
// caller has no transaction.
template <typename Function>
void ForEachBatch(Core& core, int partition, Function step) {
  constexpr int kPart = 256;
  Step last = Step::kDone;
  while (last != Step::kEnd) {
    {
      TenantTransaction transaction(core, partition);
      for (int i = 0; i < kPart && (last = step(transaction)) == Step::kDone; ++i) {
      }
    }
    STRIDE_CRASH_POINT("scheduler.part_done");
  }
}

}  // namespace stride::engine
