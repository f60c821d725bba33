#include "server/metrics/host.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "tests/support/temporary_folder.h"

namespace stride::metrics {
namespace {

constexpr char kStat[] =
    "cpu  100 20 30 800 50 0 5 5 99 0\n"
    "cpu0 50 10 15 400 25 0 2 3 0 0\n"
    "intr 12345\n";

TEST(HostTest, CpuTimesLeaveOutIdleAndGuestTime) {
  auto times = ParseCpuTimes(kStat);
  ASSERT_TRUE(times.has_value());
  EXPECT_EQ(times->busy, 160);
  EXPECT_EQ(times->total, 1010);
}

TEST(HostTest, MalformedFilesAreAbsent) {
  for (const char* text : {"", "cpu0 1 2 3 4\n", "cpu  1 2\n", "cpu  x\n", "\n\n"}) {
    EXPECT_FALSE(ParseCpuTimes(text).has_value()) << text;
  }
  for (const char* text : {"", "MemTotal: 5 kB\n", "MemTotal: x kB\nMemAvailable: 1 kB\n"}) {
    EXPECT_FALSE(ParseMemory(text).has_value()) << text;
  }
}

TEST(HostTest, UsedMemoryIsTotalMinusAvailable) {
  auto memory =
      ParseMemory("MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    600 kB\n");
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(memory->total_bytes, 1000 * 1024);
  EXPECT_EQ(memory->used_bytes, 400 * 1024);
}

TEST(HostTest, UtilizationCoversOnlyTheInterval) {
  EXPECT_DOUBLE_EQ(*Utilization({100, 1000}, {150, 1100}), 0.5);
  EXPECT_FALSE(Utilization({100, 1000}, {100, 1000}).has_value());
}

TEST(HostTest, HottestProcessorZoneIsReported) {
  std::string pattern = (std::filesystem::temp_directory_path() / "stride-host-XXXXXX").string();
  std::filesystem::path root = mkdtemp(pattern.data());
  auto zone = [&](const char* name, const char* type, const char* temperature) {
    std::filesystem::path folder = root / "sys/class/thermal" / name;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "type") << type << "\n";
    std::ofstream(folder / "temp") << temperature << "\n";
  };
  EXPECT_FALSE(Host(root).ReadTemperatureCelsius().has_value());
  zone("thermal_zone0", "x86_pkg_temp", "41500");
  zone("thermal_zone1", "x86_pkg_temp", "43000");
  zone("thermal_zone2", "iwlwifi", "90000");
  EXPECT_DOUBLE_EQ(*Host(root).ReadTemperatureCelsius(), 43.0);
  stride::test_support::RemoveFolder(root);
}

TEST(HostTest, ThisMachineHasProcessorsAndMemory) {
  Host host;
  ASSERT_TRUE(host.ReadCpuTimes().has_value());
  EXPECT_GT(host.ReadCpuTimes()->total, 0);
  ASSERT_TRUE(host.ReadMemory().has_value());
  EXPECT_GT(host.ReadMemory()->total_bytes, host.ReadMemory()->used_bytes);
}

}  // namespace
}  // namespace stride::metrics
