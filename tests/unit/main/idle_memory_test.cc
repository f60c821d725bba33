#include "server/main/idle_memory.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstring>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "server/base/surroundings.h"
#include "server/main/process_limits.h"

namespace stride {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(STRIDE_THREAD_SANITIZER)
constexpr bool kOwnAllocator = true;
#else
constexpr bool kOwnAllocator = false;
#endif

void Spend(absl::Duration time) {
  for (SteadyTime end = Now() + time; Now() < end;) {
  }
}

// A hundred MiB of messages that were freed, but for a few among them.
std::vector<std::unique_ptr<char[]>> Messages() {
  std::vector<std::unique_ptr<char[]>> messages;
  for (int i = 0; i < 1000; ++i) {
    messages.emplace_back(new char[100 << 10]);
    std::memset(messages.back().get(), 1, 100 << 10);
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    if (i % 100 != 99) messages[i].reset();
  }
  return messages;
}

TEST(IdleMemoryTest, GoesBackWhenThereIsLittleToDo) {
  if (kOwnAllocator) GTEST_SKIP() << "the sanitizer has its own allocator";
  RaiseProcessLimits();
  IdleMemory memory;
  memory.Look();
  auto kept = Messages();
  Spend(absl::Milliseconds(50));
  EXPECT_FALSE(memory.Look()) << "it is busy";
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_TRUE(memory.Look());
  kept.clear();
}

TEST(IdleMemoryTest, LittleIsKept) {
  IdleMemory memory;
  memory.Look();
  malloc_trim(0);
  absl::SleepFor(absl::Milliseconds(20));
  if (mallinfo2().fordblks < (size_t{32} << 20)) {
    EXPECT_FALSE(memory.Look());
  }
}

}  // namespace
}  // namespace stride
