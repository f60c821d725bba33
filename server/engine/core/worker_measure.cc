#include "server/engine/core/worker_measure.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace stride::engine {
namespace {

// With fewer workers the other processes of a device hide the cost.
constexpr int kLeastWorkers = 4;
constexpr double kLeastDeviceBytes = 256 << 20;
constexpr double kMostDeviceBytes = 4.0 * (1 << 30);

// Weights a new measurement by a quarter, since it varies with the current work.
void Blend(double measured, double* value) { *value += (measured - *value) / 4; }

}  // namespace

void WorkerCosts::DeviceUsed(int device, int64_t used, int64_t arena_bytes, int num_workers) {
  Device& known = devices_[device];
  if (!known.before.has_value()) known.before = used;
  if (num_workers < kLeastWorkers) return;
  const double each = static_cast<double>(used - *known.before - arena_bytes) / num_workers;
  Blend(std::clamp(each, kLeastDeviceBytes, kMostDeviceBytes), &known.worker_bytes);
}

void WorkerCosts::Measured(const std::vector<ProcessUse>& workers) {
  if (workers.empty()) return;
  double bytes = 0, threads = 0;
  for (const ProcessUse& worker : workers) {
    bytes += static_cast<double>(worker.private_bytes);
    threads += worker.num_threads;
  }
  const auto count = static_cast<double>(workers.size());
  Blend(std::max(bytes / count, 1.0 * (1 << 20)), &host_bytes_);
  Blend(std::max(threads / count, 1.0), &num_threads_);
}

std::optional<ProcessUse> ReadProcessUse(int pid) {
  ProcessUse use;
  std::ifstream memory(absl::StrCat("/proc/", pid, "/statm"));
  int64_t size = 0, resident = 0, shared = 0;
  if (!(memory >> size >> resident >> shared)) return std::nullopt;
  use.private_bytes = std::max<int64_t>(0, resident - shared) * sysconf(_SC_PAGESIZE);
  std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  std::getline(stat, line);
  // The name, in parentheses, may contain any character.
  std::istringstream fields(line.substr(std::min(line.rfind(')') + 1, line.size())));
  std::string field;
  for (int i = 3; i <= 20 && fields >> field; ++i) {
  }
  use.num_threads = std::atoi(field.c_str());
  return use;
}

}  // namespace stride::engine
