#include "server/main/idle_memory.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "server/base/block_pool.h"
#include "server/base/environment.h"

namespace stride {
namespace {

// Free bytes that are worth the walk through the heap, for an idle and for a busy process.
constexpr int64_t kMuch = int64_t{32} << 20;
constexpr int64_t kMuchOfABusyOne = int64_t{64} << 20;
// Share of one core.
constexpr double kIdleShare = 0.05;
// The walk through a GiB of small blocks takes 0.1 s and more: at most a twentieth of the time.
constexpr double kCostFactor = 20;

absl::Duration ProcessorTime() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
}

// Private memory of the process, without files and shared memory such as arrays.
int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0, shared = 0;
  file >> all >> resident >> shared;
  return (resident - shared) * sysconf(_SC_PAGESIZE);
}

int64_t UsedBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

}  // namespace

IdleMemory::IdleMemory() : IdleMemory(ProcessorTime) {}

bool IdleMemory::IsIdle(SteadyTime now) {
  const absl::Duration used = processor_time_();
  const bool idle = used - last_processor_time_ < kIdleShare * (now - last_);
  last_ = now;
  last_processor_time_ = used;
  return idle;
}

absl::Duration IdleMemory::Look() {
  const SteadyTime begin = Now();
  const bool idle = IsIdle(begin);
  const int64_t resident = ResidentBytes();
  // Skip the count when too little could be free.
  if (resident - stuck_bytes_ < kMuch) {
    much_was_free_ = false;
    return kInterval;
  }
  // The allocator counts the pool's free blocks as used. A busy process needs them.
  const int64_t in_pool = idle ? static_cast<int64_t>(BlockPool::free_bytes()) : 0;
  const int64_t free = resident - stuck_bytes_ - UsedBytes() + in_pool;
  const bool much = free >= (idle ? kMuch : kMuchOfABusyOne);
  if (much && (idle || much_was_free_)) {
    Trim(/*pool=*/idle);
    much_was_free_ = false;
  } else {
    much_was_free_ = much;
  }
  // Exclude the walk from the process's measured work.
  last_processor_time_ = processor_time_();
  return std::max(kInterval, (Now() - begin) * kCostFactor);
}

void IdleMemory::Trim(bool pool) {
  if (pool) BlockPool::Trim();
  malloc_trim(0);
  ++num_trims_;
  stuck_bytes_ = std::max<int64_t>(0, ResidentBytes() - UsedBytes());
}

}  // namespace stride
