// Copies with memory shared between the daemon and a client, for devices that need a worker for
// them.
#include <cstring>
#include <random>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

constexpr uint64_t kRegion = 5;

class RegionTest : public DeviceTest {
 protected:
  void Map(uint64_t region, uint64_t size) {
    auto file = CreateMemoryFile("region", size);
    ASSERT_TRUE(file.ok());
    auto map = MemoryMap::Map(file->get(), size, /*writable=*/true);
    ASSERT_TRUE(map.ok());
    map_ = *std::move(map);
    ASSERT_TRUE(harness().device().MapRegion(region, size, *std::move(file)).ok());
  }
  uint64_t Start(uint64_t region, bool to_device, uint64_t offset, uint64_t at, uint64_t size) {
    wire::Copy copy;
    copy.set_region(region);
    copy.set_to_device(to_device);
    copy.set_arena(Harness::kArena);
    copy.set_arena_offset(offset);
    copy.set_staging_offset(at);
    copy.set_size(size);
    return harness().StartCopy(copy);
  }
  absl::Status Copy(uint64_t region, bool to_device, uint64_t offset, uint64_t at, uint64_t size) {
    return harness().recorder().AwaitCopy(Start(region, to_device, offset, at, size));
  }
  bool OnHost() const { return harness_on_host_; }
  void SetUp() override {
    DeviceTest::SetUp();
    if (!IsSkipped()) harness_on_host_ = harness().subject().description.host_memory();
  }

  MemoryMap map_;
  bool harness_on_host_ = false;
};

TEST_F(RegionTest, HostMemoryDevicesHaveNoRegions) {
  if (!OnHost()) GTEST_SKIP() << "the device's own copies are tested instead";
  auto file = CreateMemoryFile("region", 4096);
  EXPECT_TRUE(absl::IsUnimplemented(harness().device().MapRegion(kRegion, 4096, *std::move(file))));
  EXPECT_TRUE(absl::IsUnimplemented(Copy(kRegion, true, 0, 0, 10)));
}

TEST_F(RegionTest, RoundTripsDuringPinning) {
  if (OnHost()) GTEST_SKIP() << "the daemon copies itself";
  constexpr uint64_t kSize = 48 << 20;
  Map(kRegion, kSize);
  std::mt19937 random(7);
  for (uint64_t i = 0; i + 4 <= kSize; i += 4) {
    const uint32_t word = random();
    std::memcpy(map_.data() + i, &word, 4);
  }
  const std::string content(map_.view().substr(3, 20 << 20));
  // At once: the unmap waits for copies in flight.
  std::vector<uint64_t> copies;
  for (uint64_t at = 0; at < (20 << 20); at += 4 << 20)
    copies.push_back(Start(kRegion, true, 77 + at, 3 + at, 4 << 20));
  for (uint64_t copy : copies) ASSERT_TRUE(harness().recorder().AwaitCopy(copy).ok());
  std::memset(map_.data() + (24 << 20), 0, 24 << 20);
  ASSERT_TRUE(Copy(kRegion, false, 77, (24 << 20) + 1, 20 << 20).ok());
  EXPECT_TRUE(map_.view().substr((24 << 20) + 1, 20 << 20) == content);
  // Staging gives the same bytes.
  auto staged = harness().Download(Harness::kArena, 77, 20 << 20);
  ASSERT_TRUE(staged.ok());
  EXPECT_TRUE(*staged == content);
  ASSERT_TRUE(harness().device().UnmapRegion(kRegion).ok());
}

TEST_F(RegionTest, InvalidRangesAndRegionsAreRefused) {
  if (OnHost()) GTEST_SKIP() << "the daemon copies itself";
  Map(kRegion, 8192);
  for (bool up : {true, false}) {
    EXPECT_REFUSED(Copy(kRegion, up, 0, 8191, 2));
    EXPECT_REFUSED(Copy(kRegion, up, 0, UINT64_MAX, 2));
    EXPECT_REFUSED(Copy(kRegion, up, 0, 0, UINT64_MAX));
    EXPECT_REFUSED(Copy(kRegion, up, Harness::kArenaBytes - 1, 0, 2));
    EXPECT_REFUSED(Copy(kRegion + 1, up, 0, 0, 2));
    EXPECT_TRUE(Copy(kRegion, up, 0, 8192, 0).ok());
    EXPECT_TRUE(Copy(kRegion, up, 0, 8190, 2).ok());
  }
  ASSERT_TRUE(harness().device().UnmapRegion(kRegion).ok());
  EXPECT_REFUSED(Copy(kRegion, true, 0, 0, 2));
}

TEST_F(RegionTest, InvalidFileFailsOnlyItsCopies) {
  if (OnHost()) GTEST_SKIP() << "the daemon copies itself";
  auto small = CreateMemoryFile("region", 4096);
  ASSERT_TRUE(small.ok());
  // Larger than the file: its use would end in SIGBUS.
  ASSERT_TRUE(harness().device().MapRegion(kRegion, 1 << 20, *std::move(small)).ok());
  EXPECT_FALSE(Copy(kRegion, true, 0, 0, 10).ok());
  ASSERT_TRUE(harness().device().UnmapRegion(kRegion).ok());
  Map(kRegion + 1, 4096);
  EXPECT_TRUE(Copy(kRegion + 1, true, 0, 0, 10).ok());
  ASSERT_TRUE(harness().device().UnmapRegion(kRegion + 1).ok());
}

TEST_F(RegionTest, ArenaIsUnmappedAfterItsCopies) {
  if (OnHost()) GTEST_SKIP() << "the daemon copies itself";
  Map(kRegion, 32 << 20);
  ASSERT_TRUE(harness().CreateArena(21, 32 << 20).ok());
  wire::Copy copy;
  copy.set_region(kRegion);
  copy.set_to_device(true);
  copy.set_arena(21);
  copy.set_size(32 << 20);
  const uint64_t id = harness().StartCopy(copy);
  ASSERT_TRUE(harness().DropArena(21).ok());
  EXPECT_TRUE(harness().recorder().AwaitCopy(id).ok());
  ASSERT_TRUE(harness().device().UnmapRegion(kRegion).ok());
}

}  // namespace
}  // namespace stride::conformance
