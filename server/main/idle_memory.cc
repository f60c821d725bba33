#include "server/main/idle_memory.h"

#include <malloc.h>
#include <sys/resource.h>

#include "server/base/block_pool.h"
#include "server/base/surroundings.h"

namespace stride {
namespace {

// Free bytes worth the walk through the heap.
constexpr size_t kMuch = size_t{32} << 20;
// Of one core.
constexpr double kIdleShare = 0.05;

absl::Duration ProcessorTime() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
}

}  // namespace

bool IdleMemory::Look() {
  const SteadyTime now = Now();
  const absl::Duration used = ProcessorTime();
  const bool idle = used - last_processor_time_ < kIdleShare * (now - last_);
  last_ = now;
  last_processor_time_ = used;
  if (!idle || mallinfo2().fordblks + BlockPool::free_bytes() < kMuch) return false;
  BlockPool::Trim();
  malloc_trim(0);
  // The walk itself is no work.
  last_processor_time_ = ProcessorTime();
  return true;
}

}  // namespace stride
