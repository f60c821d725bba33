#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stride::metrics {

// Processor time since the machine started, over all cores, in clock ticks.
struct CpuTimes {
  int64_t busy = 0;
  int64_t total = 0;
};

struct HostMemory {
  int64_t used_bytes = 0;  // bytes that a new program could not get
  int64_t total_bytes = 0;
};

// Parsers of the kernel's text files; nullopt when a line is missing or malformed. Pure.
std::optional<CpuTimes> ParseCpuTimes(std::string_view proc_stat);
std::optional<HostMemory> ParseMemory(std::string_view proc_meminfo);

// Reads the files themselves. `root` is prepended to /proc and /sys: empty, or a test's folder.
class Host {
 public:
  explicit Host(std::string root = "") : root_(std::move(root)) {}

  std::optional<CpuTimes> ReadCpuTimes() const;
  std::optional<HostMemory> ReadMemory() const;
  // Degrees of the hottest zone of a processor; absent in most virtual machines.
  std::optional<double> ReadTemperatureCelsius() const;

 private:
  std::string root_;
};

// Busy share between two readings; absent when no tick lies between them.
std::optional<double> Utilization(const CpuTimes& before, const CpuTimes& after);

}  // namespace stride::metrics
