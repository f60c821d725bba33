#include "server/main/idle_memory.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "server/base/environment.h"
#include "server/main/process_limits.h"

namespace stride {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(STRIDE_THREAD_SANITIZER)
constexpr bool kOwnAllocator = true;
#else
constexpr bool kOwnAllocator = false;
#endif

// A hundred MiB of freed messages, except for a few among them.
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

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

class IdleMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kOwnAllocator) GTEST_SKIP() << "the sanitizer has its own allocator";
    RaiseProcessLimits();
    malloc_trim(0);
    memory_.Look();
  }
  // A busy process uses a whole processor, even if the machine runs this test slowly.
  absl::Duration ProcessorTime() const { return is_busy_ ? Now() - begin_ : absl::ZeroDuration(); }
  const SteadyTime begin_ = Now();
  bool is_busy_ = true;
  IdleMemory memory_{[this] { return ProcessorTime(); }};
};

TEST_F(IdleMemoryTest, IdleProcessReturnsMemoryAtFirstCheck) {
  is_busy_ = false;
  auto kept = Messages();
  memory_.Look();
  EXPECT_EQ(memory_.num_trims(), 1);
  kept.clear();
}

TEST_F(IdleMemoryTest, BusyProcessReturnsMemoryThatStaysFree) {
  const int64_t before = ResidentBytes();
  auto kept = Messages();
  const int64_t loaded = ResidentBytes();
  ASSERT_GT(loaded - before, int64_t{80} << 20);
  memory_.Look();
  EXPECT_EQ(memory_.num_trims(), 0) << "it may be wanted again at once";
  memory_.Look();
  EXPECT_EQ(memory_.num_trims(), 1);
  EXPECT_LT(ResidentBytes() - before, int64_t{20} << 20);
  kept.clear();
}

TEST_F(IdleMemoryTest, BusyProcessKeepsReusedMemory) {
  for (int i = 0; i < 4; ++i) {
    Messages().clear();
    std::vector<std::unique_ptr<char[]>> used;
    for (int j = 0; j < 1000; ++j) {
      used.emplace_back(new char[100 << 10]);
      std::memset(used.back().get(), 1, 100 << 10);
    }
    if (i % 2 == 0) used.clear();
    memory_.Look();
  }
  EXPECT_EQ(memory_.num_trims(), 0);
}

// Memory that a trim did not return is not worth another trim.
TEST_F(IdleMemoryTest, UnreturnableMemoryIsTrimmedOnce) {
  std::vector<std::unique_ptr<char[]>> kept;
  for (int i = 0; i < 300000; ++i) {
    kept.emplace_back(new char[400]);
    std::memset(kept.back().get(), 1, 400);
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    if (i % 4 != 0) kept[i].reset();
  }
  for (int i = 0; i < 5; ++i) {
    memory_.Look();
  }
  EXPECT_EQ(memory_.num_trims(), 1);
}

TEST_F(IdleMemoryTest, SmallAmountsAreKept) {
  is_busy_ = false;
  memory_.Look();
  EXPECT_EQ(memory_.num_trims(), 0);
}

}  // namespace
}  // namespace stride
