#include "server/metrics/nvml.h"

#include "gtest/gtest.h"

namespace stride::metrics {
namespace {

TEST(NvmlTest, OpensOrReportsTheCause) {
  std::string reason;
  auto nvml = Nvml::Open(&reason);
  EXPECT_EQ(nvml == nullptr, !reason.empty()) << reason;
  if (nvml == nullptr) GTEST_SKIP() << reason;
  NvmlReading reading = nvml->Read("GPU-00000000-0000-0000-0000-000000000000");
  EXPECT_FALSE(reading.memory_total_bytes.has_value()) << "an unknown device has no readings";
}

TEST(NvmlTest, KernelFaultsNeedNoReset) {
  for (uint64_t xid : {13, 31, 43, 45, 68, 94, 109}) EXPECT_FALSE(NeedsReset(xid)) << xid;
  for (uint64_t xid : {48, 79, 95, 119}) EXPECT_TRUE(NeedsReset(xid)) << xid;
}

// An absent device reports nothing, and the caller does not wait for ever.
TEST(NvmlTest, NoErrorsAreCollectedWithoutADevice) {
  std::string reason;
  auto nvml = Nvml::Open(&reason);
  if (nvml == nullptr) GTEST_SKIP() << reason;
  EXPECT_FALSE(nvml->CollectErrors({"GPU-00000000-0000-0000-0000-000000000000"}));
}

}  // namespace
}  // namespace stride::metrics
