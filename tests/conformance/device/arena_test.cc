#include <fcntl.h>

#include <algorithm>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

class ArenaTest : public DeviceTest {};

constexpr uint64_t kSize = 4 << 20;

TEST_F(ArenaTest, NewMemoryIsZero) {
  ASSERT_TRUE(harness().CreateArena(10, kSize).ok());
  auto bytes = harness().Download(10, 0, kSize);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->find_first_not_of('\0'), std::string::npos) << "at byte";
  EXPECT_TRUE(harness().DropArena(10).ok());
}

// Isolation of tenants in arenas depends on this: new memory is zero even if this process has just
// filled it.
TEST_F(ArenaTest, ReusedMemoryIsZero) {
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

TEST_F(ArenaTest, DescriptorMapsTheMemory) {
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

// Inputs and results in host memory that the device uses in place; a host-memory device has no
// other memory.
TEST_F(ArenaTest, HostMemoryIsUsedInPlace) {
  auto file = CreateMemoryFile("in-place", kSize);
  ASSERT_TRUE(file.ok());
  auto map = MemoryMap::Map(file->get(), kSize, /*writable=*/true);
  ASSERT_TRUE(map.ok());
  absl::Status mapped = harness().device().MapHostArena(15, kSize, *file->Duplicate());
  if (absl::IsUnimplemented(mapped)) GTEST_SKIP() << mapped.message();
  ASSERT_TRUE(mapped.ok()) << mapped;
  constexpr int64_t kCount = 5000;
  auto* x = reinterpret_cast<float*>(map->data() + 4096);
  const auto* y = reinterpret_cast<const float*>(map->data() + 65536);
  v1::Operation operation;
  operation.mutable_expression()->set_text("x * 2 + 1");
  (*operation.mutable_expression()->mutable_inputs())["x"].set_handle(1);
  operation.add_outputs()->set_handle(100);
  const ArrayInfo row = Contiguous(DType::kFloat32, {kCount});
  const DeviceArray result{15, 65536, row};
  for (int round = 0; round < 20; ++round) {
    for (int64_t i = 0; i < kCount; ++i) x[i] = static_cast<float>(i + round);
    auto made = harness().Compute(operation, {{15, 4096, row}}, &result);
    ASSERT_TRUE(made.ok()) << made.status();
    for (int64_t i = 0; i < kCount; ++i) ASSERT_EQ(y[i], static_cast<float>((i + round) * 2 + 1));
  }
  v1::Operation sum;
  sum.mutable_reduction()->set_function(v1::Reduction::FUNCTION_SUM);
  sum.mutable_reduction()->mutable_input()->set_handle(1);
  sum.add_outputs()->set_handle(100);
  std::fill_n(x, kCount, 0.5f);
  const DeviceArray total{15, 128 << 10, Contiguous(DType::kFloat32, {})};
  ASSERT_TRUE(harness().Compute(sum, {{15, 4096, row}}, &total).ok());
  EXPECT_EQ(*reinterpret_cast<const float*>(map->data() + (128 << 10)), kCount * 0.5f);
  // An offset beyond its end is refused, as in any arena.
  EXPECT_FALSE(harness().Compute(operation, {{15, kSize - 4096, row}}, &result).ok());
  EXPECT_TRUE(harness().device().UnmapArena(15).ok());
  EXPECT_FALSE(harness().Compute(operation, {{15, 4096, row}}, &result).ok());
}

TEST_F(ArenaTest, UnknownArenasAreRefused) {
  EXPECT_FALSE(harness().device().UnmapArena(99).ok());
  EXPECT_FALSE(harness().Upload(99, 0, "x").ok());
  wire::Task task;
  task.mutable_zero_fill()->set_arena(99);
  task.mutable_zero_fill()->set_size(1);
  EXPECT_FALSE(harness().Run(task).ok());
}

TEST_F(ArenaTest, ImpossibleSizesAreRefused) {
  EXPECT_FALSE(harness().CreateArena(13, uint64_t{1} << 52).ok());
  wire::Task task;
  task.mutable_zero_fill()->set_arena(Harness::kArena);
  task.mutable_zero_fill()->set_size(16);
  EXPECT_TRUE(harness().Run(task).ok());
}

}  // namespace
}  // namespace stride::conformance
