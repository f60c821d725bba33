#include "server/metrics/sampler.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "tests/support/temporary_folder.h"

namespace stride::metrics {
namespace {

class SamplerTest : public ::testing::Test {
 protected:
  SamplerTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "stride-sampler-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    std::filesystem::create_directories(root_ / "proc");
    SetCpu(100, 900);
    std::ofstream(root_ / "proc/meminfo") << "MemTotal: 100 kB\nMemAvailable: 25 kB\n";
  }
  ~SamplerTest() override { stride::test_support::RemoveFolder(root_); }

  void SetCpu(int busy, int idle) {
    std::ofstream(root_ / "proc/stat") << "cpu  " << busy << " 0 0 " << idle << " 0 0 0 0\n";
  }

  static Sources TwoDevices() {
    Sources sources;
    sources.devices = [] {
      std::vector<v1::Device> devices(2);
      devices[0].set_name("devices/GPU-abc");
      devices[0].set_kind("cuda");
      devices[1].set_name("devices/cpu:0");
      devices[1].set_kind("cpu");
      return devices;
    };
    sources.own_account = [] {
      std::vector<v1::DeviceSample> samples(2);
      samples[0].set_array_bytes(5);
      samples[1].set_array_bytes(6);
      return samples;
    };
    return sources;
  }

  std::filesystem::path root_;
};

TEST_F(SamplerTest, GpuReadingsAreMatchedByUuid) {
  Sources sources = TwoDevices();
  std::string asked;
  sources.nvml = [&](const std::string& uuid) {
    asked = uuid;
    NvmlReading reading;
    reading.utilization_ratio = 0.25;
    reading.sm_clock_hertz = 1980000000;
    return reading;
  };
  Sampler sampler(sources, Host(root_));
  auto samples = sampler.NewWatch()->Sample();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(asked, "GPU-abc");
  EXPECT_EQ(samples[0].device(), "devices/GPU-abc");
  EXPECT_EQ(samples[0].array_bytes(), 5);
  EXPECT_DOUBLE_EQ(samples[0].utilization_ratio(), 0.25);
  EXPECT_EQ(samples[0].sm_clock_hertz(), 1980000000);
  EXPECT_FALSE(samples[0].has_power_watts());
  EXPECT_FALSE(samples[0].has_memory_used_bytes());
  EXPECT_GT(samples[0].time().seconds(), 0);
}

TEST_F(SamplerTest, CpuUtilizationCoversTheIntervalOfEachWatch) {
  Sampler sampler(TwoDevices(), Host(root_));
  auto watch = sampler.NewWatch();
  EXPECT_FALSE(watch->Sample()[1].has_utilization_ratio()) << "no time has passed since the start";
  SetCpu(150, 950);
  EXPECT_DOUBLE_EQ(watch->Sample()[1].utilization_ratio(), 0.5);
  SetCpu(150, 1050);
  EXPECT_DOUBLE_EQ(watch->Sample()[1].utilization_ratio(), 0.0);
  EXPECT_DOUBLE_EQ(watch->Sample()[1].utilization_ratio(), 0.0)
      << "no new tick: the last share stands";
  auto later = sampler.NewWatch();
  EXPECT_DOUBLE_EQ(later->Sample()[1].utilization_ratio(), 0.25)
      << "first: since the daemon's start";
  EXPECT_EQ(later->Sample()[1].memory_used_bytes(), 75 * 1024);
  EXPECT_FALSE(later->Sample()[1].has_temperature_celsius());
  EXPECT_FALSE(later->Sample()[0].has_utilization_ratio()) << "without NVML a GPU has none";
}

}  // namespace
}  // namespace stride::metrics
