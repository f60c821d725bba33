#include <random>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

class CopyTest : public DeviceTest {
 protected:
  static std::string Noise(size_t size) {
    std::mt19937 random(7);
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
  }
  absl::Status Copy(bool to_device, uint64_t offset, uint64_t staging, uint64_t size) {
    wire::Copy copy;
    copy.set_to_device(to_device);
    copy.set_arena(Harness::kArena);
    copy.set_arena_offset(offset);
    copy.set_staging_offset(staging);
    copy.set_size(size);
    return harness().recorder().AwaitCopy(harness().StartCopy(copy));
  }
};

TEST_F(CopyTest, RoundTripsAtOddOffsets) {
  const std::string bytes = Noise((20 << 20) + 3);
  ASSERT_TRUE(harness().Upload(Harness::kArena, 1234567, bytes).ok());
  auto back = harness().Download(Harness::kArena, 1234567, bytes.size());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == bytes) << "bytes changed on the way";
}

TEST_F(CopyTest, EmptyCopyIsAllowedAtAnyOffset) {
  EXPECT_TRUE(Copy(true, Harness::kArenaBytes, Harness::kStagingBytes, 0).ok());
  EXPECT_TRUE(Copy(false, 0, 0, 0).ok());
}

TEST_F(CopyTest, RangesOutsideTheArenaAreRefused) {
  for (bool to_device : {true, false}) {
    EXPECT_FALSE(Copy(to_device, Harness::kArenaBytes - 1, 0, 2).ok());
    EXPECT_FALSE(Copy(to_device, 0, Harness::kStagingBytes - 1, 2).ok());
    EXPECT_FALSE(Copy(to_device, UINT64_MAX, 0, 2).ok());
    EXPECT_FALSE(Copy(to_device, 0, UINT64_MAX - 1, 4).ok());
    EXPECT_FALSE(Copy(to_device, 0, 0, UINT64_MAX).ok());
  }
}

TEST_F(CopyTest, ManyCopiesInBothDirectionsComplete) {
  constexpr int kCount = 2000;
  const int before = harness().recorder().num_copies();
  uint64_t last = 0;
  for (int i = 0; i < kCount; ++i) {
    wire::Copy copy;
    copy.set_to_device(i % 2 == 0);
    copy.set_arena(Harness::kArena);
    copy.set_arena_offset(i * 64);
    copy.set_staging_offset((i % 2) * 4096);
    copy.set_size(i % 65);
    last = harness().StartCopy(copy);
  }
  harness().device().Drain();
  EXPECT_TRUE(harness().recorder().AwaitCopy(last).ok());
  EXPECT_EQ(harness().recorder().num_copies() - before, kCount);
}

TEST_F(CopyTest, ZeroFillChangesOnlyItsRange) {
  ASSERT_TRUE(harness().Upload(Harness::kArena, 0, std::string(4096, 'x')).ok());
  wire::Task task;
  task.mutable_zero_fill()->set_arena(Harness::kArena);
  task.mutable_zero_fill()->set_offset(1001);
  task.mutable_zero_fill()->set_size(2003);
  ASSERT_TRUE(harness().Run(task).ok());
  auto bytes = harness().Download(Harness::kArena, 0, 4096);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(*bytes, std::string(1001, 'x') + std::string(2003, '\0') + std::string(1092, 'x'));
  task.mutable_zero_fill()->set_offset(Harness::kArenaBytes - 10);
  EXPECT_REFUSED(harness().Run(task));
  task.mutable_zero_fill()->set_size(0);
  EXPECT_TRUE(harness().Run(task).ok());
}

TEST_F(CopyTest, CopyBytesMovesWithinTheDevice) {
  const std::string bytes = Noise(100'001);
  ASSERT_TRUE(harness().CreateArena(20, 1 << 20).ok());
  ASSERT_TRUE(harness().Upload(Harness::kArena, 77, bytes).ok());
  wire::Task task;
  wire::CopyBytes* copy = task.mutable_copy_bytes();
  copy->set_from_arena(Harness::kArena);
  copy->set_from_offset(77);
  copy->set_to_arena(20);
  copy->set_to_offset(13);
  copy->set_size(bytes.size());
  ASSERT_TRUE(harness().Run(task).ok());
  auto back = harness().Download(20, 13, bytes.size());
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(*back == bytes);
  copy->set_to_offset((1 << 20) * 64);
  EXPECT_REFUSED(harness().Run(task));
  EXPECT_TRUE(harness().DropArena(20).ok());
}

}  // namespace
}  // namespace stride::conformance
