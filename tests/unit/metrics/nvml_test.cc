#include "server/metrics/nvml.h"

#include "gtest/gtest.h"

namespace stride::metrics {
namespace {

TEST(NvmlTest, OpensOrSaysWhyNot) {
  std::string reason;
  auto nvml = Nvml::Open(&reason);
  EXPECT_EQ(nvml == nullptr, !reason.empty()) << reason;
  if (nvml == nullptr) GTEST_SKIP() << reason;
  NvmlReading reading = nvml->Read("GPU-00000000-0000-0000-0000-000000000000");
  EXPECT_FALSE(reading.memory_total_bytes.has_value()) << "an unknown device has no readings";
}

}  // namespace
}  // namespace stride::metrics
