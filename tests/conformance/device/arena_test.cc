#include <fcntl.h>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

class ArenaTest : public DeviceTest {};

constexpr uint64_t kSize = 4 << 20;

TEST_F(ArenaTest, FreshMemoryIsZero) {
  ASSERT_TRUE(harness().CreateArena(10, kSize).ok());
  auto bytes = harness().Download(10, 0, kSize);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->find_first_not_of('\0'), std::string::npos) << "at byte";
  EXPECT_TRUE(harness().DropArena(10).ok());
}

// What arenas' cleanness between tenants rests on: fresh memory is zero also when this very process
// has just filled it.
TEST_F(ArenaTest, MemoryGivenBackComesBackAsZero) {
  constexpr uint64_t kLarge = 64 << 20;
  for (int round = 0; round < 4; ++round) {
    ASSERT_TRUE(harness().CreateArena(14, kLarge).ok());
    auto bytes = harness().Download(14, 0, kLarge);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    ASSERT_EQ(bytes->find_first_not_of('\0'), std::string::npos) << "in round " << round;
    ASSERT_TRUE(harness().Upload(14, 0, std::string(kLarge, 'x')).ok());
    ASSERT_TRUE(harness().DropArena(14).ok());
  }
}

TEST_F(ArenaTest, DescriptorIsTheMemory) {
  ASSERT_TRUE(harness().CreateArena(11, kSize).ok());
  // The same memory under a second number, by its descriptor, after the first mapping is gone.
  const std::string text = "kept by its descriptor";
  ASSERT_TRUE(harness().Upload(11, 12345, text).ok());
  UniqueFd copy(fcntl(harness().ArenaFd(11), F_DUPFD_CLOEXEC, 3));
  ASSERT_TRUE(harness().device().UnmapArena(11).ok());
  ASSERT_TRUE(harness().device().MapArena(12, kSize, std::move(copy)).ok());
  auto bytes = harness().Download(12, 12345, text.size());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, text);
  EXPECT_TRUE(harness().device().UnmapArena(12).ok());
}

TEST_F(ArenaTest, UnknownArenasAreRefused) {
  EXPECT_FALSE(harness().device().UnmapArena(99).ok());
  EXPECT_FALSE(harness().Upload(99, 0, "x").ok());
  wire::Task task;
  task.mutable_zero_fill()->set_arena(99);
  task.mutable_zero_fill()->set_size(1);
  EXPECT_FALSE(harness().Run(task).ok());
}

TEST_F(ArenaTest, ImpossibleSizesAreRefusedAndTheDeviceGoesOn) {
  EXPECT_FALSE(harness().CreateArena(13, uint64_t{1} << 52).ok());
  wire::Task task;
  task.mutable_zero_fill()->set_arena(Harness::kArena);
  task.mutable_zero_fill()->set_size(16);
  EXPECT_TRUE(harness().Run(task).ok());
}

}  // namespace
}  // namespace stride::conformance
