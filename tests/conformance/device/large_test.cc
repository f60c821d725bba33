#include <unistd.h>

#include "tests/conformance/device/harness.h"

namespace stride::conformance {
namespace {

constexpr uint64_t kGiB = 1ull << 30;
constexpr uint64_t kArena = 30;

// Sizes and offsets beyond 32 bits.
class LargeTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const auto& device = harness().subject().description;
    const uint64_t memory = device.memory_bytes() > 0
                                ? device.memory_bytes()
                                : uint64_t{1} * sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    if (memory < 20 * kGiB) GTEST_SKIP() << "needs a device with 20 GiB";
    if (device.host_memory()) GTEST_SKIP() << "host memory is not to be filled by a test";
    const absl::Status status = harness().CreateArena(kArena, 10 * kGiB);
    if (absl::IsResourceExhausted(status)) GTEST_SKIP() << "10 GiB are not free: " << status;
    ASSERT_TRUE(status.ok()) << status;
    made_ = true;
    wire::Task task;
    task.mutable_zero_fill()->set_arena(kArena);
    task.mutable_zero_fill()->set_size(10 * kGiB);
    ASSERT_TRUE(harness().Run(task).ok());
  }
  void TearDown() override {
    if (!made_) return;
    EXPECT_TRUE(harness().DropArena(kArena).ok());
  }
  std::string Read(uint64_t offset, uint64_t size) {
    auto bytes = harness().Download(kArena, offset, size);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.ok() ? *bytes : "";
  }

 private:
  bool made_ = false;
};

TEST_F(LargeTest, CopiesAndFillsBeyondFourGiB) {
  const uint64_t far = 9 * kGiB + 12345;
  ASSERT_TRUE(harness().Upload(kArena, far, "far away").ok());
  EXPECT_EQ(Read(far, 8), "far away");
  EXPECT_EQ(Read(far - 8 * kGiB, 8), std::string(8, '\0')) << "an offset was cut to 32 bits";
  wire::Task task;
  task.mutable_zero_fill()->set_arena(kArena);
  task.mutable_zero_fill()->set_offset(1);
  task.mutable_zero_fill()->set_size(far + 3);  // up to "far " and no further
  ASSERT_TRUE(harness().Run(task).ok());
  EXPECT_EQ(Read(far, 8), std::string(4, '\0') + "away");
}

TEST_F(LargeTest, AddsMoreThanFourGiBOfElements) {
  const int64_t n = static_cast<int64_t>(4 * kGiB) + 1000;
  DeviceArray array{kArena, 256, Contiguous(DType::kUInt8, {n})};
  v1::Operation operation = UfuncOf("add", 1);
  operation.mutable_ufunc()->add_inputs()->mutable_scalar()->set_int_value(1);
  auto sum = harness().Compute(operation, {array, DeviceArray()}, &array);
  ASSERT_TRUE(sum.ok()) << sum.status();
  for (int64_t at : {int64_t{0}, n / 2, static_cast<int64_t>(4 * kGiB) - 1,
                     static_cast<int64_t>(4 * kGiB), n - 2}) {
    EXPECT_EQ(Read(256 + at, 2), "\1\1") << "at element " << at;
  }
  EXPECT_EQ(Read(256 + n - 1, 2), std::string("\1\0", 2)) << "at the end";
  EXPECT_EQ(Read(255, 1), std::string(1, '\0')) << "before the start";
  auto total = harness().Compute(ReductionOf(v1::Reduction::FUNCTION_SUM, {}), {array});
  ASSERT_TRUE(total.ok()) << total.status();
  EXPECT_EQ(harness().Get(*total).At(0), Value(static_cast<double>(n)));
}

}  // namespace
}  // namespace stride::conformance
