#include "server/metrics/host.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

namespace stride::metrics {
namespace {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The line that starts with `key`, without it.
std::optional<std::string_view> LineAfter(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    if (line.substr(0, key.size()) == key) return line.substr(key.size());
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return std::nullopt;
}

std::vector<int64_t> Numbers(std::string_view line) {
  std::vector<int64_t> numbers;
  const char* end = line.data() + line.size();
  for (const char* p = line.data(); p < end;) {
    if (*p == ' ') {
      ++p;
      continue;
    }
    int64_t value = 0;
    auto [next, error] = std::from_chars(p, end, value);
    if (error != std::errc() || value < 0) break;
    numbers.push_back(value);
    p = next;
  }
  return numbers;
}

std::optional<int64_t> Kibibytes(std::string_view meminfo, std::string_view key) {
  auto line = LineAfter(meminfo, key);
  if (!line.has_value()) return std::nullopt;
  std::vector<int64_t> numbers = Numbers(*line);
  if (numbers.empty()) return std::nullopt;
  return numbers[0] * 1024;
}

bool IsProcessorZone(const std::string& type) {
  for (const char* word : {"x86_pkg_temp", "cpu", "coretemp", "k10temp", "soc"}) {
    if (type.find(word) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

std::optional<CpuTimes> ParseCpuTimes(std::string_view proc_stat) {
  // user nice system idle iowait irq softirq steal; guest time is in user already.
  auto line = LineAfter(proc_stat, "cpu ");
  if (!line.has_value()) return std::nullopt;
  std::vector<int64_t> ticks = Numbers(*line);
  if (ticks.size() < 4) return std::nullopt;
  CpuTimes times;
  for (size_t i = 0; i < std::min<size_t>(ticks.size(), 8); ++i) {
    bool idle = i == 3 || i == 4;
    times.total += ticks[i];
    if (!idle) times.busy += ticks[i];
  }
  return times;
}

std::optional<HostMemory> ParseMemory(std::string_view proc_meminfo) {
  auto total = Kibibytes(proc_meminfo, "MemTotal:");
  auto available = Kibibytes(proc_meminfo, "MemAvailable:");
  if (!total.has_value() || !available.has_value()) return std::nullopt;
  return HostMemory{*total - *available, *total};
}

std::optional<double> Utilization(const CpuTimes& before, const CpuTimes& after) {
  int64_t total = after.total - before.total;
  if (total <= 0) return std::nullopt;
  return std::clamp(static_cast<double>(after.busy - before.busy) / static_cast<double>(total), 0.0,
                    1.0);
}

std::optional<CpuTimes> Host::ReadCpuTimes() const {
  return ParseCpuTimes(ReadFile(root_ + "/proc/stat"));
}

std::optional<HostMemory> Host::ReadMemory() const {
  return ParseMemory(ReadFile(root_ + "/proc/meminfo"));
}

std::optional<double> Host::ReadTemperatureCelsius() const {
  std::optional<double> hottest;
  std::error_code error;
  std::filesystem::directory_iterator zones(root_ + "/sys/class/thermal", error);
  if (error) return hottest;
  for (const auto& zone : zones) {
    if (!IsProcessorZone(ReadFile(zone.path() / "type"))) continue;
    std::vector<int64_t> millidegrees = Numbers(ReadFile(zone.path() / "temp"));
    if (millidegrees.empty()) continue;
    hottest = std::max(hottest.value_or(0.0), static_cast<double>(millidegrees[0]) / 1000.0);
  }
  return hottest;
}

}  // namespace stride::metrics
